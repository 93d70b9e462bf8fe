// Keys in transit to another host, through the addon: a second implementation of RFC 9180 with
// Node's own cryptography, agrees with the core in both directions and on the vector of
// addon/FORMAT.md, section 4. What is refused in detail is in test/native/core/hpke-test.cc.
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { KeyRef, UnwrappedKind } from '../../../addon/core.ts';
import { aesKey, core, genericKey, misplacedKek, withKey } from '../../support/core-keys.ts';
import { codeOf } from '../../support/outcomes.ts';
import { hex } from '../../support/vectors.ts';

const [, vectorText = ''] =
  /^```vector hpke\n([^`]*)```$/m.exec(readFileSync(join(import.meta.dirname, '../../../addon/FORMAT.md'), 'utf8')) ??
  [];
const vector = new Map(
  vectorText
    .trim()
    .split('\n')
    .map((line) => line.split(' = '))
    .map(([name = '', value = '']) => [name, hex(value)]),
);
const member = (name: string): Buffer => {
  const value = vector.get(name);
  if (value === undefined) throw new Error(`the vector has no ${name}`);
  return value;
};

/** RFC 8410, 7 and 4. */
const privatePrefix = hex('302e020100300506032b656e04220420');
const publicPrefix = hex('302a300506032b656e032100');
const privateKeyOf = (bytes: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.concat([privatePrefix, bytes]), format: 'der', type: 'pkcs8' });
const publicKeyOf = (bytes: Uint8Array): KeyObject =>
  createPublicKey({ key: Buffer.concat([publicPrefix, bytes]), format: 'der', type: 'spki' });
const publicBytes = (key: KeyObject): Buffer =>
  createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(publicPrefix.length);

const nothing = Buffer.alloc(0);
const kemSuite = Buffer.concat([Buffer.from('KEM'), hex('0020')]);
const suite = Buffer.concat([Buffer.from('HPKE'), hex('002000010002')]);
const extract = (id: Buffer, salt: Buffer, label: string, input: Buffer): Buffer =>
  createHmac('sha256', salt)
    .update(Buffer.concat([Buffer.from('HPKE-v1'), id, Buffer.from(label), input]))
    .digest();
/**
 * Whole HKDF cannot start at a pseudorandom key, so the expansion of one block is written out (RFC
 * 5869, 2.3).
 */
const expand = (id: Buffer, key: Buffer, label: string, info: Buffer, length: number): Buffer =>
  createHmac('sha256', key)
    .update(
      Buffer.concat([Buffer.from([length >> 8, length & 255]), Buffer.from('HPKE-v1'), id, Buffer.from(label), info]),
    )
    .update(Buffer.from([1]))
    .digest()
    .subarray(0, length);

const scheduleOf = (secret: Buffer, encapsulated: Buffer, recipient: Buffer, info: Buffer) => {
  const both = Buffer.concat([encapsulated, recipient]);
  const shared = expand(kemSuite, extract(kemSuite, nothing, 'eae_prk', secret), 'shared_secret', both, 32);
  const context = Buffer.concat([
    Buffer.from([0]),
    extract(suite, nothing, 'psk_id_hash', nothing),
    extract(suite, nothing, 'info_hash', info),
  ]);
  const key = extract(suite, shared, 'secret', nothing);
  return { key: expand(suite, key, 'key', context, 32), nonce: expand(suite, key, 'base_nonce', context, 12) };
};

const sealByDocument = (ephemeral: KeyObject, recipient: Buffer, info: Buffer, aad: Buffer, plain: Buffer): Buffer => {
  const encapsulated = publicBytes(ephemeral);
  const secret = diffieHellman({ privateKey: ephemeral, publicKey: publicKeyOf(recipient) });
  const { key, nonce } = scheduleOf(secret, encapsulated, recipient, info);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(aad);
  return Buffer.concat([encapsulated, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
};
const openByDocument = (own: KeyObject, info: Buffer, aad: Buffer, sealed: Buffer): Buffer => {
  const encapsulated = sealed.subarray(0, 32);
  const secret = diffieHellman({ privateKey: own, publicKey: publicKeyOf(encapsulated) });
  const { key, nonce } = scheduleOf(secret, encapsulated, publicBytes(own), info);
  const cipher = createDecipheriv('aes-256-gcm', key, nonce).setAAD(aad).setAuthTag(sealed.subarray(-16));
  return Buffer.concat([cipher.update(sealed.subarray(32, -16)), cipher.final()]);
};

const info = Buffer.from('a session key');
const aad = Buffer.from([0, 0, 0, 7]);

describe('a sealed key', () => {
  test('is that of the published vector', () => {
    const [own, sealed] = [privateKeyOf(member('recipientPrivate')), member('sealed')];
    expect(openByDocument(own, member('info'), member('aad'), sealed)).toEqual(member('plaintext'));
    const again = sealByDocument(
      privateKeyOf(member('ephemeral')),
      member('recipient'),
      member('info'),
      member('aad'),
      member('plaintext'),
    );
    expect(again).toEqual(sealed);
    withKey(core.importPrivateKey(Buffer.concat([privatePrefix, member('recipientPrivate')])), (key) => {
      expect(core.hpkePublicKey(key)).toEqual(member('recipient'));
      withKey(core.hpkeOpenKey(key, member('info'), member('aad'), sealed, 'generic'), (opened) =>
        expect(core.exportSecret(opened)).toEqual(member('plaintext')),
      );
    });
  });

  test('opens with a second implementation', () => {
    const { privateKey } = generateKeyPairSync('x25519');
    const value = Buffer.from(hkdfSync('sha256', 'a', 'b', 'c', 32));
    withKey(aesKey(value), (key) => {
      const sealed = core.hpkeSealKey(publicBytes(privateKey), info, aad, key);
      expect(openByDocument(privateKey, info, aad, sealed)).toEqual(value);
    });
    const { privateKey: pair } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pkcs8 = pair.export({ format: 'der', type: 'pkcs8' });
    withKey(core.importPrivateKey(pkcs8), (key) => {
      const sealed = core.hpkeSealKey(publicBytes(privateKey), info, aad, key);
      expect(
        createPrivateKey({ key: openByDocument(privateKey, info, aad, sealed), format: 'der', type: 'pkcs8' }),
      ).toEqual(pair);
    });
  });

  test('of a second implementation opens', () => {
    withKey(core.generateHpkeKey(), (own) => {
      const { privateKey: ephemeral } = generateKeyPairSync('x25519');
      const { privateKey: pair } = generateKeyPairSync('ed25519');
      const sealed = (plain: Buffer): Buffer => sealByDocument(ephemeral, core.hpkePublicKey(own), info, aad, plain);
      withKey(core.hpkeOpenKey(own, info, aad, sealed(Buffer.alloc(24, 5)), 'aes'), (key) =>
        expect(core.describe(key)).toEqual({ kind: 'aes', bits: 192 }),
      );
      const pkcs8 = pair.export({ format: 'der', type: 'pkcs8' });
      withKey(core.hpkeOpenKey(own, info, aad, sealed(pkcs8), 'private'), (key) => {
        expect(core.describe(key)).toEqual({ kind: 'ed25519-private', bits: 256, curve: 'ed25519' });
        expect(core.exportPrivateKey(key)).toEqual(pkcs8);
      });
    });
  });

  test('with any byte changed, or with other info, aad, recipient or kind, is refused alike', () => {
    const [own, other] = [core.generateHpkeKey(), core.generateHpkeKey()];
    const sealed = withKey(genericKey(Buffer.alloc(20, 1)), (key) =>
      core.hpkeSealKey(core.hpkePublicKey(own), info, aad, key),
    );
    const open = (recipient: KeyRef, i: Buffer, a: Buffer, bytes: Buffer, kind: UnwrappedKind): string =>
      codeOf(() => core.release(core.hpkeOpenKey(recipient, i, a, bytes, kind)));
    const before = core.memoryStatus().keys;
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] ?? 0) ^ 0x80;
      expect(open(own, info, aad, changed, 'generic'), `byte ${at}`).toBe('authentication-failed');
    }
    expect(open(own, aad, info, sealed, 'generic')).toBe('authentication-failed');
    expect(open(own, info, nothing, sealed, 'generic')).toBe('authentication-failed');
    expect(open(other, info, aad, sealed, 'generic')).toBe('authentication-failed');
    expect(open(own, info, aad, sealed, 'aes')).toBe('authentication-failed');
    expect(open(own, info, aad, sealed, 'kek')).toBe('authentication-failed');
    expect(open(own, info, aad, sealed, 'private')).toBe('authentication-failed');
    expect(open(own, info, aad, sealed.subarray(0, 40), 'generic')).toBe('authentication-failed');
    expect(open(own, info, aad, nothing, 'generic')).toBe('authentication-failed');
    expect(open(own, info, aad, sealed, 'generic')).toBe('none');
    expect(core.memoryStatus().keys).toBe(before);
    for (const key of [own, other]) core.release(key);
  });

  test('is refused for a KEK, and for a key that is not X25519', () => {
    withKey(core.generateHpkeKey(), (own) => {
      const recipient = core.hpkePublicKey(own);
      withKey(misplacedKek(), (kek) =>
        expect(codeOf(() => core.hpkeSealKey(recipient, info, aad, kek))).toBe('key-type'),
      );
      withKey(core.generateAes(256), (key) => {
        expect(codeOf(() => core.hpkeSealKey(recipient.subarray(1), info, aad, key))).toBe('bad-argument');
        expect(codeOf(() => core.hpkeSealKey(Buffer.alloc(32), info, aad, key))).toBe('bad-argument');
        expect(codeOf(() => core.hpkePublicKey(key))).toBe('key-type');
        expect(codeOf(() => core.hpkeOpenKey(key, info, aad, Buffer.alloc(80), 'aes'))).toBe('key-type');
      });
    });
  });
});
