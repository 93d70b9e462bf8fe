// The database's error numbers with their texts, and the error of a failed step.
import { returnValueName } from '../../provider/schema/return-values.ts';
import { type Answer, ProcessEnded } from './process.ts';

export const oraTexts = {
  'ORA-00900': 'invalid SQL statement',
  'ORA-00922': 'missing or invalid option',
  'ORA-00942': 'table or view does not exist',
  'ORA-00959': 'tablespace does not exist',
  'ORA-00988': 'missing or invalid password(s)',
  'ORA-01034': 'ORACLE not available',
  'ORA-01081': 'cannot start already-running ORACLE - shut it down first',
  'ORA-01109': 'database not open',
  'ORA-00372': 'file cannot be modified at this time',
  'ORA-01741': 'illegal zero-length identifier',
  'ORA-02065': 'illegal option for ALTER SYSTEM',
  'ORA-02095': 'specified initialization parameter cannot be modified',
  'ORA-03113': 'end-of-file on communication channel',
  'ORA-16000': 'database or pluggable database open for read-only access',
  'ORA-28353': 'failed to open wallet',
  'ORA-28354': 'Encryption wallet, auto login wallet, or HSM is already open',
  'ORA-28361': 'master key not yet set',
  'ORA-28365': 'wallet is not open',
  'ORA-28367': 'wallet does not exist',
  'ORA-28374': 'typed master key not found in wallet',
  'ORA-28376': 'cannot find PKCS11 library',
  'ORA-28389': 'cannot close auto login wallet',
  'ORA-28414': 'specified keys are in HSM',
  'ORA-28415': 'specified keys are in wallet',
  'ORA-28417': 'password-based keystore is not open',
  'ORA-28407': 'Hardware Security Module failed with PKCS#11 error',
  'ORA-46630': 'keystore cannot be created at the specified location',
  'ORA-46631': 'keystore needs to be backed up',
  'ORA-46663': 'master keys not created for all PDBs for REKEY',
  'ORA-46693': 'The WALLET_ROOT location is missing or invalid.',
  'ORA-46703': 'Switching over the PKCS#11 library is not supported.',
  'ORA-46706': 'PKCS#11 library was loaded from legacy location',
  'ORA-46697': 'Keystore password required',
  'ORA-46707': 'PKCS#11 library location was invalid',
  'RMAN-06023': 'no backup or copy found to restore',
  'ORA-65011': 'Pluggable database does not exist',
  'ORA-65040': 'operation not allowed from within a pluggable database',
  'ORA-65090': 'operation only allowed in a container database',
} as const;
export type OraCode = keyof typeof oraTexts;

export class OraError extends Error {
  readonly code: OraCode;
  constructor(code: OraCode, detail = '') {
    super(`${code}: ${oraTexts[code]}${detail === '' ? '' : ` (${detail})`}`);
    this.code = code;
  }
}

const byReason: Readonly<Record<string, OraCode>> = {
  'no-key': 'ORA-28374',
  closed: 'ORA-28365',
  library: 'ORA-28376',
  'no-token': 'ORA-28376',
  'no-secret': 'ORA-28353',
  'wallet-password': 'ORA-28353',
  'wallet-damaged': 'ORA-28353',
  'wallet-missing': 'ORA-28367',
  'wallet-exists': 'ORA-46630',
};

/**
 * The session's error for a failed step. A reason that the database does not have is a fault of the
 * simulator.
 */
export const errorOf = (answer: Answer): Error => {
  const { why = '', what = '', call = '', rv = 0 } = answer;
  if (why === 'call') return new OraError('ORA-28407', `${call}: ${returnValueName(rv)}`);
  const code = byReason[why];
  return code === undefined ? new Error(`the simulator failed: ${why} ${what}`) : new OraError(code, what);
};

/** A successful answer; everything else is thrown as the session's error. */
export const good = async (step: Promise<Answer>): Promise<Answer> => {
  let answer: Answer;
  try {
    answer = await step;
  } catch (error) {
    throw error instanceof ProcessEnded ? new OraError('ORA-03113') : error;
  }
  if (!answer.ok) throw errorOf(answer);
  return answer;
};
