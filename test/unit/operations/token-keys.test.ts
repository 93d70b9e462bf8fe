// What keys of the token do beyond encryption, through the operations over the real store and
// addon: wrap, unwrap, derive and leave. The refusals in each state of the key, and the results of
// concurrent calls.
import { constants, createPublicKey, generateKeyPairSync, publicEncrypt } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { representKey } from '../../../server/fronts/api/represent.ts';
import type { NewTokenObject, TdeCaller, VisibleObject } from '../../../server/operations/index.ts';
import {
  administrator,
  auditKindsOf,
  masterKey,
  openTestService,
  registerCaller,
  untilAudited,
} from '../../support/open-service.ts';
import { codeOfWork } from '../../support/outcomes.ts';
import fc from '../../support/property.ts';
import { sealedKey } from '../../support/sealed-key.ts';
import { sharedService } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = sharedService();

const code = (value: string) => expect.objectContaining({ code: value });

const wrapping = { way: 'key-wrap', padded: true } as const;
const oaep = {
  way: 'oaep',
  oaep: { padding: 'oaep', digest: 'sha256', mgfDigest: 'sha256', label: Buffer.alloc(0) },
} as const;
const cbcPad = { way: 'cipher', cipher: { algorithm: 'aes-cbc-pad', iv: Buffer.alloc(16, 3) } } as const;
const cbc = { algorithm: 'aes-cbc', iv: Buffer.alloc(16, 1) } as const;

let count = 0;
const named = (what: string): string => {
  count += 1;
  return `${what} ${count}`;
};
const wrapper = (label = named('wrapper')): NewTokenObject => ({
  ...masterKey(label),
  usages: ['encrypt', 'wrap', 'unwrap'],
  modifiable: true,
});
const movable = (label = named('movable')): NewTokenObject => ({
  ...masterKey(label),
  usages: ['encrypt', 'decrypt'],
  extractable: true,
});
const onToken = (object: Partial<NewTokenObject> = {}) => ({
  on: 'token' as const,
  object: { ...movable(named('came back')), bits: null, ...object },
});
const halves = (
  usages: Pick<NewTokenObject, 'usages'>['usages'],
  publicUsages: NewTokenObject['usages'] = ['wrap'],
) => {
  const label = named('pair');
  const base = { ...masterKey(label), algorithm: 'rsa' as const, bits: 2048 };
  return {
    privateKey: { ...base, class: 'private-key' as const, usages },
    publicKey: {
      ...base,
      class: 'public-key' as const,
      usages: publicUsages,
      sensitive: false,
      extractable: true,
      private: false,
    },
  };
};
const tde = () => opened.operations.tde;
const token = (handle: number) => ({ from: 'token', handle }) as const;
const session = async (caller: TdeCaller, value: Uint8Array, sensitive = true) =>
  ({ from: 'session', class: 'secret-key', sensitive, key: await sealedKey(tde(), caller, value) }) as const;
const detailsOf = async (subjectId: string, kind: 'key.exported' | 'key.wrapped' | 'key.denied') =>
  (await opened.operations.audit.list(administrator, { subjectId, kind })).items.map(({ details }) => details);

describe('a key that wraps', () => {
  test('comes back as the same key, and both records say who left and under what', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    const [by, key] = [await tde().generateKey(caller, wrapper()), await tde().generateKey(caller, movable())];
    const sealed = await tde().encrypt(caller, key.handle, cbc, Buffer.alloc(32, 9));
    const wrapped = await tde().wrap(caller, by.handle, wrapping, token(key.handle));
    const { object } = await tde().unwrap(caller, by.handle, wrapping, wrapped, onToken());
    expect(object).toMatchObject({ local: false, bits: 256, checkValue: key.checkValue });
    expect(await tde().decrypt(caller, object?.handle ?? 0, cbc, sealed)).toEqual(Buffer.alloc(32, 9));
    expect(await auditKindsOf(opened, by.id)).toEqual(['key.created', 'key.decryption-ended', 'key.wrapped']);
    expect(await detailsOf(by.id, 'key.wrapped')).toMatchObject([{ wrappedKeyId: key.id, sensitive: true }]);
    expect(await detailsOf(key.id, 'key.exported')).toMatchObject([{ form: 'wrapped', wrappingKeyId: by.id }]);
  });

  test('never decrypts after its first sensitive key, whatever is asked of it', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    const by = await tde().generateKey(caller, { ...wrapper(), usages: ['wrap', 'unwrap', 'decrypt'] });
    const key = await tde().generateKey(caller, movable());
    const decrypt = () => codeOfWork(tde().decrypt(caller, by.handle, cbc, Buffer.alloc(16)));
    expect(await decrypt()).toBe('none');
    await expect(tde().wrap(caller, by.handle, wrapping, token(key.handle))).rejects.toEqual(code('forbidden'));
    expect(await decrypt()).toBe('none');
    await tde().updateObject(caller, by.handle, { usages: ['wrap', 'unwrap'] });
    await tde().wrap(caller, by.handle, wrapping, token(key.handle));
    expect(await decrypt()).toBe('key-usage');
    expect(await codeOfWork(tde().updateObject(caller, by.handle, { usages: ['decrypt'] }))).toBe('forbidden');
    expect(await codeOfWork(tde().checkUse(caller, by.handle, 'decrypt'))).toBe('key-usage');
    const wrapped = await tde().wrap(caller, by.handle, wrapping, token(key.handle));
    // Nor does it by unwrapping: under a padding, or into what can be read.
    expect(await codeOfWork(tde().unwrap(caller, by.handle, cbcPad, wrapped, onToken()))).toBe('key-usage');
    expect(await codeOfWork(tde().unwrap(caller, by.handle, wrapping, wrapped, onToken({ sensitive: false })))).toBe(
      'validation',
    );
  });

  test('that came from outside, that may leave, or that decrypts wraps nothing sensitive', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    const key = await tde().generateKey(caller, movable());
    const wrappers = [
      await tde().importKey(caller, wrapper(), await sealedKey(tde(), caller, Buffer.alloc(32, 7))),
      await tde().generateKey(caller, { ...wrapper(), extractable: true }),
      await tde().generateKey(caller, { ...wrapper(), usages: ['wrap', 'decrypt'] }),
    ];
    for (const { handle, id } of wrappers) {
      for (const what of [token(key.handle), await session(caller, Buffer.alloc(16, 5))])
        expect(await codeOfWork(tde().wrap(caller, handle, wrapping, what))).toBe('forbidden');
      expect(
        await codeOfWork(tde().wrap(caller, handle, wrapping, await session(caller, Buffer.alloc(16, 5), false))),
      ).toBe('none');
      expect(await auditKindsOf(opened, id)).toEqual(['key.created', 'key.denied', 'key.wrapped']);
    }
    expect(await detailsOf(key.id, 'key.exported')).toEqual([]);
  });

  test('of another application of the group wraps sensitive keys only after its owner has done so', async () => {
    const { caller: owner, groupId } = await registerCaller(opened, named('owner'));
    const { caller: sibling } = await registerCaller(opened, named('sibling'), groupId);
    const by = await tde().generateKey(owner, wrapper());
    const [mine, theirs] = [await tde().generateKey(owner, movable()), await tde().generateKey(sibling, movable())];
    const wrap = (caller: TdeCaller, key: VisibleObject) =>
      codeOfWork(tde().wrap(caller, by.handle, wrapping, token(key.handle)));
    expect(await wrap(sibling, theirs)).toBe('forbidden');
    expect(await detailsOf(by.id, 'key.denied')).toMatchObject([{ reason: 'owned by another application' }]);
    // What the owner keeps under this key with a cipher must stay within reach.
    const plain = await session(owner, Buffer.alloc(32, 6), false);
    const kept = await tde().wrap(owner, by.handle, cbcPad, plain);
    expect(await codeOfWork(tde().unwrap(owner, by.handle, cbcPad, kept, onToken({ sensitive: false })))).toBe('none');
    expect(await wrap(owner, mine)).toBe('none');
    expect(await wrap(sibling, theirs)).toBe('none');
    // Only its owner takes a key out.
    expect(await wrap(sibling, mine)).toBe('forbidden');
  });

  test('of another group is not there', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    const { caller: stranger } = await registerCaller(opened, named('stranger'));
    const [by, key] = [await tde().generateKey(caller, wrapper()), await tde().generateKey(caller, movable())];
    const own = await tde().generateKey(stranger, wrapper());
    expect(await codeOfWork(tde().wrap(stranger, by.handle, wrapping, await session(caller, Buffer.alloc(16))))).toBe(
      'key-not-found',
    );
    expect(await codeOfWork(tde().wrap(stranger, own.handle, wrapping, token(key.handle)))).toBe('key-not-found');
    expect(await codeOfWork(tde().unwrap(stranger, by.handle, wrapping, Buffer.alloc(40), onToken()))).toBe(
      'key-not-found',
    );
  });
});

describe('an RSA pair that wraps', () => {
  const pair = async (caller: TdeCaller, ...usages: Parameters<typeof halves>) => {
    const { privateKey, publicKey } = await tde().generateKeyPair(caller, halves(...usages));
    if (publicKey === null) throw new Error('no public half');
    return { privateKey, publicKey };
  };

  test('is asked about its private half, which is marked before the bytes leave', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    const key = await tde().generateKey(caller, movable());
    const good = await pair(caller, ['unwrap', 'sign']);
    const bad = await pair(caller, ['unwrap', 'decrypt']);
    expect(await codeOfWork(tde().wrap(caller, bad.publicKey.handle, oaep, token(key.handle)))).toBe('forbidden');
    const wrapped = await tde().wrap(caller, good.publicKey.handle, oaep, token(key.handle));
    expect(await auditKindsOf(opened, good.privateKey.id)).toEqual(['key.created', 'key.decryption-ended']);
    const { object } = await tde().unwrap(caller, good.privateKey.handle, oaep, wrapped, onToken());
    expect(object?.checkValue).toBe(key.checkValue);
    const open = onToken({ sensitive: false });
    expect(await codeOfWork(tde().unwrap(caller, good.privateKey.handle, oaep, wrapped, open))).toBe('validation');
  });

  test('wraps nothing sensitive when the private half is outside, in another group, or gone', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    const { caller: stranger } = await registerCaller(opened, named('stranger'));
    const key = await tde().generateKey(caller, movable());
    const theirs = await pair(stranger, ['unwrap']);
    const spki = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'der', type: 'spki' });
    const wrap = (handle: number) => codeOfWork(tde().wrap(caller, handle, oaep, token(key.handle)));
    for (const value of [spki, Buffer.from(theirs.publicKey.publicKey ?? '', 'base64')]) {
      const input = { ...halves(['unwrap']).publicKey, bits: null };
      expect(await wrap((await tde().createObject(caller, input, value)).handle)).toBe('forbidden');
    }
    const own = await pair(caller, ['unwrap']);
    await tde().destroyObject(caller, own.privateKey.handle);
    expect(await wrap(own.publicKey.handle)).toBe('forbidden');
  });

  test('wraps nothing sensitive when its private half came from outside, or came a second time', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    const key = await tde().generateKey(caller, movable());
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const { privateKey: input, publicKey: publicInput } = halves(['unwrap']);
    const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' });
    await tde().importKey(caller, { ...input, bits: null }, await sealedKey(tde(), caller, pkcs8, 'private-key'));
    const spki = publicKey.export({ format: 'der', type: 'spki' });
    const { handle } = await tde().createObject(caller, { ...publicInput, bits: null }, spki);
    expect(await codeOfWork(tde().wrap(caller, handle, oaep, token(key.handle)))).toBe('forbidden');
  });

  test('of another application is not marked by its siblings', async () => {
    const { caller: owner, groupId } = await registerCaller(opened, named('owner'));
    const { caller: sibling } = await registerCaller(opened, named('sibling'), groupId);
    const { publicKey } = await pair(owner, ['unwrap', 'sign']);
    const key = await tde().generateKey(sibling, movable());
    expect(await codeOfWork(tde().wrap(sibling, publicKey.handle, oaep, token(key.handle)))).toBe('forbidden');
    expect(await codeOfWork(tde().wrap(owner, publicKey.handle, oaep, await session(owner, Buffer.alloc(32, 1))))).toBe(
      'none',
    );
    expect(await codeOfWork(tde().wrap(sibling, publicKey.handle, oaep, token(key.handle)))).toBe('none');
  });

  test('whose private half was changed in the database wraps nothing sensitive', async () => {
    const other = await openTestService();
    const { caller } = await registerCaller(other, 'app');
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const { privateKey: input, publicKey: publicInput } = halves(['unwrap']);
    const made = await other.operations.tde.importKey(
      caller,
      { ...input, bits: null },
      await sealedKey(other.operations.tde, caller, privateKey.export({ format: 'der', type: 'pkcs8' }), 'private-key'),
    );
    const spki = publicKey.export({ format: 'der', type: 'spki' });
    const { handle } = await other.operations.tde.createObject(caller, { ...publicInput, bits: null }, spki);
    await other.stop();
    // A caller who has this private key claims that the service generated it, and that it is marked
    // already.
    await queryStored(
      other.folder,
      'update tde_objects set local = 1, extractable = 0, never_extractable = 1, wrapped_sensitive = 1 where handle = ?',
      made.handle,
    );
    const again = await openTestService({ folder: other.folder });
    const key = await sealedKey(again.operations.tde, caller, Buffer.alloc(32, 8));
    const brought = { from: 'session', class: 'secret-key', sensitive: true, key } as const;
    const wrapped = again.operations.tde.wrap(caller, handle, oaep, brought);
    expect(await codeOfWork(wrapped)).toBe('forbidden');
    expect(await codeOfWork(again.operations.tde.getObject(caller, made.handle))).toBe('key-tampered');
    await again.remove();
  });
});

describe('the state of a key', () => {
  const uses = (caller: TdeCaller, by: VisibleObject, key: VisibleObject, derivable: VisibleObject) => ({
    'wrap under it': async (handle = by.handle) =>
      tde().wrap(caller, handle, wrapping, await session(caller, Buffer.alloc(32, 5))),
    'wrap it': (handle = key.handle) => tde().wrap(caller, by.handle, wrapping, token(handle)),
    'derive from it': (handle = derivable.handle) =>
      tde().derive(
        caller,
        handle,
        {
          way: 'hkdf',
          digest: 'sha256',
          steps: 'both',
          salt: Buffer.alloc(0),
          info: Buffer.alloc(0),
        },
        onToken({ algorithm: 'generic', bits: 256 }),
      ),
  });
  type Use = keyof ReturnType<typeof uses>;
  const cases: readonly Use[] = ['wrap under it', 'wrap it', 'derive from it'];

  test.each(cases)('decides whether it is used to: %s', async (name) => {
    const { caller } = await registerCaller(opened, named('app'));
    const by = await tde().generateKey(caller, wrapper());
    const key = await tde().generateKey(caller, movable());
    const derivable = await tde().generateKey(caller, { ...movable(), algorithm: 'generic', usages: ['derive'] });
    const use = uses(caller, by, key, derivable)[name];
    const { id, handle } = { 'wrap under it': by, 'wrap it': key, 'derive from it': derivable }[name];
    expect(await codeOfWork(use())).toBe('none');
    await opened.operations.keys.disable(administrator, id);
    expect(await codeOfWork(use())).toBe('key-disabled');
    await opened.operations.keys.enable(administrator, id);
    expect(await codeOfWork(use())).toBe('none');
    await opened.operations.keys.softDelete(administrator, id);
    expect(await codeOfWork(use())).toBe('none');
    expect((await opened.operations.keys.get(administrator, id)).reimportedAt).not.toBeNull();
    await tde().destroyObject(caller, handle);
    expect(await codeOfWork(use())).toBe('key-destroyed');
  });

  test('of the vault counts for whatever leaves too, under a public key as well', async () => {
    const { caller, groupId } = await registerCaller(opened, named('app'));
    const { vaults, tdeGroups } = opened.operations;
    const { publicKey } = await tde().generateKeyPair(caller, halves(['unwrap']));
    const key = await tde().generateKey(caller, movable());
    const open = await tde().generateKey(caller, { ...movable(), sensitive: false });
    const { vaultId } = await tdeGroups.get(administrator, groupId);
    await vaults.disable(administrator, vaultId);
    expect(await codeOfWork(tde().wrap(caller, publicKey?.handle ?? 0, oaep, token(key.handle)))).toBe('key-disabled');
    expect(await codeOfWork(tde().readValue(caller, open.handle))).toBe('key-disabled');
    await vaults.enable(administrator, vaultId);
    expect(await codeOfWork(tde().wrap(caller, publicKey?.handle ?? 0, oaep, token(key.handle)))).toBe('none');
    expect(await tde().readValue(caller, open.handle)).toHaveLength(32);
    await opened.operations.keys.disable(administrator, open.id);
    expect(await codeOfWork(tde().readValue(caller, open.handle))).toBe('key-disabled');
    expect(await detailsOf(open.id, 'key.exported')).toMatchObject([{ form: 'clear' }]);
  });
});

describe('what runs at the same time', () => {
  test('no key leaves after the record of its destruction, or of its wrapping key’s', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    const orders = fc.asyncProperty(
      fc.array(fc.nat({ max: 40 }), { minLength: 3, maxLength: 3 }),
      fc.boolean(),
      fc.boolean(),
      async (pauses, destroysWrapper, hasWrapped) => {
        const [by, key] = [await tde().generateKey(caller, wrapper()), await tde().generateKey(caller, movable())];
        if (hasWrapped) await tde().wrap(caller, by.handle, wrapping, await session(caller, Buffer.alloc(32, 1)));
        const later = async <T>(turns: number | undefined, work: () => Promise<T>): Promise<string> => {
          for (let i = 0; i < (turns ?? 0); i++) await Promise.resolve();
          return codeOfWork(work());
        };
        const doomed = destroysWrapper ? by : key;
        await Promise.all([
          later(pauses[0], () => tde().wrap(caller, by.handle, wrapping, token(key.handle))),
          later(pauses[1], () => tde().wrap(caller, by.handle, wrapping, token(key.handle))),
          later(pauses[2], () => tde().destroyObject(caller, doomed.handle)),
        ]);
        const kinds = await auditKindsOf(opened, doomed.id);
        const end = kinds.indexOf('key.destroyed');
        expect(kinds.slice(end).filter((kind) => kind === 'key.exported' || kind === 'key.wrapped')).toEqual([]);
        expect(end).toBeGreaterThan(0);
        expect(await codeOfWork(tde().wrap(caller, by.handle, wrapping, token(key.handle)))).toBe('key-destroyed');
      },
    );
    await fc.assert(orders, { numRuns: 40 });
  });

  test('no key decrypts after it has wrapped what is sensitive, in any order of calls', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    const data = Buffer.alloc(16, 4);
    const calls = fc.array(
      fc.record({ call: fc.constantFrom('wrap', 'decrypt', 'allow', 'forbid', 'unwrap'), pause: fc.nat({ max: 8 }) }),
      { minLength: 4, maxLength: 12 },
    );
    const property = fc.asyncProperty(calls, async (given) => {
      const by = await tde().generateKey(caller, { ...wrapper(), usages: ['wrap', 'unwrap', 'decrypt'] });
      const plain = await tde().wrap(caller, by.handle, cbcPad, await session(caller, data, false));
      const key = await tde().generateKey(caller, movable());
      const done: string[] = [];
      const work = {
        wrap: () => tde().wrap(caller, by.handle, wrapping, token(key.handle)),
        decrypt: () => tde().decrypt(caller, by.handle, cbc, data),
        unwrap: () => tde().unwrap(caller, by.handle, cbcPad, plain, onToken({ sensitive: false })),
        allow: () => tde().updateObject(caller, by.handle, { usages: ['wrap', 'unwrap', 'decrypt'] }),
        forbid: () => tde().updateObject(caller, by.handle, { usages: ['wrap', 'unwrap'] }),
      };
      await Promise.all(
        given.map(async ({ call, pause }) => {
          for (let i = 0; i < pause; i++) await new Promise((resolve) => setImmediate(resolve));
          if ((await codeOfWork(work[call]())) === 'none') done.push(call);
        }),
      );
      const first = done.indexOf('wrap');
      expect(first < 0 ? [] : done.slice(first).filter((call) => call === 'decrypt')).toEqual([]);
      if (first >= 0) {
        expect(await codeOfWork(work.allow())).toBe('forbidden');
        expect(await codeOfWork(work.unwrap())).toBe('key-usage');
        expect((await auditKindsOf(opened, by.id)).filter((kind) => kind === 'key.decryption-ended')).toHaveLength(1);
      }
    });
    await fc.assert(property, { numRuns: 40 });
  });
});

describe('limits', () => {
  test('too many RSA keys of one application at once are refused, and the rest does not delay that of another one', async () => {
    const [{ caller: greedy }, { caller: other }] = [
      await registerCaller(opened, named('app')),
      await registerCaller(opened, named('app')),
    ];
    const order: string[] = [];
    const make = async (caller: TdeCaller, who: string): Promise<string> => {
      const pair = { privateKey: halves(['sign']).privateKey, publicKey: null };
      const code = await codeOfWork(tde().generateKeyPair(caller, pair));
      if (code === 'none') order.push(who);
      return code;
    };
    const all = Array.from({ length: 24 }, () => make(greedy, 'greedy'));
    expect(await make(other, 'other')).toBe('none');
    const before = order.indexOf('other');
    const codes = await Promise.all(all);
    expect(codes.filter((each) => each === 'none')).toHaveLength(17);
    expect(codes.filter((each) => each === 'rate-limited')).toHaveLength(7);
    // The other one is not behind those that waited already.
    expect(before).toBeLessThan(15);
  });

  test('work that takes long leaves the event loop to the calls of others', async () => {
    const [{ caller }, { caller: other }] = [
      await registerCaller(opened, named('app')),
      await registerCaller(opened, named('app')),
    ];
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 4096 });
    const value = privateKey.export({ type: 'pkcs8', format: 'der' });
    const large = (): NewTokenObject => ({
      ...halves(['sign', 'decrypt', 'unwrap']).privateKey,
      bits: null,
      extractable: true,
    });
    const imported = async () => tde().importKey(caller, large(), await sealedKey(tde(), caller, value));
    const key = await imported();
    const by = await tde().generateKey(caller, wrapper());
    const wrapped = await tde().wrap(caller, by.handle, wrapping, token(key.handle));
    const sealed = await sealedKey(tde(), caller, value);
    const encrypted = publicEncrypt(
      { key: createPublicKey(privateKey), padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' },
      Buffer.alloc(32, 7),
    );
    const slow: Record<string, () => Promise<unknown>> = {
      generateKeyPair: () =>
        tde().generateKeyPair(caller, { privateKey: halves(['sign']).privateKey, publicKey: null }),
      importKey: () => tde().importKey(caller, large(), sealed),
      unwrap: () => tde().unwrap(caller, by.handle, wrapping, wrapped, onToken(large())),
      unwrapOaep: () => tde().unwrap(caller, key.handle, oaep, encrypted, onToken()),
      decryptWithPrivateKey: () => tde().decryptWithPrivateKey(caller, key.handle, oaep.oaep, encrypted),
      sign: () =>
        tde().signWithPrivateKey(caller, key.handle, { algorithm: 'rsa-pkcs1', digest: 'sha256' }, Buffer.alloc(9)),
    };
    const busy = await tde().generateKey(other, movable());
    /** How many calls of another application are answered while this one runs. */
    const callsBeside = async (call: () => Promise<unknown>): Promise<number> => {
      let over = false;
      const outcome = call().finally(() => {
        over = true;
      });
      let calls = 0;
      while (!over) {
        await tde().encrypt(other, busy.handle, cbc, Buffer.alloc(32));
        if (!over) calls += 1;
        await new Promise((resolve) => setImmediate(resolve));
      }
      await outcome;
      return calls;
    };
    // Some of it takes ten milliseconds only: on a busy machine this thread may get no time in the
    // meantime, and it is tried again.
    for (const [name, call] of Object.entries(slow))
      await expect.poll(() => callsBeside(call), { message: name }).toBeGreaterThan(1);
  });

  test('a pair is refused before the long work when its label is taken or its size is none', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    const { privateKey } = halves(['sign']);
    await tde().generateKey(caller, { ...masterKey(''), label: privateKey.label });
    const refusals = await Promise.all([
      ...Array.from({ length: 40 }, () => codeOfWork(tde().generateKeyPair(caller, { privateKey, publicKey: null }))),
    ]);
    expect(new Set(refusals)).toEqual(new Set(['label-exists']));
    for (const bits of [null, 0, 1024, 2047, 2049, 4104, 8192])
      expect(
        await codeOfWork(
          tde().generateKeyPair(caller, { privateKey: { ...halves(['sign']).privateKey, bits }, publicKey: null }),
        ),
      ).toBe('unsupported');
    for (const [algorithm, bits] of [
      ['ec', 255],
      ['ec', null],
      ['ed25519', 448],
      ['brainpool', 224],
      ['secp256k1', 384],
      ['x448', 256],
    ] as const) {
      const odd = { ...halves(['sign']).privateKey, algorithm, bits };
      expect(await codeOfWork(tde().generateKeyPair(caller, { privateKey: odd, publicKey: null }))).toBe('unsupported');
    }
  });

  test('a pair on a curve is what was asked for, and people see its name', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    for (const [algorithm, bits, type] of [
      ['ec', 224, 'P-224'],
      ['ec', 521, 'P-521'],
      ['secp256k1', 256, 'secp256k1'],
      ['brainpool', 384, 'brainpoolP384r1'],
      ['ed448', 448, 'Ed448'],
      ['x25519', 256, 'X25519'],
      ['x448', 448, 'X448'],
    ] as const) {
      const asked = { ...halves(['sign']).privateKey, algorithm, bits };
      const { privateKey } = await tde().generateKeyPair(caller, { privateKey: asked, publicKey: null });
      expect(privateKey).toMatchObject({ algorithm, bits });
      const key = await opened.operations.keys.get(administrator, privateKey.id);
      expect(representKey(key)).toMatchObject({ algorithm, bits, type });
    }
  });

  test('an imported key is stored as what it is, whichever of its family was named', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    const { privateKey: theirs } = generateKeyPairSync('ec', { namedCurve: 'brainpoolP256r1' });
    const value = theirs.export({ format: 'der', type: 'pkcs8' });
    const asked = { ...halves(['sign']).privateKey, algorithm: 'ec' as const, bits: 256 };
    const sealed = () => sealedKey(tde(), caller, value, 'private-key');
    expect(await tde().importKey(caller, asked, await sealed())).toMatchObject({ algorithm: 'brainpool', bits: 256 });
    const wrong = { ...asked, algorithm: 'ed448' as const };
    expect(await codeOfWork(tde().importKey(caller, wrong, await sealed()))).toBe('validation');
  });

  test('what is derived is a key of a size that there is', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    const base = await tde().generateKey(caller, { ...movable(), algorithm: 'generic', usages: ['derive'] });
    const bytes = Buffer.alloc(0);
    const derive = (algorithm: 'aes' | 'generic', bits: number | null, digest: 'sha1' | 'sha256' = 'sha256') =>
      codeOfWork(
        tde().derive(
          caller,
          base.handle,
          { way: 'hkdf', digest, steps: 'both', salt: bytes, info: bytes },
          onToken({ algorithm, bits }),
        ),
      );
    for (const bits of [null, 0, 7, 12, 32_776, 65_536]) expect(await derive('generic', bits)).toBe('validation');
    for (const bits of [8, 136, 512]) expect(await derive('aes', bits)).toBe('validation');
    expect(await derive('generic', 32_768)).toBe('none');
    expect(await derive('generic', 256 * 255, 'sha1')).toBe('validation');
  });

  test('a key is sent to a session only under a valid key of its agent', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    const base = await tde().generateKey(caller, { ...movable(), algorithm: 'generic', usages: ['derive'] });
    const bytes = Buffer.alloc(0);
    const to = (recipient: Uint8Array) =>
      codeOfWork(
        tde().derive(
          caller,
          base.handle,
          { way: 'hkdf', digest: 'sha256', steps: 'both', salt: bytes, info: bytes },
          {
            on: 'session',
            recipient,
            info: bytes,
            class: 'secret-key',
            algorithm: 'aes',
            bits: 256,
            sensitive: true,
            extractable: false,
          },
        ),
      );
    const good = generateKeyPairSync('x25519').publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
    expect(await to(good)).toBe('none');
    await untilAudited(opened, 'key.sent', base.id);
    // Points of small order are refused: the agreed secret would be predictable (RFC 7748, section
    // 6.1).
    const small = [Buffer.alloc(32), Buffer.alloc(32).fill(1, 0, 1)];
    for (const recipient of [...small, good.subarray(1), Buffer.alloc(33, 9), bytes])
      expect(await to(recipient)).toBe('validation');
    expect(await auditKindsOf(opened, base.id)).toEqual(['key.created', 'key.sent']);
  });

  test('a wrapped key that is wrong in any way is one answer', async () => {
    const { caller } = await registerCaller(opened, named('app'));
    const by = await tde().generateKey(caller, wrapper());
    const wrapped = await tde().wrap(caller, by.handle, wrapping, await session(caller, Buffer.alloc(24, 5)));
    const codes = new Set<string>();
    for (let at = 0; at < wrapped.length; at++) {
      const changed = Buffer.from(wrapped);
      changed[at] = (changed[at] ?? 0) ^ 0x10;
      codes.add(await codeOfWork(tde().unwrap(caller, by.handle, wrapping, changed, onToken())));
    }
    // No key of this sort: a private key, and an AES key of 40 bytes.
    const pkcs8 = onToken({ class: 'private-key', algorithm: 'ec' });
    codes.add(await codeOfWork(tde().unwrap(caller, by.handle, wrapping, wrapped, pkcs8)));
    const odd = await tde().wrap(caller, by.handle, wrapping, await session(caller, Buffer.alloc(40, 5)));
    codes.add(await codeOfWork(tde().unwrap(caller, by.handle, wrapping, odd, onToken())));
    expect(codes).toEqual(new Set(['invalid-ciphertext']));
  });
});

test('what is refused leaves no key behind in the addon', async () => {
  const { caller } = await registerCaller(opened, named('app'));
  const { core } = await import('../../../addon/core.ts');
  const by = await tde().generateKey(caller, wrapper());
  const imported = await tde().importKey(caller, wrapper(), await sealedKey(tde(), caller, Buffer.alloc(32, 7)));
  const key = await tde().generateKey(caller, movable());
  const { publicKey } = await tde().generateKeyPair(caller, halves(['decrypt']));
  const wrapped = await tde().wrap(caller, by.handle, wrapping, token(key.handle));
  const before = core.memoryStatus().keys;
  const taken = { ...movable(), label: key.label };
  for (let i = 0; i < 10; i++) {
    await codeOfWork(tde().wrap(caller, imported.handle, wrapping, token(key.handle)));
    await codeOfWork(tde().wrap(caller, imported.handle, wrapping, await session(caller, Buffer.alloc(32, 1))));
    await codeOfWork(tde().wrap(caller, publicKey?.handle ?? 0, oaep, token(key.handle)));
    await codeOfWork(
      tde().wrap(caller, by.handle, { way: 'key-wrap', padded: false }, await session(caller, Buffer.alloc(17, 1))),
    );
    await codeOfWork(tde().unwrap(caller, by.handle, wrapping, wrapped, { on: 'token', object: taken }));
    await codeOfWork(tde().unwrap(caller, by.handle, wrapping, wrapped, onToken({ bits: 128 })));
    await codeOfWork(
      tde().generateKeyPair(caller, { ...halves(['sign']), publicKey: { ...taken, class: 'public-key' } }),
    );
  }
  expect(core.memoryStatus().keys).toBe(before);
});
