#!/usr/bin/env bash
# Runs every fuzz target for a fixed number of inputs (or a time, such as 30s), as many targets at
# a time as there are cores: building them takes longer than running them.
set -euo pipefail
cd "$(dirname "$0")/.."
export amount=${1:-20000x}
fuzz() {
	local out
	if out=$(go test -run '^$' -fuzz "^$2\$" -fuzztime "$amount" -parallel 1 "./$(dirname "$1")" 2>&1); then
		echo "fuzz ./$(dirname "$1") $2: $(tail -n 1 <<<"$out")"
	else
		printf 'FAIL fuzz ./%s %s\n%s\n' "$(dirname "$1")" "$2" "$out"
		return 1
	fi
}
export -f fuzz
targets=$(git ls-files '*_test.go' | xargs grep -oHE '^func Fuzz[A-Za-z0-9_]+' | sed 's/:func / /')
xargs -P "$(nproc)" -L 1 bash -c 'fuzz "$0" "$1"' <<<"$targets"
echo "$(wc -l <<<"$targets") fuzz targets ran"
