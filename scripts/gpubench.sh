#!/bin/sh
# Measures the device path on this machine's GPU: `scripts/gpubench.sh [flags of pgaccel-bench gpu]`.
# Builds pgaccel, its worker and pgaccel-bench, or takes those in the folder BIN; writes
# bench/results/<date>-<gpu>.json and .md. The parts through the wire (e2e, clickbench, tpch, index, wire) need a PostgreSQL server:
# PGACCEL_PG_BINDIR, or an installed one.
#
#   scripts/gpubench.sh                        everything at scale factor 20
#   scripts/gpubench.sh --only ssb --scale 1   one part
#   scripts/gpubench.sh --only ssb --scale 20 --ssb-files DIR   over the tables that ssb-dbgen has written there, or writes to named pipes there (docs/gpu.md)
#   scripts/gpubench.sh --only clickbench,tpch --clickbench-rows 30000000 --duckdb build/duckdb
#   scripts/gpubench.sh --only index --index-rows 120000000   conditions by bitmap indexes: four tables of so many rows, 36 GB of disk
#   scripts/gpubench.sh --only wire            where the time goes between kernels and client: SSB, by pgaccel's spans
#   BIN=/opt/pgaccel scripts/gpubench.sh       programs that are built
#   REFEREE=20000 scripts/gpubench.sh          and so many random queries of PostgreSQL and the device
#   DEVICE=emu scripts/gpubench.sh --quick     without a GPU: answers only
set -eu
cd "$(dirname "$0")/.."
DEVICE=${DEVICE:-cuda}
case $DEVICE in
emu) worker=pgaccel-gpu-emu target=gpu-emu ;;
cuda*) worker=pgaccel-gpu target=build-cuda ;;
*) echo "DEVICE=$DEVICE: use cuda, cuda:N[,M...] or emu" >&2; exit 1 ;;
esac
if [ -z "${BIN:-}" ]; then
	make build "$target"
	go build -o bin/pgaccel-referee ./scripts/referee
	BIN=bin
fi
for program in pgaccel pgaccel-bench "$worker"; do
	if [ ! -x "$BIN/$program" ]; then
		echo "$BIN/$program is missing: unset BIN to build it (make build $target)" >&2
		exit 1
	fi
done
name=emulator
if [ "$DEVICE" != emu ]; then
	name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1 | tr -c 'A-Za-z0-9\n' '-' | tr 'A-Z' 'a-z')
	: "${name:=gpu}"
	count=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | wc -l)
	case $DEVICE in *,*) count=$(echo "$DEVICE" | tr -cd , | wc -c); count=$((count + 1)) ;; *:*) count=1 ;; esac
	[ "$count" -gt 1 ] && name=$name-x$count
fi
"$BIN/pgaccel-bench" gpu --device "$DEVICE" --device-worker "$BIN/$worker" --out "bench/results/$(date -u +%Y-%m-%d)-$name" "$@"
if [ "${REFEREE:-0}" -gt 0 ]; then
	"$BIN/pgaccel-referee" -n "$REFEREE" -eager -device "$DEVICE" -device-worker "$BIN/$worker"
fi
