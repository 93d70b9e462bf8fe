// The process that loads a hardware module's PKCS#11 library: answers one question (hardware.ts)
// and ends. The module's AES key encrypts the provider's secret with AES-GCM; the key never leaves
// the module, and a key that could is refused. The PIN goes as bytes from its file to the library.
// The one file of the server that speaks Cryptoki: its names end here.

import pkcs11js from 'pkcs11js';
import { core } from '../../../addon/core.ts';
import { readGivenSecret } from './durable-files.ts';
import type { HardwareAnswer, HardwarePlace, HardwareQuestion } from './hardware.ts';

const {
  CKA_CLASS,
  CKA_DECRYPT,
  CKA_ENCRYPT,
  CKA_EXTRACTABLE,
  CKA_KEY_TYPE,
  CKA_LABEL,
  CKA_SENSITIVE,
  CKF_RW_SESSION,
  CKF_SERIAL_SESSION,
  CKK_AES,
  CKM_AES_GCM,
  CKO_SECRET_KEY,
  CK_PARAMS_AES_GCM_v240,
} = pkcs11js;

const tagBits = 128;
const bound = Buffer.from('dke root 1');

class Fault extends Error {
  readonly away: boolean;
  constructor(message: string, away: boolean) {
    super(message);
    this.away = away;
  }
}

/** Return values after which waiting does not help. */
const meanings: Readonly<Record<string, string>> = {
  CKR_PIN_INCORRECT: 'the PIN is wrong: correct the PIN file before the token locks itself',
  CKR_PIN_LOCKED: "the PIN is locked: the token's security officer unlocks it",
  CKR_PIN_LEN_RANGE: 'the PIN is too short or too long for this token',
  CKR_ENCRYPTED_DATA_INVALID: 'the key cannot open the root key: it is another key with the same name',
  CKR_MECHANISM_INVALID: 'the token has no AES-GCM',
};

const findKey = (module: pkcs11js.PKCS11, session: Buffer, label: string): Buffer => {
  module.C_FindObjectsInit(session, [
    { type: CKA_CLASS, value: CKO_SECRET_KEY },
    { type: CKA_KEY_TYPE, value: CKK_AES },
    { type: CKA_LABEL, value: label },
  ]);
  const found = module.C_FindObjects(session, 2);
  module.C_FindObjectsFinal(session);
  const [key, other] = found;
  if (key === undefined)
    throw new Fault(`AES key ${label} not found: create one in the module, not extractable (docs/root-key.md)`, false);
  if (other !== undefined)
    throw new Fault(`several AES keys have the label ${label}: give each one a unique label`, false);
  const read = module
    .C_GetAttributeValue(
      session,
      key,
      [CKA_SENSITIVE, CKA_EXTRACTABLE, CKA_ENCRYPT, CKA_DECRYPT].map((type) => ({ type })),
    )
    .map(({ value }) => (Buffer.isBuffer(value) ? value[0] === 1 : value === true));
  const [sensitive, extractable, encrypts, decrypts] = read;
  if (sensitive !== true || extractable !== false)
    throw new Fault(
      `the key ${label} can be extracted from the module: create one that is sensitive and not extractable`,
      false,
    );
  if (encrypts !== true || decrypts !== true) throw new Fault(`the key ${label} may not encrypt and decrypt`, false);
  return key;
};

const openToken = (module: pkcs11js.PKCS11, { token }: HardwarePlace): Buffer => {
  const slots = module.C_GetSlotList(true);
  const slot = slots.find((each) => module.C_GetTokenInfo(each).label.trim() === token);
  if (slot === undefined) throw new Fault(`token ${token} not found`, true);
  return module.C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION);
};

const answer = ({ place, recipient, info, sealed }: HardwareQuestion): HardwareAnswer => {
  core.initialize({ allowUnlocked: true });
  const module = new pkcs11js.PKCS11();
  try {
    module.load(place.module);
  } catch {
    throw new Fault('the library cannot be loaded', false);
  }
  module.C_Initialize();
  const session = openToken(module, place);
  const pin = readGivenSecret(place.pinFile);
  try {
    const end = pin.at(-1) === 0x0a ? pin.length - 1 : pin.length;
    const outcome = core.loginToken(place.module, session, pin.subarray(0, end));
    if (outcome !== 0) throw Object.assign(new Error(), { code: outcome });
  } finally {
    pin.fill(0);
  }
  const key = findKey(module, session, place.key);
  const mechanism = (iv: Buffer): pkcs11js.Mechanism => ({
    mechanism: CKM_AES_GCM,
    parameter: { type: CK_PARAMS_AES_GCM_v240, iv, aad: bound, ivBits: iv.length * 8, tagBits } as pkcs11js.IParams,
  });
  const open = (iv: Buffer, wrapped: Buffer): Buffer => {
    module.C_DecryptInit(session, mechanism(iv), key);
    const out = Buffer.alloc(wrapped.length);
    try {
      return module.C_Decrypt(session, wrapped, out);
    } catch (error) {
      out.fill(0);
      throw error;
    }
  };
  const give = (secret: Buffer, iv: Buffer, wrapped: Buffer): HardwareAnswer => {
    const reference = core.importSecret('generic', secret);
    secret.fill(0);
    return {
      secret: core.hpkeSealKey(recipient, info, Buffer.alloc(0), reference),
      iv: iv.toString('base64'),
      wrapped: wrapped.toString('base64'),
    };
  };
  if (sealed !== undefined) {
    const iv = Buffer.from(sealed.iv, 'base64');
    const wrapped = Buffer.from(sealed.wrapped, 'base64');
    return give(open(iv, wrapped), iv, wrapped);
  }
  const secret = core.exportSecret(core.generateGeneric(32));
  const iv = Buffer.alloc(12);
  core.random(iv);
  module.C_EncryptInit(session, mechanism(iv), key);
  const wrapped = module.C_Encrypt(session, secret, Buffer.alloc(secret.length + tagBits / 8));
  const back = open(iv, wrapped);
  const same = core.timingSafeEqual(back, secret);
  back.fill(0);
  if (!same) throw new Fault('the module cannot decrypt what it has encrypted', false);
  return give(secret, iv, wrapped);
};

const fault = (error: unknown): HardwareAnswer => {
  if (error instanceof Fault) return { fault: error.message, away: error.away };
  const { code, message } = error as { readonly code?: unknown; readonly message: string };
  const name = /CKR_\w+/.exec(message)?.[0] ?? (typeof code === 'number' ? loginFaults[code] : undefined);
  const known = name === undefined ? undefined : meanings[name];
  if (known !== undefined) return { fault: known, away: false };
  return { fault: name ?? (typeof code === 'number' ? `return value 0x${code.toString(16)}` : message), away: true };
};
/** What login answers, by number: the library's names come from pkcs11js elsewhere. */
const loginFaults: Readonly<Record<number, string>> = {
  160: 'CKR_PIN_INCORRECT',
  162: 'CKR_PIN_LEN_RANGE',
  164: 'CKR_PIN_LOCKED',
};

process.once('message', (question) => {
  let told: HardwareAnswer;
  try {
    told = answer(question as HardwareQuestion);
  } catch (error) {
    told = fault(error);
  }
  process.send?.(told, undefined, undefined, () => process.exit());
});
