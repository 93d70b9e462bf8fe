// The heartbeat of a database with many keys, which is an Init of each and nothing else (decision
// 34): one request proves all of them, and what was disabled, destroyed or revoked is refused when
// an answer no longer counts. And the values of data objects. The test controls the time.
import { describe, expect, test } from 'vitest';
import { rememberingDoor } from '../../../provider/agent/service/remembering-door.ts';
import { ServiceAnswerCache } from '../../../provider/agent/service/service-answer-cache.ts';
import type { RouteName, ServiceAnswer, ServiceRequest } from '../../../provider/agent/service/service-door.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { packHeldAnswers, unpackHeld } from '../../../server/contract/tde-held.ts';
import { type InProcessAgent, mech, startInProcess } from '../../support/in-process-agent.ts';
import { CKO } from '../../support/names.ts';
import { type Row, template } from '../../support/template.ts';

const countsMs = 500;
const cbc = mech(CKM.AES_CBC, { kind: 'bytes', bytes: Buffer.alloc(16) });
const label = (text: string): Row => [CKA.LABEL, Buffer.from(text)];
const onToken: Row = [CKA.TOKEN, true];

const start = async (keys: number) => {
  let time = 1000;
  const agent = await startInProcess({ cache: new ServiceAnswerCache(countsMs, () => time) });
  const session = await agent.open();
  const made: number[] = [];
  for (let at = 0; at < keys; at++)
    made.push(await agent.generate(session, CKM.AES_KEY_GEN, [CKA.VALUE_LEN, 32], onToken, label(`key ${at}`)));
  const init = async (key: number): Promise<string> => {
    const rv = await agent.rv('C_EncryptInit', { session, mechanism: cbc, key });
    if (rv === 'CKR_OK') await agent.call('C_EncryptInit', { session, mechanism: null, key });
    return rv;
  };
  const beat = async (): Promise<readonly string[]> => {
    const all: string[] = [];
    for (const key of made) all.push(await init(key));
    return all;
  };
  return {
    agent,
    session,
    keys: made,
    beat,
    init,
    pass: (ms: number): void => {
      time += ms;
    },
  };
};
/** The requests that this takes, by route. */
const requests = async ({ service: { asked } }: InProcessAgent, work: () => Promise<unknown>) => {
  const before = new Map(asked);
  await work();
  return Object.fromEntries(
    [...asked]
      .map(([route, count]) => [route, count - (before.get(route) ?? 0)] as const)
      .filter(([, count]) => count > 0),
  );
};
const ok = 'CKR_OK';
const disabled = 'CKR_KEY_FUNCTION_NOT_PERMITTED';

describe('a heartbeat', () => {
  test('is one request for all keys once each was asked for, and none while the answer counts', async () => {
    const { agent, beat, pass } = await start(20);
    await beat();
    pass(3000);
    expect(await requests(agent, beat)).toEqual({ refresh: 1 });
    expect(await requests(agent, beat)).toEqual({});
    pass(3000);
    expect(await requests(agent, async () => expect(new Set(await beat())).toEqual(new Set([ok])))).toEqual({
      refresh: 1,
    });
  });
  test('refuses a key that was disabled or destroyed as soon as the answer no longer counts, and no other', async () => {
    const { agent, beat, pass } = await start(4);
    await beat();
    await agent.service.setState('key 1', 'disabled');
    await agent.service.setState('key 2', 'destroyed');
    pass(countsMs);
    expect(await beat()).toEqual([ok, disabled, 'CKR_KEY_HANDLE_INVALID', ok]);
    pass(3000);
    expect(await beat()).toEqual([ok, disabled, 'CKR_KEY_HANDLE_INVALID', ok]);
  });
  test('never spares the use: a disabled key encrypts nothing, whatever an Init has said', async () => {
    const { agent, session, keys, beat } = await start(2);
    await beat();
    const [key = 0] = keys;
    await agent.call('C_EncryptInit', { session, mechanism: cbc, key });
    await agent.service.setState('key 0', 'disabled');
    const encryptedData = { capacity: 64, bytes: Buffer.alloc(64) } as never;
    expect(await agent.rv('C_Encrypt', { session, data: Buffer.alloc(16), encryptedData })).toBe(disabled);
  });
  test('fails while the service is away, each Init as it would alone, and continues afterwards', async () => {
    const { agent, beat, pass } = await start(3);
    await beat();
    agent.service.failWith('unavailable');
    pass(countsMs);
    expect(await beat()).toEqual(Array(3).fill('CKR_DEVICE_ERROR'));
    agent.service.failWith(null);
    expect(await requests(agent, async () => expect(await beat()).toEqual([ok, ok, ok]))).toEqual({ refresh: 1 });
  });
  test('is refused when the credential was removed', async () => {
    const { agent, beat, pass } = await start(3);
    await beat();
    await agent.service.revoke();
    pass(countsMs);
    expect(await beat()).toEqual(Array(3).fill('CKR_ACTION_PROHIBITED'));
  });
  test('asks for each key at a service of an earlier version', async () => {
    const { agent, beat, pass } = await start(3);
    await beat();
    agent.service.failWith('not-found', 'refresh');
    pass(3000);
    expect(await requests(agent, async () => expect(await beat()).toEqual([ok, ok, ok]))).toEqual({
      refresh: 1,
      checkUse: 3,
    });
    pass(3000);
    expect(await requests(agent, beat)).toEqual({ checkUse: 3 });
  });
  test('that many processes have at once is one request too', async () => {
    const { agent, session, keys, beat, pass } = await start(5);
    await beat();
    pass(3000);
    const sessions = await Promise.all(keys.map(() => agent.open()));
    const all = () =>
      Promise.all(
        [session, ...sessions].map((each, at) =>
          agent.rv('C_EncryptInit', { session: each, mechanism: cbc, key: keys[at % keys.length] ?? 0 }),
        ),
      );
    expect(await requests(agent, all)).toEqual({ refresh: 1 });
  });
});

describe('a service that needs longer for all keys than its answer counts', () => {
  /** A service that needs time for each request, and for each key in it. */
  const slow = (firstMs: number, keyMs: number) => {
    let requestMs = firstMs;
    let time = 1000;
    const said = { requests: 0, keys: 0 };
    const cache = new ServiceAnswerCache(countsMs, () => time);
    const door = rememberingDoor(cache, async <R extends RouteName>({ route, raw }: ServiceRequest<R>) => {
      const held = route === 'refresh' ? unpackHeld(Buffer.from(raw as Uint8Array)) : [null];
      said.requests += 1;
      said.keys += held.length;
      time += requestMs + held.length * keyMs;
      const answers = held.map((each) => ({ uses: each?.uses ?? [], same: true }));
      const packed = route === 'refresh' ? packHeldAnswers(answers) : new Uint8Array(0);
      return { answer: {}, raw: packed, epoch: 7 } as ServiceAnswer<R>;
    });
    const keys = Array.from({ length: 300 }, (_, at) => at + 1);
    const beat = async (): Promise<typeof said> => {
      const before = { ...said };
      for (const handle of keys)
        await door(
          { route: 'checkUse', handle, head: { usage: 'encrypt' }, raw: null },
          { requestId: '1', instance: '' },
        );
      time += 3000;
      return { requests: said.requests - before.requests, keys: said.keys - before.keys };
    };
    return {
      beat,
      keys,
      slowDown: (ms: number): void => {
        requestMs = ms;
      },
    };
  };

  test.each([
    ['each key takes long', 1, 10],
    ['each request takes longer than an answer counts', 600, 0],
  ])('is asked for about as many keys as there are, when %s', async (_, requestMs, keyMs) => {
    const { beat, keys } = slow(requestMs, keyMs);
    await beat();
    for (let round = 0; round < 4; round++) await beat();
    const { keys: asked, requests: sent } = await beat();
    expect(asked).toBeLessThanOrEqual(3 * keys.length);
    expect(sent).toBeLessThanOrEqual(keys.length);
  });
  test('and one that is fast again is asked once for all', async () => {
    const { beat } = slow(1, 0);
    await beat();
    expect(await beat()).toEqual({ requests: 1, keys: 300 });
  });
  test('takes long and is asked once for all, if the answer then counts long enough for a round', async () => {
    const { beat, slowDown } = slow(1, 0);
    await beat();
    slowDown(400);
    for (let round = 0; round < 4; round++) expect(await beat()).toEqual({ requests: 1, keys: 300 });
  });
});

describe('values of data objects', () => {
  const value = async (agent: InProcessAgent, session: number, object: number) => {
    const { values } = await agent.read(session, object, CKA.VALUE);
    return Buffer.from(values[0] as Uint8Array).toString();
  };
  const withObjects = async (count: number) => {
    const started = await start(0);
    const { agent, session } = started;
    const objects: number[] = [];
    for (let at = 0; at < count; at++)
      objects.push(
        await agent.create(
          session,
          ...([
            [CKA.CLASS, CKO.DATA],
            onToken,
            [CKA.PRIVATE, true],
            label(`data ${at}`),
            [CKA.VALUE, Buffer.from(`value ${at}`)],
          ] as Row[]),
        ),
      );
    await agent.call('C_FindObjectsInit', { session, template: template([CKA.CLASS, CKO.DATA]) });
    await agent.call('C_FindObjects', { session, objects: 2 * count });
    await agent.call('C_FindObjectsFinal', { session });
    return { ...started, objects, all: () => Promise.all(objects.map((each) => value(agent, session, each))) };
  };

  test('are read with one request, and then not again while their objects do not change', async () => {
    const { agent, session, objects, pass } = await withObjects(30);
    const inTurn = async (): Promise<readonly string[]> => {
      const all: string[] = [];
      for (const each of objects) all.push(await value(agent, session, each));
      return all;
    };
    const right = objects.map((_, at) => `value ${at}`);
    expect(await requests(agent, async () => expect(await inTurn()).toEqual(right))).toEqual({ readValues: 1 });
    expect(await requests(agent, inTurn)).toEqual({});
    pass(countsMs);
    expect(await requests(agent, async () => expect(await inTurn()).toEqual(right))).toEqual({ refresh: 1 });
  });
  test('that another process changed or destroyed are read again', async () => {
    const { agent, session, objects, pass } = await withObjects(3);
    const [first = 0, second = 0, third = 0] = objects;
    for (const each of objects) await value(agent, session, each);
    // Through the service, and so past what this agent remembers.
    const caller = { requestId: 'call-2', instance: '' };
    const raw = Uint8Array.from(Buffer.from('changed'));
    await agent.service.call({ route: 'updateObject', handle: first, head: { replacesValue: true }, raw }, caller);
    await agent.service.call({ route: 'destroyObject', handle: second, head: {}, raw: null }, caller);
    pass(countsMs);
    expect(await value(agent, session, first)).toBe('changed');
    expect(await agent.rv('C_GetObjectSize', { session, object: second })).toBe('CKR_OBJECT_HANDLE_INVALID');
    expect(await value(agent, session, third)).toBe('value 2');
  });
  test('of private objects are shown only to who has logged in', async () => {
    const { agent, session, objects, pass } = await withObjects(2);
    for (const each of objects) await value(agent, session, each);
    await agent.call('C_Logout', { session });
    const [object = 0] = objects;
    const read = { session, object, template: [{ type: CKA.VALUE, capacity: 64 }] } as never;
    expect(await agent.rv('C_GetAttributeValue', read)).toBe('CKR_OBJECT_HANDLE_INVALID');
    pass(countsMs);
    expect(await agent.rv('C_GetAttributeValue', read)).toBe('CKR_OBJECT_HANDLE_INVALID');
  });
});
