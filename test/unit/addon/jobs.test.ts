// Work on separate threads: the calling thread continues, keys may be released and threads may end
// in the meantime.
import { generateKeyPairSync } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import type { AnyKeyRef } from '../../../addon/core.ts';
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
