#!/usr/bin/env bash
# Runs every fuzz target for a fixed number of inputs (or a time, such as 30s).
set -euo pipefail
cd "$(dirname "$0")/.."
amount=${1:-20000x}
count=0
while IFS=: read -r file name; do
	pkg="./$(dirname "$file")"
	echo "fuzz $pkg $name"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$amount" "$pkg"
	count=$((count + 1))
done < <(git ls-files '*_test.go' | xargs grep -oHE '^func Fuzz[A-Za-z0-9_]+' | sed 's/:func /:/')
echo "$count fuzz targets ran"
