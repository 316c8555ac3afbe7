#!/usr/bin/env bash
# Prints the name of a clang that knows sm_90 (16 or newer), or fails.
set -euo pipefail
for clang in ${CLANG:-} clang-{25..16} clang; do
	command -v "$clang" >/dev/null || continue
	version=$("$clang" -dumpversion)
	if [ "${version%%.*}" -ge 16 ]; then
		echo "$clang"
		exit 0
	fi
done
echo "there is no clang 16 or newer; scripts/install-deps.sh ptx installs one on Debian and Ubuntu" >&2
exit 1
