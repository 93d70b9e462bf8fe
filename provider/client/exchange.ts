// One request over undici's pool and its answer in one piece, by the pool's own interface (undici's `dispatch`): a stream, its promises
// and a signal for each, as `request` has them, are a quarter of what such a call costs. Answers may hold secrets: what the pool has read
// them into is wiped, and the memory that they are returned in is not shared.
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';

export interface Whole {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Owned by the receiver. */
  readonly body: Buffer;
}

/** Not from the memory that small buffers share. */
const joined = (parts: readonly Buffer[]): Buffer => {
  const whole = Buffer.allocUnsafeSlow(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) at += part.copy(whole, at);
  return whole;
};

export class Exchange implements Dispatcher.DispatchHandler {
  /** Rejects with undici's error, or with what the exchange was cancelled with. */
  readonly answer: Promise<Whole>;
  #resolve: (whole: Whole) => void = () => undefined;
  #reject: (reason: Error) => void = () => undefined;
  #controller: Dispatcher.DispatchController | null = null;
  #cancelled: Error | null = null;
  #isStarted = false;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #parts: Buffer[] = [];

  constructor(pool: Dispatcher, request: Dispatcher.DispatchOptions) {
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    pool.dispatch(request, this);
  }

  /** Whether the request may have reached the service. */
  get isStarted(): boolean {
    return this.#isStarted;
  }

  /** Ends it at once, also while it waits for a connection. Nothing happens when the answer is there. */
  cancel(reason: Error): void {
    this.#cancelled = reason;
    this.#controller?.abort(reason);
    this.#fail(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#isStarted = true;
    if (this.#cancelled !== null) controller.abort(this.#cancelled);
  }

  /** Also of what comes before an answer (1xx): the last one counts. */
  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#parts.push(joined([chunk]));
    chunk.fill(0);
  }

  onResponseEnd(): void {
    // Mostly one part, which is given away.
    const only = this.#parts.length === 1 ? this.#parts.pop() : undefined;
    const body = only ?? joined(this.#parts);
    this.#wipe();
    this.#controller = null;
    this.#resolve({ status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  #fail(error: Error): void {
    this.#wipe();
    this.#reject(error);
  }

  #wipe(): void {
    for (const part of this.#parts) part.fill(0);
    this.#parts = [];
  }
}
