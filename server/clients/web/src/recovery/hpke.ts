// HPKE (RFC 9180), mode_base, single-shot, with DHKEM(X25519, HKDF-SHA256) 0x0020, HKDF-SHA256
// 0x0001 and AES-256-GCM 0x0002: the one suite of addon/FORMAT.md, section 4, on the browser's own
// X25519 and AES. `sealed` is the encapsulated key, the ciphertext and its tag.

import { expand, extract } from '@noble/hashes/hkdf.js';
import { sha256 } from '@noble/hashes/sha2.js';

export type Bytes = Uint8Array<ArrayBuffer>;
/** A key of the browser's own cryptography. */
export type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

const text = new TextEncoder();
export const concat = (...parts: readonly Uint8Array[]): Bytes => {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
};
const u16 = (value: number): Bytes => Uint8Array.of(value >> 8, value & 0xff);

const encapsulated = 32;
const kemSuite = concat(text.encode('KEM'), u16(0x0020));
const hpkeSuite = concat(text.encode('HPKE'), u16(0x0020), u16(0x0001), u16(0x0002));
const version = text.encode('HPKE-v1');
const none = new Uint8Array(0);

const labeledExtract = (suite: Bytes, salt: Uint8Array, label: string, value: Uint8Array): Uint8Array => {
  const labeled = concat(version, suite, text.encode(label), value);
  const made = extract(sha256, labeled, salt);
  labeled.fill(0);
  return made;
};
const labeledExpand = (suite: Bytes, prk: Uint8Array, label: string, info: Uint8Array, length: number): Bytes =>
  new Uint8Array(expand(sha256, prk, concat(u16(length), version, suite, text.encode(label), info), length));

/**
 * The key and nonce of the one message, as a key that cannot be exported. The shared secret is
 * wiped.
 */
const scheduleOf = async (shared: Bytes, sender: Uint8Array, recipient: Uint8Array, info: Uint8Array) => {
  const eaePrk = labeledExtract(kemSuite, none, 'eae_prk', shared);
  const secret = labeledExpand(kemSuite, eaePrk, 'shared_secret', concat(sender, recipient), 32);
  const context = concat(
    Uint8Array.of(0),
    labeledExtract(hpkeSuite, none, 'psk_id_hash', none),
    labeledExtract(hpkeSuite, none, 'info_hash', info),
  );
  const prk = labeledExtract(hpkeSuite, secret, 'secret', none);
  const key = labeledExpand(hpkeSuite, prk, 'key', context, 32);
  const nonce = labeledExpand(hpkeSuite, prk, 'base_nonce', context, 12);
  try {
    return { key: await crypto.subtle.importKey('raw', key, 'AES-GCM', false, ['encrypt', 'decrypt']), nonce };
  } finally {
    for (const secretBytes of [shared, eaePrk, secret, prk, key]) secretBytes.fill(0);
  }
};

const agree = async (own: Key, other: Bytes): Promise<Bytes> => {
  const peer = await crypto.subtle.importKey('raw', other, 'X25519', false, []);
  return new Uint8Array(await crypto.subtle.deriveBits({ name: 'X25519', public: peer }, own, 256));
};

export interface HpkeContext {
  readonly info: Bytes;
  readonly aad: Bytes;
}

/**
 * `own`: the recipient's private key, `publicKey` its public half. Rejects when it does not open;
 * the caller wipes what it gets.
 */
export const open = async (
  own: Key,
  publicKey: Uint8Array,
  sealed: Bytes,
  { info, aad }: HpkeContext,
): Promise<Bytes> => {
  const sender = sealed.slice(0, encapsulated);
  const { key, nonce } = await scheduleOf(await agree(own, sender), sender, publicKey, info);
  const opened = await crypto.subtle.decrypt(
    { name: 'AES-GCM', iv: nonce, additionalData: aad },
    key,
    sealed.slice(encapsulated),
  );
  return new Uint8Array(opened);
};

/** Seals to `recipient`, 32 bytes. */
export const seal = async (recipient: Bytes, plaintext: Bytes, { info, aad }: HpkeContext): Promise<Bytes> => {
  const pair = await crypto.subtle.generateKey('X25519', false, ['deriveBits']);
  if (!('privateKey' in pair)) throw new Error('this browser does not support X25519');
  const sender = new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey));
  const { key, nonce } = await scheduleOf(await agree(pair.privateKey, recipient), sender, recipient, info);
  const ciphertext = await crypto.subtle.encrypt({ name: 'AES-GCM', iv: nonce, additionalData: aad }, key, plaintext);
  return concat(sender, new Uint8Array(ciphertext));
};
