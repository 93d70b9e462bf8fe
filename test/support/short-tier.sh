#!/bin/sh
# Everything of `npm test` after the build. The native tests, also under sanitizers, run next to types and lint, because they mostly wait. The
# output of each is printed in one piece: of the sanitizers only a failure, so that the last lines are the summary of vitest.
set -eu
cd "$(dirname "$0")/../.."
native_log=build/native-tests.log
sanitized_log=build/sanitized-tests.log
echo "native tests under the address and undefined behaviour sanitizers: $sanitized_log"
sh test/support/sanitized.sh address,undefined >"$sanitized_log" 2>&1 &
sanitized=$!
ctest --test-dir build --output-on-failure --parallel 2 >"$native_log" 2>&1 &
native=$!
failed=0
sh test/support/check.sh || failed=1
wait "$native" || failed=1
cat "$native_log"
wait "$sanitized" || {
  cat "$sanitized_log"
  failed=1
}
[ "$failed" = 0 ] && { DKE_TEST_STORE=both vitest run || failed=1; }
exit "$failed"
