// What a start says of a database that does not answer: a cause and what to do, never a fault of
// ours. The exit code lets a service manager start it again.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { CoreError } from '../../../addon/core.ts';
import { parseConfig } from '../../../server/app/config/config.ts';
import { toStartError } from '../../../server/app/start-errors.ts';
import { ServiceError } from '../../../server/base/service-error.ts';
import { toldError } from '../../../server/base/start-error.ts';
import { RootKeyError } from '../../../server/ports/key-ring.ts';
import { folderOfTest } from '../../support/folders.ts';

const config = parseConfig('', null, '/srv/dke');

/** What a start says of a file of the root key that the core refuses. */
const fixOf = (folder: string): string => {
  const own = parseConfig('', null, folder);
  const error = new CoreError('format', `the root key file ${own.root.path} is damaged: restore it from its copy`);
  return toldError(toStartError(error, own)).message;
};

test('a damaged root key is moved by the user of the service, and nothing that is in the way is skipped in silence', () => {
  const folder = folderOfTest();
  const { path } = parseConfig('', null, folder).root;
  mkdirSync(dirname(path), { recursive: true });
  expect(fixOf(folder)).toContain('put it back from its backup: dke root restore FILE; nothing was changed');
  writeFileSync(path, '');
  const moved = `mv -nT ${path} ${path}.damaged && dke root restore FILE; when the service has started, destroy ${path}.damaged`;
  expect(fixOf(folder)).toContain(`: ${moved}`);
  writeFileSync(`${path}.damaged`, '');
  expect(fixOf(folder)).toContain(`first move ${path}.damaged, which is there already, to another folder`);
  expect(fixOf(folder)).not.toContain('mv ');
  rmSync(`${path}.damaged`);
  symlinkSync(folder, `${path}.damaged`);
  expect(fixOf(folder)).not.toContain('mv ');
});

test('a service that systemd has started names its user in what an operator pastes', () => {
  const script = `
    import { asServiceUser } from ${JSON.stringify(resolve('server/app/host/unit.ts'))};
    if (process.getuid() === 0) process.setuid(65534);
    console.log(asServiceUser('dke root restore FILE'));
    delete process.env.INVOCATION_ID;
    console.log(asServiceUser('dke root restore FILE'));`;
  const out = execFileSync(process.execPath, ['--input-type=module-typescript', '-e', script], {
    encoding: 'utf8',
    env: { ...process.env, INVOCATION_ID: 'x' },
  });
  const [as = '', alone] = out.split('\n');
  expect(as).toMatch(/^sudo -u \S+ dke root restore FILE$/);
  expect(alone).toBe('dke root restore FILE');
});

test('a database that the root key does not open moves no root key away', () => {
  const { message } = toldError(
    toStartError(new RootKeyError('the root key cannot open a key encryption key'), config),
  );
  expect(message).toContain('move neither before you know which was replaced');
  expect(message).not.toContain('mv ');
});

test.each([
  [
    new ServiceError('unavailable', 'the database dke on db has not answered for 5 s: nothing was changed'),
    'check the database and its host, then start the service again',
  ],
  [
    new ServiceError('unavailable', 'the database has not confirmed the change', {
      hint: 'look at its log',
      reason: 'unconfirmed',
    }),
    'look at its log',
  ],
  [new ServiceError('dependency-timeout', 'the store did not answer in time'), 'check the database'],
])('a start that meets "%s" says what to do', (error, fix) => {
  const told = toldError(toStartError(error, config));
  expect([told.class, told.exitCode]).toEqual(['store', 5]);
  expect(told.message).toContain(error.message);
  expect(told.message).toContain(fix);
  expect(told.message).not.toContain('report it');
});
