// The id of a request: the caller's `X-Request-Id` when it is one we take, else a new one. It is
// echoed, logged and borne by the audit records of what the request did.

import { newId } from '../../base/ids.ts';

export const requestIdHeader = 'x-request-id';

/**
 * What a caller may choose: short, printable, and nothing that has a meaning in a log or a header.
 */
const accepted = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

export const pickRequestId = (given: string | undefined, now: number): string =>
  given !== undefined && accepted.test(given) ? given : newId(now);
