// A recovery key made in this browser, as the file that `dke recovery-key create` makes
// (addon/FORMAT.md, sections 1 and 6): its private half is under a key that the passphrase gives.
// Nothing of it is sent anywhere; the service gets the public half.

import { expand, extract } from '@noble/hashes/hkdf.js';
import { scryptAsync } from '@noble/hashes/scrypt.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { toHex } from '../api/hex.ts';
import { type Bytes, concat, type Key } from './hpke.ts';
import { additionalData, u32 } from './recovery-key.ts';

export interface MadeRecoveryKey {
  /** 267 bytes. */
  readonly file: Bytes;
  /** `dke-recovery-key+ID+BASE64`. */
  readonly publicKey: string;
}

const text = (value: string): Bytes => new TextEncoder().encode(value);

/** N = 2^17, r = 8, p = 1: 128 MiB for every guess. */
const cost = 17;
const r = 8;
const p = 1;
const kind = 10;
const epoch = u32(1);
const version = u32(1);
const tenant = new Uint8Array(16);

/**
 * The private key as a key record: HKDF-SHA-256 and AES-256-GCM under the key that the passphrase
 * gave.
 */
const sealRecord = async (kek: Bytes, object: Bytes, attributes: Bytes, value: Bytes): Promise<Bytes> => {
  const salt = crypto.getRandomValues(new Uint8Array(32));
  const derived = new Uint8Array(expand(sha256, extract(sha256, kek, salt), text('dke key record 1'), 76));
  const suite = Uint8Array.of(1);
  const flags = Uint8Array.of(0);
  const fields = [suite, flags, epoch, tenant, object, version, text('recovery-key'), attributes];
  const key = await crypto.subtle.importKey('raw', derived.subarray(0, 32), 'AES-GCM', false, ['encrypt']);
  const plain = concat(Uint8Array.of(kind), value);
  const sealed = await crypto.subtle.encrypt(
    { name: 'AES-GCM', iv: derived.subarray(32, 44), additionalData: additionalData(...fields) },
    key,
    plain,
  );
  plain.fill(0);
  const head = [text('DKE1'), suite, flags, epoch, tenant, object, version, salt];
  const record = concat(...head, derived.subarray(32, 44), derived.subarray(44, 76), new Uint8Array(sealed));
  derived.fill(0);
  return record;
};

/** Takes a second or two, for the passphrase. Fails if the browser does not support X25519. */
export const makeRecoveryKey = async (passphrase: string): Promise<MadeRecoveryKey> => {
  // The type covers a key and a pair of keys; for X25519, it is a pair.
  const pair = (await crypto.subtle.generateKey({ name: 'X25519' }, true, ['deriveBits'])) as unknown as {
    readonly publicKey: Key;
    readonly privateKey: Key;
  };
  const publicKey = new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey));
  const privateKey = new Uint8Array(await crypto.subtle.exportKey('pkcs8', pair.privateKey));
  const salt = crypto.getRandomValues(new Uint8Array(32));
  const typed = text(passphrase);
  const kek = new Uint8Array(await scryptAsync(typed, salt, { N: 2 ** cost, r, p, dkLen: 32 }));
  const head = concat(text('DKE-RECV'), u32(1), Uint8Array.of(cost, r, p, 1), salt, publicKey);
  try {
    const object = new Uint8Array(sha256(publicKey).subarray(0, 16));
    const file = concat(head, await sealRecord(kek, object, head, privateKey));
    const id = toHex(sha256(concat(text('dke recovery key 1\n'), publicKey))).slice(0, 16);
    const encoded = btoa(String.fromCharCode(1, ...publicKey));
    return { file, publicKey: `dke-recovery-key+${id}+${encoded}` };
  } finally {
    for (const secret of [privateKey, typed, kek]) secret.fill(0);
  }
};
