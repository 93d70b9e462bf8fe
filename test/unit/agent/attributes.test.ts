// The attributes about a key's history, for each way of creation, and the uses that its attributes
// permit: PKCS#11 2.40, sections 4.7 to 4.10 and 5.14 (the last paragraphs of C_UnwrapKey and
// C_DeriveKey), and 5.7 for copies.
import { beforeAll, describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { AttributeValue, Mechanism } from '../../../provider/schema/types.ts';
import { room, rvOf } from '../../support/in-process-agent.ts';
import { CKM_UNAVAILABLE } from '../../support/names.ts';
import { aesRows, clear, hkdfWith, keyWrap, mech, type Row, startSession } from '../../support/session-calls.ts';
import { places, template } from '../../support/template.ts';

const value = Buffer.alloc(32, 9);
const plain = (type: number): Mechanism => mech(type);
const hkdf = hkdfWith();
const history = [
  CKA.LOCAL,
  CKA.KEY_GEN_MECHANISM,
  CKA.SENSITIVE,
  CKA.ALWAYS_SENSITIVE,
  CKA.EXTRACTABLE,
  CKA.NEVER_EXTRACTABLE,
];

const start = async (token: boolean) => {
  const call = await startSession();
  const { agent, session } = call;
  const on: Row = [CKA.TOKEN, token];
  return {
    ...call,
    create: (...rows: Row[]) => call.create(...aesRows, [CKA.VALUE, value], on, ...rows),
    generate: (...rows: Row[]) => call.generate(on, ...rows),
    wrapped: (wrappingKey: number, key: number) => call.wrap(keyWrap, wrappingKey, key),
    unwrap: (unwrappingKey: number, wrappedKey: Uint8Array, ...rows: Row[]) =>
      call.unwrap(keyWrap, unwrappingKey, wrappedKey, ...aesRows, on, ...rows),
    derive: (baseKey: number, ...rows: Row[]) =>
      call.derive(hkdf, baseKey, ...aesRows, [CKA.VALUE_LEN, 32], on, ...rows),
    base: (...rows: Row[]) =>
      agent.generate(session, CKM.GENERIC_SECRET_KEY_GEN, [CKA.VALUE_LEN, 32], on, [CKA.DERIVE, true], ...rows),
    set: (object: number, ...rows: Row[]) => agent.set(session, object, ...rows),
    history: (object: number) => call.read(object, ...history),
  };
};
type Calls = Awaited<ReturnType<typeof start>>;

describe.each(places)('keys of the %s', (_where, token) => {
  let on: Calls;
  beforeAll(async () => {
    on = await start(token);
  });

  test('a generated key is local, knows its mechanism, and was always what it is', async () => {
    const generated = [true, CKM.AES_KEY_GEN];
    expect(await on.history(await on.generate())).toEqual([...generated, true, true, false, true]);
    expect(await on.history(await on.generate([CKA.EXTRACTABLE, true]))).toEqual([
      ...generated,
      true,
      true,
      true,
      false,
    ]);
    expect(await on.history(await on.generate(...clear))).toEqual([...generated, false, false, true, false]);
  });

  test('a created key came from outside, and was never always anything', async () => {
    const created = [false, CKM_UNAVAILABLE];
    expect(await on.history(await on.create())).toEqual([...created, true, false, false, false]);
    expect(await on.history(await on.create(...clear))).toEqual([...created, false, false, true, false]);
  });

  test('an unwrapped key came from outside too, and is extractable unless its template says no', async () => {
    const unwrapped = [false, CKM_UNAVAILABLE];
    const key = await on.generate([CKA.DECRYPT, false]);
    const bytes = await on.wrapped(key, await on.generate(...clear));
    expect(await on.history(await on.unwrap(key, bytes))).toEqual([...unwrapped, true, false, true, false]);
    expect(await on.history(await on.unwrap(key, bytes, [CKA.EXTRACTABLE, false]))).toEqual([
      ...unwrapped,
      true,
      false,
      false,
      false,
    ]);
  });

  test('a derived key was always what its base was always, and it is', async () => {
    const derived = [false, CKM_UNAVAILABLE];
    const closedBase = await on.base();
    const openBase = await on.base(...clear);
    expect(await on.history(await on.derive(closedBase))).toEqual([...derived, true, true, false, true]);
    expect(await on.history(await on.derive(openBase))).toEqual([...derived, true, false, false, false]);
    expect(await on.history(await on.derive(openBase, ...clear))).toEqual([...derived, false, false, true, false]);
  });

  test('a copy keeps the history of its source, and has its own name', async () => {
    const source = await on.generate(...clear);
    const copy = await on.copy(source, [CKA.SENSITIVE, true], [CKA.EXTRACTABLE, false]);
    expect(await on.history(copy)).toEqual([true, CKM.AES_KEY_GEN, true, false, false, false]);
    const [first] = await on.read(source, CKA.UNIQUE_ID);
    const [second] = await on.read(copy, CKA.UNIQUE_ID);
    expect(first).toBeInstanceOf(Uint8Array);
    expect(first).not.toEqual(second);
    expect(await on.read(copy, CKA.CHECK_VALUE, CKA.VALUE_LEN)).toEqual(
      await on.read(source, CKA.CHECK_VALUE, CKA.VALUE_LEN),
    );
  });

  test.each([
    ['LOCAL', CKA.LOCAL, true],
    ['KEY_GEN_MECHANISM', CKA.KEY_GEN_MECHANISM, CKM.AES_KEY_GEN],
    ['ALWAYS_SENSITIVE', CKA.ALWAYS_SENSITIVE, true],
    ['NEVER_EXTRACTABLE', CKA.NEVER_EXTRACTABLE, true],
    ['UNIQUE_ID', CKA.UNIQUE_ID, Buffer.from('mine')],
  ] as const)('CKA_%s is the token’s to say: in no template, and never changed', async (_name, type, wanted) => {
    const row: Row = [type, wanted];
    const { agent, session } = on;
    const make = template(...aesRows, [CKA.VALUE, value], [CKA.TOKEN, token], row);
    expect(await agent.rv('C_CreateObject', { session, template: make })).toBe('CKR_ATTRIBUTE_READ_ONLY');
    expect(await rvOf(agent.generate(session, CKM.AES_KEY_GEN, [CKA.VALUE_LEN, 32], [CKA.TOKEN, token], row))).toBe(
      'CKR_ATTRIBUTE_READ_ONLY',
    );
    const key = await on.create(...clear);
    expect(await on.set(key, row)).toBe('CKR_ATTRIBUTE_READ_ONLY');
    expect(await rvOf(on.copy(key, row))).toBe('CKR_ATTRIBUTE_READ_ONLY');
  });

  test('what was once sensitive stays so, and what was once not extractable too', async () => {
    const key = await on.create([CKA.EXTRACTABLE, false], [CKA.SENSITIVE, true]);
    for (const row of clear) expect(await on.set(key, row)).toBe('CKR_ATTRIBUTE_READ_ONLY');
  });

  test('CKA_MODIFIABLE false: no attribute changes, in a copy they may', async () => {
    const key = await on.create(...clear, [CKA.MODIFIABLE, false]);
    expect(await on.set(key, [CKA.ID, Buffer.of(1)])).toBe('CKR_ACTION_PROHIBITED');
    const copy = await on.copy(key, [CKA.ID, Buffer.of(1)], [CKA.MODIFIABLE, true]);
    expect(await on.set(copy, [CKA.ID, Buffer.of(2)])).toBe('CKR_OK');
  });

  test('CKA_COPYABLE false: no copy, and never true again', async () => {
    const key = await on.create(...clear, [CKA.COPYABLE, false]);
    expect(await rvOf(on.copy(key))).toBe('CKR_ACTION_PROHIBITED');
    expect(await on.set(key, [CKA.COPYABLE, true])).toBe('CKR_ATTRIBUTE_READ_ONLY');
  });

  test('CKA_DESTROYABLE false: it stays', async () => {
    const { agent, session } = on;
    const key = await on.create([CKA.DESTROYABLE, false]);
    expect(await agent.rv('C_DestroyObject', { session, object: key })).toBe('CKR_ACTION_PROHIBITED');
    expect(await on.read(key, CKA.DESTROYABLE)).toEqual([false]);
  });

  test('CKA_ALLOWED_MECHANISMS applies to every function', async () => {
    const { agent, session } = on;
    const key = await on.create([CKA.ALLOWED_MECHANISMS, [CKM.AES_CBC]], [CKA.DERIVE, true], [CKA.WRAP, true]);
    const target = await on.create(...clear);
    const rvs = await Promise.all([
      agent.rv('C_EncryptInit', { session, mechanism: plain(CKM.AES_ECB), key }),
      agent.rv('C_DecryptInit', { session, mechanism: plain(CKM.AES_ECB), key }),
      agent.rv('C_SignInit', { session, mechanism: plain(CKM.AES_CMAC), key }),
      agent.rv('C_VerifyInit', { session, mechanism: plain(CKM.AES_CMAC), key }),
      agent.rv('C_MessageEncryptInit', { session, mechanism: plain(CKM.AES_GCM), key }),
      agent.rv('C_MessageDecryptInit', { session, mechanism: plain(CKM.AES_GCM), key }),
      agent.rv('C_WrapKey', { session, mechanism: keyWrap, wrappingKey: key, key: target, wrappedKey: room(99) }),
      rvOf(agent.unwrap(session, keyWrap, key, Buffer.alloc(24), ...aesRows)),
    ]);
    expect(new Set(rvs)).toEqual(new Set(['CKR_MECHANISM_INVALID']));
    const base = await on.base([CKA.ALLOWED_MECHANISMS, [CKM.SHA256_HMAC]]);
    expect(await rvOf(on.derive(base))).toBe('CKR_MECHANISM_INVALID');
    const cbc = { type: CKM.AES_CBC, parameter: { kind: 'bytes', bytes: Buffer.alloc(16) } } as const;
    expect(await agent.rv('C_EncryptInit', { session, mechanism: cbc, key })).toBe('CKR_OK');
    await agent.call('C_EncryptInit', { session, mechanism: null, key: 0 });
  });

  test('CKA_UNWRAP_TEMPLATE and CKA_DERIVE_TEMPLATE are in what is made, and may not be contradicted', async () => {
    const rules = template([CKA.EXTRACTABLE, false], [CKA.SENSITIVE, true]) as unknown as AttributeValue;
    const key = await on.generate([CKA.DECRYPT, false], [CKA.UNWRAP_TEMPLATE, rules]);
    const bytes = await on.wrapped(key, await on.generate(...clear));
    const [sensitive, extractable] = await on.read(await on.unwrap(key, bytes), CKA.SENSITIVE, CKA.EXTRACTABLE);
    expect([sensitive, extractable]).toEqual([true, false]);
    expect(await rvOf(on.unwrap(key, bytes, [CKA.EXTRACTABLE, true]))).toBe('CKR_TEMPLATE_INCONSISTENT');
    const base = await on.base(...clear, [CKA.DERIVE_TEMPLATE, rules]);
    expect(await on.read(await on.derive(base), CKA.SENSITIVE, CKA.EXTRACTABLE)).toEqual([true, false]);
    expect(await rvOf(on.derive(base, [CKA.SENSITIVE, false]))).toBe('CKR_TEMPLATE_INCONSISTENT');
  });

  test('CKA_WRAP_TEMPLATE says which keys are wrapped', async () => {
    const rules = template([CKA.ID, Buffer.from('to go')]) as unknown as AttributeValue;
    const key = await on.generate([CKA.DECRYPT, false], [CKA.WRAP_TEMPLATE, rules]);
    expect(await rvOf(on.wrapped(key, await on.generate(...clear)))).toBe('CKR_KEY_NOT_WRAPPABLE');
    expect(await on.wrapped(key, await on.generate(...clear, [CKA.ID, Buffer.from('to go')]))).toHaveLength(40);
  });
});
