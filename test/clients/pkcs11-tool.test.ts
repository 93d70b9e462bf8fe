// OpenSC's pkcs11-tool, through the built library to the real service, and through SoftHSM2: its
// input, its objects and its output. Each call is a separate process, so the next one finds the
// objects on the token. Every result is checked with node:crypto.
import {
  constants,
  createHash,
  createHmac,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  publicEncrypt,
  randomBytes,
  sign,
  verify,
} from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { presentTokens, startTokens, type Token } from '../support/token.ts';
import { installed, type Outcome, run } from '../support/tools.ts';
import { lacks } from './differences.ts';

const spy = '/usr/lib/x86_64-linux-gnu/pkcs11-spy.so';
const message = Buffer.from('a message');

describe.runIf(installed('opensc', 'pkcs11-tool')).each(presentTokens)('pkcs11-tool with %s', (name) => {
  let token: Token;
  beforeAll(async () => {
    token = await startTokens[name]();
    writeFileSync(path('message'), message);
  });
  afterAll(() => token.end());

  const path = (file: string): string => join(token.folder, file);
  const tool = (...args: string[]): Promise<Outcome> =>
    run('pkcs11-tool', ['--module', token.module, '--token-label', token.label, ...args], token);
  /** With the user logged in, and no failure. */
  const done = async (...args: string[]): Promise<string> => {
    const outcome = await tool('--login', '--pin', token.pin, ...args);
    expect(outcome.code, outcome.complaints).toBe(0);
    expect(outcome.complaints).not.toMatch(/error:/);
    return outcome.out;
  };
  /** What a call wrote that takes `input`. */
  const through = async (input: Uint8Array, ...args: string[]): Promise<Buffer> => {
    writeFileSync(path('in'), input);
    await done(...args, '--input-file', path('in'), '--output-file', path('out'));
    return readFileSync(path('out'));
  };
  const publicKey = async (id: string) => {
    await done('--read-object', '--type', 'pubkey', '--id', id, '--output-file', path('public.der'));
    return createPublicKey({ key: readFileSync(path('public.der')), format: 'der', type: 'spki' });
  };

  test('is told who the token is', async () => {
    const { out } = await run('pkcs11-tool', ['--module', token.module, '--list-slots'], token);
    expect(out).toMatch(/token label\s+: tool\n/);
    expect(out).toMatch(/token flags\s+: login required, rng, token initialized, PIN initialized/);
    const interfaces = await run('pkcs11-tool', ['--module', token.module, '--list-interfaces'], token);
    if (!lacks(name, 'interface 3.0')) expect(interfaces.out).toMatch(/version: 3\.0[\s\S]*version: 2\.40/);
  });
  test.runIf(installed('opensc-pkcs11', spy))('is looked over the shoulder by pkcs11-spy', async () => {
    const environment = { ...token.environment, PKCS11SPY: token.module, PKCS11SPY_OUTPUT: path('spied') };
    const { code, out, complaints } = await run('pkcs11-tool', ['--module', spy, '--list-slots'], { environment });
    expect(code, complaints).toBe(0);
    expect(out).toMatch(/token label\s+: tool\n/);
    expect(readFileSync(path('spied'), 'utf8')).toContain('C_GetTokenInfo');
  });
  test('lists the mechanisms', async () => {
    const { out } = await tool('--list-mechanisms');
    expect(out).toMatch(/AES-CBC-PAD, keySize=\{16,32\}, encrypt, decrypt/);
    expect(out).toMatch(/AES-CMAC, keySize=\{16,32\}, sign, verify\n/);
    expect(out).toMatch(/RSA-PKCS-OAEP, keySize=\{\d+,\d+\}, encrypt, decrypt, wrap, unwrap/);
    if (!lacks(name, 'pkcs11-tool: raw RSA')) return;
    expect(out).toContain('SHA1-RSA-PKCS, keySize={2048,4096}, verify\n');
    expect(out, 'padding oracles, broken ciphers').not.toMatch(/RSA-X-509|MD5|DES|RSA-PKCS, .*decrypt/);
  });
  test('finds no error in its own test', async () => {
    const out = await done('--test');
    expect(out).toContain('C_SeedRandom() and C_GenerateRandom():\n  seems to be OK');
    expect(out).toContain('SHA256: OK');
    expect(out).toMatch(/No errors\n/);
  });
  test('gets random bytes and digests', async () => {
    await done('--generate-random', '32', '--output-file', path('random'));
    expect(readFileSync(path('random'))).toHaveLength(32);
    const digest = createHash('sha256').update(message).digest();
    expect(await through(message, '--hash', '--mechanism', 'SHA256')).toEqual(digest);
  });

  test('makes a key that stays, and another process encrypts with it', async () => {
    const made = await done(
      '--keygen',
      '--key-type',
      'AES:32',
      '--label',
      'kept',
      '--id',
      '01',
      '--sensitive',
      '--private',
    );
    expect(made).toContain('Secret Key Object; AES length 32');
    expect(made).toContain('Access:     sensitive, always sensitive, never extractable, local');
    for (const [mechanism, data] of [
      ['AES-CBC-PAD', message],
      ['AES-CBC', randomBytes(64)],
      ['AES-ECB', randomBytes(64)],
    ] as const) {
      const args = ['--id', '01', '--mechanism', mechanism, '--iv', '0f'.repeat(16)];
      const sealed = await through(data, '--encrypt', ...args);
      expect(sealed.equals(data)).toBe(false);
      expect(await through(sealed, '--decrypt', ...args), mechanism).toEqual(data);
    }
  });
  test('keeps an object of each sort that is not a secret, and reads it back', async () => {
    const { publicKey: other } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const spki = other.export({ format: 'der', type: 'spki' });
    writeFileSync(path('other.der'), spki);
    await done('--write-object', path('other.der'), '--type', 'pubkey', '--label', 'public', '--id', '02');
    await done('--write-object', path('message'), '--type', 'data', '--label', 'note');
    const listed = await done('--list-objects');
    expect(listed).toContain('Public Key Object; RSA 2048 bits');
    expect(listed).toMatch(/Data object \d+\n\s+label:\s+'note'/);
    await done('--read-object', '--type', 'pubkey', '--id', '02', '--output-file', path('read.der'));
    expect(readFileSync(path('read.der'))).toEqual(spki);
    await done('--read-object', '--type', 'data', '--label', 'note', '--output-file', path('note'));
    expect(readFileSync(path('note'))).toEqual(message);
  });

  describe('pairs', () => {
    beforeAll(async () => {
      const rsa = await done('--keypairgen', '--key-type', 'rsa:2048', '--label', 'rsa', '--id', '10');
      expect(rsa).toMatch(/Private Key Object; RSA \n[\s\S]*Usage:\s+decrypt, sign, unwrap\n/);
      expect(rsa).toContain('Access:     sensitive, always sensitive, never extractable, local');
      await done('--keypairgen', '--key-type', 'EC:prime256v1', '--label', 'ec', '--id', '11');
    });

    test.each([
      ['SHA256-RSA-PKCS', 'sha256', {}],
      ['SHA384-RSA-PKCS', 'sha384', {}],
      ['SHA512-RSA-PKCS', 'sha512', {}],
      ['SHA256-RSA-PKCS-PSS', 'sha256', { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }],
    ] as const)('sign: %s', async (mechanism, hash, padding) => {
      const args = ['--id', '10', '--mechanism', mechanism];
      const signature = await through(message, '--sign', ...args);
      expect(verify(hash, message, { key: await publicKey('10'), ...padding }, signature)).toBe(true);
      writeFileSync(path('signature'), signature);
      const checks = ['--verify', ...args, '--signature-file', path('signature'), '--input-file'];
      expect(await done(...checks, path('message'))).toContain('Signature is valid');
      writeFileSync(path('other'), 'another message');
      const wrong = await tool('--login', '--pin', token.pin, ...checks, path('other'));
      expect(wrong.out + wrong.complaints).toMatch(/Invalid signature|CKR_SIGNATURE_INVALID/);
    });
    test('sign: ECDSA over a digest', async () => {
      const digest = createHash('sha256').update(message).digest();
      const args = ['--id', '11', '--mechanism', 'ECDSA', '--signature-format', 'openssl'];
      const signature = await through(digest, '--sign', ...args);
      expect(verify('sha256', message, await publicKey('11'), signature)).toBe(true);
    });
    test.runIf(!lacks(name, 'pkcs11-tool: ECDSA over the message'))('sign: ECDSA-SHA256 over the message', async () => {
      const args = ['--id', '11', '--mechanism', 'ECDSA-SHA256', '--signature-format', 'openssl'];
      const signature = await through(message, '--sign', ...args);
      expect(verify('sha256', message, await publicKey('11'), signature)).toBe(true);
    });
    test('verify what others signed', async () => {
      const { publicKey: other, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
      writeFileSync(path('theirs.der'), other.export({ format: 'der', type: 'spki' }));
      writeFileSync(path('theirs.sig'), sign('sha256', message, privateKey));
      await done('--write-object', path('theirs.der'), '--type', 'pubkey', '--id', '13');
      const args = ['--verify', '--id', '13', '--mechanism', 'SHA256-RSA-PKCS', '--signature-file', path('theirs.sig')];
      expect(await done(...args, '--input-file', path('message'))).toContain('Signature is valid');
    });
    test('decrypt with OAEP', async () => {
      const key = { key: await publicKey('10'), padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha1' };
      const args = ['--decrypt', '--id', '10', '--mechanism', 'RSA-PKCS-OAEP', '--hash-algorithm', 'SHA-1'];
      expect(await through(publicEncrypt(key, message), ...args)).toEqual(message);
    });
    test('derive with ECDH', async () => {
      const peer = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const spki = peer.publicKey.export({ format: 'der', type: 'spki' });
      const secret = await through(spki, '--derive', '--id', '11', '--mechanism', 'ECDH1-DERIVE');
      const theirs = diffieHellman({ privateKey: peer.privateKey, publicKey: await publicKey('11') });
      expect(secret.equals(theirs)).toBe(true);
    });
    test.runIf(!lacks(name, 'pkcs11-tool: own test'))('pass the tool’s own test', async () => {
      const out = await done('--test');
      expect(out).toMatch(/testing key 0 \(rsa\)\n\s+RSA-PKCS: OK/);
      expect(out).toContain('No errors\n');
    });
  });

  test('wraps a key, and unwraps it to one that encrypts alike', async () => {
    await done('--keygen', '--key-type', 'AES:32', '--label', 'wraps', '--id', '20', '--usage-wrap');
    await done('--keygen', '--key-type', 'AES:32', '--label', 'goes', '--id', '21', '--extractable');
    const mechanism = ['--mechanism', 'AES-KEY-WRAP'];
    await done('--wrap', ...mechanism, '--id', '20', '--application-id', '21', '--output-file', path('wrapped'));
    expect(readFileSync(path('wrapped'))).toHaveLength(40);
    const into = ['--key-type', 'AES:', '--application-id', '22', '--application-label', 'back'];
    expect(await done('--unwrap', ...mechanism, '--id', '20', '--input-file', path('wrapped'), ...into)).toContain(
      'Key unwrapped',
    );
    const block = randomBytes(16);
    const [before, after] = [
      await through(block, '--encrypt', '--mechanism', 'AES-ECB', '--id', '21'),
      await through(block, '--encrypt', '--mechanism', 'AES-ECB', '--id', '22'),
    ];
    expect(after).toEqual(before);
  });
  test('signs with a secret, whose value it shows when that may be read', async () => {
    const kind = ['--key-type', 'GENERIC:64', '--extractable', '--usage-sign'];
    const made = await done('--keygen', ...kind, '--label', 'mac', '--id', '30');
    const [, value = ''] = /VALUE:\s+([0-9a-f\s]+)\n\s+label/.exec(made) ?? [];
    const mac = await through(message, '--sign', '--id', '30', '--mechanism', 'SHA256-HMAC');
    expect(mac).toEqual(
      createHmac('sha256', Buffer.from(value.replaceAll(/\s/g, ''), 'hex'))
        .update(message)
        .digest(),
    );
  });
  test('sees nothing of the key without login, and destroys it with', async () => {
    expect((await tool('--list-objects', '--type', 'secrkey')).out).not.toContain('kept');
    await done('--delete-object', '--type', 'secrkey', '--id', '01');
    expect(await done('--list-objects', '--type', 'secrkey')).not.toContain('kept');
  });
});
