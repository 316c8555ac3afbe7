#!/usr/bin/env bash
# Checks the worker with CUDA on a machine that has none: go vet and staticcheck under the
# tag, what the program needs to start, and its tests over a driver without a device (with the
# real NVRTC, which needs none). Where there is a driver its devices are tested instead.
set -euo pipefail
cd "$(dirname "$0")/.."
home=$(scripts/cuda-headers.sh)
packages="./gpu/worker/... ./cmd/pgaccel-gpu"
go=${GO:-go}

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
