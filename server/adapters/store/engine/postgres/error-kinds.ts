// What an error says about the store as a whole. What the server sends is a DatabaseError with an
// SQLSTATE (PostgreSQL, appendix A). Whatever else ends a connection (the kernel, TLS, the look-up
// of the name, the password's file, pg itself) is made a ConnectionLost where it happens: no list
// of their codes is complete.

import pg from 'pg';
import type { ErrorKind } from '../engine.ts';
import { StoreError } from '../store-error.ts';

/** There is no connection, or not any longer. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

/**
 * The connection that a transaction ran on is gone, or the server has ended the transaction: it was
 * not committed.
 */
export class TransactionLost extends Error {
  override readonly name = 'TransactionLost';
}

/** Who answers is not the primary, or not any longer. */
export class NotPrimary extends Error {
  override readonly name = 'NotPrimary';
}

/** A commit whose answer did not come. */
export class CommitUnknown extends Error {
  override readonly name = 'CommitUnknown';
}

export const codeOf = (error: unknown): string => {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
};

/**
 * What connecting and asking throw. A value that pg cannot send is a fault of the program, and ends
 * nothing.
 */
export const asConnectionError = (error: unknown): unknown => {
  const isTold = [pg.DatabaseError, NotPrimary, ConnectionLost, StoreError, TypeError, RangeError].some(
    (known) => error instanceof known,
  );
  if (isTold) return error;
  // A name with several addresses fails without a message.
  const message = error instanceof Error && error.message !== '' ? error.message : codeOf(error);
  return new ConnectionLost(message, { cause: error });
};

/** Kinds of errors by SQLSTATE, or by its class. */
const kinds: Readonly<Record<string, ErrorKind>> = {
  // Connection exceptions.
  '08': 'away',
  // A character that no text has: U+0000.
  '22021': 'text',
  // Integrity constraints.
  '23': 'constraint',
  // Read-only: a standby.
  '25006': 'away',
  // An earlier statement of the transaction was cancelled.
  '25P02': 'away',
  // The server has ended the session: the transaction was idle, or took, too long.
  '25P03': 'away',
  '25P04': 'away',
  // The user or password is refused.
  '28': 'away',
  // There is no such database.
  '3D': 'away',
  // The server has undone the transaction for another one's sake.
  '40': 'away',
  // Too many connections, no memory.
  '53': 'away',
  '53100': 'full',
  // The database accepts no connections (ALLOW_CONNECTIONS false), or is not in the state for it.
  '55000': 'away',
  // Lock not available.
  '55P03': 'away',
  // Cancelled, or the server stops, starts or has crashed.
  '57': 'away',
  // Input and output.
  '58': 'fatal',
  // Internal errors and corruption.
  XX: 'fatal',
};

export const kindOf = (error: unknown): ErrorKind => {
  if (error instanceof CommitUnknown) return 'unknown';
  // A StoreError comes from a connection that was opened again; the tables are as they were.
  if (error instanceof StoreError) return error.code === 'open' ? 'away' : 'fatal';
  if ([ConnectionLost, TransactionLost, NotPrimary].some((lost) => error instanceof lost)) return 'away';
  if (!(error instanceof pg.DatabaseError)) return undefined;
  const code = codeOf(error);
  return kinds[code] ?? kinds[code.slice(0, 2)];
};

/**
 * Whether the connection that failed so is of no further use. The last words of a server come with
 * the next statement, before the end that follows.
 */
export const endsConnection = (error: unknown): boolean =>
  error instanceof ConnectionLost || (error instanceof pg.DatabaseError && /^(08|57P|25P03|25P04)/.test(codeOf(error)));

/** Whether a commit that fails so may be made. */
export const leavesCommitOpen = (error: unknown): boolean =>
  error instanceof ConnectionLost || (error instanceof pg.DatabaseError && /^(08|57P|40003)/.test(codeOf(error)));

/** The server has undone the transaction for another one's sake: done again, it may succeed. */
export const isUndone = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && /^(40001|40P01)$/.test(codeOf(error));

/**
 * Refusals that end on their own soon: the server starts, is full, or has undone one transaction
 * for another one's sake.
 */
export const isPassing = (error: unknown): boolean =>
  isUndone(error) || (error instanceof pg.DatabaseError && /^(53300|55000|55P03|57P03)$/.test(codeOf(error)));

/** What was said: of a connection that was lost, by the system or by TLS. */
const saidCode = (error: unknown): string => codeOf(error) || codeOf((error as { readonly cause?: unknown }).cause);
const saidWords = (error: unknown): string =>
  error instanceof Error && error.message !== '' ? error.message : saidCode(error) || 'no reason';

interface Cause {
  readonly is: (code: string, words: string, error: unknown) => boolean;
  /** What is so with "the database". */
  readonly what: string;
  readonly fix: string;
}

/**
 * Why a database cannot be used now, the first that fits: a start, the doctor and every refused
 * request say the same.
 */
const causes: readonly Cause[] = [
  {
    is: (code, _, error) => code === '25006' || error instanceof NotPrimary,
    what: 'is read-only',
    fix: 'promote it, or let the host of [store] lead to the primary',
  },
  {
    is: (code) => code.startsWith('28'),
    what: 'refuses the user or its password',
    fix: 'write the right password to password_file ([store] in dke.toml), or allow the user in pg_hba.conf; no restart is needed',
  },
  {
    is: (code) => code === '3D000',
    what: 'does not exist',
    fix: 'restore it from a backup, or correct [store] in dke.toml',
  },
  {
    is: (code, words) => code === 'CERT_HAS_EXPIRED' || /certificate has expired/.test(words),
    what: 'has a certificate that expired',
    fix: 'renew the certificate of PostgreSQL (ssl_cert_file), and let it read it again: pg_ctl reload',
  },
  {
    is: (code, words) =>
      /CERT|SELF_SIGNED|UNABLE_TO_(?:GET|VERIFY)|^ERR_(?:SSL|TLS|OSSL)/.test(code) ||
      /certificate|altnames/i.test(words),
    what: 'has a certificate that is not trusted',
    fix: 'name the authority that issued it in ca of [store], and a host that it is for',
  },
  {
    is: (_, words) => /does not support SSL/.test(words),
    what: 'does not speak TLS',
    fix: 'set ssl = on in postgresql.conf, or remove ca of [store] for a socket',
  },
  {
    is: (code) => code.startsWith('53'),
    what: 'has no connection or memory left',
    fix: 'raise max_connections of PostgreSQL, or end other sessions',
  },
  {
    is: (code) => code === '57P03',
    what: 'is starting, or stopping',
    fix: "wait, and read PostgreSQL's log",
  },
  {
    is: (code) => code === '55000',
    what: 'accepts no connections',
    fix: 'run ALTER DATABASE … ALLOW_CONNECTIONS true',
  },
  {
    is: () => true,
    what: 'does not answer',
    fix: 'start PostgreSQL, or correct host and port of [store]',
  },
];

/** With the words of PostgreSQL, TLS or the system. */
export const awayCause = (error: unknown): { readonly what: string; readonly words: string; readonly fix: string } => {
  const [code, words] = [saidCode(error), saidWords(error)];
  const { what, fix } = causes.find(({ is }) => is(code, words, error)) as Cause;
  return { what, words, fix };
};
