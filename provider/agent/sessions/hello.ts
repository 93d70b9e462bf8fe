// What our library says of itself in the reserved string of C_Initialize (PROTOCOL.md, "Hello"): a
// JSON object and a NUL. Foreign peers send nothing there. Reads and checks; what to do with it is
// connection.ts's business.
//
// Any local user may send one. It proves nothing about the process: credentials are the socket's.
// What it says is bounded, and a session or a login that it brings back is one that the library
// could have had.
import { CKU } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';

/**
 * A session that was open when the library lost its agent: to be opened again under the same
 * handle.
 */
export interface ResumedSession {
  readonly handle: number;
  readonly slot: number;
  readonly flags: number;
}

export interface Hello {
  /** The real path of pkcs11.toml; the path as given when it could not be resolved. */
  readonly config: string;
  /** The library's version, "1.0". */
  readonly library: string;
  /** How many connections to an agent the process has had before this one. */
  readonly connection: number;
  /**
   * For how many seconds the library waits longer for this answer, so that the agent can wait for
   * the service.
   */
  readonly wait: number;
  /** The process id as the process sees it; only that of the socket's credentials counts. */
  readonly pid: number;
  /** The name that ps shows: a database's role, such as ora_lgwr_ORCL. */
  readonly process: string;
  /**
   * CKU_USER if a user was logged in when the agent was lost; `null` without a login, or at the
   * first start.
   */
  readonly login: typeof CKU.USER | null;
  readonly sessions: readonly ResumedSession[];
}

const bad = (what: string): CryptokiError =>
  new CryptokiError(CKR.ARGUMENTS_BAD, `the hello of the library is invalid: ${what}`);

/** Most bytes of a path on Linux, and of a process's name with its directories. */
const longestPath = 4096;
const longestName = 1024;
/** Seconds: the largest `wait_seconds`. */
const longestWait = 600;
const largestHandle = 2 ** 31 - 1;

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/**
 * The library writes bytes above 0x7e as \u00XX, one escape a byte, so that any path survives: back
 * to UTF-8 here.
 */
const asText = (value: unknown, name: string, most: number): string => {
  if (typeof value !== 'string' || value.length > most || /[\0\u0100-\uffff]/.test(value)) throw bad(name);
  return Buffer.from(value, 'latin1').toString('utf8');
};

const asSession = (value: unknown): ResumedSession => {
  if (!Array.isArray(value) || value.length !== 3 || !value.every(isCount)) throw bad('sessions');
  const [handle, slot, flags] = value as [number, number, number];
  if (handle === 0 || handle > largestHandle) throw bad('sessions');
  return { handle, slot, flags };
};

/**
 * Throws CKR_ARGUMENTS_BAD when the string is not a hello. Unknown members are allowed: newer
 * libraries may say more.
 */
export const parseHello = (reserved: Uint8Array): Hello => {
  const end = reserved.at(-1) === 0 ? reserved.length - 1 : reserved.length;
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(reserved.buffer, reserved.byteOffset, end).toString('latin1'));
  } catch {
    throw bad('not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw bad('not an object');
  const { config, library, connection = 0, wait = 0, pid, process, login, sessions } = value as Record<string, unknown>;
  if (!isCount(connection)) throw bad('connection');
  if (!isCount(wait) || wait > longestWait) throw bad('wait');
  if (!isCount(pid)) throw bad('pid');
  if (login !== null && login !== CKU.USER) throw bad('login');
  if (!Array.isArray(sessions)) throw bad('sessions');
  const resumed = sessions.map(asSession);
  if (new Set(resumed.map(({ handle }) => handle)).size !== resumed.length) throw bad('sessions');
  return {
    config: asText(config, 'config', longestPath),
    library: asText(library, 'library', longestName),
    connection,
    wait,
    pid,
    process: asText(process, 'process', longestName),
    login,
    sessions: resumed,
  };
};
