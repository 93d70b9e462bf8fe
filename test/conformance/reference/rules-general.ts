// General functions, slots, tokens, mechanisms and sessions: PKCS#11 2.40, sections 5.4 to 5.6.
import pkcs11js from 'pkcs11js';
import { CKF, CKS, CKU } from '../../../provider/schema/constants.ts';
import { CKM, type MechanismName } from '../../../provider/schema/mechanisms.ts';
import { type Rule, rvOf, type Seen } from './bench.ts';

const nowhere = Buffer.from('efbeadde00000000', 'hex');
const uses = {
  encrypt: CKF.ENCRYPT,
  decrypt: CKF.DECRYPT,
  digest: CKF.DIGEST,
  sign: CKF.SIGN,
  'sign recover': 0x1000,
  verify: CKF.VERIFY,
  'verify recover': 0x4000,
  generate: CKF.GENERATE,
  'generate pair': CKF.GENERATE_KEY_PAIR,
  wrap: CKF.WRAP,
  unwrap: CKF.UNWRAP,
  derive: CKF.DERIVE,
} as const;

/** What the standard's table of mechanisms against functions gives to each mechanism that both tokens have. */
const mechanismUses: Partial<Record<MechanismName, readonly (keyof typeof uses)[]>> = {
  RSA_PKCS_KEY_PAIR_GEN: ['generate pair'],
  RSA_PKCS: ['encrypt', 'decrypt', 'sign', 'sign recover', 'verify', 'verify recover', 'wrap', 'unwrap'],
  SHA1_RSA_PKCS: ['sign', 'verify'],
  SHA224_RSA_PKCS: ['sign', 'verify'],
  SHA256_RSA_PKCS: ['sign', 'verify'],
  SHA384_RSA_PKCS: ['sign', 'verify'],
  SHA512_RSA_PKCS: ['sign', 'verify'],
  RSA_PKCS_OAEP: ['encrypt', 'decrypt', 'wrap', 'unwrap'],
  RSA_PKCS_PSS: ['sign', 'verify'],
  SHA1_RSA_PKCS_PSS: ['sign', 'verify'],
  SHA224_RSA_PKCS_PSS: ['sign', 'verify'],
  SHA256_RSA_PKCS_PSS: ['sign', 'verify'],
  SHA384_RSA_PKCS_PSS: ['sign', 'verify'],
  SHA512_RSA_PKCS_PSS: ['sign', 'verify'],
  EC_KEY_PAIR_GEN: ['generate pair'],
  EC_EDWARDS_KEY_PAIR_GEN: ['generate pair'],
  ECDSA: ['sign', 'verify'],
  EDDSA: ['sign', 'verify'],
  ECDH1_DERIVE: ['derive'],
  AES_KEY_GEN: ['generate'],
  AES_ECB: ['encrypt', 'decrypt', 'wrap', 'unwrap'],
  AES_CBC: ['encrypt', 'decrypt', 'wrap', 'unwrap'],
  AES_CBC_PAD: ['encrypt', 'decrypt', 'wrap', 'unwrap'],
  AES_CTR: ['encrypt', 'decrypt', 'wrap', 'unwrap'],
  AES_GCM: ['encrypt', 'decrypt', 'wrap', 'unwrap'],
  AES_CMAC: ['sign', 'verify'],
  AES_KEY_WRAP: ['encrypt', 'decrypt', 'wrap', 'unwrap'],
  AES_KEY_WRAP_PAD: ['encrypt', 'decrypt', 'wrap', 'unwrap'],
  GENERIC_SECRET_KEY_GEN: ['generate'],
  SHA_1: ['digest'],
  SHA224: ['digest'],
  SHA256: ['digest'],
  SHA384: ['digest'],
  SHA512: ['digest'],
  SHA_1_HMAC: ['sign', 'verify'],
  SHA224_HMAC: ['sign', 'verify'],
  SHA256_HMAC: ['sign', 'verify'],
  SHA384_HMAC: ['sign', 'verify'],
  SHA512_HMAC: ['sign', 'verify'],
};

export const generalRules: readonly Rule[] = [
  {
    name: 'the library is of version 2.40',
    section: '5.4',
    expected: { major: 2, minor: 40 },
    look: ({ pkcs11 }) => ({ ...pkcs11.C_GetInfo().cryptokiVersion }),
  },
  {
    name: 'the library keeps its flags at zero',
    section: '5.4',
    expected: 0,
    look: ({ pkcs11 }) => pkcs11.C_GetInfo().flags,
  },
  {
    name: 'C_Initialize a second time',
    section: '5.4',
    expected: 'CKR_CRYPTOKI_ALREADY_INITIALIZED',
    look: ({ pkcs11 }) => rvOf(() => pkcs11.C_Initialize()),
  },
  {
    name: 'slots with a token: one',
    section: '5.5',
    expected: 1,
    look: ({ pkcs11 }) => pkcs11.C_GetSlotList(true).length,
  },
  {
    name: 'every slot has a token',
    section: '5.5',
    expected: true,
    look: ({ pkcs11 }) => pkcs11.C_GetSlotList(false).length === pkcs11.C_GetSlotList(true).length,
  },
  {
    name: 'the slot has a token and cannot lose it',
    section: '5.5',
    expected: CKF.TOKEN_PRESENT,
    look: ({ pkcs11, slot }) => pkcs11.C_GetSlotInfo(slot).flags & (CKF.TOKEN_PRESENT | CKF.REMOVABLE_DEVICE),
  },
  {
    name: 'the token is ready for its user, who must log in',
    section: '5.5',
    expected: CKF.RNG | CKF.LOGIN_REQUIRED | CKF.USER_PIN_INITIALIZED | CKF.TOKEN_INITIALIZED,
    look: ({ pkcs11, slot }) =>
      pkcs11.C_GetTokenInfo(slot).flags &
      (CKF.RNG | CKF.LOGIN_REQUIRED | CKF.USER_PIN_INITIALIZED | CKF.TOKEN_INITIALIZED | CKF.WRITE_PROTECTED),
  },
  {
    name: 'the label of the token is padded with blanks',
    section: '5.5',
    expected: 32,
    look: ({ pkcs11, slot }) => pkcs11.C_GetTokenInfo(slot).label.length,
  },
  {
    name: 'the label of the token is its name',
    section: '5.5',
    expected: 'reference',
    look: ({ pkcs11, slot }) => pkcs11.C_GetTokenInfo(slot).label.trim(),
  },
  ...(['C_GetSlotInfo', 'C_GetTokenInfo', 'C_GetMechanismList'] as const).map(
    (name): Rule => ({
      name: `${name} of no slot`,
      section: '5.5',
      expected: 'CKR_SLOT_ID_INVALID',
      look: ({ pkcs11 }) => rvOf(() => pkcs11[name](nowhere)),
    }),
  ),
  {
    name: 'C_GetMechanismInfo of every mechanism that is listed, and none listed twice',
    section: '5.5',
    expected: true,
    look: ({ pkcs11, slot }) => {
      const listed = pkcs11.C_GetMechanismList(slot);
      for (const each of listed) pkcs11.C_GetMechanismInfo(slot, each);
      return new Set(listed).size === listed.length;
    },
  },
  {
    name: 'C_GetMechanismInfo of a mechanism that does not exist',
    section: '5.5',
    expected: 'CKR_MECHANISM_INVALID',
    look: ({ pkcs11, slot }) => rvOf(() => pkcs11.C_GetMechanismInfo(slot, 0x7fff_ffff)),
  },
  ...(Object.entries(mechanismUses) as [MechanismName, readonly string[]][]).map(
    ([name, expected]): Rule => ({
      name: `CKM_${name} does what the standard lets it do`,
      section: 'mechanisms 2',
      expected,
      look: ({ pkcs11, slot }) => {
        const { flags } = pkcs11.C_GetMechanismInfo(slot, CKM[name]);
        return Object.entries(uses).flatMap(([use, flag]) => ((flags & flag) === 0 ? [] : [use]));
      },
    }),
  ),
  {
    name: 'C_WaitForSlotEvent without waiting',
    section: '5.5',
    expected: null,
    look: ({ pkcs11 }) => pkcs11.C_WaitForSlotEvent(pkcs11js.CKF_DONT_BLOCK) as Seen,
  },
  {
    name: 'C_InitToken while a session is open',
    section: '5.5',
    expected: 'CKR_SESSION_EXISTS',
    look: ({ pkcs11, slot }) => rvOf(() => pkcs11.C_InitToken(slot, 'no', 'no')),
  },
  {
    name: 'C_InitPIN by the user',
    section: '5.5',
    expected: 'CKR_USER_NOT_LOGGED_IN',
    look: ({ pkcs11, session }) => rvOf(() => pkcs11.C_InitPIN(session, '654321')),
  },
  {
    name: 'C_SetPIN with a wrong PIN',
    section: '5.5',
    expected: 'CKR_PIN_INCORRECT',
    look: ({ pkcs11, session }) => rvOf(() => pkcs11.C_SetPIN(session, 'wrong PIN', '654321')),
  },

  {
    name: 'C_OpenSession without CKF_SERIAL_SESSION',
    section: '5.6',
    expected: 'CKR_SESSION_PARALLEL_NOT_SUPPORTED',
    look: ({ pkcs11, slot }) => rvOf(() => pkcs11.C_OpenSession(slot, CKF.RW_SESSION)),
  },
  {
    name: 'C_OpenSession of no slot',
    section: '5.6',
    expected: 'CKR_SLOT_ID_INVALID',
    look: ({ pkcs11 }) => rvOf(() => pkcs11.C_OpenSession(nowhere, CKF.SERIAL_SESSION)),
  },
  {
    name: 'C_GetSessionInfo of a read-write session of the user',
    section: '5.6',
    expected: { state: CKS.RW_USER_FUNCTIONS, flags: CKF.SERIAL_SESSION | CKF.RW_SESSION, deviceError: 0 },
    look: ({ pkcs11, session }) => {
      const { state, flags, deviceError } = pkcs11.C_GetSessionInfo(session);
      return { state, flags, deviceError };
    },
  },
  {
    name: 'C_GetSessionInfo of a read-only session of the user',
    section: '5.6',
    expected: { state: CKS.RO_USER_FUNCTIONS, flags: CKF.SERIAL_SESSION },
    look: ({ pkcs11, open }) => {
      const session = open(false);
      const { state, flags } = pkcs11.C_GetSessionInfo(session);
      pkcs11.C_CloseSession(session);
      return { state, flags };
    },
  },
  {
    name: 'C_GetSessionInfo tells the slot',
    section: '5.6',
    expected: true,
    look: ({ pkcs11, session, slot }) => pkcs11.C_GetSessionInfo(session).slotID.equals(slot),
  },
  {
    name: 'C_CloseSession twice',
    section: '5.6',
    expected: ['CKR_OK', 'CKR_SESSION_HANDLE_INVALID'],
    look: ({ pkcs11, open }) => {
      const session = open();
      return [rvOf(() => pkcs11.C_CloseSession(session)), rvOf(() => pkcs11.C_CloseSession(session))];
    },
  },
  {
    name: 'C_GetSessionInfo of no session',
    section: '5.6',
    expected: 'CKR_SESSION_HANDLE_INVALID',
    look: ({ pkcs11 }) => rvOf(() => pkcs11.C_GetSessionInfo(nowhere)),
  },
  {
    name: 'C_CloseAllSessions of no slot',
    section: '5.6',
    expected: 'CKR_SLOT_ID_INVALID',
    look: ({ pkcs11 }) => rvOf(() => pkcs11.C_CloseAllSessions(nowhere)),
  },
  {
    name: 'C_Login of the user, who is logged in',
    section: '5.6',
    expected: 'CKR_USER_ALREADY_LOGGED_IN',
    look: ({ pkcs11, session, token }) => rvOf(() => pkcs11.C_Login(session, CKU.USER, token.pin)),
  },
  {
    name: 'C_Login of the security officer while the user is logged in',
    section: '5.6',
    expected: 'CKR_USER_ANOTHER_ALREADY_LOGGED_IN',
    look: ({ pkcs11, session }) => rvOf(() => pkcs11.C_Login(session, CKU.SO, '12345678')),
  },
  {
    name: 'C_Login of a user of no type',
    section: '5.6',
    expected: 'CKR_USER_TYPE_INVALID',
    look: ({ pkcs11, session }) => rvOf(() => pkcs11.C_Login(session, 99, 'PIN')),
  },
  {
    name: 'C_Login for one operation when there is none',
    section: '5.6',
    expected: 'CKR_OPERATION_NOT_INITIALIZED',
    look: ({ pkcs11, session, token }) => rvOf(() => pkcs11.C_Login(session, CKU.CONTEXT_SPECIFIC, token.pin)),
  },
];

/** What ends the login or the library: run last, in this order. */
export const lastRules: readonly Rule[] = [
  {
    name: 'C_Logout makes private objects unseen and public ones not',
    section: '5.6',
    expected: { before: 2, after: 1, again: 1, state: CKS.RW_PUBLIC_SESSION },
    look: ({ pkcs11, session, create, find, token }) => {
      const label = `logout ${token.name}`;
      for (const PRIVATE of [true, false]) create({ CLASS: 0, LABEL: label, VALUE: Buffer.of(1), PRIVATE });
      const before = find({ LABEL: label }).length;
      pkcs11.C_Logout(session);
      const after = find({ LABEL: label }).length;
      const { state } = pkcs11.C_GetSessionInfo(session);
      pkcs11.C_Login(session, CKU.USER, token.pin);
      // C_Logout destroys private session objects, so none is found.
      return { before, after, again: find({ LABEL: label }).length, state };
    },
  },
  {
    name: 'the handle of a private object of the token after C_Logout and C_Login',
    section: '5.6',
    expected: 'CKR_OBJECT_HANDLE_INVALID',
    look: ({ pkcs11, session, create, token }) => {
      const object = create({ CLASS: 0, LABEL: 'kept', VALUE: Buffer.of(1), PRIVATE: true, TOKEN: true });
      pkcs11.C_Logout(session);
      pkcs11.C_Login(session, CKU.USER, token.pin);
      return rvOf(() => pkcs11.C_GetObjectSize(session, object));
    },
  },
  {
    name: 'C_Logout twice',
    section: '5.6',
    expected: ['CKR_OK', 'CKR_USER_NOT_LOGGED_IN'],
    look: ({ pkcs11, session }) => [rvOf(() => pkcs11.C_Logout(session)), rvOf(() => pkcs11.C_Logout(session))],
  },
  {
    name: 'C_CreateObject of a private object without login',
    section: '5.7',
    expected: 'CKR_USER_NOT_LOGGED_IN',
    look: ({ create }) => rvOf(() => create({ CLASS: 0, VALUE: Buffer.of(1), PRIVATE: true })),
  },
  {
    name: 'C_CreateObject of a public object without login',
    section: '5.7',
    expected: 'CKR_OK',
    look: ({ create }) => rvOf(() => create({ CLASS: 0, VALUE: Buffer.of(1), PRIVATE: false })),
  },
  {
    name: 'C_Login with a wrong PIN',
    section: '5.6',
    expected: 'CKR_PIN_INCORRECT',
    look: ({ pkcs11, session }) => {
      const rv = rvOf(() => pkcs11.C_Login(session, CKU.USER, 'not the PIN'));
      rvOf(() => pkcs11.C_Logout(session));
      return rv;
    },
  },
  {
    name: 'C_Login of the security officer while a read-only session is open',
    section: '5.6',
    expected: 'CKR_SESSION_READ_ONLY_EXISTS',
    look: ({ pkcs11, session, open }) => {
      const other = open(false);
      const rv = rvOf(() => pkcs11.C_Login(session, CKU.SO, '12345678'));
      pkcs11.C_CloseSession(other);
      return rv;
    },
  },
  {
    name: 'closing the last session logs the user out',
    section: '5.6',
    expected: CKS.RW_PUBLIC_SESSION,
    look: ({ pkcs11, slot, open, token }) => {
      pkcs11.C_CloseAllSessions(slot);
      const session = open();
      pkcs11.C_Login(session, CKU.USER, token.pin);
      pkcs11.C_CloseSession(session);
      const next = open();
      return pkcs11.C_GetSessionInfo(next).state;
    },
  },
  {
    name: 'functions after C_Finalize',
    section: '5.4',
    expected: [
      'CKR_OK',
      'CKR_CRYPTOKI_NOT_INITIALIZED',
      'CKR_CRYPTOKI_NOT_INITIALIZED',
      'CKR_CRYPTOKI_NOT_INITIALIZED',
    ],
    look: ({ pkcs11, slot, open }) => [
      rvOf(() => pkcs11.C_Finalize()),
      rvOf(() => pkcs11.C_GetInfo()),
      rvOf(() => open()),
      rvOf(() => pkcs11.C_GetTokenInfo(slot)),
    ],
  },
  {
    name: 'C_Finalize twice',
    section: '5.4',
    expected: 'CKR_CRYPTOKI_NOT_INITIALIZED',
    look: ({ pkcs11 }) => rvOf(() => pkcs11.C_Finalize()),
  },
  {
    name: 'C_Initialize after C_Finalize: a fresh start without sessions and login, the objects of the token still there',
    section: '5.4',
    expected: { session: 'CKR_SESSION_HANDLE_INVALID', state: CKS.RW_PUBLIC_SESSION, found: 1 },
    look: ({ pkcs11, session, open, find, token }) => {
      pkcs11.C_Initialize({ flags: pkcs11js.CKF_OS_LOCKING_OK });
      const next = open();
      const { state } = pkcs11.C_GetSessionInfo(next);
      pkcs11.C_Login(next, pkcs11js.CKU_USER, token.pin);
      // Handles may be given again, but never to what C_Finalize ended: a session that is open now is another one.
      const stale = next.equals(session) ? 'CKR_SESSION_HANDLE_INVALID' : rvOf(() => pkcs11.C_GetSessionInfo(session));
      return { session: stale, state, found: find({ LABEL: 'outlives C_Finalize' }, next).length };
    },
  },
];
