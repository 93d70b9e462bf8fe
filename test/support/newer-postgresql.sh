#!/bin/sh
# newer-postgresql.sh FOLDER [COMMAND...]: PostgreSQL 17 of Debian 13 in FOLDER, for systems that have an older one, and
# the command with DKE_POSTGRESQL_PROGRAMS, the folder of its programs. apt downloads it with lists and a state of its
# own, checked with the keys of this system, which stays as it is. Each program starts with Debian 13's own libraries.
#
#   sh test/support/newer-postgresql.sh /var/tmp/postgresql-17 npx vitest run --project sqlite test/contract/store.test.ts
set -eu
folder=${1:?usage: newer-postgresql.sh FOLDER [COMMAND...]}
shift
programs=$folder/root/usr/lib/postgresql/17/bin
if [ ! -e "$folder/complete" ]; then
  architecture=$(dpkg --print-architecture)
  mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/root"
  : >"$folder/apt/status"
  keys=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$keys] http://deb.debian.org/debian/ trixie main" >"$folder/apt/sources.list"
  cat >"$folder/apt/apt.conf" <<END
Dir::Etc::sourcelist "$folder/apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
Dir::State::lists "$folder/apt/lists";
Dir::State::status "$folder/apt/status";
Dir::Cache "$folder/apt/cache";
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Sandbox::User "";
APT::Install-Recommends "false";
Acquire::Languages "none";
END
  export APT_CONFIG="$folder/apt/apt.conf"
  apt-get --quiet=2 update
  apt-get --quiet=2 install --yes --download-only postgresql-17
  unset APT_CONFIG
  for each in "$folder"/apt/cache/archives/*.deb; do
    case $each in *libllvm* | *perl* | *locales*) ;; *) dpkg-deb --extract "$each" "$folder/root" ;; esac
  done
  loader=$(find "$folder/root" -name 'ld-linux-*.so.*' -type f | head -n 1)
  libraries=$(dirname "$(find "$folder/root" -name 'libc.so.6' | head -n 1)")
  mkdir -p "$programs/../own"
  for each in "$programs"/*; do
    own=$programs/../own/$(basename "$each")
    mv "$each" "$own"
    # A program finds its own files by the name that it was called with.
    printf '#!/bin/sh\nexec %s --argv0 "$0" --library-path %s %s "$@"\n' "$loader" "$libraries" "$own" >"$each"
    chmod 755 "$each"
  done
  rm -rf "$folder/apt"
  chmod -R a+rX "$folder"
  : >"$folder/complete"
fi
"$programs/postgres" --version
[ $# = 0 ] || exec env DKE_POSTGRESQL_PROGRAMS="$programs" "$@"
