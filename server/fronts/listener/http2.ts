// HTTP/2 over connections that the listener gives to it: requests that come and are answered in
// time, peers that are there, and an end that loses nothing.

import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  createServer as createHttp2,
  type Http2Session,
  type Http2Stream,
  constants as http2Constants,
} from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { LimitName } from '../../base/limit-refusals.ts';
import { isOverdue } from '../../base/upload.ts';
import type { RawConnection } from './raw-connections.ts';
import { headersExceed, objectionTo, refuse } from './refusals.ts';

const pingTimeoutMs = 5_000;
const aliveCheckMs = 15_000;
const mostStreams = 128;
/** How long an answer over HTTP/2 may wait for its reader, in steps of the time of a request. */
const mostUnreadSteps = 6;
/**
 * How long a session that has just begun when the listener ends may take to bring its first
 * request, and how long any of them then takes to answer a PING.
 */
const lastCallMs = 1_000;

export interface Http2Options {
  readonly handle: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  /** How long a request may take to come, and its answer to continue. */
  readonly requestMs: number;
  readonly refused: (limit: LimitName, address: string | null) => void;
  readonly maxHeaderBytes: number;
  /** How long a session may be silent. */
  readonly silentMs: number;
}

/** The sessions that are open, and their end. */
const createSessions = () => {
  /** When each session began. */
  const open = new Map<Http2Session, number>();
  /** Sessions that have brought a request. */
  const requested = new WeakSet<Http2Session>();
  let ending = false;
  /**
   * Ends a session without losing a request that is under way: what the peer sent before it
   * answered a PING is taken, and the GOAWAY behind it names the last one, so that the peer repeats
   * what came later elsewhere (RFC 9113, 6.8). A GOAWAY that refuses nothing, before the PING, is
   * not possible: nghttp2 then reads nothing more of a session without streams. A session that has
   * just begun brings its first request before.
   */
  const end = (session: Http2Session, begun: number): void => {
    const finish = (): void => {
      clearTimeout(waiting);
      if (session.closed || session.destroyed) return;
      const close = (): void => {
        clearTimeout(timer);
        session.close();
      };
      const timer = setTimeout(close, lastCallMs).unref();
      if (!session.ping(close)) close();
    };
    const waiting = setTimeout(finish, Math.max(0, lastCallMs - (performance.now() - begun))).unref();
    if (requested.has(session)) finish();
    else session.once('stream', finish);
    session.once('close', () => clearTimeout(waiting));
  };
  return {
    add: (session: Http2Session): void => {
      const begun = performance.now();
      open.set(session, begun);
      session.once('close', () => open.delete(session));
      session.once('stream', () => requested.add(session));
      // Its handshake had begun before the end did.
      if (ending) end(session, begun);
    },
    end: (): void => {
      ending = true;
      for (const [session, begun] of open) end(session, begun);
    },
    destroy: (): void => {
      for (const session of open.keys()) session.destroy();
    },
  };
};

const addressOf = ({ session }: Http2Stream): string | null => session?.socket?.remoteAddress ?? null;

export const createHttp2Server = ({ handle, requestMs, refused, maxHeaderBytes, silentMs }: Http2Options) => {
  const handleHttp2 = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const objection = objectionTo(incoming);
    if (objection !== undefined) refuse(incoming, outgoing, objection);
    else if (headersExceed(incoming, maxHeaderBytes))
      refuse(incoming, outgoing, 'the headers are longer than 8 KiB', 431);
    else handle(incoming, outgoing);
  };

  const sessions = createSessions();
  /** Requests of each session that are under way. */
  const streams = new WeakMap<Http2Session, Set<Http2Stream>>();
  /** Nothing keeps a session whose connection has closed; Node may not notice that it has. */
  const drop = (session: Http2Session): void => {
    // A timer of a stream that is destroyed stays, too.
    for (const stream of streams.get(session) ?? []) stream.setTimeout(0);
    session.destroy();
  };
  /** The connection of each session. */
  const connections = new WeakMap<Http2Session, RawConnection>();
  /**
   * A peer that lets a request wait may be gone without a sign: one that is there answers (RFC
   * 9113, 6.7).
   */
  const requireAlive = (session: Http2Session): void => {
    const end = (): void => connections.get(session)?.destroy();
    const timer = setTimeout(end, pingTimeoutMs);
    timer.unref();
    const answered = (error: Error | null): void => {
      clearTimeout(timer);
      if (error !== null) end();
    };
    try {
      if (!session.ping(answered)) end();
    } catch {
      end();
    }
  };
  const http2 = createHttp2({
    settings: { maxConcurrentStreams: mostStreams, maxHeaderListSize: maxHeaderBytes, enablePush: false },
    maxHeaderListPairs: 100,
  });
  http2.on('session', (session) => {
    sessions.add(session);
    // Not with `setTimeout` of the session: Node does not end that timer with the session, and it
    // would keep the session, its sockets and buffers all that time.
    let [bytes, movedAt] = [0, performance.now()];
    const isSilent = (): boolean => {
      const now = (session.socket?.bytesRead ?? 0) + (session.socket?.bytesWritten ?? 0);
      if (now !== bytes) [bytes, movedAt] = [now, performance.now()];
      return performance.now() - movedAt > silentMs;
    };
    // Once after what was last begun, so that a silent peer costs one PING.
    let isDue = true;
    session.on('stream', () => {
      isDue = true;
    });
    const check = setInterval(() => {
      if (isDue) requireAlive(session);
      else if (isSilent()) session.close();
      isDue = false;
    }, aliveCheckMs);
    check.unref();
    session.once('close', () => clearInterval(check));
    session.on('error', () => session.destroy());
  });
  http2.on('stream', (stream) => {
    const { session } = stream;
    if (session !== undefined) {
      const open = streams.get(session) ?? new Set();
      streams.set(session, open.add(stream));
      stream.once('close', () => open.delete(stream));
    }
    let unreadSteps = 0;
    const hasCome = (): boolean => stream.state.state === http2Constants.NGHTTP2_STREAM_STATE_HALF_CLOSED_REMOTE;
    const look = (): void => {
      if (session !== undefined) requireAlive(session);
      // A request that has come is answered in the time that it takes, as over HTTP/1.
      unreadSteps = hasCome() && stream.writableLength === 0 ? 0 : unreadSteps + 1;
      if (hasCome() && unreadSteps < mostUnreadSteps) {
        stream.setTimeout(requestMs, look);
        return;
      }
      refused(hasCome() ? 'unread-answer' : 'late-request', addressOf(stream));
      stream.close(http2Constants.NGHTTP2_CANCEL);
    };
    stream.setTimeout(requestMs, look);
    // Silence is not all: a request comes completely in this time, or is a file.
    if (stream.endAfterHeaders) return;
    const since = performance.now();
    const check = setInterval(() => {
      if (hasCome()) clearInterval(check);
      else if (isOverdue(stream, session?.socket?.bytesRead ?? 0, since, requestMs)) {
        clearInterval(check);
        refused('late-request', addressOf(stream));
        stream.close(http2Constants.NGHTTP2_CANCEL);
      }
    }, requestMs / 10);
    check.unref();
    stream.once('close', () => clearInterval(check));
  });
  http2.on('connect', (incoming, outgoing) =>
    refuse(
      incoming as unknown as IncomingMessage,
      outgoing as unknown as ServerResponse,
      'the request target is a path',
    ),
  );
  http2.on('request', (incoming, outgoing) =>
    handleHttp2(incoming as unknown as IncomingMessage, outgoing as unknown as ServerResponse),
  );

  return {
    /** `connection`: what it is on. */
    take: (socket: TLSSocket, connection: RawConnection | undefined): void => {
      http2.once('session', (session) => {
        if (connection === undefined) return;
        session.once('close', () => connection.destroy());
        connection.endWith(() => session.close());
        connection.onClose(() => drop(session));
        connections.set(session, connection);
      });
      http2.emit('connection', socket);
    },
    end: sessions.end,
    destroy: sessions.destroy,
  };
};
