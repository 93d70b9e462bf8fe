// The core is linked with an OpenSSL that is still corrected, and says which one wherever people
// look for it.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
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

/**
 * An archive that has one version of each package, without signatures: those are apt's to check.
 */
const archive = `#!/bin/sh
[ "$1" = download ] || exit 0
for each in libssl-dev libzstd-dev zlib1g-dev; do
  mkdir -p package/DEBIAN
  printf 'Package: %s\\nVersion: %s\\nArchitecture: amd64\\nMaintainer: a <a@example.com>\\nDescription: a\\n' \\
    "$each" "$OFFERED" >package/DEBIAN/control
  dpkg-deb -b package "$each.deb"
done
rm -r package
`;

test('an archive cannot offer an older series, nor an older version than the one that is there', (context) => {
  for (const needed of ['/usr/bin/dpkg-deb', '/usr/share/keyrings/debian-archive-keyring.gpg'])
    if (!existsSync(needed)) context.skip(`${needed} is missing: nothing can be fetched here`);
  const folder = mkdtempSync(join(tmpdir(), 'dke-libcrypto-'));
  try {
    cpSync(join(root, 'addon/libcrypto'), join(folder, 'addon/libcrypto'), { recursive: true });
    mkdirSync(join(folder, 'bin'));
    writeFileSync(join(folder, 'bin/apt-get'), archive, { mode: 0o755 });
    const there = join(folder, '.libcrypto/amd64');
    const fetch = (offered: string): { readonly status: number | null; readonly stderr: string } =>
      spawnSync('sh', [join(folder, 'addon/libcrypto/fetch.sh'), 'amd64'], {
        encoding: 'utf8',
        env: { ...process.env, PATH: `${join(folder, 'bin')}:${process.env.PATH}`, OFFERED: offered },
      });
    const versionThere = (): string | undefined =>
      /^Version: (.+)$/m.exec(readFileSync(join(there, 'var/lib/dpkg/status'), 'utf8'))?.[1];

    const series = fetch('3.0.17-1');
    expect(series.status).toBe(1);
    expect(series.stderr).toContain('offers OpenSSL 3.0.17-1 as that of Debian 13');
    expect(existsSync(there)).toBe(false);
    expect(fetch('3.5.9-1').status).toBe(0);
    for (const [offered, stays] of [
      ['3.5.1-1', '3.5.9-1'],
      ['3.0.17-1', '3.5.9-1'],
      ['3.5.10-1', '3.5.10-1'],
    ] as const) {
      utimesSync(join(there, 'complete'), 1, 1);
      expect(fetch(offered).status).toBe(0);
      expect(versionThere(), offered).toBe(stays);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
