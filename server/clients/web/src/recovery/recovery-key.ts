// The file of a recovery key (addon/FORMAT.md, section 6), opened in the browser: its private half
// is in a key record (section 1) under a key that a passphrase gives (scrypt). It becomes a key of
// the browser's own cryptography, which does not give it out again. Everything secret is bytes,
// wiped when it has been used; copies that the browser itself makes cannot be wiped.

import { expand, extract } from '@noble/hashes/hkdf.js';
import { scryptAsync } from '@noble/hashes/scrypt.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { toHex } from '../api/hex.ts';
import { type Bytes, concat, type Key, open, seal } from './hpke.ts';

const text = new TextEncoder();
const headLength = 80;
const recordHead = 122;
const privateKind = 10;
/**
 * Far above the value that the command writes; a higher number in a file would only block the
 * browser.
 */
const mostMemory = 1 << 30;

/** Why a file does not open, as shown to the user. */
export class RecoveryFault extends Error {
  override readonly name = 'RecoveryFault';
}

export interface RecoveryFile {
  /** 16 hexadecimal digits: the id of the key in the service. */
  readonly id: string;
  readonly publicKey: Bytes;
  readonly wantsPassphrase: boolean;
}

const startsWith = (bytes: Uint8Array, start: Uint8Array): boolean =>
  start.every((byte, index) => bytes[index] === byte);
export const u32 = (value: number): Bytes => {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
};
const numberAt = (bytes: Bytes, at: number): number => new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);

/** The unencrypted part of the file. Throws RecoveryFault. */
export const describeFile = (bytes: Bytes): RecoveryFile => {
  if (bytes.length <= headLength + recordHead || !startsWith(bytes, text.encode('DKE-RECV')))
    throw new RecoveryFault('This file is not a recovery key. Create one with dke recovery-key create.');
  if (numberAt(bytes, 8) !== 1)
    throw new RecoveryFault('This version does not support the format of this recovery key.');
  const publicKey = bytes.slice(48, headLength);
  return {
    id: toHex(sha256(concat(text.encode('dke recovery key 1\n'), publicKey))).slice(0, 16),
    publicKey,
    wantsPassphrase: bytes[15] === 1,
  };
};

const wrong = (): RecoveryFault =>
  new RecoveryFault('The recovery key cannot be opened: the passphrase is wrong, or the file was changed.');

const kekOf = async (file: Bytes, passphrase: Bytes): Promise<Uint8Array> => {
  const [cost = 0, r = 0, p = 0] = file.subarray(12, 15);
  if (cost < 1 || cost > 24 || r < 1 || p < 1 || 2 ** cost * r * 128 > mostMemory) throw wrong();
  return scryptAsync(passphrase, file.subarray(16, 48), { N: 2 ** cost, r, p, dkLen: 32, maxmem: mostMemory * 2 });
};

/** Additional data of a key record: each field after its length. */
export const additionalData = (...fields: readonly Uint8Array[]): Bytes =>
  concat(...fields.flatMap((field) => [u32(field.length), field]));

/** The value in a key record of suite 1 under the KEK; the caller wipes it. */
export const openRecord = async (
  kek: Uint8Array,
  record: Bytes,
  place: { readonly tenant: Bytes; readonly object: Bytes; readonly version: number; readonly epoch: number },
  recordClass: string,
  attributes: Uint8Array,
): Promise<{ readonly kind: number; readonly value: Bytes }> => {
  const derived = expand(sha256, extract(sha256, kek, record.subarray(46, 78)), text.encode('dke key record 1'), 76);
  try {
    const { tenant, object, version, epoch } = place;
    const head = concat(text.encode('DKE1'), Uint8Array.of(1, 0), u32(epoch), tenant, object, u32(version));
    const commitment = derived.subarray(44);
    // The head and the commitment are public parts of the file, so comparing them needs no constant
    // time.
    if (!startsWith(record, head) || !startsWith(record.subarray(90), commitment)) throw wrong();
    const aad = additionalData(
      Uint8Array.of(1),
      Uint8Array.of(0),
      u32(epoch),
      tenant,
      object,
      u32(version),
      text.encode(recordClass),
      attributes,
    );
    const key = await crypto.subtle.importKey('raw', new Uint8Array(derived.subarray(0, 32)), 'AES-GCM', false, [
      'decrypt',
    ]);
    const gcm = { name: 'AES-GCM', iv: new Uint8Array(derived.subarray(32, 44)), additionalData: aad };
    const opened = new Uint8Array(
      await crypto.subtle.decrypt(gcm, key, record.slice(recordHead)).catch((): never => {
        throw wrong();
      }),
    );
    const value = opened.slice(1);
    const [kind = 0] = opened;
    opened.fill(0);
    return { kind, value };
  } finally {
    derived.fill(0);
  }
};

/** The private half. The passphrase is wiped. Rejects with RecoveryFault. */
const openFile = async (file: Bytes, passphrase: Bytes): Promise<Key> => {
  const head = file.slice(0, headLength);
  let kek: Uint8Array;
  try {
    kek = await kekOf(file, passphrase);
  } finally {
    passphrase.fill(0);
  }
  try {
    const { kind, value } = await openRecord(
      kek,
      file.slice(headLength),
      { tenant: new Uint8Array(16), object: sha256(head.subarray(48)).slice(0, 16) as Bytes, version: 1, epoch: 1 },
      'recovery-key',
      head,
    );
    try {
      if (kind !== privateKind) throw wrong();
      return await crypto.subtle.importKey('pkcs8', value, 'X25519', false, ['deriveBits']).catch((error: unknown) => {
        if (error instanceof DOMException && error.name === 'NotSupportedError')
          throw new RecoveryFault('This browser does not support X25519. Use a newer browser, or the dke command.');
        throw wrong();
      });
    } finally {
      value.fill(0);
    }
  } finally {
    kek.fill(0);
  }
};

/** The service's answer when an opening starts. */
export interface Opening {
  readonly id: string;
  readonly snapshotId: string;
  readonly tenantId: string;
  readonly sealedKey: string;
  readonly publicKey: string;
}

const fromBase64 = (encoded: string): Bytes => Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0));
const toBase64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes));

/**
 * Opens the snapshot's key with the recovery key and seals it to the opening; the answer is not
 * secret. The passphrase is wiped.
 */
export const answerOpening = async (file: Bytes, passphrase: Bytes, opening: Opening): Promise<string> => {
  const { id: recoveryKeyId, publicKey } = describeFile(file);
  const own = await openFile(file, passphrase);
  const { id: openingId, snapshotId, tenantId } = opening;
  const snapshotKey = await open(own, publicKey, fromBase64(opening.sealedKey), {
    info: text.encode('dke snapshot key 1'),
    aad: text.encode(JSON.stringify({ recoveryKeyId, snapshotId, tenantId })),
  }).catch(() => {
    throw new RecoveryFault('This recovery key does not open the snapshot.');
  });
  try {
    const sealed = await seal(fromBase64(opening.publicKey), snapshotKey, {
      info: text.encode('dke snapshot opening 1'),
      aad: text.encode(JSON.stringify({ openingId, snapshotId })),
    });
    return toBase64(sealed);
  } finally {
    snapshotKey.fill(0);
  }
};
