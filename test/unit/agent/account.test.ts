// What the processes of one user may have in the agent together, and that it is each user's own.
import { describe, expect, test } from 'vitest';
import { Accounts, defaultLimits, parseLimits } from '../../../provider/agent/sessions/user-limits.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { type InProcessAgent, mech, RvError, room, startInProcess } from '../../support/in-process-agent.ts';
import { aesRows, template } from '../../support/template.ts';

const limits = { connections: 2, sessions: 6, objects: 5, memory: 100_000 };
const keyBytes = 64 * 4;

const users = async (...uids: number[]): Promise<InProcessAgent[]> => {
  const accounts = new Accounts(limits, keyBytes);
  return Promise.all(uids.map((uid) => startInProcess({ account: accounts.of(uid) })));
};
const aesKey = template(...aesRows, [CKA.VALUE_LEN, 32]);
const generate = (agent: InProcessAgent, session: number): Promise<number> =>
  agent.call('C_GenerateKey', { session, mechanism: mech(CKM.AES_KEY_GEN), template: aesKey });
const data = (bytes: number) => template([CKA.CLASS, CKO.DATA], [CKA.VALUE, Buffer.alloc(bytes)]);

describe('a user who reaches a limit', () => {
  test('gets no further connection, and no other user notices', async () => {
    const accounts = new Accounts(limits, keyBytes);
    const [first] = await Promise.all([1, 1, 2, 2].map((uid) => startInProcess({ account: accounts.of(uid) })));
    await expect(startInProcess({ account: accounts.of(1) })).rejects.toThrow('CKR_DEVICE_MEMORY');
    await first?.call('C_Finalize', {});
    await startInProcess({ account: accounts.of(1) });
  });

  test('gets no further session in any of its processes', async () => {
    const [one, same, other] = (await users(1, 1, 2)) as [InProcessAgent, InProcessAgent, InProcessAgent];
    const sessions = [];
    for (let n = 0; n < 4; n += 1) sessions.push(await one.open());
    expect(await same.rv('C_OpenSession', { slot: 0, flags: 4 })).toBe('CKR_DEVICE_MEMORY');
    await other.open();
    await one.call('C_CloseSession', { session: sessions[0] as number });
    await same.open();
    await one.call('C_Finalize', {});
    for (let n = 0; n < 4; n += 1) await same.open();
  });

  test('gets no further key, until its keys are destroyed', async () => {
    const [one, other] = (await users(1, 2)) as [InProcessAgent, InProcessAgent];
    const session = await one.open();
    const keys = [];
    for (let n = 0; n < keyBytes / 64; n += 1) keys.push(await generate(one, session));
    await expect(generate(one, session)).rejects.toThrow('CKR_DEVICE_MEMORY');
    await generate(other, await other.open());
    await one.call('C_DestroyObject', { session, object: keys[0] as number });
    await generate(one, session);
    await one.call('C_CloseSession', { session });
    const next = await one.open();
    for (let n = 0; n < keyBytes / 64; n += 1) await generate(one, next);
  });

  test('gets no further session object, by number and by bytes', async () => {
    const [one, other] = (await users(1, 2)) as [InProcessAgent, InProcessAgent];
    const session = await one.open();
    const create = (bytes: number) => one.call('C_CreateObject', { session, template: data(bytes) });
    const large = await create(90_000);
    await expect(create(10_000)).rejects.toThrow('CKR_DEVICE_MEMORY');
    await other.call('C_CreateObject', { session: await other.open(), template: data(90_000) });
    await one.call('C_DestroyObject', { session, object: large });
    for (let n = 0; n < limits.objects; n += 1) await create(10);
    await expect(create(10)).rejects.toThrow('CKR_DEVICE_MEMORY');
  });

  test('gets no further unfinished decryption; those that end give their memory back', async () => {
    const [one, other] = (await users(1, 2)) as [InProcessAgent, InProcessAgent];
    const begin = async (agent: InProcessAgent): Promise<number> => {
      const session = await agent.open();
      const parameter = {
        kind: 'gcm',
        iv: Buffer.alloc(12, 1),
        ivBits: 96,
        aad: Buffer.alloc(0),
        tagBits: 128,
      } as const;
      const key = await generate(agent, session);
      await agent.call('C_DecryptInit', { session, mechanism: mech(CKM.AES_GCM, parameter), key });
      return session;
    };
    const part = (agent: InProcessAgent, session: number) =>
      agent.rv('C_DecryptUpdate', { session, encryptedPart: Buffer.alloc(30_000), part: room(1 << 16) });
    const first = await begin(one);
    const second = await begin(one);
    const answers = [];
    for (let n = 0; n < 4; n += 1) answers.push(await part(one, first), await part(one, second));
    expect(answers.slice(0, 4)).toEqual(['CKR_OK', 'CKR_OK', 'CKR_OK', 'CKR_OK']);
    // The refusal ends the operation.
    expect(answers.slice(4, 6)).toEqual(['CKR_DEVICE_MEMORY', 'CKR_OK']);
    expect(answers).toContain('CKR_OPERATION_NOT_INITIALIZED');
    const theirs = await begin(other);
    for (let n = 0; n < 3; n += 1) expect(await part(other, theirs)).toBe('CKR_OK');
    await one.call('C_CloseAllSessions', { slot: 0 });
    const again = await begin(one);
    for (let n = 0; n < 3; n += 1) expect(await part(one, again)).toBe('CKR_OK');
  });
});

describe('memory that a user is charged for', () => {
  const big = 60_000;
  /** `take` works twice, and again for another user, or when all is released. */
  const twice = async (take: (agent: InProcessAgent, session: number) => Promise<string>): Promise<void> => {
    const accounts = new Accounts({ ...limits, objects: 100 }, keyBytes);
    const one = await startInProcess({ account: accounts.of(1) });
    const other = await startInProcess({ account: accounts.of(2) });
    const attempt = (session: number) =>
      take(one, session).catch((error: unknown) => {
        if (error instanceof RvError) return error.rv;
        throw error;
      });
    const codes = [];
    for (let n = 0; n < 3; n += 1) codes.push(await attempt(await one.open()));
    expect(codes).toEqual(['CKR_OK', 'CKR_OK', 'CKR_DEVICE_MEMORY']);
    expect(await take(other, await other.open())).toBe('CKR_OK');
    await one.call('C_CloseAllSessions', { slot: 0 });
    expect(await take(one, await one.open())).toBe('CKR_OK');
  };

  test.each([
    ['mechanisms', CKA.ALLOWED_MECHANISMS, Array.from({ length: 5_000 }, () => CKM.AES_GCM)],
    ['attributes', CKA.WRAP_TEMPLATE, template(...Array.from({ length: 300 }, () => [CKA.SIGN, true] as const))],
  ] as const)('lists of %s in objects', (_, type, list) =>
    twice((agent, session) => {
      const rows = template(...aesRows, [CKA.VALUE_LEN, 32], [type, list]);
      const mechanism = mech(CKM.AES_KEY_GEN);
      return agent.rv('C_GenerateKey', { session, mechanism, template: rows });
    }),
  );

  test('the additional data of Inits', () =>
    twice(async (agent, session) => {
      const key = await generate(agent, session);
      const parameter = {
        kind: 'gcm',
        iv: Buffer.alloc(12, session),
        ivBits: 96,
        aad: Buffer.alloc(big),
        tagBits: 128,
      } as const;
      return agent.rv('C_EncryptInit', { session, mechanism: mech(CKM.AES_GCM, parameter), key });
    }));

  test('the templates of searches', () =>
    twice((agent, session) => {
      const rows = template([CKA.TOKEN, false], [CKA.LABEL, Buffer.alloc(big)]);
      return agent.rv('C_FindObjectsInit', { session, template: rows });
    }));

  test('the parts of a message that is signed as a whole', () =>
    twice(async (agent, session) => {
      const pair = (await agent.pair(
        session,
        CKM.EC_EDWARDS_KEY_PAIR_GEN,
        [[CKA.EC_PARAMS, Buffer.from('06032b6570', 'hex')]],
        [],
      )) as { readonly privateKey: number };
      await agent.call('C_SignInit', {
        session,
        mechanism: mech(CKM.EDDSA),
        key: pair.privateKey,
      });
      return agent.rv('C_SignUpdate', { session, part: Buffer.alloc(big) });
    }));

  test('what is remembered of keys that have wrapped', async () => {
    const account = new Accounts({ ...limits, memory: 20_000 }, 1 << 20).of(1);
    const agent = await startInProcess({ account });
    const session = await agent.open();
    const rows = template(...aesRows, [CKA.EXTRACTABLE, true]);
    const create = async (value: Buffer): Promise<number> =>
      (await agent.call('C_CreateObject', {
        session,
        template: [...rows, ...template([CKA.VALUE, value], [CKA.WRAP, true], [CKA.DECRYPT, false])],
      })) as number;
    const key = await create(Buffer.alloc(32, 1));
    let code = 'CKR_OK';
    let rounds = 0;
    for (; code === 'CKR_OK' && rounds < 1_000; rounds += 1) {
      const wrappingKey = await create(Buffer.alloc(32, `${rounds}.`));
      const mechanism = mech(CKM.AES_KEY_WRAP);
      code = await agent.rv('C_WrapKey', { session, mechanism, wrappingKey, key, wrappedKey: room(64) });
      await agent.call('C_DestroyObject', { session, object: wrappingKey });
    }
    expect(code).toBe('CKR_DEVICE_MEMORY');
    expect(rounds).toBeGreaterThan(20);
    await agent.call('C_Finalize', {});
    expect(() => account.take('memory', 20_000)).not.toThrow();
  });
});

describe('the limits of the agent', () => {
  test('are read from one line', () => {
    expect(parseLimits('')).toEqual(defaultLimits);
    expect(parseLimits('sessions=7,memory=16')).toEqual({ ...defaultLimits, sessions: 7, memory: 16 << 20 });
  });

  test.each(['session=7', 'sessions=0', 'sessions', 'memory=4096', 'memory=1', 'sessions=-1', 'constructor=1'])(
    'that say "%s" are refused with the reason',
    (text) => {
      expect(() => parseLimits(text)).toThrow(/^user limits: /);
    },
  );
});
