#!/bin/sh
# After installation and upgrade, of deb and of rpm. Neither enabled nor started before somebody has said which server it
# is for. An upgrade lets the old program run on: a restart ends sessions, so when is for who operates it to say.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
