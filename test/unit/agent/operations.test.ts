// The life of an operation, for every kind of operation alike: PKCS#11 2.40, sections 5.2 and 5.7
// to 5.12; 3.0, sections 5.6, 5.9 and 5.11. What single kinds do beyond that is in the tests of
// their chapters.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import type { CallName, Input } from '../../../provider/schema/calls.ts';
import { CKF, CKG_IV, CKU } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { Mechanism, MessageParameter } from '../../../provider/schema/types.ts';
import { type InProcessAgent, room, startInProcess } from '../../support/in-process-agent.ts';
import { CKK, CKO } from '../../support/names.ts';
import { mech, startSession } from '../../support/session-calls.ts';
import { places, template } from '../../support/template.ts';

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
const ecb = mech(CKM.AES_ECB);
const hmacMechanism = mech(CKM.SHA256_HMAC);
const rsa = mech(CKM.RSA_PKCS);
const gcm = mech(CKM.AES_GCM);
const sha256 = mech(CKM.SHA256);
const unsupported = mech(CKM.DES3_CBC);
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

type KeyedInit = Extract<CallName, `C_${string}Init`>;
/** How an operation that uses a key begins: well, cancelled and wrong. */
const begins = (name: KeyedInit, mechanism: Mechanism, of: keyof Keys) => ({
  init: (agent: InProcessAgent, session: number, { [of]: key }: Keys) =>
    agent.rv(name, { session, mechanism, key } as Input<KeyedInit>),
  cancel: (agent: InProcessAgent, session: number) =>
    agent.rv(name, { session, mechanism: null, key: 0 } as Input<KeyedInit>),
  wrongInit: (agent: InProcessAgent, session: number, { [of]: key }: Keys) =>
    agent.rv(name, { session, mechanism: unsupported, key } as Input<KeyedInit>),
});

/** A call that is the same each time. */
const step =
  <N extends CallName>(name: N, input: Omit<Input<N>, 'session'> = {} as Input<N>): Step =>
  (agent, session) =>
    agent.rv(name, { ...input, session } as unknown as Input<N>);

const kinds: readonly Kind[] = [
  {
    name: 'encryption',
    flag: CKF.ENCRYPT,
    ...begins('C_EncryptInit', ecb, 'aes'),
    part: step('C_EncryptUpdate', { part: block, encryptedPart: room(64) }),
    ends: [
      step('C_Encrypt', { data: block, encryptedData: room(64) }),
      step('C_EncryptFinal', { lastEncryptedPart: room(64) }),
    ],
    wrong: [[step('C_Encrypt', { data: block.subarray(1), encryptedData: room(64) }), 'CKR_DATA_LEN_RANGE']],
    lasts: false,
    private: true,
  },
  {
    name: 'decryption',
    flag: CKF.DECRYPT,
    ...begins('C_DecryptInit', ecb, 'aes'),
    part: step('C_DecryptUpdate', { encryptedPart: block, part: room(64) }),
    ends: [step('C_Decrypt', { encryptedData: block, data: room(64) }), step('C_DecryptFinal', { lastPart: room(64) })],
    wrong: [[step('C_Decrypt', { encryptedData: block.subarray(1), data: room(64) }), 'CKR_ENCRYPTED_DATA_LEN_RANGE']],
    lasts: false,
    private: true,
  },
  {
    name: 'digest',
    flag: CKF.DIGEST,
    init: step('C_DigestInit', { mechanism: sha256 }),
    cancel: step('C_DigestInit', { mechanism: null }),
    wrongInit: step('C_DigestInit', { mechanism: unsupported }),
    part: step('C_DigestUpdate', { part: block }),
    ends: [step('C_Digest', { data: block, digest: room(64) }), step('C_DigestFinal', { digest: room(64) })],
    wrong: [[step('C_DigestKey', { key: 999_999 }), 'CKR_KEY_HANDLE_INVALID']],
    lasts: false,
    private: false,
  },
  {
    name: 'signature',
    flag: CKF.SIGN,
    ...begins('C_SignInit', hmacMechanism, 'hmac'),
    part: step('C_SignUpdate', { part: block }),
    ends: [step('C_Sign', { data: block, signature: room(64) }), step('C_SignFinal', { signature: room(64) })],
    wrong: [],
    lasts: false,
    private: true,
  },
  {
    name: 'signature of data in one piece',
    flag: CKF.SIGN,
    ...begins('C_SignInit', rsa, 'privateKey'),
    wrongInit: null,
    part: null,
    ends: [step('C_Sign', { data: block, signature: room(512) })],
    wrong: [
      [step('C_Sign', { data: Buffer.alloc(246), signature: room(512) }), 'CKR_DATA_LEN_RANGE'],
      [step('C_SignUpdate', { part: block }), 'CKR_OPERATION_NOT_INITIALIZED'],
    ],
    lasts: false,
    private: true,
  },
  {
    name: 'signature with recovery',
    flag: CKF.SIGN_RECOVER,
    ...begins('C_SignRecoverInit', rsa, 'privateKey'),
    part: null,
    ends: [step('C_SignRecover', { data: block, signature: room(512) })],
    wrong: [[step('C_SignRecover', { data: Buffer.alloc(246), signature: room(512) }), 'CKR_DATA_LEN_RANGE']],
    lasts: false,
    private: true,
  },
  {
    name: 'verification',
    flag: CKF.VERIFY,
    ...begins('C_VerifyInit', hmacMechanism, 'hmac'),
    part: step('C_VerifyUpdate', { part: block }),
    ends: [],
    wrong: [
      [step('C_Verify', { data: block, signature: Buffer.alloc(32) }), 'CKR_SIGNATURE_INVALID'],
      [step('C_Verify', { data: block, signature: Buffer.alloc(31) }), 'CKR_SIGNATURE_LEN_RANGE'],
      [step('C_VerifyFinal', { signature: Buffer.alloc(32) }), 'CKR_SIGNATURE_INVALID'],
      [step('C_VerifyFinal', { signature: Buffer.alloc(0) }), 'CKR_SIGNATURE_LEN_RANGE'],
    ],
    lasts: false,
    private: true,
  },
  {
    name: 'verification with recovery',
    flag: CKF.VERIFY_RECOVER,
    ...begins('C_VerifyRecoverInit', rsa, 'publicKey'),
    part: null,
    ends: [],
    wrong: [[step('C_VerifyRecover', { signature: Buffer.alloc(256), data: room(512) }), 'CKR_SIGNATURE_INVALID']],
    lasts: false,
    private: false,
  },
  {
    name: 'encryption of messages',
    flag: CKF.MESSAGE_ENCRYPT,
    ...begins('C_MessageEncryptInit', gcm, 'aes'),
    part: (agent, session) =>
      agent.rv('C_EncryptMessage', {
        session,
        parameter: message(),
        associatedData: noData,
        plaintext: long,
        ciphertext: room(64),
      }),
    ends: [step('C_MessageEncryptFinal')],
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
    ...begins('C_MessageDecryptInit', gcm, 'aes'),
    part: (agent, session) =>
      agent.rv('C_DecryptMessage', {
        session,
        parameter: message(),
        associatedData: noData,
        ciphertext: long,
        plaintext: room(null),
      }),
    ends: [step('C_MessageDecryptFinal')],
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
    init: step('C_FindObjectsInit', { template: template() }),
    cancel: null,
    wrongInit: null,
    part: step('C_FindObjects', { objects: 1 }),
    ends: [step('C_FindObjectsFinal')],
    wrong: [],
    lasts: true,
    private: true,
  },
];

const missing = 'CKR_OPERATION_NOT_INITIALIZED';
const active = 'CKR_OPERATION_ACTIVE';
const pin = Buffer.from('any');

describe.each(places)('with keys of the %s', (_where, token) => {
  let agent: InProcessAgent;
  let keys: Keys;
  let session: number;
  let other: number;

  beforeAll(async () => {
    agent = await startInProcess();
    const owner = await agent.open();
    const secret = (type: number) =>
      agent.create(
        owner,
        [CKA.CLASS, CKO.SECRET_KEY],
        [CKA.KEY_TYPE, type],
        [CKA.VALUE, Buffer.alloc(32, type + 1)],
        [CKA.TOKEN, token],
      );
    const pair = await agent.pair(
      owner,
      CKM.RSA_PKCS_KEY_PAIR_GEN,
      [
        [CKA.TOKEN, token],
        [CKA.MODULUS_BITS, 2048],
        [CKA.VERIFY_RECOVER, true],
      ],
      [
        [CKA.TOKEN, token],
        [CKA.SIGN_RECOVER, true],
      ],
    );
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
    const { agent, session } = await startSession();
    const count = 300;
    for (let i = 0; i < count; i++) {
      await agent.create(session, [CKA.CLASS, CKO.DATA], [CKA.TOKEN, true], [CKA.LABEL, Buffer.from(`${i}`)]);
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
      const { agent, session } = await startSession();
      const aes = await agent.generate(
        session,
        CKM.AES_KEY_GEN,
        [CKA.VALUE_LEN, 16],
        [CKA.TOKEN, token],
        [CKA.PRIVATE, true],
      );
      const open = await agent.generate(
        session,
        CKM.AES_KEY_GEN,
        [CKA.VALUE_LEN, 16],
        [CKA.TOKEN, token],
        [CKA.PRIVATE, false],
      );
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
