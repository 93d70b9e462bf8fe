#!/bin/sh
# Everything in full size, and the native tests under the thread sanitizer as well.
set -eu
cd "$(dirname "$0")/../.."
sh test/support/sanitized.sh address,undefined
sh test/support/sanitized.sh thread
SLOW=1 DKE_TEST_STORE=both vitest run
