// A process whose use of the core addon is checked from outside or from its own /proc:
// core-memory-child.ts <what>
//   limit   gives up its right to lock beyond the limit, and says what initialize answers
//   churn   makes and releases a million keys, and says how much memory was locked before, in the
//           middle and after
//   freed   frees most of what it has allocated, between what stays, and says how much memory the
//           process had at its height, then, and after what was freed was returned
//   canary  works with known secrets, then waits to be checked (canary.test.ts)

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString, writeHeapSnapshot } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { core } from '../../addon/core.ts';

const say = (report: object): void => void process.stdout.write(`${JSON.stringify(report)}\n`);

/** In KiB, from /proc/self/status. */
const lockedKib = (): number => Number(/^VmLck:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);
const resident = (): number => Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);

const limit = (): void => {
  if (process.getuid?.() === 0) {
    process.setgroups?.([]);
    process.setgid?.(65_533);
    process.setuid?.(65_533);
  }
  try {
    core.initialize();
    say({ initialized: true });
  } catch (error) {
    const { name, code, message } = error as { readonly name: string; readonly code: string; readonly message: string };
    let keys = 'made';
    try {
      core.generateAes(256);
    } catch (refused) {
      keys = (refused as { readonly code: string }).code;
    }
    say({ name, code, message, keys, unlocked: core.initialize({ allowUnlocked: true }).locked });
  }
};

const churn = (): void => {
  core.initialize({ allowUnlocked: true });
  const block = Buffer.alloc(64);
  const round = (count: number): void => {
    for (let index = 0; index < count; index++) {
      const key = core.generateAes(256);
      if (index % 10 === 0) {
        core.cipher(key, 'encrypt', { algorithm: 'aes-cbc', iv: block.subarray(0, 16) }, block, block);
        core.mac(key, { algorithm: 'hmac', digest: 'sha256' }, block, block);
        core.operationCancel(core.cipherBegin(key, 'decrypt', { algorithm: 'aes-ecb' }));
      }
      core.release(key);
    }
  };
  round(10_000);
  const before = { lockedKib: lockedKib(), ...core.memoryStatus() };
  const start = resident();
  round(1_000_000);
  say({ before, after: { lockedKib: lockedKib(), ...core.memoryStatus() }, grown: resident() - start });
};

const freed = async (): Promise<void> => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const pieces = Array.from({ length: 4_000 }, () => Buffer.allocUnsafeSlow(48 * 1024).fill(1));
  const [height, held] = [resident(), process.memoryUsage().arrayBuffers];
  const stays = pieces.filter((_, at) => at % 20 === 0);
  pieces.length = 0;
  while (process.memoryUsage().arrayBuffers > held / 2) {
    collect();
    await setImmediate();
  }
  const kept = resident();
  const returned = await core.returnFreeMemory();
  say({ height, kept, returned, after: resident(), stays: stays.length });
};

/**
 * The secrets are derived from a seed, so that their bytes are in no source text, argument or
 * environment.
 */
const secretOf = (seed: Buffer, number: number): Buffer => Buffer.from(seed.map((byte) => byte ^ (0xa0 + number)));

const canary = async (): Promise<void> => {
  core.initialize({ allowUnlocked: true });
  const [input] = (await once(process.stdin, 'data')) as [Buffer];
  const seed = Buffer.from(input.toString('latin1').trim(), 'hex');
  const take = <T>(number: number, use: (secret: Buffer) => T): T => {
    const secret = secretOf(seed, number);
    try {
      return use(secret);
    } finally {
      core.wipe(secret);
    }
  };
  const aes = take(1, (secret) => core.importSecret('aes', secret));
  const generic = take(2, (secret) => core.importSecret('generic', secret));
  const kek = take(3, (secret) => core.importSecret('kek', secret));
  const edwards = take(4, (secret) => {
    const pkcs8 = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), secret]);
    try {
      return core.importPrivateKey(pkcs8);
    } finally {
      core.wipe(pkcs8);
    }
  });
  const body = take(5, (secret) => {
    const head =
      '{"requestMetadata":{"kmsRequestId":"","kmsOperation":"","awsPrincipalArn":"","kmsKeyArn":""},"encryptionAlgorithm":"AES_GCM","plaintext":"';
    const request = Buffer.alloc(head.length + 46, 0x20);
    request.write(head);
    // Without a string in between, as the product does.
    const alphabet = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/');
    for (let at = 0; at < 43; at++) {
      const bit = at * 6;
      const pair = ((secret[bit >> 3] ?? 0) << 8) | (secret[(bit >> 3) + 1] ?? 0);
      request[head.length + at] = alphabet[(pair >> (10 - (bit & 7))) & 63] ?? 0;
    }
    request.write('="}', head.length + 43);
    try {
      const parsed = core.xksParse('encrypt', request);
      if (!parsed.ok) throw new Error(parsed.message);
      return parsed.body;
    } finally {
      core.wipe(request);
    }
  });

  const block = Buffer.alloc(64);
  const out = Buffer.alloc(96);
  const context = {
    tenant: block.subarray(0, 16),
    object: block.subarray(0, 16),
    version: 1,
    epoch: 1,
    class: 'c',
    attributes: block,
  };
  const own = core.generateHpkeKey();
  for (let round = 0; round < 50; round++) {
    core.cipher(aes, 'encrypt', { algorithm: 'aes-gcm', iv: block.subarray(0, 12), tagLength: 16 }, block, out);
    core.cipher(aes, 'decrypt', { algorithm: 'aes-cbc', iv: block.subarray(0, 16) }, block, out);
    core.mac(aes, { algorithm: 'aes-cmac' }, block, out);
    core.mac(generic, { algorithm: 'hmac', digest: 'sha256' }, block, out);
    core.release(core.sigv4SigningKey(generic, '20261121', 'r', 's'));
    core.release(core.hkdf(generic, 'sha256', block, block, 'aes', 32));
    for (const key of [aes, generic, edwards])
      core.release(core.openRecord(kek, context, core.sealRecord(kek, context, key)));
    for (const [key, kind] of [
      [aes, 'aes'],
      [generic, 'generic'],
      [edwards, 'private'],
    ] as const)
      core.release(
        core.hpkeOpenKey(own, block, block, core.hpkeSealKey(core.hpkePublicKey(own), block, block, key), kind),
      );
    core.wrapKey(aes, { way: 'key-wrap', padded: true }, generic);
    core.sign(edwards, { algorithm: 'ed25519' }, block);
    try {
      core.openRecord(kek, context, Buffer.alloc(171));
    } catch {}
  }
  core.release(own);
  core.xksEncrypt(body, aes, 1, block.subarray(0, 32));
  const again = take(5, (secret) => core.importSecret('generic', secret));
  core.checkValue(again);
  // What must be found, or looking finds nothing: a decoy in plain memory, and one in a string.
  const decoy = secretOf(seed, 6);
  const text = secretOf(seed, 7).toString('hex');
  const snapshot = process.argv[3];
  if (snapshot !== undefined) writeHeapSnapshot(snapshot);
  say({ pid: process.pid, keys: core.memoryStatus().keys });
  await once(process.stdin, 'end');
  say({ decoy: decoy.length, text: text.length });
};

const what = process.argv[2];
if (what === 'limit') limit();
else if (what === 'churn') churn();
else if (what === 'freed') await freed();
else if (what === 'canary') await canary();
else throw new Error('limit, churn, freed or canary');
