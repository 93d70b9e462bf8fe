// npm run build:code, after the compiler: lays the texts next to the compiled code. A text that is
// missing or wrong ends the build.
import { cpSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { readRunbooks, runbookFolder } from './read-runbooks.ts';

readRunbooks();
const target = resolve(import.meta.dirname, '../../../dist/server/adapters/runbooks/runbooks');
rmSync(target, { recursive: true, force: true });
cpSync(runbookFolder, target, { recursive: true });
