// The README promises this demonstration: it runs here as a new user runs it, on the built
// programs.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { endProcess, processesWith } from '../support/host.ts';

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
    '6. The master key is destroyed permanently',
    '7. What is to be seen from outside',
  ]);
});

test('what --keep leaves running answers to the lines that it prints', async () => {
  const demo = spawnSync(process.execPath, [join(import.meta.dirname, '../demo/demo.ts'), '--keep'], {
    encoding: 'utf8',
  });
  const folder = /rm -r (\S+)$/m.exec(demo.stdout)?.[1] ?? '';
  try {
    expect(demo.status).toBe(0);
    const environment = Object.fromEntries(
      [...demo.stdout.matchAll(/(DKE_[A-Z0-9_]+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]),
    );
    const [, command = ''] = /^ {2}(.* audit list)$/m.exec(demo.stdout) ?? [];
    const audit = spawnSync('sh', ['-c', command], { encoding: 'utf8', env: { ...process.env, ...environment } });
    expect(audit).toMatchObject({ status: 0, stderr: '', stdout: expect.stringContaining('key.created') });
    const line = /pkcs11-tool --module (\S+) --login --pin any --list-objects/.exec(demo.stdout);
    const listed = spawnSync('pkcs11-tool', line?.[0].split(' ').slice(1) ?? [], {
      encoding: 'utf8',
      env: { ...process.env, ...environment },
    });
    expect(listed.stdout).toMatch(/label: +ORACLE\.TDE\.HSM\.MK\.06[0-9A-F]{32}/);
  } finally {
    if (folder !== '') {
      for (const [pid] of processesWith(folder)) await endProcess(pid);
      rmSync(folder, { recursive: true, force: true });
    }
  }
});
