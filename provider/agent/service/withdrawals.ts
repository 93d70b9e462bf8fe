// Requests that create or change something, and whose outcome the agent does not know: the deadline
// passed, or the connection was lost, and the caller was told that the call failed. Each is
// withdrawn, again and again until the service has confirmed it, so that in the end the call has
// either succeeded or left nothing behind. New requests of this kind wait until nothing is open: a
// caller who repeats its call does not meet its own key of the attempt before.
import { setTimeout } from 'node:timers/promises';
import type { WithdrawalOutcome } from '../../../server/contract/tde.ts';
import type { Caller } from './service-door.ts';

const firstPauseMs = 50;
const longestPauseMs = 5_000;
/** What the end of the agent waits for. */
const closeMs = 10_000;

export interface Withdrawals {
  add(caller: Caller): void;
  /** Resolves when nothing is open; rejects with the signal's reason. */
  settled(signal: AbortSignal): Promise<void>;
  /** Whether nothing is open. */
  readonly isSettled: boolean;
  /** Waits a short while for what is open, then gives up. */
  close(): Promise<void>;
}

/** `withdraw` asks the service once; `done` hears each outcome. */
export const createWithdrawals = (
  withdraw: (caller: Caller) => Promise<WithdrawalOutcome>,
  done: (requestId: string, outcome: WithdrawalOutcome) => void,
): Withdrawals => {
  const open = new Map<string, Caller>();
  const closing = new AbortController();
  let running: Promise<void> | undefined;

  const run = async (): Promise<void> => {
    let pauseMs = firstPauseMs;
    for (const [caller] of iterate(open)) {
      if (closing.signal.aborted) return;
      try {
        const outcome = await withdraw(caller);
        open.delete(caller.requestId);
        pauseMs = firstPauseMs;
        done(caller.requestId, outcome);
      } catch {
        await setTimeout(pauseMs, undefined, { signal: closing.signal }).catch(() => undefined);
        pauseMs = Math.min(pauseMs * 2, longestPauseMs);
      }
    }
  };

  const start = (): void => {
    running ??= run().finally(() => {
      running = undefined;
      // One that was added in the moment of the end.
      if (open.size > 0 && !closing.signal.aborted) start();
    });
  };

  return {
    get isSettled() {
      return open.size === 0;
    },
    add: (caller) => {
      open.set(caller.requestId, caller);
      start();
    },
    settled: (signal) =>
      new Promise((resolve, reject) => {
        const fail = (): void => reject(signal.reason);
        if (signal.aborted) fail();
        signal.addEventListener('abort', fail, { once: true });
        void Promise.resolve(running).then(() => {
          signal.removeEventListener('abort', fail);
          resolve();
        });
      }),
    close: async () => {
      const timer = globalThis.setTimeout(() => closing.abort(), closeMs);
      await running;
      clearTimeout(timer);
      closing.abort();
    },
  };
};

/** The oldest one, as long as there is one. */
function* iterate(open: ReadonlyMap<string, Caller>): Generator<[Caller]> {
  for (let [first] = open.values(); first !== undefined; [first] = open.values()) yield [first];
}
