#!/usr/bin/env bash
# Finds, or on Debian and Ubuntu installs, what building and running here needs:
# a C compiler (the SQL parser is PostgreSQL's own), make, and a PostgreSQL server.
# With "test" also a C++ compiler, which the emulator of GPU kernels calls, the locale
# en_US.UTF-8, in which tests make databases, systemd-analyze, and Prometheus, which is unpacked
# into build/prometheus: Debian's package would start a server. With "ptx" also a C++ compiler,
# and clang, which compiles the kernels for GPUs. With "packages" the C compiler of the other
# architecture that packages are made for; with "test-packages" what makes a clean Debian and boots it.
# With "test-compose" what makes a clean Debian and asks over HTTP: Docker is the machine's own matter.
# With "site" only what makes a site of docs.
set -euo pipefail

missing=()
if [ "${1:-}" = site ]; then
	command -v mkdocs >/dev/null || missing+=(mkdocs)
	[ -e /usr/share/mkdocs/themes/material ] || python3 -c 'import material' 2>/dev/null || missing+=(mkdocs-material)
else
	command -v make >/dev/null || missing+=(make)
	command -v cc >/dev/null || missing+=(gcc libc6-dev)
	command -v psql >/dev/null || missing+=(postgresql-client)
	if [ -z "${PGACCEL_PG_BINDIR:-}" ] && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && ! command -v initdb >/dev/null; then
		missing+=(postgresql)
	fi
fi
case "${1:-}" in
test | ptx) command -v "${CXX:-c++}" >/dev/null || missing+=(g++) ;;
esac
if [ "${1:-}" = ptx ] && ! "$(dirname "$0")/clang.sh" >/dev/null 2>&1; then
	missing+=(clang)
fi
if [ "${1:-}" = test ]; then
	command -v systemd-analyze >/dev/null || missing+=(systemd)
fi
if [ "${1:-}" = packages ]; then
	case $(uname -m) in
	x86_64) command -v aarch64-linux-gnu-gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross) ;;
	aarch64) command -v x86_64-linux-gnu-gcc >/dev/null || missing+=(gcc-x86-64-linux-gnu libc6-dev-amd64-cross) ;;
	esac
fi
if [ "${1:-}" = test-packages ]; then
	command -v systemd-nspawn >/dev/null || missing+=(systemd-container)
	command -v debootstrap >/dev/null || missing+=(debootstrap)
	command -v pgrep >/dev/null || missing+=(procps)
	[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
fi
if [ "${1:-}" = test-compose ]; then
	command -v debootstrap >/dev/null || missing+=(debootstrap)
	command -v curl >/dev/null || missing+=(curl)
	command -v jq >/dev/null || missing+=(jq)
	[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
fi
locale=""
if [ "${1:-}" = test ] && ! locale -a 2>/dev/null | grep -qix 'en_US\.utf-\?8'; then
	locale=en_US
	[ -e /usr/share/i18n/locales/$locale ] || missing+=(locales)
fi
prometheus="" # where it is to be unpacked
if [ "${1:-}" = test ] && ! { command -v prometheus && command -v promtool; } >/dev/null; then
	prometheus=$(dirname "$0")/../build/prometheus
	[ ! -x "$prometheus/usr/bin/promtool" ] || prometheus=""
fi
[ ${#missing[@]} -eq 0 ] && [ -z "$locale" ] && [ -z "$prometheus" ] && exit 0

if ! command -v apt-get >/dev/null; then
	echo "please install: ${missing[*]} (clang: 16 or newer)${locale:+, and the locale $locale.UTF-8}${prometheus:+, and prometheus with promtool}" >&2
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
if [ ${#missing[@]} -eq 0 ] && [ -z "$prometheus" ]; then
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
if [ -n "$prometheus" ]; then
	echo "unpacking: prometheus"
	mkdir -p "$prometheus"
	(
		cd "$prometheus"
		rm -f prometheus_*.deb
		apt-get download -qq prometheus 2>/dev/null
		dpkg-deb -x prometheus_*.deb .
		rm prometheus_*.deb
	)
fi
if [ ${#missing[@]} -eq 0 ]; then
	makeLocale
	exit 0
fi
echo "installing: ${missing[*]}"
# The distribution's package would start a server of its own; pgaccel starts private ones.
if [ ! -e /etc/postgresql-common/createcluster.conf ] && printf '%s\n' "${missing[@]}" | grep -qx postgresql; then
	$sudo mkdir -p /etc/postgresql-common
	echo 'create_main_cluster = false' | $sudo tee /etc/postgresql-common/createcluster.conf >/dev/null
fi
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
makeLocale
