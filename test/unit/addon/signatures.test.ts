// Signatures, OAEP, key agreement and certificates through the addon, against Node's own libcrypto:
// what one side makes the other takes.
import {
  constants,
  createPublicKey,
  createSign,
  diffieHellman,
  generateKeyPairSync,
  type KeyObject,
  sign as nodeSign,
  verify as nodeVerify,
  privateDecrypt,
  publicEncrypt,
  X509Certificate,
} from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Digest, EcCurve, KeyRef, SignatureParameters } from '../../../addon/core.ts';
import { core, runDigest, withKey } from '../../support/core-keys.ts';
import { codeOf } from '../../support/outcomes.ts';

const signing: readonly Digest[] = [
  'sha224',
  'sha256',
  'sha384',
  'sha512',
  'sha3-224',
  'sha3-256',
  'sha3-384',
  'sha3-512',
];
const message = Buffer.from('what is signed');

interface Pair {
  readonly ours: KeyRef;
  readonly publicOnly: KeyRef;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}
const made: KeyRef[] = [];
const pairOf = ({ privateKey, publicKey }: { readonly privateKey: KeyObject; readonly publicKey: KeyObject }): Pair => {
  const ours = core.importPrivateKey(privateKey.export({ type: 'pkcs8', format: 'der' }));
  const publicOnly = core.importPublicKey(publicKey.export({ type: 'spki', format: 'der' }));
  made.push(ours, publicOnly);
  return { ours, publicOnly, privateKey, publicKey };
};
afterAll(() => {
  for (const key of made) core.release(key);
});
const rsa = pairOf(generateKeyPairSync('rsa', { modulusLength: 2048 }));
const ec: Readonly<Record<EcCurve, Pair>> = {
  p224: pairOf(generateKeyPairSync('ec', { namedCurve: 'secp224r1' })),
  p256: pairOf(generateKeyPairSync('ec', { namedCurve: 'P-256' })),
  p384: pairOf(generateKeyPairSync('ec', { namedCurve: 'P-384' })),
  p521: pairOf(generateKeyPairSync('ec', { namedCurve: 'P-521' })),
  secp256k1: pairOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' })),
  'brainpool-p256r1': pairOf(generateKeyPairSync('ec', { namedCurve: 'brainpoolP256r1' })),
  'brainpool-p384r1': pairOf(generateKeyPairSync('ec', { namedCurve: 'brainpoolP384r1' })),
  'brainpool-p512r1': pairOf(generateKeyPairSync('ec', { namedCurve: 'brainpoolP512r1' })),
};
const edwards = pairOf(generateKeyPairSync('ed25519'));

/** Ours verifies with both halves and stops at every changed bit that is tried. */
const checkOurs = (pair: Pair, parameters: SignatureParameters, input: Buffer, signature: Buffer): void => {
  expect(core.verify(pair.ours, parameters, input, signature)).toBe(true);
  expect(core.verify(pair.publicOnly, parameters, input, signature)).toBe(true);
  for (let at = 0; at < signature.length; at += 7) {
    const changed = Buffer.from(signature);
    changed[at] = (changed[at] ?? 0) ^ 0x10;
    expect(core.verify(pair.publicOnly, parameters, input, changed)).toBe(false);
  }
  for (const other of [Buffer.alloc(0), signature.subarray(1), Buffer.concat([signature, Buffer.alloc(1)])])
    expect(core.verify(pair.publicOnly, parameters, input, other)).toBe(false);
  const changed = Buffer.from(input);
  changed[0] = (changed[0] ?? 0) ^ 1;
  expect(core.verify(pair.publicOnly, parameters, changed, signature)).toBe(false);
  expect(codeOf(() => core.sign(pair.publicOnly, parameters, input))).toBe('key-type');
};

describe('RSA PKCS#1 v1.5', () => {
  test.each(signing)('%s', (digest) => {
    const parameters = { algorithm: 'rsa-pkcs1', digest } as const;
    const signature = core.sign(rsa.ours, parameters, message);
    expect(nodeVerify(digest, message, rsa.publicKey, signature)).toBe(true);
    expect(nodeSign(digest, message, rsa.privateKey)).toEqual(signature);
    checkOurs(rsa, parameters, message, signature);
  });

  test('a DigestInfo that the caller brings is signed as it is', () => {
    const info = Buffer.concat([
      Buffer.from('3031300d060960864801650304020105000420', 'hex'),
      runDigest('sha256', message),
    ]);
    const signature = core.sign(rsa.ours, { algorithm: 'rsa-pkcs1' }, info);
    expect(signature).toEqual(nodeSign('sha256', message, rsa.privateKey));
    checkOurs(rsa, { algorithm: 'rsa-pkcs1' }, info, signature);
    expect(codeOf(() => core.sign(rsa.ours, { algorithm: 'rsa-pkcs1' }, Buffer.alloc(246)))).toBe('data-length');
    expect(codeOf(() => core.sign(rsa.ours, { algorithm: 'rsa-pkcs1' }, Buffer.alloc(0)))).toBe('data-length');
  });
});

describe('RSA PKCS#1 v1.5 with recovery', () => {
  const signature = core.sign(rsa.ours, { algorithm: 'rsa-pkcs1' }, message);
  test('what was signed comes out, by either half', () => {
    expect(core.recover(rsa.ours, signature)).toEqual(message);
    expect(core.recover(rsa.publicOnly, signature)).toEqual(message);
  });
  test('nothing comes out of what is not a signature, or of another key’s', () => {
    const changed = Buffer.from(signature);
    changed[9] = (changed[9] ?? 0) ^ 1;
    expect(codeOf(() => core.recover(rsa.publicOnly, changed))).toBe('authentication-failed');
    expect(codeOf(() => core.recover(rsa.publicOnly, Buffer.alloc(256)))).toBe('authentication-failed');
    expect(codeOf(() => core.recover(rsa.publicOnly, Buffer.alloc(256, 0xff)))).toBe('authentication-failed');
    expect(codeOf(() => core.recover(rsa.publicOnly, signature.subarray(1)))).toBe('data-length');
  });
});

describe('RSA PSS', () => {
  test('a signature that has lost its leading zero is none', () => {
    const parameters = { algorithm: 'rsa-pss', digest: 'sha256', mgfDigest: 'sha256', saltLength: 32 } as const;
    let signature = core.sign(rsa.ours, parameters, message);
    while (signature[0] !== 0) signature = core.sign(rsa.ours, parameters, message);
    expect(core.verify(rsa.publicOnly, parameters, message, signature)).toBe(true);
    expect(core.verify(rsa.publicOnly, parameters, message, signature.subarray(1))).toBe(false);
  });
  test.each(signing)('%s, salts from none to the longest', (digest) => {
    const length = runDigest(digest, message).length;
    for (const saltLength of [0, 1, 20, length, 256 - length - 2]) {
      const parameters = { algorithm: 'rsa-pss', digest, mgfDigest: digest, saltLength } as const;
      const signature = core.sign(rsa.ours, parameters, message);
      const key = { key: rsa.publicKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength };
      expect(nodeVerify(digest, message, key, signature)).toBe(true);
      if (saltLength !== length) continue;
      checkOurs(rsa, parameters, message, signature);
      const prehashed = { ...parameters, prehashed: true };
      checkOurs(rsa, prehashed, runDigest(digest, message), signature);
      expect(codeOf(() => core.sign(rsa.ours, prehashed, message))).toBe('data-length');
    }
    const tooLong = { algorithm: 'rsa-pss', digest, mgfDigest: digest, saltLength: 256 - length - 1 } as const;
    expect(codeOf(() => core.sign(rsa.ours, tooLong, message))).toBe('bad-argument');
  });

  test('the salt length and the mask’s digest are part of the signature', () => {
    const parameters = { algorithm: 'rsa-pss', digest: 'sha256', mgfDigest: 'sha256', saltLength: 32 } as const;
    const signature = core.sign(rsa.ours, parameters, message);
    expect(core.verify(rsa.ours, { ...parameters, saltLength: 31 }, message, signature)).toBe(false);
    expect(core.verify(rsa.ours, { ...parameters, mgfDigest: 'sha384' }, message, signature)).toBe(false);
    expect(core.verify(rsa.ours, { ...parameters, digest: 'sha384' }, message, signature)).toBe(false);
    for (const saltLength of [-1, -2, 0.5, Number.NaN, 1e10])
      expect(codeOf(() => core.sign(rsa.ours, { ...parameters, saltLength }, message))).toBe('bad-argument');
  });
});

describe('ECDSA', () => {
  test.each(['p256', 'p384', 'p521'] as const)('%s, both encodings', (curve) => {
    const pair = ec[curve];
    const bytes = { p256: 64, p384: 96, p521: 132 }[curve];
    for (const digest of signing) {
      const fixed = { algorithm: 'ecdsa', digest, encoding: 'p1363' } as const;
      const signature = core.sign(pair.ours, fixed, message);
      expect(signature).toHaveLength(bytes);
      expect(nodeVerify(digest, message, { key: pair.publicKey, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
      checkOurs(pair, fixed, message, signature);
      const der = { algorithm: 'ecdsa', digest, encoding: 'der' } as const;
      const encoded = core.sign(pair.ours, der, message);
      expect(nodeVerify(digest, message, pair.publicKey, encoded)).toBe(true);
      expect(core.verify(pair.publicOnly, der, message, encoded)).toBe(true);
      expect(core.verify(pair.publicOnly, fixed, message, encoded)).toBe(false);
      // The digest itself, as CKM_ECDSA takes it.
      const bare = { algorithm: 'ecdsa', encoding: 'p1363' } as const;
      const hash = runDigest(digest, message);
      expect(core.verify(pair.ours, bare, hash, signature)).toBe(true);
      expect(core.verify(pair.ours, fixed, message, core.sign(pair.ours, bare, hash))).toBe(true);
    }
  });
});

test('Ed25519', () => {
  const parameters = { algorithm: 'ed25519' } as const;
  const signature = core.sign(edwards.ours, parameters, message);
  expect(signature).toEqual(nodeSign(null, message, edwards.privateKey));
  checkOurs(edwards, parameters, message, signature);
  const empty = core.sign(edwards.ours, parameters, Buffer.alloc(0));
  expect(nodeVerify(null, Buffer.alloc(0), edwards.publicKey, empty)).toBe(true);
});

test('SHA-1 signatures are made and verified: who may have them made is decided above', () => {
  const rsaSha1 = { algorithm: 'rsa-pkcs1', digest: 'sha1' } as const;
  const theirs = createSign('sha1').update(message).sign(rsa.privateKey);
  expect(core.sign(rsa.ours, rsaSha1, message)).toEqual(theirs);
  expect(core.verify(rsa.ours, rsaSha1, message, theirs)).toBe(true);
});

test('keys and algorithms that do not belong together are refused', () => {
  const secret = core.generateAes(256);
  made.push(secret);
  const rows: readonly (readonly [SignatureParameters, readonly KeyRef[]])[] = [
    [{ algorithm: 'rsa-pkcs1', digest: 'sha256' }, [ec.p256.ours, edwards.ours, secret]],
    [{ algorithm: 'ecdsa', digest: 'sha256', encoding: 'der' }, [rsa.ours, edwards.ours, secret]],
    [{ algorithm: 'ed25519' }, [rsa.ours, ec.p256.ours, secret]],
  ];
  for (const [parameters, keys] of rows) {
    for (const key of keys) {
      expect(codeOf(() => core.sign(key, parameters, message))).toBe('key-type');
      expect(codeOf(() => core.verify(key, parameters, message, Buffer.alloc(64)))).toBe('key-type');
    }
  }
  for (const parameters of [
    undefined,
    {},
    { algorithm: 'dsa' },
    { algorithm: 'ecdsa', encoding: 'raw' },
    { algorithm: 'ecdsa' },
  ])
    expect(codeOf(() => core.sign(ec.p256.ours, parameters as unknown as SignatureParameters, message))).toBe(
      'bad-argument',
    );
});

describe('RSA-OAEP', () => {
  const label = Buffer.from('label');
  test.each(['sha1', ...signing] as const)('%s', (digest) => {
    const parameters = { padding: 'oaep', digest, mgfDigest: digest, label } as const;
    const length = runDigest(digest, message).length;
    const theirs = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: digest, oaepLabel: label };
    for (const size of [0, 1, 32, 256 - 2 * length - 2]) {
      const plain = Buffer.alloc(size, 3);
      const sealed = core.rsaEncrypt(rsa.publicOnly, parameters, plain);
      expect(privateDecrypt({ key: rsa.privateKey, ...theirs }, sealed)).toEqual(plain);
      expect(core.rsaDecrypt(rsa.ours, parameters, publicEncrypt({ key: rsa.publicKey, ...theirs }, plain))).toEqual(
        plain,
      );
    }
    expect(codeOf(() => core.rsaEncrypt(rsa.ours, parameters, Buffer.alloc(256 - 2 * length - 1)))).toBe('data-length');
  });

  test('every failure looks like every other', () => {
    const parameters = { padding: 'oaep', digest: 'sha256', mgfDigest: 'sha256', label } as const;
    const sealed = core.rsaEncrypt(rsa.ours, parameters, message);
    const changed = Buffer.from(sealed);
    changed[200] = (changed[200] ?? 0) ^ 1;
    const attempts: readonly (() => unknown)[] = [
      () => core.rsaDecrypt(rsa.ours, parameters, changed),
      () => core.rsaDecrypt(rsa.ours, { ...parameters, label: Buffer.from('other') }, sealed),
      () => core.rsaDecrypt(rsa.ours, { padding: 'oaep', digest: 'sha256', mgfDigest: 'sha256' }, sealed),
      () => core.rsaDecrypt(rsa.ours, { ...parameters, digest: 'sha384' }, sealed),
      () => core.rsaDecrypt(rsa.ours, { ...parameters, mgfDigest: 'sha384' }, sealed),
      () => core.rsaDecrypt(rsa.ours, parameters, Buffer.alloc(256)),
      () => core.rsaDecrypt(rsa.ours, parameters, Buffer.alloc(256, 0xff)),
      () => core.rsaDecrypt(rsa.ours, parameters, sealed.subarray(1)),
      () => core.rsaDecrypt(rsa.ours, parameters, Buffer.alloc(0)),
    ];
    const errors = attempts.map((attempt) => {
      try {
        return `no error ${attempt()}`;
      } catch (error) {
        return `${(error as { readonly code: string }).code}: ${(error as Error).message}`;
      }
    });
    expect(new Set(errors)).toEqual(new Set(['authentication-failed: the data does not authenticate']));
    expect(codeOf(() => core.rsaDecrypt(rsa.publicOnly, parameters, sealed))).toBe('key-type');
  });
});

describe('RSA encryption with PKCS#1 v1.5 padding', () => {
  const pkcs1 = { padding: 'pkcs1' } as const;
  const byNode = (pair: Pair, ciphertext: Uint8Array): Buffer =>
    privateDecrypt({ key: pair.privateKey, padding: constants.RSA_PKCS1_PADDING }, ciphertext);
  const raw = (pair: Pair, encoded: Uint8Array): Buffer =>
    publicEncrypt({ key: pair.publicKey, padding: constants.RSA_NO_PADDING }, encoded);
  /** 0, 2, padding, 0, and the message. */
  const encoded = (bytes: number, head: readonly number[], padding: number, separator = 0): Buffer => {
    const block = Buffer.alloc(bytes, 0x55);
    Buffer.from(head).copy(block);
    if (padding < bytes - 2) block[2 + padding] = separator;
    return block;
  };
  const others = [
    rsa,
    ...[1024, 2048 + 8, 4096].map((bits) => pairOf(generateKeyPairSync('rsa', { modulusLength: bits }))),
  ];

  test.each(others.map((pair) => [core.describe(pair.ours).bits, pair] as const))('of %i bits', (bits, pair) => {
    const bytes = bits / 8;
    for (const size of [0, 1, 32, bytes - 11]) {
      const plain = Buffer.alloc(size, 7);
      expect(byNode(pair, core.rsaEncrypt(pair.publicOnly, pkcs1, plain))).toEqual(plain);
      const theirs = publicEncrypt({ key: pair.publicKey, padding: constants.RSA_PKCS1_PADDING }, plain);
      expect(core.rsaDecrypt(pair.ours, pkcs1, theirs)).toEqual(plain);
    }
    expect(codeOf(() => core.rsaEncrypt(pair.ours, pkcs1, Buffer.alloc(bytes - 10)))).toBe('data-length');
  });

  test.each(others.map((pair) => [core.describe(pair.ours).bits, pair] as const))(
    'never tells whether the padding is right, and gives what libcrypto gives instead: %i bits',
    async (bits, pair) => {
      const bytes = bits / 8;
      const wrong = [
        raw(pair, encoded(bytes, [0, 1], 20)),
        raw(pair, encoded(bytes, [0, 2], 7)),
        raw(pair, encoded(bytes, [0, 2], 0)),
        raw(pair, encoded(bytes, [0, 2], bytes)),
        raw(pair, encoded(bytes, [1, 2], 20)),
        raw(pair, Buffer.alloc(bytes)),
        ...Array.from({ length: 60 }, (_, n) => {
          const number = Buffer.alloc(bytes, n + 1);
          number[0] = 0;
          return number;
        }),
      ];
      for (const ciphertext of wrong) {
        const instead = core.rsaDecrypt(pair.ours, pkcs1, ciphertext);
        expect(instead).toEqual(byNode(pair, ciphertext));
        expect(core.rsaDecrypt(pair.ours, pkcs1, ciphertext)).toEqual(instead);
        expect(await core.rsaDecryptLater(pair.ours, pkcs1, ciphertext)).toEqual(instead);
      }
      // The shortest padding, and the empty message.
      for (const padding of [8, bytes - 3]) {
        const right = raw(pair, encoded(bytes, [0, 2], padding));
        expect(core.rsaDecrypt(pair.ours, pkcs1, right)).toEqual(Buffer.alloc(bytes - 3 - padding, 0x55));
      }
    },
  );

  test('only what everybody can see is refused', () => {
    for (const visible of [Buffer.alloc(256, 0xff), Buffer.alloc(255), Buffer.alloc(0), Buffer.alloc(257)])
      expect(codeOf(() => core.rsaDecrypt(rsa.ours, pkcs1, visible))).toBe('authentication-failed');
    expect(codeOf(() => core.rsaDecrypt(rsa.publicOnly, pkcs1, Buffer.alloc(256)))).toBe('key-type');
  });
});

describe('ECDH', () => {
  const point = (key: KeyObject): Buffer => {
    const { x = '', y = '' } = key.export({ format: 'jwk' });
    return Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
  };
  test.each([
    ['p256', 'P-256'],
    ['p384', 'P-384'],
    ['p521', 'P-521'],
  ] as const)('%s: both sides and Node get the same secret', (curve, namedCurve) => {
    const other = generateKeyPairSync('ec', { namedCurve });
    const shared = core.ecdh(ec[curve].ours, point(other.publicKey));
    expect(core.describe(shared).kind).toBe('generic');
    const value = withKey(shared, () => core.exportSecret(shared));
    expect(value).toEqual(diffieHellman({ privateKey: other.privateKey, publicKey: ec[curve].publicKey }));
  });

  test('points of another curve, off the curve or in another form are refused', () => {
    const good = point(ec.p256.publicKey);
    const off = Buffer.from(good);
    off[64] = (off[64] ?? 0) ^ 1;
    const compressed = Buffer.concat([Buffer.from([2 + ((good[64] ?? 0) & 1)]), good.subarray(1, 33)]);
    const hybrid = Buffer.concat([Buffer.from([6 + ((good[64] ?? 0) & 1)]), good.subarray(1)]);
    const zero = Buffer.concat([Buffer.from([4]), Buffer.alloc(64)]);
    for (const wrong of [
      off,
      compressed,
      hybrid,
      zero,
      Buffer.from([0]),
      Buffer.alloc(0),
      good.subarray(0, 64),
      point(ec.p384.publicKey),
    ])
      expect(codeOf(() => core.ecdh(ec.p256.ours, wrong))).toBe('bad-argument');
    expect(codeOf(() => core.ecdh(ec.p256.publicOnly, good))).toBe('key-type');
    expect(codeOf(() => core.ecdh(edwards.ours, good))).toBe('key-type');
  });
});

describe('the self-signed certificate', () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-certificate-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  test('has its names and days, and its key in a file that only the owner reads', () => {
    const keyPath = join(folder, 'tls.key');
    const names = ['dke.example.test', '*.example.test', '127.0.0.1', '::1'];
    const certificate = new X509Certificate(core.createSelfSignedCertificate({ keyPath, names, days: 30 }));
    expect(statSync(keyPath).mode & 0o777).toBe(0o600);
    expect(certificate.checkHost('dke.example.test')).toBe('dke.example.test');
    expect(certificate.checkHost('other.example.org')).toBeUndefined();
    expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(certificate.checkIP('::1')).toBe('::1');
    expect(certificate.ca).toBe(false);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    const days = (certificate.validToDate.getTime() - certificate.validFromDate.getTime()) / 86_400_000;
    expect(days).toBeGreaterThanOrEqual(30);
    expect(days).toBeLessThan(30.01);
    const fromKey = createPublicKey(readFileSync(keyPath));
    expect(fromKey.export({ type: 'spki', format: 'pem' })).toBe(
      certificate.publicKey.export({ type: 'spki', format: 'pem' }),
    );
    // A second one does not replace the first.
    expect(codeOf(() => core.createSelfSignedCertificate({ keyPath, names, days: 30 }))).toBe('io');
  });

  test('refuses an invalid name, number of days or path', () => {
    const keyPath = join(folder, 'other.key');
    for (const names of [[], [''], ['a b'], ['x,DNS:evil.test'], ['a\nb'], ['a'.repeat(254)], ['é']])
      expect(codeOf(() => core.createSelfSignedCertificate({ keyPath, names, days: 30 }))).toBe('bad-argument');
    for (const days of [0, -1, 3651, 1.5, Number.NaN])
      expect(codeOf(() => core.createSelfSignedCertificate({ keyPath, names: ['a.test'], days }))).toBe('bad-argument');
    expect(
      codeOf(() => core.createSelfSignedCertificate({ keyPath: join(folder, 'no', 'x'), names: ['a.test'], days: 1 })),
    ).toBe('io');
  });
});
