#!/usr/bin/env bash
# Compares the Go benchmarks of the working tree with those of a commit, by benchstat.
#
#   scripts/benchcompare.sh [BASE]        BASE: a revision, by default HEAD~1
#   BENCH='Decode|Filter' COUNT=10 PACKAGES='./compress ./olap' scripts/benchcompare.sh main
#
# Both sides are built once and take turns, so that they meet the same machine. A package
# or benchmark that only one side has is shown for that side alone.
set -euo pipefail
cd "$(dirname "$0")/.."

base=$(git rev-parse --verify --quiet "${1:-${BASE:-HEAD~1}}^{commit}") || { echo "no commit ${1:-${BASE:-HEAD~1}}" >&2; exit 1; }
bench=${BENCH:-.}
count=${COUNT:-6}
benchtime=${BENCHTIME:-0.2s}
packages=${PACKAGES:-$(git ls-files --cached --others --exclude-standard '*_test.go' | grep -v '^bench/' | xargs grep -lE '^func Benchmark' | xargs -n1 dirname | sort -u | sed 's|^|./|')}
# The version of benchstat; it is no part of pgaccel's own module.
benchstat=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

work=$PWD/build/benchcompare
rm -rf "$work"
mkdir -p "$work/old" "$work/new"
git archive --prefix=tree/ "$base" | tar x -C "$work"
trap 'rm -rf "$work/tree"' EXIT

# compile SIDE TREE: a test binary a package, named as the package.
compile() {
	local side=$1 tree=$2 package
	for package in $packages; do
		if [ -d "$tree/$package" ] && ls "$tree/$package"/*_test.go >/dev/null 2>&1; then
			(cd "$tree" && go test -c -o "$work/$side/${package//[.\/]/_}" "$package")
		fi
	done
}
echo "building $(git rev-parse --short "$base") and the working tree" >&2
compile old "$work/tree"
compile new "$PWD"

# once SIDE TREE PACKAGE: one run of a package's benchmarks, in its folder.
once() {
	local side=$1 tree=$2 package=$3
	local binary=$work/$side/${package//[.\/]/_}
	[ -x "$binary" ] || return 0
	(cd "$tree/$package" && "$binary" -test.run '^$' -test.bench "$bench" -test.benchtime "$benchtime") >>"$work/$side.txt" ||
		{ echo "the benchmarks of $package failed ($side)" >&2; failed=1; }
}
failed=0
for ((i = 1; i <= count; i++)); do
	echo "run $i of $count" >&2
	for package in $packages; do
		if ((i % 2)); then
			once old "$work/tree" "$package"
			once new "$PWD" "$package"
		else
			once new "$PWD" "$package"
			once old "$work/tree" "$package"
		fi
	done
done
echo "old: $(git log -1 --format='%h %s' "$base")"
echo "new: the working tree"
go run "$benchstat" "old=$work/old.txt" "new=$work/new.txt"
exit "$failed"
