// Session management and login, PKCS#11 2.40 section 5.6; C_LoginUser and C_SessionCancel, 3.0
// section 5.6.
import { CKF, CKU } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';
import { operationMissing } from '../return-values.ts';
import type { Session } from '../sessions/application-session.ts';
import type { OperationKind } from '../sessions/operation.ts';
import type { GuardedHandlers } from './guards.ts';
import { checkSlot } from './slot.ts';

/** There is a user, and no security officer: the token is administered in the service. */
const login = ({ application }: Session, userType: number): void => {
  // A login for one operation's key: no key of ours asks for one.
  if (userType === CKU.CONTEXT_SPECIFIC) throw operationMissing();
  if (userType !== CKU.USER) throw new CryptokiError(CKR.USER_TYPE_INVALID, 'this token does not have such a user');
  if (application.loggedIn) throw new CryptokiError(CKR.USER_ALREADY_LOGGED_IN, 'the user is already logged in');
  application.login();
};

/**
 * The flags of C_SessionCancel. Flags for kinds that cannot run here are ignored, as the standard
 * allows.
 */
const cancelFlags = {
  find: CKF.FIND_OBJECTS,
  encrypt: CKF.ENCRYPT,
  decrypt: CKF.DECRYPT,
  digest: CKF.DIGEST,
  sign: CKF.SIGN,
  signRecover: CKF.SIGN_RECOVER,
  verify: CKF.VERIFY,
  verifyRecover: CKF.VERIFY_RECOVER,
  messageEncrypt: CKF.MESSAGE_ENCRYPT,
  messageDecrypt: CKF.MESSAGE_DECRYPT,
} as const satisfies Record<OperationKind, number>;

export const session = {
  C_OpenSession: (application, { slot, flags }) => {
    checkSlot(slot);
    if ((flags & CKF.SERIAL_SESSION) === 0) {
      throw new CryptokiError(CKR.SESSION_PARALLEL_NOT_SUPPORTED, 'CKF_SERIAL_SESSION must be set');
    }
    return application.openSession((flags & CKF.RW_SESSION) !== 0).handle;
  },

  C_CloseSession: (session) => session.application.closeSession(session),

  C_CloseAllSessions: (application, { slot }) => {
    checkSlot(slot);
    return application.closeAllSessions();
  },

  C_GetSessionInfo: (session) => ({ slot: 0, state: session.state, flags: session.flags, deviceError: 0 }),

  // C_Login, section 5.6. The PIN is not checked: the access_token is the credential.
  C_Login: (session, { userType }) => login(session, userType),
  C_LoginUser: (session, { userType }) => login(session, userType),

  // C_Logout, section 5.6. Handles of token objects mean the same after the next login: the service
  // gives them out.
  C_Logout: ({ application }) => {
    if (!application.loggedIn) throw new CryptokiError(CKR.USER_NOT_LOGGED_IN, 'no user is logged in');
    return application.logout();
  },

  C_SessionCancel: (session, { flags }) => {
    for (const [kind, flag] of Object.entries(cancelFlags) as [OperationKind, number][]) {
      if ((flags & flag) !== 0) session.cancel(kind);
    }
  },
} as const satisfies GuardedHandlers;
