// The one HTTPS listener: TLS 1.2 and 1.3, HTTP/1.1 and HTTP/2, several certificates by name,
// client certificates, and the PROXY protocol from balancers that are trusted with it. It hands out
// Node's own requests and responses and knows nothing of what is served.

import { constants, X509Certificate } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as endOfTurn, setTimeout as pause } from 'node:timers/promises';
import { createSecureContext, type SecureContext, type SecureContextOptions, type TLSSocket } from 'node:tls';
import { canonicalAddress } from '../../base/address.ts';
import { expectProof, markUnderWay } from '../../base/connection-proof.ts';
import type { LimitName } from '../../base/limit-refusals.ts';
import { createNetworks, type Networks } from '../../base/networks.ts';
import { originsOf } from '../../base/origins.ts';
import { StartError } from '../../base/start-error.ts';
import { createHttp2Server } from './http2.ts';
import { createNewestAnswers, createShapes, type NewestAnswersByConnection } from './kept-answers.ts';
import { readProxyHeader } from './proxy-protocol.ts';
import { watchRawConnections } from './raw-connections.ts';
import { answerParserError, objectionToHttp1, refuse, refuseByHand } from './refusals.ts';
import { createTurns } from './turns.ts';

/** What the proxy's specification asks of TLS: 1.2 and 1.3, AEAD suites only. */
const ciphers = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
].join(':');

const maxHeaderBytes = 8 * 1024;
const headersTimeoutMs = 5_000;
const requestTimeoutMs = 10_000;
/**
 * Above the 350 s after which common load balancers drop a silent connection: they close first,
 * never we under them.
 */
const keepAliveTimeoutMs = 360_000;
/** More than any connection may be silent. */
const sweepMarginMs = 10_000;
const lingerMs = 1_000;
/**
 * How long the handshake of a TCP connection that has begun takes at most, in a network that works.
 */
const handshakeMs = 100;
/** A connection that is silent for this time when a stop has begun is idle. */
const idleMs = 200;
/**
 * Requests over HTTP/1 that a connection may send before it has the answers to those before them.
 */
const mostWaiting = 100;

/** PEM texts. The first pair answers those who name no name, or one that no certificate has. */
export interface TlsMaterial {
  readonly pairs: readonly { readonly certificate: string; readonly key: string }[];
  /** CA bundles for client certificates; undefined: callers are not asked for one. */
  readonly clientAuthorities: readonly string[] | undefined;
}

export interface ListenerOptions {
  readonly tls: TlsMaterial;
  readonly maxConnections: number;
  /**
   * Addresses or networks (`10.0.0.0/8`) whose connections begin with a PROXY protocol header; all
   * others must have none.
   */
  readonly trustedProxies: readonly string[];
  readonly handle: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  /**
   * The system answers no new connection at this listening socket from now on, but ends handshakes
   * that have begun; false where it cannot.
   */
  readonly holdNew: (descriptor: number) => boolean;
  /** How long a request may take to come, and its answer to continue. */
  readonly requestMs?: number;
  /** Told of each connection that gives way, finds no place, or does not read its answer. */
  readonly refused?: (limit: LimitName, address: string | null) => void;
}

export interface Listener {
  /** Answers the port. Throws StartError 'listen'. */
  listen(host: string, port: number): Promise<number>;
  /**
   * New handshakes use this; running connections keep what they have. Throws when it cannot be
   * used; the old stays then.
   */
  setTls(tls: TlsMaterial): void;
  /** Hands requests to this from the next one on. */
  setHandle(handle: ListenerOptions['handle']): void;
  /**
   * Takes no new connection, lets running requests end, and cuts off what is left after `drainMs`.
   */
  close(drainMs: number): Promise<void>;
}

/** The names that a certificate is for, in lower case. */
const namesOf = (certificate: string): readonly string[] =>
  (new X509Certificate(certificate).subjectAltName ?? '')
    .split(', ')
    .flatMap((part) => (part.startsWith('DNS:') ? [part.slice('DNS:'.length).toLowerCase()] : []));

const contextOptions = (
  { certificate, key }: TlsMaterial['pairs'][number],
  { clientAuthorities }: TlsMaterial,
): SecureContextOptions => ({
  cert: certificate,
  key,
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.3',
  ciphers,
  honorCipherOrder: true,
  // A resumed session brings no chain along, so that an endpoint's authorities could not be looked
  // for in it.
  ...(clientAuthorities === undefined
    ? {}
    : {
        ca: [...clientAuthorities],
        secureOptions: constants.SSL_OP_NO_TICKET,
      }),
});

/** The contexts of the pairs after the first, by name. */
const contextsOf = (tls: TlsMaterial): ReadonlyMap<string, SecureContext> =>
  new Map(
    tls.pairs.flatMap((pair) => {
      const context = createSecureContext(contextOptions(pair, tls));
      return namesOf(pair.certificate).map((name): [string, SecureContext] => [name, context]);
    }),
  );

type ConnectionListener = (socket: Socket) => void;

/** Takes the place of the server's own listener of an event; answers what was there. */
const takeOver = (server: Server, event: 'connection' | 'secureConnection'): ConnectionListener => {
  const [own] = server.listeners(event) as [ConnectionListener];
  server.removeAllListeners(event);
  return (socket) => own.call(server, socket);
};

/** Ends connections, and knows those that it is ending. */
interface GentleEnd {
  /**
   * Ends a connection whose peer may still be sending: to close it with bytes unread would reset
   * it, and the peer would lose the answer that tells why (RFC 9112, 9.6).
   */
  end(socket: Duplex): void;
  isEnding(socket: Duplex): boolean;
}

const createGentleEnd = (): GentleEnd => {
  const ending = new WeakSet<object>();
  return {
    end: (socket) => {
      if (ending.has(socket)) return;
      ending.add(socket);
      socket.end();
      const timer = setTimeout(() => socket.destroy(), lingerMs);
      socket.once('close', () => clearTimeout(timer));
    },
    isEnding: (socket) => ending.has(socket),
  };
};

type Handle = ListenerOptions['handle'];

/** What HTTP/1.1 asks for before `handle` is called. */
const createHttp1Handlers = (
  handle: Handle,
  connections: GentleEnd,
  newest: NewestAnswersByConnection,
  isDraining: () => boolean,
) => {
  const keepShape = createShapes();
  /** Requests of a connection that wait for the answers before them. */
  const waiting = new WeakMap<object, number>();
  const handleHttp1 = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    // Its outcome could not be reported.
    if (connections.isEnding(incoming.socket)) return;
    const before = newest.of(incoming.socket)?.last;
    newest.add(incoming.socket, outgoing);
    keepShape(outgoing);
    if (before === undefined || before.writableFinished || before.closed) begin(incoming, outgoing);
    else beginAfter(before, incoming, outgoing);
  };
  /**
   * Who sends requests without waiting for answers, and reads none, would otherwise let a thousand
   * answers be made for 64 KiB of requests: the next answer is made when the one before has been
   * sent.
   */
  const beginAfter = (before: ServerResponse, incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const { socket } = incoming;
    const count = waiting.get(socket) ?? 0;
    // What is behind too many is not answered: the last answer ends the connection.
    if (count > mostWaiting) return;
    waiting.set(socket, count + 1);
    if (count === mostWaiting) socket.pause();
    before.once('close', () => {
      if (count === mostWaiting) connections.end(socket);
      if (socket.destroyed || connections.isEnding(socket)) return;
      if ((waiting.get(socket) ?? 0) <= mostWaiting) waiting.set(socket, (waiting.get(socket) ?? 1) - 1);
      begin(incoming, outgoing);
    });
  };
  const begin = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const objection = objectionToHttp1(incoming);
    if (objection !== undefined) {
      refuse(incoming, outgoing, objection);
      return;
    }
    if (isDraining()) outgoing.setHeader('Connection', 'close');
    handle(incoming, outgoing);
  };
  /**
   * A client that waits for "100 Continue" gets it when the body begins to be read: what is refused
   * before is refused at once.
   */
  const handleExpectation = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (incoming.headers.expect?.toLowerCase() !== '100-continue') {
      refuse(incoming, outgoing, 'the only expectation is 100-continue', 417);
      return;
    }
    incoming.once('resume', () => {
      if (!outgoing.headersSent) outgoing.writeContinue();
    });
    handleHttp1(incoming, outgoing);
  };
  return { handleHttp1, handleExpectation };
};

/** Answers what cannot be read, behind the answers to the requests before it. */
const refuseUnreadable = (
  server: Server,
  connections: GentleEnd,
  newest: NewestAnswersByConnection,
  isEstablished: (socket: Duplex) => boolean,
  refused: (limit: LimitName, address: string | null) => void,
): void => {
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // What a peer still sends after its last answer is read and dropped.
    if (connections.isEnding(socket)) return;
    if (!isEstablished(socket) || !socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
      refused('late-request', (socket as Partial<Socket>).remoteAddress ?? null);
    // The requests before the one that cannot be read are answered first. What cannot be read may
    // be the body of one.
    const answers = newest.of(socket);
    const last = answers?.last;
    const unread = last !== undefined && !last.req.complete;
    const isOfBody = unread && !last.headersSent;
    const answer = (): void => {
      // An answer that closes the connection has been the last.
      if (socket.writable) answerParserError(error, socket, isOfBody ? last.req.url : undefined);
      connections.end(socket);
    };
    const awaited = isOfBody ? answers?.before : last;
    if (awaited === undefined || awaited.closed) answer();
    else awaited.once('close', unread && awaited === last ? () => connections.end(socket) : answer);
  });
};

/**
 * Reads the header of connections from trusted proxies. Answers what looks up the real peer of a
 * connection, as long as that is open.
 */
const readProxyHeaders = (
  server: Server,
  trusted: Networks,
  isFrom: (socket: Socket, peer: string | null) => void,
): ((socket: Socket) => string | undefined) => {
  /** Real peers, by the proxy's own end of the connection. */
  const behindProxy = new Map<string, string>();
  const endOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
  const inTurn = createTurns(takeOver(server, 'connection'));
  const beginTls = (socket: Socket, peer = socket.remoteAddress): void =>
    inTurn(socket, originsOf(peer ?? null).at(-1)?.[1] ?? '');
  server.on('connection', (socket: Socket) => {
    if (!trusted.has(socket.remoteAddress)) {
      beginTls(socket);
      return;
    }
    readProxyHeader(socket, headersTimeoutMs, (peer) => {
      if (peer === undefined) {
        socket.destroy();
        return;
      }
      if (peer.address !== null) {
        const end = endOf(socket);
        behindProxy.set(end, peer.address);
        socket.once('close', () => behindProxy.delete(end));
      }
      isFrom(socket, peer.address);
      beginTls(socket, peer.address ?? undefined);
    });
  });
  return (socket) => behindProxy.get(endOf(socket));
};

const listenOn = (server: Server, host: string, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => {
      const where = `${host} port ${port}`;
      const message =
        error.code === 'EADDRINUSE'
          ? `${where} is in use: stop what listens there, or set server.port`
          : error.code === 'EACCES'
            ? `${where} cannot be opened (permission denied): ports below 1024 require CAP_NET_BIND_SERVICE; or set server.port`
            : `${where} cannot be opened (${error.code ?? 'unknown'}): check server.host`;
      reject(new StartError('listen', message, { cause: error }));
    };
    server.once('error', fail);
    server.listen({ host, port, backlog: 1024 }, () => {
      server.off('error', fail);
      resolve((server.address() as AddressInfo).port);
    });
  });

/**
 * A turn of the event loop takes one connection from the system's queue, until none waits there.
 */
const takeQueued = async (server: Server): Promise<void> => {
  let taken = 0;
  const count = (): void => {
    taken += 1;
  };
  server.on('connection', count);
  for (let before = -1; before !== taken; ) {
    before = taken;
    await endOfTurn();
  }
  server.off('connection', count);
};

/**
 * Takes no new connection, and resolves when the last one has ended. `begin` ends what Node does
 * not know as idle; after `drainMs`, everything is ended, with `cut`.
 */
const drain = async (
  server: Server,
  drainMs: number,
  { holdNew, begin, cut }: Record<'begin' | 'cut', () => void> & Pick<ListenerOptions, 'holdNew'>,
) => {
  // A socket that is closed resets the connections in its queue, although their peers, and
  // balancers that only connect, take them for accepted: no new one comes, and those are taken
  // first.
  const { fd } = (server as { readonly _handle?: { readonly fd?: number } | null })._handle ?? {};
  if (fd !== undefined && fd >= 0 && holdNew(fd)) {
    await pause(handshakeMs);
    await takeQueued(server);
  }
  const closed = new Promise<void>((resolve) => {
    // Not the server's own method, which would end what is idle at this moment.
    NetServer.prototype.close.call(server, () => resolve());
  });
  const began = performance.now();
  // Node closes idle connections only when asked: a connection that becomes idle while draining is
  // closed here.
  const sweep = setInterval(() => {
    const since = performance.now() - began;
    if (since < drainMs) {
      if (since >= idleMs) server.closeIdleConnections();
      return;
    }
    server.closeAllConnections();
    cut();
  }, 50);
  begin();
  await closed;
  clearInterval(sweep);
  // Ends its own timers.
  server.close();
};

export const createListener = (options: ListenerOptions): Listener => {
  let draining = false;
  let current = options.handle;
  const handle: Handle = (incoming, outgoing) => {
    const ended = markUnderWay(incoming.socket);
    if (ended !== undefined) outgoing.once('close', ended);
    current(incoming, outgoing);
  };
  let tls = options.tls;
  let byName = contextsOf(tls);
  const [first] = tls.pairs;
  if (first === undefined) throw new Error('a listener has a certificate');

  const connections = createGentleEnd();
  const requestMs = options.requestMs ?? requestTimeoutMs;
  const newest = createNewestAnswers(requestMs, ({ socket }) => {
    const error = new Error('the request did not arrive in time');
    server.emit('clientError', Object.assign(error, { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket);
  });
  const { handleHttp1, handleExpectation } = createHttp1Handlers(handle, connections, newest, () => draining);
  const server = createServer(
    {
      ...contextOptions(first, tls),
      ALPNProtocols: ['h2', 'http/1.1'],
      SNICallback: (name, answer) => {
        const asked = name.toLowerCase();
        answer(null, byName.get(asked) ?? byName.get(asked.replace(/^[^.]+/, '*')));
      },
      requestCert: tls.clientAuthorities !== undefined,
      rejectUnauthorized: false,
      handshakeTimeout: headersTimeoutMs,
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: headersTimeoutMs,
      // Counted here: a file may take longer (kept-answers.ts).
      requestTimeout: 0,
      keepAliveTimeout: keepAliveTimeoutMs,
      connectionsCheckingInterval: 1_000,
      noDelay: true,
      // Its absence is an objection of ours, so that it is answered as the others are.
      requireHostHeader: false,
    },
    handleHttp1,
  );
  server.on('checkContinue', handleExpectation);
  server.on('checkExpectation', handleExpectation);
  server.on('connect', (_incoming, socket) => {
    refuseByHand(socket, 'the request target is a path');
    connections.end(socket);
  });
  const trusted = createNetworks(options.trustedProxies);
  const refused = options.refused ?? (() => undefined);
  const peerOf = readProxyHeaders(server, trusted, (socket, peer) => raw.isFrom(socket, peer));
  const raw = watchRawConnections(server, {
    most: options.maxConnections,
    silentMs: keepAliveTimeoutMs + sweepMarginMs,
    refused,
    isBalancer: trusted.has,
  });
  const http2 = createHttp2Server({
    handle,
    requestMs,
    refused,
    maxHeaderBytes,
    silentMs: keepAliveTimeoutMs,
  });
  const beginHttp1 = takeOver(server, 'secureConnection');
  // Who has not finished the handshake (noise, or silence for too long) cannot be answered, and is
  // not waited for.
  const established = new WeakSet<object>();
  server.on('secureConnection', (socket: TLSSocket) => {
    established.add(socket);
    const connection = raw.of(socket);
    socket.once('close', () => connection?.destroy());
    if (connection !== undefined) expectProof(socket, connection);
    const peer = peerOf(socket) ?? socket.remoteAddress;
    // One text for one address, wherever it is read.
    if (peer !== undefined) Object.defineProperty(socket, 'remoteAddress', { value: canonicalAddress(peer) });
    if (socket.alpnProtocol === 'h2') {
      http2.take(socket, connection);
      return;
    }
    // Node calls it when the last answer of a connection is written.
    socket.destroySoon = () => connections.end(socket);
    beginHttp1(socket);
  });
  refuseUnreadable(server, connections, newest, (socket) => established.has(socket), refused);

  return {
    listen: (host, port) => listenOn(server, host, port),
    setTls: (next) => {
      const contexts = contextsOf(next);
      const [pair] = next.pairs;
      if (pair === undefined) throw new Error('a listener has a certificate');
      server.setSecureContext(contextOptions(pair, next));
      tls = next;
      byName = contexts;
    },
    setHandle: (next) => {
      current = next;
    },
    close: async (drainMs) => {
      draining = true;
      await drain(server, drainMs, {
        holdNew: options.holdNew,
        begin: http2.end,
        cut: () => {
          http2.destroy();
          raw.destroy();
        },
      });
      raw.stop();
    },
  };
};
