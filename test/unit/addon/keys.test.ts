// Keys through the addon: making, importing, describing, giving out, wrapping, deriving; digests,
// MACs and random bytes; and the errors for a released key or a key of the wrong kind. Ciphers are
// in ciphers.test.ts, signatures in signatures.test.ts.
import { createHash, createHmac, diffieHellman, generateKeyPairSync, hkdfSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { AnyKeyRef, Curve, Digest, EcdhOptions, KeyRef, MacParameters } from '../../../addon/core.ts';
import { digestNames } from '../../../server/base/digests.ts';
import {
  aesKey,
  core,
  digestLength,
  genericKey,
  macLength,
  misplacedKek,
  runCipher,
  runDigest,
  runMac,
  withKey,
} from '../../support/core-keys.ts';
import { codeOf } from '../../support/outcomes.ts';
import fc from '../../support/property.ts';

const seed = 20_261_121;
const digests: readonly Digest[] = digestNames;
const bytes = (length: number, start = 1): Buffer => Buffer.from(Array.from({ length }, (_, at) => (start + at) & 255));

describe('keys', () => {
  test('a made key is described as what it is', () => {
    const made: readonly (readonly [AnyKeyRef, object])[] = [
      [core.generateAes(128), { kind: 'aes', bits: 128 }],
      [core.generateAes(192), { kind: 'aes', bits: 192 }],
      [core.generateAes(256), { kind: 'aes', bits: 256 }],
      [core.generateGeneric(20), { kind: 'generic', bits: 160 }],
      [core.generateKek(), { kind: 'kek', bits: 256 }],
      [core.generateRsa(2048), { kind: 'rsa-private', bits: 2048 }],
      [core.generateEc('p256'), { kind: 'ec-private', bits: 256, curve: 'p256' }],
      [core.generateEc('p384'), { kind: 'ec-private', bits: 384, curve: 'p384' }],
      [core.generateEc('p521'), { kind: 'ec-private', bits: 521, curve: 'p521' }],
      [core.generateEc('ed25519'), { kind: 'ed25519-private', bits: 256, curve: 'ed25519' }],
    ];
    for (const [key, description] of made) {
      expect(core.describe(key)).toEqual(description);
      core.release(key);
      expect(codeOf(() => core.describe(key))).toBe('bad-key');
    }
  });

  test('a reference is never given twice', () => {
    const seen = new Set<number>();
    for (let round = 0; round < 5000; round++) {
      const key = core.generateAes(128);
      expect(seen.has(key)).toBe(false);
      seen.add(key);
      core.release(key);
    }
  });

  test('keys and locked bytes are counted, and come back', () => {
    const before = core.memoryStatus();
    const keys = Array.from({ length: 100 }, () => core.generateAes(256));
    const during = core.memoryStatus();
    expect(during.keys).toBe(before.keys + 100);
    expect(during.used).toBeGreaterThan(before.used);
    for (const key of keys) core.release(key);
    for (const key of keys) core.release(key);
    expect(core.memoryStatus()).toEqual(before);
  });

  test('secret keys go in and out unchanged; the caller’s buffer is not kept', () => {
    for (const length of [1, 15, 16, 24, 32, 33, 1000, 4096]) {
      const value = bytes(length);
      const key = genericKey(value);
      value.fill(0);
      expect(withKey(key, () => core.exportSecret(key))).toEqual(bytes(length));
    }
    for (const length of [16, 24, 32])
      expect(withKey(aesKey(bytes(length)), (key) => core.exportSecret(key))).toEqual(bytes(length));
  });

  test('a view’s own bytes are the key, not the memory around it', () => {
    const around = Buffer.alloc(48, 0xff);
    bytes(16).copy(around, 16);
    const view = new Uint8Array(around.buffer, around.byteOffset + 16, 16);
    expect(withKey(aesKey(view), (key) => core.exportSecret(key))).toEqual(bytes(16));
  });

  test('sizes that do not exist are refused', () => {
    for (const length of [0, 8, 15, 17, 33, 64]) expect(codeOf(() => aesKey(bytes(length)))).toBe('bad-argument');
    for (const length of [0, 4097]) expect(codeOf(() => genericKey(bytes(length)))).toBe('bad-argument');
    for (const length of [16, 24, 33])
      expect(codeOf(() => core.importSecret('kek', bytes(length)))).toBe('bad-argument');
    for (const bits of [0, 56, 129, 257, 128.5, Number.NaN, -128])
      expect(codeOf(() => core.generateAes(bits as 128))).toBe('bad-argument');
    for (const bits of [0, 1024, 2047, 4097, 8192, Number.NaN])
      expect(codeOf(() => core.generateRsa(bits))).toBe('bad-argument');
    for (const count of [0, 4097, -1]) expect(codeOf(() => core.generateGeneric(count))).toBe('bad-argument');
    expect(codeOf(() => core.generateEc('p192' as Curve))).toBe('bad-argument');
    expect(codeOf(() => core.importSecret('rsa-private' as 'aes', bytes(32)))).toBe('bad-argument');
    expect(codeOf(() => core.importSecret('aes', 'a string of 32 characters, no key' as unknown as Buffer))).toBe(
      'bad-argument',
    );
  });

  test('only secret data keys are given out', () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const others = [
      misplacedKek(),
      core.generateEc('p256'),
      core.generateEc('ed25519'),
      core.importPublicKey(publicKey.export({ type: 'spki', format: 'der' })),
    ];
    for (const key of others) {
      expect(codeOf(() => core.exportSecret(key))).toBe('key-type');
      core.release(key);
    }
  });

  test('check values are those of PKCS#11', () => {
    expect(withKey(aesKey(Buffer.alloc(16)), (key) => core.checkValue(key)).toString('hex')).toBe('66e94b');
    expect(withKey(aesKey(Buffer.alloc(32)), (key) => core.checkValue(key)).toString('hex')).toBe('dc95c0');
    const value = bytes(20);
    const sha1 = createHash('sha1').update(value).digest();
    expect(withKey(genericKey(value), (key) => core.checkValue(key))).toEqual(sha1.subarray(0, 3));
    expect(withKey(core.generateEc('ed25519'), (key) => codeOf(() => core.checkValue(key)))).toBe('key-type');
  });

  test.each(['p256', 'p384', 'p521', 'ed25519', 'rsa'] as const)(
    '%s: Node’s pair goes in, its public half comes out',
    (sort) => {
      const names = { p256: 'P-256', p384: 'P-384', p521: 'P-521' };
      const pair =
        sort === 'rsa'
          ? generateKeyPairSync('rsa', { modulusLength: 2048 })
          : sort === 'ed25519'
            ? generateKeyPairSync('ed25519')
            : generateKeyPairSync('ec', { namedCurve: names[sort] });
      const spki = pair.publicKey.export({ type: 'spki', format: 'der' });
      const key = core.importPrivateKey(pair.privateKey.export({ type: 'pkcs8', format: 'der' }));
      expect(core.exportPublicKey(key)).toEqual(spki);
      const half = core.importPublicKey(spki);
      expect(core.exportPublicKey(half)).toEqual(spki);
      expect(core.describe(half).kind).toBe(core.describe(key).kind.replace('private', 'public'));
      core.release(key);
      core.release(half);
    },
  );

  test('what is not a key is refused', () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 768 });
    expect(codeOf(() => core.importPrivateKey(privateKey.export({ type: 'pkcs8', format: 'der' })))).toBe(
      'unsupported',
    );
    for (const der of [Buffer.alloc(0), bytes(100), Buffer.alloc(20_000)]) {
      expect(codeOf(() => core.importPrivateKey(der))).toBe('bad-argument');
      expect(codeOf(() => core.importPublicKey(der))).toBe('bad-argument');
    }
  });
});

describe('key wrap', () => {
  const kw = { way: 'key-wrap', padded: false } as const;
  const kwp = { way: 'key-wrap', padded: true } as const;
  test(`what is wrapped unwraps under the same key only (seed ${seed})`, () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 200 }), fc.boolean(), (data, padded) => {
        const value = padded ? data : bytes(16 + 8 * (data.length % 20));
        const wrapping = core.generateAes(256);
        const other = core.generateAes(256);
        const inner = genericKey(value);
        const wrapped = core.wrapKey(wrapping, { way: 'key-wrap', padded }, inner);
        expect(core.wrapData(wrapping, { padded }, value)).toEqual(wrapped);
        expect(core.unwrapData(wrapping, { padded }, wrapped)).toEqual(Buffer.from(value));
        const back = core.unwrapKey(wrapping, { way: 'key-wrap', padded }, wrapped, 'generic');
        expect(core.exportSecret(back)).toEqual(Buffer.from(value));
        expect(codeOf(() => core.unwrapKey(other, { way: 'key-wrap', padded }, wrapped, 'generic'))).toBe(
          'authentication-failed',
        );
        const changed = Buffer.from(wrapped);
        changed[0] = (changed[0] ?? 0) ^ 1;
        expect(codeOf(() => core.unwrapData(wrapping, { padded }, changed))).toBe('authentication-failed');
        for (const key of [wrapping, other, inner, back]) core.release(key);
      }),
      { seed, numRuns: 100 },
    );
  });

  test('a private key wraps as its PKCS#8, with padding', () => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'der' });
    const key = core.importPrivateKey(pkcs8);
    withKey(core.generateAes(256), (wrapping) =>
      expect(core.unwrapData(wrapping, { padded: true }, core.wrapKey(wrapping, kwp, key))).toEqual(pkcs8),
    );
    core.release(key);
  });

  test('what AES-KW cannot wrap is refused before it is wrapped', () => {
    withKey(core.generateAes(256), (key) => {
      for (const length of [0, 1, 7, 8, 9, 15, 17, 23, 25])
        expect(codeOf(() => core.wrapData(key, { padded: false }, bytes(length)))).toBe('data-length');
      expect(codeOf(() => core.wrapData(key, { padded: true }, Buffer.alloc(0)))).toBe('data-length');
      for (const length of [0, 8, 16, 25])
        expect(codeOf(() => core.unwrapData(key, { padded: false }, bytes(length)))).toBe('data-length');
    });
  });

  test('a KEK neither wraps nor is wrapped, ciphers or authenticates', () => {
    const kek = misplacedKek();
    const aes = core.generateAes(256);
    expect(codeOf(() => core.wrapKey(aes, kw, kek))).toBe('key-type');
    expect(codeOf(() => core.wrapKey(kek, kw, aes))).toBe('key-type');
    expect(codeOf(() => runMac(kek, { algorithm: 'hmac', digest: 'sha256' }, bytes(1)))).toBe('key-type');
    expect(codeOf(() => core.sigv4SigningKey(kek, '20261121', 'r', 's'))).toBe('key-type');
    core.release(kek);
    core.release(aes);
  });

  test('an unwrapped key must have a valid size; another size is reported like a failed authentication', () => {
    withKey(core.generateAes(256), (wrapping) => {
      const wrapped = core.wrapData(wrapping, { padded: false }, bytes(40));
      for (const kind of ['aes', 'private'] as const) {
        expect(codeOf(() => core.unwrapKey(wrapping, kw, wrapped, kind))).toBe('authentication-failed');
      }
      core.release(core.unwrapKey(wrapping, kw, wrapped, 'generic'));
    });
  });

  const iv = bytes(16);
  const oaep = { padding: 'oaep', digest: 'sha256', mgfDigest: 'sha256' } as const;
  test('a secret key wrapped under a cipher is what the cipher makes of its value', () => {
    withKey(core.generateAes(256), (wrapping) => {
      for (const algorithm of ['aes-cbc', 'aes-cbc-pad'] as const) {
        const wrapped = withKey(aesKey(bytes(32)), (key) =>
          core.wrapKey(wrapping, { way: 'cipher', cipher: { algorithm, iv } }, key),
        );
        expect(wrapped).toEqual(runCipher(wrapping, 'encrypt', { algorithm, iv }, bytes(32)));
        withKey(core.unwrapKey(wrapping, { way: 'cipher', cipher: { algorithm, iv } }, wrapped, 'aes'), (key) => {
          expect(core.exportSecret(key)).toEqual(bytes(32));
        });
      }
    });
  });
  test('a way that does not exist, and one without its parameters, are refused', () => {
    withKey(core.generateAes(256), (key) => {
      for (const parameters of [
        {},
        { way: 'plain' },
        { way: 'key-wrap' },
        { way: 'cipher' },
        { way: 'oaep' },
        kw.way,
      ]) {
        expect(codeOf(() => core.wrapKey(key, parameters as never, key))).toBe('bad-argument');
        expect(codeOf(() => core.unwrapKey(key, parameters as never, bytes(24), 'aes'))).toBe('bad-argument');
        expect(codeOf(() => void core.unwrapKeyLater(key, parameters as never, bytes(24), 'aes'))).toBe('bad-argument');
      }
    });
  });
  test('a private key travels as its PKCS#8', () => {
    withKey(core.generateAes(256), (wrapping) => {
      withKey(core.generateEc('p384'), (key) => {
        const spki = core.exportPublicKey(key);
        const ways = [
          [core.wrapKey(wrapping, kwp, key), (wrapped: Buffer) => core.unwrapKey(wrapping, kwp, wrapped, 'private')],
          [
            core.wrapKey(wrapping, { way: 'cipher', cipher: { algorithm: 'aes-cbc-pad', iv } }, key),
            (wrapped: Buffer) =>
              core.unwrapKey(wrapping, { way: 'cipher', cipher: { algorithm: 'aes-cbc-pad', iv } }, wrapped, 'private'),
          ],
        ] as const;
        for (const [wrapped, unwrap] of ways) {
          withKey(unwrap(wrapped), (back) => expect(core.exportPublicKey(back)).toEqual(spki));
        }
      });
    });
  });
  test('OAEP wraps to the private half', () => {
    withKey(core.generateRsa(2048), (pair) => {
      const wrapped = withKey(aesKey(bytes(32)), (key) => core.wrapKey(pair, { way: 'oaep', oaep }, key));
      withKey(core.unwrapKey(pair, { way: 'oaep', oaep }, wrapped, 'aes'), (key) =>
        expect(core.exportSecret(key)).toEqual(bytes(32)),
      );
      wrapped[7] = (wrapped[7] ?? 0) ^ 1;
      expect(codeOf(() => core.unwrapKey(pair, { way: 'oaep', oaep }, wrapped, 'aes'))).toBe('authentication-failed');
      withKey(misplacedKek(), (kek) =>
        expect(codeOf(() => core.wrapKey(pair, { way: 'oaep', oaep }, kek))).toBe('key-type'),
      );
    });
  });
});

describe('agreement', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const point = (spki: Buffer): Buffer => spki.subarray(-65);
  const agree = (options?: EcdhOptions): Buffer =>
    withKey(core.importPrivateKey(privateKey.export({ format: 'der', type: 'pkcs8' })), (mine) =>
      withKey(core.ecdh(mine, point(publicKey.export({ format: 'der', type: 'spki' })), options), (key) =>
        core.exportSecret(key),
      ),
    );
  const shared = diffieHellman({ privateKey, publicKey });

  test('fewer bytes are the last ones', () => {
    expect(agree()).toEqual(shared);
    expect(agree({ kind: 'aes', bytes: 16 })).toEqual(shared.subarray(16));
    expect(codeOf(() => agree({ kind: 'generic', bytes: 33 }))).toBe('bad-argument');
  });
  test('the KDF of X9.63 hashes secret, counter and shared info', () => {
    const block = (counter: number): Buffer =>
      createHash('sha256')
        .update(shared)
        .update(Buffer.of(0, 0, 0, counter))
        .update('info')
        .digest();
    const expected = Buffer.concat([block(1), block(2)]).subarray(0, 48);
    expect(agree({ kind: 'generic', bytes: 48, kdf: 'sha256', sharedInfo: Buffer.from('info') })).toEqual(expected);
  });
});

test('an RSA key looked for elsewhere belongs to this thread', async () => {
  await expect(core.generateRsaLater(1024)).rejects.toMatchObject({ code: 'bad-argument' });
  const key = await core.generateRsaLater(2048);
  expect(core.describe(key)).toEqual({ kind: 'rsa-private', bits: 2048 });
  core.release(key);
});

describe('HKDF', () => {
  test('a salt that is not a secret key, or none at all, is refused by name', () => {
    withKey(genericKey(bytes(32)), (key) => {
      const derive = (salt: KeyRef) => codeOf(() => core.hkdf(key, 'sha256', salt, bytes(1), 'generic', 32));
      withKey(core.generateEc('ed25519'), (salt) => expect(derive(salt)).toBe('key-type'));
      withKey(misplacedKek(), (salt) => expect(derive(salt)).toBe('key-type'));
      const gone = genericKey(bytes(32));
      core.release(gone);
      expect(derive(gone)).toBe('bad-key');
      // One key may be the secret and the salt of the same derivation.
      core.release(core.hkdf(key, 'sha256', key, bytes(1), 'generic', 32));
    });
  });
  test('its steps one by one are both of them', () => {
    const [secret, salt, info] = [bytes(32), bytes(16, 50), bytes(8, 90)];
    const extracted = createHmac('sha256', salt).update(secret).digest();
    withKey(genericKey(secret), (key) => {
      withKey(core.hkdf(key, 'sha256', salt, bytes(0), 'generic', 32, 'extract'), (middle) => {
        expect(core.exportSecret(middle)).toEqual(extracted);
        withKey(core.hkdf(middle, 'sha256', bytes(0), info, 'generic', 42, 'expand'), (last) => {
          expect(core.exportSecret(last)).toEqual(Buffer.from(hkdfSync('sha256', secret, salt, info, 42)));
        });
      });
      expect(codeOf(() => core.hkdf(key, 'sha256', salt, info, 'generic', 16, 'extract'))).toBe('bad-argument');
    });
  });
  test(`Node’s agrees (seed ${seed})`, () => {
    const some = (maxLength: number): fc.Arbitrary<Uint8Array> => fc.uint8Array({ maxLength });
    const secret = fc.uint8Array({ minLength: 1, maxLength: 100 });
    fc.assert(
      fc.property(
        fc.constantFrom(...digests),
        secret,
        some(50),
        some(50),
        fc.integer({ min: 1, max: 200 }),
        (digest, value, salt, info, length) => {
          const expected = Buffer.from(hkdfSync(digest, value, salt, info, length));
          const key = genericKey(value);
          const derived = core.hkdf(key, digest, salt, info, 'generic', length);
          expect(core.exportSecret(derived)).toEqual(expected);
          core.release(key);
          core.release(derived);
        },
      ),
      { seed, numRuns: 100 },
    );
  });

  test('kinds have their sizes, and only secrets derive', () => {
    withKey(core.generateGeneric(32), (key) => {
      const none = Buffer.alloc(0);
      core.release(core.hkdf(key, 'sha256', none, none, 'kek', 32));
      expect(codeOf(() => core.hkdf(key, 'sha256', none, none, 'kek', 16))).toBe('bad-argument');
      expect(codeOf(() => core.hkdf(key, 'sha256', none, none, 'aes', 20))).toBe('bad-argument');
      expect(codeOf(() => core.hkdf(key, 'sha256', none, none, 'generic', 0))).toBe('bad-argument');
    });
    withKey(core.generateEc('ed25519'), (key) =>
      expect(codeOf(() => core.hkdf(key, 'sha256', bytes(1), bytes(1), 'generic', 16))).toBe('key-type'),
    );
  });
});

describe('digests and MACs', () => {
  const chunks = fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 6 });

  test.each(digests)(`%s: pieces give what the whole and Node give (seed ${seed})`, (digest) => {
    fc.assert(
      fc.property(chunks, (pieces) => {
        const expected = createHash(digest).update(Buffer.concat(pieces)).digest();
        expect(runDigest(digest, Buffer.concat(pieces))).toEqual(expected);
        const operation = core.digestBegin(digest);
        for (const piece of pieces) core.digestUpdate(operation, piece);
        expect(codeOf(() => core.digestFinal(operation, Buffer.alloc(digestLength(digest) - 1)))).toBe(
          'buffer-too-small',
        );
        const out = Buffer.alloc(80, 0xee);
        expect(core.digestFinal(operation, out)).toBe(expected.length);
        expect(out.subarray(0, expected.length)).toEqual(expected);
        expect(out.subarray(expected.length).every((byte) => byte === 0xee)).toBe(true);
      }),
      { seed, numRuns: 50 },
    );
    expect(codeOf(() => core.digest(digest, bytes(3), Buffer.alloc(digestLength(digest) - 1)))).toBe(
      'buffer-too-small',
    );
  });

  const macs: readonly MacParameters[] = [
    ...digests.map((digest) => ({ algorithm: 'hmac', digest }) as const),
    { algorithm: 'aes-cmac' },
  ];
  test.each(macs)(`$algorithm $digest: pieces give what the whole gives (seed ${seed})`, (parameters) => {
    fc.assert(
      fc.property(chunks, (pieces) => {
        withKey(aesKey(bytes(32)), (key) => {
          const whole = runMac(key, parameters, Buffer.concat(pieces));
          if (parameters.algorithm === 'hmac')
            expect(whole).toEqual(createHmac(parameters.digest, bytes(32)).update(Buffer.concat(pieces)).digest());
          const operation = core.macBegin(key, parameters);
          for (const piece of pieces) core.macUpdate(operation, piece);
          expect(codeOf(() => core.macFinal(operation, Buffer.alloc(whole.length - 1)))).toBe('buffer-too-small');
          const out = Buffer.alloc(whole.length);
          expect(core.macFinal(operation, out)).toBe(whole.length);
          expect(out).toEqual(whole);
        });
      }),
      { seed, numRuns: 50 },
    );
  });

  test('a MAC ends with its key; a MAC of another key is another', () => {
    for (const parameters of macs) {
      const key = core.generateAes(128);
      const other = core.generateAes(128);
      expect(runMac(key, parameters, bytes(5))).not.toEqual(runMac(other, parameters, bytes(5)));
      const operation = core.macBegin(key, parameters);
      core.macUpdate(operation, bytes(5));
      core.release(key);
      expect(codeOf(() => core.macUpdate(operation, bytes(5)))).toBe('bad-key');
      expect(codeOf(() => core.macFinal(operation, Buffer.alloc(macLength(parameters))))).toBe('bad-key');
      expect(codeOf(() => runMac(key, parameters, bytes(5)))).toBe('bad-key');
      core.release(other);
    }
    withKey(core.generateGeneric(32), (key) =>
      expect(codeOf(() => runMac(key, { algorithm: 'aes-cmac' }, bytes(1)))).toBe('key-type'),
    );
    expect(core.memoryStatus().operations).toBe(0);
  });

  test('names that do not exist are refused', () => {
    expect(codeOf(() => core.digest('md5' as Digest, bytes(1), Buffer.alloc(64)))).toBe('bad-argument');
    withKey(core.generateGeneric(32), (key) => {
      const parameters = { algorithm: 'hmac', digest: 'md5' } as unknown as MacParameters;
      expect(codeOf(() => runMac(key, parameters, bytes(1)))).not.toBe('none');
      expect(
        codeOf(() => core.mac(key, { algorithm: 'poly1305' } as unknown as MacParameters, bytes(1), Buffer.alloc(64))),
      ).toBe('bad-argument');
    });
  });
});

describe('small things', () => {
  test('random bytes fill the view and nothing outside it', () => {
    const around = Buffer.alloc(96);
    core.random(around.subarray(32, 64));
    expect(around.subarray(0, 32)).toEqual(Buffer.alloc(32));
    expect(around.subarray(64)).toEqual(Buffer.alloc(32));
    const draws = new Set(
      Array.from({ length: 1000 }, () => {
        const out = Buffer.alloc(16);
        core.random(out);
        return out.toString('hex');
      }),
    );
    expect(draws.size).toBe(1000);
    core.random(Buffer.alloc(0));
    expect(codeOf(() => core.random('x' as unknown as Buffer))).toBe('bad-argument');
  });

  test('wiping zeroes the view and nothing outside it', () => {
    const around = Buffer.alloc(30, 7);
    core.wipe(around.subarray(10, 20));
    expect(around).toEqual(Buffer.concat([Buffer.alloc(10, 7), Buffer.alloc(10), Buffer.alloc(10, 7)]));
  });

  test('a comparison distinguishes lengths and bytes', () => {
    expect(core.timingSafeEqual(bytes(32), bytes(32))).toBe(true);
    expect(core.timingSafeEqual(bytes(32), bytes(31))).toBe(false);
    expect(core.timingSafeEqual(bytes(32), bytes(32, 2))).toBe(false);
    expect(core.timingSafeEqual(Buffer.alloc(0), Buffer.alloc(0))).toBe(true);
  });
});
