#!/bin/sh
# Compiles the package @dke/client into dist/client.
set -eu
cd "$(dirname "$0")/../../.."
tsc -p server/clients/typescript/tsconfig.json
cp server/clients/typescript/package.json server/clients/typescript/README.md LICENSE dist/client/
