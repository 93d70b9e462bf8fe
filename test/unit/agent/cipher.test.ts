// Encryption and decryption: PKCS#11 2.40, sections 5.2, 5.8 and 5.9, with keys of a session and on
// the token alike.
import { createCipheriv } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKG_IV } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { AttributeValue, Mechanism, MechanismParameter } from '../../../provider/schema/types.ts';
import { given, type InProcessAgent, mech, room, rvOf, startInProcess } from '../../support/in-process-agent.ts';
import { aesRows, places } from '../../support/template.ts';

const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const iv = hex('000102030405060708090a0b0c0d0e0f');
// NIST SP 800-38A, F.1.1, F.2.1 and F.5.1: AES-128.
const value = hex('2b7e151628aed2a6abf7158809cf4f3c');
const plain = hex(
  '6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51' +
    '30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710',
);
const bytes = (data: Uint8Array): MechanismParameter => ({ kind: 'bytes', bytes: data });
const vectors: readonly (readonly [string, Mechanism, Buffer])[] = [
  [
    'AES_ECB',
    mech(CKM.AES_ECB),
    hex(
      '3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf' +
        '43b1cd7f598ece23881b00e3ed0306887b0c785e27e8ad3f8223207104725dd4',
    ),
  ],
  [
    'AES_CBC',
    mech(CKM.AES_CBC, bytes(iv)),
    hex(
      '7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2' +
        '73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7',
    ),
  ],
  [
    'AES_CTR',
    mech(CKM.AES_CTR, { kind: 'ctr', counterBits: 128, block: hex('f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff') }),
    hex(
      '874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff' +
        '5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee',
    ),
  ],
];
const padded: Mechanism = mech(CKM.AES_CBC_PAD, bytes(iv));
const gcmWith = (iv: Buffer): Mechanism =>
  mech(CKM.AES_GCM, { kind: 'gcm', iv, ivBits: 96, aad: Buffer.from('aad'), tagBits: 128 });
const gcm = gcmWith(hex('cafebabefacedbaddecaf888'));

/** RFC 3610, packet vector 1. */
const ccmKey = hex('c0c1c2c3c4c5c6c7c8c9cacbcccdcecf');
const ccmData = hex('08090a0b0c0d0e0f101112131415161718191a1b1c1d1e');
const ccmSealed = hex('588c979a61c663d2f066d0c2c0f989806d5f6b61dac38417e8d12cfdf926e0');
const ccm = (change: Partial<Extract<MechanismParameter, { kind: 'ccm' }>> = {}): Mechanism =>
  mech(CKM.AES_CCM, {
    kind: 'ccm',
    dataLength: ccmData.length,
    nonce: hex('00000003020100a0a1a2a3a4a5'),
    aad: hex('0001020304050607'),
    macLength: 8,
    ...change,
  });

const createKey = (agent: InProcessAgent, session: number, token: boolean, label: string): Promise<number> =>
  agent.create(session, ...aesRows, [CKA.VALUE, value], [CKA.TOKEN, token], [CKA.LABEL, Buffer.from(label)]);

/** `process`: the name of the program that calls. */
const start = async (token: boolean, process = 'database') => {
  const agent = await startInProcess({ process });
  const session = await agent.open();
  return { agent, session, key: await createKey(agent, session, token, 'mek') };
};

const encrypt = async (agent: InProcessAgent, session: number, data: Uint8Array, capacity: number | null) => {
  const out = room(capacity);
  return given(out, await agent.call('C_Encrypt', { session, data, encryptedData: out }));
};
const decrypt = async (agent: InProcessAgent, session: number, encryptedData: Uint8Array, capacity: number | null) => {
  const out = room(capacity);
  return given(out, await agent.call('C_Decrypt', { session, encryptedData, data: out }));
};
const inParts = async (
  agent: InProcessAgent,
  session: number,
  how: 'encrypt' | 'decrypt',
  data: Buffer,
  size: number,
) => {
  const parts: Buffer[] = [];
  for (let at = 0; at < data.length; at += size) {
    const out = room(size + 32);
    const part = data.subarray(at, at + size);
    const output =
      how === 'encrypt'
        ? await agent.call('C_EncryptUpdate', { session, part, encryptedPart: out })
        : await agent.call('C_DecryptUpdate', { session, encryptedPart: part, part: out });
    parts.push(given(out, output) as Buffer);
  }
  const out = room(data.length + 32);
  const last =
    how === 'encrypt'
      ? await agent.call('C_EncryptFinal', { session, lastEncryptedPart: out })
      : await agent.call('C_DecryptFinal', { session, lastPart: out });
  return Buffer.concat([...parts, given(out, last) as Buffer]);
};

describe.each(places)('with a %s key', (_where, token) => {
  test.each(vectors)('%s gives the published result, whole and in parts', async (_name, mechanism, expected) => {
    const { agent, session, key } = await start(token);
    await agent.call('C_EncryptInit', { session, mechanism, key });
    expect(await encrypt(agent, session, plain, 64)).toEqual(expected);
    await agent.call('C_DecryptInit', { session, mechanism, key });
    expect(await decrypt(agent, session, expected, 64)).toEqual(plain);
    for (const size of [1, 15, 16, 17, 64]) {
      await agent.call('C_EncryptInit', { session, mechanism, key });
      expect(await inParts(agent, session, 'encrypt', plain, size)).toEqual(expected);
      await agent.call('C_DecryptInit', { session, mechanism, key });
      expect(await inParts(agent, session, 'decrypt', expected, size)).toEqual(plain);
    }
  });

  test.each([
    ['AES_CBC_PAD', () => padded, 16],
    ['AES_GCM', (length: number) => gcmWith(Buffer.alloc(12, length)), 16],
  ] as const)('%s brings every length back, and exactly fits', async (_name, mechanismFor, most) => {
    const { agent, session, key } = await start(token);
    for (const length of [0, 1, 15, 16, 17, 33]) {
      const mechanism = mechanismFor(length);
      const data = plain.subarray(0, length);
      await agent.call('C_EncryptInit', { session, mechanism, key });
      const wanted = await encrypt(agent, session, data, null);
      expect(wanted).toBeLessThanOrEqual(length + most);
      const sealed = (await encrypt(agent, session, data, wanted as number)) as Buffer;
      expect(sealed).toHaveLength(wanted as number);
      await agent.call('C_DecryptInit', { session, mechanism, key });
      expect(await decrypt(agent, session, sealed, length)).toEqual(data);
      await agent.call('C_DecryptInit', { session, mechanism, key });
      expect(await inParts(agent, session, 'decrypt', sealed, 7)).toEqual(data);
    }
  });

  describe('AES_CCM', () => {
    const startCcm = async () => {
      const { agent, session } = await start(token);
      const key = await agent.create(session, ...aesRows, [CKA.VALUE, ccmKey], [CKA.TOKEN, token]);
      return { agent, session, key };
    };

    test('gives the published result, whole and in parts, and lengths before it', async () => {
      const whole = await startCcm();
      await whole.agent.call('C_EncryptInit', { session: whole.session, mechanism: ccm(), key: whole.key });
      expect(await encrypt(whole.agent, whole.session, ccmData, null)).toBe(ccmSealed.length);
      expect(await encrypt(whole.agent, whole.session, ccmData, ccmSealed.length - 1)).toBe(ccmSealed.length);
      expect(await encrypt(whole.agent, whole.session, ccmData, ccmSealed.length)).toEqual(ccmSealed);
      await whole.agent.call('C_DecryptInit', { session: whole.session, mechanism: ccm(), key: whole.key });
      expect(await decrypt(whole.agent, whole.session, ccmSealed, ccmData.length)).toEqual(ccmData);
      for (const size of [1, 16, 31]) {
        const { agent, session, key } = await startCcm();
        await agent.call('C_EncryptInit', { session, mechanism: ccm(), key });
        expect(await inParts(agent, session, 'encrypt', ccmData, size)).toEqual(ccmSealed);
        await agent.call('C_DecryptInit', { session, mechanism: ccm(), key });
        expect(await inParts(agent, session, 'decrypt', ccmSealed, size)).toEqual(ccmData);
      }
    });

    test('encrypts once with a nonce, and decrypts as often as it is asked to', async () => {
      const { agent, session, key } = await startCcm();
      await agent.call('C_EncryptInit', { session, mechanism: ccm(), key });
      await encrypt(agent, session, ccmData, 64);
      expect(await agent.rv('C_EncryptInit', { session, mechanism: ccm(), key })).toBe('CKR_MECHANISM_PARAM_INVALID');
      const another = ccm({ nonce: Buffer.alloc(13, 1) });
      expect(await agent.rv('C_EncryptInit', { session, mechanism: another, key })).toBe('CKR_OK');
      for (let i = 0; i < 2; i++) {
        await agent.call('C_DecryptInit', { session, mechanism: ccm(), key });
        expect(await decrypt(agent, session, ccmSealed, 64)).toEqual(ccmData);
      }
    });

    test('refuses another length than announced, and what was changed', async () => {
      const { agent, session, key } = await startCcm();
      const less = ccmData.subarray(1);
      await agent.call('C_EncryptInit', { session, mechanism: ccm(), key });
      expect(await rvOf(encrypt(agent, session, less, 64))).toBe('CKR_DATA_LEN_RANGE');
      await agent.call('C_EncryptInit', { session, mechanism: ccm(), key });
      expect(await rvOf(inParts(agent, session, 'encrypt', less, 7))).toBe('CKR_DATA_LEN_RANGE');
      await agent.call('C_DecryptInit', { session, mechanism: ccm(), key });
      expect(await rvOf(decrypt(agent, session, ccmData, 64))).toBe('CKR_ENCRYPTED_DATA_LEN_RANGE');
      const changed = Buffer.from(ccmSealed);
      changed.writeUInt8(changed.readUInt8(30) ^ 1, 30);
      await agent.call('C_DecryptInit', { session, mechanism: ccm(), key });
      expect(await rvOf(decrypt(agent, session, changed, 64))).toBe('CKR_ENCRYPTED_DATA_INVALID');
      await agent.call('C_DecryptInit', { session, mechanism: ccm(), key });
      expect(await rvOf(inParts(agent, session, 'decrypt', changed, 9))).toBe('CKR_ENCRYPTED_DATA_INVALID');
    });

    test.each([
      ['no parameter', null],
      ['a short nonce', ccm({ nonce: Buffer.alloc(6) }).parameter],
      ['a long nonce', ccm({ nonce: Buffer.alloc(14) }).parameter],
      ['an odd MAC', ccm({ macLength: 9 }).parameter],
      ['a short MAC', ccm({ macLength: 2 }).parameter],
      ['a long MAC', ccm({ macLength: 18 }).parameter],
      ['more data than the nonce leaves a counter for', ccm({ dataLength: 65_536 }).parameter],
      ['a length of all ones', ccm({ dataLength: -1 }).parameter],
    ])('refuses %s', async (_name, parameter) => {
      const { agent, session, key } = await startCcm();
      const mechanism = mech(CKM.AES_CCM, parameter);
      expect(await agent.rv('C_EncryptInit', { session, mechanism, key })).toBe('CKR_MECHANISM_PARAM_INVALID');
    });
  });

  test('a length query of C_DecryptUpdate under GCM and CCM covers all data so far', async () => {
    const { agent, session, key } = await start(token);
    await agent.call('C_EncryptInit', { session, mechanism: gcm, key });
    const sealed = (await encrypt(agent, session, plain, 80)) as Buffer;
    const update = async (part: Uint8Array, capacity: number | null) => {
      const out = room(capacity);
      return given(out, await agent.call('C_DecryptUpdate', { session, encryptedPart: part, part: out }));
    };
    await agent.call('C_DecryptInit', { session, mechanism: gcm, key });
    expect(await update(sealed.subarray(0, 40), null)).toBe(40);
    expect(await update(sealed.subarray(0, 40), 40)).toEqual(Buffer.alloc(0));
    expect(await update(sealed.subarray(40), null)).toBe(80);
    // Nothing is given out before the tag is checked, so nothing more than nothing is needed.
    expect(await update(sealed.subarray(40), 0)).toEqual(Buffer.alloc(0));
    const out = room(64);
    expect(given(out, await agent.call('C_DecryptFinal', { session, lastPart: out }))).toEqual(plain);
  });

  test('a length query under AES-CTR is refused where the data is', async () => {
    const { agent, session, key } = await start(token);
    const block = Buffer.alloc(16);
    block[15] = 0xfe;
    // A counter of eight bits has two blocks left.
    const mechanism: Mechanism = mech(CKM.AES_CTR, { kind: 'ctr', counterBits: 8, block });
    const init = () => agent.call('C_EncryptInit', { session, mechanism, key });
    for (const capacity of [null, 64]) {
      await init();
      expect(await rvOf(encrypt(agent, session, plain.subarray(0, 33), capacity))).toBe('CKR_DATA_LEN_RANGE');
      await init();
      expect(await encrypt(agent, session, plain.subarray(0, 32), null)).toBe(32);
      const first = room(16);
      const part = plain.subarray(0, 16);
      await agent.call('C_EncryptUpdate', { session, part, encryptedPart: first });
      const rest = { session, part: plain.subarray(16, 33), encryptedPart: room(capacity) };
      expect(await agent.rv('C_EncryptUpdate', rest)).toBe('CKR_DATA_LEN_RANGE');
    }
  });

  test('under GCM an IV encrypts once: it is refused at Init, and to the second of two callers', async () => {
    const { agent, session, key } = await start(token);
    const other = await agent.open();
    for (const each of [session, other]) await agent.call('C_EncryptInit', { session: each, mechanism: gcm, key });
    // Asking for a length takes nothing.
    expect(await encrypt(agent, session, plain, null)).toBe(80);
    expect(await encrypt(agent, session, plain, 79)).toBe(80);
    const sealed = (await encrypt(agent, session, plain, 80)) as Buffer;
    expect(await rvOf(inParts(agent, other, 'encrypt', plain, 16))).toBe('CKR_MECHANISM_PARAM_INVALID');
    expect(await agent.rv('C_EncryptInit', { session, mechanism: gcm, key })).toBe('CKR_MECHANISM_PARAM_INVALID');
    expect(await agent.rv('C_EncryptInit', { session, mechanism: gcmWith(Buffer.alloc(12, 1)), key })).toBe('CKR_OK');
    // Decryption may use an IV any number of times.
    for (let i = 0; i < 2; i++) {
      await agent.call('C_DecryptInit', { session, mechanism: gcm, key });
      expect(await decrypt(agent, session, sealed, 64)).toEqual(plain);
    }
  });

  test('under GCM an IV encrypts once, whichever object holds the key', async () => {
    const { agent, session, key } = await start(token);
    const again = await createKey(agent, session, token, 'the same');
    await agent.call('C_EncryptInit', { session, mechanism: gcm, key });
    await encrypt(agent, session, plain, 80);
    expect(await agent.rv('C_EncryptInit', { session, mechanism: gcm, key: again })).toBe(
      'CKR_MECHANISM_PARAM_INVALID',
    );
  });

  describe('an IV that has encrypted an empty message is used up', () => {
    const empty = Buffer.alloc(0);
    const withAad = (aad: Uint8Array): Mechanism =>
      mech(CKM.AES_GCM, { kind: 'gcm', iv: Buffer.alloc(12, 9), ivBits: 96, aad, tagBits: 128 });
    const referenceTag = (aad: Uint8Array): Buffer => {
      const cipher = createCipheriv('aes-128-gcm', value, Buffer.alloc(12, 9)).setAAD(aad);
      cipher.final();
      return cipher.getAuthTag();
    };
    const ccmOfNothing: Mechanism = mech(CKM.AES_CCM, {
      kind: 'ccm',
      dataLength: 0,
      nonce: Buffer.alloc(12, 9),
      aad: empty,
      macLength: 16,
    });
    const ways = {
      'in one piece': encrypt,
      'in one piece, after a length query': async (
        agent: InProcessAgent,
        session: number,
        text: Uint8Array,
        most: number,
      ) => {
        expect(await encrypt(agent, session, text, null)).toBe(16);
        return encrypt(agent, session, text, most);
      },
      'in parts': (agent: InProcessAgent, session: number, text: Uint8Array) =>
        inParts(agent, session, 'encrypt', Buffer.from(text), 16),
      'in an empty part': async (agent: InProcessAgent, session: number) => {
        await agent.call('C_EncryptUpdate', { session, part: empty, encryptedPart: room(0) });
        return inParts(agent, session, 'encrypt', empty, 16);
      },
    } as const;

    test.each(Object.entries(ways))('%s', async (_name, run) => {
      const { agent, session, key } = await start(token);
      const other = await agent.open();
      await agent.call('C_EncryptInit', { session: other, mechanism: withAad(empty), key });
      await agent.call('C_EncryptInit', { session, mechanism: withAad(empty), key });
      expect(await run(agent, session, empty, 16)).toEqual(referenceTag(empty));
      for (const aad of [empty, plain]) {
        const again = { session, mechanism: withAad(aad), key };
        expect(await agent.rv('C_EncryptInit', again)).toBe('CKR_MECHANISM_PARAM_INVALID');
      }
      expect(await rvOf(encrypt(agent, other, plain, 80))).toBe('CKR_MECHANISM_PARAM_INVALID');
    });

    test('with additional data, and under CCM', async () => {
      const { agent, session, key } = await start(token);
      await agent.call('C_EncryptInit', { session, mechanism: withAad(plain), key });
      expect(await encrypt(agent, session, empty, 16)).toEqual(referenceTag(plain));
      const again = { session, mechanism: withAad(empty), key };
      expect(await agent.rv('C_EncryptInit', again)).toBe('CKR_MECHANISM_PARAM_INVALID');

      const { agent: fresh, session: its, key: own } = await start(token);
      await fresh.call('C_EncryptInit', { session: its, mechanism: ccmOfNothing, key: own });
      expect(await encrypt(fresh, its, empty, 16)).toHaveLength(16);
      expect(await fresh.rv('C_EncryptInit', { session: its, mechanism: ccmOfNothing, key: own })).toBe(
        'CKR_MECHANISM_PARAM_INVALID',
      );
    });

    test('and by the message functions', async () => {
      const { agent, session, key } = await start(token);
      await agent.call('C_MessageEncryptInit', { session, mechanism: mech(CKM.AES_GCM), key });
      const parameter = {
        kind: 'gcm',
        iv: Buffer.alloc(12, 9),
        ivFixedBits: 0,
        ivGenerator: CKG_IV.NO_GENERATE,
        tag: empty,
        tagBits: 128,
      } as const;
      const message = { session, parameter, associatedData: empty, plaintext: empty, ciphertext: room(0) };
      expect((await agent.call('C_EncryptMessage', message)).parameter.tag).toEqual(referenceTag(empty));
      expect(await agent.rv('C_EncryptMessage', message)).toBe('CKR_MECHANISM_PARAM_INVALID');
      expect(await agent.rv('C_EncryptInit', { session, mechanism: withAad(empty), key })).toBe(
        'CKR_MECHANISM_PARAM_INVALID',
      );
    });

    test('in a Java process an empty message without additional data only cancels: no tag is computed, and the IV stays unused', async () => {
      const { agent, session, key } = await start(token, 'java');
      await agent.call('C_EncryptInit', { session, mechanism: withAad(empty), key });
      expect(await encrypt(agent, session, empty, null)).toBe(16);
      expect(await rvOf(encrypt(agent, session, empty, 16))).toBe('CKR_OPERATION_NOT_INITIALIZED');
      await agent.call('C_EncryptInit', { session, mechanism: withAad(plain), key });
      expect(await encrypt(agent, session, empty, 16)).toEqual(referenceTag(plain));
      expect(await agent.rv('C_EncryptInit', { session, mechanism: withAad(empty), key })).toBe(
        'CKR_MECHANISM_PARAM_INVALID',
      );
    });
  });

  test('an Init that is cancelled, or found to be wrong, uses up no IV', async () => {
    const { agent, session, key } = await start(token);
    await agent.call('C_EncryptInit', { session, mechanism: gcm, key });
    await agent.call('C_EncryptInit', { session, mechanism: null, key: 0 });
    await agent.call('C_EncryptInit', { session, mechanism: gcm, key });
    expect(await encrypt(agent, session, plain, 80)).toHaveLength(80);
  });

  test('a length query and a buffer that is too small keep the operation; the result ends it', async () => {
    const { agent, session, key } = await start(token);
    const [, mechanism, expected] = vectors[1] as (typeof vectors)[number];
    await agent.call('C_EncryptInit', { session, mechanism, key });
    expect(await encrypt(agent, session, plain, null)).toBe(64);
    expect(await encrypt(agent, session, plain, 63)).toBe(64);
    expect(await encrypt(agent, session, plain, 0)).toBe(64);
    expect(await encrypt(agent, session, plain, 64)).toEqual(expected);
    expect(await rvOf(encrypt(agent, session, plain, 64))).toBe('CKR_OPERATION_NOT_INITIALIZED');
  });

  test('a final part that does not fit is kept until it is fetched', async () => {
    const { agent, session, key } = await start(token);
    await agent.call('C_EncryptInit', { session, mechanism: padded, key });
    await agent.call('C_EncryptUpdate', { session, part: plain.subarray(0, 5), encryptedPart: room(32) });
    const final = async (capacity: number | null) => {
      const out = room(capacity);
      return given(out, await agent.call('C_EncryptFinal', { session, lastEncryptedPart: out }));
    };
    expect(await final(null)).toBe(16);
    expect(await final(3)).toBe(16);
    expect(await final(16)).toHaveLength(16);
    expect(await rvOf(final(16))).toBe('CKR_OPERATION_NOT_INITIALIZED');
  });

  test('an error ends the operation', async () => {
    const { agent, session, key } = await start(token);
    const [, mechanism] = vectors[1] as (typeof vectors)[number];
    await agent.call('C_EncryptInit', { session, mechanism, key });
    expect(await rvOf(encrypt(agent, session, plain.subarray(1), 64))).toBe('CKR_DATA_LEN_RANGE');
    expect(await rvOf(encrypt(agent, session, plain, 64))).toBe('CKR_OPERATION_NOT_INITIALIZED');
    await agent.call('C_DecryptInit', { session, mechanism, key });
    expect(await rvOf(decrypt(agent, session, plain.subarray(1), 64))).toBe('CKR_ENCRYPTED_DATA_LEN_RANGE');
  });

  test.each([
    ['CBC_PAD', padded, 32],
    ['GCM', gcm, 32],
  ] as const)('%s: what does not authenticate is CKR_ENCRYPTED_DATA_INVALID', async (_name, mechanism, length) => {
    const { agent, session, key } = await start(token);
    await agent.call('C_DecryptInit', { session, mechanism, key });
    expect(await rvOf(decrypt(agent, session, Buffer.alloc(length, 7), 64))).toBe('CKR_ENCRYPTED_DATA_INVALID');
    await agent.call('C_DecryptInit', { session, mechanism, key });
    expect(await rvOf(inParts(agent, session, 'decrypt', Buffer.alloc(length, 7), 16))).toBe(
      'CKR_ENCRYPTED_DATA_INVALID',
    );
    await agent.call('C_DecryptInit', { session, mechanism, key });
    expect(await rvOf(decrypt(agent, session, Buffer.alloc(8), 64))).toBe('CKR_ENCRYPTED_DATA_LEN_RANGE');
  });

  test('one operation of a kind; encryption and decryption side by side; a null mechanism cancels', async () => {
    const { agent, session, key } = await start(token);
    const [, mechanism, expected] = vectors[1] as (typeof vectors)[number];
    await agent.call('C_EncryptInit', { session, mechanism, key });
    expect(await agent.rv('C_EncryptInit', { session, mechanism, key })).toBe('CKR_OPERATION_ACTIVE');
    await agent.call('C_DecryptInit', { session, mechanism, key });
    expect(await decrypt(agent, session, expected, 64)).toEqual(plain);
    await agent.call('C_EncryptInit', { session, mechanism: null, key: 0 });
    expect(await rvOf(encrypt(agent, session, plain, 64))).toBe('CKR_OPERATION_NOT_INITIALIZED');
  });

  test('a message in one piece is refused by an operation that was given parts, and ends it', async () => {
    const { agent, session, key } = await start(token);
    const [, mechanism] = vectors[1] as (typeof vectors)[number];
    await agent.call('C_EncryptInit', { session, mechanism, key });
    await agent.call('C_EncryptUpdate', { session, part: plain, encryptedPart: room(64) });
    expect(await rvOf(encrypt(agent, session, plain, 64))).toBe('CKR_OPERATION_ACTIVE');
    expect(await agent.rv('C_EncryptFinal', { session, lastEncryptedPart: room(64) })).toBe(
      'CKR_OPERATION_NOT_INITIALIZED',
    );
    expect(await agent.rv('C_EncryptInit', { session, mechanism, key })).toBe('CKR_OK');
  });

  test.each<[string, Mechanism, string]>([
    ['a mechanism that is not carried', mech(CKM.DES3_CBC, bytes(iv)), 'CKR_MECHANISM_INVALID'],
    ['a mechanism for something else', mech(CKM.SHA256), 'CKR_MECHANISM_INVALID'],
    ['CBC without an IV', mech(CKM.AES_CBC), 'CKR_MECHANISM_PARAM_INVALID'],
    ['CBC with a short IV', mech(CKM.AES_CBC, bytes(iv.subarray(1))), 'CKR_MECHANISM_PARAM_INVALID'],
    ['ECB with a parameter', mech(CKM.AES_ECB, bytes(iv)), 'CKR_MECHANISM_PARAM_INVALID'],
    [
      'CTR with no counter',
      mech(CKM.AES_CTR, { kind: 'ctr', counterBits: 0, block: iv }),
      'CKR_MECHANISM_PARAM_INVALID',
    ],
    [
      'GCM with a short tag',
      mech(CKM.AES_GCM, { kind: 'gcm', iv, ivBits: 0, aad: Buffer.alloc(0), tagBits: 32 }),
      'CKR_MECHANISM_PARAM_INVALID',
    ],
  ])('Init refuses %s', async (_name, mechanism, rv) => {
    const { agent, session, key } = await start(token);
    expect(await agent.rv('C_EncryptInit', { session, mechanism, key })).toBe(rv);
    expect(await agent.rv('C_EncryptInit', { session, mechanism: gcm, key })).toBe('CKR_OK');
  });

  test('a key does what it may, with mechanisms of its type', async () => {
    const { agent, session } = await start(token);
    const make = (...rows: (readonly [number, AttributeValue])[]) =>
      agent.generate(session, CKM.AES_KEY_GEN, [CKA.VALUE_LEN, 16], [CKA.TOKEN, token], ...rows);
    const noEncrypt = await make([CKA.ENCRYPT, false]);
    expect(await agent.rv('C_EncryptInit', { session, mechanism: gcm, key: noEncrypt })).toBe(
      'CKR_KEY_FUNCTION_NOT_PERMITTED',
    );
    expect(await agent.rv('C_DecryptInit', { session, mechanism: gcm, key: noEncrypt })).toBe('CKR_OK');
    const onlyCbc = await make([CKA.ALLOWED_MECHANISMS, [CKM.AES_CBC]]);
    expect(await agent.rv('C_EncryptInit', { session, mechanism: gcm, key: onlyCbc })).toBe('CKR_MECHANISM_INVALID');
    const generic = await agent.generate(session, CKM.GENERIC_SECRET_KEY_GEN, [CKA.VALUE_LEN, 32], [CKA.TOKEN, token]);
    expect(await agent.rv('C_EncryptInit', { session, mechanism: gcm, key: generic })).toBe(
      'CKR_KEY_TYPE_INCONSISTENT',
    );
  });
});

describe('token keys as the service sees them', () => {
  const [, mechanism] = vectors[1] as (typeof vectors)[number];
  test("every Init asks once; the key's fixed properties are asked only the first time", async () => {
    const { agent, session, key } = await start(true);
    for (let i = 0; i < 3; i++) {
      await agent.call('C_EncryptInit', { session, mechanism, key });
      await encrypt(agent, session, plain, null);
      await encrypt(agent, session, plain, 64);
    }
    expect(Object.fromEntries(agent.service.asked)).toEqual({ info: 1, createObject: 1, checkUse: 3, encrypt: 3 });
  });
  test('a key destroyed elsewhere is noticed at the next Init, and by what runs', async () => {
    const { agent, session, key } = await start(true);
    await agent.call('C_EncryptInit', { session, mechanism, key });
    await agent.service.setState('mek', 'destroyed');
    expect(await rvOf(encrypt(agent, session, plain, 64))).toBe('CKR_KEY_HANDLE_INVALID');
    expect(await agent.rv('C_EncryptInit', { session, mechanism, key })).toBe('CKR_KEY_HANDLE_INVALID');
  });
  test('a disabled key is not permitted', async () => {
    const { agent, session, key } = await start(true);
    await agent.service.setState('mek', 'disabled');
    expect(await agent.rv('C_DecryptInit', { session, mechanism, key })).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
  });
  test('an outage is a device error, and over when it is over', async () => {
    const { agent, session, key } = await start(true);
    agent.service.failWith('unavailable');
    expect(await agent.rv('C_EncryptInit', { session, mechanism, key })).toBe('CKR_DEVICE_ERROR');
    agent.service.failWith(null);
    expect(await agent.rv('C_EncryptInit', { session, mechanism, key })).toBe('CKR_OK');
  });
  test('a session closed while the service is asked stays closed', async () => {
    const { agent, session, key } = await start(true);
    const release = agent.service.hold();
    const init = agent.rv('C_EncryptInit', { session, mechanism, key });
    await agent.call('C_CloseSession', { session });
    release();
    expect(await init).not.toBe('CKR_OK');
  });
});
