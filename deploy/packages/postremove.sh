#!/bin/sh
# After removal, of deb and of rpm. A purge (deb) takes all of the configuration, passwords among it, and the saved
# columns: they can be copied again.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	rm -rf /etc/pgaccel /var/lib/pgaccel
fi
