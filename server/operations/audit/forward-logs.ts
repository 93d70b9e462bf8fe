// Forwards the audit log and the request log to their sinks. Records are read from the store, so nothing is added to a request. Each sink has
// its own cursor in the store: a sink that was away, or a service that was down, misses nothing. Each has its own loop: one that hangs
// holds up neither the others nor the service. At least once: what was under way when the connection broke comes again, and a
// record's number tells.
//
// In quarantine a log that is in doubt is not forwarded: it may be forged, and would stand beside the evidence that the sinks have. The duty stays with
// its node, because another one would forward it. A log that is intact, beside rows that were changed, is forwarded: it is the evidence.
//
// The request log is limited. What its retention removes before a sink took it is counted for the sink, in the same transaction.

import { canonicalJson } from '../../base/bytes.ts';
import { toRfc3339 } from '../../base/clock.ts';
import { entryLine } from '../../base/request-minutes.ts';
import { auditEntry } from '../../domain/audit-event.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Fleet } from '../../ports/fleet.ts';
import type { Forwarded, ForwardedLog, LogItem, LogSinkState } from '../../ports/log-sink.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { DutyLost } from '../nodes/node-duties.ts';
import type { QuarantineGate } from '../service/quarantine.ts';
import { auditOrigin } from './seal-audit-log.ts';

const batch = 200;
const pollMs = 500;
const shortestPauseMs = 500;
const longestPauseMs = 60_000;

export interface LogForwarding {
  start(): void;
  /** Delivers what there is to the sinks that take it, within `graceMs`. What was not delivered is after the next start. */
  stop(graceMs: number): Promise<void>;
  state(): Promise<readonly LogSinkState[]>;
  /** Counts what is removed from the request log and has not reached every sink. Called in the transaction that removes it. */
  requestsRemoved(tx: Repositories, removed: readonly RemovedRequest[]): Promise<void>;
}

export interface RemovedRequest {
  readonly sequence: number;
  readonly endpointId: string | null;
}

interface Cursor {
  /** Name of the log that the numbers are of. */
  readonly log: string;
  /** Number of the last record, and size of the last checkpoint, that the sink has. */
  readonly record: number;
  readonly checkpoint: number;
}

const settingOf = ({ sink: { name }, log }: Forwarded): string =>
  log === 'audit' ? `audit-sink:${name}` : `request-sink:${name}`;
const lostSettingOf = ({ sink: { name } }: Forwarded): string => `request-sink-lost:${name}`;
const parseLost = (text: string | undefined): { readonly lost: number; readonly lostAt: number | null } => {
  const [, lost, at] = /^(\d{1,15}) (\d{1,15})$/.exec(text ?? '') ?? [];
  return { lost: Number(lost ?? 0), lostAt: at === undefined ? null : Number(at) };
};
const takes = ({ endpoints }: Forwarded, endpointId: string | null): boolean =>
  endpoints.length === 0 || (endpointId !== null && endpoints.includes(endpointId));

/** The name of a log: both change when the database is replaced by an older one. */
const logName = async (from: Repositories, log: ForwardedLog): Promise<string> => {
  const origin = await auditOrigin(from);
  return log === 'audit' ? origin : origin.replace('/audit/', '/requests/');
};

const requestItem = (request: Awaited<ReturnType<Repositories['requests']['list']>>[number]): LogItem => {
  const text = entryLine({ ...request, at: toRfc3339(request.at) });
  return { kind: 'request', sequence: request.sequence, request, text };
};
/** Cursors of before logs were named in them are of the log that there is. */
const parseCursor = (text: string | undefined, log: string): Cursor => {
  const [, record = '0', checkpoint = '0', named = log] = /^(\d{1,15}) (\d{1,15})(?: (\S+))?$/.exec(text ?? '') ?? [];
  return { log: named, record: Number(record), checkpoint: Number(checkpoint) };
};

export const createLogForwarding = (
  { store, clock, log, fleet }: Pick<Ports, 'store' | 'clock' | 'log'> & { readonly fleet: Pick<Fleet, 'perform'> },
  targets: readonly Forwarded[],
  quarantine: Pick<QuarantineGate, 'closed' | 'doubtsLog'>,
): LogForwarding => {
  /** Loops end when there is nothing left, or when their sink takes nothing. */
  const draining = new AbortController();
  let ended = false;
  const states = new Map<string, Pick<LogSinkState, 'deliveredAt' | 'failure'>>();
  let loops: Promise<unknown> = Promise.resolve();

  /** Resolves after a while, or at once when the service stops. */
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        draining.signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      timer.unref();
      if (draining.signal.aborted) end();
      else draining.signal.addEventListener('abort', end);
    });

  interface Part {
    readonly items: readonly LogItem[];
    readonly next: Cursor;
  }
  const readRequests = async (target: Forwarded, { log, record, checkpoint }: Cursor): Promise<Part> => {
    const found = await store.read.requests.list(record, batch);
    const items = found.filter(({ endpointId }) => takes(target, endpointId)).map(requestItem);
    return { items, next: { log, record: found.at(-1)?.sequence ?? record, checkpoint } };
  };
  const readAudit = async ({ log, record, checkpoint }: Cursor): Promise<Part> => {
    const events = await store.read.audit.list(
      everyTenant,
      { order: 'oldest' },
      { after: String(record), limit: batch },
    );
    const last = events.at(-1)?.sequence ?? record;
    // Read after the records: the checkpoint that ends with one of them, or with an earlier one, is there by now.
    const notes = (await store.read.audit.checkpoints('oldest', { after: String(checkpoint), limit: batch })).filter(
      ({ size }) => size <= last,
    );
    const items: LogItem[] = events.map((event) => ({
      kind: 'record',
      sequence: event.sequence,
      event,
      text: auditEntry(event),
    }));
    for (const { size, at, note } of notes)
      items.push({ kind: 'checkpoint', sequence: size, at, text: canonicalJson({ checkpoint: note }) });
    items.sort((a, b) => a.sequence - b.sequence || (a.kind === 'record' ? -1 : 1));
    return { items, next: { log, record: last, checkpoint: notes.at(-1)?.size ?? checkpoint } };
  };

  const forward = async (target: Forwarded): Promise<void> => {
    const { sink } = target;
    /** Undefined while another node forwards: it moves what is stored. */
    let cursor: Cursor | undefined;
    let pauseMs = shortestPauseMs;
    const sendNext = async (): Promise<Cursor | 'nothing'> => {
      if (quarantine.doubtsLog()) return 'nothing';
      const name = await logName(store.read, target.log);
      let from = cursor ?? parseCursor(await store.read.settings.get(settingOf(target)), name);
      // The database was accepted although it is an older one: records of the same numbers are others.
      if (from.log !== name)
        from = sink.wholeLogs ? { log: name, record: 0, checkpoint: 0 } : { ...from, log: name, checkpoint: 0 };
      const { items, next } = await (target.log === 'audit' ? readAudit(from) : readRequests(target, from));
      if (items.length === 0 && next.record === from.record) return 'nothing';
      if (items.length > 0) await sink.send(items, name);
      // In quarantine nothing is written: until it ends, only this process knows how far the sink is.
      if (quarantine.closed() === undefined)
        await store.write((tx) => tx.settings.set(settingOf(target), `${next.record} ${next.checkpoint} ${next.log}`));
      return next;
    };
    while (!ended) {
      try {
        const sent = await fleet.perform('forwarding', sendNext);
        if (sent === undefined || sent === 'nothing') {
          if (sent === undefined) cursor = undefined;
          if (draining.signal.aborted) return;
          await pause(pollMs);
          continue;
        }
        cursor = sent;
        pauseMs = shortestPauseMs;
        if (states.get(sink.name)?.failure !== null)
          log.info('a sink is reachable again', { sink: sink.name, log: target.log, record: cursor.record });
        states.set(sink.name, { deliveredAt: clock.now(), failure: null });
      } catch (error) {
        if (draining.signal.aborted) return;
        if (error instanceof DutyLost) {
          cursor = undefined;
          continue;
        }
        const before = states.get(sink.name);
        const message = error instanceof Error ? error.message : 'failed';
        const since = before?.failure?.since ?? clock.now();
        if (before?.failure?.message !== message)
          log.error('a sink is unreachable; delivery will be retried', {
            sink: sink.name,
            log: target.log,
            target: sink.target,
            error,
          });
        states.set(sink.name, { deliveredAt: before?.deliveredAt ?? null, failure: { since, message } });
        await pause(pauseMs);
        pauseMs = Math.min(pauseMs * 2, longestPauseMs);
      }
    }
  };

  return {
    start: () => {
      loops = Promise.all(
        targets.map((target) =>
          forward(target).catch((error: unknown) =>
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
        const { lost } = parseLost(await tx.settings.get(lostSettingOf(target)));
        await tx.settings.set(lostSettingOf(target), `${lost + gone} ${clock.now()}`);
      }
    },
  };
};
