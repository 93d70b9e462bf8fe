// Whether a deadline has passed after which something is destroyed permanently
// (operations/service/deadline-clock.ts).

import type { Doubt } from '../domain/deadline-clock.ts';

export interface DeadlineState {
  /** What deadlines are decided by: never later than this host's clock. */
  readonly now: number;
  /** This host's clock. */
  readonly clock: number;
  readonly doubt: Doubt | null;
}

export interface Deadlines {
  /**
   * For "has this deadline passed?": the earlier of both times. Nothing is destroyed by
   * `Clock.now`.
   */
  now(): Promise<number>;
  /**
   * For "when does this deadline end?": the later of both times, so that a clock that is behind
   * makes no deadline end early.
   */
  latest(): Promise<number>;
  state(): Promise<DeadlineState>;
}

/** How long the host has been up, also while it slept. */
export interface HostUptime {
  /** Another one after each start of the host. Empty: unknown. */
  readonly bootId: string;
  readonly ms: number;
}
