// Slot and token management, PKCS#11 2.40 section 5.5. One slot, with one token that is always
// there: the application that the configuration names. C_InitToken, C_InitPIN and C_SetPIN are not
// carried: registration, and who may use the token, is the service's business.
import { CKF } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';
import { dependsOnSwitches, findMechanism, mechanismRows, underSwitches } from '../operations/mechanisms.ts';
import { mechanismInvalid, slotInvalid } from '../return-values.ts';
import { agentVersion, manufacturer } from './general.ts';
import type { GuardedHandlers } from './guards.ts';

const theSlot = 0;
export const checkSlot = (slot: number): void => {
  if (slot !== theSlot) throw slotInvalid();
};

const unknown = -1;
const longestPin = 65_536;

export const slot = {
  C_GetSlotList: () => [theSlot],

  C_GetSlotInfo: (_application, { slot }) => {
    checkSlot(slot);
    return {
      description: 'DKE key management service',
      manufacturer,
      flags: CKF.TOKEN_PRESENT,
      hardwareVersion: agentVersion,
      firmwareVersion: agentVersion,
    };
  },

  // C_GetTokenInfo, section 5.5. Never CKF_WRITE_PROTECTED: databases skip key generation when they
  // see it.
  C_GetTokenInfo: async (application, { slot }) => {
    checkSlot(slot);
    const { applicationName, applicationId, tokenLabel = applicationName } = await application.info();
    const sessions = [...application.sessions.values()];
    return {
      label: tokenLabel,
      manufacturer,
      model: 'DKE',
      serialNumber: applicationId.replaceAll('-', '').slice(0, 16),
      flags:
        CKF.RNG | CKF.LOGIN_REQUIRED | CKF.USER_PIN_INITIALIZED | CKF.TOKEN_INITIALIZED | CKF.DUAL_CRYPTO_OPERATIONS,
      maxSessionCount: application.account.limits.sessions,
      sessionCount: sessions.length,
      maxRwSessionCount: application.account.limits.sessions,
      rwSessionCount: sessions.filter(({ readWrite }) => readWrite).length,
      maxPinLength: longestPin,
      minPinLength: 0,
      totalPublicMemory: unknown,
      freePublicMemory: unknown,
      totalPrivateMemory: unknown,
      freePrivateMemory: unknown,
      hardwareVersion: agentVersion,
      firmwareVersion: agentVersion,
      utcTime: '',
    };
  },

  C_GetMechanismList: (_application, { slot }) => {
    checkSlot(slot);
    return mechanismRows.map(({ type }) => type);
  },

  // C_GetMechanismInfo, section 5.5. A program learns here what it may do before it depends on it,
  // so what a compatibility switch admits is shown only where the switch is on.
  C_GetMechanismInfo: async (application, { slot, type }) => {
    checkSlot(slot);
    const row = findMechanism(type);
    if (row === undefined) throw mechanismInvalid();
    const { maxKeySize } = row;
    if (!dependsOnSwitches(row)) return { minKeySize: row.minKeySize, maxKeySize, flags: row.flags };
    return { maxKeySize, ...underSwitches(row, await application.knownSwitches()) };
  },

  // C_WaitForSlotEvent, section 5.5. The token never comes or goes: no event, and waiting for one
  // would wait forever.
  C_WaitForSlotEvent: () => {
    throw new CryptokiError(CKR.NO_EVENT, 'the token is always present');
  },
} as const satisfies GuardedHandlers;
