#!/bin/sh
# fetch.sh ARCHITECTURE [DAYS]: OpenSSL's libcrypto as the core links it, of the long-term series 3.5, in
# .libcrypto/ARCHITECTURE, for systems whose own libssl-dev is older: `usr` has its headers and static libraries
# (with those that it compresses with), `var` what dpkg-query needs to name their versions, `debs` the packages.
#
# They are Debian 13's, downloaded by apt with lists and a state of its own, and their signatures are checked with the
# keys of this system: nothing of this system changes. What is there and not older than DAYS (30) is taken as it is;
# older files are renewed, and stay where that fails (without a network, for example).
set -eu
architecture=${1:?usage: fetch.sh ARCHITECTURE [DAYS]}
days=${2:-30}
cd "$(dirname "$0")/../.."
folder=$PWD/.libcrypto/$architecture
if [ -e "$folder/complete" ] && [ -n "$(find "$folder/complete" -mtime "-$days" -print)" ]; then exit 0; fi

fail() {
  if [ -e "$folder/complete" ]; then
    printf 'dke: %s\n' "$1: the libcrypto of $(date -r "$folder/complete" +%F) is used" >&2
    exit 0
  fi
  printf 'dke: %s\n' "$1" >&2
  shift
  [ $# = 0 ] || printf '  %s\n' "$@" >&2
  exit 1
}
other='Or install OpenSSL 3.5 or newer with its static library, and set OPENSSL_ROOT_DIR to where it is.'
keys=/usr/share/keyrings/debian-archive-keyring.gpg
for each in apt-get dpkg-deb; do
  command -v "$each" >/dev/null 2>&1 ||
    fail 'The core links OpenSSL 3.5, and this system has an older one.' \
      'Install OpenSSL 3.5 or newer with its headers and static library, and set OPENSSL_ROOT_DIR to where it is.'
done
[ -e "$keys" ] || fail 'The core links OpenSSL 3.5, and the keys of its archive are missing.' \
  'Install them: apt-get install debian-archive-keyring' "$other"

echo "dke: fetching OpenSSL 3.5 from Debian 13 for $architecture (about 10 s)"
new=$folder.new
# Who may not write here still uses what another user has fetched.
{ rm -rf "$new" && mkdir -p "$new/apt/lists/partial" "$new/apt/cache/archives/partial" "$new/debs" \
  "$new/var/lib/dpkg/info" "$new/var/lib/dpkg/updates"; } 2>/dev/null ||
  fail "$new cannot be written" 'Run the same command as the user to whom the checkout belongs.'
trap 'rm -rf "$new"' EXIT
: >"$new/apt/status"
# The archive that this system is installed from, where that is Debian's.
sites=$(apt-get indextargets --no-release-info --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
  grep -E '/debian(-security)?/$' | sort -u || true)
main=$(printf '%s\n' "$sites" | grep '/debian/$' | head -n 1 || true)
security=$(printf '%s\n' "$sites" | grep '/debian-security/$' | head -n 1 || true)
{
  echo "deb [signed-by=$keys] ${main:-http://deb.debian.org/debian/} trixie main"
  [ -z "$security" ] || echo "deb [signed-by=$keys] $security trixie-security main"
} >"$new/apt/sources.list"
cat >"$new/apt/apt.conf" <<END
Dir::Etc::sourcelist "$new/apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
Dir::State::lists "$new/apt/lists";
Dir::State::status "$new/apt/status";
Dir::Cache "$new/apt/cache";
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Sandbox::User "";
APT::Get::AllowUnauthenticated "false";
Acquire::AllowInsecureRepositories "false";
Acquire::Languages "none";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
END
log=$new/log
download() {
  cd "$new/debs"
  APT_CONFIG=$new/apt/apt.conf apt-get update &&
    APT_CONFIG=$new/apt/apt.conf apt-get download libssl-dev libzstd-dev zlib1g-dev
}
if ! (download) >"$log" 2>&1; then
  grep -E '^(E|Err|W):' "$log" | tail -n 5 >&2 || true
  fail 'OpenSSL 3.5 could not be downloaded from the archive of Debian 13.' \
    'Check the network and /etc/apt (debian-archive-keyring must know the keys of Debian 13), then run the same command again.' "$other"
fi
# As new files, so that what was linked with another version is linked again.
for each in "$new"/debs/*.deb; do
  dpkg-deb --fsys-tarfile "$each" | tar --extract --directory "$new" --touch
  dpkg-deb --field "$each" | sed '/^Package:/a Status: install ok installed'
  echo
done >"$new/var/lib/dpkg/status"
# The signed lists of a stable release have no end: a mirror could offer older ones, or those of an
# older release.
version_in() { sed -n '/^Package: libssl-dev$/,/^$/s/^Version: //p' "$1/var/lib/dpkg/status"; }
version=$(version_in "$new")
dpkg --compare-versions "$version" ge 3.5 ||
  fail "The archive offers OpenSSL $version as that of Debian 13, and the core needs 3.5" \
    'Name another mirror in /etc/apt, then run the same command again.' "$other"
[ ! -e "$folder/complete" ] || dpkg --compare-versions "$version" ge "$(version_in "$folder")" ||
  fail "The archive offers OpenSSL $version, which is older"
rm -rf "$new/apt" "$log"
: >"$new/complete"
rm -rf "$folder.old"
[ ! -e "$folder" ] || mv "$folder" "$folder.old"
mv "$new" "$folder"
rm -rf "$folder.old"
