// The lines of the access log: one JSON object for each request. The description of a request
// contains no token, no body and no path as it came, so that nothing has to be removed here.

import { toRfc3339 } from '../../base/time.ts';
import type { RequestObserver } from '../../ports/telemetry.ts';

export const logRequests =
  (write: (line: string) => void): RequestObserver =>
  ({ at, durationMs, requestId, front, method, route, status, caller, peer, bytes }) =>
    write(
      `${JSON.stringify({
        time: toRfc3339(at),
        requestId,
        front,
        method,
        route,
        status,
        durationMs: Math.round(durationMs * 1000) / 1000,
        bytes,
        caller,
        peer,
      })}\n`,
    );
