// The demonstration is a promise of the README: it runs here as a newcomer runs it, on what was built.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('the demonstration ends with 0 and has shown every fact', () => {
  const demo = spawnSync(process.execPath, [join(import.meta.dirname, '../demo/demo.ts')], { encoding: 'utf8' });
  expect(demo.stderr).toBe('');
  expect(demo.status).toBe(0);
  expect(demo.stdout.match(/^\d\. .*/gm)).toEqual([
    '1. A server on its defaults',
    '2. A database is registered',
    '3. A database process loads libdke_pkcs11.so',
    '4. The master key is soft-deleted',
    '5. A cloud key service calls the XKS proxy',
    '6. The master key is destroyed for good',
    '7. What is to be seen from outside',
  ]);
}, 60_000);
