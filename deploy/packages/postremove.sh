#!/bin/sh
# After removal, of deb and of rpm. A purge (deb) takes the saved columns, too: they can be copied again.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	rm -rf /var/lib/pgaccel
fi
