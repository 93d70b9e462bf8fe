#!/bin/sh
# Everything of `npm test` after the build. The native tests, also under sanitizers, run next to types and lint, because they mostly wait. The
# output of each is printed in one piece: of the sanitizers only a failure, so that the last lines are the summary of vitest.
set -eu
cd "$(dirname "$0")/../.."
told=build/native-tests.log
sanitized_told=build/sanitized-tests.log
echo "native tests under the address and undefined behaviour sanitizers: $sanitized_told"
sh test/support/sanitized.sh address,undefined >"$sanitized_told" 2>&1 &
sanitized=$!
npm run --silent test:native >"$told" 2>&1 &
native=$!
failed=0
npm run check || failed=1
wait "$native" || failed=1
cat "$told"
wait "$sanitized" || {
  cat "$sanitized_told"
  failed=1
}
[ "$failed" = 0 ] && { DKE_TEST_STORE=both vitest run || failed=1; }
exit "$failed"
