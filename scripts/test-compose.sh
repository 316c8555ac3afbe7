#!/usr/bin/env bash
# Starts docker-compose.yml as a user does, with what docker-compose.demo.yml adds, runs the commands of docs/containers.md, and
# looks at what then runs: answers, health, rights, metrics, restart, stop. It takes Docker, docker compose (or docker-compose
# 1.29), and the ports of docker-compose.yml.
#
# Images come from no registry. Debian's packages stand in for those of Go, PostgreSQL and Prometheus; nothing stands in for
# Grafana, which is left out. With PULL=1 all are the published ones, Grafana among them. The stand-ins are kept (pgaccel-test/*).
set -euo pipefail
cd "$(dirname "$0")/.."

export COMPOSE_PROJECT_NAME=pgaccel-test COMPOSE_FILE=docker-compose.yml:docker-compose.demo.yml
export POSTGRES_PASSWORD='s3cret@/%:' # not to be taken for a part of a URL
began=$SECONDS
say() { echo "== $* ($((SECONDS - began)) s)"; }
fail() {
	echo "FAIL, line ${BASH_LINENO[-2]}: $*" >&2
	exit 1
}
if docker compose version >/dev/null 2>&1; then
	compose() { docker compose "$@"; }
else
	compose() { docker-compose "$@"; }
fi
finish() {
	local status=$?
	[ $status -eq 0 ] || compose logs --no-color --tail 60 >&2 || true
	compose down --volumes --rmi local >"$work/down" 2>&1 || cat "$work/down" >&2
	rm -rf "$work"
	exit $status
}
docker info >/dev/null 2>&1 || fail "Docker does not run here, or is not yours to use"
[ -z "$(docker ps --all --quiet --filter label=com.docker.compose.project=$COMPOSE_PROJECT_NAME)" ] || fail "it is running already"
work=$(mktemp -d)
trap finish EXIT

# quiet COMMAND... shows what the command says only if it fails.
quiet() { ("$@") >"$work/log" 2>&1 || fail "$* says: $(tail -40 "$work/log")"; }
# page WORD runs the block of docs/containers.md that has this word behind its language.
page() {
	local commands
	commands=$(sed -n "/^\`\`\`sh $1\$/,/^\`\`\`\$/{/^\`\`\`/!p}" docs/containers.md)
	[ -n "$commands" ] || fail "docs/containers.md has no block $1"
	docker compose version >/dev/null 2>&1 || commands=${commands//docker compose/docker-compose}
	bash -euo pipefail -c "$commands"
}
# server asks PostgreSQL, pgaccel through pgaccel.
server() { compose exec -T postgres psql -XAtq -v ON_ERROR_STOP=1 -U postgres -c "$1"; }
pgaccel() { PGPASSWORD=$POSTGRES_PASSWORD psql -XAtq -v ON_ERROR_STOP=1 -h 127.0.0.1 -p 6432 -U postgres -c "$1"; }
equal() { [ "$2" = "$3" ] || fail "$1: $2, want $3"; }
# eventually WHAT COMMAND... waits for five minutes, as the machine may be slow.
eventually() {
	local what=$1
	shift
	for _ in $(seq 300); do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 1
	done
	fail "$what: not within five minutes"
}
is() { [ "$("${@:2}")" = "$1" ]; }
of() { docker inspect --format "$2" "$(compose ps --quiet "$1")"; }
prometheus() { curl -fsS "http://127.0.0.1:9090/api/v1/$1"; }

target() { prometheus targets | jq -r '.data.activeTargets[] | select(.labels.job == "pgaccel") | .health'; }
alerts() { prometheus rules | jq -r '[.data.groups[].rules[]] | "\(length) \(map(.health) | unique | join(" "))"'; }
grafana() { curl -fsS -u "admin:$POSTGRES_PASSWORD" "http://127.0.0.1:3000/api/$1"; }
left() { server "SELECT (SELECT count(*) FROM pg_replication_slots), (SELECT count(*) FROM pg_publication)" | tr '|' ' '; }

# reached ADDRESS PORT
reached() { timeout 10 bash -c "exec 3<>/dev/tcp/$1/$2" 2>/dev/null; }

# ready TABLES: these are all that there are, and copied.
ready() {
	eventually "copied tables" is "$1" pgaccel "SELECT string_agg(name, ', ' ORDER BY name) FROM pgaccel.tables WHERE state = 'ready'"
	curl -fsS 'http://127.0.0.1:8432/readyz?tables' >"$work/log" || fail "/readyz?tables"
}
# answers: a query has the server's answer, computed here.
answers() {
	local sql="SELECT v, count(*), sum(id) FROM packed GROUP BY v ORDER BY v" before
	ready "public.packed, public.sale, public.store"
	before=$(pgaccel "SELECT coalesce(sum(accelerated), 0) FROM pgaccel.queries")
	equal "$sql" "$(PGOPTIONS="-c pgaccel.mode=force" pgaccel "$sql")" "$(server "$sql")"
	equal "executions here" "$(pgaccel "SELECT sum(accelerated) - $before FROM pgaccel.queries")" 1
}
# untroubled: pgaccel has logged no error.
untroubled() {
	compose logs --no-color pgaccel >"$work/log"
	grep -q level=INFO "$work/log" || fail "pgaccel has logged nothing"
	! grep -E 'level=ERROR|panic|fatal' "$work/log" || fail "pgaccel has logged errors"
}

services=(postgres pgaccel prometheus)
if [ -n "${PULL:-}" ]; then
	services+=(grafana)
else
	debian=pgaccel-test/debian
	if [ -z "$(docker images --quiet $debian)" ]; then
		say "a clean Debian"
		[ "$(id -u)" = 0 ] || fail "debootstrap takes root"
		quiet debootstrap --variant=minbase bookworm "$work/debian" http://deb.debian.org/debian
		rm -rf "$work"/debian/var/cache/apt/archives/*.deb
		tar -C "$work/debian" -c . | quiet docker import --change 'CMD ["bash"]' - $debian
		rm -rf "$work/debian"
	fi
	say "stand-ins for images"
	install="RUN apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends"
	export RUN_IMAGE=$debian GO_IMAGE=pgaccel-test/go POSTGRES_IMAGE=pgaccel-test/postgres PROMETHEUS_IMAGE=pgaccel-test/prometheus

	# The tree of Go that is here, and the authorities by which it takes modules. Both may be the machine's own.
	goroot=$(go env GOROOT)
	cat >"$work/Dockerfile" <<-END
		FROM $debian
		$install gcc libc6-dev
		COPY $goroot /usr/local/go
		COPY etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
		ENV PATH=/usr/local/go/bin:\$PATH GOPATH=/go GOTOOLCHAIN=local GOPROXY=$(go env GOPROXY)
	END
	tar -c -C "$work" Dockerfile -C / "${goroot#/}" etc/ssl/certs/ca-certificates.crt | quiet docker build --tag $GO_IMAGE -

	# As PostgreSQL's image does: a server that only the socket reaches makes the database and runs what is in initdb.d.
	mkdir "$work/postgres"
	cat >"$work/postgres/entrypoint" <<-'END'
		#!/bin/bash
		set -euo pipefail
		if [ ! -s "$PGDATA/PG_VERSION" ]; then
			initdb --auth-local=trust --auth-host=scram-sha-256 --username=postgres --pwfile=<(echo "$POSTGRES_PASSWORD")
			echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
			pg_ctl --wait start -o "-c listen_addresses=''"
			for file in /docker-entrypoint-initdb.d/*.sql; do
				[ ! -e "$file" ] || psql -v ON_ERROR_STOP=1 -U postgres -f "$file"
			done
			pg_ctl --wait --mode=fast stop
		fi
		exec "$@" -c listen_addresses='*'
	END
	chmod 755 "$work/postgres/entrypoint"
	cat >"$work/postgres/Dockerfile" <<-END
		FROM $debian
		$install postgresql locales
		RUN localedef -i en_US -f UTF-8 en_US.UTF-8
		RUN install -d -m 700 -o postgres /var/lib/postgresql/data
		COPY entrypoint /usr/local/bin/
		ENV PATH=/usr/lib/postgresql/15/bin:\$PATH PGDATA=/var/lib/postgresql/data LANG=en_US.utf8
		USER postgres
		STOPSIGNAL SIGINT
		ENTRYPOINT ["entrypoint"]
		CMD ["postgres"]
	END
	quiet docker build --tag $POSTGRES_IMAGE "$work/postgres"

	mkdir "$work/prometheus"
	cat >"$work/prometheus/Dockerfile" <<-END
		FROM $debian
		$install prometheus
		RUN install -d -o nobody /prometheus
		USER nobody
		ENTRYPOINT ["prometheus"]
		CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
	END
	quiet docker build --tag $PROMETHEUS_IMAGE "$work/prometheus"
fi

say "up: ${services[*]}"
quiet compose build pgaccel
quiet compose up -d "${services[@]}"
for service in postgres pgaccel; do
	eventually "health of $service" is healthy of $service '{{.State.Health.Status}}'
done

say "what is asked, of the demo's tables and of one that is made now"
ready "public.sale, public.store"
page ask >"$work/plan"
grep -q 'Custom Scan (pgaccel)' "$work/plan" || fail "pgaccel does not answer: $(cat "$work/plan")"
server "CREATE TABLE packed (id int PRIMARY KEY, v int); INSERT INTO packed SELECT i, i % 7 FROM generate_series(1, 20000) i"
answers

say "who runs, and who reaches it"
equal "the users of process 1" "$(compose exec -T pgaccel grep ^Uid /proc/1/status | tr -s '\t ' ' ')" "Uid: 6432 6432 6432 6432"
curl -fsS http://127.0.0.1:8432/metrics | grep '^pgaccel_stream_connected 1$' >/dev/null || fail "/metrics"
for port in 6432 8432 9090; do
	reached 127.0.0.1 $port || fail "127.0.0.1:$port cannot be reached"
	for address in $(hostname -I); do
		! reached "$address" $port || fail "$address:$port can be reached"
	done
done

say "Prometheus"
eventually "a target that is up" is up target
rules=$(grep -c '^ *- alert:' deploy/prometheus/pgaccel.rules.yml)
eventually "alerts" is "$rules ok" alerts
if [ -n "${PULL:-}" ]; then
	say "Grafana"
	eventually "Grafana" grafana health
	equal "boards" "$(grafana 'search?type=dash-db' | jq length)" "$(ls deploy/grafana/boards/*.json | wc -l)"
	for source in prometheus pgaccel; do
		equal "$source" "$(grafana "datasources/uid/$source/health" | jq -r .status)" OK
	done
fi

say "restart"
quiet compose restart pgaccel
answers
equal "copies after a restart" "$(pgaccel "SELECT copies FROM pgaccel.status")" 0
untroubled

say "stop, start"
quiet compose stop -t 60
for service in postgres pgaccel; do
	equal "the end of $service" "$(of $service '{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}}')" "exited 0 false"
done
quiet compose start "${services[@]}"
answers
equal "copies after a stop" "$(pgaccel "SELECT copies FROM pgaccel.status")" 0

say "down, up: the volumes stay"
quiet compose down
quiet compose up -d "${services[@]}"
answers
equal "copies after down" "$(pgaccel "SELECT copies FROM pgaccel.status")" 0
untroubled

say "pgaccel is given up"
equal "slots and publications" "$(left)" "1 1"
quiet page remove
equal "slots and publications" "$(left)" "0 0"
equal "volumes" "$(docker volume ls --quiet --filter label=com.docker.compose.project=$COMPOSE_PROJECT_NAME | sort | xargs)" "pgaccel-test_postgres pgaccel-test_prometheus"

say "down"
quiet compose down --volumes
equal "containers" "$(docker ps --all --quiet --filter label=com.docker.compose.project=$COMPOSE_PROJECT_NAME)" ""
equal "volumes" "$(docker volume ls --quiet --filter label=com.docker.compose.project=$COMPOSE_PROJECT_NAME)" ""
say "passed"
