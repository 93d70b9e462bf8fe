#!/bin/sh
# Types, lint, format and unused exports of everything in TypeScript.
set -eu
cd "$(dirname "$0")/../.."
tsc -p tsconfig.json --noEmit
tsc -p server/clients/web/tsconfig.json
biome ci --error-on-warnings .
knip --no-progress --no-config-hints
