#!/bin/sh
# Reads the C and C++ that is shipped with cppcheck and clang-tidy (.clang-tidy). Ends with 1 when either has found something.
set -eu
cd "$(dirname "$0")/../.."
failed=0
cppcheck --project=build/compile_commands.json --file-filter='*/addon/*' --file-filter='*/provider/*' \
  --enable=warning,performance,portability --suppress=missingIncludeSystem --inline-suppr --quiet --error-exitcode=1 || failed=1
git ls-files 'addon/*.cc' 'provider/*.c' ':!provider/glibc/*' |
  xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 4 clang-tidy -p build --quiet 2>/dev/null || failed=1
exit "$failed"
