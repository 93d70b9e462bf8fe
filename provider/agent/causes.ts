// From what went wrong to its cause (schema/causes.ts), and from the cause to the line that an
// administrator reads. Which return value the database gets is decided in return-values.ts; a test
// holds the two together.
import type { ServiceErrorCode } from '../../server/base/service-error.ts';
import { type CauseName, causes, describeCause, type Facts, returnValuesOf } from '../schema/causes.ts';
import { CKR, type ReturnValueName } from '../schema/return-values.ts';
import { CryptokiError } from '../schema/types.ts';

/** A cause with its line: what happened, then what to do. */
export interface Told {
  readonly cause: CauseName;
  readonly line: string;
}

/**
 * Facts come from files, names and the service's answers: a line stays one line, and no longer than
 * is read.
 */
const tidy = (text: string): string => text.replace(/[^\x20-\x7e\u00a1-\u{10ffff}]/gu, '?').slice(0, 600);

export const tell = <C extends CauseName>(cause: C, facts: Facts<C>): Told => {
  const { what, todo } = describeCause(cause, facts);
  return { cause, line: tidy(`${what}; ${todo}`) };
};

/** The line in its halves again, for who shows them apart. */
export const splitLine = ({ cause, line }: Told): { readonly what: string; readonly todo: string } => {
  const [beginning = ''] = causes[cause].todo.split('{');
  const at = line.lastIndexOf(`; ${beginning}`);
  return at < 0 ? { what: line, todo: '' } : { what: line.slice(0, at), todo: line.slice(at + 2) };
};

/** What the database prints; null where it continues. */
export const printedFor = (cause: CauseName): string | null => {
  const names = returnValuesOf(cause).map((name) => `CKR_${name}`);
  return names.length === 0 ? null : names.join(' or ');
};

/** The causes of a failed way to the service, by the error codes of Node, OpenSSL and undici. */
const codes: readonly (readonly [RegExp, CauseName & `${'service' | 'tls'}-${string}`])[] = [
  [/^(?:ENOTFOUND|EAI_\w+|DNS_TIMEOUT)$/, 'service-name'],
  [/^(?:CERT_HAS_EXPIRED|CERT_NOT_YET_VALID|CRL_HAS_EXPIRED)$/, 'tls-expired'],
  [/^(?:ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/, 'tls-name'],
  [/^(?:DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|CERT_|INVALID_(?:CA|PURPOSE)|PATH_LENGTH_EXCEEDED)/, 'tls-untrusted'],
  [/^(?:ERR_SSL|ERR_TLS|ERR_OSSL|EPROTO)/, 'tls-failed'],
  [/TIMEOUT|ETIMEDOUT|AbortError|TimeoutError/, 'service-slow'],
];

type WayCause = 'service-down' | 'service-name' | 'service-slow' | `tls-${'untrusted' | 'expired' | 'name' | 'failed'}`;
/** The cause of a failed connection or request, by the code of its error. */
export const causeOfCode = (code: string): WayCause =>
  (codes.find(([pattern]) => pattern.test(code))?.[1] as WayCause | undefined) ?? 'service-down';

/** No answer of the service: `code` is Node's, OpenSSL's or undici's. */
export const tellNoAnswer = (origin: string, code: string): Told => tell(causeOfCode(code), { origin, error: code });

interface Refused {
  readonly origin: string;
  readonly code: ServiceErrorCode;
  /** Which of several refusals of one code it is. */
  readonly reason: string | null;
  /** The service's own words. */
  readonly message: string;
  readonly handle: number | null;
}

/**
 * What the service refuses; null for what is the program's own affair (a wrong length, a bad
 * signature).
 */
export const tellRefused = ({ origin, code, reason, message, handle }: Refused): Told | null => {
  const key = { handle: handle ?? '-' };
  const error = message;
  switch (code) {
    case 'unauthenticated':
      if (reason === 'removed') return tell('token-removed', {});
      if (reason === 'disabled') return tell('application-disabled', {});
      if (reason === 'network') return tell('network-refused', { error });
      if (reason === 'certificate') return tell('certificate-refused', { error });
      return tell('token-unknown', { origin });
    case 'forbidden':
    case 'sign-in-incomplete':
    case 'conflict':
    case 'precondition-failed':
    case 'precondition-required':
      return tell('not-allowed', { error });
    case 'not-found':
    case 'key-not-found':
      return tell('key-missing', key);
    case 'key-disabled':
      return tell('key-disabled', key);
    case 'key-destroyed':
      return tell('key-destroyed', key);
    case 'key-usage':
      return tell('key-use', { ...key, error });
    case 'key-tampered':
      return tell('key-tampered', key);
    case 'label-exists':
      return tell('label-taken', { error });
    case 'dependency-timeout':
    case 'unavailable':
    case 'rate-limited':
      return tell('service-busy', { origin, error });
    case 'internal':
      return tell('service-failed', { origin, error });
    case 'validation':
    case 'invalid-ciphertext':
    case 'data-length':
    case 'unsupported':
    case 'payload-too-large':
      return null;
  }
};

/** A refusal whose cause is in the log already. `line` is for the user of the database. */
export class LoggedError extends CryptokiError {
  readonly line: string;
  constructor(rv: number, message: string, line: string) {
    super(rv, message);
    this.line = line;
  }
}

/**
 * A cause that the agent itself finds, as a return value: `rvFor`, or the only one that the cause
 * has.
 */
export class ToldError extends CryptokiError {
  readonly told: CauseName;
  constructor({ cause, line }: Told, rvFor?: number) {
    const { rv } = causes[cause] as { readonly rv: ReturnValueName | readonly ReturnValueName[] | null };
    super(rvFor ?? CKR[typeof rv === 'string' ? rv : 'GENERAL_ERROR'], line);
    this.told = cause;
  }
}
