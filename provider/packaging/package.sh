#!/bin/sh
# npm run package [-- OPTIONS]: what main.ts says, after everything that it takes was installed and built.
set -eu
cd "$(dirname "$0")/../.."
case " $* " in
*' --architecture aarch64 '* | *' --architecture=aarch64 '*) [ "$(uname -m)" = aarch64 ] || other=aarch64 ;;
esac
sh test/support/setup.sh "package${other:+-$other}"
if [ -n "${other-}" ]; then sh test/support/setup.sh tools sh provider/packaging/cross.sh; fi
exec sh test/support/setup.sh tools node provider/packaging/main.ts "$@"
