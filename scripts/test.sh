#!/usr/bin/env bash
# Runs every test once and says how many ran. Arguments go to go test.
set -uo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -count=1 -timeout 40m -json "$@" ./... >"$log"
status=$?
go run ./scripts/testcount <"$log" || status=1
exit $status
