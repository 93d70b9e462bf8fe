#!/bin/sh
# Everything of `npm test` before vitest: the native tests, which mostly wait, run beside types and lint. The output of both is printed to its end.
set -eu
cd "$(dirname "$0")/../.."
told=build/native-tests.log
npm run --silent test:native >"$told" 2>&1 &
native=$!
failed=0
npm run check || failed=1
wait "$native" || failed=1
cat "$told"
exit "$failed"
