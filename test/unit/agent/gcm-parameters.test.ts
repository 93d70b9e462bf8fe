// CK_GCM_PARAMS at its limits, with keys of the session and of the token (PKCS#11 2.40, mechanisms
// 2.10.2; SP 800-38D, section 5.2.1): IVs of every accepted length, tags, and additional data.
// Node's own cryptography is the other side.
import { createCipheriv } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { Mechanism } from '../../../provider/schema/types.ts';
import { given, room } from '../../support/in-process-agent.ts';
import { aesRows, mech, startSession } from '../../support/session-calls.ts';
import { places } from '../../support/template.ts';

const value = Buffer.alloc(32, 5);
const plain = Buffer.from('what is to be kept from everybody else');
const gcm = (iv: Uint8Array, aad: Uint8Array, tagBits: number): Mechanism =>
  mech(CKM.AES_GCM, { kind: 'gcm', iv, ivBits: iv.length * 8, aad, tagBits });
/** Never twice the same. */
const ivOf = (length: number, seed = 0): Buffer => Buffer.alloc(length, 1 + (seed % 255));
const byNode = (iv: Uint8Array, aad: Uint8Array, tagBits: number): Buffer => {
  const cipher = createCipheriv('aes-256-gcm', value, iv, { authTagLength: tagBits / 8 }).setAAD(aad);
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
};

describe.each(places)('CK_GCM_PARAMS with a key of the %s', async (_where, onToken) => {
  const { agent, session } = await startSession();
  const key = await agent.create(session, ...aesRows, [CKA.VALUE, value], [CKA.TOKEN, onToken]);

  const encrypt = async (mechanism: Mechanism): Promise<Buffer> => {
    await agent.call('C_EncryptInit', { session, mechanism, key });
    const encryptedData = room(200);
    return given(encryptedData, await agent.call('C_Encrypt', { session, data: plain, encryptedData })) as Buffer;
  };
  const decrypt = async (mechanism: Mechanism, encryptedData: Buffer): Promise<Buffer> => {
    await agent.call('C_DecryptInit', { session, mechanism, key });
    const data = room(200);
    return given(data, await agent.call('C_Decrypt', { session, encryptedData, data })) as Buffer;
  };
  const agrees = async (iv: Buffer, aad: Buffer, tagBits: number): Promise<void> => {
    const sealed = await encrypt(gcm(iv, aad, tagBits));
    expect(sealed).toEqual(byNode(iv, aad, tagBits));
    expect(await decrypt(gcm(iv, aad, tagBits), sealed)).toEqual(plain);
  };
  const none = Buffer.alloc(0);

  test.each([1, 7, 8, 11, 12, 13, 15, 16, 17, 60, 127, 128])('takes an IV of %d bytes', (length) =>
    agrees(ivOf(length), Buffer.from('more'), 128),
  );
  test.each([96, 104, 112, 120, 128])('makes and checks a tag of %d bits', (tagBits) =>
    agrees(ivOf(12, tagBits), none, tagBits),
  );
  test.each([0, 1, 15, 16, 17, 4096, 65_535, 65_536])('authenticates %d bytes of additional data', (length) =>
    agrees(ivOf(16, 7 + (length % 97)), Buffer.alloc(length, 3), 128),
  );
  test.each<[string, number, number]>([
    ['no IV', 0, 128],
    ['an IV of 129 bytes', 129, 128],
    ['an IV of 256 bytes', 256, 128],
    ['no tag', 12, 0],
    ['a tag of 32 bits', 12, 32],
    ['a tag of 88 bits', 12, 88],
    ['a tag of 100 bits', 12, 100],
    ['a tag of 136 bits', 12, 136],
  ])('refuses %s in both directions', async (_what, length, tagBits) => {
    const mechanism = gcm(ivOf(length, 200), none, tagBits);
    for (const name of ['C_EncryptInit', 'C_DecryptInit'] as const)
      expect(await agent.rv(name, { session, mechanism, key })).toBe('CKR_MECHANISM_PARAM_INVALID');
  });
  test('a bit changed in the IV, the additional data or the tag opens nothing', async () => {
    const [iv, aad] = [ivOf(20, 3), Buffer.from('beside')];
    const sealed = await encrypt(gcm(iv, aad, 96));
    const other = (bytes: Buffer): Buffer =>
      Buffer.from(bytes.map((byte, at) => (at === bytes.length - 1 ? byte ^ 1 : byte)));
    await expect(decrypt(gcm(other(iv), aad, 96), sealed)).rejects.toThrow('CKR_ENCRYPTED_DATA_INVALID');
    await expect(decrypt(gcm(iv, other(aad), 96), sealed)).rejects.toThrow('CKR_ENCRYPTED_DATA_INVALID');
    await expect(decrypt(gcm(iv, aad, 96), other(sealed))).rejects.toThrow('CKR_ENCRYPTED_DATA_INVALID');
    expect(await decrypt(gcm(iv, aad, 96), sealed)).toEqual(plain);
  });
});
