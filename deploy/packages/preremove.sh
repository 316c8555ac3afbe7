#!/bin/sh
# Before removal, of deb ($1 is remove) and of rpm (0, the number of versions left). Upgrades change nothing here.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl stop pgaccel.service 'pgaccel@*.service'
		systemctl disable pgaccel.service pgaccel@.service
	fi
	;;
esac
