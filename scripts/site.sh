#!/usr/bin/env bash
# Builds the documentation as a site in build/site, with mkdocs (mkdocs.yml), which says what is wrong with it. The pages are those
# of docs and some of the root, side by side, so that links between them lose their folder; fences lose all behind the language, which
# is for tests (docs/format_test.go, integration/docs_test.go).
set -euo pipefail
cd "$(dirname "$0")/.."

pages=build/site-pages
rm -rf "$pages"
mkdir -p "$pages"
cp docs/*.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md "$pages"
find docs -maxdepth 1 \( -name '*.png' -o -name '*.svg' \) -exec cp -t "$pages" {} +
sed -E -i 's#\]\((\.\./|docs/)#](#g; s#^( *```[a-z]+) .*#\1#' "$pages"/*.md
mkdocs build --quiet --strict
# Nothing that a page loads is on another host: it works without a network.
if grep -rlE '<(script|img|iframe)[^>]* src="(https?:)?//|<link[^>]*rel="?(stylesheet|preload|preconnect|icon)[^>]*href="(https?:)?//|url\(["'\'']?(https?:)?//' --include='*.html' --include='*.css' build/site; then
	echo "these load something from another host" >&2
	exit 1
fi
echo "build/site/index.html"
