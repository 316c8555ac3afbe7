#!/usr/bin/env bash
# Runs every test once and says how many ran. Arguments go to go test.
set -uo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -count=1 -timeout 40m -json "$@" ./... >"$log"
status=$?
# A module of its own: what tests the chart and the workflows is nothing that pgaccel is built of.
go test -C deploy -count=1 -json "$@" ./... >>"$log" || status=1
go run ./scripts/testcount <"$log" || status=1
exit $status
