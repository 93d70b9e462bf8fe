// Forwards the audit log and the request log to their sinks. Records are read from the store, so
// nothing is added to a request. Each sink has its own cursor in the store: a sink that was away,
// or a service that was down, misses nothing. Each has its own loop: one that hangs delays neither
// the others nor the service. At least once: what was under way when the connection broke comes
// again, and a record's number tells.
//
// In quarantine a log that is in doubt is not forwarded: it may be forged, and would stand next to
// the evidence that the sinks have. The duty stays with its node, because another one would forward
// it. A log that is intact, next to rows that were changed, is forwarded: it is the evidence.
//
// The request log is limited. What its retention removes before a sink took it is counted for the
// sink, in the same transaction.

import type { Fleet } from '../../ports/fleet.ts';
import type { Forwarded, LogSinkState } from '../../ports/log-sink.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { forwardToSink } from './forward-to-sink.ts';
import type { DoubtedLog } from './quarantine-question.ts';
import {
  addLost,
  forkSettingOf,
  logName,
  lostSettingOf,
  parseCursor,
  parseFork,
  parseLost,
  settingOf,
  takes,
} from './sink-cursor.ts';

export interface LogForwarding {
  start(): void;
  /**
   * Delivers what there is to the sinks that take it, within `graceMs`. What was not delivered is
   * after the next start.
   */
  stop(graceMs: number): Promise<void>;
  state(): Promise<readonly LogSinkState[]>;
  /**
   * Counts what is removed from the request log and has not reached every sink. Called in the
   * transaction that removes it.
   */
  requestsRemoved(tx: Repositories, removed: readonly RemovedRequest[]): Promise<void>;
}

export interface RemovedRequest {
  readonly sequence: number;
  readonly endpointId: string | null;
}

export const createLogForwarding = (
  { store, clock, log, fleet }: Pick<Ports, 'store' | 'clock' | 'log'> & { readonly fleet: Pick<Fleet, 'perform'> },
  targets: readonly Forwarded[],
  quarantine: DoubtedLog,
): LogForwarding => {
  /** Loops end when there is nothing left, or when their sink takes nothing. */
  const draining = new AbortController();
  let ended = false;
  const states = new Map<string, Pick<LogSinkState, 'deliveredAt' | 'failure'>>();
  let loops: Promise<unknown> = Promise.resolve();

  return {
    start: () => {
      loops = Promise.all(
        targets.map((target) =>
          forwardToSink({ store, clock, log, fleet, quarantine }, target, {
            draining: draining.signal,
            ended: () => ended,
            states,
          }).catch((error: unknown) =>
            log.error('forwarding to a sink ended unexpectedly', { sink: target.sink.name, error }),
          ),
        ),
      );
    },
    stop: async (graceMs) => {
      draining.abort();
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, graceMs);
      });
      await Promise.race([loops, late]);
      clearTimeout(timer);
      ended = true;
      await Promise.allSettled(targets.map(({ sink }) => sink.close()));
      // Closing has ended what was under way.
      await loops;
    },
    state: async () => {
      const sizes = { audit: await store.read.audit.size(), requests: await store.read.requests.newest() };
      return Promise.all(
        targets.map(async (target) => {
          const { sink, log: which, endpoints } = target;
          const { name, type, target: place, wholeLogs } = sink;
          const current = await logName(store.read, which);
          const cursor = parseCursor(await store.read.settings.get(settingOf(target)), current);
          const record = cursor.log === current || !wholeLogs ? cursor.record : 0;
          const { deliveredAt = null, failure = null } = states.get(name) ?? {};
          const lost = parseLost(await store.read.settings.get(lostSettingOf(target)));
          const lag = Math.max(0, sizes[which] - record);
          return {
            name,
            type,
            target: place,
            log: which,
            endpoints,
            forwarded: record,
            lag,
            ...lost,
            fork: parseFork(await store.read.settings.get(forkSettingOf(target))) ?? null,
            deliveredAt,
            failure,
          };
        }),
      );
    },
    requestsRemoved: async (tx, removed) => {
      for (const target of targets.filter((each) => each.log === 'requests')) {
        const name = await logName(tx, target.log);
        const cursor = parseCursor(await tx.settings.get(settingOf(target)), name);
        const gone = removed.filter(
          ({ sequence, endpointId }) => sequence > cursor.record && takes(target, endpointId),
        ).length;
        if (gone === 0) continue;
        await addLost(tx, target, gone, clock.now());
      }
    },
  };
};
