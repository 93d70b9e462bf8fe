// What an error says about the store as a whole. What the server sends is a DatabaseError with an SQLSTATE (PostgreSQL, appendix A). Whatever else ends a
// connection (the kernel, TLS, the look-up of the name, the password's file, pg itself) is made a ConnectionLost where it happens: no list of their codes
// is complete.

import pg from 'pg';
import type { ErrorKind } from '../engine.ts';
import { StoreError } from '../errors.ts';

/** There is no connection, or not any longer. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

/** The connection that a transaction ran on is gone, or the server has ended the transaction: it was not committed. */
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

/** What connecting and asking throw. A value that pg cannot send is a fault of the program, and ends nothing. */
export const asConnectionError = (error: unknown): unknown => {
  const isTold = [pg.DatabaseError, NotPrimary, ConnectionLost, StoreError, TypeError, RangeError].some(
    (known) => error instanceof known,
  );
  if (isTold) return error;
  // A name with several addresses fails without a message.
  const message = error instanceof Error && error.message !== '' ? error.message : codeOf(error);
  return new ConnectionLost(message, { cause: error });
};

/** By SQLSTATE, or by its class. */
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
  // Of a connection that was opened again; the tables themselves are as they were.
  if (error instanceof StoreError) return error.code === 'open' ? 'away' : 'fatal';
  if ([ConnectionLost, TransactionLost, NotPrimary].some((lost) => error instanceof lost)) return 'away';
  if (!(error instanceof pg.DatabaseError)) return undefined;
  const code = codeOf(error);
  return kinds[code] ?? kinds[code.slice(0, 2)];
};

/** Whether the connection that failed so is of no further use. The last words of a server come with the next statement, before the end that follows. */
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

export const isRefused = (error: unknown): boolean => codeOf(error).startsWith('28');
export const isDropped = (error: unknown): boolean => codeOf(error) === '3D000';
