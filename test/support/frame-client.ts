// A peer of the frame server for tests: p11-kit's framing over a unix socket, and the server in a
// worker thread of its own (frame-worker.ts), as the agent runs it. Knows nothing of Cryptoki.
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { core, type Peer } from '../../addon/core.ts';

export interface FrameWorkerOptions {
  readonly path: string;
  readonly spinMicroseconds: number;
  readonly maxFrame: number;
  readonly maxConnections: number;
  readonly stallMilliseconds?: number;
  /**
   * A number that the test increments before it wakes the server: the worker reports the number
   * that it saw.
   */
  readonly ticket: Int32Array<SharedArrayBuffer>;
}

/**
 * The worker's reports: each callback of the frame server, and each end of an event loop turn that
 * matters to a test.
 */
export type FrameEvent =
  | { readonly kind: 'listening'; readonly id: number }
  | { readonly kind: 'connect'; readonly connection: number; readonly peer: Peer; readonly version: number }
  | { readonly kind: 'close'; readonly connection: number }
  | { readonly kind: 'threw'; readonly message: string }
  | {
      readonly kind: 'statistics';
      readonly connections: number;
      readonly frames: number;
      readonly laneMessages: number;
      readonly rejected: number;
    }
  | { readonly kind: 'woken'; readonly ticket: number }
  | { readonly kind: 'stopped' };

/** The first byte of a frame's body selects what the worker does with it. */
export const ACTION = {
  echo: 0,
  later: 1,
  close: 2,
  throw: 3,
  nothing: 4,
  tooLong: 5,
  largest: 6,
  turnAgain: 7,
  crossed: 8,
} as const;

export const header = (callCode: number, options: number, body: number): Buffer => {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt32BE(callCode, 0);
  bytes.writeUInt32BE(options, 4);
  bytes.writeUInt32BE(body, 8);
  return bytes;
};

export const frame = (callCode: number, body: Uint8Array, options: Uint8Array = Buffer.alloc(0)): Buffer =>
  Buffer.concat([header(callCode, options.length, body.length), options, body]);

export const action = (what: number, rest = ''): Buffer => Buffer.concat([Buffer.from([what]), Buffer.from(rest)]);

/** One connection. Reads are in order; a read that the peer's close cuts short rejects. */
export class FrameClient {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  #received = Buffer.alloc(0);
  #ended = false;
  #changed: () => void = () => {};

  constructor(path: string) {
    this.socket = connect(path);
    this.socket.on('data', (bytes) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      this.#changed();
    });
    this.socket.on('error', () => {});
    this.closed = new Promise((resolve) => {
      this.socket.on('close', () => {
        this.#ended = true;
        this.#changed();
        resolve();
      });
    });
  }

  write(bytes: Uint8Array): void {
    this.socket.write(bytes);
  }

  async read(length: number): Promise<Buffer> {
    while (this.#received.length < length) {
      if (this.#ended) throw new Error(`closed after ${this.#received.length} of ${length} bytes`);
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
    const bytes = this.#received.subarray(0, length);
    this.#received = this.#received.subarray(length);
    return bytes;
  }

  /** Says the version byte and reads the answer. */
  async greet(version = 0): Promise<number> {
    this.write(Buffer.from([version]));
    return (await this.read(1)).readUInt8();
  }

  async readFrame(): Promise<{ readonly callCode: number; readonly options: number; readonly body: Buffer }> {
    const head = await this.read(12);
    return {
      callCode: head.readUInt32BE(0),
      options: head.readUInt32BE(4),
      body: await this.read(head.readUInt32BE(8)),
    };
  }

  async call(callCode: number, body: Uint8Array): Promise<Buffer> {
    this.write(frame(callCode, body));
    const reply = await this.readFrame();
    if (reply.callCode !== callCode) throw new Error(`reply to ${reply.callCode} instead of ${callCode}`);
    return reply.body;
  }

  end(): void {
    this.socket.destroy();
  }
}

/**
 * A frame server in a worker. `stop` ends it; `worker.terminate()` is there for the tests that want
 * it harder.
 */
export class FrameWorker {
  readonly folder = mkdtempSync(join(tmpdir(), 'dke-frames-'));
  readonly path = join(this.folder, 'socket');
  readonly worker: Worker;
  readonly events: FrameEvent[] = [];
  readonly exited: Promise<number>;
  readonly ticket = new Int32Array(new SharedArrayBuffer(4));
  id = 0;
  #asked = 0;
  #changed: () => void = () => {};

  private constructor(options: Partial<FrameWorkerOptions>) {
    const workerData: FrameWorkerOptions = {
      path: this.path,
      spinMicroseconds: 20,
      maxFrame: 65_536,
      maxConnections: 1000,
      ticket: this.ticket,
      ...options,
    };
    this.worker = new Worker(new URL('./frame-worker.ts', import.meta.url), { workerData });
    this.worker.on('message', (event: FrameEvent) => {
      this.events.push(event);
      this.#changed();
    });
    this.exited = new Promise((resolve, reject) => {
      this.worker.on('exit', resolve);
      this.worker.on('error', reject);
    });
  }

  static async start(options: Partial<FrameWorkerOptions> = {}): Promise<FrameWorker> {
    const server = new FrameWorker(options);
    const { id } = await Promise.race([
      server.event('listening'),
      server.exited.then(() => Promise.reject(new Error('the worker ended before it listened'))),
    ]);
    server.id = id;
    return server;
  }

  /** The `nth` event of a kind, as soon as it occurs. */
  async event<K extends FrameEvent['kind']>(kind: K, nth = 1): Promise<Extract<FrameEvent, { kind: K }>> {
    for (;;) {
      const found = this.events.filter((event): event is Extract<FrameEvent, { kind: K }> => event.kind === kind)[
        nth - 1
      ];
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        const before = this.#changed;
        this.#changed = () => {
          before();
          resolve();
        };
      });
    }
  }

  /** Counters as they are now. The message ends the worker's turn on its own. */
  async statistics(): Promise<Extract<FrameEvent, { kind: 'statistics' }>> {
    this.worker.postMessage('statistics');
    this.#asked += 1;
    return await this.event('statistics', this.#asked);
  }

  /** Wakes the server from this thread, without a message, and waits until it has seen that. */
  async wake(): Promise<void> {
    const ticket = Atomics.add(this.ticket, 0, 1) + 1;
    core.wakeFrameServer(this.id);
    for (let nth = 1; (await this.event('woken', nth)).ticket < ticket; nth++);
  }

  async client(version = 0): Promise<FrameClient> {
    const client = new FrameClient(this.path);
    await client.greet(version);
    return client;
  }

  async stop(): Promise<void> {
    core.stopFrameServer(this.id);
    await this.exited;
    rmSync(this.folder, { recursive: true, force: true });
  }
}
