// C_SetAttributeValue and C_CopyObject of keys of the token (PKCS#11 2.40, sections 4.1, 4.9, 4.10
// and 5.7): what protects a key is raised and never lowered, and what two calls change at the same
// time is changed by both.
import { describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { room } from '../../support/in-process-agent.ts';
import { aesRows, cbcPad, clear, mech, onToken, p256, type Row, startSession } from '../../support/session-calls.ts';

const protection = [CKA.SENSITIVE, CKA.EXTRACTABLE, CKA.ALWAYS_SENSITIVE, CKA.NEVER_EXTRACTABLE];
const value = Buffer.alloc(32, 9);

const start = async () => {
  const call = await startSession();
  const { agent, session } = call;
  return {
    ...call,
    create: (...rows: Row[]) => call.create(...aesRows, [CKA.VALUE, value], ...rows),
    privateKey: async (...rows: Row[]) =>
      (await call.pair(CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, p256]], rows)).privateKey,
    set: (object: number, ...rows: Row[]) => agent.set(session, object, ...rows),
    wrap: (type: number, wrappingKey: number, key: number) => {
      const mechanism = type === CKM.AES_CBC_PAD ? cbcPad : mech(type);
      return agent.rv('C_WrapKey', { session, mechanism, wrappingKey, key, wrappedKey: room(512) });
    },
  };
};

describe.each(['secret', 'private'] as const)('the protection of a %s key of the token', (kind) => {
  const make = (call: Awaited<ReturnType<typeof start>>, ...rows: Row[]) =>
    kind === 'secret' ? call.generate(onToken, ...rows) : call.privateKey(onToken, ...rows);

  test('is raised by C_SetAttributeValue, and the value is out of reach from then on', async () => {
    const call = await start();
    const key = await make(call, ...clear);
    expect(await call.read(key, ...protection)).toEqual([false, true, false, false]);
    expect(await call.read(key, CKA.VALUE)).toEqual([expect.any(Uint8Array)]);
    expect(await call.set(key, [CKA.SENSITIVE, true])).toBe('CKR_OK');
    expect(await call.read(key, ...protection)).toEqual([true, true, false, false]);
    expect(await call.read(key, CKA.VALUE)).toEqual([null]);
    expect(await call.set(key, [CKA.EXTRACTABLE, false])).toBe('CKR_OK');
    expect(await call.read(key, ...protection)).toEqual([true, false, false, false]);
  });

  test('is never lowered, and nothing else of the template is changed then', async () => {
    const call = await start();
    const key = await make(call, [CKA.LABEL, Buffer.from('before')]);
    expect(await call.read(key, ...protection)).toEqual([true, false, true, true]);
    for (const row of [
      [CKA.SENSITIVE, false],
      [CKA.EXTRACTABLE, true],
      [CKA.ALWAYS_SENSITIVE, false],
      [CKA.NEVER_EXTRACTABLE, false],
    ] as const)
      expect(await call.set(key, [CKA.LABEL, Buffer.from('after')], row)).toBe('CKR_ATTRIBUTE_READ_ONLY');
    expect(await call.read(key, ...protection, CKA.LABEL)).toEqual([true, false, true, true, Buffer.from('before')]);
    // What it is already is not a change.
    expect(await call.set(key, [CKA.SENSITIVE, true], [CKA.EXTRACTABLE, false])).toBe('CKR_OK');
  });

  test('is raised together with what else the template has', async () => {
    const call = await start();
    const key = await make(call, ...clear);
    const rows: Row[] = [
      [CKA.SENSITIVE, true],
      [CKA.EXTRACTABLE, false],
      [CKA.LABEL, Buffer.from(`new ${kind}`)],
      [CKA.ID, Buffer.of(7)],
      [CKA.SIGN, false],
    ];
    expect(await call.set(key, ...rows)).toBe('CKR_OK');
    expect(await call.read(key, ...rows.map(([type]) => type))).toEqual(rows.map(([, wanted]) => wanted));
  });

  test('is raised in a copy, and its source stays as it is', async () => {
    const call = await start();
    for (const where of [[onToken], [[CKA.TOKEN, false]]] as Row[][]) {
      const key = await make(call, ...clear);
      const copy = await call.copy(key, ...where, [CKA.SENSITIVE, true], [CKA.EXTRACTABLE, false]);
      expect(await call.read(copy, ...protection)).toEqual([true, false, false, false]);
      expect(await call.read(copy, CKA.VALUE)).toEqual([null]);
      expect(await call.read(key, ...protection)).toEqual([false, true, false, false]);
      for (const row of [
        [CKA.SENSITIVE, false],
        [CKA.EXTRACTABLE, true],
      ] as const)
        await expect(call.copy(copy, ...where, row)).rejects.toThrow('CKR_ATTRIBUTE_READ_ONLY');
    }
  });

  test('keeps a key that may not be read from being copied', async () => {
    const call = await start();
    const key = await make(call, ...clear);
    expect(await call.set(key, [CKA.SENSITIVE, true])).toBe('CKR_OK');
    for (const where of [true, false])
      await expect(call.copy(key, [CKA.TOKEN, where])).rejects.toThrow('CKR_ACTION_PROHIBITED');
  });
});

describe('what a key was', () => {
  test('is the service’s word: a key from outside was neither always sensitive nor never extractable', async () => {
    const call = await start();
    expect(await call.read(await call.create(onToken), ...protection)).toEqual([true, false, false, false]);
    const copied = await call.copy(await call.generate(), onToken);
    expect(await call.read(copied, ...protection)).toEqual([true, false, false, false]);
  });

  test('decides whether it wraps: a key that was extractable never wraps a sensitive key', async () => {
    const call = await start();
    const noDecrypt: Row = [CKA.DECRYPT, false];
    const key = await call.generate(onToken, [CKA.EXTRACTABLE, true]);
    const [once, never] = [
      await call.generate(onToken, noDecrypt, [CKA.EXTRACTABLE, true]),
      await call.generate(onToken, noDecrypt),
    ];
    expect(await call.set(once, [CKA.EXTRACTABLE, false])).toBe('CKR_OK');
    expect(await call.read(once, ...protection)).toEqual([true, false, true, false]);
    expect(await call.wrap(CKM.AES_KEY_WRAP, once, key)).toBe('CKR_KEY_NOT_WRAPPABLE');
    expect(await call.wrap(CKM.AES_KEY_WRAP, never, key)).toBe('CKR_OK');
  });

  test('before it became sensitive, it was wrapped under a cipher; after that it is not', async () => {
    const call = await start();
    const [by, key] = [await call.generate(onToken, [CKA.DECRYPT, false]), await call.generate(onToken, ...clear)];
    expect(await call.wrap(CKM.AES_CBC_PAD, by, key)).toBe('CKR_OK');
    expect(await call.set(key, [CKA.SENSITIVE, true])).toBe('CKR_OK');
    expect(await call.wrap(CKM.AES_CBC_PAD, by, key)).toBe('CKR_KEY_NOT_WRAPPABLE');
    expect(await call.wrap(CKM.AES_KEY_WRAP, by, key)).toBe('CKR_OK');
    expect(await call.set(key, [CKA.EXTRACTABLE, false])).toBe('CKR_OK');
    expect(await call.wrap(CKM.AES_KEY_WRAP, by, key)).toBe('CKR_KEY_UNEXTRACTABLE');
  });
});

describe('changes of one key at the same time', () => {
  const changes: readonly Row[] = [
    [CKA.SENSITIVE, true],
    [CKA.EXTRACTABLE, false],
    [CKA.WRAP_WITH_TRUSTED, true],
    [CKA.ID, Buffer.of(4)],
    [CKA.START_DATE, Buffer.from('20261121')],
    [CKA.LABEL, Buffer.from('at once')],
    [CKA.ENCRYPT, false],
    [CKA.DECRYPT, false],
    [CKA.WRAP, false],
    [CKA.UNWRAP, false],
    [CKA.DERIVE, true],
  ];
  test('are all there afterwards, and none undoes another', async () => {
    const call = await start();
    for (let turn = 0; turn < 5; turn++) {
      const key = await call.generate(onToken, ...clear);
      const order = [...changes.slice(turn * 2), ...changes.slice(0, turn * 2)];
      const answers = await Promise.all(order.map((row) => call.set(key, row)));
      expect(new Set(answers)).toEqual(new Set(['CKR_OK']));
      expect(await call.read(key, ...changes.map(([type]) => type))).toEqual(changes.map(([, wanted]) => wanted));
      await call.agent.call('C_DestroyObject', { session: call.session, object: key });
    }
    // Some of them had to look twice.
    expect(call.agent.service.asked.get('updateObject')).toBeGreaterThan(5 * changes.length);
  });
});
