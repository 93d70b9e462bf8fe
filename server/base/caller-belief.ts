// How long what was read of a caller is believed before it is read again.

/**
 * Milliseconds that sessions believe what they have read, and after them what is under way. Both
 * together are the second that docs/postgresql.md promises.
 */
export const callerBelievedMs = 500;
