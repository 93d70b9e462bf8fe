// The loop of one sink: it sends what comes next, and pauses when there is nothing, or when the
// sink takes nothing.

import { ItemRefused } from '../../base/outside.ts';
import { serviceActor } from '../../domain/actor.ts';
import type { Fleet } from '../../ports/fleet.ts';
import type { Forwarded, KnownRecord, LogFork, LogItem, LogSink, LogSinkState } from '../../ports/log-sink.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { DutyLost } from '../nodes/node-duties.ts';
import { aboutService, recordEvent } from '../shared/record-event.ts';
import { readNext } from './forwarded-items.ts';
import type { DoubtedLog } from './quarantine-question.ts';
import { addLost, type Cursor, forkSettingOf, logName, parseCursor, settingOf } from './sink-cursor.ts';

const pollMs = 500;
const shortestPauseMs = 500;
const longestPauseMs = 60_000;

export interface SinkLoop {
  /** Aborted: the loop ends when there is nothing left, or when its sink takes nothing. */
  readonly draining: AbortSignal;
  /** The loop ends with what is under way. */
  ended(): boolean;
  /** What is known of each sink, by name. */
  readonly states: Map<string, Pick<LogSinkState, 'deliveredAt' | 'failure'>>;
}

export type SinkPorts = Pick<Ports, 'store' | 'clock' | 'log'> & {
  readonly fleet: Pick<Fleet, 'perform'>;
  readonly quarantine: DoubtedLog;
};

/** Resolves after a while, or at once when the service stops. */
const pause = (ms: number, draining: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      draining.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    timer.unref();
    if (draining.aborted) end();
    else draining.addEventListener('abort', end);
  });

/**
 * Sends them all. What the sink refuses is sent in halves, down to one item. Answers the items that
 * it refuses while it takes others; a sink that takes none is at fault itself: they stay and come
 * again with what follows.
 */
const sendParts = async (
  sink: Pick<LogSink, 'send'>,
  items: readonly LogItem[],
  log: string,
  before: KnownRecord | undefined,
): Promise<readonly LogItem[] | LogFork> => {
  const refused: LogItem[] = [];
  let first: ItemRefused | undefined;
  const waiting: (readonly LogItem[])[] = [items];
  for (let part = waiting.pop(); part !== undefined; part = waiting.pop())
    try {
      const fork = await sink.send(part, log, part[0] === items[0] ? before : undefined);
      if (fork !== undefined) return fork;
    } catch (error) {
      if (!(error instanceof ItemRefused)) throw error;
      first ??= error;
      const half = Math.ceil(part.length / 2);
      if (part.length > 1) waiting.push(part.slice(half), part.slice(0, half));
      else refused.push(...part);
    }
  if (first !== undefined && refused.length === items.length) throw first;
  return refused;
};

/**
 * The audit record that was sent last, with its hash from the log's tree. Undefined before the
 * first record, and for the request log, which has no tree.
 */
const recordBefore = async (
  read: Pick<Repositories, 'audit'>,
  { log }: Forwarded,
  { record }: Cursor,
): Promise<KnownRecord | undefined> =>
  log === 'audit' && record > 0
    ? { sequence: record, hash: (await read.audit.subtree(0, record - 1)).toString('hex') }
    : undefined;

export const forwardToSink = async (
  { store, clock, log, fleet, quarantine }: SinkPorts,
  target: Forwarded,
  { draining, ended, states }: SinkLoop,
): Promise<void> => {
  const { sink } = target;
  /** Undefined while another node forwards: it moves what is stored. */
  let cursor: Cursor | undefined;
  /** Set aside while nothing could be written. */
  let uncounted = 0;
  let pauseMs = shortestPauseMs;
  /**
   * The last line at the sink when a fork was recorded: files that cannot be moved are the same
   * fork.
   */
  let forkedAt: string | undefined;
  /**
   * Durable before the files are moved: the next start finds the fork again, or sends the whole
   * log.
   */
  const startAgain = async (name: string, fork: LogFork): Promise<Cursor> => {
    if (quarantine.closed() === undefined && forkedAt !== fork.hash) {
      await store.write(async (tx) => {
        await tx.settings.set(settingOf(target), `0 0 ${name}`);
        await tx.settings.set(forkSettingOf(target), `${fork.sequence} ${clock.now()}`);
        await recordEvent(tx, 'audit.sink-forked', serviceActor('forwarding'), aboutService(), {
          name: sink.name,
          record: fork.sequence,
        });
      });
      forkedAt = fork.hash;
    }
    const aside = await sink.setAside?.(name, fork);
    forkedAt = undefined;
    log.error(
      'a sink has other records of the same numbers: an older state was put back, or a copy of this service writes to it',
      {
        ...{ sink: sink.name, log: target.log, record: fork.sequence },
        ...(aside === undefined ? {} : { setAside: aside }),
      },
    );
    return { log: name, record: 0, checkpoint: 0 };
  };
  const sendNext = async (): Promise<Cursor | 'nothing'> => {
    if (quarantine.doubtsLog()) return 'nothing';
    const name = await logName(store.read, target.log);
    let from = cursor ?? parseCursor(await store.read.settings.get(settingOf(target)), name);
    // The database was accepted although it is an older one: records of the same numbers are
    // others.
    if (from.log !== name)
      from = sink.wholeLogs ? { log: name, record: 0, checkpoint: 0 } : { ...from, log: name, checkpoint: 0 };
    const { items, next } = await readNext(store.read, target, from);
    if (items.length === 0 && next.record === from.record) return 'nothing';
    const refused =
      items.length > 0 ? await sendParts(sink, items, name, await recordBefore(store.read, target, from)) : [];
    if ('hash' in refused) return startAgain(name, refused);
    for (const item of refused)
      log.error('a sink refuses a record; it is set aside, and the next ones are delivered', {
        sink: sink.name,
        log: target.log,
        record: item.sequence,
      });
    // In quarantine nothing is written: until it ends, only this process knows how far the sink is.
    uncounted += refused.length;
    if (quarantine.closed() === undefined) {
      await store.write(async (tx) => {
        await tx.settings.set(settingOf(target), `${next.record} ${next.checkpoint} ${next.log}`);
        if (uncounted > 0) await addLost(tx, target, uncounted, clock.now());
      });
      uncounted = 0;
    }
    return next;
  };
  while (!ended()) {
    try {
      const sent = await fleet.perform('forwarding', sendNext);
      if (sent === undefined || sent === 'nothing') {
        if (sent === undefined) cursor = undefined;
        if (draining.aborted) return;
        await pause(pollMs, draining);
        continue;
      }
      cursor = sent;
      pauseMs = shortestPauseMs;
      if (states.get(sink.name)?.failure !== null)
        log.info('a sink is reachable again', { sink: sink.name, log: target.log, record: cursor.record });
      states.set(sink.name, { deliveredAt: clock.now(), failure: null });
    } catch (error) {
      if (draining.aborted) return;
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
      await pause(pauseMs, draining);
      pauseMs = Math.min(pauseMs * 2, longestPauseMs);
    }
  }
};
