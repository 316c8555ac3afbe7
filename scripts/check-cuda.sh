#!/usr/bin/env bash
# Checks the worker with CUDA on a machine that has none: go vet and staticcheck under the
# tag, what the program needs to start, and its tests over a driver without a device (with the
# real NVRTC, which needs none). Where there is a driver its devices are tested instead.
# With --kernels [PACKAGES] NVRTC also compiles every source that the tests of these packages
# (./gpu/... ./papers/...) have the emulator compile, generated programs included.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! home=$(scripts/cuda-headers.sh); then
	if [ "${CI:-}" = true ]; then
		echo "FAIL: scripts/check-cuda.sh needs CUDA's headers (11.8 or later), and could not have them: see above." >&2
		echo "Set CUDA_HOME where there is a toolkit; else Debian's non-free packages must be reachable." >&2
		exit 1
	fi
	echo "the worker with CUDA is not checked here" >&2
	exit 0
fi
go=${GO:-go}

if [ "${1:-}" = --kernels ]; then
	shift
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	failed=0
	# A cached test would compile nothing.
	[ $# -gt 0 ] || set -- ./gpu/... ./papers/...
	PGACCEL_EMULATOR_SOURCES=$work "$go" test -count=1 -short "$@" || failed=1
	[ $failed = 0 ] || echo "tests fail; what they compiled is checked nevertheless" >&2
	PGACCEL_CUDA_SOURCES=$work LD_LIBRARY_PATH=$home/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
		"$go" test -tags cuda -count=1 -v -run 'TestCUDAKernels' ./gpu/worker/nvrtc || failed=1
	exit $failed
fi

packages="./gpu/worker/... ./cmd/pgaccel-gpu"

scripts/cuda-env.sh "$go" vet -tags cuda $packages
scripts/cuda-env.sh "$go" tool staticcheck -tags cuda $packages
"$go" vet -tags emu ./cmd/pgaccel-gpu

mkdir -p build/check
scripts/cuda-env.sh "$go" build -tags cuda -o build/check/pgaccel-gpu ./cmd/pgaccel-gpu
needs=$(readelf -d build/check/pgaccel-gpu | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')
for library in $needs; do
	case $library in
	libc.so.6 | libcuda.so.1 | libdl.so.2 | libpthread.so.0 | ld-linux-*) ;;
	*)
		echo "pgaccel-gpu needs $library: only libcuda and the C library are to be there" >&2
		exit 1
		;;
	esac
done

library_path=$home/lib64
if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
	mkdir -p build/check/driver
	cc -shared -fPIC -w -I"$home/include" -Wl,-soname,libcuda.so.1 -o build/check/driver/libcuda.so.1 gpu/worker/testdata/fakecuda.c
	library_path=$PWD/build/check/driver:$library_path
fi
LD_LIBRARY_PATH=$library_path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
	scripts/cuda-env.sh "$go" test -tags cuda -run 'CUDA' ./gpu/worker/...
