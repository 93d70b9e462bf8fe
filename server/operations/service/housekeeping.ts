// What happens by the clock: queued request records are written five times a second, uses every
// second, old rows are removed, the audit log gets its checkpoints, and health is checked, so that
// the XKS front's answer is fresh without other callers.

import { otherWork } from '../../base/next-turn.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Fleet } from '../../ports/fleet.ts';
import type { Ports } from '../../ports/ports.ts';
import type { XksRequestRecord } from '../../ports/xks-directory.ts';
import type { LogForwarding } from '../audit/forward-logs.ts';
import { createRequestRetention, type RequestLogLimits } from '../requests/request-retention.ts';
import type { JobBoard } from '../shared/job-board.ts';

// At 20,000 requests a second the queue of the default length holds one second's records: they
// leave well before it is full.
const everyMs = 200;
// Where many write, or the disk is slow, what is written by the clock has a fifth of the time at
// most: changes of callers go before the records of uses. Not while the queue of records fills.
const share = 5;
const longestMs = 1_000;
const usesEveryMs = 1_000;
const refusedEveryMs = 10_000;
// Written at once: little enough that a request that comes in in the meantime does not notice.
const requestBatch = 50;
// For each so many that wait one more batch is written at once: a node whose loop is full serves
// more requests in a turn than one batch holds, and the queue would run over.
const waitingForAnother = 1_000;
// Most records in one commit. A commit writes each page of the database once, however many of its
// records are on it.
const mostInCommit = 2_000;
const pruneEveryMs = 60_000;

export interface Housekeeping {
  start(): void;
  /** Writes everything that waits. */
  stop(): Promise<void>;
}

/** Writes the queued request records. */
const createRequestWriter = ({ store, directory }: Pick<Ports, 'store' | 'directory'>): (() => Promise<void>) => {
  /**
   * One commit of what is queued; it ends early for others who want to write. Answers how many
   * records it wrote.
   */
  const commitRequests = async (): Promise<number> => {
    const taken: XksRequestRecord[] = [];
    // What could not be recorded is written with what can be.
    const dropped = directory.dropped();
    try {
      await store.write(
        async (tx) => {
          await tx.requests.addDropped(dropped);
          for (;;) {
            const batches = 1 + Math.floor(directory.requestLog().queued / waitingForAnother);
            for (let batch = 0; batch < batches; batch += 1) {
              const entries = directory.drainRequests(requestBatch);
              taken.push(...entries);
              if (entries.length > 0) await tx.requests.append(entries);
              if (entries.length < requestBatch || taken.length >= mostInCommit || store.waiting() > 0) return;
            }
            await otherWork();
          }
        },
        { durable: false },
      );
      directory.droppedWritten(dropped);
      return taken.length;
    } catch (error) {
      // A full disk or a locked database: the records wait for the next attempt. Where the commit
      // may have been made, they could be written twice; where it failed for another reason, it
      // would fail again.
      const isUnwritten =
        error instanceof ServiceError && error.code === 'unavailable' && error.reason !== 'unconfirmed';
      if (isUnwritten) directory.putBackRequests(taken);
      else directory.countDropped(taken);
      throw error;
    }
  };
  return async () => {
    while (directory.requestLog().queued > 0 || directory.dropped().length > 0) {
      const written = await commitRequests();
      if (written < requestBatch) break;
      await otherWork();
    }
  };
};

/** Until the next records of uses are written, when writing them took so long. */
const pauseAfter = (tookMs: number): number => Math.min(longestMs, Math.max(everyMs, tookMs * share));

export const createHousekeeping = (
  {
    store,
    directory,
    usage,
    clock,
    deadlines,
    log,
    people,
    fleet,
    ring,
  }: Pick<Ports, 'store' | 'directory' | 'usage' | 'clock' | 'deadlines' | 'log' | 'people'> & {
    readonly ring: Pick<Ports['ring'], 'authenticateRow'>;
    readonly fleet: Pick<Fleet, 'perform'>;
  },
  limits: RequestLogLimits,
  checkHealth: () => Promise<unknown>,
  sealAudit: () => Promise<unknown>,
  writeLatencies: (all: boolean) => Promise<unknown>,
  board: Pick<JobBoard, 'add'>,
  onRequestsRemoved?: LogForwarding['requestsRemoved'],
): Housekeeping => {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let prunedAt = clock.monotonic();
  let usesAt = clock.monotonic();
  let refusedAt = clock.monotonic();
  let stopped = false;
  let failing = false;
  const retention = createRequestRetention({ store, deadlines, ring }, limits, onRequestsRemoved);
  const writeRequests = createRequestWriter({ store, directory });
  const writeUses = async (all: boolean): Promise<void> => {
    if (!all && clock.monotonic() - usesAt < usesEveryMs) return;
    usesAt = clock.monotonic();
    const uses = directory.drainCredentialUses();
    const keyUses = directory.keyUses(all);
    if (uses.size > 0 || keyUses.length > 0) {
      // A power failure may take the last second's times along; waiting for the disk would delay
      // what comes in in the meantime.
      await store.write(
        async (tx) => {
          for (const [id, at] of uses) await tx.endpoints.touchCredential(id, at);
          for (const { endpointId, keyId, at } of keyUses) {
            await tx.endpoints.touch(endpointId, at);
            await tx.keys.touch(keyId, at, at);
          }
        },
        { durable: false },
      );
      directory.keyUsesWritten(keyUses);
    }
    await usage.flush(all);
  };
  /** On every node: each has its own working memory. */
  const renewRefused = async (): Promise<void> => {
    if (clock.monotonic() - refusedAt < refusedEveryMs) return;
    refusedAt = clock.monotonic();
    await directory.renewRefused();
  };
  const pruneOnce = board.add('old records', { duty: 'pruning', everyMs: pruneEveryMs });
  const prune = async (): Promise<true> => {
    if (clock.monotonic() - prunedAt < pruneEveryMs) return true;
    prunedAt = clock.monotonic();
    return pruneOnce(removeOld);
  };
  const removeOld = async (): Promise<true> => {
    const now = await deadlines.now();
    await store.write((tx) => tx.pruning.run(now, people.sessionIdleMs), { durable: false });
    // In steps, as often as it takes: what comes in at thousands a second goes out as fast, and
    // what comes in in the meantime is written between the steps.
    await retention.remove(async () => {
      await writeRequests();
      await otherWork();
      return !stopped;
    });
    return true;
  };
  let pauseMs = everyMs;
  const run = async (all: boolean): Promise<void> => {
    const from = clock.monotonic();
    try {
      await writeRequests();
      await writeUses(all);
      pauseMs = pauseAfter(clock.monotonic() - from);
      await writeLatencies(all);
      if (!all) await renewRefused();
      await sealAudit();
      if (!all && (await fleet.perform('pruning', prune)) === undefined) retention.forget();
      failing = false;
    } catch (error) {
      // Once, not five times a second.
      if (!failing) log.error('housekeeping failed; request records may be missing', { error });
      failing = true;
    }
    if (!all) await checkHealth();
  };
  const next = (waitedMs = 0): void => {
    timer = setTimeout(() => {
      const waited = waitedMs + everyMs;
      // A burst that comes during the pause ends it.
      if (waited < pauseMs && !directory.requestsAreFilling()) {
        next(waited);
        return;
      }
      running = run(false).finally(() => {
        if (!stopped) next();
      });
    }, everyMs);
    timer.unref();
  };

  return {
    start: () => next(),
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
      await run(true);
    },
  };
};
