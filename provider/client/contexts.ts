// Configurations that are open, and their ways to the service. One context serves every process that names the same unchanged configuration
// file for the same user.
import { realpathSync } from 'node:fs';
import type { Peer } from '../../addon/core.ts';
import type { WithdrawalOutcome } from '../../server/fronts/contract/tde.ts';
import { checkConfig, type LogLevel, loadConfig, type ProviderConfig, userOf } from './config.ts';
import type { Log, Logs } from './log.ts';
import type { ServiceDoor } from './service.ts';
import { openHttpService } from './service-http.ts';
import { tlsFilesState } from './tls.ts';
import { ServiceWait } from './wait-for-service.ts';

export interface OpenContext {
  readonly id: number;
  readonly key: string;
  readonly config: ProviderConfig;
  readonly fingerprint: string;
  /** Of the files that the configuration names. */
  readonly files: string;
  readonly door: ServiceDoor;
  readonly wait: ServiceWait;
  readonly log: Log;
  users: number;
}

/** After a call that failed because its answer did not come in time. */
const afterWithdrawal = {
  'not-carried-out': ['info', 'the service has not executed the failed call, and will not execute it'],
  undone: ['info', 'the service has destroyed what the failed call had created'],
  kept: ['warn', 'the failed call was executed: it changed an object, or the object that it created is already in use'],
} as const satisfies Record<WithdrawalOutcome, readonly [LogLevel, string]>;

const openDoor = (config: ProviderConfig, log: Log): ServiceDoor =>
  openHttpService(
    config,
    (requestId, outcome) => {
      const [level, message] = afterWithdrawal[outcome];
      log.write(level, { id: requestId }, message);
    },
    (requestId, route, { names, until }) =>
      log.write(
        'warn',
        { id: requestId, route, pendingNodes: names.join(', '), pendingUntil: until ?? 'never' },
        'the change was made, but some nodes of the service have not confirmed it and may still use the old state',
      ),
  );

export class Contexts {
  readonly #byId = new Map<number, OpenContext>();
  readonly #byKey = new Map<string, OpenContext>();
  readonly #logs: Logs;
  #next = 1;

  constructor(logs: Logs) {
    this.#logs = logs;
  }

  get(id: number): OpenContext | undefined {
    return this.#byId.get(id);
  }

  /** Opens the file for one more process. Throws ConfigError. */
  open(path: string, peer: Peer): OpenContext {
    // Every peer's right to the file is checked, also when another process has it open already.
    const uid = userOf(path, peer.uid);
    const fingerprint = checkConfig(path, uid);
    // The library names the file by its real path, which is looked up for other peers only.
    const unchanged = (key: string): OpenContext | undefined => {
      const known = this.#byKey.get(key);
      return known?.fingerprint === fingerprint && known.files === tlsFilesState(known.config) ? known : undefined;
    };
    const context =
      unchanged(`${uid}:${path}`) ?? unchanged(`${uid}:${realpathSync(path)}`) ?? this.#make(path, uid, fingerprint);
    context.users++;
    return context;
  }

  #make(path: string, uid: number, fingerprint: string): OpenContext {
    const key = `${uid}:${realpathSync(path)}`;
    const config = loadConfig(path, uid);
    const log = this.#logs.of(config.logDir, config.logLevel);
    const door = openDoor(config, log);
    const files = tlsFilesState(config);
    const wait = new ServiceWait(door, log);
    const context: OpenContext = { id: this.#next++, key, config, fingerprint, files, door, wait, log, users: 0 };
    this.#byId.set(context.id, context);
    this.#byKey.set(key, context);
    const { redactedUrl: server_url, applicationId: app_id } = config;
    log.write('info', { config: path, uid, server_url, app_id }, 'configuration opened');
    return context;
  }

  release(id: number): void {
    const context = this.#byId.get(id);
    if (context === undefined || --context.users > 0) return;
    // The current one stays for the next process; one that was replaced goes with its last user.
    if (this.#byKey.get(context.key) === context) return;
    this.#byId.delete(id);
    context.wait.close();
    void context.door.close();
  }

  async close(): Promise<void> {
    for (const { wait } of this.#byId.values()) wait.close();
    await Promise.all([...this.#byId.values()].map(({ door }) => door.close()));
  }
}
