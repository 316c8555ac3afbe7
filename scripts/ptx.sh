#!/usr/bin/env bash
# Compiles every kernel to PTX with clang, without a CUDA toolkit (kernels/check.hpp), as a
# second opinion beside the emulator's C++ compiler: every source that the tests of gpu,
# papers and olap have the emulator compile, generated programs included. Fails where clang finds
# an error, and where a test fails, since then sources may be missing. One architecture will do,
# the oldest that is supported: no source asks which it is.
#
#   scripts/ptx.sh [--keep DIR] [PACKAGES and other arguments of go test]
#   scripts/ptx.sh --of SOURCES
#
# With --keep the PTX stays in DIR. With --of no test runs: SOURCES holds what tests have compiled
# that ran with PGACCEL_EMULATOR_SOURCES=SOURCES.
set -euo pipefail
cd "$(dirname "$0")/.."
clang=$(scripts/clang.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/ptx
if [ "${1:-}" = --keep ]; then
	out=$(realpath -m "$2")
	shift 2
fi
sources=$work/sources
if [ "${1:-}" = --of ]; then
	sources=$2
	shift 2
fi
mkdir -p "$sources" "$out"
failed=0

# A cached test would compile nothing.
tests() {
	PGACCEL_EMULATOR_SOURCES=$sources ${GO:-go} test -count=1 -short "$@" || failed=1
}
if [ "$sources" != "$work/sources" ]; then
	: # they have run
elif [ $# -gt 0 ]; then
	tests "$@"
else
	tests ./gpu/... ./papers/...
	tests -run Emulated ./olap
fi
[ $failed = 0 ] || echo "tests fail; what they compiled is checked nevertheless" >&2

compile() {
	"$clang" -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 --cuda-feature=+ptx78 -nocudainc -nocudalib \
		-std=c++17 -O1 -Wall -Wno-unused -Wno-pass-failed -Wno-unknown-pragmas -Wno-infinite-recursion -Ikernels -Ipapers/kernels -S "$1" -o "$out/$(basename "$1" .cu).ptx"
}
export -f compile
export clang out
find "$sources" -name '*.cu' -print0 | xargs -0 -r -n 1 -P "$(nproc)" bash -c 'compile "$0" || { echo "$(basename "$0"): does not compile" >&2; exit 1; }' || failed=1
count=$(find "$sources" -name '*.cu' | wc -l)
[ "$count" -gt 0 ] || { echo "the tests compiled no sources" >&2; failed=1; }
[ $failed = 0 ] || { echo "failed: tests, or sources that clang refuses (see above)" >&2; exit 1; }
echo "$count sources compile to PTX for sm_80 ($clang)"
