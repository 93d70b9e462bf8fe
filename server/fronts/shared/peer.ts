// Who is at the other end of the connection, as the socket says. Forwarding headers are not believed.

import type { IncomingMessage } from 'node:http';
import type { Context } from 'hono';

/** The address of the peer; null when the request did not come through a socket. */
export const peerOf = (context: Context): string | null =>
  (context.env as { readonly incoming?: IncomingMessage } | undefined)?.incoming?.socket?.remoteAddress ?? null;
