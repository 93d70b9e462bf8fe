#!/bin/sh
# npm run package [-- OPTIONS]: what main.ts says, after everything that it takes was installed and built.
set -eu
cd "$(dirname "$0")/../.."
case " $* " in
*' --architecture aarch64 '* | *' --architecture=aarch64 '*) [ "$(uname -m)" = aarch64 ] || other=aarch64 ;;
esac
sh test/support/prepare.sh "package${other:+-$other}"
if [ -n "${other-}" ]; then sh provider/packaging/cross.sh; fi
exec node provider/packaging/main.ts "$@"
