#!/bin/bash
# Runs other people's test suites through pgaccel and prints how many pass:
#   regress    PostgreSQL's own regression tests
#   isolation  PostgreSQL's own isolation tests
#   pipeline   libpq's pipeline mode tests
#   probe      rawprobe.py's message sequences, compared with the server's answers
#   pgx        the tests of jackc/pgx
#   node       the tests of node-postgres, if its source is there (see below)
# each on the server itself ("direct"), then through pgaccel with every table
# accelerated and pgaccel.mode off, then auto ("force" takes what can be taken).
#
#   regress.sh [suite ...]      MODES="off force" regress.sh regress
#
# PGACCEL is the program (default: built from this tree). NODE_POSTGRES is a folder
# with node-postgres' source; without it `git clone` is tried.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
root=$PWD
out=$root/build/regress
src=$out/postgresql
major=${PG_MAJOR:-15}
bin=${PGACCEL_PG_BINDIR:-/usr/lib/postgresql/$major/bin}
modes=${MODES:-direct off auto}
suites=${*:-probe pipeline isolation regress pgx node}

"$here/prepare.sh" >"$out.prepare.log" 2>&1 || {
	cat "$out.prepare.log" >&2
	exit 1
}
if [ -z "${PGACCEL:-}" ] && [ "$modes" != direct ]; then
	PGACCEL=$out/pgaccel
	go build -o "$PGACCEL" ./cmd/pgaccel || exit 1
fi

# Postgres refuses to run as root.
as_postgres() {
	if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; else "$@"; fi
}
free_port() {
	/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

data= server_port= proxy_pid=
stop() {
	[ -n "$proxy_pid" ] && kill "$proxy_pid" 2>/dev/null && wait "$proxy_pid" 2>/dev/null
	[ -n "$data" ] && as_postgres "$bin/pg_ctl" -D "$data/data" -m immediate -s stop
	[ -n "$data" ] && rm -rf "$data"
	data= proxy_pid=
}
trap 'stop; exit 130' INT TERM
trap stop EXIT

# start_server makes a new cluster, with the databases named.
start_server() {
	data=$(mktemp -d /tmp/pgaccel-regress-XXXXXX)
	chmod 755 "$data"
	[ "$(id -u)" = 0 ] && chown postgres "$data"
	server_port=$(free_port)
	(
		cd "$data" && as_postgres "$bin/initdb" -D "$data/data" -U postgres -A trust -E UTF8 --locale=C -N >/dev/null &&
			cat >>"$data/data/postgresql.conf" <<-CONF &&
				port = $server_port
				listen_addresses = '127.0.0.1'
				unix_socket_directories = '$data'
				wal_level = logical
				max_connections = 200
				fsync = off
				timezone = 'UTC'
			CONF
			as_postgres "$bin/pg_ctl" -D "$data/data" -l "$data/log" -s -w start
	) || return 1
	for db in "$@"; do
		sql postgres "CREATE DATABASE $db TEMPLATE template0"
		# What pg_regress sets when it creates the database itself.
		for s in "lc_messages TO 'C'" "lc_monetary TO 'C'" "lc_numeric TO 'C'" "lc_time TO 'C'" "bytea_output TO 'hex'" "timezone_abbreviations TO 'Default'"; do
			sql postgres "ALTER DATABASE $db SET $s"
		done
	done
}
sql() { PGOPTIONS="-c client_min_messages=warning" psql -X -q -h 127.0.0.1 -p "$server_port" -U postgres -v ON_ERROR_STOP=1 -At -d "$1" -c "$2"; }

# start_proxy DATABASE MODE sets port: the server's in mode direct.
start_proxy() {
	if [ "$2" = direct ]; then
		port=$server_port
		return
	fi
	port=$(free_port)
	http=$(free_port)
	[ "$2" != off ] || sql postgres "ALTER DATABASE $1 SET pgaccel.mode = 'off'"
	[ "$2" != force ] || sql postgres "ALTER DATABASE $1 SET pgaccel.mode = 'force'"
	"$PGACCEL" serve --upstream "postgres://postgres@127.0.0.1:$server_port/$1?sslmode=disable" --listen "127.0.0.1:$port" \
		--http "127.0.0.1:$http" --accelerate '*.*' >"$logs/pgaccel.log" 2>&1 &
	proxy_pid=$!
	for _ in $(seq 300); do
		/usr/bin/python3 -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:$http/readyz?tables')" 2>/dev/null && return
		kill -0 "$proxy_pid" 2>/dev/null || break
		sleep 0.1
	done
	echo "pgaccel did not start:" >&2
	tail -5 "$logs/pgaccel.log" >&2
	proxy_pid=
	return 1
}
# counted prints what the proxy accelerated and forwarded.
counted() {
	[ -n "$proxy_pid" ] || return
	kill -0 "$proxy_pid" 2>/dev/null || { echo "pgaccel ended: see $logs/pgaccel.log"; return; }
	/usr/bin/python3 - "$http" <<-'PY'
		import re, sys, urllib.request
		n = {"accelerated": 0, "forwarded": 0}
		for line in urllib.request.urlopen("http://127.0.0.1:%s/metrics" % sys.argv[1]).read().decode().splitlines():
		    m = re.match(r'pgaccel_queries_total\{.*route="(\w+)".*\} (\S+)', line)
		    if m: n[m[1]] += int(float(m[2]))
		print("%(accelerated)d accelerated, %(forwarded)d forwarded" % n)
	PY
}

results=() unexpected=0
report() { # suite mode passed total note
	if [ "$2" = direct ]; then
		echo "$3" >"$out/$1.direct-passed"
	elif [ "$3" != - ] && [[ $1 != regress && $1 != isolation || $4 = - ]] && [ "$3" -lt "$(cat "$out/$1.direct-passed" 2>/dev/null || echo "${4/-/1}")" ]; then
		unexpected=1
	fi
	results+=("$1|$2|$3|$4|$5")
	printf '%-10s %-7s %5s of %-5s %s\n' "$1" "$2" "$3" "$4" "$5"
}

# Failures that are bound to be: the tests list all publications of the database, of
# which pgaccel has one, and the server counts no scans for what pgaccel answered (stats).
accepted="publication replica_identity stats"

# only_publication DIRECTORY TEST: the one difference is that \d lists pgaccel's publication.
only_publication() {
	local expected=$src/src/test/$1/expected/$2.out results=$logs/out/results/$2.out
	[ -f "$expected" ] && [ -f "$results" ] &&
		! diff "$expected" "$results" | grep '^[<>]' | grep -qvE '^> (Publications:|    "pgaccel_[0-9a-f]{12}")$'
}

# run_schedule PROGRAM DIRECTORY DATABASE SCHEDULE LOG MORE... appends to the log.
run_schedule() {
	local program=$1 dir=$2 db=$3 schedule=$4 log=$5
	shift 5
	rm -rf "$logs/out"
	mkdir -m 777 "$logs/out"
	(
		umask 000 # the server writes into results too
		# psql of the tests' own version: what it does after an error in COPY has changed.
		cd "$src/src/test/$dir" &&
			./"$program" --inputdir=. --outputdir="$logs/out" --bindir="$src/src/bin/psql" --dlpath="$src/src/test/regress" --host=127.0.0.1 \
				--port="$port" --user=postgres --dbname="$db" --use-existing --schedule="$schedule" "$@"
	) >>"$log" 2>&1
}

# wait_ready waits until no chosen table is being copied.
wait_ready() {
	[ -n "$proxy_pid" ] || return
	for _ in $(seq 100); do
		sleep 0.3
		/usr/bin/python3 -c "
import re, sys, urllib.request
m = urllib.request.urlopen('http://127.0.0.1:$http/metrics').read().decode()
ready = set(re.findall(r'pgaccel_table_ready\{.*table=\"public\.(\w+)\".*\} 1', m))
sys.exit(0 if {'tenk1', 'onek', 'int4_tbl'} <= ready else 1)" 2>/dev/null && return
	done
	echo "tenk1, onek, int4_tbl were never ready" >>"$logs/log"
}

pg_suite() { # name mode directory program database schedule more...
	local name=$1 mode=$2 dir=$3 program=$4 db=$5 schedule=$6
	shift 6
	start_server "$db" && start_proxy "$db" "$mode" || { report "$name" "$mode" 0 - "did not start"; stop; return; }
	: >"$logs/log"
	if [ "$name" = regress ]; then
		# The common tables first, and with an identity, so that they can be copied:
		# then there is something to accelerate.
		grep -m1 '^test: test_setup' "$src/src/test/$dir/$schedule" >"$logs/first"
		grep -v '^test: test_setup' "$src/src/test/$dir/$schedule" >"$logs/rest"
		run_schedule "$program" "$dir" "$db" "$logs/first" "$logs/log" "$@"
		for t in char_tbl float8_tbl int2_tbl int4_tbl int8_tbl text_tbl varchar_tbl onek onek2 tenk1 tenk2 person emp student stud_emp road ihighway shighway; do
			sql "$db" "ALTER TABLE $t REPLICA IDENTITY FULL"
		done
		wait_ready
		schedule=$logs/rest
	fi
	run_schedule "$program" "$dir" "$db" "$schedule" "$logs/log" "$@"
	local passed failed names new=
	passed=$(grep -cE '(^| )ok +[0-9]+ ms' "$logs/log")
	names=$(grep -oE '(test )?[a-z_0-9-]+ +\.\.\. +FAILED' "$logs/log" | sed -E 's/^test //; s/ +\.\.\..*//' | sort)
	failed=$(echo "$names" | grep -c .)
	[ "$mode" != direct ] || echo "$names" >"$out/$name.direct-failures"
	for f in $names; do
		grep -qxF "$f" "$out/$name.direct-failures" 2>/dev/null && f="$f(direct too)"
		if [[ " $accepted " == *" $f "* ]] || only_publication "$dir" "$f"; then f="$f(accepted)"; fi
		[[ $f == *\(* ]] || unexpected=1
		new="$new $f"
	done
	report "$name" "$mode" "$passed" "$((passed + failed))" "$(counted)$new"
	stop
}

for mode in $modes; do
	for suite in $suites; do
		logs=$out/$suite-$mode
		mkdir -p "$logs"
		case $suite in
		regress) pg_suite regress "$mode" regress pg_regress regression parallel_schedule --max-concurrent-tests=20 ;;
		isolation) pg_suite isolation "$mode" isolation pg_isolation_regress isolation_regression isolation_schedule ;;
		pipeline)
			start_server pipeline && start_proxy pipeline "$mode" || { report pipeline "$mode" 0 - "did not start"; stop; continue; }
			passed=0 total=0 failed=
			for t in $("$src/src/test/modules/libpq_pipeline/libpq_pipeline" tests); do
				total=$((total + 1))
				if "$src/src/test/modules/libpq_pipeline/libpq_pipeline" -r 700 "$t" "host=127.0.0.1 port=$port user=postgres dbname=pipeline" >"$logs/$t.log" 2>&1; then
					passed=$((passed + 1))
				else failed="$failed $t"; fi
			done
			report pipeline "$mode" "$passed" "$total" "$(counted)$failed"
			stop
			;;
		probe)
			start_server && sql postgres "CREATE TABLE sales (id int PRIMARY KEY, v int); INSERT INTO sales SELECT i, i FROM generate_series(1, 100) i" &&
				start_proxy postgres "$mode" || { report probe "$mode" 0 - "did not start"; stop; continue; }
			/usr/bin/python3 "$here/rawprobe.py" "$server_port" >"$logs/direct" 2>&1
			/usr/bin/python3 "$here/rawprobe.py" "$port" >"$logs/proxy" 2>&1
			total=$(wc -l <"$logs/direct")
			differ=$(diff "$logs/direct" "$logs/proxy" | grep -c '^<')
			report probe "$mode" "$((total - differ))" "$total" "$(counted)$(diff "$logs/direct" "$logs/proxy" >"$logs/diff" || echo " see $logs/diff")"
			stop
			;;
		pgx)
			start_server pgx_test && sql pgx_test "CREATE EXTENSION hstore; CREATE EXTENSION ltree; CREATE DOMAIN uint64 AS numeric(20,0)" &&
				start_proxy pgx_test "$mode" || { report pgx "$mode" 0 - "did not start"; stop; continue; }
			(cd "$out/pgx" && GOFLAGS=-mod=mod PGX_TEST_DATABASE="host=127.0.0.1 port=$port user=postgres database=pgx_test sslmode=disable" \
				go test -p 1 -count=1 -json ./...) >"$logs/log" 2>&1
			passed=$(grep -c '"Action":"pass".*"Test":"[^/"]*"' "$logs/log")
			failed=$(grep -c '"Action":"fail".*"Test":"[^/"]*"' "$logs/log")
			report pgx "$mode" "$passed" "$((passed + failed))" "$(counted) $(grep '"Action":"fail"' "$logs/log" | grep -oE '"Test":"[^/"]*"' | sort -u | cut -d'"' -f4 | tr '\n' ' ')"
			stop
			;;
		node)
			node_src=${NODE_POSTGRES:-$out/node-postgres}
			if [ ! -f "$node_src/packages/pg/package.json" ] && ! git clone -q --depth 1 https://github.com/brianc/node-postgres "$node_src" 2>/dev/null; then
				report node "$mode" - - "not run: no source; set NODE_POSTGRES"
				continue
			fi
			[ -d "$node_src/node_modules" ] || (cd "$node_src" && npm install --ignore-scripts --no-audit --no-fund && npx tsc --build) >"$out/node-build.log" 2>&1
			start_server node && start_proxy node "$mode" || { report node "$mode" 0 - "did not start"; stop; continue; }
			passed=0 total=0 failed=
			cd "$node_src/packages/pg" || exit 1
			export PGHOST=127.0.0.1 PGPORT=$port PGUSER=postgres PGDATABASE=node PGTESTNOSSL=true
			node script/create-test-tables.js >"$logs/tables.log" 2>&1
			for f in $(find test/integration -name '*-tests.js' | sort); do
				total=$((total + 1))
				if timeout 60 node "$f" >"$logs/$(basename "$f").log" 2>&1; then passed=$((passed + 1)); else failed="$failed $(basename "$f")"; fi
			done
			unset PGHOST PGPORT PGUSER PGDATABASE
			cd "$root" || exit 1
			report node "$mode" "$passed" "$total" "$(counted)$failed"
			stop
			;;
		*) echo "no suite $suite" >&2; exit 2 ;;
		esac
	done
done

echo
printf '%-10s %-7s %7s %7s  %s\n' suite mode passed total ""
for r in "${results[@]}"; do
	IFS='|' read -r a b c d e <<<"$r"
	printf '%-10s %-7s %7s %7s  %s\n' "$a" "$b" "$c" "$d" "$e"
done
[ $unexpected = 0 ] || echo "some tests fail only through pgaccel: see the logs in build/regress (PostgreSQL's: */out/regression.diffs)"
exit $unexpected
