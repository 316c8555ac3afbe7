#!/bin/sh
# Installs the clients that the tests in this folder run (Debian, Ubuntu).
set -eu
cd "$(dirname "$0")/.."
if [ "$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -q
$sudo apt-get install -y -q --no-install-recommends postgresql postgresql-client postgresql-contrib pgbouncer \
	python3 python3-psycopg2 python3-psycopg python3-asyncpg python3-pyodbc odbc-postgresql unixodbc \
	default-jdk-headless libpostgresql-jdbc-java
if ! command -v npm >/dev/null; then
	$sudo apt-get install -y -q --no-install-recommends nodejs npm
fi
mkdir -p build/node
npm install --prefix build/node --no-audit --no-fund --ignore-scripts pg@8 pg-cursor@2
