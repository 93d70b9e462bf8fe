// Keeps the inbox: what is so now is compared with what is open. Something new is raised, something
// that came nearer to harm, or has another cause, is raised again (and asks for a new
// acknowledgement), something that is over is resolved. Each change is one event, in the same
// transaction, for the targets to have (deliver.ts).
//
// A source checks one subject, and it alone decides about its kinds: what it no longer finds is
// closed. When it fails, what was open stays open.

import { canonicalJson } from '../../base/bytes.ts';
import { newId } from '../../base/ids.ts';
import { otherWork } from '../../base/next-turn.ts';
import {
  type Condition,
  hasNewCause,
  type Notification,
  type NotificationKind,
  severityOf,
  stageOf,
} from '../../domain/notification.ts';
import type { Fleet } from '../../ports/fleet.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';

export interface NotificationSource {
  /** For people. */
  readonly about: string;
  /** Each kind is one source's. */
  readonly kinds: readonly NotificationKind[];
  readonly every: 'minute' | 'hour';
  readonly look: () => Promise<readonly Condition[]>;
}

const keyOf = ({ kind, subject }: Pick<Condition, 'kind' | 'subject'>): string => `${kind} ${subject.id}`;
/** Subjects of one commit: small enough that other writers wait for milliseconds only. */
const batch = 100;
/** Walked through at once: a millisecond or so. */
const stepLength = 1_000;

/** Walks through many without holding up what comes in in the meantime. */
async function* inSteps<T>(items: Iterable<T>): AsyncGenerator<T> {
  let walked = 0;
  for (const item of items) {
    walked += 1;
    if (walked % stepLength === 0) await otherWork();
    yield item;
  }
}

/** Null: nothing to do. */
const change = (open: Notification | undefined, condition: Condition | undefined, now: number) => {
  if (condition === undefined)
    return open === undefined ? null : ({ event: 'resolved', notification: { ...open, resolvedAt: now } } as const);
  const { kind, tenantId, subject, details } = condition;
  const stage = stageOf(condition, now);
  const harmAt = condition.harmAt ?? open?.harmAt ?? now;
  const severity = severityOf(kind, stage);
  if (open === undefined) {
    if (stage === 0) return null;
    const notification: Notification = {
      ...{ id: newId(now), kind, tenantId, subject, severity, stage, harmAt, details },
      ...{ raisedAt: now, resolvedAt: null, acknowledgedAt: null, acknowledgedBy: null },
    };
    return { event: 'raised', notification } as const;
  }
  if (stage === 0) return { event: 'resolved', notification: { ...open, resolvedAt: now } } as const;
  const after = { ...open, tenantId, subject, severity, stage, harmAt, details };
  const isWorse = stage > open.stage || hasNewCause(condition, open.details);
  const { stage: formerStage, severity: formerSeverity } = open;
  const told = { ...after, stage: formerStage, severity: formerSeverity };
  if (!isWorse && canonicalJson({ ...told }) === canonicalJson({ ...open })) return null;
  return isWorse
    ? ({ event: 'worse', notification: { ...after, acknowledgedAt: null, acknowledgedBy: null } } as const)
    : ({ event: 'same', notification: after } as const);
};

export const createNotificationWatch = (
  { store, clock, log, fleet }: Pick<Ports, 'store' | 'clock' | 'log'> & { readonly fleet: Pick<Fleet, 'perform'> },
  sources: readonly NotificationSource[],
) => {
  const lookedAt = new Map<NotificationSource, number>();
  /** The last check that was requested. */
  let running: Promise<void> = Promise.resolve();
  let stopped = false;

  /** Changes of these conditions, and of what is open about the same subjects; null: about any. */
  const reconcile = async (
    from: Repositories,
    kinds: readonly NotificationKind[],
    found: readonly Condition[],
    subjects: readonly string[] | null,
  ) => {
    const now = clock.now();
    const is = new Map<string, Condition>();
    for await (const one of inSteps(found)) is.set(keyOf(one), one);
    const open = new Map<string, Notification>();
    for await (const one of inSteps(await from.notifications.listOpenOf(kinds, subjects))) open.set(keyOf(one), one);
    const changes: NonNullable<ReturnType<typeof change>>[] = [];
    for await (const key of inSteps(new Set([...open.keys(), ...is.keys()]))) {
      const made = change(open.get(key), is.get(key), now);
      if (made !== null) changes.push(made);
    }
    return changes;
  };

  /**
   * One condition of each key: a second one would be acknowledged together with the first. It is a
   * mistake of its source, so it is logged; the worst one and all others are raised.
   */
  const withoutDoubles = async ({ about, look }: NotificationSource): Promise<readonly Condition[]> => {
    const now = clock.now();
    const found = new Map<string, Condition>();
    for await (const one of inSteps(await look())) {
      const before = found.get(keyOf(one));
      if (before !== undefined)
        log.error(`${about}: two conditions about the same`, { kind: one.kind, subject: one.subject.id });
      if (before === undefined || stageOf(before, now) < stageOf(one, now)) found.set(keyOf(one), one);
    }
    return [...found.values()];
  };

  const lookAt = async (source: NotificationSource): Promise<void> => {
    const { kinds } = source;
    const found = await withoutDoubles(source);
    const changed = await reconcile(store.read, kinds, found, null);
    const subjects = [...new Set(changed.map(({ notification }) => notification.subject.id))];
    if (subjects.length === 0) return;
    const bySubject = new Map<string, Condition[]>();
    for await (const one of inSteps(found)) {
      const others = bySubject.get(one.subject.id);
      if (others === undefined) bySubject.set(one.subject.id, [one]);
      else others.push(one);
    }
    for (let at = 0; at < subjects.length; at += batch) {
      const some = subjects.slice(at, at + batch);
      const ofSome = some.flatMap((subject) => bySubject.get(subject) ?? []);
      await store.write(async (tx) => {
        for (const { event, notification } of await reconcile(tx, kinds, ofSome, some)) {
          if (event === 'raised') await tx.notifications.insert(notification);
          else await tx.notifications.update(notification);
          if (event !== 'same') await tx.notifications.appendEvent({ event, at: clock.now(), notification });
        }
      });
    }
  };

  const checkSources = async (all: boolean): Promise<void> => {
    for (const source of sources) {
      if (stopped) return;
      const last = lookedAt.get(source);
      const dueMs = source.every === 'minute' ? 0 : 3_600_000;
      if (!all && last !== undefined && clock.monotonic() - last < dueMs) continue;
      lookedAt.set(source, clock.monotonic());
      await lookAt(source).catch((error: unknown) => log.error(`${source.about} could not be checked`, { error }));
    }
  };

  /** One check at a time. */
  const check = (all: boolean): Promise<void> => {
    const next = running.then(() => (stopped ? undefined : checkSources(all)));
    running = next.catch(() => undefined);
    return next;
  };
  return {
    /**
     * Checks every source that is due: a part of the jobs of every minute, which one node does for
     * all.
     */
    check: () => check(false),
    /**
     * Checks every source at once, on the node that does these jobs; another one leaves it to that
     * node's next minute.
     */
    checkAll: async (): Promise<void> => {
      await fleet.perform('schedules', () => check(true));
    },
    /** Resolves when no check is running; none starts after that. */
    stop: async (): Promise<void> => {
      stopped = true;
      await running;
    },
  };
};
