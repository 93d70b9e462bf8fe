// Who sees and changes what: PKCS#11 2.40, sections 2.4 (users, sessions and objects) and 5.6, for
// every function that names an object or makes one.
import { beforeAll, describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKU } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { type InProcessAgent, room, rvOf, startInProcess } from '../../support/in-process-agent.ts';
import { CKK, CKO } from '../../support/names.ts';
import { aesRows, hkdfWith, keyWrap, mech, p256, type Row } from '../../support/session-calls.ts';
import { template } from '../../support/template.ts';

const pin = Buffer.from('any');
const value = Buffer.alloc(32, 7);
const ecb = mech(CKM.AES_ECB);
const rsa = mech(CKM.RSA_PKCS);
const hkdf = hkdfWith();
const secret: Row[] = [...aesRows, [CKA.VALUE, value]];

/** A call that names the object, and its return value if there is none. */
const uses: readonly (readonly [
  string,
  (agent: InProcessAgent, session: number, object: number) => Promise<string>,
  string,
])[] = [
  [
    'C_GetAttributeValue',
    (agent, session, object) =>
      agent.rv('C_GetAttributeValue', { session, object, template: [{ type: CKA.LABEL, capacity: 99 }] }),
    'CKR_OBJECT_HANDLE_INVALID',
  ],
  [
    'C_SetAttributeValue',
    (agent, session, object) => agent.set(session, object, [CKA.ID, Buffer.of(1)]),
    'CKR_OBJECT_HANDLE_INVALID',
  ],
  [
    'C_GetObjectSize',
    (agent, session, object) => agent.rv('C_GetObjectSize', { session, object }),
    'CKR_OBJECT_HANDLE_INVALID',
  ],
  [
    'C_CopyObject',
    (agent, session, object) => agent.rv('C_CopyObject', { session, object, template: template() }),
    'CKR_OBJECT_HANDLE_INVALID',
  ],
  ...(
    [
      ['C_EncryptInit', ecb],
      ['C_DecryptInit', ecb],
      ['C_SignInit', mech(CKM.AES_CMAC)],
      ['C_VerifyInit', mech(CKM.AES_CMAC)],
      ['C_SignRecoverInit', rsa],
      ['C_VerifyRecoverInit', rsa],
      ['C_MessageEncryptInit', mech(CKM.AES_GCM)],
      ['C_MessageDecryptInit', mech(CKM.AES_GCM)],
    ] as const
  ).map(
    ([name, mechanism]) =>
      [
        name,
        (agent: InProcessAgent, session: number, key: number) => agent.rv(name, { session, mechanism, key }),
        'CKR_KEY_HANDLE_INVALID',
      ] as const,
  ),
  [
    'C_WrapKey, the wrapping key',
    (agent, session, wrappingKey) =>
      agent.rv('C_WrapKey', { session, mechanism: keyWrap, wrappingKey, key: wrappingKey, wrappedKey: room(99) }),
    'CKR_WRAPPING_KEY_HANDLE_INVALID',
  ],
  [
    'C_UnwrapKey',
    (agent, session, unwrappingKey) =>
      rvOf(agent.unwrap(session, keyWrap, unwrappingKey, Buffer.alloc(24), ...aesRows)),
    'CKR_UNWRAPPING_KEY_HANDLE_INVALID',
  ],
  [
    'C_DeriveKey',
    (agent, session, baseKey) =>
      rvOf(
        agent.derive(
          session,
          hkdf,
          baseKey,
          [CKA.CLASS, CKO.SECRET_KEY],
          [CKA.KEY_TYPE, CKK.GENERIC_SECRET],
          [CKA.VALUE_LEN, 16],
        ),
      ),
    'CKR_KEY_HANDLE_INVALID',
  ],
  [
    'C_DestroyObject',
    (agent, session, object) => agent.rv('C_DestroyObject', { session, object }),
    'CKR_OBJECT_HANDLE_INVALID',
  ],
];

describe('a private object of the token', () => {
  let agent: InProcessAgent;
  let session: number;
  let other: number;
  let key: number;
  beforeAll(async () => {
    agent = await startInProcess();
    [session, other] = [await agent.open(), await agent.open(false)];
    key = await agent.create(
      session,
      ...secret,
      [CKA.TOKEN, true],
      [CKA.PRIVATE, true],
      [CKA.LABEL, Buffer.from('mine')],
    );
  });
  const find = async (): Promise<readonly number[]> => {
    await agent.call('C_FindObjectsInit', { session, template: template([CKA.LABEL, Buffer.from('mine')]) });
    const found = await agent.call('C_FindObjects', { session, objects: 9 });
    await agent.call('C_FindObjectsFinal', { session });
    return found;
  };

  test.each(uses)('%s does not know it without login, and does with it', async (name, use, rv) => {
    await agent.call('C_Logout', { session: other });
    expect(await use(agent, session, key)).toBe(rv);
    expect(await find()).toEqual([]);
    await agent.call('C_Login', { session: other, userType: CKU.USER, pin });
    expect(await find()).toEqual([key]);
    if (name !== 'C_DestroyObject') expect(await use(agent, session, key)).not.toBe(rv);
  });

  test('its handle is the same in every session, and after the next login', async () => {
    const before = await find();
    await agent.call('C_CloseAllSessions', { slot: 0 });
    session = await agent.open();
    expect(await find()).toEqual([]);
    await agent.call('C_LoginUser', { session, userType: CKU.USER, pin, username: Buffer.from('whoever') });
    expect(await find()).toEqual(before);
  });
});

/** A call that creates an object from a template. */
const makers: readonly (readonly [
  string,
  (agent: InProcessAgent, session: number, source: number, ...rows: Row[]) => Promise<string>,
])[] = [
  [
    'C_CreateObject',
    (agent, session, _source, ...rows) =>
      agent.rv('C_CreateObject', { session, template: template(...secret, ...rows) }),
  ],
  [
    'C_CopyObject',
    (agent, session, source, ...rows) =>
      agent.rv('C_CopyObject', { session, object: source, template: template(...rows) }),
  ],
  [
    'C_GenerateKey',
    (agent, session, _source, ...rows) => rvOf(agent.generate(session, CKM.AES_KEY_GEN, [CKA.VALUE_LEN, 16], ...rows)),
  ],
  [
    'C_GenerateKeyPair, the private half',
    (agent, session, _source, ...rows) => rvOf(agent.pair(session, CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, p256]], rows)),
  ],
  [
    'C_GenerateKeyPair, the public half',
    (agent, session, _source, ...rows) =>
      rvOf(agent.pair(session, CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, p256], ...rows], [[CKA.PRIVATE, false]])),
  ],
  [
    'C_UnwrapKey',
    (agent, session, source, ...rows) =>
      rvOf(agent.unwrap(session, keyWrap, source, Buffer.alloc(24), ...aesRows, ...rows)),
  ],
];

describe('making objects', () => {
  let agent: InProcessAgent;
  let session: number;
  let reading: number;
  let source: number;
  beforeAll(async () => {
    agent = await startInProcess({ login: false });
    [session, reading] = [await agent.open(), await agent.open(false)];
    source = await agent.create(
      session,
      ...secret,
      [CKA.PRIVATE, false],
      [CKA.SENSITIVE, false],
      [CKA.EXTRACTABLE, true],
    );
  });

  test.each(makers)('%s makes nothing private without login', async (_name, make) => {
    for (const token of [false, true]) {
      expect(await make(agent, session, source, [CKA.PRIVATE, true], [CKA.TOKEN, token])).toBe(
        'CKR_USER_NOT_LOGGED_IN',
      );
    }
  });
  test.each(makers)('%s makes nothing on the token in a read-only session', async (_name, make) => {
    expect(await make(agent, reading, source, [CKA.PRIVATE, false], [CKA.TOKEN, true])).toBe('CKR_SESSION_READ_ONLY');
  });
  test.each(makers)('%s makes public objects of the session for everybody', async (name, make) => {
    const rv = await make(agent, reading, source, [CKA.PRIVATE, false], [CKA.TOKEN, false]);
    // What is unwrapped here is nothing: it gets as far as that.
    expect(rv).toBe(name === 'C_UnwrapKey' ? 'CKR_WRAPPED_KEY_INVALID' : 'CKR_OK');
  });
});

describe('changing and destroying', () => {
  test.each([true, false])(
    'an object of the token is changed and destroyed in a read-write session alone (private: %s)',
    async (hidden) => {
      const agent = await startInProcess();
      const [session, reading] = [await agent.open(), await agent.open(false)];
      const object = await agent.create(session, [CKA.CLASS, CKO.DATA], [CKA.TOKEN, true], [CKA.PRIVATE, hidden]);
      const change = (where: number) => agent.set(where, object, [CKA.LABEL, Buffer.from('x')]);
      expect(await change(reading)).toBe('CKR_SESSION_READ_ONLY');
      expect(await agent.rv('C_DestroyObject', { session: reading, object })).toBe('CKR_SESSION_READ_ONLY');
      expect(await change(session)).toBe('CKR_OK');
      expect(await agent.rv('C_DestroyObject', { session, object })).toBe('CKR_OK');
    },
  );
});
