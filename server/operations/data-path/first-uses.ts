// The first use of an instance is recorded before its request continues. If an application has a
// new instance with every call, further first uses are only counted.

import { Repeats } from '../../base/repeats.ts';
import type { Clock } from '../../base/time.ts';
import type { Repositories } from '../../ports/store.ts';
import type { InstanceUse } from '../../ports/usage-log.ts';
import { about, recordEvent } from '../shared/record-event.ts';

export interface FirstUse {
  readonly use: InstanceUse;
  readonly requestId: string;
  readonly peer: string | null;
}

export interface CountedFirstUses {
  readonly first: FirstUse;
  readonly count: number;
}

/**
 * First uses of one application that are recorded one by one within an hour; the others are
 * counted, and recorded once an hour.
 */
const firstUsesAnHour = 50;

export class FirstUses {
  /** How many instances were replaced since the last record of a first use, by application id. */
  readonly #replaced = new Map<string, number>();
  #counted: CountedFirstUses[] = [];
  readonly #repeats: Repeats<FirstUse>;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#repeats = new Repeats({
      now: () => clock.monotonic(),
      quietMs: 3_600_000,
      longestMs: 3_600_000,
      most: 10_000,
      mostOfFamily: firstUsesAnHour,
      summary: (first, count) => this.#counted.push({ first, count }),
    });
  }

  /** Whether to record it separately; otherwise it is counted. */
  admit(name: string, first: FirstUse): boolean {
    return this.#repeats.admit(name, first, first.use.application.id);
  }

  /** An instance of the application gave way to a new one. */
  replaced(applicationId: string): void {
    this.#replaced.set(applicationId, (this.#replaced.get(applicationId) ?? 0) + 1);
  }

  /** Takes out those that were counted and are due. */
  take(all: boolean): readonly CountedFirstUses[] {
    this.#repeats.flush(all);
    return this.#counted.splice(0);
  }

  putBack(counted: readonly CountedFirstUses[]): void {
    this.#counted.unshift(...counted);
  }

  async record(tx: Repositories, { use, requestId, peer }: FirstUse, count?: number): Promise<void> {
    const { application } = use;
    const gone = this.#replaced.get(application.id) ?? 0;
    await recordEvent(
      tx,
      'instance.first-used',
      { kind: 'application', id: application.id, name: application.name, requestId, peer },
      about('application', application),
      {
        accessGuidId: use.accessGuidId,
        appId: use.appId,
        host: use.host,
        process: use.process,
        osUser: use.osUser,
        libraryVersion: use.library,
        agentVersion: use.agent,
        pid: use.pid,
        ...(count === undefined ? {} : { count }),
        ...(gone === 0 ? {} : { replaced: gone }),
      },
    );
    this.#replaced.delete(application.id);
  }
}
