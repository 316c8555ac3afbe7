#!/usr/bin/env bash
# Runs the tests that talk to a server against PostgreSQL 17 and 18, or the majors
# given; --short runs those that depend on the version most: the catalog, the stream,
# the gate, definitions, rights and timeouts.
set -uo pipefail
cd "$(dirname "$0")/.."

packages=(./replica/... ./engine ./olap ./pushdown ./sqltype ./sqlfn ./wire ./internal/pgserver)
proxy=. integration=.
if [ "${1:-}" = --short ]; then
	shift
	packages=(./replica/... ./engine ./pushdown)
	proxy='^TestTransactionTimeouts$'
	integration='^(TestDefinitions|TestNamesChangeTheirMeaning|TestSessionsOwnNames|TestRights.*|TestOpenPortalKeepsItsRight|TestNeverStale|TestOwnTransaction|TestNamedUTC|TestFailingOutputs)$'
fi
[ $# -gt 0 ] || set -- 17 18

log=$(mktemp)
copies=()
trap 'rm -rf "$log" "${copies[@]}"' EXIT
failed=0
for major; do
	bin=$(scripts/fetch-postgres.sh "$major") || exit 1
	if [ "$(id -u)" -eq 0 ] && id postgres >/dev/null 2>&1 && ! runuser -u postgres -- test -x "$bin/postgres"; then
		# This folder is closed to the user that the server runs as.
		copy=$(mktemp -d)
		copies+=("$copy")
		chmod 755 "$copy"
		cp -a "$(dirname "$bin")/." "$copy/"
		bin=$copy/bin
	fi
	echo "PostgreSQL $("$bin/postgres" --version | grep -o '[0-9.]*$')"
	export PGACCEL_PG_BINDIR=$bin
	{
		go test -count=1 -timeout 20m -json "${packages[@]}" || failed=1
		go test -count=1 -timeout 20m -json -run "$proxy" ./proxy || failed=1
		go test -count=1 -timeout 20m -json -run "$integration" ./integration || failed=1
	} >"$log"
	go run ./scripts/testcount <"$log" || failed=1
done
exit $failed
