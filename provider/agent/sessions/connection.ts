// One process on the other end of the socket: who it is, and the application it becomes by
// C_Initialize. Whatever the process has open here ends with the connection.
import { hostname } from 'node:os';
import type { Peer } from '../../../addon/core.ts';
import { type InstanceHeader, instanceText, onceRoutes } from '../../../server/contract/tde.ts';
import type { Dialect } from '../codec/wire.ts';
import type { ServiceDoor, Wait } from '../service/service-door.ts';
import type { LogLevel } from '../settings/config.ts';
import type { LogFields } from '../settings/log.ts';
import { Application } from './application.ts';
import type { Hello } from './hello.ts';
import type { Later } from './later.ts';
import { type Repeater, ReplayCache } from './replays.ts';
import { type Account, ownAccount } from './user-limits.ts';

/** What a configuration gives: the way to the service, under an id that names it in the log. */
export interface Context {
  readonly id: number;
  readonly door: ServiceDoor;
  /** How long the socket loop spins after a call of the process, in microseconds. */
  readonly spinUs: number;
  /** Whether each call of the process is told (call-trace.ts). */
  readonly isTraced: boolean;
}

/** What a connection needs from the rest of the agent. */
export interface Surroundings {
  /**
   * Opens the configuration at a path, null for the agent's own, on behalf of a user. Throws
   * CryptokiError.
   */
  open(config: string | null, peer: Peer, wait: Wait | null): Promise<Context>;
  /** Says that one user of a context is gone. */
  release(context: Context): void;
  /** `context` is null before C_Initialize. */
  log(context: Context | null, level: LogLevel, fields: LogFields, message: string): void;
  /** The name of a local user, or the number when there is none. */
  userName(uid: number): string;
  /** Says whether a connection has called C_Initialize: only then may it stay. */
  admit?(connection: number, admitted: boolean): void;
  /** How long the socket loop spins after its calls. */
  spin?(connection: number, microseconds: number): void;
  /** The part that repeats messages on its own; absent when there is none. */
  readonly repeater?: Repeater;
}

const agentVersion = '1.0';

export class Connection {
  readonly id: number;
  readonly peer: Peer;
  readonly dialect: Dialect;
  application: Application | null = null;
  initializing = false;
  readonly replays: ReplayCache;
  readonly #surroundings: Surroundings;
  /** What the processes of the peer's user have in this agent. */
  readonly account: Account;
  #context: Context | null = null;
  #process = '';
  #closed = false;
  /** Whether the account counts this connection. */
  #counted = false;
  /** Frames that are not answered yet. */
  pending = 0;

  constructor(id: number, peer: Peer, dialect: Dialect, surroundings: Surroundings, account: Account = ownAccount()) {
    this.id = id;
    this.account = account;
    this.peer = peer;
    this.dialect = dialect;
    this.#surroundings = surroundings;
    // Other dialects have other messages.
    this.replays = new ReplayCache(id, (dialect === 'own' && surroundings.repeater) || null);
  }

  /** C_Initialize. `hello` is what our library says of itself; null for other peers. */
  async initialize(hello: Hello | null): Promise<Application> {
    this.account.check('memory');
    this.account.take('connections');
    this.#counted = true;
    this.initializing = true;
    try {
      const instance = this.#instance(hello);
      const seconds = hello?.wait ?? 0;
      // The wait may take longer than a peer that has not called C_Initialize may stay connected.
      if (seconds > 0) this.#surroundings.admit?.(this.id, true);
      const wait = seconds > 0 ? { seconds, instance: instanceText(instance) } : null;
      const context = await this.#surroundings.open(hello?.config ?? null, this.peer, wait);
      // The process may have ended in the meantime: then what is opened here would never be
      // released.
      if (this.#closed) this.#surroundings.release(context);
      else this.#context = context;
      this.#process = hello?.process ?? '';
      const application = new Application(
        this.#watched(context.door),
        instance,
        (level, fields, message) => this.log(level, fields, message),
        hello?.connection,
        this.account,
      );
      this.application = application;
      if (this.#closed) void this.finalize();
      else {
        this.#surroundings.admit?.(this.id, true);
        this.#surroundings.spin?.(this.id, context.spinUs);
      }
      this.log('info', { library: hello?.library ?? 'unknown', resumed: hello?.sessions.length ?? 0 }, 'initialized');
      return application;
    } finally {
      this.initializing = false;
      if (this.application === null) this.#uncount();
    }
  }

  /** An answer to a process that is gone reaches no one: what the call has created is undone. */
  #watched(door: ServiceDoor): ServiceDoor {
    return {
      ...door,
      call: async (request, caller) => {
        const answer = await door.call(request, caller);
        if (this.#closed && onceRoutes.has(request.route)) door.withdraw(caller);
        return answer;
      },
    };
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
  finalize(): Later<void> {
    const ended = this.application?.end();
    this.application = null;
    this.#uncount();
    if (this.#context !== null) this.#surroundings.release(this.#context);
    this.#context = null;
    return ended;
  }

  #uncount(): void {
    if (!this.#counted) return;
    this.#counted = false;
    this.account.give('connections');
    if (!this.#closed) this.#surroundings.admit?.(this.id, false);
  }

  get isTraced(): boolean {
    return this.#context?.isTraced === true;
  }

  close(): void {
    this.#closed = true;
    void this.finalize();
  }

  log(level: LogLevel, fields: LogFields, message: string): void {
    const { pid, uid } = this.peer;
    this.#surroundings.log(this.#context, level, { peer: pid, uid, process: this.#process, ...fields }, message);
  }
}
