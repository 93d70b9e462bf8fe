// What must hold before a function runs (PKCS#11 2.40, sections 5.1.2 and 5.4): one row a function.
// The guard finds what the handler works on, so that no handler looks up a session, or asks whether
// C_Initialize was called, on its own. Rules about read-write sessions and logged-in users depend
// on the object: `Application.checkMayWrite` and `sees`.
import type { CallName, Input, Output } from '../../schema/calls.ts';
import type { Application } from '../sessions/application.ts';
import type { Session } from '../sessions/application-session.ts';
import type { Connection } from '../sessions/connection.ts';

/** connection: always allowed; application: after C_Initialize; session: with an open session. */
interface Contexts {
  connection: Connection;
  application: Application;
  session: Session;
}

export const guards = {
  C_Initialize: 'connection',
  C_Finalize: 'connection',
  C_GetInfo: 'application',
  C_GetSlotList: 'application',
  C_GetSlotInfo: 'application',
  C_GetTokenInfo: 'application',
  C_GetMechanismList: 'application',
  C_GetMechanismInfo: 'application',
  C_InitToken: 'application',
  C_WaitForSlotEvent: 'application',
  C_OpenSession: 'application',
  C_CloseAllSessions: 'application',
  C_InitPIN: 'session',
  C_SetPIN: 'session',
  C_CloseSession: 'session',
  C_GetSessionInfo: 'session',
  C_GetOperationState: 'session',
  C_SetOperationState: 'session',
  C_Login: 'session',
  C_LoginUser: 'session',
  C_Logout: 'session',
  C_SessionCancel: 'session',
  C_CreateObject: 'session',
  C_CopyObject: 'session',
  C_DestroyObject: 'session',
  C_GetObjectSize: 'session',
  C_GetAttributeValue: 'session',
  C_SetAttributeValue: 'session',
  C_FindObjectsInit: 'session',
  C_FindObjects: 'session',
  C_FindObjectsFinal: 'session',
  C_EncryptInit: 'session',
  C_Encrypt: 'session',
  C_EncryptUpdate: 'session',
  C_EncryptFinal: 'session',
  C_DecryptInit: 'session',
  C_Decrypt: 'session',
  C_DecryptUpdate: 'session',
  C_DecryptFinal: 'session',
  C_DigestInit: 'session',
  C_Digest: 'session',
  C_DigestUpdate: 'session',
  C_DigestKey: 'session',
  C_DigestFinal: 'session',
  C_SignInit: 'session',
  C_Sign: 'session',
  C_SignUpdate: 'session',
  C_SignFinal: 'session',
  C_SignRecoverInit: 'session',
  C_SignRecover: 'session',
  C_VerifyInit: 'session',
  C_Verify: 'session',
  C_VerifyUpdate: 'session',
  C_VerifyFinal: 'session',
  C_VerifyRecoverInit: 'session',
  C_VerifyRecover: 'session',
  C_DigestEncryptUpdate: 'session',
  C_DecryptDigestUpdate: 'session',
  C_SignEncryptUpdate: 'session',
  C_DecryptVerifyUpdate: 'session',
  C_GenerateKey: 'session',
  C_GenerateKeyPair: 'session',
  C_WrapKey: 'session',
  C_UnwrapKey: 'session',
  C_DeriveKey: 'session',
  C_SeedRandom: 'session',
  C_GenerateRandom: 'session',
  C_MessageEncryptInit: 'session',
  C_EncryptMessage: 'session',
  C_EncryptMessageBegin: 'session',
  C_EncryptMessageNext: 'session',
  C_MessageEncryptFinal: 'session',
  C_MessageDecryptInit: 'session',
  C_DecryptMessage: 'session',
  C_DecryptMessageBegin: 'session',
  C_DecryptMessageNext: 'session',
  C_MessageDecryptFinal: 'session',
} as const satisfies Record<CallName, keyof Contexts>;

type ContextOf<Name extends CallName> = Contexts[(typeof guards)[Name]];

/** Handlers by function, each with what its guard found. Absent: CKR_FUNCTION_NOT_SUPPORTED. */
export type GuardedHandlers = {
  readonly [Name in CallName]?: (context: ContextOf<Name>, input: Input<Name>) => Output<Name> | Promise<Output<Name>>;
};
