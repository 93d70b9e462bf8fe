// Java's own provider for PKCS#11, SunPKCS11 of OpenJDK 17, through the built library to the real
// service, and through SoftHSM2: keytool makes what a KeyStore has, then comes every step of
// test/support/SunPkcs11.java, each checked there against Java's own implementation of the same
// algorithm.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeOthersKey } from '../support/others-key.ts';
import { presentTokens, startTokens, type Token } from '../support/token.ts';
import { installed, type Outcome, run } from '../support/tools.ts';
import { lacks } from './differences.ts';

const steps = [
  'services',
  'AES/CBC/NoPadding',
  'AES/CBC/PKCS5Padding',
  'AES/ECB/NoPadding',
  'AES/ECB/PKCS5Padding',
  'AES/CTR/NoPadding',
  'AES/GCM/NoPadding',
  'AES/GCM/NoPadding refuses what was changed',
  'HmacSHA1',
  'HmacSHA224',
  'HmacSHA256',
  'HmacSHA384',
  'HmacSHA512',
  'SHA-1',
  'SHA-224',
  'SHA-256',
  'SHA-384',
  'SHA-512',
  'SecureRandom',
  'KeyGenerator',
  'RSA pair',
  'EC pair',
  'SHA256withRSA',
  'SHA384withRSA',
  'SHA512withRSA',
  'RSASSA-PSS',
  'SHA256withECDSA',
  'SHA384withECDSA',
  'SHA512withECDSA',
  'RSA private key of others',
  'EC private key of others',
  'ECDH',
  'KeyStore takes a sensitive key of a session into custody',
  'KeyStore',
  'KeyStore signs with the key of a certificate: rsa',
  'KeyStore signs with the key of a certificate: ec',
  'KeyStore encrypts with a key that keytool made',
  'KeyStore encrypts in parts with a key that keytool made',
  'eight threads',
  'TLS with both keys in the KeyStore',
] as const;

const present = installed('openjdk-17-jdk-headless', 'java', 'javac', 'keytool');

describe.runIf(present).each(presentTokens)('SunPKCS11 with %s', (name) => {
  let token: Token;
  let config: string;
  let lines: readonly string[];
  /** These programs are over before an optimizing compiler has been worth it. */
  const java = (program: 'java' | 'keytool', ...args: string[]): Promise<Outcome> =>
    run(program, [`${program === 'java' ? '' : '-J'}-XX:TieredStopAtLevel=1`, ...args], token);
  const provider = (): string[] => ['-addprovider', 'SunPKCS11', '-providerArg', config];
  const keytool = (...args: string[]): Promise<Outcome> =>
    java('keytool', ...args, '-keystore', 'NONE', '-storetype', 'PKCS11', '-storepass', token.pin, ...provider());
  beforeAll(async () => {
    token = await startTokens[name]('java');
    config = join(token.folder, 'provider.cfg');
    writeFileSync(config, `name = token\nlibrary = ${token.module}\nslotListIndex = 0\n`);
    for (const args of [
      ['-genkeypair', '-alias', 'rsa', '-keyalg', 'RSA', '-keysize', '2048', '-dname', 'CN=localhost'],
      ['-genkeypair', '-alias', 'ec', '-keyalg', 'EC', '-groupname', 'secp256r1', '-dname', 'CN=localhost'],
      ['-genseckey', '-alias', 'aes', '-keyalg', 'AES', '-keysize', '256'],
    ]) {
      const { code, out, complaints } = await keytool(...args);
      expect(code, out + complaints).toBe(0);
    }
    const program = join(import.meta.dirname, '../support/SunPkcs11.java');
    const { code, out, complaints } = await java('java', program, config, token.pin);
    expect(code, complaints).toBe(0);
    lines = out.trim().split('\n');
  });
  afterAll(() => token.end());

  test('keytool lists what it has made', async () => {
    const { out } = await keytool('-list');
    expect(out).toContain('Your keystore contains 3 entries');
    expect(out).toMatch(/^ec, PrivateKeyEntry, $/m);
    expect(out).toMatch(/^rsa, PrivateKeyEntry, $/m);
    expect(out).toMatch(/^aes, SecretKeyEntry, $/m);
  });
  test('keytool brings keys of others to the token', async () => {
    for (const kind of ['rsa', 'ec'] as const) {
      const { pkcs12, password } = await makeOthersKey(token.folder, `others-${kind}`, kind);
      const from = ['-srckeystore', pkcs12, '-srcstoretype', 'PKCS12', '-srcstorepass', password];
      const to = ['-destkeystore', 'NONE', '-deststoretype', 'PKCS11', '-deststorepass', token.pin];
      const { code, out, complaints } = await java('keytool', '-importkeystore', ...from, ...to, ...provider());
      expect(code, out + complaints).toBe(0);
    }
    expect((await keytool('-list')).out.match(/^others-(?:rsa|ec), PrivateKeyEntry, $/gm)).toHaveLength(2);
    expect((await keytool('-certreq', '-alias', 'others-ec')).out).toContain('BEGIN NEW CERTIFICATE REQUEST');
  });
  test('keytool asks for a certificate', async () => {
    const { out } = await keytool('-certreq', '-alias', 'ec', '-file', join(token.folder, 'request'));
    expect(out).not.toContain('error');
    const checked = await run('openssl', ['req', '-in', join(token.folder, 'request'), '-noout', '-verify']);
    expect(checked.out + checked.complaints).toContain('self-signature verify OK');
  });
  test.each(steps)('%s', (step) => {
    const own = lines.filter((line) => line === `${step} ok` || line.startsWith(`${step} failed`));
    if (lacks(name, `Java: ${step}`)) expect(own.map((line) => line.startsWith(`${step} failed`))).toEqual([true]);
    else expect(own).toEqual([`${step} ok`]);
  });
});
