// Our library against an agent that is not ours: `p11-kit server` over SoftHSM2.
import pkcs11js from 'pkcs11js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CKS } from '../../provider/schema/constants.ts';
import { sharedFolder } from '../support/folders.ts';
import { missingForServer, type Server, startServer } from '../support/p11-kit.ts';
import { library, rvOf } from '../support/pkcs11-host.ts';

const missing = missingForServer();

describe.runIf(missing === null)('libdke_pkcs11.so against p11-kit server', () => {
  const pkcs11 = new pkcs11js.PKCS11();
  const folder = sharedFolder();
  let server: Server;
  let session: Buffer;

  beforeAll(async () => {
    server = await startServer(folder);
    process.env.DKE_PKCS11_SOCKET = server.socket;
    pkcs11.load(library);
    pkcs11.C_Initialize();
    const slot = pkcs11.C_GetSlotList(true).find((each) => pkcs11.C_GetTokenInfo(each).label.trim() === 'peer');
    if (slot === undefined) throw new Error('the token cannot be found');
    session = pkcs11.C_OpenSession(slot, pkcs11js.CKF_SERIAL_SESSION | pkcs11js.CKF_RW_SESSION);
  });
  afterAll(async () => {
    pkcs11.C_Finalize();
    pkcs11.close();
    await server.stop();
  });

  test('C_Login takes the PIN to the token', () => {
    expect(rvOf(() => pkcs11.C_Login(session, pkcs11js.CKU_USER, 'wrong'))).toBe('CKR_PIN_INCORRECT');
    expect(rvOf(() => pkcs11.C_Login(session, pkcs11js.CKU_USER, '1234'))).toBe('CKR_OK');
    expect(pkcs11.C_GetSessionInfo(session).state).toBe(CKS.RW_USER_FUNCTIONS);
  });

  test('a key is generated, found, read, used and destroyed', () => {
    const key = pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [
      { type: pkcs11js.CKA_LABEL, value: 'a key' },
      { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
      { type: pkcs11js.CKA_TOKEN, value: true },
      { type: pkcs11js.CKA_ENCRYPT, value: true },
      { type: pkcs11js.CKA_DECRYPT, value: true },
    ]);
    pkcs11.C_FindObjectsInit(session, [{ type: pkcs11js.CKA_LABEL, value: 'a key' }]);
    expect(pkcs11.C_FindObjects(session, 5)).toEqual([key]);
    pkcs11.C_FindObjectsFinal(session);

    const [label, length] = pkcs11.C_GetAttributeValue(session, key, [
      { type: pkcs11js.CKA_LABEL },
      { type: pkcs11js.CKA_VALUE_LEN },
    ]);
    expect(String(label?.value)).toBe('a key');
    expect(Number(length?.value?.at(0))).toBe(32);
    expect(rvOf(() => pkcs11.C_GetAttributeValue(session, key, [{ type: pkcs11js.CKA_VALUE }]))).toBe(
      'CKR_ATTRIBUTE_SENSITIVE',
    );

    const data = Buffer.from('sixteen bytes...'.repeat(3));
    pkcs11.C_EncryptInit(session, { mechanism: pkcs11js.CKM_AES_ECB }, key);
    const encrypted = pkcs11.C_Encrypt(session, data, Buffer.alloc(64));
    pkcs11.C_DecryptInit(session, { mechanism: pkcs11js.CKM_AES_ECB }, key);
    expect(pkcs11.C_Decrypt(session, encrypted, Buffer.alloc(64))).toEqual(data);
    pkcs11.C_DestroyObject(session, key);
    expect(rvOf(() => pkcs11.C_DestroyObject(session, key))).toBe('CKR_OBJECT_HANDLE_INVALID');
  });

  test('a key pair signs with a structured parameter', () => {
    const { publicKey, privateKey } = pkcs11.C_GenerateKeyPair(
      session,
      { mechanism: pkcs11js.CKM_RSA_PKCS_KEY_PAIR_GEN },
      [
        { type: pkcs11js.CKA_MODULUS_BITS, value: 2048 },
        { type: pkcs11js.CKA_PUBLIC_EXPONENT, value: Buffer.from([1, 0, 1]) },
        { type: pkcs11js.CKA_VERIFY, value: true },
      ],
      [{ type: pkcs11js.CKA_SIGN, value: true }],
    );
    const mechanism = {
      mechanism: pkcs11js.CKM_RSA_PKCS_PSS,
      parameter: {
        type: pkcs11js.CK_PARAMS_RSA_PSS,
        hashAlg: pkcs11js.CKM_SHA256,
        mgf: pkcs11js.CKG_MGF1_SHA256,
        saltLen: 32,
      },
    };
    const data = Buffer.alloc(32, 1);
    pkcs11.C_SignInit(session, mechanism, privateKey);
    const signature = pkcs11.C_Sign(session, data, Buffer.alloc(256));
    pkcs11.C_VerifyInit(session, mechanism, publicKey);
    expect(pkcs11.C_Verify(session, data, signature)).toBe(true);
  });

  test('digests and random numbers come in pieces', () => {
    pkcs11.C_DigestInit(session, { mechanism: pkcs11js.CKM_SHA256 });
    pkcs11.C_DigestUpdate(session, Buffer.from('a'));
    pkcs11.C_DigestUpdate(session, Buffer.from('bc'));
    expect(pkcs11.C_DigestFinal(session, Buffer.alloc(32)).toString('hex')).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    );
    expect(pkcs11.C_GenerateRandom(session, Buffer.alloc(64)).equals(Buffer.alloc(64))).toBe(false);
  });
});

if (missing !== null) console.log(`skipped: ${missing} is not installed`);
