#!/bin/sh
# Compiles the TypeScript of server, provider and addon into dist, with the texts and the OpenAPI document beside it.
set -eu
cd "$(dirname "$0")/../.."
tsc -p tsconfig.build.json --noCheck
node server/adapters/runbooks/copy.ts
node server/fronts/api/write-openapi.ts
