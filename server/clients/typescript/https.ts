// One HTTPS request. Redirects are not followed, so that a token goes nowhere else. Leaves out
// retries: send.ts.

import type { IncomingMessage } from 'node:http';
import { type Agent, request } from 'node:https';
import type { LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ConnectionError } from './client-errors.ts';
import type { FileBody } from './operation.ts';

export interface Connection {
  /** PEM of the authorities to trust; those of the system when absent. */
  readonly ca?: Uint8Array | string | undefined;
  /** The connections that are reused; false: one for each request. */
  readonly agent?: Agent | false | undefined;
  readonly lookup?: LookupFunction | undefined;
}

export interface WireRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | FileBody | undefined;
  /** Until a connection is there. */
  readonly connectMs: number;
  /** Without a byte of the answer. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The first `Headers` of a process loads Node's own client of fetch, a fifth of the CPU time of a
 * command: so only those who ask get them.
 */
export class AnswerHeaders {
  readonly #answer: IncomingMessage;
  #all: Headers | undefined;

  constructor(answer: IncomingMessage) {
    this.#answer = answer;
  }

  get(name: string): string | undefined {
    return this.#answer.headersDistinct[name]?.join(', ');
  }

  get all(): Headers {
    if (this.#all !== undefined) return this.#all;
    this.#all = new Headers();
    const { rawHeaders } = this.#answer;
    for (let at = 0; at < rawHeaders.length; at += 2) this.#all.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '');
    return this.#all;
  }
}

export interface WireAnswer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  /** Throws `ConnectionError` when the connection ends before the answer does. */
  readonly body: AsyncIterable<Uint8Array>;
}

export const sendOnce = (
  { ca, agent, lookup }: Connection,
  { method, url, headers, body, connectMs, timeoutMs, signal }: WireRequest,
): Promise<WireAnswer> =>
  new Promise((resolve, reject) => {
    let connected = false;
    /** Why the file that is sent cannot be read any further. */
    let unreadable: { readonly reason: unknown } | undefined;
    const failure = (error: NodeJS.ErrnoException): unknown => {
      if (unreadable !== undefined) return unreadable.reason;
      if (signal?.aborted === true) return signal.reason;
      return new ConnectionError(url.origin, error.code ?? 'unknown', connected);
    };
    const fail = (error: NodeJS.ErrnoException): void => reject(failure(error));
    async function* readFile({ from }: FileBody): AsyncGenerator<Uint8Array> {
      try {
        yield* from;
      } catch (reason) {
        unreadable = { reason };
        throw reason;
      }
    }
    async function* read(answer: IncomingMessage): AsyncGenerator<Uint8Array> {
      try {
        for await (const part of answer) yield part as Buffer;
      } catch (error) {
        throw failure(error as NodeJS.ErrnoException);
      }
    }
    const isBytes = body instanceof Uint8Array;
    const length = isBytes ? body.length : body?.size;
    const sent = request(
      url,
      {
        method: method.toUpperCase(),
        ...(ca === undefined ? {} : { ca: ca as Buffer }),
        ...(agent === undefined ? {} : { agent }),
        ...(lookup === undefined ? {} : { lookup }),
        ...(signal === undefined ? {} : { signal }),
        timeout: connectMs,
        headers: { ...headers, ...(length === undefined ? {} : { 'content-length': length }) },
      },
      (answer) => resolve({ status: answer.statusCode ?? 0, headers: new AnswerHeaders(answer), body: read(answer) }),
    );
    sent.on('socket', (socket) => {
      const ready = (): void => {
        connected = true;
        socket.setTimeout(timeoutMs);
      };
      if (sent.reusedSocket) ready();
      else socket.once('secureConnect', ready);
    });
    sent.on('timeout', () => sent.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })));
    sent.on('error', fail);
    if (body === undefined || isBytes) sent.end(body);
    else pipeline(Readable.from(readFile(body)), sent).catch(fail);
  });

/** All of an answer. What it came in is wiped; the caller wipes the whole when it has a secret. */
export const readAll = async (body: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  const whole = Buffer.concat(parts);
  for (const part of parts) part.fill(0);
  return whole;
};
