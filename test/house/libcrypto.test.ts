// The core is linked with an OpenSSL that is still corrected, and says which one wherever people look for it.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { core } from '../../addon/core.ts';
import { endOfSupport } from '../../server/base/libcrypto.ts';
import { commandPath } from '../support/command.ts';

const root = resolve(import.meta.dirname, '../..');
const version = core.libcryptoVersion();

test('the series of the libcrypto that is linked in is corrected today', () => {
  expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  const end = endOfSupport(version);
  expect(end, `server/base/libcrypto.ts does not know how long OpenSSL ${version} is corrected`).toBeDefined();
  expect(Date.parse(end ?? ''), `OpenSSL ${version} is corrected until ${end}`).toBeGreaterThan(Date.now());
});

test('series without corrections, and unknown ones, are told from it', () => {
  expect(endOfSupport('3.5.0')).toBe('2030-04-08');
  expect(endOfSupport('3.0.19')).toBeUndefined();
  expect(endOfSupport('35.1.0')).toBeUndefined();
});

test('what was fetched is what is linked', (context) => {
  const debian = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const status = join(root, '.libcrypto', debian, 'var/lib/dpkg/status');
  if (!existsSync(status)) context.skip('this system has a libcrypto that is new enough');
  const [, fetched] = /^Package: libssl-dev\n(?:.+\n)*?Version: ([\d.]+)/m.exec(readFileSync(status, 'utf8')) ?? [];
  expect(fetched).toBe(version);
});

test('dke --version names it', () => {
  const said = execFileSync(process.execPath, [commandPath, '--version'], { encoding: 'utf8' });
  expect(said).toContain(`OpenSSL ${version}, Node ${process.versions.node}`);
});
