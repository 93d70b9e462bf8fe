// Initial values are used once: what provider/agent/objects/used-ivs.ts remembers, and what keys go
// by there.
import { afterEach, describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { identityHere, identityThere, UsedIvs } from '../../../provider/agent/objects/used-ivs.ts';
import { CKA } from '../../../provider/schema/attributes.ts';

core.initialize({ allowUnlocked: true });

const counter = (value: number, length = 12): Buffer => {
  const iv = Buffer.alloc(length);
  iv.writeUIntBE(value, length - 6, 6);
  return iv;
};
/** How many IVs are remembered at least when there is only one application. */
const maxEntries = 2 ** 20;
const a = [Buffer.from('a')] as const;
const b = [Buffer.from('b')] as const;

const running: UsedIvs[] = [];
const begin = (): UsedIvs => {
  const used = new UsedIvs();
  running.push(used);
  return used;
};
afterEach(() => {
  for (const used of running.splice(0)) used.end();
});

describe('used IVs', () => {
  test('an IV is taken once by a key, and once by another', () => {
    const used = begin();
    expect(used.claim(a, counter(1))).toBe(true);
    expect(used.has(a, counter(1))).toBe(true);
    expect(used.claim(a, counter(1))).toBe(false);
    expect(used.has(b, counter(1))).toBe(false);
    expect(used.claim(b, counter(1))).toBe(true);
    expect(used.claim(a, counter(1, 16))).toBe(true);
  });
  test('a key with two identities is recognized by either', () => {
    const used = begin();
    expect(used.claim([...a, ...b], counter(1))).toBe(true);
    expect(used.claim(a, counter(1))).toBe(false);
    expect(used.claim(b, counter(1))).toBe(false);
  });
  test('another application knows nothing of it', () => {
    expect(begin().claim(a, counter(1))).toBe(true);
    expect(begin().claim(a, counter(1))).toBe(true);
  });
  test('an application that has ended has no memory, and encrypts nothing', () => {
    const used = begin();
    expect(used.claim(a, counter(1))).toBe(true);
    used.end();
    expect(used.has(a, counter(1))).toBe(false);
    expect(used.claim(a, counter(2))).toBe(false);
  });
  test('a full table accepts each IV once, and refuses it again until as many others have followed', () => {
    const used = begin();
    for (let i = 0; i < maxEntries; i++) if (!used.claim(a, counter(i))) expect.fail(`${i} was refused`);
    for (let i = 0; i < maxEntries; i += 997) if (!used.has(a, counter(i))) expect.fail(`${i} was forgotten`);
  });
});

describe('the identity of a key', () => {
  const key = (fill: number, length = 32) => core.importSecret('aes', Buffer.alloc(length, fill));
  test('here: its value, whatever its object', () => {
    expect(identityHere(key(1))).toEqual(identityHere(key(1)));
    expect(identityHere(key(1))).not.toEqual(identityHere(key(2)));
    expect(identityHere(key(1))).not.toEqual(identityHere(key(1, 16)));
  });
  test('with the service: its size and check value', () => {
    const of = (length: number, check: number[]) =>
      identityThere(
        new Map<number, number | Uint8Array>([
          [CKA.VALUE_LEN, length],
          [CKA.CHECK_VALUE, Buffer.from(check)],
        ]),
      );
    expect(of(32, [1, 2, 3])).toEqual(of(32, [1, 2, 3]));
    expect(of(32, [1, 2, 3])).not.toEqual(of(32, [1, 2, 4]));
    expect(of(32, [1, 2, 3])).not.toEqual(of(16, [1, 2, 3]));
  });
});
