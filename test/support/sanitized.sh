#!/bin/sh
# sanitized.sh <address,undefined|thread>: builds the native tests with these sanitizers and runs them. Optimized little, because most of the
# time goes into compiling; no fuzzers, no addon. clang++ compiles the core with address,undefined in half of the time; the module is C, and
# some of its tests measure what the shipped compiler makes of it.
set -eu
cd "$(dirname "$0")/../.."
sanitizers=${1:?usage: sanitized.sh address,undefined or sanitized.sh thread}
if [ "$sanitizers" = address,undefined ] && command -v clang++ >/dev/null; then export CXX="${CXX:-clang++}"; fi
folder=build/sanitized-$(echo "$sanitizers" | tr , -)
cmake -S . -B "$folder" -DCMAKE_BUILD_TYPE=Sanitized -DCMAKE_C_FLAGS_SANITIZED=-O1 -DCMAKE_CXX_FLAGS_SANITIZED=-O1 \
  -DDKE_SANITIZE="$sanitizers" >/dev/null
cmake --build "$folder" --parallel "$(getconf _NPROCESSORS_ONLN)" --target native-tests >/dev/null
ctest --test-dir "$folder" --output-on-failure --parallel "$(getconf _NPROCESSORS_ONLN)"
