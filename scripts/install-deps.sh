#!/usr/bin/env bash
# Finds, or on Debian and Ubuntu installs, what building and running here needs:
# a C compiler (the SQL parser is PostgreSQL's own), make, and a PostgreSQL server.
# With "test" also a C++ compiler, which the emulator of GPU kernels calls, and the locale
# en_US.UTF-8, in which tests make databases; with "ptx" clang, which compiles them for GPUs,
# too.
set -euo pipefail

missing=()
command -v make >/dev/null || missing+=(make)
command -v cc >/dev/null || missing+=(gcc libc6-dev)
if [ -z "${PGACCEL_PG_BINDIR:-}" ] && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && ! command -v initdb >/dev/null; then
	missing+=(postgresql)
fi
case "${1:-}" in
test | ptx) command -v "${CXX:-c++}" >/dev/null || missing+=(g++) ;;
esac
if [ "${1:-}" = ptx ] && ! "$(dirname "$0")/clang.sh" >/dev/null 2>&1; then
	missing+=(clang)
fi
command -v psql >/dev/null || missing+=(postgresql-client)
locale=""
if [ "${1:-}" = test ] && ! locale -a 2>/dev/null | grep -qix 'en_US\.utf-\?8'; then
	locale=en_US
	[ -e /usr/share/i18n/locales/$locale ] || missing+=(locales)
fi
[ ${#missing[@]} -eq 0 ] && [ -z "$locale" ] && exit 0

if ! command -v apt-get >/dev/null; then
	echo "please install: ${missing[*]} (clang: 16 or newer)${locale:+, and the locale $locale.UTF-8}" >&2
	exit 1
fi
sudo=""
if [ "$(id -u)" -ne 0 ]; then
	sudo="sudo"
fi
makeLocale() {
	[ -n "$locale" ] || return 0
	echo "making: locale $locale.UTF-8"
	$sudo localedef -i "$locale" -f UTF-8 "$locale.UTF-8"
}
if [ ${#missing[@]} -eq 0 ]; then
	makeLocale
	exit 0
fi
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
# The distribution's default clang may be older than 16, and which others there are differs.
for i in "${!missing[@]}"; do
	if [ "${missing[i]}" = clang ]; then
		missing[i]=$(apt-cache search --names-only '^clang-(1[6-9]|2[0-9])$' | sort | sed -n '1s/ .*//p')
		[ -n "${missing[i]}" ] || { echo "this distribution has no clang 16 or newer: install one, or name it in CLANG" >&2; exit 1; }
	fi
done
echo "installing: ${missing[*]}"
# The distribution's package would start a server of its own; pgaccel starts private ones.
if [ ! -e /etc/postgresql-common/createcluster.conf ] && printf '%s\n' "${missing[@]}" | grep -qx postgresql; then
	$sudo mkdir -p /etc/postgresql-common
	echo 'create_main_cluster = false' | $sudo tee /etc/postgresql-common/createcluster.conf >/dev/null
fi
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
makeLocale
