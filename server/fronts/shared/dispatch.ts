// Who answers a request. The data paths (the XKS proxy, the TDE API) answer on Node's own request and response, found by the target as
// it came, before anybody reads it as a URL; everything else is Hono's. Web objects between the socket and a data path would cost more than
// the work itself and lose the raw header list, and even a router in between is a tenth of a request (docs/decisions/0013).

import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';

export interface RawFront {
  /** Whether a request target is the front's. */
  owns(target: string | undefined): boolean;
  /** Answers one request; never throws. */
  handle(incoming: IncomingMessage, outgoing: ServerResponse): void;
}

/** What the listener hands its requests to. */
export const createDispatch = (
  others: Hono,
  fronts: readonly RawFront[],
): ((incoming: IncomingMessage, outgoing: ServerResponse) => void) => {
  const viaHono = getRequestListener(others.fetch, {
    overrideGlobalObjects: false,
    // In HTTP/2 the adapter would end a request that is answered later than at once.
    autoCleanupIncoming: false,
  });
  return (incoming, outgoing) => {
    for (const front of fronts)
      if (front.owns(incoming.url)) {
        front.handle(incoming, outgoing);
        return;
      }
    void viaHono(incoming, outgoing);
  };
};
