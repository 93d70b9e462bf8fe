// npm run build:code, after the compiler: writes the description of the API, which takes too long
// to make while requests are served.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describeApi } from '../../contract/api/openapi.ts';

const root = resolve(import.meta.dirname, '../../..');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string };
const folder = join(root, 'dist/server/contract/api');
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, 'openapi.json'), JSON.stringify(describeApi(version)));
