// Objects: PKCS#11 2.40, sections 4 and 5.7, for objects of a session and on the token alike.
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { CKR } from '../../../provider/schema/return-values.ts';
import { LengthOnly } from '../../../provider/schema/types.ts';
import { type InProcessAgent, rvOf, startInProcess } from '../../support/in-process-agent.ts';
import { CKK, CKM_UNAVAILABLE, CKO } from '../../support/names.ts';
import { aesRows, cbcPad, keyWrap, mech, p256, type Row, startSession } from '../../support/session-calls.ts';
import { places, template } from '../../support/template.ts';

const generate = (agent: InProcessAgent, session: number, ...rows: Row[]): Promise<number> =>
  agent.generate(session, CKM.AES_KEY_GEN, [CKA.VALUE_LEN, 32], ...rows);
const find = async (agent: InProcessAgent, session: number, ...rows: Row[]): Promise<readonly number[]> => {
  await agent.call('C_FindObjectsInit', { session, template: template(...rows) });
  const all: number[] = [];
  for (;;) {
    const some = await agent.call('C_FindObjects', { session, objects: 3 });
    if (some.length === 0) break;
    all.push(...some);
  }
  await agent.call('C_FindObjectsFinal', { session });
  return all;
};
const label = (text: string): Row => [CKA.LABEL, Buffer.from(text)];

describe.each(places)('%s objects', (_where, token) => {
  const start = async () => {
    const agent = await startInProcess();
    return { agent, session: await agent.open() };
  };
  const on: Row = [CKA.TOKEN, token];

  test('a generated key shows every attribute except its value', async () => {
    const { agent, session } = await start();
    const key = await generate(agent, session, on, label('k1'), [CKA.ID, Buffer.from('id')]);
    expect(key < 2 ** 31).toBe(token);
    const asked = [
      CKA.LABEL,
      CKA.VALUE,
      CKA.ID,
      CKA.SENSITIVE,
      CKA.LOCAL,
      CKA.VALUE_LEN,
      CKA.KEY_GEN_MECHANISM,
      CKA.TOKEN,
    ];
    const { rv, values } = await agent.read(session, key, ...asked);
    expect(rv).toBe(CKR.ATTRIBUTE_SENSITIVE);
    expect(values[0]).toEqual(Buffer.from('k1'));
    expect(values[1]).toBeNull();
    expect(Buffer.from(values[2] as Uint8Array).toString()).toBe('id');
    expect(values.slice(3)).toEqual([true, true, 32, CKM.AES_KEY_GEN, token]);
  });

  test('a missing attribute and a secret one have different results', async () => {
    const { agent, session } = await start();
    const key = await generate(agent, session, on);
    const { rv, values } = await agent.read(session, key, CKA.MODULUS, CKA.CLASS);
    expect(rv).toBe(CKR.ATTRIBUTE_TYPE_INVALID);
    expect(values).toEqual([null, CKO.SECRET_KEY]);
  });

  test('the value of a key that may be extracted is given, and only to who has room for it', async () => {
    const { agent, session } = await start();
    const value = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex');
    const object = await agent.create(
      session,
      ...aesRows,
      [CKA.VALUE, value],
      [CKA.SENSITIVE, false],
      [CKA.EXTRACTABLE, true],
      on,
    );
    const ask = (capacity: number | null) =>
      agent.call('C_GetAttributeValue', { session, object, template: [{ type: CKA.VALUE, capacity }] });
    expect(Buffer.from((await ask(16)).values[0] as Uint8Array)).toEqual(value);
    expect((await ask(15)).values[0]).toEqual(new LengthOnly(16));
    expect((await ask(null)).values[0]).toEqual(new LengthOnly(16));
    const facts = await agent.read(
      session,
      object,
      CKA.LOCAL,
      CKA.ALWAYS_SENSITIVE,
      CKA.KEY_GEN_MECHANISM,
      CKA.CHECK_VALUE,
    );
    expect(facts.values.slice(0, 3)).toEqual([false, false, CKM_UNAVAILABLE]);
    // AES-128 under 00..0f over a block of zeros.
    expect(Buffer.from(facts.values[3] as Uint8Array).toString('hex')).toBe('c6a13b');
  });

  test('a wrong check value is refused', async () => {
    const { agent, session } = await start();
    const rows: Row[] = [...aesRows, [CKA.VALUE, Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex')], on];
    const create = (check: string) =>
      rvOf(agent.create(session, ...rows, [CKA.CHECK_VALUE, Buffer.from(check, 'hex')]));
    expect(await create('c6a13c')).toBe('CKR_ATTRIBUTE_VALUE_INVALID');
    expect(await create('c6a13b')).toBe('CKR_OK');
  });

  test('a data object may have an id, is found by it, and has none that was not given', async () => {
    const { agent, session } = await start();
    const id = Buffer.from('0123456789abcdef');
    const object = await agent.create(session, [CKA.CLASS, CKO.DATA], label('named'), [CKA.ID, id], on);
    const other = await agent.create(session, [CKA.CLASS, CKO.DATA], label('other'), on);
    const { rv, values } = await agent.read(session, object, CKA.ID);
    expect([rv, Buffer.from(values[0] as Uint8Array)]).toEqual([CKR.OK, id]);
    expect((await agent.read(session, other, CKA.ID)).rv).toBe(CKR.ATTRIBUTE_TYPE_INVALID);
    expect(await find(agent, session, [CKA.ID, id])).toEqual([object]);
  });

  test('a data object gives its value back', async () => {
    const { agent, session } = await start();
    const object = await agent.create(
      session,
      [CKA.CLASS, CKO.DATA],
      label('DATA_OBJECT_SUPPORTED_IDEN'),
      [CKA.VALUE, Buffer.from('v')],
      on,
    );
    const { rv, values } = await agent.read(session, object, CKA.VALUE, CKA.APPLICATION);
    expect(rv).toBe(CKR.OK);
    expect(values.map((value) => Buffer.from(value as Uint8Array).toString())).toEqual(['v', '']);
    expect(await find(agent, session, [CKA.VALUE, Buffer.from('v')])).toEqual([object]);
    expect(await find(agent, session, [CKA.VALUE, Buffer.from('w')])).toEqual([]);
  });

  test('a missing label is logged for a key, not for a data object, which databases only look for', async () => {
    const { agent, session } = await start();
    await find(agent, session, [CKA.CLASS, CKO.DATA], label('DATA_OBJECT_SUPPORTED_IDEN'));
    expect(agent.lines.join()).not.toContain('DATA_OBJECT_SUPPORTED_IDEN');
    await find(agent, session, [CKA.CLASS, CKO.SECRET_KEY], label('NOBODYS'));
    await find(agent, session, label('NEITHER'));
    for (const name of ['NOBODYS', 'NEITHER']) expect(agent.lines.join()).toContain(`no object has the label ${name}`);
  });

  test('are found by any attribute, and by none', async () => {
    const { agent, session } = await start();
    const keys = [];
    for (const name of ['a', 'b', 'c', 'd'])
      keys.push(await generate(agent, session, on, label(name), [CKA.ID, Buffer.from(name)]));
    expect(await find(agent, session)).toEqual(keys);
    expect(await find(agent, session, label('b'))).toEqual([keys[1]]);
    expect(await find(agent, session, [CKA.ID, Buffer.from('c')])).toEqual([keys[2]]);
    expect(await find(agent, session, [CKA.CLASS, CKO.SECRET_KEY], label('d'))).toEqual([keys[3]]);
    expect(await find(agent, session, [CKA.CLASS, CKO.DATA])).toEqual([]);
    expect(await find(agent, session, [CKA.TOKEN, !token])).toEqual([]);
    expect(await find(agent, session, [CKA.MODULUS, Buffer.from('x')])).toEqual([]);
  });

  test('are found under what they are called now, and no longer once they are gone', async () => {
    const { agent, session } = await start();
    const id = (text: string): Row => [CKA.ID, Buffer.from(text)];
    const keys = [];
    for (const name of ['same', 'same', 'other'])
      keys.push(await generate(agent, session, on, label(`${name} ${keys.length}`), id(name)));
    expect(await find(agent, session, id('same'), [CKA.KEY_TYPE, CKK.AES])).toEqual(keys.slice(0, 2));
    expect(await find(agent, session, id('same'), label('same 1'))).toEqual([keys[1]]);
    expect(await find(agent, session, id('same'), label('other 2'))).toEqual([]);
    const change = { session, object: keys[1] ?? 0, template: template(id('other')) };
    expect(await agent.rv('C_SetAttributeValue', change)).toBe('CKR_OK');
    expect(await find(agent, session, id('same'))).toEqual([keys[0]]);
    expect([...(await find(agent, session, id('other')))].sort()).toEqual(keys.slice(1));
    await agent.call('C_DestroyObject', { session, object: keys[0] ?? 0 });
    expect(await find(agent, session, id('same'))).toEqual([]);
    await agent.call('C_DestroyObject', { session, object: keys[2] ?? 0 });
    expect(await find(agent, session, id('other'))).toEqual([keys[1]]);
  });

  test('one search at a time', async () => {
    const { agent, session } = await start();
    await agent.call('C_FindObjectsInit', { session, template: [] });
    expect(await agent.rv('C_FindObjectsInit', { session, template: [] })).toBe('CKR_OPERATION_ACTIVE');
    await agent.call('C_FindObjectsFinal', { session });
    expect(await agent.rv('C_FindObjects', { session, objects: 1 })).toBe('CKR_OPERATION_NOT_INITIALIZED');
    expect(await agent.rv('C_FindObjectsFinal', { session })).toBe('CKR_OPERATION_NOT_INITIALIZED');
  });

  test('private ones are invisible without login', async () => {
    const { agent, session } = await start();
    const key = await generate(agent, session, on, [CKA.PRIVATE, true], label('p'));
    await agent.call('C_Logout', { session });
    expect(await find(agent, session, label('p'))).toEqual([]);
    expect(await agent.rv('C_GetObjectSize', { session, object: key })).toBe('CKR_OBJECT_HANDLE_INVALID');
    expect(await agent.rv('C_EncryptInit', { session, mechanism: mech(CKM.AES_ECB), key })).toBe(
      'CKR_KEY_HANDLE_INVALID',
    );
    const rows = template([CKA.CLASS, CKO.DATA], [CKA.PRIVATE, true], on);
    expect(await agent.rv('C_CreateObject', { session, template: rows })).toBe('CKR_USER_NOT_LOGGED_IN');
  });

  test.each(places)(
    'the value of a data object of the %s can be changed, also in a copy, unless the object says no',
    async (_where, token) => {
      const { agent, session } = await start();
      const make = (modifiable: boolean) =>
        agent.create(
          session,
          [CKA.CLASS, CKO.DATA],
          [CKA.TOKEN, token],
          [CKA.VALUE, Buffer.from('old')],
          [CKA.MODIFIABLE, modifiable],
        );
      const readValueOf = async (object: number) =>
        String(Buffer.from((await agent.read(session, object, CKA.VALUE)).values[0] as Uint8Array));
      const object = await make(true);
      for (const text of ['new', '', 'longer than before']) {
        // The frame is used again as soon as the call is answered.
        const frame = Buffer.from(text);
        const change = agent.set(session, object, [CKA.VALUE, frame]);
        frame.fill(0);
        expect([await change, await readValueOf(object)]).toEqual(['CKR_OK', text]);
      }
      const frame = Buffer.from('of the copy');
      const copying = agent.copy(session, object, [CKA.VALUE, frame]);
      frame.fill(0);
      const copy = (await copying) as number;
      expect(await readValueOf(copy)).toBe('of the copy');
      expect(await readValueOf(object)).toBe('longer than before');
      const change = { session, object: await make(false), template: template([CKA.VALUE, Buffer.from('new')]) };
      expect(await agent.rv('C_SetAttributeValue', change)).toBe('CKR_ACTION_PROHIBITED');
      expect(await readValueOf(change.object)).toBe('old');
    },
  );

  test.each(places)('a certificate of the %s has the check value of its value', async (_where, token) => {
    const { agent, session } = await start();
    const value = Buffer.from('300a0c08737562', 'hex');
    const checkValue = createHash('sha1').update(value).digest().subarray(0, 3);
    const make = (...rows: Row[]) =>
      agent.create(
        session,
        [CKA.CLASS, CKO.CERTIFICATE],
        [CKA.CERTIFICATE_TYPE, 0],
        [CKA.SUBJECT, value],
        [CKA.VALUE, value],
        [CKA.TOKEN, token],
        ...rows,
      );
    const given = [[], [[CKA.CHECK_VALUE, checkValue]], [[CKA.CHECK_VALUE, Buffer.alloc(0)]]] as Row[][];
    for (const rows of given) {
      const { values } = await agent.read(session, await make(...rows), CKA.CHECK_VALUE);
      expect(Buffer.from(values[0] as Uint8Array)).toEqual(checkValue);
    }
    expect(await find(agent, session, [CKA.CHECK_VALUE, checkValue])).toHaveLength(3);
    await expect(make([CKA.CHECK_VALUE, Buffer.from('abc')])).rejects.toThrow('CKR_ATTRIBUTE_VALUE_INVALID');
  });

  test('label and permissions can be changed, unless the object says no', async () => {
    const { agent, session } = await start();
    const key = await generate(agent, session, on, label('old'));
    await agent.call('C_SetAttributeValue', {
      session,
      object: key,
      template: template(label('new'), [CKA.ENCRYPT, false], [CKA.ID, Buffer.from('7')]),
    });
    const { values } = await agent.read(session, key, CKA.LABEL, CKA.ENCRYPT, CKA.DECRYPT, CKA.ID);
    expect([String(values[0]), values[1], values[2], String(values[3])]).toEqual(['new', false, true, '7']);
    expect(await agent.rv('C_EncryptInit', { session, mechanism: mech(CKM.AES_ECB), key })).toBe(
      'CKR_KEY_FUNCTION_NOT_PERMITTED',
    );
    const fixed = await generate(agent, session, on, label('fixed'), [CKA.MODIFIABLE, false]);
    expect(await agent.set(session, fixed, label('x'))).toBe('CKR_ACTION_PROHIBITED');
  });

  test('a destroyed one is gone for every function', async () => {
    const { agent, session } = await start();
    const key = await generate(agent, session, on, label('gone'));
    await agent.call('C_DestroyObject', { session, object: key });
    expect(await agent.rv('C_DestroyObject', { session, object: key })).toBe('CKR_OBJECT_HANDLE_INVALID');
    expect(await agent.rv('C_GetObjectSize', { session, object: key })).toBe('CKR_OBJECT_HANDLE_INVALID');
    expect(await agent.rv('C_EncryptInit', { session, mechanism: mech(CKM.AES_ECB), key })).toBe(
      'CKR_KEY_HANDLE_INVALID',
    );
    expect(await find(agent, session, label('gone'))).toEqual([]);
  });

  test('one that may not be destroyed stays', async () => {
    const { agent, session } = await start();
    const key = await generate(agent, session, on, [CKA.DESTROYABLE, false]);
    expect(await agent.rv('C_DestroyObject', { session, object: key })).toBe('CKR_ACTION_PROHIBITED');
    expect(await agent.rv('C_GetObjectSize', { session, object: key })).toBe('CKR_OK');
  });

  test('a copy accepts changes, keeps the history, and is refused when the object forbids it', async () => {
    const { agent, session } = await start();
    const source = await generate(agent, session, on, label('s'), [CKA.SENSITIVE, false], [CKA.EXTRACTABLE, true]);
    const copy = await agent.copy(session, source, label('c'), [CKA.TOKEN, false], [CKA.SENSITIVE, true]);
    const { values } = await agent.read(session, copy, CKA.LABEL, CKA.SENSITIVE, CKA.ALWAYS_SENSITIVE, CKA.CHECK_VALUE);
    const original = await agent.read(session, source, CKA.CHECK_VALUE);
    expect([String(values[0]), values[1], values[2]]).toEqual(['c', true, false]);
    expect(Buffer.from(values[3] as Uint8Array)).toEqual(Buffer.from(original.values[0] as Uint8Array));
    // The copy's key outlives the original.
    await agent.call('C_DestroyObject', { session, object: source });
    expect(await agent.rv('C_EncryptInit', { session, mechanism: mech(CKM.AES_ECB), key: copy })).toBe('CKR_OK');
    const unique = await generate(agent, session, on, [CKA.COPYABLE, false]);
    expect(await agent.rv('C_CopyObject', { session, object: unique, template: [] })).toBe('CKR_ACTION_PROHIBITED');
  });

  test('a sensitive key is accepted by the service and never returned', async () => {
    const { agent, session } = await start();
    const key = await generate(agent, session, on);
    expect(await agent.rv('C_CopyObject', { session, object: key, template: template([CKA.TOKEN, !token]) })).toBe(
      token ? 'CKR_ACTION_PROHIBITED' : 'CKR_OK',
    );
  });
});

describe('where objects belong', () => {
  test('session objects go with the session that made them, and are seen from all', async () => {
    const agent = await startInProcess();
    const [one, other] = [await agent.open(), await agent.open(false)];
    const key = await generate(agent, one);
    expect(await agent.rv('C_GetObjectSize', { session: other, object: key })).toBe('CKR_OK');
    await agent.call('C_CloseSession', { session: one });
    expect(await agent.rv('C_GetObjectSize', { session: other, object: key })).toBe('CKR_OBJECT_HANDLE_INVALID');
  });
  test('a read-only session makes, changes and destroys session objects only', async () => {
    const agent = await startInProcess();
    const [session, writer] = [await agent.open(false), await agent.open()];
    const key = await generate(agent, writer, [CKA.TOKEN, true], label('t'));
    const rows = template([CKA.CLASS, CKO.DATA], [CKA.TOKEN, true]);
    expect(await agent.rv('C_CreateObject', { session, template: rows })).toBe('CKR_SESSION_READ_ONLY');
    expect(await agent.rv('C_DestroyObject', { session, object: key })).toBe('CKR_SESSION_READ_ONLY');
    expect(await agent.set(session, key, label('x'))).toBe('CKR_SESSION_READ_ONLY');
    expect(await agent.rv('C_CopyObject', { session, object: key, template: [] })).toBe('CKR_SESSION_READ_ONLY');
    expect(await generate(agent, session)).toBeGreaterThanOrEqual(2 ** 31);
  });
  const on: Row = [CKA.TOKEN, true];
  const oracle = label(`ORACLE.TDE.HSM.MK.06${'5'.repeat(32)}`);
  test.each<[string, Row[]]>([
    ['is not modifiable', [label('one'), [CKA.MODIFIABLE, false]]],
    ['has a label of the database', [oracle]],
  ])(
    'the label of a master key, which %s, is taken: a second key is an error, never an overwrite',
    async (_what, master) => {
      const { agent, session } = await startSession();
      const key = await generate(agent, session, on, ...master);
      const [name] = master as [Row];
      const refused = { rv: 'CKR_TEMPLATE_INCONSISTENT' };
      await expect(generate(agent, session, on, ...master)).rejects.toMatchObject(refused);
      await expect(generate(agent, session, on, name)).rejects.toMatchObject(refused);
      const pair = () => agent.pair(session, CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, p256], on, name], [on, name]);
      await expect(pair()).rejects.toMatchObject(refused);
      const other = await generate(agent, session, on, label('other'));
      expect(await agent.set(session, other, name)).toBe(refused.rv);
      expect(await find(agent, session, name)).toEqual([key]);
      // Nor does a master key take a label that others have.
      const taken = await generate(agent, session, on, label('taken'));
      await expect(generate(agent, session, on, label('taken'), [CKA.MODIFIABLE, false])).rejects.toMatchObject(
        refused,
      );
      expect(await find(agent, session, label('taken'))).toEqual([taken]);
      await agent.call('C_DestroyObject', { session, object: key });
      expect(await generate(agent, session, on, ...master)).toBeGreaterThan(key);
    },
  );
  test.each(['ORACLE.TDE.HSM.MK.06', 'ORACLE.TSE.HSM.MK.07'])(
    'a master key (%s) decrypts, whatever else its template names',
    async (form) => {
      const call = await startSession();
      const named = label(`${form}${'7'.repeat(32)}`);
      for (const where of [[on], []])
        for (const rows of [[], [[CKA.WRAP, true]], [[CKA.UNWRAP, true]], [[CKA.ENCRYPT, true]]] as Row[][]) {
          const key = await generate(call.agent, call.session, ...where, named, [CKA.MODIFIABLE, false], ...rows);
          expect(await call.read(key, CKA.DECRYPT, CKA.TOKEN)).toEqual([true, true]);
          expect(await call.decrypt(cbcPad, key, await call.encrypt(cbcPad, key, Buffer.from('data')))).toEqual(
            Buffer.from('data'),
          );
          await call.agent.call('C_DestroyObject', { session: call.session, object: key });
        }
    },
  );
  test('a master key that could not decrypt is refused, and so is a change into one', async () => {
    const { agent, session } = await startSession();
    const refused = 'CKR_TEMPLATE_INCONSISTENT';
    const closed: Row = [CKA.DECRYPT, false];
    for (const where of [[on], []])
      expect(await rvOf(generate(agent, session, ...where, oracle, closed))).toBe(refused);
    const value: Row = [CKA.VALUE, Buffer.alloc(32, 1)];
    expect(await rvOf(agent.create(session, ...aesRows, on, value, oracle, closed))).toBe(refused);
    const key = await generate(agent, session, on, oracle);
    expect(await agent.set(session, key, closed)).toBe(refused);
    const wrapper = await generate(agent, session, on, label('wrapper'), closed, [CKA.WRAP, true]);
    expect(await agent.set(session, wrapper, oracle)).toBe(refused);
    await agent.call('C_DestroyObject', { session, object: key });
    expect(await agent.set(session, wrapper, oracle, [CKA.DECRYPT, true])).toBe('CKR_OK');
  });
  describe('a master key and its metadata are on the token', () => {
    const away: Row = [CKA.TOKEN, false];
    const refused = 'CKR_TEMPLATE_INCONSISTENT';
    const metadata = label(`ORACLE.SECURITY.KM.ENCRYPTION.${'35'.repeat(34)}`);
    const data: Row[] = [
      [CKA.CLASS, CKO.DATA],
      [CKA.VALUE, Buffer.from('tag')],
    ];
    const key: Row[] = [...aesRows, [CKA.VALUE, Buffer.alloc(32, 1)], [CKA.SENSITIVE, false], [CKA.EXTRACTABLE, true]];
    test.each<[string, Row[], Row]>([
      ['a master key', key, oracle],
      ['a master key of a tablespace', key, label(`ORACLE.TSE.HSM.MK.07${'5'.repeat(32)}`)],
      ['its metadata', data, metadata],
    ])('%s: created, copied, or renamed', async (_what, rows, name) => {
      const { agent, session, read } = await startSession();
      expect(await rvOf(agent.create(session, ...rows, name, away))).toBe(refused);
      const made = await agent.create(session, ...rows, name);
      expect(await read(made, CKA.TOKEN)).toEqual([true]);
      const copy = (object: number, ...rows: Row[]) =>
        agent.call('C_CopyObject', { session, object, template: template(...rows) });
      expect(await rvOf(copy(made, away))).toBe(refused);
      await agent.call('C_DestroyObject', { session, object: made });
      const other = await agent.create(session, ...rows, label('other'));
      expect(await read(other, CKA.TOKEN)).toEqual([false]);
      expect(await agent.set(session, other, name)).toBe(refused);
      expect(await rvOf(copy(other, name))).toBe(refused);
      expect(await rvOf(copy(other, name, on))).toBe('CKR_OK');
    });
    test('a label of this form means nothing for other objects, and needs its whole form', async () => {
      const { agent, session, read } = await startSession();
      for (const [rows, name] of [
        [data, oracle],
        [key, metadata],
        [data, label('ORACLE.SECURITY.KM.ENCRYPTION')],
        [data, label('oracle.security.km.encryption.35')],
        [data, label('DATA_OBJECT_SUPPORTED_IDEN')],
      ] as const) {
        expect(await read(await agent.create(session, ...rows, name), CKA.TOKEN)).toEqual([false]);
        expect(await rvOf(agent.create(session, ...rows, name, away))).toBe('CKR_OK');
      }
    });
  });
  test('a master key wraps nothing sensitive: it would decrypt what it wrapped', async () => {
    const call = await startSession();
    const key = await generate(call.agent, call.session, on, oracle, [CKA.WRAP, true], [CKA.UNWRAP, true]);
    const secretKey = await generate(call.agent, call.session, on, label('secret'), [CKA.EXTRACTABLE, true]);
    await expect(call.wrap(keyWrap, key, secretKey)).rejects.toMatchObject({ rv: 'CKR_KEY_NOT_WRAPPABLE' });
  });
  test('ordinary keys and pairs share labels', async () => {
    const { agent, session } = await startSession();
    const keys = [];
    for (let i = 0; i < 3; i++) keys.push(await generate(agent, session, on, label('rotated')));
    for (let i = 0; i < 2; i++) {
      const rows: Row[] = [on, label('rotated')];
      const made = await agent.pair(session, CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, p256], ...rows], rows);
      keys.push(made.publicKey, made.privateKey);
    }
    expect(new Set(await find(agent, session, label('rotated')))).toEqual(new Set(keys));
  });
  test("what the service refuses has Cryptoki's name, and one line with the call's id", async () => {
    const { agent, session } = await startSession();
    const key = await generate(agent, session, [CKA.TOKEN, true]);
    for (const [code, rv] of [
      ['unavailable', 'CKR_DEVICE_ERROR'],
      ['dependency-timeout', 'CKR_DEVICE_ERROR'],
      ['forbidden', 'CKR_ACTION_PROHIBITED'],
      ['unauthenticated', 'CKR_ACTION_PROHIBITED'],
      ['not-found', 'CKR_OBJECT_HANDLE_INVALID'],
      ['key-destroyed', 'CKR_OBJECT_HANDLE_INVALID'],
    ] as const) {
      agent.service.failWith(code);
      expect(await agent.rv('C_GetObjectSize', { session, object: key })).toBe(rv);
    }
  });
});
