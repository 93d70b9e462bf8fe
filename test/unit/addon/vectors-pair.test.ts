// Published vectors of what works with a key pair (Wycheproof): RSA signatures of both paddings,
// RSA-OAEP, ECDSA in both encodings, Ed25519, ECDH. Every valid case must pass, every invalid one
// must be refused.
import { createECDH, createPrivateKey } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Digest, KeyRef, SignatureParameters } from '../../../addon/core.ts';
import { core, withKey } from '../../support/core-keys.ts';
import {
  type AcceptableRules,
  hex,
  readVectors,
  runVectors,
  unlessRefused,
  type VectorCase,
  type VectorFile,
  type VectorOutcome,
  type VectorRun,
  vectorFolder,
} from '../../support/vectors.ts';

const folder = vectorFolder('wycheproof');
const read = <G, T extends VectorCase>(name: string): VectorFile<G, T> => readVectors(join(folder ?? '', name));

interface Signature extends VectorCase {
  readonly msg: string;
  readonly sig: string;
}
interface PublicGroup {
  readonly publicKeyDer: string;
}

/**
 * Imports each key once: many cases share one, and a private key's check takes long. Null for a key
 * that is refused.
 */
const importsOf = (importKey: (der: Uint8Array) => KeyRef) => {
  const keys = new Map<string, KeyRef | null>();
  return {
    find: (der: string): KeyRef | null => {
      const known = keys.get(der);
      if (known !== undefined) return known;
      const key = unlessRefused(() => importKey(hex(der)));
      keys.set(der, key);
      return key;
    },
    release: (): void => {
      for (const key of keys.values()) if (key !== null) core.release(key);
    },
  };
};

const runSignatures = (name: string, parameters: SignatureParameters, rules?: AcceptableRules): VectorRun => {
  const keys = importsOf(core.importPublicKey);
  const run = runVectors(
    read<PublicGroup, Signature>(name),
    (group, given): VectorOutcome => {
      const key = keys.find(group.publicKeyDer);
      if (key === null) return 'refused';
      return core.verify(key, parameters, hex(given.msg), hex(given.sig)) ? 'accepted' : 'refused';
    },
    rules,
  );
  keys.release();
  return run;
};

describe.runIf(folder !== null)('Wycheproof, key pairs', () => {
  test.each([
    ['ecdsa_secp256r1_sha256_p1363_test.json', 'sha256', 'p1363', 262],
    ['ecdsa_secp384r1_sha384_p1363_test.json', 'sha384', 'p1363', 280],
    ['ecdsa_secp256r1_sha256_test.json', 'sha256', 'der', 484],
  ] as const)('%s', (name, digest, encoding, ran) => {
    expect(runSignatures(name, { algorithm: 'ecdsa', digest, encoding })).toEqual({ wrong: [], ran, skipped: {} });
  });

  test('ed25519_test.json', () => {
    expect(runSignatures('ed25519_test.json', { algorithm: 'ed25519' })).toEqual({ wrong: [], ran: 151, skipped: {} });
  });

  test.each([
    ['rsa_signature_2048_sha256_test.json', 'sha256', 259],
    ['rsa_signature_4096_sha512_test.json', 'sha512', 259],
  ] as const)('%s', (name, digest, ran) => {
    const run = runSignatures(
      name,
      { algorithm: 'rsa-pkcs1', digest },
      { MissingNull: { accepted: false, because: 'RFC 8017, 9.2 note 1: the parameters are NULL, and present' } },
    );
    expect(run).toEqual({ wrong: [], ran, skipped: {} });
  });

  test.each([
    ['rsa_pss_2048_sha256_mgf1_32_test.json', 'sha256', 32, 108],
    ['rsa_pss_4096_sha512_mgf1_64_test.json', 'sha512', 64, 179],
  ] as const)('%s', (name, digest, saltLength, ran) => {
    const run = runSignatures(name, { algorithm: 'rsa-pss', digest, mgfDigest: digest, saltLength });
    expect(run).toEqual({ wrong: [], ran, skipped: {} });
  });

  interface OaepGroup {
    readonly privateKeyPkcs8: string;
  }
  interface Oaep extends VectorCase {
    readonly msg: string;
    readonly ct: string;
    readonly label: string;
  }
  test.each([
    ['rsa_oaep_2048_sha256_mgf1sha256_test.json', 'sha256', 37],
    ['rsa_oaep_3072_sha512_mgf1sha512_test.json', 'sha512', 33],
  ] as const)('%s', (name, digest: Digest, ran) => {
    const keys = importsOf(core.importPrivateKey);
    const run = runVectors(read<OaepGroup, Oaep>(name), (group, given): VectorOutcome => {
      const key = keys.find(group.privateKeyPkcs8);
      if (key === null) throw new Error('the private key is refused');
      const parameters = { padding: 'oaep', digest, mgfDigest: digest, label: hex(given.label) } as const;
      const opened = unlessRefused(() => core.rsaDecrypt(key, parameters, hex(given.ct)));
      if (opened === null) return 'refused';
      if (given.result === 'valid') {
        expect(opened.toString('hex')).toBe(given.msg);
        const again = core.rsaDecrypt(key, parameters, core.rsaEncrypt(key, parameters, hex(given.msg)));
        expect(again.toString('hex')).toBe(given.msg);
      }
      return 'accepted';
    });
    keys.release();
    expect(run).toEqual({ wrong: [], ran, skipped: {} });
  });

  interface Agreement extends VectorCase {
    readonly public: string;
    readonly private: string;
    readonly shared: string;
  }
  /** The PKCS#8 of a bare scalar. */
  const pkcs8Of = (scalar: string): Buffer => {
    const pair = createECDH('prime256v1');
    const bytes = hex(scalar.padStart(64, '0').slice(-64));
    pair.setPrivateKey(bytes);
    const point = pair.getPublicKey();
    const part = (from: number): string => point.subarray(from, from + 32).toString('base64url');
    const jwk = { kty: 'EC', crv: 'P-256', d: bytes.toString('base64url'), x: part(1), y: part(33) };
    return createPrivateKey({ key: jwk, format: 'jwk' }).export({ type: 'pkcs8', format: 'der' });
  };
  test('ecdh_secp256r1_ecpoint_test.json', () => {
    const run = runVectors(
      read<unknown, Agreement>('ecdh_secp256r1_ecpoint_test.json'),
      (_, given) =>
        withKey(core.importPrivateKey(pkcs8Of(given.private)), (key): VectorOutcome => {
          const shared = unlessRefused(() => core.ecdh(key, hex(given.public)));
          if (shared === null) return 'refused';
          expect(withKey(shared, () => core.exportSecret(shared)).toString('hex')).toBe(given.shared);
          return 'accepted';
        }),
      { CompressedPoint: { accepted: false, because: 'points cross uncompressed only (PKCS#11 2.40, 2.3.8)' } },
    );
    expect(run).toEqual({ wrong: [], ran: 355, skipped: {} });
  });
});
