#!/bin/sh
# Fetches PostgreSQL's own source in the version of the installed server and builds
# the programs of its test suites: pg_regress, isolationtester, libpq_pipeline.
# Everything goes to build/regress, which git ignores. Needs: apt-get with network,
# gcc, make, perl, dpkg-dev.
set -eu
cd "$(dirname "$0")/../.."
major=${PG_MAJOR:-15}
out=$PWD/build/regress
src=$out/postgresql
mkdir -p "$out"

missing=
for p in gcc make perl dpkg-source; do
	command -v $p >/dev/null || missing="$missing $p"
done
if [ -n "$missing" ]; then
	echo "regress: missing:$missing; apt-get install -y gcc make perl dpkg-dev" >&2
	exit 1
fi

if [ ! -f "$src/configure" ]; then
	# apt with lists of its own: the machine's stay as they are.
	mkdir -p "$out/apt/lists/partial" "$out/apt/cache/archives/partial" "$out/apt/parts" "$out/download"
	release=$(. /etc/os-release && echo "$VERSION_CODENAME")
	signed="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
	{
		echo "deb-src $signed http://deb.debian.org/debian $release main"
		echo "deb-src $signed http://deb.debian.org/debian $release-updates main"
		echo "deb-src $signed http://deb.debian.org/debian-security $release-security main"
	} >"$out/apt/sources.list"
	apt() {
		apt-get -q -o Dir::Etc::SourceList="$out/apt/sources.list" -o Dir::Etc::SourceParts="$out/apt/parts" \
			-o Dir::State::Lists="$out/apt/lists" -o Dir::Cache="$out/apt/cache" -o APT::Sandbox::User=root "$@"
	}
	apt update
	# The server's own version where the archive still has it, else the release's.
	have=$(dpkg-query -W -f '${Version}' "postgresql-$major" 2>/dev/null || true)
	cd "$out/download"
	{ [ -n "$have" ] && apt source "postgresql-$major=$have"; } || apt source "postgresql-$major/$release" || apt source "postgresql-$major"
	cd - >/dev/null
	mv "$out/download/postgresql-$major"-*/ "$src"
fi

build() (
	set -e
	cd "$src"
	[ -f config.status ] || ./configure --without-readline --without-zlib
	make="make -s -j2"
	$make -C src/backend generated-headers
	for d in src/port src/common src/interfaces/libpq src/fe_utils src/bin/psql src/test/regress src/test/isolation src/test/modules/libpq_pipeline; do
		$make -C $d
	done
)
if [ ! -x "$src/src/test/isolation/isolationtester" ] || [ ! -x "$src/src/test/modules/libpq_pipeline/libpq_pipeline" ] ||
	[ ! -x "$src/src/bin/psql/psql" ]; then
	set +e
	(build) >"$out/build.log" 2>&1
	built=$?
	set -e
	if [ $built -ne 0 ]; then
		tail -20 "$out/build.log" >&2
		exit 1
	fi
fi

# pgx's own tests, from the module cache (read-only there).
pgx=$(go list -m -f '{{.Dir}}' github.com/jackc/pgx/v5)
if [ ! -f "$out/pgx/go.mod" ]; then
	cp -r "$pgx" "$out/pgx"
	chmod -R u+w "$out/pgx"
fi
