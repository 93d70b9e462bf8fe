// Renewal of the service's self-signed certificate: clients that pin it are never without one that
// they accept. A database over a real agent, and curl, use the service before, between and after.
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { createGroup, registerApplication, writeProviderConfig } from '../support/console-api.ts';
import { type Site, startSite } from '../support/site.ts';

const run = promisify(execFile);
let site: Site;
beforeAll(async () => {
  site = await startSite();
});
afterAll(() => site?.end());

test('a client that has both certificates accepts the service before and after, a client with the old one only until then', async () => {
  const present = join(site.server.dataDirectory, 'tls.crt');
  const next = `${present}.next`;
  const old = readFileSync(present, 'utf8');
  /** What clients pin. */
  const pinned = join(site.folder, 'pinned.pem');
  const oldOnly = join(site.folder, 'old.pem');
  for (const file of [pinned, oldOnly]) writeFileSync(file, old);
  const curl = (ca: string) =>
    run('curl', ['--silent', '--show-error', '--fail', '--cacert', ca, `${site.server.url}/health`]).then(
      () => 'accepted',
      ({ code }: { readonly code?: number }) => `curl ends with ${code}`,
    );
  const application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
  const extra = { caFile: pinned, logDir: site.logDirectory, extra: '' };
  const database = site.database(writeProviderConfig(join(site.folder, 'erp.toml'), application, extra));
  expect(await database.call('open', { pin: 'any' })).toEqual({ rv: 'CKR_OK' });
  const { rv, handle } = await database.call('generate', { label: 'ORACLE.TDE.HSM.MK.0601' });
  expect(rv).toBe('CKR_OK');
  const uses = async () =>
    (await database.call('encrypt', { handle: handle ?? 0, iv: '00'.repeat(16), data: '11'.repeat(32) })).rv;
  const renew = (...options: readonly string[]) =>
    runCommand(['server', 'renew-certificate', '--config', join(site.folder, 'dke.toml'), ...options, '-o', 'json']);
  const shownBy = ({ stdout }: { readonly stdout: string }) => JSON.parse(stdout) as { fingerprint: string };

  expect((await renew('--activate')).stderr).toContain(`there is no ${next}`);
  const { fingerprint } = shownBy(await renew());
  expect(new X509Certificate(readFileSync(next)).fingerprint256).toBe(fingerprint);
  expect(statSync(join(site.server.dataDirectory, 'tls.key.next')).mode & 0o777).toBe(0o600);
  expect((await renew()).stderr).toContain('is there already');
  expect(readFileSync(present, 'utf8')).toBe(old);

  // The old certificate is first: both have the same subject.
  writeFileSync(pinned, old + readFileSync(next, 'utf8'));
  expect([await curl(pinned), await curl(oldOnly), await uses()]).toEqual(['accepted', 'accepted', 'CKR_OK']);

  expect(shownBy(await renew('--activate')).fingerprint).toBe(fingerprint);
  expect(existsSync(next)).toBe(false);
  site.server.child.kill('SIGHUP');
  await expect.poll(() => site.server.log()).toContain(fingerprint);
  expect([await curl(pinned), await curl(oldOnly), await uses()]).toEqual(['accepted', 'curl ends with 60', 'CKR_OK']);

  // The agent's connections end with the service: it connects again.
  await site.stopServer();
  await site.startServer();
  expect([await curl(pinned), await uses()]).toEqual(['accepted', 'CKR_OK']);
  writeFileSync(pinned, readFileSync(present));
  expect([await curl(pinned), await uses()]).toEqual(['accepted', 'CKR_OK']);
});
