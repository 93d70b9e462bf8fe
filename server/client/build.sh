#!/bin/sh
# Compiles the package @dke/client into dist/client.
set -eu
cd "$(dirname "$0")/../.."
tsc -p server/client/tsconfig.json
cp server/client/package.json server/client/README.md LICENSE dist/client/
