// Sends what happens in the inbox on to the targets of the configuration file, from the node that
// has the duty. Each has a cursor of its own in the store and a loop of its own: one that is
// offline misses nothing, and does not delay the others. At least once; the event's id tells a
// repeat. What was over before it could be sent is no longer sent. What a target refuses is set
// aside once it takes another one.

import { newId } from '../../base/ids.ts';
import { ItemRefused } from '../../base/outside.ts';
import { isAtLeast, notificationRow, textOf } from '../../domain/notification.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type {
  NotificationMessage,
  NotificationTarget,
  NotificationTargetState,
} from '../../ports/notification-target.ts';
import type { Ports } from '../../ports/ports.ts';
import type { NotificationEvent } from '../../ports/store.ts';
import { DutyLost } from '../nodes/node-duties.ts';

const batch = 50;
const mostWidth = 400;
const pollMs = 1_000;
const shortestPauseMs = 1_000;
const longestPauseMs = 300_000;

export interface NotificationDelivery {
  start(): void;
  stop(graceMs: number): Promise<void>;
  state(): Promise<readonly NotificationTargetState[]>;
  /** Sends a test to each target now; null: it took it. */
  test(): Promise<readonly { readonly name: string; readonly failure: string | null }[]>;
}

const settingOf = (name: string): string => `notification-target:${name}`;
const messageOf = ({ sequence, event, at, notification }: NotificationEvent): NotificationMessage => ({
  id: `${notification.id}-${sequence}`,
  event,
  at,
  text: textOf(notification),
  fix: notificationRow(notification.kind).fix,
  notification,
});
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : 'failed');

const createCursor =
  ({ read }: Ports['store']) =>
  async (name: string): Promise<number> =>
    Number((await read.settings.get(settingOf(name))) ?? 0);

const isWanted = async (
  store: Ports['store'],
  target: NotificationTarget,
  { event, notification }: NotificationEvent,
): Promise<boolean> => {
  if (!isAtLeast(notification.severity, target.minSeverity)) return false;
  if (event === 'resolved') return true;
  const now = await store.read.notifications.get(everyTenant, notification.id);
  return now?.resolvedAt === null && now.stage === notification.stage;
};

interface Progress {
  readonly isStopping: () => boolean;
  /** The target has taken one. */
  readonly accepted: () => void;
  /** One is done with. */
  readonly passed: () => void;
}

/**
 * Sends them in their order. Answers what is left with the target's refusal, where it refuses the
 * last ones.
 */
const sendEvents = async (
  { store, log }: Pick<Ports, 'store' | 'log'>,
  target: NotificationTarget,
  events: readonly NotificationEvent[],
  { isStopping, accepted, passed }: Progress,
): Promise<ItemRefused | undefined> => {
  /**
   * Events that the target refused. They are set aside when it takes a later one: a target that
   * takes none is at fault itself.
   */
  const refused: { readonly event: NotificationEvent; readonly error: ItemRefused }[] = [];
  for (const event of events) {
    if (isStopping()) break;
    if (await isWanted(store, target, event)) {
      try {
        await target.send(messageOf(event));
      } catch (error) {
        if (!(error instanceof ItemRefused)) throw error;
        refused.push({ event, error });
        continue;
      }
      accepted();
    } else if (refused.length > 0) continue;
    for (const { event: each, error } of refused.splice(0))
      log.error('a notification target refuses a notification; it is set aside, and the next ones are delivered', {
        target: target.name,
        notification: each.notification.id,
        kind: each.notification.kind,
        error,
      });
    await store.write((tx) => tx.settings.set(settingOf(target.name), String(event.sequence)));
    passed();
  }
  return refused[0]?.error;
};

export const createNotificationDelivery = (
  { store, fleet, clock, log }: Pick<Ports, 'store' | 'fleet' | 'clock' | 'log'>,
  targets: readonly NotificationTarget[],
): NotificationDelivery => {
  const stopping = new AbortController();
  const states = new Map<string, Pick<NotificationTargetState, 'deliveredAt' | 'failure'>>();
  let loops: Promise<unknown> = Promise.resolve();

  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        stopping.signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      timer.unref();
      if (stopping.signal.aborted) end();
      else stopping.signal.addEventListener('abort', end);
    });

  const cursorOf = createCursor(store);

  const succeeded = ({ name }: NotificationTarget): void => {
    states.set(name, { deliveredAt: clock.now(), failure: null });
  };
  const failed = ({ name }: NotificationTarget, message: string): void => {
    const before = states.get(name);
    const since = before?.failure?.since ?? clock.now();
    states.set(name, { deliveredAt: before?.deliveredAt ?? null, failure: { since, message } });
  };

  const deliver = async (target: NotificationTarget): Promise<void> => {
    let pauseMs = shortestPauseMs;
    let width = batch;
    /** Answers how many there were. */
    const sendNext = async (): Promise<number> => {
      const cursor = await cursorOf(target.name);
      const events = await store.read.notifications.listEvents(cursor, width);
      const refused = await sendEvents({ store, log }, target, events, {
        isStopping: () => stopping.signal.aborted,
        accepted: () => succeeded(target),
        passed: () => {
          pauseMs = shortestPauseMs;
        },
      });
      // Further, until one comes that the target takes: then those that it refuses are set aside.
      width = refused === undefined ? batch : Math.min(width * 2, mostWidth);
      if (refused !== undefined && !stopping.signal.aborted) throw refused;
      return events.length;
    };
    while (!stopping.signal.aborted) {
      try {
        // Undefined: another node sends them.
        if (((await fleet.perform('forwarding', sendNext)) ?? 0) === 0) await pause(pollMs);
      } catch (error) {
        if (stopping.signal.aborted) return;
        if (error instanceof DutyLost) continue;
        const message = reasonOf(error);
        if (states.get(target.name)?.failure?.message !== message)
          log.error('a notification target is unreachable; delivery will be retried', { target: target.name, error });
        failed(target, message);
        await pause(pauseMs);
        pauseMs = Math.min(pauseMs * 2, longestPauseMs);
      }
    }
  };

  return {
    start: () => {
      loops = Promise.all(targets.map(deliver));
    },
    stop: async (graceMs) => {
      stopping.abort();
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, graceMs);
      });
      await Promise.race([loops, late]);
      clearTimeout(timer);
      await Promise.allSettled(targets.map((target) => target.close()));
      await loops;
    },
    state: () =>
      Promise.all(
        targets.map(async ({ name, type, target }) => ({
          name,
          type,
          target,
          waiting: await store.read.notifications.countEvents(await cursorOf(name)),
          ...(states.get(name) ?? { deliveredAt: null, failure: null }),
        })),
      ),
    test: () =>
      Promise.all(
        targets.map(async (target) => {
          const message: NotificationMessage = {
            id: newId(clock.now()),
            event: 'test',
            at: clock.now(),
            text: 'this is a test: you receive notifications from this service',
            fix: '',
            notification: null,
          };
          const failure = await target.send(message).then(() => null, reasonOf);
          if (failure === null) succeeded(target);
          else failed(target, failure);
          return { name: target.name, failure };
        }),
      ),
  };
};
