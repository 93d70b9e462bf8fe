// The life of an operation, for every kind of operation alike: PKCS#11 2.40, sections 5.2 and 5.7 to 5.12; 3.0, sections 5.6, 5.9 and
// 5.11. What single kinds do beyond that is in the tests of their chapters.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKF, CKG_IV, CKU } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { MessageParameter } from '../../../provider/schema/types.ts';
import { type InProcessAgent, room, startInProcess } from '../../support/in-process-agent.ts';
import { CKK, CKO } from '../../support/names.ts';
import { template } from '../../support/template.ts';

interface Keys {
  readonly aes: number;
  readonly hmac: number;
  readonly publicKey: number;
  readonly privateKey: number;
}
/** One function call of an operation; its return value's name. */
type Step = (agent: InProcessAgent, session: number) => Promise<string>;
interface Kind {
  readonly name: string;
  readonly flag: number;
  readonly init: (agent: InProcessAgent, session: number, keys: Keys) => Promise<string>;
  /** Init with a null mechanism; null where there is none. */
  readonly cancel: Step | null;
  /** Init with a mechanism that does not exist; null where there is none. */
  readonly wrongInit: ((agent: InProcessAgent, session: number, keys: Keys) => Promise<string>) | null;
  /** Takes a part, and the operation continues. */
  readonly part: Step | null;
  /** A whole message, or the Final: ends the operation with any return value. */
  readonly ends: readonly Step[];
  /** An invalid step, with its name. */
  readonly wrong: readonly (readonly [Step, string])[];
  /** Whether an error does not change the operation: messages and searches. */
  readonly lasts: boolean;
  /** Whether it uses a key, and so ends with the login. */
  readonly private: boolean;
}

const block = Buffer.alloc(16, 1);
const long = Buffer.alloc(64, 1);
const ecb = { type: CKM.AES_ECB, parameter: null };
const hmacMechanism = { type: CKM.SHA256_HMAC, parameter: null };
const rsa = { type: CKM.RSA_PKCS, parameter: null };
const gcm = { type: CKM.AES_GCM, parameter: null };
const sha256 = { type: CKM.SHA256, parameter: null };
const nobodys = { type: CKM.DES3_CBC, parameter: null };
let messages = 0;
const message = (more: Partial<MessageParameter> = {}): MessageParameter => {
  const iv = Buffer.alloc(12);
  iv.writeUInt32BE(++messages);
  return {
    kind: 'gcm',
    iv,
    ivFixedBits: 0,
    ivGenerator: CKG_IV.NO_GENERATE,
    tag: Buffer.alloc(16),
    tagBits: 128,
    ...more,
  };
};
const noData = Buffer.alloc(0);

const kinds: readonly Kind[] = [
  {
    name: 'encryption',
    flag: CKF.ENCRYPT,
    init: (agent, session, { aes }) => agent.rv('C_EncryptInit', { session, mechanism: ecb, key: aes }),
    cancel: (agent, session) => agent.rv('C_EncryptInit', { session, mechanism: null, key: 0 }),
    wrongInit: (agent, session, { aes }) => agent.rv('C_EncryptInit', { session, mechanism: nobodys, key: aes }),
    part: (agent, session) => agent.rv('C_EncryptUpdate', { session, part: block, encryptedPart: room(64) }),
    ends: [
      (agent, session) => agent.rv('C_Encrypt', { session, data: block, encryptedData: room(64) }),
      (agent, session) => agent.rv('C_EncryptFinal', { session, lastEncryptedPart: room(64) }),
    ],
    wrong: [
      [
        (agent, session) => agent.rv('C_Encrypt', { session, data: block.subarray(1), encryptedData: room(64) }),
        'CKR_DATA_LEN_RANGE',
      ],
    ],
    lasts: false,
    private: true,
  },
  {
    name: 'decryption',
    flag: CKF.DECRYPT,
    init: (agent, session, { aes }) => agent.rv('C_DecryptInit', { session, mechanism: ecb, key: aes }),
    cancel: (agent, session) => agent.rv('C_DecryptInit', { session, mechanism: null, key: 0 }),
    wrongInit: (agent, session, { aes }) => agent.rv('C_DecryptInit', { session, mechanism: nobodys, key: aes }),
    part: (agent, session) => agent.rv('C_DecryptUpdate', { session, encryptedPart: block, part: room(64) }),
    ends: [
      (agent, session) => agent.rv('C_Decrypt', { session, encryptedData: block, data: room(64) }),
      (agent, session) => agent.rv('C_DecryptFinal', { session, lastPart: room(64) }),
    ],
    wrong: [
      [
        (agent, session) => agent.rv('C_Decrypt', { session, encryptedData: block.subarray(1), data: room(64) }),
        'CKR_ENCRYPTED_DATA_LEN_RANGE',
      ],
    ],
    lasts: false,
    private: true,
  },
  {
    name: 'digest',
    flag: CKF.DIGEST,
    init: (agent, session) => agent.rv('C_DigestInit', { session, mechanism: sha256 }),
    cancel: (agent, session) => agent.rv('C_DigestInit', { session, mechanism: null }),
    wrongInit: (agent, session) => agent.rv('C_DigestInit', { session, mechanism: nobodys }),
    part: (agent, session) => agent.rv('C_DigestUpdate', { session, part: block }),
    ends: [
      (agent, session) => agent.rv('C_Digest', { session, data: block, digest: room(64) }),
      (agent, session) => agent.rv('C_DigestFinal', { session, digest: room(64) }),
    ],
    wrong: [[(agent, session) => agent.rv('C_DigestKey', { session, key: 999_999 }), 'CKR_KEY_HANDLE_INVALID']],
    lasts: false,
    private: false,
  },
  {
    name: 'signature',
    flag: CKF.SIGN,
    init: (agent, session, { hmac }) => agent.rv('C_SignInit', { session, mechanism: hmacMechanism, key: hmac }),
    cancel: (agent, session) => agent.rv('C_SignInit', { session, mechanism: null, key: 0 }),
    wrongInit: (agent, session, { hmac }) => agent.rv('C_SignInit', { session, mechanism: nobodys, key: hmac }),
    part: (agent, session) => agent.rv('C_SignUpdate', { session, part: block }),
    ends: [
      (agent, session) => agent.rv('C_Sign', { session, data: block, signature: room(64) }),
      (agent, session) => agent.rv('C_SignFinal', { session, signature: room(64) }),
    ],
    wrong: [],
    lasts: false,
    private: true,
  },
  {
    name: 'signature of data in one piece',
    flag: CKF.SIGN,
    init: (agent, session, { privateKey }) => agent.rv('C_SignInit', { session, mechanism: rsa, key: privateKey }),
    cancel: (agent, session) => agent.rv('C_SignInit', { session, mechanism: null, key: 0 }),
    wrongInit: null,
    part: null,
    ends: [(agent, session) => agent.rv('C_Sign', { session, data: block, signature: room(512) })],
    wrong: [
      [
        (agent, session) => agent.rv('C_Sign', { session, data: Buffer.alloc(246), signature: room(512) }),
        'CKR_DATA_LEN_RANGE',
      ],
      [(agent, session) => agent.rv('C_SignUpdate', { session, part: block }), 'CKR_OPERATION_NOT_INITIALIZED'],
    ],
    lasts: false,
    private: true,
  },
  {
    name: 'signature with recovery',
    flag: CKF.SIGN_RECOVER,
    init: (agent, session, { privateKey }) =>
      agent.rv('C_SignRecoverInit', { session, mechanism: rsa, key: privateKey }),
    cancel: (agent, session) => agent.rv('C_SignRecoverInit', { session, mechanism: null, key: 0 }),
    wrongInit: (agent, session, { privateKey }) =>
      agent.rv('C_SignRecoverInit', { session, mechanism: nobodys, key: privateKey }),
    part: null,
    ends: [(agent, session) => agent.rv('C_SignRecover', { session, data: block, signature: room(512) })],
    wrong: [
      [
        (agent, session) => agent.rv('C_SignRecover', { session, data: Buffer.alloc(246), signature: room(512) }),
        'CKR_DATA_LEN_RANGE',
      ],
    ],
    lasts: false,
    private: true,
  },
  {
    name: 'verification',
    flag: CKF.VERIFY,
    init: (agent, session, { hmac }) => agent.rv('C_VerifyInit', { session, mechanism: hmacMechanism, key: hmac }),
    cancel: (agent, session) => agent.rv('C_VerifyInit', { session, mechanism: null, key: 0 }),
    wrongInit: (agent, session, { hmac }) => agent.rv('C_VerifyInit', { session, mechanism: nobodys, key: hmac }),
    part: (agent, session) => agent.rv('C_VerifyUpdate', { session, part: block }),
    ends: [],
    wrong: [
      [
        (agent, session) => agent.rv('C_Verify', { session, data: block, signature: Buffer.alloc(32) }),
        'CKR_SIGNATURE_INVALID',
      ],
      [
        (agent, session) => agent.rv('C_Verify', { session, data: block, signature: Buffer.alloc(31) }),
        'CKR_SIGNATURE_LEN_RANGE',
      ],
      [
        (agent, session) => agent.rv('C_VerifyFinal', { session, signature: Buffer.alloc(32) }),
        'CKR_SIGNATURE_INVALID',
      ],
      [
        (agent, session) => agent.rv('C_VerifyFinal', { session, signature: Buffer.alloc(0) }),
        'CKR_SIGNATURE_LEN_RANGE',
      ],
    ],
    lasts: false,
    private: true,
  },
  {
    name: 'verification with recovery',
    flag: CKF.VERIFY_RECOVER,
    init: (agent, session, { publicKey }) =>
      agent.rv('C_VerifyRecoverInit', { session, mechanism: rsa, key: publicKey }),
    cancel: (agent, session) => agent.rv('C_VerifyRecoverInit', { session, mechanism: null, key: 0 }),
    wrongInit: (agent, session, { publicKey }) =>
      agent.rv('C_VerifyRecoverInit', { session, mechanism: nobodys, key: publicKey }),
    part: null,
    ends: [],
    wrong: [
      [
        (agent, session) => agent.rv('C_VerifyRecover', { session, signature: Buffer.alloc(256), data: room(512) }),
        'CKR_SIGNATURE_INVALID',
      ],
    ],
    lasts: false,
    private: false,
  },
  {
    name: 'encryption of messages',
    flag: CKF.MESSAGE_ENCRYPT,
    init: (agent, session, { aes }) => agent.rv('C_MessageEncryptInit', { session, mechanism: gcm, key: aes }),
    cancel: (agent, session) => agent.rv('C_MessageEncryptInit', { session, mechanism: null, key: 0 }),
    wrongInit: (agent, session, { aes }) => agent.rv('C_MessageEncryptInit', { session, mechanism: nobodys, key: aes }),
    part: (agent, session) =>
      agent.rv('C_EncryptMessage', {
        session,
        parameter: message(),
        associatedData: noData,
        plaintext: long,
        ciphertext: room(64),
      }),
    ends: [(agent, session) => agent.rv('C_MessageEncryptFinal', { session })],
    wrong: [
      [
        (agent, session) =>
          agent.rv('C_EncryptMessage', {
            session,
            parameter: message({ tagBits: 5 }),
            associatedData: noData,
            plaintext: long,
            ciphertext: room(64),
          }),
        'CKR_MECHANISM_PARAM_INVALID',
      ],
    ],
    lasts: true,
    private: true,
  },
  {
    name: 'decryption of messages',
    flag: CKF.MESSAGE_DECRYPT,
    init: (agent, session, { aes }) => agent.rv('C_MessageDecryptInit', { session, mechanism: gcm, key: aes }),
    cancel: (agent, session) => agent.rv('C_MessageDecryptInit', { session, mechanism: null, key: 0 }),
    wrongInit: (agent, session, { aes }) => agent.rv('C_MessageDecryptInit', { session, mechanism: nobodys, key: aes }),
    part: (agent, session) =>
      agent.rv('C_DecryptMessage', {
        session,
        parameter: message(),
        associatedData: noData,
        ciphertext: long,
        plaintext: room(null),
      }),
    ends: [(agent, session) => agent.rv('C_MessageDecryptFinal', { session })],
    wrong: [
      [
        (agent, session) =>
          agent.rv('C_DecryptMessage', {
            session,
            parameter: message(),
            associatedData: noData,
            ciphertext: long,
            plaintext: room(64),
          }),
        'CKR_AEAD_DECRYPT_FAILED',
      ],
    ],
    lasts: true,
    private: true,
  },
  {
    name: 'search',
    flag: CKF.FIND_OBJECTS,
    init: (agent, session) => agent.rv('C_FindObjectsInit', { session, template: template() }),
    cancel: null,
    wrongInit: null,
    part: (agent, session) => agent.rv('C_FindObjects', { session, objects: 1 }),
    ends: [(agent, session) => agent.rv('C_FindObjectsFinal', { session })],
    wrong: [],
    lasts: true,
    private: true,
  },
];

const missing = 'CKR_OPERATION_NOT_INITIALIZED';
const active = 'CKR_OPERATION_ACTIVE';
const pin = Buffer.from('any');

describe.each([
  ['session', false],
  ['token', true],
] as const)('with keys of the %s', (_where, token) => {
  let agent: InProcessAgent;
  let keys: Keys;
  let session: number;
  let other: number;

  beforeAll(async () => {
    agent = await startInProcess();
    const owner = await agent.open();
    const secret = (type: number) =>
      agent.call('C_CreateObject', {
        session: owner,
        template: template(
          [CKA.CLASS, CKO.SECRET_KEY],
          [CKA.KEY_TYPE, type],
          [CKA.VALUE, Buffer.alloc(32, type + 1)],
          [CKA.TOKEN, token],
        ),
      }) as Promise<number>;
    const pair = (await agent.call('C_GenerateKeyPair', {
      session: owner,
      mechanism: { type: CKM.RSA_PKCS_KEY_PAIR_GEN, parameter: null },
      publicTemplate: template([CKA.TOKEN, token], [CKA.MODULUS_BITS, 2048], [CKA.VERIFY_RECOVER, true]),
      privateTemplate: template([CKA.TOKEN, token], [CKA.SIGN_RECOVER, true]),
    })) as { publicKey: number; privateKey: number };
    keys = { aes: await secret(CKK.AES), hmac: await secret(CKK.GENERIC_SECRET), ...pair };
    session = await agent.open();
    other = await agent.open();
  });
  afterAll(() => agent.service.failWith(null));

  /** Every step that there is, right or wrong. */
  const steps = ({ part, ends, wrong }: Kind): Step[] => [
    ...(part === null ? [] : [part]),
    ...ends,
    ...wrong.map(([step]) => step),
  ];
  const begin = async (kind: Kind, where = session) => {
    await agent.call('C_SessionCancel', { session: where, flags: kind.flag });
    expect(await kind.init(agent, where, keys)).toBe('CKR_OK');
  };
  /** Whether one is running, which a second Init shows. */
  const isRunning = async (kind: Kind, where = session): Promise<boolean> => {
    const rv = await kind.init(agent, where, keys);
    if (rv === 'CKR_OK') await agent.call('C_SessionCancel', { session: where, flags: kind.flag });
    else expect(rv).toBe(active);
    return rv === active;
  };

  describe.each(kinds.map((kind) => [kind.name, kind] as const))('%s', (_name, kind) => {
    test('nothing works before its Init', async () => {
      await agent.call('C_SessionCancel', { session, flags: kind.flag });
      for (const step of steps(kind)) expect(await step(agent, session)).toBe(missing);
    });

    test('a second Init is refused, and the first operation continues', async () => {
      await begin(kind);
      expect(await kind.init(agent, session, keys)).toBe(active);
      expect(await isRunning(kind)).toBe(true);
    });

    test('an Init that is refused starts nothing', async () => {
      await agent.call('C_SessionCancel', { session, flags: kind.flag });
      if (kind.wrongInit === null) return expect(kind.wrongInit).toBeNull();
      expect(await kind.wrongInit(agent, session, keys)).toBe('CKR_MECHANISM_INVALID');
      expect(await isRunning(kind)).toBe(false);
    });

    test('a null mechanism ends it, and ends nothing when there is nothing', async () => {
      if (kind.cancel === null) return expect(kind.cancel).toBeNull();
      await begin(kind);
      for (let i = 0; i < 2; i++) expect(await kind.cancel(agent, session)).toBe('CKR_OK');
      expect(await isRunning(kind)).toBe(false);
    });

    test('C_SessionCancel ends it with its flag, and with no other', async () => {
      await begin(kind);
      const others = kinds.reduce((flags, { flag }) => (flag === kind.flag ? flags : flags | flag), 0);
      expect(await agent.rv('C_SessionCancel', { session, flags: others })).toBe('CKR_OK');
      expect(await isRunning(kind)).toBe(true);
      expect(await agent.rv('C_SessionCancel', { session, flags: kind.flag })).toBe('CKR_OK');
      expect(await isRunning(kind)).toBe(false);
    });

    test('what ends it ends it once', async () => {
      for (const end of kind.ends) {
        await begin(kind);
        expect(await end(agent, session)).toBe('CKR_OK');
        expect(await end(agent, session)).toBe(missing);
      }
    });

    test('a part leaves it going', async () => {
      const { part } = kind;
      if (part === null) return expect(part).toBeNull();
      await begin(kind);
      for (let i = 0; i < 3; i++) expect(await part(agent, session)).toBe('CKR_OK');
      expect(await isRunning(kind)).toBe(true);
    });

    test('an error ends it, but no search and no operation on messages', async () => {
      for (const [step, rv] of kind.wrong) {
        await begin(kind);
        expect(await step(agent, session)).toBe(rv);
        expect(await isRunning(kind)).toBe(kind.lasts);
      }
    });

    test('another session has its own', async () => {
      await agent.call('C_SessionCancel', { session: other, flags: kind.flag });
      await begin(kind);
      expect(await isRunning(kind, other)).toBe(false);
      await begin(kind, other);
      await agent.call('C_SessionCancel', { session, flags: kind.flag });
      expect(await isRunning(kind, other)).toBe(true);
    });

    test('it ends with its session', async () => {
      const third = await agent.open();
      await begin(kind, third);
      await agent.call('C_CloseSession', { session: third });
      for (const step of steps(kind)) expect(await step(agent, third)).toBe('CKR_SESSION_HANDLE_INVALID');
    });
  });

  test('all kinds run at once in one session', async () => {
    const all = kinds.filter(({ name }) => name !== 'signature of data in one piece');
    for (const kind of all) await begin(kind);
    for (const kind of all) expect(await isRunning(kind)).toBe(true);
  });
});

describe('with the service', () => {
  test('a search outlives an outage: the page is asked for again, and C_FindObjectsFinal ends it', async () => {
    const agent = await startInProcess();
    const session = await agent.open();
    const count = 300;
    for (let i = 0; i < count; i++) {
      await agent.call('C_CreateObject', {
        session,
        template: template([CKA.CLASS, CKO.DATA], [CKA.TOKEN, true], [CKA.LABEL, Buffer.from(`${i}`)]),
      });
    }
    await agent.call('C_FindObjectsInit', { session, template: template([CKA.CLASS, CKO.DATA]) });
    const found = new Set(await agent.call('C_FindObjects', { session, objects: 250 }));
    agent.service.failWith('unavailable');
    expect(await agent.rv('C_FindObjects', { session, objects: 250 })).toBe('CKR_DEVICE_ERROR');
    agent.service.failWith(null);
    for (;;) {
      const some = await agent.call('C_FindObjects', { session, objects: 250 });
      if (some.length === 0) break;
      for (const each of some) found.add(each);
    }
    expect(found.size).toBe(count);
    expect(await agent.rv('C_FindObjectsFinal', { session })).toBe('CKR_OK');
    expect(await agent.rv('C_FindObjectsFinal', { session })).toBe(missing);
  });

  test.each([true, false])(
    'C_Logout ends what uses private objects, and nothing else (keys of the token: %s)',
    async (token) => {
      const agent = await startInProcess();
      const session = await agent.open();
      const aes = (await agent.call('C_GenerateKey', {
        session,
        mechanism: { type: CKM.AES_KEY_GEN, parameter: null },
        template: template([CKA.VALUE_LEN, 16], [CKA.TOKEN, token], [CKA.PRIVATE, true]),
      })) as number;
      const open = (await agent.call('C_GenerateKey', {
        session,
        mechanism: { type: CKM.AES_KEY_GEN, parameter: null },
        template: template([CKA.VALUE_LEN, 16], [CKA.TOKEN, token], [CKA.PRIVATE, false]),
      })) as number;
      await agent.call('C_EncryptInit', { session, mechanism: ecb, key: aes });
      await agent.call('C_DecryptInit', { session, mechanism: ecb, key: open });
      await agent.call('C_DigestInit', { session, mechanism: sha256 });
      await agent.call('C_Logout', { session });
      expect(await agent.rv('C_Encrypt', { session, data: block, encryptedData: room(16) })).toBe(missing);
      expect(await agent.rv('C_Decrypt', { session, encryptedData: block, data: room(16) })).toBe('CKR_OK');
      expect(await agent.rv('C_Digest', { session, data: block, digest: room(32) })).toBe('CKR_OK');
      await agent.call('C_Login', { session, userType: CKU.USER, pin });
    },
  );
});
