#!/bin/sh
# Installs the clients that the tests in this folder run (Debian, Ubuntu).
set -eu
cd "$(dirname "$0")/.."
if [ "$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -q
$sudo apt-get install -y -q --no-install-recommends postgresql postgresql-client postgresql-contrib pgbouncer curl \
	python3 python3-psycopg2 python3-psycopg python3-asyncpg python3-pyodbc odbc-postgresql unixodbc \
	default-jdk-headless libpostgresql-jdbc-java
if ! command -v npm >/dev/null; then
	$sudo apt-get install -y -q --no-install-recommends nodejs npm
fi
# Ubuntu's package is a snap, which its images for CI have no need of: Chrome is there.
if ! command -v chromium >/dev/null && ! command -v google-chrome >/dev/null; then
	$sudo apt-get install -y -q --no-install-recommends chromium
fi
mkdir -p build/node
npm install --prefix build/node --no-audit --no-fund --ignore-scripts pg@8 pg-cursor@2 playwright-core@1.65.1 axe-core@4.14.1
