#!/bin/sh
# Run by npm as this package's install script: checks what the native build needs, installs it where that is allowed
# (Debian, as root), says the exact line where it is not, and builds the addon, the library and the native tests.
set -eu
cd "$(dirname "$0")/.."
. test/support/packages.sh

major=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)
if [ "$major" -lt 24 ]; then
  echo "dke: Node 24 or later is needed, this is $(node --version 2>/dev/null || echo none)." >&2
  echo "dke: on Linux on x64 and arm64 npm installs one on its own (optional dependency); elsewhere install Node 24 first." >&2
  exit 1
fi

need cmake 'command -v cmake'
need g++ 'command -v c++'
need make 'command -v make'
need libcmocka-dev 'test -f /usr/include/cmocka.h'
need libssl-dev 'test -n "$(find /usr/lib /usr/local/lib -name libcrypto.a 2>/dev/null | head -n 1)"'
install_needed

cmake-js compile --target all --parallel "$(getconf _NPROCESSORS_ONLN)"
