// Mozilla's NSS, by modutil, symkeyutil and certutil, through the built library to the real
// service, and through SoftHSM2: the module in a database of NSS, symmetric keys made and listed,
// pairs made, and certificates that they sign.
import { randomBytes, X509Certificate } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeOthersKey } from '../support/others-key.ts';
import { presentTokens, startTokens, type Token } from '../support/token.ts';
import { installed, run } from '../support/tools.ts';
import { lacks } from './differences.ts';

describe.runIf(installed('libnss3-tools', 'modutil', 'symkeyutil', 'certutil', 'pk12util')).each(presentTokens)(
  'NSS with %s',
  (name) => {
    let token: Token;
    let database: string;
    beforeAll(async () => {
      token = await startTokens[name]();
      mkdirSync(join(token.folder, 'nss'));
      database = `sql:${join(token.folder, 'nss')}`;
      writeFileSync(join(token.folder, 'pin'), token.pin);
      writeFileSync(join(token.folder, 'noise'), randomBytes(64));
      await done('certutil', '-N', '-d', database, '--empty-password');
    });
    afterAll(() => token.end());

    const done = async (program: string, ...args: string[]): Promise<string> => {
      const { code, out, complaints } = await run(program, args, token);
      expect(code, out + complaints).toBe(0);
      return out + complaints;
    };
    const onToken = (): string[] => ['-d', database, '-h', 'tool', '-f', join(token.folder, 'pin')];

    test('modutil adds the module and shows the token', async () => {
      const added = await done('modutil', '-dbdir', database, '-force', '-add', 'token', '-libfile', token.module);
      expect(added).toContain('Module "token" added to database.');
      const shown = await done('modutil', '-dbdir', database, '-list', 'token');
      expect(shown).toMatch(/Token Name: tool\s/);
      expect(shown).toMatch(/Access: NOT Write Protected\n\s+Login Type: Login required\n\s+User Pin: Initialized\n/);
      expect(shown).toMatch(lacks(name, 'interface 3.0') ? /PKCS #11 Version 2\.40\n/ : /PKCS #11 Version 3\.0\n/);
    });
    test('symkeyutil makes keys, lists them without their values, and deletes them', async () => {
      for (const [label, bytes] of [
        ['nss 256', '32'],
        ['nss 128', '16'],
      ] as const) {
        await done('symkeyutil', '-K', '-n', label, '-t', 'aes', '-s', bytes, ...onToken());
      }
      const listed = await done('symkeyutil', '-L', ...onToken());
      expect(listed).toMatch(/nss 256\s+32\s+256\s+aes\s+<restricted>\n/);
      expect(listed).toMatch(/nss 128\s+16\s+128\s+aes\s+<restricted>\n/);
      await done('symkeyutil', '-D', '-n', 'nss 128', ...onToken());
      expect(await done('symkeyutil', '-L', ...onToken())).not.toContain('nss 128');
    });
    test.each([
      ['rsa', ['-g', '2048'], 'rsa'],
      ['ec', ['-q', 'nistp256'], 'ec'],
    ] as const)('certutil makes a %s pair and a certificate that it signs', async (type, size, kind) => {
      const certificate = ['-n', `nss ${type}`, '-s', `CN=nss ${type}`, '-x', '-t', 'u,u,u', '-k', type, ...size];
      await done('certutil', '-S', ...onToken(), '-z', join(token.folder, 'noise'), ...certificate);
      const made = new X509Certificate(await done('certutil', '-L', ...onToken(), '-n', `tool:nss ${type}`, '-a'));
      expect(made.publicKey.asymmetricKeyType).toBe(kind);
      expect(made.verify(made.publicKey)).toBe(true);
      expect(await done('certutil', '-K', ...onToken())).toMatch(
        new RegExp(`${type}\\s+[0-9a-f]{40}\\s+tool:nss ${type}\\n`),
      );
    });
    test.each(['rsa', 'ec'] as const)('pk12util brings a %s key of others to the token', async (kind) => {
      const { pkcs12, password, read } = await makeOthersKey(token.folder, `others ${kind}`, kind);
      const to = ['-d', database, '-h', 'tool', '-k', join(token.folder, 'pin')];
      expect(await done('pk12util', '-i', pkcs12, '-W', password, ...to)).toContain('PKCS12 IMPORT SUCCESSFUL');
      const shown = await done('certutil', '-L', ...onToken(), '-n', `tool:others ${kind}`, '-a');
      expect(new X509Certificate(shown).fingerprint256).toBe(read().fingerprint256);
      expect(await done('certutil', '-K', ...onToken())).toMatch(
        new RegExp(`${kind}\\s+[0-9a-f]{40}\\s+.*others ${kind}\\n`),
      );
    });
    test('with the token as NSS’s default for RSA, certificates and signed messages verify', async () => {
      const noise = join(token.folder, 'noise');
      const made = ['-S', ...onToken(), '-z', noise, '-k', 'rsa', '-g', '2048', '-t', 'CTu,CTu,CTu'];
      await done('certutil', ...made, '-n', 'nss ca', '-s', 'CN=nss ca', '-x', '-m', '1');
      const leaf = ['-n', 'nss leaf', '-s', 'CN=nss leaf', '-7', 'leaf@example.com', '-c', 'tool:nss ca', '-m', '2'];
      await done('certutil', ...made, ...leaf);
      // modutil changes the defaults and still exits with 1, with either token.
      const asDefault = async (flag: '-default' | '-undefault'): Promise<void> => {
        const defaults = ['-dbdir', database, '-force', flag, 'token', '-mechanisms', 'RSA'];
        const { out, complaints } = await run('modutil', defaults, token);
        expect(out + complaints).toContain('Successfully changed defaults.');
      };
      await asDefault('-default');
      try {
        const listed = await done('modutil', '-dbdir', database, '-list', 'token');
        expect(listed).toMatch(/Default Mechanism Flags: RSA\n/);
        // `-e`: the signature as well.
        const checked = await done('certutil', '-V', ...onToken(), '-n', 'tool:nss leaf', '-u', 'S', '-e');
        expect(checked).toContain('certificate is valid');
        const [message, signed] = ['message', 'signed'].map((name) => join(token.folder, name)) as [string, string];
        writeFileSync(message, 'signed by the token, verified by the token');
        const pin = ['-d', database, '-f', join(token.folder, 'pin')];
        await done('cmsutil', '-S', ...pin, '-N', 'tool:nss leaf', '-i', message, '-o', signed);
        const opened = await done('cmsutil', '-D', ...pin, '-i', signed);
        expect(opened).toContain('signed by the token, verified by the token');
      } finally {
        await asDefault('-undefault');
      }
    });
    test('certutil deletes a certificate with its key', async () => {
      await done('certutil', '-F', ...onToken(), '-n', 'tool:nss rsa');
      expect(await done('certutil', '-L', ...onToken())).not.toContain('nss rsa');
      expect(await done('certutil', '-K', ...onToken())).not.toContain('nss rsa');
    });
  },
);
