// Who answers a request: Hono routes them all. The data paths (the XKS proxy, the TDE API) answer
// on Node's own request and response, because Web objects between the socket and a handler cost
// more than the work itself and lose the raw header list. So their router is called with Node's
// request, without the adapter that would make Web objects of it, and finds them by the target as
// it came, before any code reads it as a URL (docs/decisions/0013). What is not theirs goes through
// the adapter to the other routes.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono } from 'hono';

export interface RawFront {
  /** Where it is, as Hono writes it: `/xks/*`. */
  readonly route: string;
  /** Whether a request target is the front's: its route, as it came. */
  owns(target: string | undefined): boolean;
  /** Answers one request; never throws. */
  handle(incoming: IncomingMessage, outgoing: ServerResponse): void;
}

/** What the listener hands its requests to. */
export const createDispatch = (
  others: Hono,
  fronts: readonly RawFront[],
): ((incoming: IncomingMessage, outgoing: ServerResponse) => void) => {
  const viaAdapter = getRequestListener(others.fetch, {
    overrideGlobalObjects: false,
    // In HTTP/2 the adapter would end a request that is answered later than at once.
    autoCleanupIncoming: false,
  });
  // The router reads only the method of a request, and its path through `getPath`. Node's request
  // has both, as a Web request has.
  const app = new Hono<{ Bindings: HttpBindings }>({ getPath: ({ url }) => url });
  for (const front of fronts)
    app.all(front.route, (c, next) => {
      const { incoming, outgoing } = c.env;
      // Hono's `/xks/*` is `/xks`, too.
      if (!front.owns(incoming.url)) return next();
      front.handle(incoming, outgoing);
      return RESPONSE_ALREADY_SENT;
    });
  app.notFound((c) => {
    void viaAdapter(c.env.incoming, c.env.outgoing);
    return RESPONSE_ALREADY_SENT;
  });
  return (incoming, outgoing) => {
    void app.fetch(incoming as unknown as Request, { incoming, outgoing });
  };
};
