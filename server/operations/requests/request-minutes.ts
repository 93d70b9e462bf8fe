// The hash of the request log, minute by minute, in the audit log: one node reads each minute that
// is over, a grace after its end, and writes how many records each space had and one hash over them
// (base/request-minutes.ts), and how many requests could not be recorded. Records that come later
// still get parts of their own. And the comparison of the log with all that.

import { newId, serviceTenantId } from '../../base/ids.ts';
import {
  compareRequests,
  createFindings,
  type DroppedRequests,
  gatherMinutes,
  growMinute,
  type HashedMinutes,
  type MinutePart,
  minuteMs,
  minuteOf,
  type RequestHash,
  type RequestLogVerdict,
} from '../../base/request-minutes.ts';
import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import { serviceActor } from '../../domain/actor.ts';
import type { AuditEvent, AuditKind } from '../../domain/audit-event.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';

/**
 * After the end of a minute: records are written five times a second, by nodes whose clocks may
 * differ a little.
 */
const graceMs = 60_000;
/**
 * Records of one step: little enough that a request that comes in in the meantime does not notice.
 */
const stepRecords = 100;
/** Sequences of one step, of which few are examined closely. */
const stepSequences = 2_000;
/** Minutes of one commit, when there is much to make up for. */
const mostInCommit = 50;
const stateSetting = 'request-log-minutes';
const subject = { kind: 'service', id: 'request-log' } as const;

/**
 * How far the hashes are: minutes up to `closed`, of records up to `through`. `next` is what is
 * being worked on; of its minutes those up to `done` are hashed.
 */
interface State {
  readonly closed: number;
  readonly through: number;
  readonly next: { readonly closed: number; readonly through: number; readonly done: number } | null;
}

/** Lets what arrived in the meantime be answered, for as long as the step took. */
const otherWork = (tookMs: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, Math.min(tookMs, 5));
  });

/** What one record of the audit log says. */
interface ToldMinute {
  readonly minute: number;
  readonly late: boolean;
  readonly parts: readonly MinutePart[];
}

/**
 * Each minute with what it lost. A minute that has lost something and has nothing else is told on
 * its own.
 */
const withDropped = (
  minutes: readonly ToldMinute[],
  dropped: readonly DroppedRequests[],
  closed: number,
): readonly (ToldMinute & { readonly dropped: DroppedRequests | undefined })[] => {
  const lost = new Map(dropped.map((each) => [each.minute, each]));
  const told = minutes.map((each) => {
    const own = lost.get(each.minute);
    lost.delete(each.minute);
    return { ...each, dropped: own };
  });
  const others = [...lost.values()].map((each) => ({
    minute: each.minute,
    late: each.minute <= closed,
    parts: [],
    dropped: each,
  }));
  return [...told, ...others];
};

const append = (
  tx: Repositories,
  { minute, late, parts, dropped }: ToldMinute & { readonly dropped: DroppedRequests | undefined },
  requestId: string,
): Promise<unknown> =>
  tx.audit.append({
    kind: 'request-log.minute',
    actor: serviceActor(requestId),
    tenantId: serviceTenantId,
    subject,
    details: {
      minute: toRfc3339(minute * minuteMs),
      count: parts.reduce((sum, { count }) => sum + count, 0),
      late,
      dropped: dropped?.signed ?? 0,
      droppedUnsigned: dropped?.unsigned ?? 0,
      parts: parts.map(({ space, count, first, last, hash }) => ({ space, count, first, last, hash })),
    },
  });

/**
 * How far the hashes are, in the settings of the store: one node after the other continues from
 * there.
 */
const createHashState = ({ store, clock }: Pick<Ports, 'store' | 'clock'>) => {
  /** Up to this minute there was nothing to hash, when the state was this. */
  let quiet: { readonly text: string | undefined; readonly through: number } | undefined;

  const stateOf = async (from: Repositories): Promise<{ readonly text: string | undefined; readonly state: State }> => {
    const text = await from.settings.get(stateSetting);
    return { text, state: text === undefined ? { closed: -1, through: 0, next: null } : (JSON.parse(text) as State) };
  };
  /** Undefined where another node was there first. */
  const advance = async (
    before: string | undefined,
    next: State,
    minutes: readonly ToldMinute[],
    /** All that was lost up to this minute is told with them. */
    lostThrough: number,
    closed: number,
  ): Promise<string | undefined> => {
    const text = JSON.stringify(next);
    const requestId = newId(clock.now());
    return store.write(
      async (tx) => {
        if ((await tx.settings.get(stateSetting)) !== before) return undefined;
        const dropped = await tx.requests.takeDropped(lostThrough);
        for (const each of withDropped(minutes, dropped, closed)) await append(tx, each, requestId);
        await tx.settings.set(stateSetting, text);
        return text;
      },
      { durable: minutes.length > 0 },
    );
  };

  /**
   * From here on what is written into these minutes counts as late: their records so far are those
   * up to `through`.
   */
  const close = async (): Promise<{ readonly text: string; readonly state: State } | undefined> => {
    const closed = minuteOf(clock.now() - graceMs) - 1;
    const { text, state } = await stateOf(store.read);
    if (text !== undefined && state.next !== null) return { text, state };
    const newest = await store.read.requests.newest();
    const span = { from: (state.closed + 1) * minuteMs, to: (closed + 1) * minuteMs, through: newest };
    if (
      newest === state.through &&
      // An empty log has none.
      (newest === 0 || (await store.read.requests.hashesInTime(span, undefined, 1)).length === 0) &&
      (await store.read.requests.dropped(closed)).length === 0
    ) {
      quiet = { text, through: closed };
      return undefined;
    }
    if (closed <= state.closed) return undefined;
    return store.write(
      async (tx) => {
        if ((await tx.settings.get(stateSetting)) !== text) return undefined;
        // In minutes that were empty when they were checked, every record came late.
        const before = quiet !== undefined && quiet.text === text ? Math.min(quiet.through, closed) : state.closed;
        const from = Math.max(state.closed, before);
        // Writers take turns: whatever is written after this has a higher sequence.
        const made: State = {
          closed: from,
          through: state.through,
          next: { closed, through: await tx.requests.newest(), done: from },
        };
        const changed = JSON.stringify(made);
        await tx.settings.set(stateSetting, changed);
        return { text: changed, state: made };
      },
      { durable: false },
    );
  };

  return { advance, close };
};

interface Reading extends Pick<Ports, 'store'> {
  readonly isStopped: () => boolean;
}

/** Records that were written into minutes that are hashed already. */
async function* lateRecords(
  { store, isStopped }: Reading,
  { closed, through, next }: State,
): AsyncGenerator<RequestHash> {
  if (closed < 0 || next === null) return;
  for (let after = through; after < next.through && !isStopped(); after += stepSequences) {
    const startedAt = performance.now();
    const span = { after, through: Math.min(after + stepSequences, next.through), before: (closed + 1) * minuteMs };
    yield* await store.read.requests.hashesOfLate(span);
    await otherWork(performance.now() - startedAt);
  }
}

/** The late records, grouped by minute and hashed. */
const hashLate = async (reading: Reading, state: State): Promise<readonly ToldMinute[]> => {
  const came = new Map<number, RequestHash[]>();
  for await (const record of lateRecords(reading, state)) {
    const minute = minuteOf(record.at);
    const others = came.get(minute);
    if (others === undefined) came.set(minute, [record]);
    else others.push(record);
  }
  return [...came].map(([minute, records]): ToldMinute => {
    const grown = growMinute(minute, true);
    for (const record of records.sort((a, b) => a.at - b.at || a.sequence - b.sequence)) grown.add(record);
    return { minute, late: true, parts: grown.end() };
  });
};

export interface RequestMinutes {
  /** Hashes the minutes that are over. By one node, now and then. */
  run(): Promise<void>;
  /** Ends a run that is under way; the next one does the rest. */
  stop(): void;
}

export const createRequestMinutes = ({ store, clock, log }: Pick<Ports, 'store' | 'clock' | 'log'>): RequestMinutes => {
  let stopped = false;
  const { advance, close } = createHashState({ store, clock });

  return {
    run: async () => {
      const opened = await close();
      if (opened?.state.next == null) return;
      const { state } = opened;
      const { next } = opened.state;
      let text: string | undefined = opened.text;

      const lateMinutes = await hashLate({ store, isStopped: () => stopped }, state);
      const span = { from: (next.done + 1) * minuteMs, to: (next.closed + 1) * minuteMs, through: next.through };
      let after: { readonly at: number; readonly sequence: number } | undefined;
      let grown: ReturnType<typeof growMinute> | undefined;
      let minute = -1;
      let done: ToldMinute[] = [];
      const endMinute = (): void => {
        if (grown !== undefined) done.push({ minute, late: false, parts: grown.end() });
      };
      for (;;) {
        if (stopped) return;
        const stepBegun = performance.now();
        const records = await store.read.requests.hashesInTime(span, after, stepRecords);
        for (const record of records) {
          const own = minuteOf(record.at);
          if (own !== minute) {
            endMinute();
            if (done.length >= mostInCommit) {
              // All of the minutes before this one.
              text = await advance(text, { ...state, next: { ...next, done: own - 1 } }, done, own - 1, state.closed);
              if (text === undefined) return;
              done = [];
            }
            grown = growMinute(own, false);
            minute = own;
          }
          grown?.add(record);
          after = record;
        }
        await otherWork(performance.now() - stepBegun);
        if (records.length < stepRecords) break;
      }
      endMinute();
      if (lateMinutes.length > 0) {
        const count = lateMinutes.flatMap(({ parts }) => parts).reduce((sum, one) => sum + one.count, 0);
        log.warn('request records arrived after their minute was hashed', { count, minutes: lateMinutes.length });
      }
      const over: State = { closed: next.closed, through: next.through, next: null };
      await advance(text, over, [...lateMinutes, ...done], next.closed, state.closed);
    },

    stop: () => {
      stopped = true;
    },
  };
};

const auditPage = 500;
/**
 * Parts that are compared at once, and a commit of the hashing node more: so many are in memory.
 */
const partsAtOnce = 1_000;
/**
 * Parts that came late, in all: they stand anywhere in the audit log, so that all of a span are in
 * memory.
 */
const mostLateParts = 50_000;

interface MinuteSpan {
  readonly first: number;
  readonly last: number;
}

/**
 * What is said about the span anywhere in the audit log, and where the log begins to speak of it.
 */
const surveyMinutes = async (read: Repositories, { first, last }: MinuteSpan) => {
  const late = gatherMinutes();
  const newest = { minute: Number.NEGATIVE_INFINITY, sequence: 0 };
  let begin: number | undefined;
  // A minute is hashed, and pruned, after its end, never before.
  const eachEvent = async (kind: AuditKind, take: (event: AuditEvent) => void): Promise<void> => {
    for (let after: string | undefined; ; ) {
      const page = await read.audit.list(everyTenant, { kind, order: 'newest' }, { after, limit: auditPage });
      const due = page.filter(({ at }) => minuteOf(at) >= first);
      for (const event of due) take(event);
      if (page.length < auditPage || due.length === 0) return;
      after = String(page.at(-1)?.sequence);
    }
  };
  await eachEvent('request-log.minute', (event) => {
    begin = event.sequence;
    const { parts } = minutesOf([event]);
    for (const part of parts) {
      newest.minute = Math.max(newest.minute, part.minute);
      newest.sequence = Math.max(newest.sequence, part.last);
    }
    const minute = minuteOf(Date.parse(String(event.details.minute)));
    if (event.details.late !== true || minute < first || minute > last) return;
    late.add(event);
    if (late.parts() > mostLateParts)
      throw new ServiceError('validation', 'too many records of this time arrived late to be compared at once', {
        hint: 'compare a shorter time: set from and to',
      });
  });
  await eachEvent('request-log.pruned', late.add);
  return { late: late.end(), newest, begin };
};

const minutesOf = (events: readonly AuditEvent[]): HashedMinutes => {
  const minutes = gatherMinutes();
  for (const event of events) minutes.add(event);
  return minutes.end();
};

/**
 * What the audit log says in its order, except of what came late: a few commits at a time, each of
 * them whole.
 */
async function* hashedInOrder(read: Repositories, begin: number): AsyncGenerator<readonly AuditEvent[]> {
  let held: AuditEvent[] = [];
  let parts = 0;
  for (let after = String(begin - 1); ; ) {
    const filter = { kind: 'request-log.minute', order: 'oldest' } as const;
    const page = await read.audit.list(everyTenant, filter, { after, limit: auditPage });
    for (const event of page) {
      // A commit tells minutes that only lost requests behind its other ones.
      if (parts >= partsAtOnce && event.requestId !== held.at(-1)?.requestId) {
        yield held;
        held = [];
        parts = 0;
      }
      if (event.details.late === true) continue;
      held.push(event);
      parts += minutesOf([event]).parts.length;
    }
    const last = page.at(-1);
    if (last === undefined || page.length < auditPage) break;
    after = String(last.sequence);
    await otherWork(0);
  }
  yield held;
}

/**
 * Compares what the store has with what was hashed, of the minutes of this time. `from` is
 * inclusive, `to` is not.
 */
export const verifyRequests = async (
  read: Repositories,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<RequestLogVerdict> => {
  const span: MinuteSpan = { first: minuteOf(from), last: minuteOf(to - 1) };
  const { late, newest, begin } = await surveyMinutes(read, span);
  // What comes after this is not checked.
  const through = await read.requests.newest();
  const findings = createFindings();
  const compare = async (hashed: HashedMinutes & { readonly minutes: MinuteSpan }): Promise<RequestLogVerdict> => {
    const comparison = compareRequests(hashed, findings);
    const { first, last } = hashed.minutes;
    const time = { from: first * minuteMs, to: (last + 1) * minuteMs, through };
    for (let after: { readonly at: number; readonly sequence: number } | undefined; ; ) {
      const startedAt = performance.now();
      const page = await read.requests.hashesInTime(time, after, stepRecords);
      for (const record of page) comparison.add(record);
      if (page.length < stepRecords) return comparison.end();
      after = page.at(-1);
      await otherWork(performance.now() - startedAt);
    }
  };
  const sum = { requests: 0, minutes: 0, late: 0, pruned: 0, dropped: 0, droppedUnsigned: 0, open: 0 };
  const names = Object.keys(sum) as (keyof typeof sum)[];
  /** The minutes up to `last`, from the first one that was not compared yet. */
  let next = span.first;
  const compareUpTo = async (last: number, { parts, dropped }: HashedMinutes): Promise<void> => {
    const minutes = { first: next, last };
    const isIn = ({ minute }: { readonly minute: number }): boolean => minute >= minutes.first && minute <= last;
    const verdict = await compare({
      parts: [...parts, ...late.parts.filter(isIn)],
      dropped: [...dropped, ...late.dropped.filter(isIn)],
      prunedThrough: late.prunedThrough,
      newest,
      minutes,
    });
    for (const name of names) sum[name] += verdict[name];
    next = last + 1;
  };
  if (begin !== undefined)
    for await (const events of hashedInOrder(read, begin)) {
      const hashed = minutesOf(events);
      const last = Math.min(
        Math.max(...hashed.parts.map(({ minute }) => minute), ...hashed.dropped.map(({ minute }) => minute)),
        span.last,
      );
      if (last >= next) await compareUpTo(last, hashed);
      if (next > span.last) break;
    }
  if (next <= span.last) await compareUpTo(span.last, { parts: [], dropped: [], prunedThrough: late.prunedThrough });
  return { ...sum, findings: findings.list() };
};
