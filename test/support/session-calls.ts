// Calls of one PKCS#11 session that wrap, derive, sign and encrypt, with the templates and
// mechanisms that their tests share.
import { createPublicKey, type KeyObject } from 'node:crypto';
import type { Account } from '../../provider/agent/sessions/user-limits.ts';
import { CKA } from '../../provider/schema/attributes.ts';
import { CKG, HKDF_SALT } from '../../provider/schema/constants.ts';
import { CKM } from '../../provider/schema/mechanisms.ts';
import type { Mechanism, MechanismParameter } from '../../provider/schema/types.ts';
import { given, mech, room, startInProcess } from './in-process-agent.ts';
import { type Row, template } from './template.ts';

export { mech } from './in-process-agent.ts';
export { aesRows, type Row } from './template.ts';

export const onToken: Row = [CKA.TOKEN, true];
export const noDecrypt: Row = [CKA.DECRYPT, false];
export const extractable: Row = [CKA.EXTRACTABLE, true];
export const clear: Row[] = [[CKA.SENSITIVE, false], extractable];
/** The DER of the curve's object identifier. */
export const p256 = Buffer.from('06082a8648ce3d030107', 'hex');
/** A key's value that is not a secret. */
export const secret = Buffer.from(Array.from({ length: 32 }, (_, i) => i));
export const iv = Buffer.alloc(16, 3);
export const cbcPad = mech(CKM.AES_CBC_PAD, { kind: 'bytes', bytes: iv });
export const keyWrap = mech(CKM.AES_KEY_WRAP);
/** Every mechanism that wraps a secret key under one of AES. */
export const wrappings: readonly Mechanism[] = [
  keyWrap,
  mech(CKM.AES_KEY_WRAP_KWP),
  mech(CKM.AES_CBC, { kind: 'bytes', bytes: iv }),
  cbcPad,
];
export const oaepWith = (label: Uint8Array): Mechanism =>
  mech(CKM.RSA_PKCS_OAEP, { kind: 'oaep', hash: CKM.SHA256, mgf: CKG.MGF1_SHA256, source: 1, label });

/** HKDF with SHA-256 and both steps, without a salt. */
export const hkdfWith = (
  change: Partial<Extract<MechanismParameter, { kind: 'hkdf' }>> = {},
  type: number = CKM.HKDF_DERIVE,
): Mechanism =>
  mech(type, {
    kind: 'hkdf',
    extract: true,
    expand: true,
    hash: CKM.SHA256,
    saltType: HKDF_SALT.NULL,
    salt: Buffer.alloc(0),
    saltKey: 0,
    info: Buffer.alloc(0),
    ...change,
  });
export const salted = { saltType: HKDF_SALT.DATA, salt: Buffer.from('salt'), info: Buffer.from('info') };

/**
 * An agent in this process with a session of its own, and calls of that session with what each
 * needs.
 */
export const startSession = async (account?: Account) => {
  const agent = await startInProcess(account === undefined ? {} : { account });
  const session = await agent.open();
  const call = {
    agent,
    session,
    pair: (type: number, publicRows: Row[], privateRows: Row[] = [onToken]) =>
      agent.pair(session, type, publicRows, privateRows),
    create: (...rows: Row[]) => agent.create(session, ...rows),
    generate: (...rows: Row[]) => agent.generate(session, CKM.AES_KEY_GEN, [CKA.VALUE_LEN, 32], ...rows),
    async wrap(mechanism: Mechanism, wrappingKey: number, key: number): Promise<Buffer> {
      const wrappedKey = room(4096);
      return given(
        wrappedKey,
        await agent.call('C_WrapKey', { session, mechanism, wrappingKey, key, wrappedKey }),
      ) as Buffer;
    },
    unwrap: (mechanism: Mechanism, unwrappingKey: number, wrappedKey: Uint8Array, ...rows: Row[]) =>
      agent.unwrap(session, mechanism, unwrappingKey, wrappedKey, ...rows),
    derive: (mechanism: Mechanism, baseKey: number, ...rows: Row[]) =>
      agent.derive(session, mechanism, baseKey, ...rows),
    read: async (object: number, ...types: number[]) => (await agent.read(session, object, ...types)).values,
    /** One attribute that is bytes. */
    async bytes(object: number, type: number): Promise<Buffer> {
      const [value] = await call.read(object, type);
      return Buffer.from(value as Uint8Array);
    },
    value: (object: number): Promise<Buffer> => call.bytes(object, CKA.VALUE),
    async node(object: number): Promise<KeyObject> {
      const key = await call.bytes(object, CKA.PUBLIC_KEY_INFO);
      return createPublicKey({ key, format: 'der', type: 'spki' });
    },
    copy: (object: number, ...rows: Row[]) => agent.copy(session, object, ...rows),
    set: (object: number, ...rows: Row[]) =>
      agent.call('C_SetAttributeValue', { session, object, template: template(...rows) }),
    async encrypt(mechanism: Mechanism, key: number, plain: Uint8Array): Promise<Buffer> {
      await agent.call('C_EncryptInit', { session, mechanism, key });
      const encryptedData = room(1024);
      return given(encryptedData, await agent.call('C_Encrypt', { session, data: plain, encryptedData })) as Buffer;
    },
    async decrypt(mechanism: Mechanism, key: number, encryptedData: Uint8Array): Promise<Buffer> {
      await agent.call('C_DecryptInit', { session, mechanism, key });
      const out = room(1024);
      return given(out, await agent.call('C_Decrypt', { session, encryptedData, data: out })) as Buffer;
    },
    async sign(mechanism: Mechanism, key: number, message: Uint8Array): Promise<Buffer> {
      await agent.call('C_SignInit', { session, mechanism, key });
      const signature = room(1024);
      return given(signature, await agent.call('C_Sign', { session, data: message, signature })) as Buffer;
    },
    async signInParts(mechanism: Mechanism, key: number, message: Buffer): Promise<Buffer> {
      await agent.call('C_SignInit', { session, mechanism, key });
      for (const byte of message) await agent.call('C_SignUpdate', { session, part: Buffer.of(byte) });
      const signature = room(1024);
      return given(signature, await agent.call('C_SignFinal', { session, signature })) as Buffer;
    },
    async verify(mechanism: Mechanism, key: number, message: Uint8Array, signature: Uint8Array): Promise<string> {
      await agent.call('C_VerifyInit', { session, mechanism, key });
      return agent.rv('C_Verify', { session, data: message, signature });
    },
  };
  return call;
};

export type SessionCalls = Awaited<ReturnType<typeof startSession>>;

/** How many calls of another process are answered before `slow` is. */
export const answeredDuring = async (other: SessionCalls, slow: () => Promise<unknown>): Promise<number> => {
  let over = false;
  const outcome = slow().finally(() => {
    over = true;
  });
  let answered = 0;
  while (!over) {
    await other.agent.call('C_GenerateRandom', { session: other.session, random: room(32) });
    if (!over) answered += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await outcome;
  return answered;
};
