// Ciphers through the addon: the result in pieces is that of the whole, buffers that are too short
// have no effect, wrong lengths are refused by name, and Node's own libcrypto (another version than
// ours) agrees.
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { CipherParameters, Direction, KeyRef, OperationRef } from '../../../addon/core.ts';
import { aesKey, core, misplacedKek, runCipher, withKey } from '../../support/core-keys.ts';
import { codeOf } from '../../support/outcomes.ts';
import fc from '../../support/property.ts';

const seed = 20_261_121;
const iv = Buffer.from('f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff', 'hex');
const aad = Buffer.from('additional data');
const all: readonly CipherParameters[] = [
  { algorithm: 'aes-ecb' },
  { algorithm: 'aes-cbc', iv },
  { algorithm: 'aes-cbc-pad', iv },
  { algorithm: 'aes-ctr', iv },
  { algorithm: 'aes-ctr', iv: Buffer.alloc(16), counterBits: 32 },
  { algorithm: 'aes-gcm', iv: iv.subarray(0, 12), aad, tagLength: 16 },
  { algorithm: 'aes-gcm', iv, tagLength: 12 },
];
const cases = all.map((parameters) => [parameters.algorithm, parameters] as const);
const wholeBlocks = (parameters: CipherParameters): boolean =>
  parameters.algorithm === 'aes-ecb' || parameters.algorithm === 'aes-cbc';

/**
 * Runs pieces through an operation, each time into a buffer of exactly the length that was
 * announced.
 */
const inPieces = (
  key: KeyRef,
  direction: Direction,
  parameters: CipherParameters,
  pieces: readonly Uint8Array[],
): Buffer => {
  const operation = core.cipherBegin(key, direction, parameters);
  const outputs = pieces.map((piece) => {
    const out = Buffer.alloc(core.cipherUpdateLength(operation, piece.length));
    expect(core.cipherUpdate(operation, piece, out)).toBe(out.length);
    return out;
  });
  const last = Buffer.alloc(core.cipherFinalLength(operation));
  return Buffer.concat([...outputs, last.subarray(0, core.cipherFinal(operation, last))]);
};

const cut = (message: Buffer, places: readonly number[]): Buffer[] => {
  const ends = [...places.map((place) => place % (message.length + 1)), message.length].sort((a, b) => a - b);
  return ends.map((end, index) => message.subarray(ends[index - 1] ?? 0, end));
};

const message = (parameters: CipherParameters): fc.Arbitrary<Buffer> =>
  fc
    .uint8Array({ minLength: 0, maxLength: 300 })
    .map((bytes) =>
      Buffer.from(bytes.subarray(0, wholeBlocks(parameters) ? bytes.length - (bytes.length % 16) : bytes.length)),
    );
const key = (): fc.Arbitrary<Uint8Array> =>
  fc.constantFrom(16, 24, 32).chain((length) => fc.uint8Array({ minLength: length, maxLength: length }));

describe.each(cases)('%s', (_, parameters) => {
  test(`pieces of any length give what the whole gives, both ways (seed ${seed})`, () => {
    fc.assert(
      fc.property(key(), message(parameters), fc.array(fc.nat(400), { maxLength: 8 }), (value, plain, places) => {
        withKey(aesKey(value), (ref) => {
          const whole = runCipher(ref, 'encrypt', parameters, plain);
          expect(inPieces(ref, 'encrypt', parameters, cut(plain, places))).toEqual(whole);
          expect(inPieces(ref, 'decrypt', parameters, cut(whole, places))).toEqual(plain);
          expect(runCipher(ref, 'decrypt', parameters, whole)).toEqual(plain);
        });
      }),
      { seed, numRuns: 150 },
    );
    expect(core.memoryStatus().operations).toBe(0);
  });

  test('byte by byte gives what the whole gives', () => {
    withKey(core.generateAes(256), (ref) => {
      for (const length of [0, 16, 32, 48]) {
        const plain = Buffer.alloc(length, 7);
        const whole = runCipher(ref, 'encrypt', parameters, plain);
        const bytes = (of: Buffer): Buffer[] => Array.from(of, (_byte, at) => of.subarray(at, at + 1));
        expect(inPieces(ref, 'encrypt', parameters, bytes(plain))).toEqual(whole);
        expect(inPieces(ref, 'decrypt', parameters, bytes(whole))).toEqual(plain);
      }
    });
  });

  test('input and output may be the same memory', () => {
    withKey(core.generateAes(128), (ref) => {
      const plain = Buffer.alloc(64, 9);
      const whole = runCipher(ref, 'encrypt', parameters, plain);
      const place = Buffer.alloc(whole.length);
      plain.copy(place);
      expect(core.cipher(ref, 'encrypt', parameters, place.subarray(0, 64), place)).toBe(whole.length);
      expect(place).toEqual(whole);
      expect(core.cipher(ref, 'decrypt', parameters, place, place)).toBe(64);
      expect(place.subarray(0, 64)).toEqual(plain);
    });
  });

  test('a whole message’s buffer that is too short is refused before anything is written', () => {
    withKey(core.generateAes(256), (ref) => {
      const plain = Buffer.alloc(48, 1);
      const whole = runCipher(ref, 'encrypt', parameters, plain);
      for (const [direction, input, needed] of [
        ['encrypt', plain, whole.length],
        ['decrypt', whole, plain.length],
      ] as const) {
        for (const length of [0, 1, needed - 16, needed - 1]) {
          const out = Buffer.alloc(length, 0xee);
          expect(codeOf(() => core.cipher(ref, direction, parameters, input, out))).toBe('buffer-too-small');
          expect(out.every((byte) => byte === 0xee)).toBe(true);
        }
        const out = Buffer.alloc(needed);
        expect(core.cipher(ref, direction, parameters, input, out)).toBe(needed);
      }
    });
  });

  test('an operation outlives every buffer that is too short', () => {
    withKey(core.generateAes(256), (ref) => {
      const plain = Buffer.alloc(48, 1);
      const whole = runCipher(ref, 'encrypt', parameters, plain);
      for (const [direction, input, output] of [
        ['encrypt', plain, whole],
        ['decrypt', whole, plain],
      ] as const) {
        const operation = core.cipherBegin(ref, direction, parameters);
        const parts: Buffer[] = [];
        const update = (piece: Buffer): void => {
          const needed = core.cipherUpdateLength(operation, piece.length);
          if (needed > 0) {
            const short = Buffer.alloc(needed - 1, 0xee);
            expect(codeOf(() => core.cipherUpdate(operation, piece, short))).toBe('buffer-too-small');
            expect(short.every((byte) => byte === 0xee)).toBe(true);
          }
          const out = Buffer.alloc(needed);
          core.cipherUpdate(operation, piece, out);
          parts.push(out);
        };
        update(input.subarray(0, 32));
        update(input.subarray(32));
        const rest = output.length - Buffer.concat(parts).length;
        for (let length = 0; length < rest; length++) {
          const short = Buffer.alloc(length, 0xee);
          expect(codeOf(() => core.cipherFinal(operation, short))).toBe('buffer-too-small');
          expect(short.every((byte) => byte === 0xee)).toBe(true);
        }
        const last = Buffer.alloc(core.cipherFinalLength(operation));
        parts.push(last.subarray(0, core.cipherFinal(operation, last)));
        expect(Buffer.concat(parts)).toEqual(output);
        expect(codeOf(() => core.cipherFinal(operation, last))).toBe('bad-argument');
      }
    });
  });

  test('an operation may run its whole message at once, before its first piece only', () => {
    withKey(core.generateAes(256), (ref) => {
      const plain = Buffer.alloc(32, 3);
      const whole = runCipher(ref, 'encrypt', parameters, plain);
      const operation = core.cipherBegin(ref, 'encrypt', parameters);
      expect(core.cipherOneShotLength(operation, plain.length)).toBe(whole.length);
      expect(codeOf(() => core.cipherOneShot(operation, plain, Buffer.alloc(whole.length - 1)))).toBe(
        'buffer-too-small',
      );
      const out = Buffer.alloc(whole.length);
      expect(core.cipherOneShot(operation, plain, out)).toBe(whole.length);
      expect(out).toEqual(whole);
      expect(codeOf(() => core.cipherOneShot(operation, plain, out))).toBe('bad-argument');

      const begun = core.cipherBegin(ref, 'encrypt', parameters);
      core.cipherUpdate(begun, plain, Buffer.alloc(64));
      expect(codeOf(() => core.cipherOneShot(begun, plain, out))).toBe('bad-argument');
      core.operationCancel(begun);
    });
  });

  test('a released key is refused at once, in the middle of an operation too', () => {
    const ref = core.generateAes(256);
    const fresh = core.cipherBegin(ref, 'encrypt', parameters);
    const running = core.cipherBegin(ref, 'encrypt', parameters);
    const block = Buffer.alloc(16);
    const out = Buffer.alloc(64);
    core.cipherUpdate(running, block, out);
    core.release(ref);
    expect(codeOf(() => core.cipher(ref, 'encrypt', parameters, block, out))).toBe('bad-key');
    expect(codeOf(() => core.cipherBegin(ref, 'encrypt', parameters))).toBe('bad-key');
    expect(codeOf(() => core.cipherUpdate(running, block, out))).toBe('bad-key');
    expect(codeOf(() => core.cipherUpdate(fresh, block, out))).toBe('bad-key');
    expect(codeOf(() => core.cipherFinal(running, out))).toBe('bad-key');
    core.operationCancel(fresh);
    expect(core.memoryStatus().operations).toBe(0);
  });

  test('only an AES key ciphers', () => {
    const others = [core.generateGeneric(32), misplacedKek(), core.generateEc('p256'), core.generateEc('ed25519')];
    for (const ref of others) {
      expect(codeOf(() => runCipher(ref, 'encrypt', parameters, Buffer.alloc(16)))).toBe('key-type');
      expect(codeOf(() => core.cipherBegin(ref, 'encrypt', parameters))).toBe('key-type');
      core.release(ref);
    }
  });
});

describe('lengths', () => {
  const block = { algorithm: 'aes-cbc', iv } as const;
  test('modes of whole blocks take whole blocks', () => {
    withKey(core.generateAes(256), (ref) => {
      for (const parameters of [{ algorithm: 'aes-ecb' }, block] as const) {
        for (const direction of ['encrypt', 'decrypt'] as const) {
          for (const length of [1, 15, 17, 31]) {
            expect(codeOf(() => runCipher(ref, direction, parameters, Buffer.alloc(length)))).toBe('data-length');
            const operation = core.cipherBegin(ref, direction, parameters);
            core.cipherUpdate(operation, Buffer.alloc(length), Buffer.alloc(32));
            expect(codeOf(() => core.cipherFinal(operation, Buffer.alloc(32)))).toBe('data-length');
          }
        }
      }
    });
  });

  test('a padded ciphertext is whole blocks, one at least', () => {
    withKey(core.generateAes(256), (ref) => {
      const padded = { algorithm: 'aes-cbc-pad', iv } as const;
      for (const length of [0, 1, 15, 17]) {
        expect(codeOf(() => runCipher(ref, 'decrypt', padded, Buffer.alloc(length)))).toBe('data-length');
        const operation = core.cipherBegin(ref, 'decrypt', padded);
        core.cipherUpdate(operation, Buffer.alloc(length), Buffer.alloc(32));
        expect(codeOf(() => core.cipherFinal(operation, Buffer.alloc(32)))).toBe('data-length');
      }
    });
  });

  test('a padded message decrypts into a buffer of its own length', () => {
    withKey(core.generateAes(256), (ref) => {
      const padded = { algorithm: 'aes-cbc-pad', iv } as const;
      for (let length = 0; length <= 33; length++) {
        const plain = Buffer.alloc(length, 5);
        const sealed = runCipher(ref, 'encrypt', padded, plain);
        const out = Buffer.alloc(length);
        expect(core.cipher(ref, 'decrypt', padded, sealed, out)).toBe(length);
        expect(out).toEqual(plain);
        if (length === 0) continue;
        const short = Buffer.alloc(length - 1, 0xee);
        expect(codeOf(() => core.cipher(ref, 'decrypt', padded, sealed, short))).toBe('buffer-too-small');
        expect(short.every((byte) => byte === 0xee)).toBe(true);
      }
    });
  });

  test('a GCM message has its tag', () => {
    withKey(core.generateAes(256), (ref) => {
      for (const tagLength of [12, 13, 14, 15, 16]) {
        const parameters = { algorithm: 'aes-gcm', iv: iv.subarray(0, 12), tagLength } as const;
        expect(codeOf(() => runCipher(ref, 'decrypt', parameters, Buffer.alloc(tagLength - 1)))).toBe('data-length');
        expect(
          runCipher(ref, 'decrypt', parameters, runCipher(ref, 'encrypt', parameters, Buffer.alloc(0))),
        ).toHaveLength(0);
      }
    });
  });
});

describe('AES-GCM', () => {
  const parameters = { algorithm: 'aes-gcm', iv: iv.subarray(0, 12), aad, tagLength: 16 } as const;

  test('nothing of a message that does not authenticate comes out', () => {
    withKey(core.generateAes(256), (ref) => {
      const sealed = runCipher(ref, 'encrypt', parameters, Buffer.alloc(100, 0x41));
      for (let at = 0; at < sealed.length; at++) {
        const changed = Buffer.from(sealed);
        changed[at] = (changed[at] ?? 0) ^ 1;
        const out = Buffer.alloc(100, 0xee);
        expect(codeOf(() => core.cipher(ref, 'decrypt', parameters, changed, out))).toBe('authentication-failed');
        expect(out.includes('AAAA')).toBe(false);
        const operation = core.cipherBegin(ref, 'decrypt', parameters);
        // Held back until the tag has been seen.
        expect(core.cipherUpdate(operation, changed, Buffer.alloc(0))).toBe(0);
        out.fill(0xee);
        expect(codeOf(() => core.cipherFinal(operation, out))).toBe('authentication-failed');
        expect(out.includes('AAAA')).toBe(false);
      }
    });
  });

  test('IV, additional data and tag length are part of the message', () => {
    withKey(core.generateAes(256), (ref) => {
      const sealed = runCipher(ref, 'encrypt', parameters, Buffer.alloc(20));
      const others: readonly CipherParameters[] = [
        { ...parameters, iv: iv.subarray(1, 13) },
        { ...parameters, iv: iv.subarray(0, 13) },
        { ...parameters, aad: Buffer.from('additional datb') },
        { algorithm: 'aes-gcm', iv: parameters.iv, tagLength: 16 },
        { ...parameters, tagLength: 15 },
      ];
      for (const other of others)
        expect(codeOf(() => runCipher(ref, 'decrypt', other, sealed))).toBe('authentication-failed');
    });
  });

  test('a failed message leaves the key usable', () => {
    withKey(core.generateAes(256), (ref) => {
      const sealed = runCipher(ref, 'encrypt', parameters, Buffer.alloc(20, 1));
      expect(codeOf(() => runCipher(ref, 'decrypt', parameters, Buffer.alloc(36)))).toBe('authentication-failed');
      expect(runCipher(ref, 'decrypt', parameters, sealed)).toEqual(Buffer.alloc(20, 1));
    });
  });

  test('an IV that is too long is refused by name, not cut', () => {
    withKey(core.generateAes(256), (ref) => {
      for (const [length, code] of [
        [0, 'bad-argument'],
        [128, 'none'],
        [129, 'bad-argument'],
        [256, 'bad-argument'],
        [257, 'bad-argument'],
      ] as const) {
        const long = { algorithm: 'aes-gcm', iv: Buffer.alloc(length, 7), tagLength: 16 } as const;
        expect(codeOf(() => runCipher(ref, 'encrypt', long, Buffer.alloc(16)))).toBe(code);
      }
    });
  });

  test(`Node’s libcrypto agrees, for IVs of 1 to 128 bytes (seed ${seed})`, () => {
    const bytes = (minLength: number, maxLength: number): fc.Arbitrary<Uint8Array> =>
      fc.uint8Array({ minLength, maxLength });
    fc.assert(
      fc.property(key(), bytes(1, 128), bytes(0, 60), bytes(0, 200), (value, nonce, extra, plain) => {
        const theirs = createCipheriv(`aes-${(value.length * 8) as 128 | 192 | 256}-gcm`, value, nonce);
        theirs.setAAD(extra);
        const expected = Buffer.concat([theirs.update(plain), theirs.final(), theirs.getAuthTag()]);
        const given = { algorithm: 'aes-gcm', iv: nonce, aad: extra, tagLength: 16 } as const;
        withKey(aesKey(value), (ref) => expect(runCipher(ref, 'encrypt', given, plain)).toEqual(expected));
      }),
      { seed, numRuns: 200 },
    );
  });
});

describe('AES-CTR', () => {
  const counter = (last: string): Buffer => Buffer.from(last.padStart(32, '0'), 'hex');
  test.each([
    [1, '01', 1],
    [8, 'fe', 2],
    [32, 'fffffffe', 2],
    [63, '7ffffffffffffffe', 2],
    [64, 'fffffffffffffffe', 2],
    [65, '1fffffffffffffffe', 2],
    [127, '7ffffffffffffffffffffffffffffffe', 2],
  ])('a counter of %i bits ends after its last block', (counterBits, start, blocks) => {
    const parameters = { algorithm: 'aes-ctr', iv: counter(start), counterBits } as const;
    withKey(core.generateAes(256), (ref) => {
      expect(runCipher(ref, 'encrypt', parameters, Buffer.alloc(16 * blocks))).toHaveLength(16 * blocks);
      expect(codeOf(() => runCipher(ref, 'encrypt', parameters, Buffer.alloc(16 * blocks + 1)))).toBe('data-length');
      const operation = core.cipherBegin(ref, 'encrypt', parameters);
      core.cipherUpdate(operation, Buffer.alloc(16 * blocks), Buffer.alloc(16 * blocks));
      expect(codeOf(() => core.cipherUpdate(operation, Buffer.alloc(1), Buffer.alloc(1)))).toBe('data-length');
      core.operationCancel(operation);
    });
  });

  test('a counter of 128 bits starts again from zero, as the whole block does', () => {
    const value = Buffer.alloc(32, 1);
    const last = Buffer.alloc(16, 0xff);
    const theirs = createCipheriv('aes-256-ctr', value, last).update(Buffer.alloc(64));
    withKey(aesKey(value), (ref) =>
      expect(runCipher(ref, 'encrypt', { algorithm: 'aes-ctr', iv: last }, Buffer.alloc(64))).toEqual(theirs),
    );
  });
});

test(`Node’s libcrypto agrees on CBC with padding (seed ${seed})`, () => {
  const block = (): fc.Arbitrary<Uint8Array> => fc.uint8Array({ minLength: 16, maxLength: 16 });
  fc.assert(
    fc.property(key(), block(), fc.uint8Array({ maxLength: 200 }), (value, start, plain) => {
      const name = `aes-${value.length * 8}-cbc`;
      const theirs = createCipheriv(name, value, start);
      const expected = Buffer.concat([theirs.update(plain), theirs.final()]);
      withKey(aesKey(value), (ref) => {
        expect(runCipher(ref, 'encrypt', { algorithm: 'aes-cbc-pad', iv: start }, plain)).toEqual(expected);
        const back = createDecipheriv(name, value, start);
        expect(Buffer.concat([back.update(expected), back.final()])).toEqual(Buffer.from(plain));
      });
    }),
    { seed, numRuns: 200 },
  );
});

describe('arguments of the wrong shape', () => {
  const ref = core.generateAes(256);
  const good = { algorithm: 'aes-gcm', iv: iv.subarray(0, 12), tagLength: 16 };
  const bad: readonly (readonly [string, unknown])[] = [
    ['no parameters', undefined],
    ['null', null],
    ['a string', 'aes-gcm'],
    ['an unknown algorithm', { ...good, algorithm: 'aes-xts' }],
    ['a very long name', { ...good, algorithm: 'aes-gcm'.padEnd(5000, 'm') }],
    ['no IV', { algorithm: 'aes-gcm', tagLength: 16 }],
    ['an IV that is a string', { ...good, iv: 'f0f1f2f3f4f5' }],
    ['an IV that is an array', { ...good, iv: [1, 2, 3] }],
    ['a CBC IV of 12 bytes', { algorithm: 'aes-cbc', iv: iv.subarray(0, 12) }],
    ['a CTR IV of 17 bytes', { algorithm: 'aes-ctr', iv: Buffer.alloc(17) }],
    ['no tag length', { algorithm: 'aes-gcm', iv }],
    ...[11, 17, 0, -1, 12.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 64, '16'].map(
      (tagLength) => [`a tag length of ${tagLength}`, { ...good, tagLength }] as const,
    ),
    ...[0, 129, -1, 1.5, Number.NaN, Number.NEGATIVE_INFINITY, 1e300].map(
      (counterBits) => [`${counterBits} counter bits`, { algorithm: 'aes-ctr', iv, counterBits }] as const,
    ),
    ['additional data that are a string', { ...good, aad: 'aad' }],
  ];
  test.each(bad)('%s: refused', (_, parameters) => {
    const given = parameters as CipherParameters;
    expect(codeOf(() => core.cipher(ref, 'encrypt', given, Buffer.alloc(16), Buffer.alloc(64)))).toBe('bad-argument');
    expect(codeOf(() => core.cipherBegin(ref, 'encrypt', given))).toBe('bad-argument');
    expect(codeOf(() => core.cipherLength('encrypt', given, 16))).toBe('bad-argument');
  });

  test.each([undefined, null, '1', {}, -1, 0.5, Number.NaN, 2 ** 60])('a key reference of %s: refused', (key) => {
    const parameters = { algorithm: 'aes-ecb' } as const;
    const act = (): unknown => core.cipher(key as KeyRef, 'encrypt', parameters, Buffer.alloc(16), Buffer.alloc(16));
    expect(codeOf(act)).toBe('bad-argument');
    expect(codeOf(() => core.cipherUpdate(key as unknown as OperationRef, Buffer.alloc(0), Buffer.alloc(0)))).toBe(
      'bad-argument',
    );
  });

  test('an operation of another sort is none', () => {
    const operation = core.digestBegin('sha256');
    expect(codeOf(() => core.cipherFinal(operation, Buffer.alloc(64)))).toBe('bad-argument');
    expect(codeOf(() => core.macFinal(operation, Buffer.alloc(64)))).toBe('bad-argument');
    core.operationCancel(operation);
    expect(codeOf(() => core.digestFinal(operation, Buffer.alloc(64)))).toBe('bad-argument');
  });
});

describe('aes-ccm', () => {
  const ccm = (dataLength: number, nonce = 12, tagLength = 16, data: Buffer = aad) =>
    ({ algorithm: 'aes-ccm', iv: iv.subarray(0, nonce), aad: data, tagLength, dataLength }) as const;

  test(`agrees with Node for every nonce, tag and length, whole and in pieces (seed ${seed})`, () => {
    fc.assert(
      fc.property(
        key(),
        fc.uint8Array({ maxLength: 300 }),
        fc.uint8Array({ maxLength: 40 }),
        fc.integer({ min: 7, max: 13 }),
        fc.constantFrom(8, 10, 12, 14, 16),
        fc.array(fc.nat(400), { maxLength: 6 }),
        (value, given, data, nonce, tagLength, places) => {
          const plain = Buffer.from(given);
          const parameters = ccm(plain.length, nonce, tagLength, Buffer.from(data));
          const name = `aes-${value.length * 8}-ccm` as 'aes-128-ccm';
          const node = createCipheriv(name, value, parameters.iv, { authTagLength: tagLength });
          node.setAAD(data, { plaintextLength: plain.length });
          const body = node.update(plain);
          node.final();
          const sealed = Buffer.concat([body, node.getAuthTag()]);
          withKey(aesKey(value), (ref) => {
            expect(runCipher(ref, 'encrypt', parameters, plain)).toEqual(sealed);
            expect(runCipher(ref, 'decrypt', parameters, sealed)).toEqual(plain);
            expect(inPieces(ref, 'encrypt', parameters, cut(plain, places))).toEqual(sealed);
            expect(inPieces(ref, 'decrypt', parameters, cut(sealed, places))).toEqual(plain);
          });
        },
      ),
      { seed, numRuns: 150 },
    );
    expect(core.memoryStatus().operations).toBe(0);
  });

  test('nothing comes out of a message that was changed, however short it is', () => {
    withKey(core.generateAes(256), (ref) => {
      for (const length of [0, 1, 33]) {
        const sealed = runCipher(ref, 'encrypt', ccm(length), Buffer.alloc(length, 5));
        for (let at = 0; at < sealed.length; at++) {
          const changed = Buffer.from(sealed);
          changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
          const out = Buffer.alloc(length, 0xee);
          expect(codeOf(() => core.cipher(ref, 'decrypt', ccm(length), changed, out))).toBe('authentication-failed');
          expect(out.every((byte) => byte === 0 || byte === 0xee)).toBe(true);
          expect(codeOf(() => inPieces(ref, 'decrypt', ccm(length), [changed]))).toBe('authentication-failed');
        }
      }
    });
  });

  test('takes no other length than it was told', () => {
    withKey(core.generateAes(128), (ref) => {
      const out = Buffer.alloc(64);
      for (const length of [0, 15, 17]) {
        const input = Buffer.alloc(length);
        expect(codeOf(() => core.cipher(ref, 'encrypt', ccm(16), input, out))).toBe('data-length');
        expect(codeOf(() => core.cipher(ref, 'decrypt', ccm(16), Buffer.alloc(length + 16), out))).toBe('data-length');
        const operation = core.cipherBegin(ref, 'encrypt', ccm(16));
        // Too much is seen at once, too little at the end.
        if (length > 16) expect(codeOf(() => core.cipherUpdate(operation, input, out))).toBe('data-length');
        else {
          core.cipherUpdate(operation, input, out);
          expect(codeOf(() => core.cipherFinal(operation, out))).toBe('data-length');
        }
        core.operationCancel(operation);
      }
    });
    expect(core.memoryStatus().operations).toBe(0);
  });

  test('says what is wrong with nonce, tag and length', () => {
    withKey(core.generateAes(128), (ref) => {
      const run = (parameters: CipherParameters): string =>
        codeOf(() => core.cipher(ref, 'encrypt', parameters, Buffer.alloc(16), Buffer.alloc(64)));
      for (const nonce of [6, 14]) expect(run(ccm(16, nonce))).toBe('bad-argument');
      for (const tag of [2, 5, 7, 9, 17]) expect(run(ccm(16, 12, tag))).toBe('bad-argument');
      expect(run(ccm(1 << 16, 13))).toBe('bad-argument');
      expect(run(ccm((1 << 16) - 1, 13))).toBe('data-length');
    });
  });
});
