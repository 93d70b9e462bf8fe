// Message-based encryption and decryption under AES-GCM: PKCS#11 3.0, sections 5.9 and 5.11,
// mechanisms 2.12.3. The reference is Node's own AES-GCM.
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKF, CKG_IV } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { MessageParameter, MessageResult } from '../../../provider/schema/types.ts';
import { given, type InProcessAgent, room, rvOf } from '../../support/in-process-agent.ts';
import { aesRows, mech, startSession } from '../../support/session-calls.ts';
import { places, template } from '../../support/template.ts';

const value = Buffer.from('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 'hex');
const plain = Buffer.from('The quick brown fox jumps over the lazy dog, message after message.');
const aad = Buffer.from('what is not secret, and not to be changed');
const nothing = Buffer.alloc(0);
const mechanism = mech(CKM.AES_GCM);

const parameter = (more: Partial<MessageParameter> = {}): MessageParameter => ({
  kind: 'gcm',
  iv: Buffer.alloc(12, 7),
  ivFixedBits: 0,
  ivGenerator: CKG_IV.NO_GENERATE,
  tag: nothing,
  tagBits: 128,
  ...more,
});

const reference = (iv: Uint8Array, data: Uint8Array, tagLength = 16) => {
  const cipher = createCipheriv('aes-256-gcm', value, iv, { authTagLength: tagLength }).setAAD(aad);
  return { sealed: Buffer.concat([cipher.update(data), cipher.final()]), tag: cipher.getAuthTag() };
};
const opened = (iv: Uint8Array, sealed: Uint8Array, tag: Uint8Array): Buffer => {
  const decipher = createDecipheriv('aes-256-gcm', value, iv).setAAD(aad).setAuthTag(tag);
  return Buffer.concat([decipher.update(sealed), decipher.final()]);
};

const start = async (token: boolean) => {
  const { agent, session } = await startSession();
  const key = await agent.create(
    session,
    ...aesRows,
    [CKA.VALUE, value],
    [CKA.TOKEN, token],
    [CKA.LABEL, Buffer.from('messages')],
  );
  return { agent, session, key };
};

const seal = async (
  agent: InProcessAgent,
  session: number,
  more: Partial<MessageParameter>,
  capacity: number | null,
) => {
  const ciphertext = room(capacity);
  const input = { session, parameter: parameter(more), associatedData: aad, plaintext: plain, ciphertext };
  const output = await agent.call('C_EncryptMessage', input);
  return { bytes: given(ciphertext, output.ciphertext), ...output.parameter };
};
const open = async (
  agent: InProcessAgent,
  session: number,
  more: Partial<MessageParameter>,
  sealed: Uint8Array,
  capacity: number | null = 200,
) => {
  const out = room(capacity);
  const input = { session, parameter: parameter(more), associatedData: aad, ciphertext: sealed, plaintext: out };
  return given(out, await agent.call('C_DecryptMessage', input));
};

describe.each(places)('with a %s key', (_where, token) => {
  test('messages follow each other under one Init, each with its IV and tag', async () => {
    const { agent, session, key } = await start(token);
    await agent.call('C_MessageEncryptInit', { session, mechanism, key });
    await agent.call('C_MessageDecryptInit', { session, mechanism, key });
    for (const [fill, tagBits] of [
      [1, 128],
      [2, 96],
      [3, 120],
    ] as const) {
      const iv = Buffer.alloc(12, fill);
      const { sealed, tag } = reference(iv, plain, tagBits / 8);
      expect(await seal(agent, session, { iv, tagBits }, plain.length)).toEqual({ bytes: sealed, iv: null, tag });
      expect(await open(agent, session, { iv, tagBits, tag }, sealed)).toEqual(plain);
    }
    await agent.call('C_MessageEncryptFinal', { session });
    await agent.call('C_MessageDecryptFinal', { session });
    expect(await rvOf(seal(agent, session, {}, 200))).toBe('CKR_OPERATION_NOT_INITIALIZED');
  });

  test('a message in parts is the same message', async () => {
    const { agent, session, key } = await start(token);
    const iv = Buffer.alloc(12, 9);
    const { sealed, tag } = reference(iv, plain);
    await agent.call('C_MessageEncryptInit', { session, mechanism, key });
    await agent.call('C_EncryptMessageBegin', { session, parameter: parameter({ iv }), associatedData: aad });
    const parts: Buffer[] = [];
    let last: MessageResult | null = null;
    for (const [from, to] of [
      [0, 10],
      [10, 10],
      [10, plain.length],
    ] as const) {
      const out = room(100);
      const output = await agent.call('C_EncryptMessageNext', {
        session,
        parameter: parameter({ iv }),
        plaintextPart: plain.subarray(from, to),
        ciphertextPart: out,
        flags: to === plain.length ? CKF.END_OF_MESSAGE : 0,
      });
      parts.push(given(out, output.ciphertextPart) as Buffer);
      last = output.parameter;
    }
    expect(Buffer.concat(parts)).toEqual(sealed);
    expect(last).toEqual({ iv: null, tag });

    await agent.call('C_MessageDecryptInit', { session, mechanism, key });
    for (const spoil of [false, true]) {
      await agent.call('C_DecryptMessageBegin', { session, parameter: parameter({ iv }), associatedData: aad });
      const next = async (part: Buffer, flags: number, capacity: number | null) => {
        const out = room(capacity);
        const input = { session, parameter: parameter({ iv, tag }), ciphertextPart: part, plaintextPart: out, flags };
        return given(out, await agent.call('C_DecryptMessageNext', input));
      };
      // There is no output before the tag is checked.
      const first = Buffer.from(sealed.subarray(0, 30));
      if (spoil) first[3] = (first[3] ?? 0) ^ 1;
      expect(await next(first, 0, 100)).toEqual(nothing);
      const rest = sealed.subarray(30);
      expect(await next(rest, CKF.END_OF_MESSAGE, null)).toBe(plain.length);
      expect(await next(rest, CKF.END_OF_MESSAGE, 5)).toBe(plain.length);
      if (spoil) {
        expect(await rvOf(next(rest, CKF.END_OF_MESSAGE, 100))).toBe('CKR_AEAD_DECRYPT_FAILED');
      } else {
        expect(await next(rest, CKF.END_OF_MESSAGE, 100)).toEqual(plain);
      }
      expect(await rvOf(next(rest, 0, 100))).toBe('CKR_OPERATION_NOT_INITIALIZED');
    }
  });

  test.each(['GENERATE', 'GENERATE_RANDOM'] as const)('CKG_%s makes an IV that opens what it sealed', async (name) => {
    const { agent, session, key } = await start(token);
    await agent.call('C_MessageEncryptInit', { session, mechanism, key });
    const ivs = new Set<string>();
    for (let i = 0; i < 20; i++) {
      const made = await seal(agent, session, { ivGenerator: CKG_IV[name] }, 200);
      const { iv, tag, bytes } = made;
      if (iv === null || tag === null) return expect.fail('an IV and a tag come back');
      expect(iv).toHaveLength(12);
      ivs.add(Buffer.from(iv).toString('hex'));
      expect(opened(iv, bytes as Buffer, tag)).toEqual(plain);
    }
    expect(ivs.size).toBe(20);
  });

  test('a generated IV keeps its fixed bits, also when they end inside a byte', async () => {
    const { agent, session, key } = await start(token);
    await agent.call('C_MessageEncryptInit', { session, mechanism, key });
    const iv = Buffer.alloc(16, 0xff);
    const made = await seal(agent, session, { iv, ivFixedBits: 30, ivGenerator: CKG_IV.GENERATE }, 200);
    const bits = Buffer.from(made.iv ?? nothing).readUInt32BE(0);
    expect(bits >>> 2).toBe(0x3fff_ffff);
    expect(made.iv).toHaveLength(16);
  });

  test('an IV is used once by a key, in whatever session and by whatever function that takes one', async () => {
    const { agent, session, key } = await start(token);
    const other = await agent.open();
    for (const each of [session, other]) await agent.call('C_MessageEncryptInit', { session: each, mechanism, key });
    await seal(agent, session, {}, 200);
    expect(await rvOf(seal(agent, other, {}, 200))).toBe('CKR_MECHANISM_PARAM_INVALID');
    expect(await agent.rv('C_EncryptMessageBegin', { session, parameter: parameter(), associatedData: nothing })).toBe(
      'CKR_MECHANISM_PARAM_INVALID',
    );
    const { iv } = parameter();
    const gcm = { kind: 'gcm', iv, ivBits: 96, aad, tagBits: 128 } as const;
    expect(await agent.rv('C_EncryptInit', { session, mechanism: mech(CKM.AES_GCM, gcm), key })).toBe(
      'CKR_MECHANISM_PARAM_INVALID',
    );
    // The operations continue.
    await seal(agent, other, { iv: Buffer.alloc(12, 8) }, 200);
  });

  test('a length query and a buffer that is too small use up no IV', async () => {
    const { agent, session, key } = await start(token);
    await agent.call('C_MessageEncryptInit', { session, mechanism, key });
    expect((await seal(agent, session, {}, null)).bytes).toBe(plain.length);
    expect(await seal(agent, session, {}, 3)).toMatchObject({ bytes: plain.length, iv: null, tag: null });
    expect((await seal(agent, session, {}, plain.length)).bytes).toHaveLength(plain.length);
  });

  test('what does not authenticate is CKR_AEAD_DECRYPT_FAILED, and the next message is opened', async () => {
    const { agent, session, key } = await start(token);
    const iv = Buffer.alloc(12, 4);
    const { sealed, tag } = reference(iv, plain);
    await agent.call('C_MessageDecryptInit', { session, mechanism, key });
    expect(await rvOf(open(agent, session, { iv, tag: Buffer.alloc(16) }, sealed))).toBe('CKR_AEAD_DECRYPT_FAILED');
    expect(await rvOf(open(agent, session, { iv, tag: Buffer.alloc(12) }, sealed))).toBe('CKR_MECHANISM_PARAM_INVALID');
    expect(await open(agent, session, { iv, tag }, sealed, null)).toBe(plain.length);
    expect(await open(agent, session, { iv, tag }, sealed)).toEqual(plain);
  });

  test('states: one operation of a kind, one message at a time, a null mechanism and C_SessionCancel end it', async () => {
    const { agent, session, key } = await start(token);
    const init = (to: typeof mechanism | null = mechanism) =>
      agent.rv('C_MessageEncryptInit', { session, mechanism: to, key });
    const begin = (fill: number) => {
      const input = { session, parameter: parameter({ iv: Buffer.alloc(12, fill) }), associatedData: nothing };
      return agent.rv('C_EncryptMessageBegin', input);
    };
    expect(await begin(1)).toBe('CKR_OPERATION_NOT_INITIALIZED');
    expect(await agent.rv('C_MessageEncryptFinal', { session })).toBe('CKR_OPERATION_NOT_INITIALIZED');
    expect(await init()).toBe('CKR_OK');
    expect(await init()).toBe('CKR_OPERATION_ACTIVE');
    // Beside an operation of 2.40.
    expect(
      await agent.rv('C_EncryptInit', {
        session,
        mechanism: mech(CKM.AES_ECB),
        key,
      }),
    ).toBe('CKR_OK');
    expect(await begin(2)).toBe('CKR_OK');
    expect(await begin(3)).toBe('CKR_OPERATION_ACTIVE');
    expect(await rvOf(seal(agent, session, { iv: Buffer.alloc(12, 4) }, 200))).toBe('CKR_OPERATION_ACTIVE');
    expect(await agent.rv('C_MessageEncryptFinal', { session })).toBe('CKR_OPERATION_ACTIVE');
    expect(await init(null)).toBe('CKR_OK');
    expect(await begin(5)).toBe('CKR_OPERATION_NOT_INITIALIZED');
    expect(await init()).toBe('CKR_OK');
    expect(await agent.rv('C_SessionCancel', { session, flags: CKF.MESSAGE_ENCRYPT })).toBe('CKR_OK');
    expect(await begin(6)).toBe('CKR_OPERATION_NOT_INITIALIZED');
  });

  test('an error inside a message ends the message and not the operation', async () => {
    const { agent, session, key } = await start(token);
    await agent.call('C_MessageEncryptInit', { session, mechanism, key });
    await agent.call('C_EncryptMessageBegin', { session, parameter: parameter(), associatedData: nothing });
    const next = (tagBits: number) =>
      agent.rv('C_EncryptMessageNext', {
        session,
        parameter: parameter({ tagBits }),
        plaintextPart: plain,
        ciphertextPart: room(200),
        flags: CKF.END_OF_MESSAGE,
      });
    expect(await next(96)).toBe('CKR_MECHANISM_PARAM_INVALID');
    expect(await next(128)).toBe('CKR_OPERATION_NOT_INITIALIZED');
    expect((await seal(agent, session, { iv: Buffer.alloc(12, 8) }, 200)).bytes).toHaveLength(plain.length);
  });

  test.each([
    ['a tag of 64 bits', { tagBits: 64 }],
    ['a tag of 100 bits', { tagBits: 100 }],
    ['no IV', { iv: nothing }],
    ['a generator that is none', { ivGenerator: 9 }],
    ['more fixed bits than there are', { ivFixedBits: 97, ivGenerator: CKG_IV.GENERATE }],
    ['so many fixed bits that few are left', { ivFixedBits: 72, ivGenerator: CKG_IV.GENERATE }],
  ] as const)('refuses %s', async (_name, more) => {
    const { agent, session, key } = await start(token);
    await agent.call('C_MessageEncryptInit', { session, mechanism, key });
    expect(await rvOf(seal(agent, session, more, 200))).toBe('CKR_MECHANISM_PARAM_INVALID');
  });
});

describe('counters', () => {
  test('count from zero behind the fixed bits, and continue in the next operation', async () => {
    const { agent, session, key } = await start(false);
    const iv = Buffer.from('0a0b0c0dffffffffffffffff', 'hex');
    const more = { iv, ivFixedBits: 32, ivGenerator: CKG_IV.GENERATE_COUNTER };
    const made: string[] = [];
    for (let i = 0; i < 2; i++) {
      await agent.call('C_MessageEncryptInit', { session, mechanism, key });
      for (let j = 0; j < 2; j++) {
        const message = await seal(agent, session, more, 200);
        made.push(Buffer.from(message.iv ?? nothing).toString('hex'));
      }
      await agent.call('C_MessageEncryptFinal', { session });
    }
    expect(made).toEqual([0, 1, 2, 3].map((count) => `0a0b0c0d${String(count).padStart(16, '0')}`));
  });
  test('with XOR they change the bits that the caller gave, which stay the same from call to call', async () => {
    const { agent, session, key } = await start(false);
    const iv = Buffer.from('0a0b0c0d00000000000000f0', 'hex');
    const more = { iv, ivFixedBits: 32, ivGenerator: CKG_IV.GENERATE_COUNTER_XOR };
    await agent.call('C_MessageEncryptInit', { session, mechanism, key });
    const made: string[] = [];
    for (let j = 0; j < 3; j++)
      made.push(Buffer.from((await seal(agent, session, more, 200)).iv ?? nothing).toString('hex'));
    expect(made).toEqual(['f0', 'f1', 'f2'].map((last) => `0a0b0c0d00000000000000${last}`));
  });
  test('are refused for a key that other processes use too', async () => {
    const { agent, session, key } = await start(true);
    await agent.call('C_MessageEncryptInit', { session, mechanism, key });
    for (const ivGenerator of [CKG_IV.GENERATE_COUNTER, CKG_IV.GENERATE_COUNTER_XOR]) {
      expect(await rvOf(seal(agent, session, { ivGenerator }, 200))).toBe('CKR_MECHANISM_PARAM_INVALID');
    }
  });
});

describe('with the service', () => {
  test('while a message is there, the operation is busy; once logged out, it is over', async () => {
    const { agent, session, key } = await start(true);
    await agent.call('C_MessageEncryptInit', { session, mechanism, key });
    const release = agent.service.hold();
    const message = seal(agent, session, {}, 200);
    expect(await rvOf(seal(agent, session, { iv: Buffer.alloc(12, 3) }, 200))).toBe('CKR_OPERATION_ACTIVE');
    expect(await agent.rv('C_MessageEncryptInit', { session, mechanism, key })).toBe('CKR_OPERATION_ACTIVE');
    await agent.call('C_Logout', { session });
    release();
    expect((await message).bytes).toHaveLength(plain.length);
    expect(await rvOf(seal(agent, session, { iv: Buffer.alloc(12, 3) }, 200))).toBe('CKR_OPERATION_NOT_INITIALIZED');
  });
  test('an outage ends the message and not the operation', async () => {
    const { agent, session, key } = await start(true);
    await agent.call('C_MessageEncryptInit', { session, mechanism, key });
    agent.service.failWith('unavailable');
    expect(await rvOf(seal(agent, session, {}, 200))).toBe('CKR_DEVICE_ERROR');
    agent.service.failWith(null);
    expect((await seal(agent, session, { iv: Buffer.alloc(12, 3) }, 200)).bytes).toHaveLength(plain.length);
  });
});

describe('a key that wraps what is sensitive does not open messages', () => {
  const wrapping = mech(CKM.AES_KEY_WRAP);
  const startWrapping = async () => {
    const { agent, session } = await start(false);
    const generate = (...rows: (readonly [number, boolean])[]) =>
      agent.generate(session, CKM.AES_KEY_GEN, [CKA.VALUE_LEN, 32], ...rows);
    const key = await generate();
    const sensitive = await generate([CKA.EXTRACTABLE, true]);
    const mayDecrypt = (decrypt: boolean) =>
      agent.call('C_SetAttributeValue', { session, object: key, template: template([CKA.DECRYPT, decrypt]) });
    const wrap = () =>
      agent.rv('C_WrapKey', { session, mechanism: wrapping, wrappingKey: key, key: sensitive, wrappedKey: room(99) });
    return { agent, session, key, mayDecrypt, wrap };
  };
  test('nor wraps it while it does', async () => {
    const { agent, session, key, mayDecrypt, wrap } = await startWrapping();
    await agent.call('C_MessageDecryptInit', { session, mechanism, key });
    await mayDecrypt(false);
    expect(await wrap()).toBe('CKR_KEY_NOT_WRAPPABLE');
    await agent.call('C_MessageDecryptFinal', { session });
    expect(await wrap()).toBe('CKR_OK');
  });
  test('whatever its attributes come to say', async () => {
    const { agent, session, key, mayDecrypt, wrap } = await startWrapping();
    await mayDecrypt(false);
    expect(await wrap()).toBe('CKR_OK');
    await mayDecrypt(true);
    expect(await agent.rv('C_MessageDecryptInit', { session, mechanism, key })).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
  });
});

test('other mechanisms, and keys that may not, are refused at Init', async () => {
  const { agent, session, key } = await start(false);
  const rv = (type: number) => agent.rv('C_MessageEncryptInit', { session, mechanism: mech(type), key });
  expect(await rv(CKM.AES_CTR)).toBe('CKR_MECHANISM_INVALID');
  expect(await rv(CKM.SHA256)).toBe('CKR_MECHANISM_INVALID');
  await agent.call('C_SetAttributeValue', { session, object: key, template: template([CKA.ENCRYPT, false]) });
  expect(await rv(CKM.AES_GCM)).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
  expect(await agent.rv('C_MessageDecryptInit', { session, mechanism, key })).toBe('CKR_OK');
});
