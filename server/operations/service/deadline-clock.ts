// The deadline clock (domain/deadline-clock.ts) as it is kept: one setting of the store, written
// once a minute by the node that has the duty, so that it outlasts restarts and is the same on all
// nodes. Time that passes is the host's uptime, also while the service is stopped.

import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import { type Actor, serviceActor } from '../../domain/actor.ts';
import { type DeadlineClock, startAt, tick } from '../../domain/deadline-clock.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { DeadlineState, Deadlines, HostUptime } from '../../ports/deadlines.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { aboutService, recordEvent } from '../shared/record-event.ts';

const setting = 'deadline-clock';
/** How far the time that an operator confirms may be from the clock's. */
const confirmMs = 300_000;

type Kept = DeadlineClock & { readonly uptime: HostUptime };

const read = async (from: Pick<Repositories, 'decisions'>): Promise<Kept | undefined> => {
  const text = await from.decisions.get(setting);
  return text === undefined ? undefined : (JSON.parse(text) as Kept);
};

export interface RunningDeadlines extends Deadlines {
  /** Once at the start, before anything is destroyed, and then every minute where the duty is. */
  advance(): Promise<void>;
  /** An operator says what time it is: the clocks are followed from now on. */
  confirm(actor: Actor, time: number): Promise<DeadlineState>;
}

export const createDeadlines = (
  { store, clock, log }: Pick<Ports, 'store' | 'clock' | 'log'>,
  hostUptime: () => HostUptime,
): RunningDeadlines => {
  /** What this process wrote last. */
  let written: HostUptime | undefined;

  const earliest = async (): Promise<number> => Math.min(clock.now(), ...((await store.link?.clocks()) ?? []));
  const stateOf = (kept: Kept | undefined): DeadlineState => {
    const now = clock.now();
    return { now: Math.min(kept?.at ?? now, now), clock: now, doubt: kept?.doubt ?? null };
  };
  const state = async (): Promise<DeadlineState> => stateOf(await read(store.read));

  /** Where nothing is kept yet: the last time that the audit log has seen. */
  const begin = async (tx: Repositories, now: number): Promise<DeadlineClock> => {
    const [last] = await tx.audit.list(everyTenant, { order: 'newest' }, { limit: 1 });
    return startAt(last === undefined ? now : Math.min(last.at, now));
  };
  const append = (tx: Repositories, actor: Actor, kind: 'clock.jumped' | 'clock.confirmed', from: Kept, to: number) =>
    recordEvent(tx, kind, actor, aboutService(), { expected: toRfc3339(from.at), clock: toRfc3339(to) });

  const advance = async (): Promise<void> => {
    const now = await earliest();
    const uptime = hostUptime();
    const [before, after] = await store.write(
      async (tx) => {
        const kept = await read(tx);
        const from = kept ?? (await begin(tx, now));
        const sameBoot = kept !== undefined && uptime.bootId !== '' && kept.uptime.bootId === uptime.bootId;
        const elapsedMs = sameBoot ? Math.max(0, uptime.ms - kept.uptime.ms) : 0;
        const observed = written !== undefined && kept?.uptime.ms === written.ms;
        const next: Kept = { ...tick(from, { elapsedMs, observed, clock: now }), uptime };
        await tx.decisions.set(setting, JSON.stringify(next));
        const actor = serviceActor(newId(clock.now()));
        if (from.doubt === null && next.doubt !== null) await append(tx, actor, 'clock.jumped', next, now);
        // The clocks were put right, or have agreed for long enough.
        if (from.doubt !== null && next.doubt === null)
          await append(tx, actor, 'clock.confirmed', { ...next, at: from.at + elapsedMs }, now);
        return [from, next] as const;
      },
      { durable: false },
    );
    written = uptime;
    if (before.doubt === null && after.doubt !== null)
      log.error('the clock has jumped: deadlines wait until it is confirmed (dke clock confirm)', {
        expected: toRfc3339(after.at),
        clock: toRfc3339(now),
      });
  };

  return {
    now: async () => (await state()).now,
    latest: async () => Math.max((await read(store.read))?.at ?? 0, clock.now()),
    state,
    advance,
    confirm: async (actor, time) => {
      const now = await earliest();
      if (Math.abs(time - now) > confirmMs)
        throw new ServiceError(
          'conflict',
          `the clock of the service shows ${toRfc3339(now)}, but the given time is ${toRfc3339(time)}`,
          {
            hint: 'first correct the clocks of all hosts and of the database, then confirm the current time',
          },
        );
      const uptime = hostUptime();
      const kept = await store.write(async (tx) => {
        const before = await read(tx);
        const next: Kept = { ...startAt(now), uptime };
        if (before === undefined || before.doubt === null) return before ?? next;
        await tx.decisions.set(setting, JSON.stringify(next));
        await append(tx, actor, 'clock.confirmed', before, now);
        return next;
      });
      return stateOf(kept);
    },
  };
};
