#!/bin/sh
# Before installation and upgrade, of deb and of rpm: a group of the files has to be there before they are.
set -e
if ! getent passwd pgaccel >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/pgaccel --no-create-home --shell /usr/sbin/nologin pgaccel
fi
