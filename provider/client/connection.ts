// One process on the other end of the socket: who it is, and the application it becomes by C_Initialize. Whatever the process
// has open here ends with the connection.
import { hostname } from 'node:os';
import type { Peer } from '../../addon/core.ts';
import type { InstanceHeader } from '../../server/fronts/contract/tde.ts';
import { Application } from './application.ts';
import type { Dialect } from './codec.ts';
import type { LogLevel } from './config.ts';
import type { Hello } from './hello.ts';
import type { LogFields } from './log.ts';
import { type Repeater, Routines } from './routines.ts';
import type { ServiceDoor } from './service.ts';

/** What a configuration gives: the way to the service, under an id that names it in the log. */
export interface Context {
  readonly id: number;
  readonly door: ServiceDoor;
}

/** What a connection needs from the rest of the agent. */
export interface Surroundings {
  /** Opens the configuration at a path, null for the agent's own, on behalf of a user. Throws CryptokiError. */
  open(config: string | null, peer: Peer): Promise<Context>;
  /** Says that one user of a context is gone. */
  release(context: Context): void;
  /** `context` is null before C_Initialize. */
  log(context: Context | null, level: LogLevel, fields: LogFields, message: string): void;
  /** The name of a local user, or the number when there is none. */
  userName(uid: number): string;
  /** Who repeats messages by itself; absent when nobody does. */
  readonly repeater?: Repeater;
}

const agentVersion = '1.0';

export class Connection {
  readonly id: number;
  readonly peer: Peer;
  readonly dialect: Dialect;
  application: Application | null = null;
  initializing = false;
  readonly routines: Routines;
  readonly #surroundings: Surroundings;
  #context: Context | null = null;
  #process = '';
  #closed = false;

  constructor(id: number, peer: Peer, dialect: Dialect, surroundings: Surroundings) {
    this.id = id;
    this.peer = peer;
    this.dialect = dialect;
    this.#surroundings = surroundings;
    // Other dialects have other messages.
    this.routines = new Routines(id, (dialect === 'own' && surroundings.repeater) || null);
  }

  /** C_Initialize. `hello` is what our library says of itself; null for other peers. */
  async initialize(hello: Hello | null): Promise<Application> {
    this.initializing = true;
    try {
      const context = await this.#surroundings.open(hello?.config ?? null, this.peer);
      // The process may have gone meanwhile: then nobody would release what is opened here.
      if (this.#closed) this.#surroundings.release(context);
      else this.#context = context;
      this.#process = hello?.process ?? '';
      this.application = new Application(
        context.door,
        this.#instance(hello),
        (level, fields, message) => this.log(level, fields, message),
        hello?.connection,
      );
      this.log('info', { library: hello?.library ?? 'unknown', resumed: hello?.sessions.length ?? 0 }, 'initialized');
      return this.application;
    } finally {
      this.initializing = false;
    }
  }

  #instance(hello: Hello | null): InstanceHeader {
    return {
      host: hostname(),
      // The socket's word, not the process': it cannot lie.
      pid: this.peer.pid,
      process: hello?.process ?? '',
      library: hello?.library ?? '',
      agent: agentVersion,
      osUser: this.#surroundings.userName(this.peer.uid),
    };
  }

  /** C_Finalize. */
  finalize(): void {
    this.application?.end();
    this.application = null;
    if (this.#context !== null) this.#surroundings.release(this.#context);
    this.#context = null;
  }

  close(): void {
    this.#closed = true;
    this.finalize();
  }

  log(level: LogLevel, fields: LogFields, message: string): void {
    const { pid, uid } = this.peer;
    this.#surroundings.log(this.#context, level, { peer: pid, uid, process: this.#process, ...fields }, message);
  }
}
