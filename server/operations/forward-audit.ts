// Forwards the audit log to its sinks. Each has its own cursor in the store, so that a sink that was away, or a service that was
// down, misses nothing; and its own loop, so that one that hangs holds up neither the others nor the service. At least once: what
// was under way when the connection broke comes again, and a record's number tells.

import { canonicalJson } from '../base/bytes.ts';
import { auditEntry } from '../domain/audit-event.ts';
import { everyTenant } from '../domain/tenant.ts';
import type { AuditItem, AuditSink, AuditSinkState } from '../ports/audit-sink.ts';
import type { Fleet } from '../ports/fleet.ts';
import type { Ports } from '../ports/ports.ts';
import { DutyLost } from './node-duties.ts';
import { auditOrigin } from './seal-audit-log.ts';

const batch = 200;
const pollMs = 500;
const shortestPauseMs = 500;
const longestPauseMs = 60_000;

export interface AuditForwarding {
  start(): void;
  /** Delivers what there is to the sinks that take it, within `graceMs`. What was not delivered is after the next start. */
  stop(graceMs: number): Promise<void>;
  state(): Promise<readonly AuditSinkState[]>;
}

interface Cursor {
  /** Name of the log that the numbers are of. */
  readonly log: string;
  /** Number of the last record, and size of the last checkpoint, that the sink has. */
  readonly record: number;
  readonly checkpoint: number;
}

const settingOf = (name: string): string => `audit-sink:${name}`;
/** Cursors of before logs were named in them are of the log that there is. */
const parseCursor = (text: string | undefined, log: string): Cursor => {
  const [, record = '0', checkpoint = '0', named = log] = /^(\d{1,15}) (\d{1,15})(?: (\S+))?$/.exec(text ?? '') ?? [];
  return { log: named, record: Number(record), checkpoint: Number(checkpoint) };
};

export const createAuditForwarding = (
  { store, clock, log, fleet }: Pick<Ports, 'store' | 'clock' | 'log'> & { readonly fleet: Pick<Fleet, 'perform'> },
  sinks: readonly AuditSink[],
): AuditForwarding => {
  /** Loops end when there is nothing left, or when their sink takes nothing. */
  const draining = new AbortController();
  let ended = false;
  const states = new Map<string, Pick<AuditSinkState, 'deliveredAt' | 'failure'>>();
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

  const read = async ({ log, record, checkpoint }: Cursor): Promise<{ items: readonly AuditItem[]; next: Cursor }> => {
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
    const items: AuditItem[] = events.map((event) => ({
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

  const forward = async (sink: AuditSink): Promise<void> => {
    /** Undefined while another node forwards: it moves what is stored. */
    let cursor: Cursor | undefined;
    let pauseMs = shortestPauseMs;
    const sendNext = async (): Promise<Cursor | 'nothing'> => {
      const name = await auditOrigin(store.read);
      let from = cursor ?? parseCursor(await store.read.settings.get(settingOf(sink.name)), name);
      // The database was accepted although it is an older one: records of the same numbers are others.
      if (from.log !== name)
        from = sink.wholeLogs ? { log: name, record: 0, checkpoint: 0 } : { ...from, log: name, checkpoint: 0 };
      const { items, next } = await read(from);
      if (items.length === 0) return 'nothing';
      await sink.send(items, name);
      await store.write((tx) => tx.settings.set(settingOf(sink.name), `${next.record} ${next.checkpoint} ${next.log}`));
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
          log.info('the audit log reaches its sink', { sink: sink.name, record: cursor.record });
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
          log.error('the audit log does not reach its sink; it is tried again', {
            sink: sink.name,
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
        sinks.map((sink) =>
          forward(sink).catch((error: unknown) =>
            log.error('forwarding the audit log ended', { sink: sink.name, error }),
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
      await Promise.allSettled(sinks.map((sink) => sink.close()));
      // Closing has ended what was under way.
      await loops;
    },
    state: async () => {
      const size = await store.read.audit.size();
      const current = await auditOrigin(store.read);
      return Promise.all(
        sinks.map(async ({ name, type, target, wholeLogs }) => {
          const cursor = parseCursor(await store.read.settings.get(settingOf(name)), current);
          const record = cursor.log === current || !wholeLogs ? cursor.record : 0;
          const { deliveredAt = null, failure = null } = states.get(name) ?? {};
          return { name, type, target, forwarded: record, lag: size - record, deliveredAt, failure };
        }),
      );
    },
  };
};
