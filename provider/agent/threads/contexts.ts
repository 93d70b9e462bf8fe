// Configurations that are open, each with its way to the service and its log. One serves every
// process that names the same configuration file for the same user. Each user has a number of them,
// and what they hold is in the user's account.
//
// A file that is replaced is noticed: when a process opens it, at most a second after a call, and
// when the service refuses the credential. What runs is finished with the old configuration; new
// calls use the new one, also those of running processes. A file that cannot be used changes
// nothing for them, and so does one that names another application: its handles are other keys.

import type { Peer } from '../../../addon/core.ts';
import type { WithdrawalOutcome } from '../../../server/contract/tde.ts';
import { tell } from '../causes.ts';
import type { Caller, RouteName, ServiceAnswer, ServiceRequest } from '../service/service-door.ts';
import { type HttpService, openHttpService } from '../service/service-http.ts';
import { TlsContexts, TlsFiles } from '../service/tls.ts';
import { ConfigError, type LogLevel, type ProviderConfig, readConfig } from '../settings/config.ts';
import { limits } from '../settings/limits.ts';
import type { Log, Logs, OpenLog } from '../settings/log.ts';
import { UserFiles } from '../settings/user-files.ts';
import { ServiceWait } from './wait-for-service.ts';

export interface OpenContext {
  readonly id: number;
  readonly config: ProviderConfig;
  readonly log: Log;
  readonly wait: ServiceWait;
  call<R extends RouteName>(request: ServiceRequest<R>, caller: Caller): Promise<ServiceAnswer<R>>;
  withdraw(caller: Caller): void;
}

/** After a call that failed because its answer did not come in time. */
const afterWithdrawal = {
  'not-carried-out': ['info', 'the service has not executed the failed call, and will not execute it'],
  undone: ['info', 'the service has destroyed what the failed call had created'],
  kept: ['warn', 'the failed call was executed: it changed an object, or the object that it created is already in use'],
} as const satisfies Record<WithdrawalOutcome, readonly [LogLevel, string]>;

/** How many configurations may be open for one user. */
const mostConfigurations = limits.configurations.most;
/** How many configurations of one user that no process uses stay open for the next process. */
const mostIdle = 8;
/** How often a call asks whether the file has changed, at most. */
const checkMs = 1000;
/**
 * About what an open configuration takes in memory, in addition to what OpenSSL makes of PEM files.
 */
const contextBytes = 128 * 1024;
const timesPem = 8;

interface Opened {
  readonly config: ProviderConfig;
  readonly state: string;
  readonly tls: TlsFiles;
  readonly log: OpenLog;
  /** Whether the path is the agent's own, and may be a link. */
  readonly follow: boolean;
}

/** What a context asks of all contexts: its file again, and room in its user's account. */
interface Owner {
  reread(opened: Opened): Promise<Opened | null>;
  readonly held: Held;
}

class Context implements OpenContext {
  readonly id: number;
  readonly key: string;
  readonly wait: ServiceWait;
  /** Processes that have it open. */
  users = 0;
  opened: Opened;
  readonly #door: HttpService;
  readonly #owner: Owner;
  /** Bytes that the user's account counts. */
  #counted = 0;
  #reading: Promise<boolean> | null = null;
  #readAt = performance.now();
  /** The message of the file's last fault, which is told once. */
  #fault = '';

  constructor(id: number, key: string, opened: Opened, owner: Owner) {
    this.id = id;
    this.key = key;
    this.opened = opened;
    this.#owner = owner;
    this.#door = openHttpService(
      opened.config,
      {
        withdrawn: (requestId, outcome) => {
          const [level, message] = afterWithdrawal[outcome];
          this.log.write(level, { id: requestId }, message);
        },
        unconfirmed: (requestId, route, { names, until }) =>
          this.log.write(
            'warn',
            { id: requestId, route, pendingNodes: names.join(', '), pendingUntil: until ?? 'never' },
            'the change was made, but some nodes of the service have not confirmed it and may still use the old state',
          ),
        refused: () => this.#renew(),
      },
      opened.tls,
    );
    this.wait = new ServiceWait(this.#door, this.log);
    this.#count(contextBytes + timesPem * opened.tls.bytes);
  }

  get config(): ProviderConfig {
    return this.opened.config;
  }

  #count(bytes: number): void {
    this.#owner.held(this.config.user.uid, bytes - this.#counted);
    this.#counted = bytes;
  }

  readonly log: Log = { write: (level, fields, message) => this.opened.log.write(level, fields, message) };

  call<R extends RouteName>(request: ServiceRequest<R>, caller: Caller): Promise<ServiceAnswer<R>> {
    if (performance.now() - this.#readAt > checkMs) void this.#renew();
    return this.#door.call(request, caller);
  }

  withdraw(caller: Caller): void {
    this.#door.withdraw(caller);
  }

  /** Continues with this. */
  replace(opened: Opened): void {
    const { log } = this.opened;
    this.opened = opened;
    log.release();
    this.#count(contextBytes + timesPem * opened.tls.bytes);
    this.#fault = '';
    this.#door.replace(opened.config, opened.tls);
    const { redactedUrl: server_url, path: config, user } = opened.config;
    const message = 'the configuration file has changed: new calls use it, what runs is finished with the old one';
    this.log.write('info', { config, uid: user.uid, server_url }, message);
  }

  /** Whether there is another configuration now than when this was called. */
  #renew(): Promise<boolean> {
    this.#reading ??= this.#read().finally(() => {
      this.#readAt = performance.now();
      this.#reading = null;
    });
    return this.#reading;
  }

  async #read(): Promise<boolean> {
    const before = this.opened;
    try {
      const opened = await this.#owner.reread(before);
      // A process may have opened it in the meantime.
      if (opened !== null && opened.state === this.opened.state) opened.log.release();
      else if (opened !== null) this.replace(opened);
    } catch (error) {
      const { message, told } = error instanceof ConfigError ? error : { message: 'it cannot be read', told: null };
      if (message !== this.#fault) {
        const fields = told === null ? {} : { cause: told };
        this.log.write('warn', fields, `running processes keep the configuration that they have: ${message}`);
      }
      this.#fault = message;
    }
    return this.opened !== before;
  }

  async close(): Promise<void> {
    this.wait.close();
    this.#count(0);
    await this.#door.close();
    this.opened.log.release();
  }
}

const otherApplication = (path: string): ConfigError => {
  const error = 'it names another application now: restart the database to use it';
  return new ConfigError(tell('config-malformed', { config: path, error }));
};

/** Hears of memory that the open configurations of a user take, or release. */
export type Held = (uid: number, bytes: number) => void;

export class Contexts {
  readonly #byId = new Map<number, Context>();
  readonly #byKey = new Map<string, Context>();
  readonly #logs: Logs;
  readonly #owner: Owner;
  readonly #files = new UserFiles();
  readonly #tls = new TlsContexts();
  #next = 1;

  constructor(logs: Logs, held: Held = () => undefined) {
    this.#logs = logs;
    this.#owner = { held, reread: (opened) => this.#reread(opened) };
  }

  get(id: number): OpenContext | undefined {
    return this.#byId.get(id);
  }

  /**
   * Opens the file for one more process. `follow`: the path is the agent's own, and may be a link.
   * Throws ConfigError.
   */
  async open(path: string, peer: Peer, follow: boolean): Promise<OpenContext> {
    // Every peer's right to the file is checked, also when another process has it open already.
    const known = this.#knownState(path, peer);
    const { state, user, config } = await readConfig(this.#files, peer, path, { follow, known });
    const key = `${user.uid}:${path}`;
    let context = this.#byKey.get(key);
    if (context?.opened.state === state) {
      await context.opened.tls.current();
    } else if (config === null) {
      // What was known was closed, or replaced, in the meantime.
      return this.open(path, peer, follow);
    } else {
      const opened = await this.#prepare(config, state, follow);
      context = this.#byKey.get(key);
      if (context?.opened.state === state) opened.log.release();
      else if (context?.config.applicationId === opened.config.applicationId) context.replace(opened);
      else context = this.#add(key, opened);
    }
    // The context may have been closed while its files were read.
    if (!this.#byId.has(context.id)) return this.open(path, peer, follow);
    context.users++;
    return context;
  }

  /**
   * The state of the file in the configuration that is open, so that the file is not parsed again;
   * empty when none is open. Root acts for the file's owner, who is known only when it is read.
   */
  #knownState(path: string, { uid }: Peer): string {
    const isOf = ({ config }: Context): boolean => config.path === path && (uid === 0 || config.user.uid === uid);
    return [...this.#byKey.values()].find(isOf)?.opened.state ?? '';
  }

  async #prepare(config: ProviderConfig, state: string, follow: boolean): Promise<Opened> {
    const tls = new TlsFiles(config, this.#files, this.#tls);
    await tls.current();
    const log = await this.#logs.of(config.user.uid, config.logDir, config.logLevel);
    return { config, state, tls, log, follow };
  }

  #add(key: string, opened: Opened): Context {
    const { uid } = opened.config.user;
    if (!this.#makeRoom(uid, mostConfigurations - 1)) {
      opened.log.release();
      throw new ConfigError(tell('user-limit', { uid, limit: mostConfigurations, unit: 'open configurations' }));
    }
    const context = new Context(this.#next++, key, opened, this.#owner);
    this.#byId.set(context.id, context);
    this.#byKey.set(key, context);
    const { redactedUrl: server_url, applicationId: app_id, path: config } = opened.config;
    context.log.write('info', { config, uid, server_url, app_id }, 'configuration opened');
    return context;
  }

  /**
   * What the file of an open configuration says now, if it is another one; with the rights of the
   * user who opened it.
   */
  async #reread({ config: before, state: known, follow }: Opened): Promise<Opened | null> {
    const { path, user } = before;
    const { state, config, user: now } = await readConfig(this.#files, user, path, { follow, known });
    // Root acts for any owner when it opens a file; what is open is one owner's, with the rights
    // and the account of this one.
    if (now.uid !== user.uid)
      throw new ConfigError(tell('config-owner', { config: path, owner: now.uid, uid: user.uid }));
    if (config === null) return null;
    if (config.applicationId !== before.applicationId) throw otherApplication(path);
    return this.#prepare(config, state, follow);
  }

  /**
   * Closes configurations of a user that no process has open, the oldest first, until there are so
   * few.
   */
  #makeRoom(uid: number, most: number, idleOnly = false): boolean {
    const all = [...this.#byId.values()].filter(({ config }) => config.user.uid === uid);
    const idle = all.filter(({ users }) => users === 0);
    const tooMany = Math.max((idleOnly ? idle.length : all.length) - most, 0);
    for (const each of idle.slice(0, tooMany)) this.#close(each);
    return idle.length >= tooMany;
  }

  #close(context: Context): void {
    this.#byId.delete(context.id);
    if (this.#byKey.get(context.key) === context) this.#byKey.delete(context.key);
    void context.close();
  }

  release(id: number): void {
    const context = this.#byId.get(id);
    if (context === undefined || --context.users > 0) return;
    // The current one stays for the next process; one that was replaced goes with its last user.
    if (this.#byKey.get(context.key) === context) this.#makeRoom(context.config.user.uid, mostIdle, true);
    else this.#close(context);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#byId.values()].map((context) => context.close()));
  }
}
