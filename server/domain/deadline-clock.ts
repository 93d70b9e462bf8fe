// The time that decides deadlines after which something is destroyed. It cannot jump: it advances
// by the time that has passed, and follows the clocks (of the hosts and of the database) only as
// far as they agree with that. Clocks that differ by more than an hour are followed after 24 hours
// in which the difference stayed the same, or when an operator confirms the time. Pure: the times
// of the clocks are arguments.

export interface Doubt {
  /** The deadline clock's own time when the difference was first noticed. */
  readonly since: number;
  /**
   * How far the clocks were ahead of the deadline clock then, in milliseconds; negative: behind.
   */
  readonly ahead: number;
  /** How long a running service has seen the clocks stay so. */
  readonly agreedMs: number;
}

export interface DeadlineClock {
  readonly at: number;
  /**
   * How far it may still run ahead of the time that has passed: many small jumps are one large one.
   */
  readonly spareMs: number;
  /** Null: the clocks agree with it. */
  readonly doubt: Doubt | null;
}

/** Clocks that differ by less are followed at once. */
export const toleranceMs = 3_600_000;
/** Clocks that differ by more are followed when they have stayed so for this long. */
export const agreementMs = 86_400_000;

export const startAt = (at: number): DeadlineClock => ({ at, spareMs: toleranceMs, doubt: null });

export interface Tick {
  /** What has passed since the last tick, by uptime; 0 when that is not known. */
  readonly elapsedMs: number;
  /** Whether a service ran and saw the clocks in that time. */
  readonly observed: boolean;
  /** The earliest of all clocks. */
  readonly clock: number;
}

export const tick = (before: DeadlineClock, { elapsedMs, observed, clock }: Tick): DeadlineClock => {
  const expected = before.at + elapsedMs;
  const ahead = clock - expected;
  const spareMs = Math.min(toleranceMs, before.spareMs + elapsedMs / 24);
  if (Math.abs(ahead) <= toleranceMs) {
    const gained = Math.min(Math.max(ahead, 0), spareMs);
    return { at: expected + gained, spareMs: spareMs - gained, doubt: null };
  }
  const known = before.doubt !== null && Math.abs(ahead - before.doubt.ahead) <= toleranceMs ? before.doubt : null;
  const agreedMs = known === null ? 0 : known.agreedMs + (observed ? elapsedMs : 0);
  if (agreedMs >= agreementMs) return startAt(clock);
  return { at: expected, spareMs, doubt: { since: known?.since ?? expected, ahead: known?.ahead ?? ahead, agreedMs } };
};
