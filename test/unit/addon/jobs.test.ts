// Work on separate threads: the calling thread continues, keys may be released and threads may end
// in the meantime.
import { argon2Sync, generateKeyPairSync, randomBytes } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import { type AnyKeyRef, CoreError } from '../../../addon/core.ts';
import { core } from '../../support/core-keys.ts';

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 4096 });
const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'der' });
const message = Buffer.from('a message');
const pkcs1 = { algorithm: 'rsa-pkcs1', digest: 'sha256' } as const;
const oaep = { padding: 'oaep', digest: 'sha256', mgfDigest: 'sha256', label: Buffer.from('label') } as const;

/** What this thread has done when `work` is over, in calls of the core. */
const callsDuring = async (work: () => Promise<unknown>): Promise<number> => {
  let over = false;
  const outcome = work().finally(() => {
    over = true;
  });
  const out = Buffer.alloc(32);
  let calls = 0;
  while (!over) {
    core.digest('sha256', message, out);
    calls += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await outcome;
  return calls;
};

describe('a thread answers others while a job runs', () => {
  const wrapping = core.generateAes(256);
  const key = core.importPrivateKey(pkcs8);
  const sealed = core.hpkeSealKey(core.hpkePublicKey(core.generateHpkeKey()), message, message, key);
  const hpke = core.generateHpkeKey();
  const toHpke = core.hpkeSealKey(core.hpkePublicKey(hpke), message, message, key);
  const encrypted = core.rsaEncrypt(key, oaep, message);
  const wrappedSecret = core.wrapKey(key, { way: 'oaep', oaep }, wrapping);
  const iv = Buffer.alloc(16, 1);
  const kwp = { way: 'key-wrap', padded: true } as const;
  const cbc = { way: 'cipher', cipher: { algorithm: 'aes-cbc-pad', iv } } as const;
  const release = async (made: Promise<AnyKeyRef>): Promise<void> => core.release(await made);
  test.each([
    ['a search for primes', () => release(core.generateRsaLater(2048))],
    ['an import', () => release(core.importPrivateKeyLater(pkcs8))],
    ['key wrap', () => release(core.unwrapKeyLater(wrapping, kwp, core.wrapKey(wrapping, kwp, key), 'private'))],
    ['a cipher', () => release(core.unwrapKeyLater(wrapping, cbc, core.wrapKey(wrapping, cbc, key), 'private'))],
    ['OAEP', () => release(core.unwrapKeyLater(key, { way: 'oaep', oaep }, wrappedSecret, 'aes'))],
    ['HPKE', () => release(core.hpkeOpenKeyLater(hpke, message, message, toHpke, 'private'))],
    ['a signature', () => core.signLater(key, pkcs1, message)],
    ['a decryption', () => core.rsaDecryptLater(key, oaep, encrypted)],
    ['a password', async () => void (await core.argon2idLater(message, message, 65_536, 3, 32)).fill(0)],
    ['a passphrase', () => release(core.scryptKekLater(message, message, 14, 8, 1))],
  ])('%s', async (_name, work) => {
    const before = core.memoryStatus();
    // A job may be over before this thread has its turn; without threads, that would be so each
    // time.
    await expect.poll(() => callsDuring(work), { interval: 0 }).toBeGreaterThan(1);
    expect(core.memoryStatus()).toEqual(before);
  });
  test('what does not open is refused as it is at once', async () => {
    await expect(
      core.hpkeOpenKeyLater(
        hpke,
        message,
        message,
        core.hpkeSealKey(core.hpkePublicKey(hpke), message, message, wrapping),
        'private',
      ),
    ).rejects.toMatchObject({ code: 'authentication-failed' });
    expect(() => core.hpkeOpenKeyLater(hpke, message, message, sealed, 'private')).toThrow('does not authenticate');
    await expect(core.importPrivateKeyLater(Buffer.alloc(100))).rejects.toMatchObject({ code: 'bad-argument' });
    expect(() => core.importPrivateKeyLater(Buffer.alloc(20_000))).toThrow('PKCS#8');
    await expect(core.generateRsaLater(1024)).rejects.toMatchObject({ code: 'bad-argument' });
    expect(() => core.signLater(wrapping, pkcs1, message)).toThrow('another type');
  });
});

test('what is made later is what is made at once', async () => {
  const key = await core.importPrivateKeyLater(pkcs8);
  expect(core.exportPrivateKey(key)).toEqual(pkcs8);
  expect(await core.signLater(key, pkcs1, message)).toEqual(core.sign(key, pkcs1, message));
  expect(await core.rsaDecryptLater(key, oaep, core.rsaEncrypt(key, oaep, message))).toEqual(message);
  core.release(key);
  const now = core.scryptKek(message, message, 10, 8, 1);
  const later = await core.scryptKekLater(message, message, 10, 8, 1);
  const values = [now, later].map((kek) => {
    const derived = core.hkdf(kek, 'sha256', message, message, 'generic', 32);
    const value = core.exportSecret(derived);
    for (const made of [kek, derived]) core.release(made);
    return value;
  });
  expect(values[0]).toEqual(values[1]);
});

describe('Argon2id', () => {
  // The test of the reference implementation for version 1.3: 2 passes over 64 MiB in one lane.
  test('gives the published tag', async () => {
    const tag = await core.argon2idLater(Buffer.from('password'), Buffer.from('somesalt'), 65_536, 2, 32);
    expect(tag.toString('hex')).toBe('09316115d5cf24ed5a15a31a3ba326e5cf32edc24702987c02b6566f61913cf7');
  });
  test('gives what another implementation gives, of any password', async () => {
    for (const [length, memory, passes, bytes] of [
      [0, 8, 1, 16],
      [1, 64, 3, 32],
      [128, 1_024, 2, 64],
    ] as const) {
      const [password, salt] = [randomBytes(length), randomBytes(16)];
      const parameters = { message: password, nonce: salt, parallelism: 1, tagLength: bytes, memory, passes };
      expect(await core.argon2idLater(password, salt, memory, passes, bytes)).toEqual(
        argon2Sync('argon2id', parameters),
      );
    }
  });
  test.each([
    [7, 1, 32],
    [2 ** 20 + 1, 1, 32],
    [8, 0, 32],
    [8, 101, 32],
    [8, 1, 15],
    [8, 1, 65],
    [8.5, 1, 32],
  ])('refuses %s KiB, %s passes and %s bytes', (memory, passes, bytes) => {
    expect(() => core.argon2idLater(message, message, memory, passes, bytes)).toThrow(CoreError);
  });
});

test('a key that is released while a job uses it serves the job, and nothing else', async () => {
  const key = core.importPrivateKey(pkcs8);
  const expected = core.sign(key, pkcs1, message);
  const jobs = [1, 2, 3].map(() => core.signLater(key, pkcs1, message));
  core.release(key);
  expect(() => core.sign(key, pkcs1, message)).toThrow('no such key');
  for (const job of jobs) expect(await job).toEqual(expected);
});

test('the arguments of a job are its own', async () => {
  const key = core.importPrivateKey(pkcs8);
  const input = Buffer.from(message);
  const expected = core.sign(key, pkcs1, message);
  const signature = core.signLater(key, pkcs1, input);
  input.fill(0);
  expect(await signature).toEqual(expected);
  const copy = Buffer.from(pkcs8);
  const made = core.importPrivateKeyLater(copy);
  copy.fill(0);
  expect(core.exportPrivateKey(await made)).toEqual(pkcs8);
  core.release(await made);
  core.release(key);
});

test('a worker that is terminated ends its jobs, and their keys were never there', async () => {
  const before = core.memoryStatus();
  for (let round = 0; round < 5; round++) {
    const worker = new Worker(new URL('../../support/job-worker.ts', import.meta.url));
    await new Promise((resolve) => worker.once('message', resolve));
    await worker.terminate();
    expect(core.memoryStatus()).toEqual(before);
  }
});
