#!/usr/bin/env bash
# Runs a command with what cgo needs to build with the tag cuda:
#   scripts/cuda-env.sh go build -tags cuda -o bin/pgaccel-gpu ./cmd/pgaccel-gpu
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
home=$("$root/scripts/cuda-headers.sh")
version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$home/include/cuda.h" | head -1)
if [ "${version:-0}" -lt 11080 ]; then
	echo "$home has CUDA ${version:-of no version}: 11.8 or later is needed" >&2
	exit 1
fi
include="-I$home/include"
if [ "$version" -ge 13000 ]; then
	include="-I$root/gpu/worker/cuda13 $include"
fi
# -O2 -g are Go's defaults, which setting the variable would take away.
export CGO_CFLAGS="${CGO_CFLAGS:--O2 -g} $include"
export CGO_LDFLAGS="${CGO_LDFLAGS:--O2 -g} -L$home/lib64/stubs -L$home/lib64"
exec "$@"
