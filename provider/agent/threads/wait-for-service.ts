// At the start of a database: waits until the service answers, at most wait_seconds (pkcs11.toml),
// so that a host can start before the service or its network. Any answer of the service ends the
// wait, also a refusal, which the first call then reports. Other calls do not wait.
import { setTimeout } from 'node:timers/promises';
import type { CauseName } from '../../schema/causes.ts';
import { uniqueId } from '../objects/unique-id.ts';
import { ServiceCallError, type ServiceDoor, type Wait } from '../service/service-door.ts';
import type { Log } from '../settings/log.ts';

/** Causes that may end without action: the service cannot be reached, or is starting. */
const passing: ReadonlySet<CauseName> = new Set(['service-down', 'service-name', 'service-slow', 'service-busy']);

const firstPauseMs = 250;
const longestPauseMs = 5000;

/** One for each configuration: its processes wait together. */
export class ServiceWait {
  readonly #door: Pick<ServiceDoor, 'call'>;
  readonly #log: Log;
  readonly #ended = new AbortController();
  #deadline = 0;
  #running: Promise<void> | null = null;

  constructor(door: Pick<ServiceDoor, 'call'>, log: Log) {
    this.#door = door;
    this.#log = log;
  }

  /** Resolves when the service has answered, or the time is over. Never throws. */
  until({ seconds, instance }: Wait): Promise<void> {
    this.#deadline = Math.max(this.#deadline, performance.now() + seconds * 1000);
    this.#running ??= this.#run(instance).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Ends a wait. */
  close(): void {
    this.#ended.abort();
  }

  async #run(instance: string): Promise<void> {
    const beganAt = performance.now();
    const since = (): number => Math.round((performance.now() - beganAt) / 1000);
    let told: CauseName | null = null;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      const error = await this.#ask(instance);
      if (error === null) {
        if (told !== null) this.#log.write('info', { waited_s: since() }, 'the service answers');
        return;
      }
      const leftMs = this.#deadline - performance.now();
      if (leftMs <= 0 || this.#ended.signal.aborted) {
        const text = `no longer waiting for the service: ${error.message}`;
        this.#log.write('error', { cause: error.told, waited_s: since() }, text);
        return;
      }
      if (error.told !== told) {
        const text = `waiting for the service, for ${Math.ceil(leftMs / 1000)} s at most (wait_seconds): ${error.message}`;
        this.#log.write('warn', { cause: error.told }, text);
        told = error.told;
      }
      await setTimeout(Math.min(pauseMs, leftMs), undefined, { signal: this.#ended.signal }).catch(() => undefined);
    }
  }

  /** Why the service does not answer; null: it does, with whatever words. */
  async #ask(instance: string): Promise<(ServiceCallError & { readonly told: CauseName }) | null> {
    try {
      const request = { route: 'info', handle: null, head: {}, raw: null } as const;
      await this.#door.call(request, { requestId: uniqueId(), instance });
      return null;
    } catch (error) {
      const isPassing = error instanceof ServiceCallError && error.told !== null && passing.has(error.told);
      return isPassing ? (error as ServiceCallError & { readonly told: CauseName }) : null;
    }
  }
}
