// One router for everything: Hono. Data paths (the XKS proxy, the TDE API) answer on Node's own request and response, because Web
// objects between the socket and a handler cost more than the work itself and lose the raw header list; Hono finds them by the
// target as it came, before anybody reads it as a URL (docs/decisions/0001).
//
// The adapter makes a URL of Host and target first and refuses what makes none, for example a Host that is no host name. A data
// path answers such a request by its own rules and in its own words: a signature tells whether it was meant so.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener, type HttpBindings, RequestError } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono } from 'hono';
import { getPath } from 'hono/utils/url';

export interface RawFront {
  /** Where it is, as Hono writes it: `/xks/*`. */
  readonly route: string;
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
  const ownerOf = (target: string | undefined): RawFront | undefined => {
    for (const front of fronts) if (front.owns(target)) return front;
    return undefined;
  };
  const app = new Hono<{ Bindings: HttpBindings }>({
    getPath: (request, options) => {
      const target = (options?.env as HttpBindings | undefined)?.incoming.url;
      return target !== undefined && ownerOf(target) !== undefined ? target : getPath(request);
    },
  });
  for (const front of fronts)
    app.all(front.route, (c) => {
      const { incoming, outgoing } = c.env;
      // Dot segments and percent-encoding can lead here, too; the target as it came is of no front then.
      if (!front.owns(incoming.url)) return c.notFound();
      front.handle(incoming, outgoing);
      return RESPONSE_ALREADY_SENT;
    });
  app.route('/', others as unknown as typeof app);

  /** The request that is being handed over: the adapter tells of its refusal before it returns, and not of which request. */
  let handedOver: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse } | undefined;
  const viaHono = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    // Bodies are the fronts' own business. In HTTP/2 the adapter would end a request that is answered later than at once.
    autoCleanupIncoming: false,
    errorHandler: (error) => {
      if (!(error instanceof RequestError) || handedOver === undefined) return new Response(null, { status: 500 });
      const { incoming, outgoing } = handedOver;
      const front = ownerOf(incoming.url);
      if (front === undefined) return new Response(null, { status: 400 });
      front.handle(incoming, outgoing);
      return RESPONSE_ALREADY_SENT;
    },
  });
  return (incoming, outgoing) => {
    handedOver = { incoming, outgoing };
    void viaHono(incoming, outgoing);
    handedOver = undefined;
  };
};
