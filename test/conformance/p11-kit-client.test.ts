// Our agent against a library that is not ours: Debian's p11-kit-client.so.
import pkcs11js from 'pkcs11js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AgentProcess, startAgent } from '../support/agent-process.ts';
import { sharedFolder } from '../support/folders.ts';
import { client } from '../support/p11-kit.ts';
import { rvOf, type ServiceProcess, startService, writeConfig } from '../support/pkcs11-host.ts';

describe.runIf(client !== undefined)('p11-kit-client.so against the agent', () => {
  const pkcs11 = new pkcs11js.PKCS11();
  const folder = sharedFolder();
  let service: ServiceProcess;
  let agent: AgentProcess;
  let session: Buffer;

  beforeAll(async () => {
    service = await startService();
    // A foreign peer names no configuration: the agent takes its own.
    agent = await startAgent(folder, { environment: { DKE_PKCS11_CONF: writeConfig(folder, service) } });
    process.env.P11_KIT_SERVER_ADDRESS = `unix:path=${agent.socket}`;
    pkcs11.load(client ?? '');
    // p11-kit insists on the system’s locks.
    pkcs11.C_Initialize({ flags: pkcs11js.CKF_OS_LOCKING_OK });
    const [slot] = pkcs11.C_GetSlotList(true);
    if (slot === undefined) throw new Error('no slot');
    session = pkcs11.C_OpenSession(slot, pkcs11js.CKF_SERIAL_SESSION | pkcs11js.CKF_RW_SESSION);
    pkcs11.C_Login(session, pkcs11js.CKU_USER, 'anything');
  });
  afterAll(async () => {
    pkcs11.C_Finalize();
    pkcs11.close();
    await agent.stop();
    await service.stop();
  });

  test('a token key is generated, found, used and destroyed', () => {
    const key = pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [
      { type: pkcs11js.CKA_LABEL, value: 'foreign' },
      { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
      { type: pkcs11js.CKA_TOKEN, value: true },
      { type: pkcs11js.CKA_SENSITIVE, value: true },
      { type: pkcs11js.CKA_ENCRYPT, value: true },
      { type: pkcs11js.CKA_DECRYPT, value: true },
    ]);
    pkcs11.C_FindObjectsInit(session, [{ type: pkcs11js.CKA_LABEL, value: 'foreign' }]);
    expect(pkcs11.C_FindObjects(session, 5)).toEqual([key]);
    pkcs11.C_FindObjectsFinal(session);
    const data = Buffer.alloc(48, 7);
    pkcs11.C_EncryptInit(session, { mechanism: pkcs11js.CKM_AES_ECB }, key);
    const encrypted = pkcs11.C_Encrypt(session, data, Buffer.alloc(48));
    pkcs11.C_DecryptInit(session, { mechanism: pkcs11js.CKM_AES_ECB }, key);
    expect(pkcs11.C_Decrypt(session, encrypted, Buffer.alloc(48))).toEqual(data);
    expect(rvOf(() => pkcs11.C_GetAttributeValue(session, key, [{ type: pkcs11js.CKA_VALUE }]))).toBe(
      'CKR_ATTRIBUTE_SENSITIVE',
    );
    pkcs11.C_DestroyObject(session, key);
  });

  test('a pair of keys is made, and signs with PSS, whose parameter p11-kit knows', () => {
    const mechanism = { mechanism: pkcs11js.CKM_RSA_PKCS_KEY_PAIR_GEN };
    const bits = [{ type: pkcs11js.CKA_MODULUS_BITS, value: 2048 }];
    const { publicKey, privateKey } = pkcs11.C_GenerateKeyPair(session, mechanism, bits, []);
    const parameter = {
      type: pkcs11js.CK_PARAMS_RSA_PSS,
      hashAlg: pkcs11js.CKM_SHA256,
      mgf: pkcs11js.CKG_MGF1_SHA256,
      saltLen: 32,
    };
    const pss = { mechanism: pkcs11js.CKM_RSA_PKCS_PSS, parameter };
    pkcs11.C_SignInit(session, pss, privateKey);
    const signature = pkcs11.C_Sign(session, Buffer.alloc(32, 1), Buffer.alloc(256));
    pkcs11.C_VerifyInit(session, pss, publicKey);
    expect(pkcs11.C_Verify(session, Buffer.alloc(32, 1), signature)).toBe(true);
  });

  test('digests and random numbers work', () => {
    pkcs11.C_DigestInit(session, { mechanism: pkcs11js.CKM_SHA256 });
    expect(pkcs11.C_Digest(session, Buffer.from('abc'), Buffer.alloc(32)).toString('hex')).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    );
    expect(pkcs11.C_GenerateRandom(session, Buffer.alloc(64)).equals(Buffer.alloc(64))).toBe(false);
  });
});

if (client === undefined) console.log('skipped: p11-kit-client.so is not installed');
