// General functions, slots, tokens, mechanisms and sessions: PKCS#11 2.40, sections 5.4 to 5.6.
import pkcs11js from 'pkcs11js';
import { CKF, CKS, CKU } from '../../../provider/schema/constants.ts';
import { CKM, type MechanismName } from '../../../provider/schema/mechanisms.ts';
import { type Rule, rule, rvOf, type Seen } from './bench.ts';

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

/**
 * What the standard's table of mechanisms against functions gives to each mechanism that both
 * tokens have.
 */
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
  rule('the library is of version 2.40', '5.4', { major: 2, minor: 40 }, ({ pkcs11 }) => ({
    ...pkcs11.C_GetInfo().cryptokiVersion,
  })),
  rule('the library keeps its flags at zero', '5.4', 0, ({ pkcs11 }) => pkcs11.C_GetInfo().flags),
  rule('C_Initialize a second time', '5.4', 'CKR_CRYPTOKI_ALREADY_INITIALIZED', ({ pkcs11 }) =>
    rvOf(() => pkcs11.C_Initialize()),
  ),
  rule('slots with a token: one', '5.5', 1, ({ pkcs11 }) => pkcs11.C_GetSlotList(true).length),
  rule(
    'every slot has a token',
    '5.5',
    true,
    ({ pkcs11 }) => pkcs11.C_GetSlotList(false).length === pkcs11.C_GetSlotList(true).length,
  ),
  rule(
    'the slot has a token and cannot lose it',
    '5.5',
    CKF.TOKEN_PRESENT,
    ({ pkcs11, slot }) => pkcs11.C_GetSlotInfo(slot).flags & (CKF.TOKEN_PRESENT | CKF.REMOVABLE_DEVICE),
  ),
  rule(
    'the token is ready for its user, who must log in',
    '5.5',
    CKF.RNG | CKF.LOGIN_REQUIRED | CKF.USER_PIN_INITIALIZED | CKF.TOKEN_INITIALIZED,
    ({ pkcs11, slot }) =>
      pkcs11.C_GetTokenInfo(slot).flags &
      (CKF.RNG | CKF.LOGIN_REQUIRED | CKF.USER_PIN_INITIALIZED | CKF.TOKEN_INITIALIZED | CKF.WRITE_PROTECTED),
  ),
  rule(
    'the label of the token is padded with blanks',
    '5.5',
    32,
    ({ pkcs11, slot }) => pkcs11.C_GetTokenInfo(slot).label.length,
  ),
  rule('the label of the token is its name', '5.5', 'reference', ({ pkcs11, slot }) =>
    pkcs11.C_GetTokenInfo(slot).label.trim(),
  ),
  ...(['C_GetSlotInfo', 'C_GetTokenInfo', 'C_GetMechanismList'] as const).map(
    (name): Rule =>
      rule(`${name} of no slot`, '5.5', 'CKR_SLOT_ID_INVALID', ({ pkcs11 }) => rvOf(() => pkcs11[name](nowhere))),
  ),
  rule(
    'C_GetMechanismInfo of every mechanism that is listed, and none listed twice',
    '5.5',
    true,
    ({ pkcs11, slot }) => {
      const listed = pkcs11.C_GetMechanismList(slot);
      for (const each of listed) pkcs11.C_GetMechanismInfo(slot, each);
      return new Set(listed).size === listed.length;
    },
  ),
  rule('C_GetMechanismInfo of a mechanism that does not exist', '5.5', 'CKR_MECHANISM_INVALID', ({ pkcs11, slot }) =>
    rvOf(() => pkcs11.C_GetMechanismInfo(slot, 0x7fff_ffff)),
  ),
  ...(Object.entries(mechanismUses) as [MechanismName, readonly string[]][]).map(
    ([name, expected]): Rule =>
      rule(`CKM_${name} does what the standard lets it do`, 'mechanisms 2', expected, ({ pkcs11, slot }) => {
        const { flags } = pkcs11.C_GetMechanismInfo(slot, CKM[name]);
        return Object.entries(uses).flatMap(([use, flag]) => ((flags & flag) === 0 ? [] : [use]));
      }),
  ),
  rule(
    'C_WaitForSlotEvent without waiting',
    '5.5',
    null,
    ({ pkcs11 }) => pkcs11.C_WaitForSlotEvent(pkcs11js.CKF_DONT_BLOCK) as Seen,
  ),
  rule('C_InitToken while a session is open', '5.5', 'CKR_SESSION_EXISTS', ({ pkcs11, slot }) =>
    rvOf(() => pkcs11.C_InitToken(slot, 'no', 'no')),
  ),
  rule('C_InitPIN by the user', '5.5', 'CKR_USER_NOT_LOGGED_IN', ({ pkcs11, session }) =>
    rvOf(() => pkcs11.C_InitPIN(session, '654321')),
  ),
  rule('C_SetPIN with a wrong PIN', '5.5', 'CKR_PIN_INCORRECT', ({ pkcs11, session }) =>
    rvOf(() => pkcs11.C_SetPIN(session, 'wrong PIN', '654321')),
  ),

  rule('C_OpenSession without CKF_SERIAL_SESSION', '5.6', 'CKR_SESSION_PARALLEL_NOT_SUPPORTED', ({ pkcs11, slot }) =>
    rvOf(() => pkcs11.C_OpenSession(slot, CKF.RW_SESSION)),
  ),
  rule('C_OpenSession of no slot', '5.6', 'CKR_SLOT_ID_INVALID', ({ pkcs11 }) =>
    rvOf(() => pkcs11.C_OpenSession(nowhere, CKF.SERIAL_SESSION)),
  ),
  rule(
    'C_GetSessionInfo of a read-write session of the user',
    '5.6',
    { state: CKS.RW_USER_FUNCTIONS, flags: CKF.SERIAL_SESSION | CKF.RW_SESSION, deviceError: 0 },
    ({ pkcs11, session }) => {
      const { state, flags, deviceError } = pkcs11.C_GetSessionInfo(session);
      return { state, flags, deviceError };
    },
  ),
  rule(
    'C_GetSessionInfo of a read-only session of the user',
    '5.6',
    { state: CKS.RO_USER_FUNCTIONS, flags: CKF.SERIAL_SESSION },
    ({ pkcs11, open }) => {
      const session = open(false);
      const { state, flags } = pkcs11.C_GetSessionInfo(session);
      pkcs11.C_CloseSession(session);
      return { state, flags };
    },
  ),
  rule('C_GetSessionInfo tells the slot', '5.6', true, ({ pkcs11, session, slot }) =>
    pkcs11.C_GetSessionInfo(session).slotID.equals(slot),
  ),
  rule('C_CloseSession twice', '5.6', ['CKR_OK', 'CKR_SESSION_HANDLE_INVALID'], ({ pkcs11, open }) => {
    const session = open();
    return [rvOf(() => pkcs11.C_CloseSession(session)), rvOf(() => pkcs11.C_CloseSession(session))];
  }),
  rule('C_GetSessionInfo of no session', '5.6', 'CKR_SESSION_HANDLE_INVALID', ({ pkcs11 }) =>
    rvOf(() => pkcs11.C_GetSessionInfo(nowhere)),
  ),
  rule('C_CloseAllSessions of no slot', '5.6', 'CKR_SLOT_ID_INVALID', ({ pkcs11 }) =>
    rvOf(() => pkcs11.C_CloseAllSessions(nowhere)),
  ),
  rule('C_Login of the user, who is logged in', '5.6', 'CKR_USER_ALREADY_LOGGED_IN', ({ pkcs11, session, token }) =>
    rvOf(() => pkcs11.C_Login(session, CKU.USER, token.pin)),
  ),
  rule(
    'C_Login of the security officer while the user is logged in',
    '5.6',
    'CKR_USER_ANOTHER_ALREADY_LOGGED_IN',
    ({ pkcs11, session }) => rvOf(() => pkcs11.C_Login(session, CKU.SO, '12345678')),
  ),
  rule('C_Login of a user of no type', '5.6', 'CKR_USER_TYPE_INVALID', ({ pkcs11, session }) =>
    rvOf(() => pkcs11.C_Login(session, 99, 'PIN')),
  ),
  rule(
    'C_Login for one operation when there is none',
    '5.6',
    'CKR_OPERATION_NOT_INITIALIZED',
    ({ pkcs11, session, token }) => rvOf(() => pkcs11.C_Login(session, CKU.CONTEXT_SPECIFIC, token.pin)),
  ),
];

/** What ends the login or the library: run last, in this order. */
export const lastRules: readonly Rule[] = [
  rule(
    'C_Logout makes private objects unseen and public ones not',
    '5.6',
    { before: 2, after: 1, again: 1, state: CKS.RW_PUBLIC_SESSION },
    ({ pkcs11, session, create, find, token }) => {
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
  ),
  rule(
    'the handle of a private object of the token after C_Logout and C_Login',
    '5.6',
    'CKR_OBJECT_HANDLE_INVALID',
    ({ pkcs11, session, create, token }) => {
      const object = create({ CLASS: 0, LABEL: 'kept', VALUE: Buffer.of(1), PRIVATE: true, TOKEN: true });
      pkcs11.C_Logout(session);
      pkcs11.C_Login(session, CKU.USER, token.pin);
      return rvOf(() => pkcs11.C_GetObjectSize(session, object));
    },
  ),
  rule('C_Logout twice', '5.6', ['CKR_OK', 'CKR_USER_NOT_LOGGED_IN'], ({ pkcs11, session }) => [
    rvOf(() => pkcs11.C_Logout(session)),
    rvOf(() => pkcs11.C_Logout(session)),
  ]),
  rule('C_CreateObject of a private object without login', '5.7', 'CKR_USER_NOT_LOGGED_IN', ({ create }) =>
    rvOf(() => create({ CLASS: 0, VALUE: Buffer.of(1), PRIVATE: true })),
  ),
  rule('C_CreateObject of a public object without login', '5.7', 'CKR_OK', ({ create }) =>
    rvOf(() => create({ CLASS: 0, VALUE: Buffer.of(1), PRIVATE: false })),
  ),
  rule('C_Login with a wrong PIN', '5.6', 'CKR_PIN_INCORRECT', ({ pkcs11, session }) => {
    const rv = rvOf(() => pkcs11.C_Login(session, CKU.USER, 'not the PIN'));
    rvOf(() => pkcs11.C_Logout(session));
    return rv;
  }),
  rule(
    'C_Login of the security officer while a read-only session is open',
    '5.6',
    'CKR_SESSION_READ_ONLY_EXISTS',
    ({ pkcs11, session, open }) => {
      const other = open(false);
      const rv = rvOf(() => pkcs11.C_Login(session, CKU.SO, '12345678'));
      pkcs11.C_CloseSession(other);
      return rv;
    },
  ),
  rule('closing the last session logs the user out', '5.6', CKS.RW_PUBLIC_SESSION, ({ pkcs11, slot, open, token }) => {
    pkcs11.C_CloseAllSessions(slot);
    const session = open();
    pkcs11.C_Login(session, CKU.USER, token.pin);
    pkcs11.C_CloseSession(session);
    const next = open();
    return pkcs11.C_GetSessionInfo(next).state;
  }),
  rule(
    'functions after C_Finalize',
    '5.4',
    ['CKR_OK', 'CKR_CRYPTOKI_NOT_INITIALIZED', 'CKR_CRYPTOKI_NOT_INITIALIZED', 'CKR_CRYPTOKI_NOT_INITIALIZED'],
    ({ pkcs11, slot, open }) => [
      rvOf(() => pkcs11.C_Finalize()),
      rvOf(() => pkcs11.C_GetInfo()),
      rvOf(() => open()),
      rvOf(() => pkcs11.C_GetTokenInfo(slot)),
    ],
  ),
  rule('C_Finalize twice', '5.4', 'CKR_CRYPTOKI_NOT_INITIALIZED', ({ pkcs11 }) => rvOf(() => pkcs11.C_Finalize())),
  rule(
    'C_Initialize after C_Finalize: a fresh start without sessions and login, the objects of the token still there',
    '5.4',
    { session: 'CKR_SESSION_HANDLE_INVALID', state: CKS.RW_PUBLIC_SESSION, found: 1 },
    ({ pkcs11, session, open, find, token }) => {
      pkcs11.C_Initialize({ flags: pkcs11js.CKF_OS_LOCKING_OK });
      const next = open();
      const { state } = pkcs11.C_GetSessionInfo(next);
      pkcs11.C_Login(next, pkcs11js.CKU_USER, token.pin);
      // Handles may be given again, but never to what C_Finalize ended: a session that is open now
      // is another one.
      const stale = next.equals(session) ? 'CKR_SESSION_HANDLE_INVALID' : rvOf(() => pkcs11.C_GetSessionInfo(session));
      return { session: stale, state, found: find({ LABEL: 'outlives C_Finalize' }, next).length };
    },
  ),
];
