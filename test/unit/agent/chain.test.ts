// Parts of a message under a token key, each a separate call: for all cuts, the result is the one
// that the whole message gives, and after every part as much of it as is ready.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { CipherParameters, Direction } from '../../../addon/core.ts';
import { Chain } from '../../../provider/agent/operations/chain.ts';
import { isChained } from '../../../provider/agent/operations/cipher-lengths.ts';
import fc from '../../support/property.ts';

const key = Buffer.alloc(32, 7);
const algorithms = ['aes-ecb', 'aes-cbc', 'aes-cbc-pad', 'aes-ctr'] as const;

/** The service, for one call. */
const service = (direction: Direction, parameters: CipherParameters, data: Uint8Array): Buffer => {
  const name = parameters.algorithm.replace('aes-', 'aes-256-').replace('-pad', '');
  const iv = 'iv' in parameters ? parameters.iv : null;
  const cipher = direction === 'encrypt' ? createCipheriv(name, key, iv) : createDecipheriv(name, key, iv);
  cipher.setAutoPadding(parameters.algorithm === 'aes-cbc-pad');
  return Buffer.concat([cipher.update(data), cipher.final()]);
};
const parametersOf = (algorithm: (typeof algorithms)[number], iv: Buffer): CipherParameters =>
  algorithm === 'aes-ecb' ? { algorithm } : { algorithm, iv };

const inParts = (direction: Direction, parameters: CipherParameters, parts: readonly Uint8Array[]): Buffer => {
  if (!isChained(parameters)) throw new Error('not a mode of chains');
  const chain = new Chain(direction, parameters);
  const results = parts.map((part) => {
    const ready = chain.ready(part.length);
    const piece = chain.take(part);
    if (piece === null) {
      expect(ready).toBe(0);
      return Buffer.alloc(0);
    }
    const result = service(direction, piece.parameters, piece.bytes);
    chain.follow(result);
    expect(result.length - piece.skip).toBe(ready);
    return result.subarray(piece.skip);
  });
  const last = chain.last();
  if (last !== null) results.push(service(direction, last.parameters, last.bytes));
  chain.wipe();
  return Buffer.concat(results);
};
const cut = (data: Buffer, lengths: readonly number[]): Buffer[] => {
  const parts: Buffer[] = [];
  let at = 0;
  for (const length of lengths) {
    parts.push(data.subarray(at, at + length));
    at += length;
  }
  return [...parts, data.subarray(at)];
};

describe.each(algorithms)('%s in parts', (algorithm) => {
  const unit = algorithm === 'aes-ecb' || algorithm === 'aes-cbc' ? 16 : 1;
  test('equals the result of the complete message, in both directions', () => {
    fc.assert(
      fc.property(fc.nat(40), fc.array(fc.nat(50), { maxLength: 8 }), fc.boolean(), (units, lengths, lateCounter) => {
        const data = randomBytes(units * unit);
        // A counter that carries over all its bytes.
        const parameters = parametersOf(algorithm, lateCounter ? Buffer.alloc(16, 0xff) : randomBytes(16));
        const whole = service('encrypt', parameters, data);
        expect(inParts('encrypt', parameters, cut(data, lengths))).toEqual(whole);
        expect(inParts('decrypt', parameters, cut(whole, lengths))).toEqual(data);
      }),
    );
  });
});

test('a counter of few bits overflows where that of the complete message would', () => {
  const iv = Buffer.alloc(16);
  iv[15] = 0xfe;
  const chain = new Chain('encrypt', { algorithm: 'aes-ctr', iv, counterBits: 8 });
  expect(chain.runsOver(32)).toBe(false);
  expect(chain.runsOver(33)).toBe(true);
  chain.take(randomBytes(20));
  expect(chain.runsOver(12)).toBe(false);
  expect(chain.runsOver(13)).toBe(true);
});
