// OpenSC's pkcs11-tool, a program that is not ours, through the built library to the real service: what it is told, what it
// makes and what it prints. Each call is a process of its own, so what one has made the next finds on the token.
import { execFile } from 'node:child_process';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { library } from '../support/pkcs11-host.ts';
import { type Site, startSite } from '../support/site.ts';

const installed = (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, 'pkcs11-tool')));
if (!installed) console.log('skipped: pkcs11-tool is not installed (package opensc)');

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly complaints: string;
}

describe.runIf(installed)('pkcs11-tool', () => {
  let site: Site;
  let config: string;
  beforeAll(async () => {
    site = await startSite();
    const application = await registerApplication(site.api, 'tool', await createGroup(site.api, 'tools'));
    config = site.config('tool', application);
  });
  afterAll(() => site.end());

  const path = (name: string): string => join(site.folder, name);
  const run = (...args: string[]): Promise<Outcome> => {
    const environment = {
      ...process.env,
      DKE_PKCS11_CONF: config,
      DKE_PKCS11_SOCKET: site.socket,
      DKE_AGENT_LOG_DIR: site.logDirectory,
    };
    return new Promise((resolve) => {
      execFile('pkcs11-tool', ['--module', library, ...args], { env: environment }, (error, out, complaints) => {
        resolve({ code: error === null ? 0 : Number(error.code), out, complaints });
      });
    });
  };
  /** With a logged-in user, and no failure. */
  const done = async (...args: string[]): Promise<string> => {
    const outcome = await run('--login', '--pin', 'x', ...args);
    expect(outcome.code, outcome.complaints).toBe(0);
    expect(outcome.complaints).not.toMatch(/error:/);
    return outcome.out;
  };

  test('is told who the token is', async () => {
    const { out } = await run('--list-slots');
    expect(out).toMatch(/token label\s+: tool\n/);
    expect(out).toMatch(/token flags\s+: login required, rng, token initialized, PIN initialized/);
    const interfaces = await run('--list-interfaces');
    expect(interfaces.out).toContain('version: 3.0');
    expect(interfaces.out).toContain('version: 2.40');
  });
  test('lists the mechanisms, and none that gives padding oracles or is broken', async () => {
    const { out } = await run('--list-mechanisms');
    expect(out).toContain('AES-CBC-PAD, keySize={16,32}, encrypt, decrypt, wrap, unwrap');
    expect(out).toContain('RSA-PKCS-OAEP, keySize={2048,4096}, encrypt, decrypt, wrap, unwrap');
    expect(out).toContain('SHA1-RSA-PKCS, keySize={2048,4096}, verify\n');
    expect(out).not.toMatch(/RSA-X-509|MD5|DES|RSA-PKCS, .*decrypt/);
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
    writeFileSync(path('message'), 'a message');
    await done('--hash', '--mechanism', 'SHA256', '--input-file', path('message'), '--output-file', path('hash'));
    expect(readFileSync(path('hash'))).toEqual(createHash('sha256').update('a message').digest());
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
    const aes = ['--id', '01', '--mechanism', 'AES-CBC-PAD', '--iv', '00'.repeat(16)];
    await done('--encrypt', ...aes, '--input-file', path('message'), '--output-file', path('sealed'));
    expect(readFileSync(path('sealed'))).toHaveLength(16);
    await done('--decrypt', ...aes, '--input-file', path('sealed'), '--output-file', path('opened'));
    expect(readFileSync(path('opened'), 'utf8')).toBe('a message');
  });
  test('keeps an object of each sort that is no secret, and reads it back', async () => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const spki = publicKey.export({ format: 'der', type: 'spki' });
    writeFileSync(path('public.der'), spki);
    await done('--write-object', path('public.der'), '--type', 'pubkey', '--label', 'public', '--id', '02');
    await done('--write-object', path('message'), '--type', 'data', '--label', 'note');
    const listed = await done('--list-objects');
    expect(listed).toContain('Public Key Object; RSA 2048 bits');
    expect(listed).toMatch(/Data object \d+\n\s+label:\s+'note'/);
    await done('--read-object', '--type', 'pubkey', '--id', '02', '--output-file', path('read.der'));
    expect(readFileSync(path('read.der'))).toEqual(spki);
    await done('--read-object', '--type', 'data', '--label', 'note', '--output-file', path('note'));
    expect(readFileSync(path('note'), 'utf8')).toBe('a message');
  });
  test.each([
    ['SHA256-RSA-PKCS', 'rsa', undefined],
    ['ECDSA-SHA256', 'ec', 'openssl'],
  ] as const)('verifies %s with a public key of the token', async (mechanism, type, format) => {
    const { publicKey, privateKey } =
      type === 'rsa'
        ? generateKeyPairSync('rsa', { modulusLength: 2048 })
        : generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const id = type === 'rsa' ? '03' : '04';
    writeFileSync(path(`${type}.der`), publicKey.export({ format: 'der', type: 'spki' }));
    writeFileSync(path(`${type}.sig`), sign('sha256', Buffer.from('a message'), privateKey));
    await done('--write-object', path(`${type}.der`), '--type', 'pubkey', '--id', id);
    const args = ['--verify', '--id', id, '--mechanism', mechanism, '--signature-file', path(`${type}.sig`)];
    const forms = format === undefined ? [] : ['--signature-format', format];
    expect(await done(...args, ...forms, '--input-file', path('message'))).toContain('Signature is valid');
    writeFileSync(path('other'), 'another message');
    const wrong = await run('--login', '--pin', 'x', ...args, ...forms, '--input-file', path('other'));
    expect(wrong.out + wrong.complaints).toMatch(/Invalid signature|CKR_SIGNATURE_INVALID/);
  });
  test('sees nothing of the key without login, and destroys it with', async () => {
    expect((await run('--list-objects', '--type', 'secrkey')).out).not.toContain('kept');
    await done('--delete-object', '--type', 'secrkey', '--id', '01');
    expect(await done('--list-objects', '--type', 'secrkey')).toBe('');
  });
});
