// Cryptoki's functions, one row each, in the order of the standard (PKCS#11 2.40, section 5; 3.0,
// section 5 for those marked so). A row gives the generated C entry point, the wire signature, the
// codec and, by inference, the types of its handler. The numbers are p11-kit's call ids, and our
// own from 128 on. pkcs11f.h makes the C compiler refuse a row whose arguments are wrong.
import {
  batch,
  bytes,
  type Call,
  type CallOutput,
  call,
  data,
  fill,
  flag,
  handle,
  type InputOf,
  ignored,
  label,
  list,
  mechanism,
  messageMechanism,
  open,
  out,
  query,
  result,
  seal,
  session,
  slot,
  struct,
  template,
  ulong,
} from './types.ts';

export const calls = {
  // --- general purpose, 5.4 ---
  /**
   * The handshake text, whether a reserved string follows, and that string with its final NUL: see
   * PROTOCOL.md.
   */
  C_Initialize: call(1, [bytes('handshake'), flag('reservedPresent'), bytes('reserved')], { byHand: true }),
  C_Finalize: call(2, [], { byHand: true }),
  C_GetInfo: call(3, [struct('info', 'CK_INFO')], { byHand: true }),
  C_GetFunctionList: call(0, [ignored('functionList', 'CK_FUNCTION_LIST_PTR_PTR')], { byHand: true, local: true }),
  // --- slots and tokens, 5.5 ---
  C_GetSlotList: call(4, [flag('tokenPresent'), list('slots', 'CK_SLOT_ID')]),
  C_GetSlotInfo: call(5, [slot, struct('info', 'CK_SLOT_INFO')]),
  C_GetTokenInfo: call(6, [slot, struct('info', 'CK_TOKEN_INFO')]),
  C_GetMechanismList: call(7, [slot, list('mechanisms', 'CK_MECHANISM_TYPE')]),
  C_GetMechanismInfo: call(8, [slot, ulong('type', 'CK_MECHANISM_TYPE'), struct('info', 'CK_MECHANISM_INFO')]),
  C_InitToken: call(9, [slot, bytes('pin'), label('label')], { once: true }),
  C_InitPIN: call(14, [session, bytes('pin')], { once: true }),
  C_SetPIN: call(15, [session, bytes('oldPin'), bytes('newPin')], { once: true }),
  // --- sessions, 5.6 ---
  C_OpenSession: call(
    10,
    [
      slot,
      ulong('flags', 'CK_FLAGS'),
      ignored('application', 'CK_VOID_PTR'),
      ignored('notify', 'CK_NOTIFY'),
      result('session', 'CK_SESSION_HANDLE'),
    ],
    { byHand: true },
  ),
  C_CloseSession: call(11, [session], { byHand: true }),
  C_CloseAllSessions: call(12, [slot], { byHand: true }),
  C_GetSessionInfo: call(13, [session, struct('info', 'CK_SESSION_INFO')]),
  C_GetOperationState: call(16, [session, out('state')]),
  C_SetOperationState: call(17, [session, bytes('state'), handle('encryptionKey'), handle('authenticationKey')]),
  C_Login: call(18, [session, ulong('userType', 'CK_USER_TYPE'), bytes('pin')], { byHand: true }),
  C_Logout: call(19, [session], { byHand: true }),
  // --- objects, 5.7 ---
  C_CreateObject: call(20, [session, template('template'), result('object', 'CK_OBJECT_HANDLE')], { once: true }),
  C_CopyObject: call(21, [session, handle('object'), template('template'), result('newObject', 'CK_OBJECT_HANDLE')], {
    once: true,
  }),
  C_DestroyObject: call(22, [session, handle('object')], { once: true }),
  C_GetObjectSize: call(23, [session, handle('object'), result('size')]),
  C_GetAttributeValue: call(24, [session, handle('object'), query('template')], { quiet: true }),
  C_SetAttributeValue: call(25, [session, handle('object'), template('template')]),
  C_FindObjectsInit: call(26, [session, template('template')], { starts: 'find' }),
  C_FindObjects: call(27, [session, batch('objects', 'CK_OBJECT_HANDLE')], { hot: true, continues: ['find'] }),
  C_FindObjectsFinal: call(28, [session], { hot: true, ends: 'find' }),
  // --- encryption, 5.8 ---
  C_EncryptInit: call(29, [session, mechanism, handle('key')], { hot: true, starts: 'encrypt' }),
  C_Encrypt: call(30, [session, data('data'), out('encryptedData')], {
    hot: true,
    ends: 'encrypt',
    parts: { part: 'C_EncryptUpdate', last: 'C_EncryptFinal' },
  }),
  C_EncryptUpdate: call(31, [session, data('part'), out('encryptedPart')], {
    hot: true,
    continues: ['encrypt'],
    parts: { part: 'C_EncryptUpdate' },
  }),
  C_EncryptFinal: call(32, [session, out('lastEncryptedPart')], { hot: true, ends: 'encrypt' }),
  // --- decryption, 5.9 ---
  C_DecryptInit: call(33, [session, mechanism, handle('key')], { hot: true, starts: 'decrypt' }),
  C_Decrypt: call(34, [session, data('encryptedData'), out('data')], {
    hot: true,
    ends: 'decrypt',
    parts: { part: 'C_DecryptUpdate', last: 'C_DecryptFinal' },
  }),
  C_DecryptUpdate: call(35, [session, data('encryptedPart'), out('part')], {
    hot: true,
    continues: ['decrypt'],
    parts: { part: 'C_DecryptUpdate' },
  }),
  C_DecryptFinal: call(36, [session, out('lastPart')], {
    hot: true,
    ends: 'decrypt',
    parts: { part: 'C_DecryptUpdate' },
  }),
  // --- digests, 5.10 ---
  C_DigestInit: call(37, [session, mechanism], { hot: true, starts: 'digest' }),
  C_Digest: call(38, [session, data('data'), out('digest')], {
    hot: true,
    ends: 'digest',
    parts: { part: 'C_DigestUpdate', last: 'C_DigestFinal' },
  }),
  C_DigestUpdate: call(39, [session, bytes('part')], {
    hot: true,
    continues: ['digest'],
    parts: { part: 'C_DigestUpdate' },
  }),
  C_DigestKey: call(40, [session, handle('key')], { continues: ['digest'] }),
  C_DigestFinal: call(41, [session, out('digest')], { hot: true, ends: 'digest' }),
  // --- signatures and MACs, 5.11 ---
  C_SignInit: call(42, [session, mechanism, handle('key')], { hot: true, starts: 'sign' }),
  C_Sign: call(43, [session, data('data'), out('signature')], {
    hot: true,
    ends: 'sign',
    parts: { part: 'C_SignUpdate', last: 'C_SignFinal' },
  }),
  C_SignUpdate: call(44, [session, bytes('part')], {
    hot: true,
    continues: ['sign'],
    parts: { part: 'C_SignUpdate' },
  }),
  C_SignFinal: call(45, [session, out('signature')], { hot: true, ends: 'sign' }),
  C_SignRecoverInit: call(46, [session, mechanism, handle('key')], { starts: 'signRecover' }),
  C_SignRecover: call(47, [session, bytes('data'), out('signature')], { ends: 'signRecover' }),
  // --- verification, 5.12 ---
  C_VerifyInit: call(48, [session, mechanism, handle('key')], { hot: true, starts: 'verify' }),
  C_Verify: call(49, [session, data('data'), bytes('signature')], {
    hot: true,
    ends: 'verify',
    parts: { part: 'C_VerifyUpdate', last: 'C_VerifyFinal' },
  }),
  C_VerifyUpdate: call(50, [session, bytes('part')], {
    hot: true,
    continues: ['verify'],
    parts: { part: 'C_VerifyUpdate' },
  }),
  C_VerifyFinal: call(51, [session, bytes('signature')], { hot: true, ends: 'verify' }),
  C_VerifyRecoverInit: call(52, [session, mechanism, handle('key')], { starts: 'verifyRecover' }),
  C_VerifyRecover: call(53, [session, bytes('signature'), out('data')], { ends: 'verifyRecover' }),
  // --- dual functions, 5.13 ---
  C_DigestEncryptUpdate: call(54, [session, data('part'), out('encryptedPart')], {
    continues: ['digest', 'encrypt'],
    parts: { part: 'C_DigestEncryptUpdate' },
  }),
  C_DecryptDigestUpdate: call(55, [session, data('encryptedPart'), out('part')], {
    continues: ['decrypt', 'digest'],
    parts: { part: 'C_DecryptDigestUpdate' },
  }),
  C_SignEncryptUpdate: call(56, [session, data('part'), out('encryptedPart')], {
    continues: ['sign', 'encrypt'],
    parts: { part: 'C_SignEncryptUpdate' },
  }),
  C_DecryptVerifyUpdate: call(57, [session, data('encryptedPart'), out('part')], {
    continues: ['decrypt', 'verify'],
    parts: { part: 'C_DecryptVerifyUpdate' },
  }),
  // --- keys, 5.14 ---
  C_GenerateKey: call(58, [session, mechanism, template('template'), result('key', 'CK_OBJECT_HANDLE')], {
    once: true,
  }),
  C_GenerateKeyPair: call(
    59,
    [
      session,
      mechanism,
      template('publicTemplate'),
      template('privateTemplate'),
      result('publicKey', 'CK_OBJECT_HANDLE'),
      result('privateKey', 'CK_OBJECT_HANDLE'),
    ],
    { once: true, slow: true },
  ),
  C_WrapKey: call(60, [session, mechanism, handle('wrappingKey'), handle('key'), out('wrappedKey')]),
  C_UnwrapKey: call(
    61,
    [
      session,
      mechanism,
      handle('unwrappingKey'),
      bytes('wrappedKey'),
      template('template'),
      result('key', 'CK_OBJECT_HANDLE'),
    ],
    { once: true },
  ),
  C_DeriveKey: call(
    62,
    [session, mechanism, handle('baseKey'), template('template'), result('key', 'CK_OBJECT_HANDLE')],
    { once: true },
  ),
  // --- random numbers, 5.15 ---
  C_SeedRandom: call(63, [session, bytes('seed')], { parts: { part: 'C_SeedRandom' } }),
  C_GenerateRandom: call(64, [session, fill('random')], {
    hot: true,
    quiet: true,
    parts: { part: 'C_GenerateRandom' },
  }),
  // --- parallel functions, 5.16: legacy ---
  C_GetFunctionStatus: call(0, [session], { byHand: true, local: true }),
  C_CancelFunction: call(0, [session], { byHand: true, local: true }),
  // --- events ---
  // The module's slots never change, so it answers on its own; p11-kit's client sends the call.
  C_WaitForSlotEvent: call(
    65,
    [ulong('flags', 'CK_FLAGS'), result('slot', 'CK_SLOT_ID'), ignored('reserved', 'CK_VOID_PTR')],
    { byHand: true },
  ),
  // --- 3.0 ---
  C_GetInterfaceList: call(0, [ignored('interfaces', 'CK_INTERFACE_PTR'), ignored('count', 'CK_ULONG_PTR')], {
    since: '3.0',
    byHand: true,
    local: true,
  }),
  C_GetInterface: call(
    0,
    [
      ignored('name', 'CK_UTF8CHAR_PTR'),
      ignored('version', 'CK_VERSION_PTR'),
      ignored('interface', 'CK_INTERFACE_PTR_PTR'),
      ignored('flags', 'CK_FLAGS'),
    ],
    { since: '3.0', byHand: true, local: true },
  ),
  C_LoginUser: call(66, [session, ulong('userType', 'CK_USER_TYPE'), bytes('pin'), bytes('username')], {
    since: '3.0',
    byHand: true,
  }),
  C_SessionCancel: call(67, [session, ulong('flags', 'CK_FLAGS')], { since: '3.0', byHand: true }),
  // --- message-based encryption and decryption, 3.0 section 5.9 and 5.11 ---
  // Our own numbers, because p11-kit's calls of these names carry the structure as the bytes it has
  // in the caller's memory.
  C_MessageEncryptInit: call(128, [session, messageMechanism, handle('key')], {
    since: '3.0',
    starts: 'messageEncrypt',
  }),
  C_EncryptMessage: call(129, [session, seal('now'), bytes('associatedData'), data('plaintext'), out('ciphertext')], {
    since: '3.0',
    hot: true,
    quiet: true,
    parts: { begin: 'C_EncryptMessageBegin', part: 'C_EncryptMessageNext' },
  }),
  C_EncryptMessageBegin: call(130, [session, seal('never'), bytes('associatedData')], { since: '3.0', quiet: true }),
  C_EncryptMessageNext: call(
    131,
    [session, seal('at-end'), data('plaintextPart'), out('ciphertextPart'), ulong('flags', 'CK_FLAGS')],
    { since: '3.0', hot: true, quiet: true, parts: { part: 'C_EncryptMessageNext' } },
  ),
  C_MessageEncryptFinal: call(132, [session], { since: '3.0', ends: 'messageEncrypt' }),
  C_MessageDecryptInit: call(133, [session, messageMechanism, handle('key')], {
    since: '3.0',
    starts: 'messageDecrypt',
  }),
  C_DecryptMessage: call(134, [session, open('now'), bytes('associatedData'), data('ciphertext'), out('plaintext')], {
    since: '3.0',
    hot: true,
    quiet: true,
    parts: { begin: 'C_DecryptMessageBegin', part: 'C_DecryptMessageNext' },
  }),
  C_DecryptMessageBegin: call(135, [session, open('never'), bytes('associatedData')], { since: '3.0', quiet: true }),
  C_DecryptMessageNext: call(
    136,
    [session, open('at-end'), data('ciphertextPart'), out('plaintextPart'), ulong('flags', 'CK_FLAGS')],
    { since: '3.0', hot: true, quiet: true, parts: { part: 'C_DecryptMessageNext' } },
  ),
  C_MessageDecryptFinal: call(137, [session], { since: '3.0', ends: 'messageDecrypt' }),
} as const satisfies Record<`C_${string}`, Call>;

/**
 * Functions that have a place in the lists of 3.0 and 3.2 and that this token does not carry: the
 * library answers CKR_FUNCTION_NOT_SUPPORTED. Only the C signature is declared: the types after
 * hSession. The order is that of the lists.
 */
const parameter = ['CK_VOID_PTR', 'CK_ULONG'] as const;
const input = ['CK_BYTE_PTR', 'CK_ULONG'] as const;
const output = ['CK_BYTE_PTR', 'CK_ULONG_PTR'] as const;
const start = ['CK_MECHANISM_PTR', 'CK_OBJECT_HANDLE'] as const;
const attributes = ['CK_ATTRIBUTE_PTR', 'CK_ULONG'] as const;
const made = 'CK_OBJECT_HANDLE_PTR';
const named = 'CK_UTF8CHAR_PTR';
export const stubs = {
  // No mechanism of ours signs or verifies message by message.
  C_MessageSignInit: { since: '3.0', types: start },
  C_SignMessage: { since: '3.0', types: [...parameter, ...input, ...output] },
  C_SignMessageBegin: { since: '3.0', types: parameter },
  C_SignMessageNext: { since: '3.0', types: [...parameter, ...input, ...output] },
  C_MessageSignFinal: { since: '3.0', types: [] },
  C_MessageVerifyInit: { since: '3.0', types: start },
  C_VerifyMessage: { since: '3.0', types: [...parameter, ...input, ...input] },
  C_VerifyMessageBegin: { since: '3.0', types: parameter },
  C_VerifyMessageNext: { since: '3.0', types: [...parameter, ...input, ...input] },
  C_MessageVerifyFinal: { since: '3.0', types: [] },
  // Nor has it KEMs, signatures that are known before their data, validation, calls that continue
  // in the background, or wrapping with associated data.
  C_EncapsulateKey: { since: '3.2', types: [...start, ...attributes, ...output, made] },
  C_DecapsulateKey: { since: '3.2', types: [...start, ...attributes, ...input, made] },
  C_VerifySignatureInit: { since: '3.2', types: [...start, ...input] },
  C_VerifySignature: { since: '3.2', types: input },
  C_VerifySignatureUpdate: { since: '3.2', types: input },
  C_VerifySignatureFinal: { since: '3.2', types: [] },
  C_GetSessionValidationFlags: { since: '3.2', types: ['CK_SESSION_VALIDATION_FLAGS_TYPE', 'CK_FLAGS *'] },
  C_AsyncComplete: { since: '3.2', types: [named, 'CK_ASYNC_DATA *'] },
  C_AsyncGetID: { since: '3.2', types: [named, 'CK_ULONG_PTR'] },
  C_AsyncJoin: { since: '3.2', types: [named, 'CK_ULONG', ...input] },
  C_WrapKeyAuthenticated: { since: '3.2', types: [...start, 'CK_OBJECT_HANDLE', ...input, ...output] },
  C_UnwrapKeyAuthenticated: { since: '3.2', types: [...start, ...input, ...attributes, ...input, made] },
} as const satisfies Record<`C_${string}`, { readonly since: '3.0' | '3.2'; readonly types: readonly string[] }>;

type Calls = typeof calls;

/** The functions that travel on the wire. */
export type CallName = Exclude<
  keyof Calls,
  'C_GetFunctionList' | 'C_GetFunctionStatus' | 'C_CancelFunction' | 'C_GetInterfaceList' | 'C_GetInterface'
>;

export type Input<Name extends CallName> = InputOf<Calls[Name]>;
export type Output<Name extends CallName> = CallOutput<Calls[Name]>;

/**
 * One handler per function, `C` being whatever the server keeps per connection. Absent:
 * CKR_FUNCTION_NOT_SUPPORTED.
 */
export type Handlers<C> = {
  readonly [Name in CallName]?: (connection: C, input: Input<Name>) => Output<Name> | Promise<Output<Name>>;
};
