// The unit of the server: what cannot become right on its own is not started again forever, and
// systemd understands every line.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { exitCodes } from '../../server/base/start-error.ts';
import { folderOfTest } from '../support/folders.ts';

const unit = readFileSync(resolve(import.meta.dirname, '../../server/packaging/dke-server.service'), 'utf8');
const numberOf = (name: string): number => Number(new RegExp(`^${name}=(\\d+)(?:s|min)?$`, 'm').exec(unit)?.[1]);

test('a wrong configuration, file or root key ends the service at once', () => {
  const [, codes = ''] = /^RestartPreventExitStatus=(.*)$/m.exec(unit) ?? [];
  expect(codes.split(' ').map(Number)).toEqual([exitCodes.config, exitCodes.permission, exitCodes['root-key']]);
});

test('a store that does not open is tried again for some minutes, and then no longer', () => {
  const intervalSeconds = numberOf('StartLimitIntervalSec') * 60;
  expect(unit).toMatch(/^StartLimitIntervalSec=\d+min$/m);
  // Starts that fail at once, and starts that wait for a database for as long as a connection may
  // take.
  for (const failsAfterSeconds of [0, 15])
    expect((numberOf('RestartSec') + failsAfterSeconds) * numberOf('StartLimitBurst')).toBeLessThan(intervalSeconds);
  expect(numberOf('RestartSec') * numberOf('StartLimitBurst')).toBeGreaterThanOrEqual(300);
});

test('systemd-analyze finds nothing wrong', () => {
  const folder = folderOfTest();
  const path = join(folder, 'dke-server.service');
  writeFileSync(path, unit.replaceAll('/usr/lib/dke-server/bin/dke', '/bin/true'));
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8' });
  if (status === null) return console.info('skipped: systemd-analyze is not installed');
  expect(`${stdout}${stderr}`.split('\n').filter((line) => line.includes('dke-server'))).toEqual([]);
});

test('the folders that examples have the service write are there, and writable in its unit', () => {
  const directories = (name: string): readonly string[] =>
    new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1]?.split(' ') ?? [];
  const own = [
    ...directories('StateDirectory').map((each) => `/var/lib/${each}`),
    ...directories('LogsDirectory').map((each) => `/var/log/${each}`),
  ];
  const pages = ['docs/dke.toml', 'docs/audit.md', 'docs/monitoring.md', 'docs/snapshots.md'];
  const written = pages.flatMap((page) =>
    [
      ...readFileSync(resolve(import.meta.dirname, '../..', page), 'utf8').matchAll(
        /\b(?:path|file|directory|destination) = "(\/var\/[^"]+)"/g,
      ),
    ].map(([, path = '']) => path),
  );
  expect(written.length).toBeGreaterThan(3);
  expect(written.filter((path) => !own.some((folder) => path === folder || path.startsWith(`${folder}/`)))).toEqual([]);
});
