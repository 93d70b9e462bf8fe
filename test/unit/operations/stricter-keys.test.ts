// What protects a key of the token grows and never shrinks: it becomes sensitive, it stops being
// extractable, and what it was before stays known. Through the operations over the real store and
// addon, one call at a time and many at once.

import { beforeAll, describe, expect, test } from 'vitest';
import { decodeHead } from '../../../server/contract/tde.ts';
import type { NewTokenObject, TdeCaller, VisibleObject } from '../../../server/operations/index.ts';
import { administrator, dataObject, masterKey, registerCaller } from '../../support/open-service.ts';
import { codeOfWork } from '../../support/outcomes.ts';
import fc from '../../support/property.ts';
import { sealedKey } from '../../support/sealed-key.ts';
import { sharedService } from '../../support/shared.ts';

const opened = sharedService();
let caller: TdeCaller;
beforeAll(async () => {
  ({ caller } = await registerCaller(opened, 'stricter'));
});

const tde = () => opened.operations.tde;

const keyWrap = { way: 'key-wrap', padded: true } as const;
const cbcPad = { way: 'cipher', cipher: { algorithm: 'aes-cbc-pad', iv: Buffer.alloc(16, 3) } } as const;
const encryption = {
  way: 'encryption',
  cipher: { algorithm: 'aes-cbc', iv: Buffer.alloc(16, 1) },
  data: Buffer.alloc(32, 7),
} as const;
const hkdf = {
  way: 'hkdf',
  digest: 'sha256',
  steps: 'both',
  salt: Buffer.alloc(0),
  info: Buffer.alloc(0),
} as const;

let count = 0;
const described = (rest: Partial<NewTokenObject>): NewTokenObject => {
  count += 1;
  return { ...masterKey(`key ${count}`), usages: ['encrypt', 'derive', 'wrap', 'unwrap'], modifiable: true, ...rest };
};
const make = (rest: Partial<NewTokenObject> = {}): Promise<VisibleObject> => tde().generateKey(caller, described(rest));
const onToken = (rest: Partial<NewTokenObject> = {}) => ({ on: 'token', object: described(rest) }) as const;
const open = { sensitive: false, extractable: true } as const;
const token = (handle: number) => ({ from: 'token', handle }) as const;
const past = ({ local, sensitive, extractable, alwaysSensitive, neverExtractable }: VisibleObject) => ({
  now: [sensitive, extractable],
  ever: [alwaysSensitive, neverExtractable],
  local,
});
const made = ({ object }: { readonly object: VisibleObject | null }): VisibleObject => {
  if (object === null) throw new Error('no object was made');
  return object;
};

describe('what a key was is known from the moment that it is stored', () => {
  const policies = [
    [true, false],
    [true, true],
    [false, false],
    [false, true],
  ] as const;

  test.each(policies)('of a generated key that is sensitive: %s, extractable: %s', async (sensitive, extractable) => {
    const key = await make({ sensitive, extractable });
    expect(past(key)).toEqual({ now: [sensitive, extractable], ever: [sensitive, !extractable], local: true });
  });

  test.each(policies)('of a pair, its private half: sensitive %s, extractable %s', async (sensitive, extractable) => {
    const half = { ...described({}), algorithm: 'ec', bits: 256, usages: ['sign'] } as const;
    const { privateKey, publicKey } = await tde().generateKeyPair(caller, {
      privateKey: { ...half, class: 'private-key', sensitive, extractable },
      publicKey: { ...half, class: 'public-key', sensitive: false, extractable: true, usages: ['verify'] },
    });
    expect(past(privateKey).ever).toEqual([sensitive, !extractable]);
    expect(publicKey === null ? [] : past(publicKey).ever).toEqual([false, false]);
  });

  test('of a key from outside: it was anywhere', async () => {
    const key = await tde().importKey(caller, described({}), await sealedKey(tde(), caller, Buffer.alloc(32, 5)));
    expect(past(key)).toEqual({ now: [true, false], ever: [false, false], local: false });
    const by = await make();
    const wrapped = await tde().wrap(caller, by.handle, keyWrap, token((await make({ extractable: true })).handle));
    const back = made(await tde().unwrap(caller, by.handle, keyWrap, wrapped, onToken({ bits: null })));
    expect(past(back)).toEqual({ now: [true, false], ever: [false, false], local: false });
  });

  test.each(policies)('of a derived key by its base: sensitive %s, extractable %s', async (sensitive, extractable) => {
    const base = await make({ algorithm: 'generic', sensitive, extractable });
    for (const wanted of policies) {
      const into = onToken({ algorithm: 'generic', sensitive: wanted[0], extractable: wanted[1] });
      const key = made(await tde().derive(caller, base.handle, hkdf, into));
      expect(past(key).ever).toEqual([sensitive && wanted[0], !extractable && !wanted[1]]);
      // A key that is derived from the derived key depends on both.
      const next = made(await tde().derive(caller, key.handle, hkdf, onToken()));
      expect(past(next).ever).toEqual(past(key).ever);
    }
  });
});

describe('a key that is changed', () => {
  test('becomes sensitive: from then on it is neither read nor derives by encryption, nor leaves under a cipher', async () => {
    const [key, by] = [await make(open), await make()];
    const uses = async () => [
      await codeOfWork(tde().readValue(caller, key.handle)),
      await codeOfWork(tde().wrap(caller, by.handle, cbcPad, token(key.handle))),
      await codeOfWork(tde().derive(caller, key.handle, encryption, onToken())),
      await codeOfWork(tde().wrap(caller, by.handle, keyWrap, token(key.handle))),
    ];
    expect(await uses()).toEqual(['none', 'none', 'none', 'none']);
    const changed = await tde().updateObject(caller, key.handle, { sensitive: true });
    expect(past(changed)).toEqual({ now: [true, true], ever: [false, false], local: true });
    expect(await uses()).toEqual(['forbidden', 'forbidden', 'key-usage', 'none']);
    expect(past(await tde().getObject(caller, key.handle))).toEqual(past(changed));
    const { items } = await opened.operations.audit.list(administrator, { subjectId: key.id, kind: 'object.updated' });
    expect(items.map(({ details }) => details)).toMatchObject([{ changed: ['sensitive'] }]);
  });

  test('stops being extractable: from then on it does not leave', async () => {
    const [key, by] = [await make(open), await make()];
    const changed = await tde().updateObject(caller, key.handle, { extractable: false });
    expect(past(changed)).toEqual({ now: [false, false], ever: [false, false], local: true });
    expect(await codeOfWork(tde().readValue(caller, key.handle))).toBe('forbidden');
    expect(await codeOfWork(tde().wrap(caller, by.handle, keyWrap, token(key.handle)))).toBe('forbidden');
  });

  test('and was extractable before wraps nothing sensitive: it may be known elsewhere', async () => {
    const [by, key] = [await make({ extractable: true }), await make({ extractable: true })];
    await tde().updateObject(caller, by.handle, { extractable: false, usages: ['wrap', 'unwrap'] });
    expect(past(await tde().getObject(caller, by.handle))).toMatchObject({ now: [true, false], local: true });
    expect(await codeOfWork(tde().wrap(caller, by.handle, keyWrap, token(key.handle)))).toBe('forbidden');
    const brought = await sealedKey(tde(), caller, Buffer.alloc(16));
    const value = { from: 'session', class: 'secret-key', sensitive: false, key: brought } as const;
    expect(await codeOfWork(tde().wrap(caller, by.handle, keyWrap, value))).toBe('none');
  });

  test('after it became sensitive it wraps what is sensitive, if it was never extractable', async () => {
    const [by, key] = [await make({ sensitive: false }), await make({ extractable: true })];
    await tde().updateObject(caller, by.handle, { sensitive: true });
    expect(await codeOfWork(tde().wrap(caller, by.handle, keyWrap, token(key.handle)))).toBe('none');
  });

  test('cannot be undone: the protocol has no request for it', () => {
    expect(decodeHead('updateObject', { sensitive: true, extractable: false })).toEqual({
      sensitive: true,
      extractable: false,
    });
    for (const head of [
      { sensitive: false },
      { extractable: true },
      { alwaysSensitive: true },
      { neverExtractable: true },
    ])
      expect(() => decodeHead('updateObject', head)).toThrow(expect.objectContaining({ code: 'validation' }));
  });

  test('is a key: data and public keys are neither sensitive nor kept from leaving', async () => {
    const { handle } = await tde().createObject(caller, described(dataObject('note')), Buffer.from('note'));
    for (const change of [{ sensitive: true }, { extractable: false }] as const)
      expect(await codeOfWork(tde().updateObject(caller, handle, change))).toBe('validation');
  });

  test('is modifiable, and the caller’s own', async () => {
    const { caller: sibling } = await registerCaller(opened, 'sibling', caller.application.groupId);
    const [fixed, key] = [await make({ ...open, modifiable: false }), await make(open)];
    expect(await codeOfWork(tde().updateObject(caller, fixed.handle, { sensitive: true }))).toBe('forbidden');
    expect(await codeOfWork(tde().updateObject(sibling, key.handle, { sensitive: true }))).toBe('forbidden');
  });
});

describe('changes at the same time', () => {
  test('of one object: one succeeds, the other is told that the object has changed', async () => {
    const key = await make();
    const seen = { attributes: key.attributes, usages: key.usages };
    const attributes = Buffer.from('more').toString('base64');
    const codes = await Promise.all([
      codeOfWork(tde().updateObject(caller, key.handle, { attributes, seen })),
      codeOfWork(tde().updateObject(caller, key.handle, { usages: ['derive'], seen })),
    ]);
    expect(codes.sort()).toEqual(['conflict', 'none']);
    const [after] = [await tde().getObject(caller, key.handle)];
    expect(after.attributes === attributes).toBe(after.usages.length === key.usages.length);
    const again = { attributes: after.attributes, usages: [...after.usages].reverse() };
    expect(await codeOfWork(tde().updateObject(caller, key.handle, { usages: ['wrap'], seen: again }))).toBe('none');
  });

  test('nothing leaves after the record that it must not, in any order of calls', async () => {
    const by = await make();
    const calls = fc.array(
      fc.record({ call: fc.constantFrom('read', 'cipher', 'wrap', 'hide', 'hold'), pause: fc.nat({ max: 8 }) }),
      { minLength: 3, maxLength: 8 },
    );
    const property = fc.asyncProperty(calls, async (given) => {
      const key = await make(open);
      const done = { hide: false, hold: false };
      const work = {
        read: () => tde().readValue(caller, key.handle),
        cipher: () => tde().wrap(caller, by.handle, cbcPad, token(key.handle)),
        wrap: () => tde().wrap(caller, by.handle, keyWrap, token(key.handle)),
        hide: () => tde().updateObject(caller, key.handle, { sensitive: true }),
        hold: () => tde().updateObject(caller, key.handle, { extractable: false }),
      };
      await Promise.all(
        given.map(async ({ call, pause }) => {
          for (let i = 0; i < pause; i++) await new Promise((resolve) => setImmediate(resolve));
          const before = { ...done };
          const code = await codeOfWork(work[call]());
          if (call === 'hide' || call === 'hold') {
            expect(code).toBe('none');
            done[call] = true;
          } else if (before.hold || (before.hide && call !== 'wrap')) expect(code).toBe('forbidden');
        }),
      );
      // The audit log is in the order of the commits.
      const { items } = await opened.operations.audit.list(administrator, { subjectId: key.id, limit: 100 });
      const ended = { hidden: false, held: false };
      for (const { kind, details } of [...items].sort((a, b) => a.sequence - b.sequence)) {
        const changed = kind === 'object.updated' ? (details.changed as readonly string[]) : [];
        if (changed.includes('sensitive')) ended.hidden = true;
        if (changed.includes('extractable')) ended.held = true;
        if (kind !== 'key.exported') continue;
        expect(ended.held).toBe(false);
        if (details.form === 'clear') expect(ended.hidden).toBe(false);
      }
      const after = past(await tde().getObject(caller, key.handle));
      expect(after).toEqual({ now: [ended.hidden, !ended.held], ever: [false, false], local: true });
    });
    await fc.assert(property, { numRuns: 60 });
  });
});
