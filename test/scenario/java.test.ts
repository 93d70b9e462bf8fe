// Java's own provider for PKCS#11, SunPKCS11 of OpenJDK 17, through the built library to the real service: every step of
// test/support/SunPkcs11.java, each checked there against Java's own implementation of the same algorithm.
import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { library } from '../support/pkcs11-host.ts';
import { type Site, startSite } from '../support/site.ts';

const installed = ['java', 'javac'].every((name) =>
  (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, name))),
);
if (!installed) console.log('skipped: no Java development kit is installed (package openjdk-17-jdk-headless)');

describe.runIf(installed)('SunPKCS11', () => {
  let site: Site;
  let lines: readonly string[];
  beforeAll(async () => {
    site = await startSite();
    const application = await registerApplication(site.api, 'java', await createGroup(site.api, 'java'));
    const environment = {
      ...process.env,
      DKE_PKCS11_CONF: site.config('java', application),
      DKE_PKCS11_SOCKET: site.socket,
      DKE_AGENT_LOG_DIR: site.logDirectory,
    };
    const provider = join(site.folder, 'provider.cfg');
    writeFileSync(provider, `name = dke\nlibrary = ${library}\nslotListIndex = 0\n`);
    const program = join(import.meta.dirname, '../support/SunPkcs11.java');
    lines = await new Promise((resolve, reject) => {
      execFile('java', [program, provider], { env: environment }, (error, out, complaints) => {
        if (error === null) resolve(out.trim().split('\n'));
        else reject(new Error(`${out}\n${complaints}`));
      });
    });
  }, 60_000);
  afterAll(() => site.end());

  test.each([
    'AES/CBC/NoPadding',
    'AES/CBC/PKCS5Padding',
    'AES/ECB/NoPadding',
    'AES/CTR/NoPadding',
    'AES/GCM/NoPadding',
    'HmacSHA1',
    'HmacSHA256',
    'HmacSHA384',
    'HmacSHA512',
    'SHA-256',
    'SecureRandom',
    'KeyGenerator',
    'RSA pair',
    'EC pair',
    'SHA256withRSA',
    'SHA512withRSA',
    'RSASSA-PSS',
    'SHA256withECDSA',
    'SHA512withECDSA',
    'RSA private key of others',
    'ECDH',
    'KeyStore takes a sensitive key of a session into custody',
    'KeyStore',
  ])('%s', (step) => {
    expect(lines.filter((line) => line.startsWith(`${step} ok`) || line.startsWith(`${step} failed`))).toEqual([
      `${step} ok`,
    ]);
  });
});
