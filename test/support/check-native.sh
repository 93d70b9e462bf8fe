#!/bin/sh
# Reads the C and C++ that is shipped, but the Node-API binding, with cppcheck and clang-tidy (.clang-tidy). Ends with 1 when either has found
# something. A build folder of its own: clang cannot read the precompiled headers of another compiler.
# Then runs every fuzz target of test/native/fuzz under the address and undefined behaviour sanitizers, DKE_FUZZ_SECONDS each (20).
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
fuzz=build/fuzz
CC=clang CXX=clang++ cmake -S . -B "$fuzz" -DDKE_FUZZ=ON -DDKE_TESTS=OFF -DDKE_ADDON=OFF -DCMAKE_BUILD_TYPE=None >/dev/null
cmake --build "$fuzz" --target fuzzers --parallel "$(getconf _NPROCESSORS_ONLN)" >/dev/null
for source in test/native/fuzz/*.c test/native/fuzz/*.cc; do
  name=$(basename "${source%.*}")
  found=$fuzz/found/$name
  mkdir -p "$found"
  set -- "$found"
  if [ -d "test/native/fuzz/corpus/$name" ]; then set -- "$@" "test/native/fuzz/corpus/$name"; fi
  echo "fuzz-$name, ${DKE_FUZZ_SECONDS:-20} s"
  "$fuzz/fuzz-$name" "-max_total_time=${DKE_FUZZ_SECONDS:-20}" -max_len=4096 -len_control=0 -timeout=60 \
    "-artifact_prefix=$fuzz/" "$@" >"$fuzz/$name.log" 2>&1 || { tail -n 40 "$fuzz/$name.log"; failed=1; }
done
exit "$failed"
