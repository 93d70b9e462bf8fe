#!/bin/sh
# Reads the C and C++ that is shipped, but the Node-API binding, with cppcheck and clang-tidy (.clang-tidy). Ends with 1 when either has found
# something. A build folder of its own: clang cannot read the precompiled headers of another compiler.
set -eu
cd "$(dirname "$0")/../.."
folder=build/checked
cmake -S . -B "$folder" -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
failed=0
for part in addon provider; do
  cppcheck --project="$folder/compile_commands.json" --file-filter="*$part/*" \
    --enable=warning,performance,portability --suppress=missingIncludeSystem --inline-suppr --quiet --error-exitcode=1 || failed=1
done
git ls-files 'addon/core/*.cc' 'provider/mariadb/*.c' 'provider/module/*.c' 'provider/probe/*.c' |
  xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 4 clang-tidy -p "$folder" --quiet 2>/dev/null || failed=1
exit "$failed"
