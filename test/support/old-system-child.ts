// Run by the packaged Node inside the root file system of an older release: a client of the
// library, which makes a key on the token, encrypts and decrypts. Arguments: the folder of
// pkcs11js, the library.
import { createRequire } from 'node:module';
import type * as Pkcs11 from 'pkcs11js';

const [folder = '', library = ''] = process.argv.slice(2);
const pkcs11 = createRequire(import.meta.url)(folder) as typeof Pkcs11;

const p11 = new pkcs11.PKCS11();
p11.load(library);
p11.C_Initialize();
const [slot] = p11.C_GetSlotList(true);
if (slot === undefined) throw new Error('there is no token');
const session = p11.C_OpenSession(slot, pkcs11.CKF_SERIAL_SESSION | pkcs11.CKF_RW_SESSION);
p11.C_Login(session, pkcs11.CKU_USER, 'x');
const key = p11.C_GenerateKey(session, { mechanism: pkcs11.CKM_AES_KEY_GEN }, [
  { type: pkcs11.CKA_CLASS, value: pkcs11.CKO_SECRET_KEY },
  { type: pkcs11.CKA_KEY_TYPE, value: pkcs11.CKK_AES },
  { type: pkcs11.CKA_TOKEN, value: true },
  { type: pkcs11.CKA_LABEL, value: 'OLD-SYSTEM' },
  { type: pkcs11.CKA_ENCRYPT, value: true },
  { type: pkcs11.CKA_DECRYPT, value: true },
  { type: pkcs11.CKA_VALUE_LEN, value: 32 },
]);
const mechanism = { mechanism: pkcs11.CKM_AES_CBC_PAD, parameter: Buffer.alloc(16, 1) };
const text = Buffer.from('as it was before');
p11.C_EncryptInit(session, mechanism, key);
const encrypted = p11.C_Encrypt(session, text, Buffer.alloc(64));
p11.C_DecryptInit(session, mechanism, key);
const decrypted = p11.C_Decrypt(session, encrypted, Buffer.alloc(64));
p11.C_Finalize();
p11.close();
console.log(JSON.stringify({ isEncrypted: !encrypted.includes(text), isDecrypted: decrypted.equals(text) }));
