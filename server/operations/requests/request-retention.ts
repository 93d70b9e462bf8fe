// Retention of the request log. Records that are too old go. Where there are too many, the space
// that has the most gives up its oldest: a busy endpoint does not remove the records of a quiet
// one, and unsigned requests, which anyone can send, remove only each other.

import { unsignedSpace } from '../../base/request-minutes.ts';
import type { RowAuthenticator, RowJob } from '../../base/row-jobs.ts';
import { serviceActor } from '../../domain/actor.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { LogForwarding } from '../audit/forward-logs.ts';
import { aboutService, recordEvent } from '../shared/record-event.ts';

export interface RequestLogLimits {
  readonly requestLogDays: number;
  /** How many records of signed requests are kept, of all endpoints together. */
  readonly requestLogRows: number;
}

/** Each endpoint keeps so many of its newest records, however many there are of others. */
export const endpointMinimum = 1000;
/** Unsigned requests have a space of this part of `requestLogRows`, next to it. */
const unsignedPart = 0.1;
/** Records that are read and removed in one unit of work. */
const step = 500;
/** Records that are counted at once. */
const countStep = 2000;
/**
 * What was removed and is not in the audit log yet, with its authentication code: by space, '' for
 * those that were too old. A writer of the database must not bring the service to say that it has
 * removed what they have.
 */
const removedSetting = 'request-log-removed';

type Removed = { readonly [space: string]: { readonly count: number; readonly through: number } };

/** Removals of this process and, after a crash, of the one before. */
export const createRemovals = (authenticate: RowAuthenticator) => {
  const codeOf = (text: string, job: RowJob = 'dke removed requests 1'): string =>
    authenticate(`removed request records ${text}`, job);
  const read = async (from: Pick<Repositories, 'settings'>): Promise<Removed> => {
    const stored = (await from.settings.get(removedSetting)) ?? '';
    const [code, text] = [stored.slice(0, stored.indexOf(' ')), stored.slice(stored.indexOf(' ') + 1)];
    const isOurs = stored !== '' && [codeOf(text), codeOf(text, 'earlier')].includes(code);
    return isOurs ? (JSON.parse(text) as Removed) : {};
  };
  return {
    /**
     * In the transaction in which they are removed, so that a process that ends in between leaves
     * nothing untold.
     */
    note: async (
      tx: Repositories,
      space: string,
      removed: { readonly count: number; readonly through: number },
    ): Promise<void> => {
      if (removed.count === 0) return;
      const before = await read(tx);
      const own = before[space] ?? { count: 0, through: 0 };
      const after: Removed = {
        ...before,
        [space]: { count: own.count + removed.count, through: Math.max(own.through, removed.through) },
      };
      const text = JSON.stringify(after);
      await tx.settings.set(removedSetting, `${codeOf(text)} ${text}`);
    },
    /** Writes into the audit log what was noted. */
    tell: async (tx: Repositories): Promise<void> => {
      for (const [space, { count, through }] of Object.entries(await read(tx)))
        await recordEvent(tx, 'request-log.pruned', serviceActor('retention'), aboutService('request-log'), {
          count,
          through,
          ...(space === '' ? {} : { space }),
        });
      await tx.settings.set(removedSetting, null);
    },
  };
};

export interface RequestRetention {
  /**
   * Removes what is due, in steps; `between` is called after each one. Ends early when it answers
   * false.
   */
  remove(between: () => Promise<boolean>): Promise<void>;
  /** Another node may remove records from now on. */
  forget(): void;
}

export const createRequestRetention = (
  {
    store,
    deadlines,
    ring,
  }: Pick<Ports, 'store' | 'deadlines'> & { readonly ring: Pick<Ports['ring'], 'authenticateRow'> },
  limits: RequestLogLimits,
  /** Told what is removed, in the same transaction. */
  onRemoved: LogForwarding['requestsRemoved'] = async () => undefined,
): RequestRetention => {
  const removals = createRemovals(ring.authenticateRow);
  /** Records of each space, of those up to `counted`. */
  let counts = new Map<string, number>();
  let counted = 0;
  /** Up to which sequence a space has no records, by space: the next pruning starts after it. */
  let empty = new Map<string, number>();

  const subtract = (space: string, count: number): void => {
    const left = (counts.get(space) ?? 0) - count;
    if (left > 0) counts.set(space, left);
    else counts.delete(space);
  };
  const background = { durable: false } as const;

  const removeOld = async (between: () => Promise<boolean>): Promise<boolean> => {
    const before = (await deadlines.now()) - limits.requestLogDays * 86_400_000;
    for (;;) {
      const { removed, through } = await store.write(async (tx) => {
        const found = await tx.requests.pruneOld(before, step);
        const count = [...found.removed.values()].reduce((sum, each) => sum + each, 0);
        await removals.note(tx, '', { count, through: found.through });
        await onRemoved(tx, found.gone);
        return found;
      }, background);
      // What was not counted yet is not counted later either.
      if (through <= counted) for (const [space, count] of removed) subtract(space, count);
      else [counts, counted, empty] = [new Map(), 0, new Map()];
      if (removed.size === 0) return true;
      if (!(await between())) return false;
    }
  };

  const countNew = async (between: () => Promise<boolean>): Promise<boolean> => {
    for (;;) {
      const found = await store.read.requests.countBySpace(counted, countStep);
      counted = found.through;
      for (const [space, count] of found.counts) counts.set(space, (counts.get(space) ?? 0) + count);
      if (found.isEnd) return true;
      if (!(await between())) return false;
    }
  };

  /** The space that gives up records now, and how many. */
  const next = (): { readonly space: string; readonly most: number } | undefined => {
    const unsigned = counts.get(unsignedSpace) ?? 0;
    const tooMany = unsigned - Math.ceil(limits.requestLogRows * unsignedPart);
    if (tooMany > 0) return { space: unsignedSpace, most: Math.min(step, tooMany) };
    const signed = [...counts].filter(([space]) => space !== unsignedSpace);
    const over = signed.reduce((sum, [, count]) => sum + count, 0) - limits.requestLogRows;
    const [space = '', count = 0] = signed.reduce((most, each) => (each[1] > most[1] ? each : most), ['', 0]);
    const most = Math.min(step, over, count - endpointMinimum);
    return most > 0 ? { space, most } : undefined;
  };

  const removeOverflow = async (between: () => Promise<boolean>): Promise<void> => {
    for (let due = next(); due !== undefined; due = next()) {
      const { space, most } = due;
      const { removed, seen } = await store.write(async (tx) => {
        const found = await tx.requests.pruneSpace(space, empty.get(space) ?? 0, most, step);
        await removals.note(tx, space, { count: found.removed, through: found.through });
        await onRemoved(tx, found.gone);
        return found;
      }, background);
      subtract(space, removed);
      // The space had fewer records than were counted. The others were not removed by retention:
      // the hashes of their minutes will show that.
      if (seen === null && removed < most) counts.delete(space);
      else if (seen !== null) empty.set(space, seen);
      if (!(await between())) return;
    }
  };

  return {
    remove: async (between) => {
      // Records the removals that an earlier process or run has only noted.
      await store.write(removals.tell, background);
      if ((await removeOld(between)) && (await countNew(between))) await removeOverflow(between);
      await store.write(removals.tell, background);
    },
    forget: () => {
      [counts, counted, empty] = [new Map(), 0, new Map()];
    },
  };
};
