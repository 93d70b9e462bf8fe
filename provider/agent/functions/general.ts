// General purpose functions, PKCS#11 2.40 section 5.4.
import { CKF, CKU } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';
import { ToldError, tell } from '../causes.ts';
import { notInitialized, slotInvalid } from '../return-values.ts';
import { parseHello } from '../sessions/hello.ts';
import { inSlices } from '../sessions/slices.ts';
import type { GuardedHandlers } from './guards.ts';

export const manufacturer = 'DKE';
export const agentVersion = { major: 1, minor: 0 } as const;

export const general = {
  // C_Initialize, section 5.4. The reserved string is our own library's hello (PROTOCOL.md); other
  // peers have none and get the configuration that the agent itself was started with. Sessions that
  // the library lost with an agent come back here.
  C_Initialize: async (connection, { reservedPresent, reserved }) => {
    if (connection.application !== null || connection.initializing) {
      throw new CryptokiError(CKR.CRYPTOKI_ALREADY_INITIALIZED, 'C_Initialize was already called');
    }
    const hello = reservedPresent && reserved.length > 0 ? parseHello(reserved) : null;
    // Releases of one major version work together, so that either half can be upgraded first.
    if (hello !== null && Number.parseInt(hello.library, 10) !== agentVersion.major)
      throw new ToldError(
        tell('version-mismatch', { library: hello.library, agent: `${agentVersion.major}.${agentVersion.minor}` }),
      );
    const application = await connection.initialize(hello);
    try {
      await inSlices(application.account.uid, hello?.sessions ?? [], (session) => {
        if (session.slot !== 0) throw slotInvalid();
        application.resumeSession(session, (session.flags & CKF.RW_SESSION) !== 0);
      });
    } catch (error) {
      await connection.finalize();
      throw error;
    }
    if (hello?.login === CKU.USER && application.sessions.size > 0) application.login();
  },

  // C_Finalize, section 5.4.
  C_Finalize: (connection) => {
    if (connection.application === null) throw notInitialized();
    return connection.finalize();
  },

  // C_GetInfo, section 5.4. Asked of the agent by foreign peers only: our library answers on its
  // own.
  C_GetInfo: () => ({
    cryptokiVersion: { major: 2, minor: 40 },
    manufacturer,
    flags: 0,
    description: 'DKE PKCS#11 agent',
    libraryVersion: agentVersion,
  }),
} as const satisfies GuardedHandlers;
