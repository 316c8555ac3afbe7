#!/bin/sh
# After installation and upgrade; of deb ($1 is configure) and of rpm.
set -e

# A machine without systemd, such as a container, has no systemd-sysusers.
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers pgaccel.conf
elif ! getent passwd pgaccel >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/pgaccel --no-create-home --shell /usr/sbin/nologin pgaccel
fi
# What is configured may hold passwords: only the service reads it, and nobody but root writes it.
chgrp pgaccel /etc/pgaccel

# Neither enabled nor started before somebody has said which server it is for. An upgrade lets the old program run
# on: a restart ends sessions, so when is for who operates it to say.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
