#!/usr/bin/env bash
# Builds the packages of pgaccel for the given architectures (by default amd64 and arm64) into build/packages: deb and
# rpm of each, by nfpm, after deploy/packages/nfpm.yaml. The program is linked statically, so that it runs with any
# distribution's C library. The SQL parser is in C: another machine's architecture takes its compiler (install-deps.sh).
# VERSION is that of a release, by default the tag's or 0.0.0~<date>.<commit>; FORMATS may be one of the two. With
# PGACCEL_PROGRAM a program that is built already is packaged, for one architecture.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- amd64 arm64
formats=${FORMATS:-deb rpm}
commit=$(git rev-parse --short=8 HEAD 2>/dev/null || echo unknown)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)} # all files' time
export VERSION=${VERSION:-$(git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null || echo "0.0.0~$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d).$commit")}
VERSION=${VERSION#v}
stamp="-X pgaccel/internal/server.version=$VERSION"
to=${PACKAGES_DIR:-build/packages}

mkdir -p "$to" build
export STAGE ARCH
STAGE=$(mktemp -d "$PWD/build/stage-XXXXXX")
trap 'rm -rf "$STAGE"' EXIT
chmod 755 "$STAGE"

# nfpm is a module of its own, so that users never build it.
go build -C deploy/packages -o "$STAGE/nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm

# What is the same for all of them.
go run -tags packaging -ldflags "$stamp" ./cmd/pgaccel "$STAGE"
gzip -9n "$STAGE"/man/*
sed 's/^Description=.*/& (%i)/; s|/etc/pgaccel/pgaccel.yml|/etc/pgaccel/%i.yml|' deploy/packages/pgaccel.service >"$STAGE/pgaccel@.service"

for ARCH; do
	if [ -n "${PGACCEL_PROGRAM:-}" ]; then
		cp "$PGACCEL_PROGRAM" "$STAGE/pgaccel"
	else
		cc=${CC:-cc}
		if [ "$ARCH" != "$(go env GOHOSTARCH)" ]; then
			case $ARCH in
			amd64) cc=x86_64-linux-gnu-gcc ;;
			arm64) cc=aarch64-linux-gnu-gcc ;;
			*) echo "no compiler for $ARCH is known here" >&2; exit 1 ;;
			esac
		fi
		# Go's own resolver and user database: those of a static C library want the very same one at run time.
		CC=$cc CGO_ENABLED=1 GOOS=linux GOARCH=$ARCH go build -trimpath -tags netgo,osusergo \
			-ldflags "-s -linkmode external -extldflags -static $stamp" -o "$STAGE/pgaccel" ./cmd/pgaccel
	fi
	for format in $formats; do
		"$STAGE/nfpm" package -f deploy/packages/nfpm.yaml -p "$format" -t "$to"
	done
done
