#!/usr/bin/env bash
# Installs the deb and the rpm in a clean Debian with a PostgreSQL server, in which systemd is process 1, and does what
# docs/install.md says: configure, check, start, reload, upgrade, exchange, stop, remove, purge. Nothing of it stays but
# the clean Debian, in build. It takes root that may mount and make namespaces, and a mirror of Debian (once).
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "scripts/test-packages.sh takes root: it boots a container" >&2; exit 1; }

arch=$(go env GOHOSTARCH)
clean=$PWD/build/debian # what the container writes is in memory
work=$(mktemp -d)
container="" loop=""
began=$SECONDS
say() { echo "== $* ($((SECONDS - began)) s)"; }
fail() {
	echo "FAIL, line ${BASH_LINENO[0]}: $*" >&2
	exit 1
}
finish() {
	local status=$?
	[ -z "$loop" ] || kill "$loop" 2>/dev/null || true
	if [ -n "$container" ]; then
		[ $status -eq 0 ] || within journalctl --no-pager --lines 60 >&2 || true
		within systemctl poweroff --force --force >/dev/null 2>&1 || kill "$container" 2>/dev/null || true
		wait "$container" 2>/dev/null || true
	fi
	rm -rf "$work"
	exit $status
}
trap finish EXIT

# within runs a command in the container; server asks PostgreSQL, pgaccel through pgaccel.
within() {
	nsenter --target "$leader" --mount --uts --ipc --pid --net --cgroup --root --wd \
		env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive PGPASSWORD=secret PGOPTIONS="${PGOPTIONS:-}" "$@"
}
client=(psql -XAtq -v ON_ERROR_STOP=1)
server() { within runuser -u postgres -- "${client[@]}" -c "$1"; }
pgaccel() { within "${client[@]}" -h 127.0.0.1 -p 6432 -U pgaccel postgres -c "$1"; }
property() { within systemctl show --value --property "$1" pgaccel; }
status() { pgaccel "SELECT $1 FROM pgaccel.status"; }
logged() { within journalctl --no-pager --unit pgaccel --grep "$1" >/dev/null; }
configure() { within sed -i "s|^#\?$1:.*|$1: $2|" /etc/pgaccel/pgaccel.yml; }

equal() { [ "$2" = "$3" ] || fail "$1: $2, want $3"; }
# eventually WHAT COMMAND... waits for a minute, as the machine may be slow.
eventually() {
	local what=$1
	shift
	for _ in $(seq 240); do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 0.25
	done
	fail "$what: not within a minute"
}
is() { [ "$("${@:2}")" = "$1" ]; }

# answers: once the table is copied a query has the server's answer, computed here.
answers() {
	local sql="SELECT v, count(*), sum(id) FROM packed GROUP BY v ORDER BY v" before
	eventually "a copied table" is ready pgaccel "SELECT state FROM pgaccel.tables"
	before=$(pgaccel "SELECT coalesce(sum(accelerated), 0) FROM pgaccel.queries")
	equal "$sql" "$(PGOPTIONS="-c pgaccel.mode=force" pgaccel "$sql")" "$(server "$sql")"
	equal "executions here" "$(pgaccel "SELECT sum(accelerated) - $before FROM pgaccel.queries")" 1
}

# configured does what docs/install.md says, up to the first start.
configured() {
	equal "the unit" "$(within systemctl is-enabled pgaccel || true), $(within systemctl is-active pgaccel || true)" "disabled, inactive"
	equal "/etc/pgaccel" "$(within stat -c '%U:%G %a' /etc/pgaccel)" "root:pgaccel 750"
	within install -o pgaccel -g pgaccel -m 600 /dev/null /etc/pgaccel/password
	within sh -c 'echo secret >/etc/pgaccel/password'
	configure upstream "postgres://pgaccel@127.0.0.1:5432/postgres"
	configure upstream-password-file /etc/pgaccel/password
	configure accelerate '[public.*]'
	configure wait-limit 5s
	configure reuse-port true
	within runuser -u pgaccel -- pgaccel check --config /etc/pgaccel/pgaccel.yml >"$work/check" || fail "$(cat "$work/check")"
	within systemctl enable --now pgaccel 2>/dev/null
	equal "version" "$(status version)" 1.0.0 # nobody has to try again
	answers
	equal "the user" "$(within stat -c %U "/proc/$(property MainPID)")" pgaccel
}

# upgraded COMMAND...: the command has brought the next version, the configuration is kept and the old program runs on; a
# restart goes on from the saved columns.
upgraded() {
	local config process
	config=$(within md5sum /etc/pgaccel/pgaccel.yml)
	process=$(property MainPID)
	"$@" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
	equal "the configuration" "$(within md5sum /etc/pgaccel/pgaccel.yml)" "$config"
	equal "the process" "$(property MainPID), $(status version)" "$process, 1.0.0"
	within systemctl restart pgaccel
	equal "version" "$(status version)" 1.1.0
	answers
	equal "copies after a restart" "$(status copies)" 0
}

# given_up drops what a pgaccel with data-dir leaves on the server.
given_up() {
	server "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots" >/dev/null
	server "DO \$\$BEGIN EXECUTE (SELECT 'DROP PUBLICATION ' || string_agg(quote_ident(pubname), ', ') FROM pg_publication); END\$\$"
}

say "packages of two versions"
for version in 1.0.0 1.1.0; do
	VERSION=$version PACKAGES_DIR=$work/$version scripts/packages.sh "$arch" >/dev/null
	for format in deb rpm; do
		mv "$work/$version"/*."$format" "$work/$version.$format"
	done
done

if [ ! -e "$clean/complete" ]; then
	say "a clean Debian"
	rm -rf "$clean"
	mirror=$(grep -Eho '^(URIs:|deb) .*https?://[^ ]*/debian' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -o 'http.*' | head -1) || true
	debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,postgresql,rpm bookworm "$clean" "${mirror:-http://deb.debian.org/debian}" >"$work/log" 2>&1 ||
		fail "$(tail "$work/log")"
	touch "$clean/complete"
fi

say "boot"
# Without a machine that systemd has booted there is nobody to register at; the container has no network but its own.
systemd-nspawn --quiet --register=no --keep-unit --private-network --volatile=overlay --bind-ro="$work:/mnt" --console=pipe \
	--directory "$clean" --boot </dev/null >"$work/log" 2>&1 &
container=$!
leader=""
for _ in $(seq 240); do
	leader=$(pgrep --parent $container --exact systemd) && break
	kill -0 $container 2>/dev/null || fail "$(cat "$work/log")"
	sleep 0.25
done
eventually "systemd" within systemctl is-active multi-user.target
eventually "PostgreSQL" server "SELECT 1"
server "ALTER SYSTEM SET wal_level = logical"
within systemctl restart postgresql
eventually "PostgreSQL" server "SELECT 1"
server "CREATE ROLE pgaccel LOGIN REPLICATION PASSWORD 'secret'; GRANT CREATE ON DATABASE postgres TO pgaccel; SET ROLE pgaccel; RESET ROLE;
	CREATE TABLE packed (id int PRIMARY KEY, v int); INSERT INTO packed SELECT i, i % 7 FROM generate_series(1, 20000) i; ALTER TABLE packed OWNER TO pgaccel"

say "deb: install, configure, start"
within dpkg --install /mnt/1.0.0.deb >/dev/null
for unit in pgaccel.service pgaccel@.service; do
	within systemd-analyze verify --man=no /usr/lib/systemd/system/$unit || fail "systemd-analyze verify $unit"
done
within systemd-analyze security --threshold=20 --no-pager pgaccel.service >"$work/log" || fail "$(tail -1 "$work/log")"
configured

say "reload"
configure drain-timeout 80s # the unit waits for 90
within systemctl reload pgaccel
eventually "SIGHUP" logged 'SIGHUP: .*changed=drain-timeout'

say "deb: upgrade, restart"
upgraded within dpkg --install /mnt/1.1.0.deb

say "exchange, in which no connection is refused"
within ln -s pgaccel.yml /etc/pgaccel/next.yml
(
	while pgaccel "SELECT version FROM pgaccel.status" >>"$work/connections" 2>>"$work/refused"; do
		sleep 0.05
	done
	touch "$work/refused.end"
) &
loop=$!
within systemctl start pgaccel@next
within systemctl restart pgaccel
within systemctl stop pgaccel@next
[ -s "$work/connections" ] || fail "nobody has connected"
[ ! -e "$work/refused.end" ] || fail "$(cat "$work/refused")"
kill $loop
wait $loop 2>/dev/null || true
loop=""
within rm /etc/pgaccel/next.yml
answers

say "stop, which waits for a session in a transaction"
mkfifo "$work/statements"
within "${client[@]}" -h 127.0.0.1 -p 6432 -U pgaccel postgres <"$work/statements" >"$work/session" 2>&1 &
session=$!
exec 3>"$work/statements"
echo "BEGIN; SELECT 'begun' AS x;" >&3
eventually "a transaction" grep -q begun "$work/session"
within systemctl stop --no-block pgaccel
eventually "SIGTERM" logged 'SIGTERM: no new connections'
! pgaccel "SELECT 1" >/dev/null 2>&1 || fail "a connection while it drains"
echo "SELECT 'still here' AS x; COMMIT;" >&3
eventually "an answer while it drains" grep -q 'still here' "$work/session"
eventually "the end" is inactive property ActiveState
echo "SELECT 'too late' AS x;" >&3
exec 3>&-
! wait $session || fail "the session has not been ended: $(cat "$work/session")"
grep -q 'terminating connection' "$work/session" || fail "the session says: $(cat "$work/session")"
equal "result" "$(property Result), $(property ExecMainStatus)" "success, 0"
logged give_up || fail "the log does not say how to give the slot up"

say "deb: remove, purge"
within systemctl start pgaccel
within dpkg --remove pgaccel >/dev/null 2>&1
equal "processes" "$(within sh -c 'grep -l "^pgaccel$" /proc/[0-9]*/comm' || true)" ""
within test -s /etc/pgaccel/pgaccel.yml -a -s /etc/pgaccel/password || fail "remove takes the configuration"
[ -n "$(within find /var/lib/pgaccel/data -name 's*' -type f)" ] || fail "remove takes the columns"
within dpkg --purge pgaccel >/dev/null
! within test -e /etc/pgaccel -o -e /var/lib/pgaccel || fail "purge leaves: $(within find /etc/pgaccel /var/lib/pgaccel)"
! within test -e /etc/systemd/system/multi-user.target.wants/pgaccel.service || fail "the unit is enabled"
within userdel pgaccel
given_up

say "rpm: install, configure, start"
# Debian's rpm says on stderr that it should not be used, and knows nothing of what dpkg has installed.
within rpm --install --nodeps /mnt/1.0.0.rpm 2>"$work/log" || fail "$(cat "$work/log")"
within rpm --verify --nodeps pgaccel || fail "rpm --verify"
configured

say "rpm: upgrade, restart, remove"
upgraded within rpm --upgrade --nodeps /mnt/1.1.0.rpm
equal "rpm --verify" "$(within rpm --verify --nodeps pgaccel | grep -v '^S.5....T.  c /etc/pgaccel/pgaccel.yml$')" ""
within rpm --erase --nodeps pgaccel 2>/dev/null
equal "processes" "$(within sh -c 'grep -l "^pgaccel$" /proc/[0-9]*/comm' || true)" ""
within test -s /etc/pgaccel/pgaccel.yml.rpmsave -a -s /etc/pgaccel/password || fail "rpm --erase takes the configuration"
[ -n "$(within find /var/lib/pgaccel/data -name 's*' -type f)" ] || fail "rpm --erase takes the columns"
! within test -e /usr/bin/pgaccel || fail "rpm --erase leaves the program"
say "passed"
