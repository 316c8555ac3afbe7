#!/usr/bin/env bash
# Prints a directory with what building bin/pgaccel-gpu needs of CUDA: include/cuda.h, a
# libcuda.so to link with (a stub: the driver is on the machine that runs it), and, for
# checks on machines without a GPU, NVRTC. It is $CUDA_HOME or /usr/local/cuda where one of
# them has cuda.h; else build/cuda, filled once from the distribution's non-free packages
# (Debian 12: CUDA 11.8; about 800 MB are downloaded, 60 MB kept. Ubuntu's multiverse: untried).
# The system's list of package sources stays as it is.
set -euo pipefail
cd "$(dirname "$0")/.."

for home in "${CUDA_HOME:-}" /usr/local/cuda; do
	if [ -n "$home" ] && [ -e "$home/include/cuda.h" ]; then
		echo "$home"
		exit 0
	fi
done

home=$PWD/build/cuda
if [ -e "$home/complete" ]; then
	echo "$home"
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "no CUDA headers: set CUDA_HOME to a CUDA toolkit of version 11.8 or later" >&2
	exit 1
fi
mkdir -p build
exec 9>build/cuda.lock
flock 9 # two builds at once would fill it together
if [ -e "$home/complete" ]; then
	echo "$home"
	exit 0
fi

work=$(mktemp -d "$PWD/build/cuda-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/deb"
# The same mirrors as the system's, with the component that holds CUDA.
targets() {
	apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' | sort -u
}
# A system whose lists were never fetched has no targets.
[ -n "$(targets)" ] || $([ "$(id -u)" -eq 0 ] || echo sudo) apt-get update -qq >&2
targets | while read -r site release; do
	case ${site%/} in
	*/debian) keyring=debian-archive-keyring.gpg component=non-free ;;
	*/ubuntu) keyring=ubuntu-archive-keyring.gpg component=multiverse ;;
	*) continue ;;
	esac
	keyring=/usr/share/keyrings/$keyring
	[ -e "$keyring" ] && signed="[signed-by=$keyring] " || signed=""
	echo "deb $signed$site $release $component"
done >"$work/sources.list"
if [ ! -s "$work/sources.list" ]; then
	echo "no CUDA headers: set CUDA_HOME to a CUDA toolkit of version 11.8 or later (only Debian's and Ubuntu's packages are fetched here)" >&2
	exit 1
fi
apt=(apt-get -qq -o APT::Sandbox::User=root
	-o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
	-o Dir::State="$work/state" -o Dir::Cache="$work/cache")
echo "fetching CUDA's headers and NVRTC from Debian's non-free packages into build/cuda" >&2
"${apt[@]}" update >&2
packages=$(apt-cache "${apt[@]:2}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances nvidia-cuda-dev |
	grep -oE '^libnvrtc(-builtins)?[0-9.]+$' | sort -u)
(cd "$work/deb" && "${apt[@]}" download nvidia-cuda-dev $packages >&2)
mkdir -p "$work/root"
for deb in "$work"/deb/*.deb; do
	# --wildcards patterns that match nothing make tar fail: not every package has all.
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/root" --wildcards \
		'./usr/include/cuda.h' './usr/include/vector_types.h' './usr/include/crt/*' './usr/include/nvrtc.h' \
		'./usr/include/cooperative_groups*' './usr/include/cuda_device_runtime_api.h' \
		'*/libcudadevrt.a' '*/stubs/libcuda.so' '*/libnvrtc.so.*' '*/libnvrtc-builtins.so.*' 2>/dev/null || true
done
root=$work/root/usr
lib=$(dirname "$(find "$root/lib" -name 'libcudadevrt.a' | head -1)")
mkdir -p "$work/home/lib64/stubs"
mv "$root/include" "$work/home/include"
mv "$lib"/stubs/libcuda.so "$work/home/lib64/stubs/"
mv "$lib"/libcudadevrt.a "$lib"/libnvrtc* "$work/home/lib64/"
for file in include/cuda.h lib64/stubs/libcuda.so lib64/libcudadevrt.a; do
	[ -e "$work/home/$file" ] || { echo "Debian's packages have no $file" >&2; exit 1; }
done
ls "$work"/home/lib64/libnvrtc.so.* >/dev/null
rm -rf "$home"
mv "$work/home" "$home"
touch "$home/complete"
echo "$home"
