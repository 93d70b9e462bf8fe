// Data longer than one message between library and agent carries: every function that takes or
// gives bytes, at the lengths around 1 MiB and above, in one piece and in parts, with keys of the
// session and of the token. The answers are compared with OpenSSL's (node:crypto). PKCS#11 2.40,
// sections 5.2, 5.8 to 5.13 and 5.15.
import {
  type CipherCCMTypes,
  type CipherGCMTypes,
  createCipheriv,
  createHash,
  createHmac,
  createPublicKey,
  verify as nodeVerify,
  randomBytes,
} from 'node:crypto';
import pkcs11js from 'pkcs11js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Pkcs11Host, rvOf, startHost } from '../support/pkcs11-host.ts';
import { places } from '../support/template.ts';
import { inLongTier } from '../support/tiers.ts';

let host: Pkcs11Host;
let pkcs11: pkcs11js.PKCS11;
let session: Buffer;
beforeAll(async () => {
  host = await startHost();
  ({ pkcs11 } = host);
  session = host.open();
});
afterAll(() => host?.stop());

const mebi = 1 << 20;
/**
 * Lengths below, at and above the capacity of one message, and of several messages. All but the
 * last are whole blocks or close to one.
 */
const isLong = inLongTier('conformance/large-data: each length');
const lengths = isLong
  ? [mebi - 8192, mebi - 8191, mebi - 1, mebi, mebi + 1, 2 * mebi, 5 * mebi + 4321]
  : [mebi - 8191, mebi, 2 * mebi + 4321];
const wholeBlocks = (length: number): number => length - (length % 16);
const longest = randomBytes(6 * mebi);
const dataOf = (length: number): Buffer => longest.subarray(0, length);
/** Compares without a printout of megabytes. */
const same = (got: Buffer, wanted: Buffer): void => {
  expect(got.length).toBe(wanted.length);
  // Only then: comparing megabytes byte by byte in JavaScript takes longer than all that is tested
  // here.
  if (!got.equals(wanted)) expect.fail(`differs first at byte ${got.findIndex((byte, i) => byte !== wanted[i])}`);
};
/** A place that was filled with 0xee and into which nothing was written. */
const isUntouched = (place: Buffer): boolean => place.equals(Buffer.alloc(place.length, 0xee));

const keyValue = randomBytes(32);
let labels = 0;
const makeKey = (token: boolean, keyType = pkcs11js.CKK_AES): Buffer =>
  pkcs11.C_CreateObject(session, [
    { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
    { type: pkcs11js.CKA_KEY_TYPE, value: keyType },
    { type: pkcs11js.CKA_VALUE, value: keyValue },
    { type: pkcs11js.CKA_TOKEN, value: token },
    { type: pkcs11js.CKA_LABEL, value: `large ${++labels}` },
    { type: pkcs11js.CKA_ENCRYPT, value: true },
    { type: pkcs11js.CKA_DECRYPT, value: true },
    { type: pkcs11js.CKA_SIGN, value: true },
    { type: pkcs11js.CKA_VERIFY, value: true },
  ]);

interface Mode {
  readonly name: string;
  readonly mechanism: (length: number, iv: Buffer) => pkcs11js.Mechanism;
  readonly expected: (data: Buffer, iv: Buffer) => Buffer;
  readonly ivLength: number;
  readonly wholeBlocks: boolean;
  /** Bytes that the result is longer at most. */
  readonly more: number;
}
const aad = Buffer.from('what is known to all');
const plain =
  (algorithm: string) =>
  (data: Buffer, iv: Buffer): Buffer => {
    const cipher = createCipheriv(algorithm, keyValue, algorithm.endsWith('ecb') ? null : iv);
    if (algorithm.endsWith('padded')) return Buffer.alloc(0);
    return Buffer.concat([cipher.update(data), cipher.final()]);
  };
const unpadded =
  (algorithm: string) =>
  (data: Buffer, iv: Buffer): Buffer => {
    const cipher = createCipheriv(algorithm, keyValue, algorithm.endsWith('ecb') ? null : iv).setAutoPadding(false);
    return Buffer.concat([cipher.update(data), cipher.final()]);
  };
const streaming: readonly Mode[] = [
  {
    name: 'CKM_AES_ECB',
    mechanism: () => ({ mechanism: pkcs11js.CKM_AES_ECB }),
    expected: unpadded('aes-256-ecb'),
    ivLength: 0,
    wholeBlocks: true,
    more: 0,
  },
  {
    name: 'CKM_AES_CBC',
    mechanism: (_, iv) => ({ mechanism: pkcs11js.CKM_AES_CBC, parameter: iv }),
    expected: unpadded('aes-256-cbc'),
    ivLength: 16,
    wholeBlocks: true,
    more: 0,
  },
  {
    name: 'CKM_AES_CBC_PAD',
    mechanism: (_, iv) => ({ mechanism: pkcs11js.CKM_AES_CBC_PAD, parameter: iv }),
    expected: plain('aes-256-cbc'),
    ivLength: 16,
    wholeBlocks: false,
    more: 16,
  },
  {
    name: 'CKM_AES_CTR',
    mechanism: (_, iv) => ({
      mechanism: pkcs11js.CKM_AES_CTR,
      // CK_AES_CTR_PARAMS: the counter's width in bits, and its block.
      parameter: Buffer.concat([Buffer.of(128, 0, 0, 0, 0, 0, 0, 0), iv]),
    }),
    expected: plain('aes-256-ctr'),
    ivLength: 16,
    wholeBlocks: false,
    more: 0,
  },
];
const authenticated: readonly Mode[] = [
  {
    name: 'CKM_AES_GCM',
    mechanism: (_, iv) => ({
      mechanism: pkcs11js.CKM_AES_GCM,
      parameter: { type: pkcs11js.CK_PARAMS_AES_GCM, iv, aad, ivBits: 96, tagBits: 128 } as pkcs11js.AesGCM,
    }),
    expected: (data, iv) => {
      const cipher = createCipheriv('aes-256-gcm' satisfies CipherGCMTypes, keyValue, iv).setAAD(aad);
      return Buffer.concat([cipher.update(data), cipher.final(), cipher.getAuthTag()]);
    },
    ivLength: 12,
    wholeBlocks: false,
    more: 16,
  },
  {
    name: 'CKM_AES_CCM',
    mechanism: (length, iv) => ({
      mechanism: pkcs11js.CKM_AES_CCM,
      // The names that pkcs11js reads are not those that it declares.
      parameter: { type: pkcs11js.CK_PARAMS_AES_CCM, dataLength: length, nonce: iv, aad, macLength: 16 } as never,
    }),
    expected: (data, iv) => {
      const options = { authTagLength: 16 };
      const cipher = createCipheriv('aes-256-ccm' satisfies CipherCCMTypes, keyValue, iv, options);
      cipher.setAAD(aad, { plaintextLength: data.length });
      return Buffer.concat([cipher.update(data), cipher.final(), cipher.getAuthTag()]);
    },
    ivLength: 11,
    wholeBlocks: false,
    more: 16,
  },
];

/** In parts of the sizes that are given, in turn. */
const inParts = (data: Buffer, sizes: readonly number[], update: (part: Buffer) => Buffer | undefined): Buffer => {
  const results: Buffer[] = [];
  for (let at = 0, i = 0; at < data.length; i++) {
    const part = data.subarray(at, at + (sizes[i % sizes.length] ?? 1));
    const result = update(part);
    // A copy: pkcs11js returns the buffer that it was given.
    if (result !== undefined) results.push(Buffer.from(result));
    at += part.length;
  }
  return Buffer.concat(results);
};

describe.each([
  { where: 'session', token: false, modes: [...streaming, ...authenticated] },
  { where: 'token', token: true, modes: [...streaming, ...authenticated] },
])('with a key of the $where', ({ token, modes }) => {
  let key: Buffer;
  beforeAll(() => {
    key = makeKey(token);
  });

  describe.each(modes)('$name', (mode) => {
    const of = (length: number): Buffer => dataOf(mode.wholeBlocks ? wholeBlocks(length) : length);

    test.each(lengths)('%i bytes, encrypted and decrypted in one piece', (length) => {
      const data = of(length);
      const iv = randomBytes(mode.ivLength);
      const wanted = mode.expected(data, iv);
      pkcs11.C_EncryptInit(session, mode.mechanism(data.length, iv), key);
      same(pkcs11.C_Encrypt(session, data, Buffer.alloc(wanted.length)), wanted);
      pkcs11.C_DecryptInit(session, mode.mechanism(data.length, iv), key);
      same(pkcs11.C_Decrypt(session, wanted, Buffer.alloc(wanted.length)), data);
    });

    test('in place', () => {
      const data = of(3 * mebi + 77);
      const iv = randomBytes(mode.ivLength);
      const wanted = mode.expected(data, iv);
      const place = Buffer.alloc(wanted.length);
      data.copy(place);
      pkcs11.C_EncryptInit(session, mode.mechanism(data.length, iv), key);
      same(pkcs11.C_Encrypt(session, place.subarray(0, data.length), place), wanted);
      pkcs11.C_DecryptInit(session, mode.mechanism(data.length, iv), key);
      same(pkcs11.C_Decrypt(session, place, place), data);
    });

    test.each(isLong ? [16, 777, 300_000] : [777])(
      'where input and output overlap by all but %i bytes, in both directions',
      (distance) => {
        const data = of(2 * mebi + 99);
        for (const shift of [distance, -distance]) {
          const iv = randomBytes(mode.ivLength);
          const wanted = mode.expected(data, iv);
          const memory = Buffer.alloc(wanted.length + 2 * distance);
          const from = memory.subarray(distance, distance + data.length);
          data.copy(from);
          const to = memory.subarray(distance + shift, distance + shift + wanted.length);
          pkcs11.C_EncryptInit(session, mode.mechanism(data.length, iv), key);
          same(pkcs11.C_Encrypt(session, from, to), wanted);
          wanted.copy(memory, distance);
          const sealed = memory.subarray(distance, distance + wanted.length);
          const back = memory.subarray(distance + shift, distance + shift + data.length);
          pkcs11.C_DecryptInit(session, mode.mechanism(data.length, iv), key);
          same(pkcs11.C_Decrypt(session, sealed, back), data);
        }
      },
    );

    test('a place that is too small keeps the operation, takes nothing in and writes nothing', () => {
      const data = of(2 * mebi + 5);
      const iv = randomBytes(mode.ivLength);
      const wanted = mode.expected(data, iv);
      pkcs11.C_EncryptInit(session, mode.mechanism(data.length, iv), key);
      const small = Buffer.alloc(wanted.length - 1, 0xee);
      expect(rvOf(() => pkcs11.C_Encrypt(session, data, small))).toBe('CKR_BUFFER_TOO_SMALL');
      expect(isUntouched(small)).toBe(true);
      same(pkcs11.C_Encrypt(session, data, Buffer.alloc(wanted.length)), wanted);
      pkcs11.C_DecryptInit(session, mode.mechanism(data.length, iv), key);
      const short = Buffer.alloc(data.length - 1, 0xee);
      expect(rvOf(() => pkcs11.C_Decrypt(session, wanted, short))).toBe('CKR_BUFFER_TOO_SMALL');
      expect(isUntouched(short)).toBe(true);
      same(pkcs11.C_Decrypt(session, wanted, Buffer.alloc(data.length)), data);
    });

    test('in parts that are longer than a message', () => {
      const data = of(5 * mebi + 4321);
      const iv = randomBytes(mode.ivLength);
      const wanted = mode.expected(data, iv);
      const sizes = [mebi + 33, 15, 2 * mebi - 7, 1];
      const update = (part: Buffer): Buffer => pkcs11.C_EncryptUpdate(session, part, Buffer.alloc(part.length + 16));
      pkcs11.C_EncryptInit(session, mode.mechanism(data.length, iv), key);
      const sealed = inParts(data, sizes, update);
      same(Buffer.concat([sealed, pkcs11.C_EncryptFinal(session, Buffer.alloc(32))]), wanted);
      pkcs11.C_DecryptInit(session, mode.mechanism(data.length, iv), key);
      const opened = inParts(wanted, sizes, (part) =>
        pkcs11.C_DecryptUpdate(session, part, Buffer.alloc(part.length + 16)),
      );
      const rest = pkcs11.C_DecryptFinal(session, Buffer.alloc(data.length));
      same(Buffer.concat([opened, rest]), data);
    });

    test('a part whose place is too small is not taken in', () => {
      const data = of(2 * mebi);
      const iv = randomBytes(mode.ivLength);
      const wanted = mode.expected(data, iv);
      pkcs11.C_EncryptInit(session, mode.mechanism(data.length, iv), key);
      expect(rvOf(() => pkcs11.C_EncryptUpdate(session, data, Buffer.alloc(mebi)))).toBe('CKR_BUFFER_TOO_SMALL');
      const sealed = Buffer.from(pkcs11.C_EncryptUpdate(session, data, Buffer.alloc(wanted.length + 16)));
      same(Buffer.concat([sealed, pkcs11.C_EncryptFinal(session, Buffer.alloc(32))]), wanted);
    });
  });
});

// One after the other on one connection to the service, with answers that are longer than what its
// sockets keep unsent.
test('200 calls of 128 KiB with a key of the token', () => {
  const key = makeKey(true);
  const data = dataOf(128 * 1024);
  const wanted = unpadded('aes-256-ecb')(data, Buffer.alloc(0));
  for (let call = 0; call < 200; call++) {
    pkcs11.C_EncryptInit(session, { mechanism: pkcs11js.CKM_AES_ECB }, key);
    same(pkcs11.C_Encrypt(session, data, Buffer.alloc(data.length)), wanted);
  }
});

describe.each(
  authenticated.flatMap((mode) => [
    { ...mode, where: 'session' },
    { ...mode, where: 'token' },
  ]),
)('$name with a key of the $where that does not authenticate', (mode) => {
  test.each([0, mebi + 5, 2 * mebi + 99])('changed at byte %i: nothing is written, and the operation is over', (at) => {
    const key = makeKey(mode.where === 'token');
    const data = dataOf(2 * mebi + 100);
    const iv = randomBytes(mode.ivLength);
    const sealed = mode.expected(data, iv);
    sealed[at] = (sealed[at] ?? 0) ^ 1;
    const place = Buffer.alloc(data.length, 0xee);
    pkcs11.C_DecryptInit(session, mode.mechanism(data.length, iv), key);
    expect(rvOf(() => pkcs11.C_Decrypt(session, sealed, place))).toBe('CKR_ENCRYPTED_DATA_INVALID');
    expect(isUntouched(place)).toBe(true);
    expect(rvOf(() => pkcs11.C_Decrypt(session, sealed, place))).toBe('CKR_OPERATION_NOT_INITIALIZED');
    // In parts, all output follows at the end.
    pkcs11.C_DecryptInit(session, mode.mechanism(data.length, iv), key);
    for (let from = 0; from < sealed.length; from += mebi) {
      expect(pkcs11.C_DecryptUpdate(session, sealed.subarray(from, from + mebi), Buffer.alloc(mebi + 16)).length).toBe(
        0,
      );
    }
    expect(rvOf(() => pkcs11.C_DecryptFinal(session, place))).toBe('CKR_ENCRYPTED_DATA_INVALID');
    expect(isUntouched(place)).toBe(true);
    // In place: the ciphertext is as it was.
    const copy = Buffer.from(sealed);
    pkcs11.C_DecryptInit(session, mode.mechanism(data.length, iv), key);
    expect(rvOf(() => pkcs11.C_Decrypt(session, copy, copy))).toBe('CKR_ENCRYPTED_DATA_INVALID');
    same(copy, sealed);
  });
});

describe('digests', () => {
  test.each([
    ['sha1', pkcs11js.CKM_SHA_1],
    ['sha256', pkcs11js.CKM_SHA256],
    ['sha512', pkcs11js.CKM_SHA512],
    ['sha3-256', 0x2b0],
  ] as const)('%s, in one piece and in parts', (name, mechanism) => {
    for (const length of lengths) {
      const data = dataOf(length);
      const wanted = createHash(name).update(data).digest();
      pkcs11.C_DigestInit(session, { mechanism });
      expect(rvOf(() => pkcs11.C_Digest(session, data, Buffer.alloc(wanted.length - 1)))).toBe('CKR_BUFFER_TOO_SMALL');
      same(pkcs11.C_Digest(session, data, Buffer.alloc(64)), wanted);
      pkcs11.C_DigestInit(session, { mechanism });
      inParts(data, [mebi + 1, 7], (part) => {
        pkcs11.C_DigestUpdate(session, part);
        return undefined;
      });
      same(pkcs11.C_DigestFinal(session, Buffer.alloc(64)), wanted);
    }
  });
});

describe('signatures and MACs', () => {
  test.each(['session', 'token'])('CKM_SHA256_HMAC with a key of the %s', (where) => {
    const key = makeKey(where === 'token', pkcs11js.CKK_GENERIC_SECRET);
    const mechanism = { mechanism: pkcs11js.CKM_SHA256_HMAC };
    for (const length of lengths) {
      const data = dataOf(length);
      const wanted = createHmac('sha256', keyValue).update(data).digest();
      pkcs11.C_SignInit(session, mechanism, key);
      expect(rvOf(() => pkcs11.C_Sign(session, data, Buffer.alloc(31)))).toBe('CKR_BUFFER_TOO_SMALL');
      same(pkcs11.C_Sign(session, data, Buffer.alloc(64)), wanted);
      pkcs11.C_SignInit(session, mechanism, key);
      pkcs11.C_SignUpdate(session, data);
      same(pkcs11.C_SignFinal(session, Buffer.alloc(64)), wanted);
      pkcs11.C_VerifyInit(session, mechanism, key);
      expect(rvOf(() => pkcs11.C_Verify(session, data, wanted))).toBe('CKR_OK');
      pkcs11.C_VerifyInit(session, mechanism, key);
      pkcs11.C_VerifyUpdate(session, data);
      expect(rvOf(() => pkcs11.C_VerifyFinal(session, wanted))).toBe('CKR_OK');
      wanted[0] = (wanted[0] ?? 0) ^ 1;
      pkcs11.C_VerifyInit(session, mechanism, key);
      expect(rvOf(() => pkcs11.C_Verify(session, data, wanted))).toBe('CKR_SIGNATURE_INVALID');
      pkcs11.C_VerifyInit(session, mechanism, key);
      expect(rvOf(() => pkcs11.C_Verify(session, data, wanted.subarray(1)))).toBe('CKR_SIGNATURE_LEN_RANGE');
    }
  });

  test.each(['session', 'token'])('CKM_AES_CMAC with a key of the %s, in one piece and in parts', (where) => {
    const key = makeKey(where === 'token');
    const mechanism = { mechanism: 0x108a };
    const data = dataOf(3 * mebi + 5);
    pkcs11.C_SignInit(session, mechanism, key);
    const whole = Buffer.from(pkcs11.C_Sign(session, data, Buffer.alloc(16)));
    pkcs11.C_SignInit(session, mechanism, key);
    inParts(data, [65_536], (part) => {
      pkcs11.C_SignUpdate(session, part);
      return undefined;
    });
    same(pkcs11.C_SignFinal(session, Buffer.alloc(16)), whole);
    pkcs11.C_VerifyInit(session, mechanism, key);
    expect(rvOf(() => pkcs11.C_Verify(session, data, whole))).toBe('CKR_OK');
  });

  test.each(places)('CKM_ECDSA_SHA256 and CKM_ECDSA with a key of the %s', (_, token) => {
    const p256 = Buffer.from('06082a8648ce3d030107', 'hex');
    const { publicKey, privateKey } = pkcs11.C_GenerateKeyPair(
      session,
      { mechanism: pkcs11js.CKM_EC_KEY_PAIR_GEN },
      [
        { type: pkcs11js.CKA_EC_PARAMS, value: p256 },
        { type: pkcs11js.CKA_TOKEN, value: token },
        { type: pkcs11js.CKA_LABEL, value: `large pair ${++labels}` },
      ],
      [
        { type: pkcs11js.CKA_TOKEN, value: token },
        { type: pkcs11js.CKA_LABEL, value: `large pair ${labels}` },
      ],
    );
    const [row] = pkcs11.C_GetAttributeValue(session, publicKey, [{ type: 0x129 }]);
    const key = createPublicKey({ key: row?.value as Buffer, format: 'der', type: 'spki' });
    const data = dataOf(2 * mebi + 1);
    const mechanism = { mechanism: pkcs11js.CKM_ECDSA_SHA256 };
    pkcs11.C_SignInit(session, mechanism, privateKey);
    const signature = Buffer.from(pkcs11.C_Sign(session, data, Buffer.alloc(64)));
    expect(nodeVerify('sha256', data, { key, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
    pkcs11.C_VerifyInit(session, mechanism, publicKey);
    expect(rvOf(() => pkcs11.C_Verify(session, data, signature))).toBe('CKR_OK');
  });

  test.each([
    ['Ed25519', 'session', '06032b6570'],
    ['Ed25519', 'token', '06032b6570'],
    ['Ed448', 'session', '06032b6571'],
    ['Ed448', 'token', '06032b6571'],
  ])('CKM_EDDSA with %s and a key of the %s refuses what it cannot sign as a whole', (_, where, oid) => {
    const { publicKey, privateKey } = pkcs11.C_GenerateKeyPair(
      session,
      { mechanism: 0x1055 },
      [{ type: pkcs11js.CKA_EC_PARAMS, value: Buffer.from(oid, 'hex') }],
      [{ type: pkcs11js.CKA_TOKEN, value: where === 'token' }],
    );
    const mechanism = { mechanism: 0x1057 };
    const signatureOf = (data: Buffer): Buffer => {
      pkcs11.C_SignInit(session, mechanism, privateKey);
      return Buffer.from(pkcs11.C_Sign(session, data, Buffer.alloc(114)));
    };
    const data = dataOf(mebi - 8191);
    expect(rvOf(() => signatureOf(data))).toBe('CKR_DATA_LEN_RANGE');
    // Nor does a signature of its beginning verify as one of all of it.
    for (const length of [128, mebi - 8192]) {
      const signature = signatureOf(data.subarray(0, length));
      pkcs11.C_VerifyInit(session, mechanism, publicKey);
      expect(rvOf(() => pkcs11.C_Verify(session, data, signature))).toBe('CKR_DATA_LEN_RANGE');
    }
  });

  test('what takes a bounded number of bytes says so, and the operation is over', () => {
    const { privateKey } = pkcs11.C_GenerateKeyPair(
      session,
      { mechanism: pkcs11js.CKM_RSA_PKCS_KEY_PAIR_GEN },
      [
        { type: pkcs11js.CKA_MODULUS_BITS, value: 2048 },
        { type: pkcs11js.CKA_PUBLIC_EXPONENT, value: Buffer.of(1, 0, 1) },
      ],
      [],
    );
    pkcs11.C_SignInit(session, { mechanism: pkcs11js.CKM_RSA_PKCS }, privateKey);
    expect(rvOf(() => pkcs11.C_Sign(session, dataOf(2 * mebi), Buffer.alloc(256)))).toBe('CKR_DATA_LEN_RANGE');
    expect(rvOf(() => pkcs11.C_Sign(session, dataOf(20), Buffer.alloc(256)))).toBe('CKR_OPERATION_NOT_INITIALIZED');
  });
});

describe('dual functions', () => {
  test('C_DigestEncryptUpdate and C_DecryptDigestUpdate', () => {
    const key = makeKey(false);
    const data = dataOf(3 * mebi);
    const iv = randomBytes(16);
    const wanted = unpadded('aes-256-cbc')(data, iv);
    const digest = createHash('sha256').update(data).digest();
    const mechanism = { mechanism: pkcs11js.CKM_AES_CBC, parameter: iv };
    pkcs11.C_DigestInit(session, { mechanism: pkcs11js.CKM_SHA256 });
    pkcs11.C_EncryptInit(session, mechanism, key);
    const twice = pkcs11 as unknown as Record<string, ((s: Buffer, i: Buffer, o: Buffer) => Buffer) | undefined>;
    if (twice.C_DigestEncryptUpdate === undefined) throw new Error('pkcs11js has no dual functions');
    expect(rvOf(() => twice.C_DigestEncryptUpdate?.(session, data, Buffer.alloc(mebi)))).toBe('CKR_BUFFER_TOO_SMALL');
    same(twice.C_DigestEncryptUpdate(session, data, Buffer.alloc(data.length)), wanted);
    pkcs11.C_EncryptFinal(session, Buffer.alloc(16));
    same(pkcs11.C_DigestFinal(session, Buffer.alloc(32)), digest);
  });

  // The MAC goes to the service part by part while the encryption's result waits for it.
  test.each([
    ['session', 'session'],
    ['session', 'token'],
    ['token', 'token'],
  ])('C_SignEncryptUpdate: encryption with a key of the %s, HMAC with one of the %s', (encrypts, signs) => {
    const key = makeKey(encrypts === 'token');
    const macKey = makeKey(signs === 'token', pkcs11js.CKK_GENERIC_SECRET);
    const data = dataOf(3 * mebi);
    const iv = randomBytes(16);
    pkcs11.C_SignInit(session, { mechanism: pkcs11js.CKM_SHA256_HMAC }, macKey);
    pkcs11.C_EncryptInit(session, { mechanism: pkcs11js.CKM_AES_CBC, parameter: iv }, key);
    const twice = pkcs11 as unknown as Record<string, (s: Buffer, i: Buffer, o: Buffer) => Buffer>;
    const sealed = inParts(data, [mebi + 16, 600_000], (part) =>
      twice.C_SignEncryptUpdate?.(session, part, Buffer.alloc(part.length + 16)),
    );
    same(Buffer.concat([sealed, pkcs11.C_EncryptFinal(session, Buffer.alloc(16))]), unpadded('aes-256-cbc')(data, iv));
    same(pkcs11.C_SignFinal(session, Buffer.alloc(32)), createHmac('sha256', keyValue).update(data).digest());
  });
});

describe('random numbers', () => {
  test('C_GenerateRandom of 3 MiB and C_SeedRandom with 2 MiB', () => {
    const random = pkcs11.C_GenerateRandom(session, Buffer.alloc(3 * mebi));
    // All of it is written: every page has changed, and no two parts are the same.
    for (let at = 0; at < random.length; at += 4096) {
      expect(random.subarray(at, at + 64).equals(Buffer.alloc(64))).toBe(false);
    }
    const pages = new Set(
      Array.from({ length: random.length / 4096 }, (_, i) => random.toString('hex', i * 4096, i * 4096 + 16)),
    );
    expect(pages.size).toBe(random.length / 4096);
    expect(rvOf(() => pkcs11.C_SeedRandom(session, dataOf(2 * mebi)))).toBe('CKR_OK');
  });
});
