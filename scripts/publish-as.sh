#!/usr/bin/env bash
# Gives the project the name that it is published under, wherever a name stands: modules and imports, the images that the
# chart and the release workflow speak of, the packages' homepage.
#	scripts/publish-as.sh github.com/owner/pgaccel [ghcr.io/owner/pgaccel]
# The images' name has a default for github.com and gitlab.com. It may be run again, with another name.
set -euo pipefail
cd "$(dirname "$0")/.."

module=${1:-} image=${2:-}
[[ $module =~ ^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._~-]+)+$ ]] || { echo "want a module's path, such as github.com/owner/pgaccel, not \"$module\"" >&2; exit 2; }
if [ -z "$image" ]; then
	case $module in
	github.com/*) image=ghcr.io/${module#*/} ;;
	gitlab.com/*) image=registry.gitlab.com/${module#*/} ;;
	*) echo "want the images' name, too: IMAGE=registry.${module%%/*}/${module#*/}" >&2; exit 2 ;;
	esac
	image=${image,,} # registries have no capitals
fi
[ -z "$(git status --porcelain)" ] || { echo "there are changes that are not committed: commit them, so that what this changes can be seen" >&2; exit 1; }

old=$(sed -n 's/^module //p' go.mod)
oldImage=$(sed -n 's/^  repository: //p' deploy/helm/pgaccel/values.yaml)
quoted=${old//./\\.}

# An import path is the module's, and a folder with Go files in it. In front of it is no part of another path.
folders=$(git ls-files '*.go' '*/go.mod' | cut -d/ -f1 | sort -u | paste -sd'|')
front='(^|[^A-Za-z0-9_./@-])'
git grep -lIzE "$front$quoted/($folders)([^A-Za-z0-9_-]|\$)" | xargs -0r sed -Ei "s#$front$quoted/($folders)([^A-Za-z0-9_-]|\$)#\1$module/\2\3#g"
# What asks whether a name is one of the project's.
git grep -lIzE "\"$quoted/\"" -- '*.go' | xargs -0r sed -i "s#\"$quoted/\"#\"$module/\"#g"
# In go.mod the name stands alone: module, require, replace.
git ls-files -z go.mod '*/go.mod' | xargs -0 sed -Ei "s#^(module |replace |require |\t)$quoted( |\$)#\1$module\2#"
# Paths of another length may be sorted and aligned otherwise.
git diff -z --name-only -- '*.go' | xargs -0r gofmt -w

sed -i "s#^  repository: .*#  repository: $image#" deploy/helm/pgaccel/values.yaml
# Until they have a name of their own, docs have an example.
case $oldImage in
*/*) ;;
*) oldImage=registry.example.com/pgaccel ;;
esac
git grep -lIzF "$oldImage" -- '*.md' | xargs -0r sed -i "s#${oldImage//./\\.}#$image#g"
for file in deploy/helm/pgaccel/Chart.yaml:home deploy/packages/nfpm.yaml:homepage; do
	key=${file#*:} file=${file%:*}
	sed -i -e "/^$key: /d" -e "s#^name: pgaccel\$#&\n$key: https://$module#" "$file"
done
echo "$old is $module now, its images are $image. To see what has changed: git diff --stat"
