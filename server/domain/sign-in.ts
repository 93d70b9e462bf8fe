// What a sign-in still needs, and how long a user must wait after a failure. Pure: counters and
// clocks are given.

import { type Grant, rowOf } from './access.ts';
import { type Factor, hasSecondFactor, type User } from './user.ts';

/**
 * What a session lacks before it may do anything else: a second factor to be given, a new password
 * to be chosen, a second factor to be made.
 */
export const signInSteps = ['second-factor', 'new-password', 'enrolment'] as const;
export type SignInStep = (typeof signInSteps)[number];

/** What a session can be started with. */
export const signInMethods = ['password', 'invitation', 'passkey', 'openid', 'token'] as const;
export type SignInMethod = (typeof signInMethods)[number];

/** Whether a user with these roles can change anything, rather than read and export. */
export const changesAnything = (grants: readonly Grant[]): boolean =>
  grants.some(({ role }) => rowOf(role).permissions.some((permission) => !/:(read|export)$/.test(permission)));

/**
 * The next step of a user's session; null: it is complete. `proved`: how many factors it has shown.
 */
export const nextStep = (
  user: Pick<User, 'grants' | 'mustChangePassword' | 'hasPassword'>,
  factors: readonly Pick<Factor, 'kind' | 'confirmedAt'>[],
  proved: 1 | 2,
  secondFactor: 'required' | 'optional',
): SignInStep | null => {
  const enrolled = hasSecondFactor(factors);
  if (enrolled && proved < 2) return 'second-factor';
  if (user.mustChangePassword && user.hasPassword) return 'new-password';
  if (!enrolled && proved < 2 && secondFactor === 'required' && changesAnything(user.grants)) return 'enrolment';
  return null;
};

/** Attempts that failed in a row, of one user or from one address. */
export interface Failures {
  readonly failures: number;
  readonly failedAt: number;
  /** No attempt before then. */
  readonly lockedUntil: number | null;
}

interface LockoutRow {
  /** Which failure in a row is the first to cause a delay; the ones before cause none. */
  readonly free: number;
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
  /** Without a failure for so long, they are forgotten. */
  readonly forgottenAfterMs: number;
}

const minute = 60_000;
const hour = 60 * minute;

/**
 * An address is often that of many people, and a network (an IPv6 /48) that of many addresses, so
 * they have more attempts.
 */
export const lockouts = {
  user: { free: 5, firstDelayMs: 10_000, longestDelayMs: 15 * minute, forgottenAfterMs: 24 * hour },
  address: { free: 30, firstDelayMs: 10_000, longestDelayMs: 15 * minute, forgottenAfterMs: hour },
  network: { free: 120, firstDelayMs: 10_000, longestDelayMs: 15 * minute, forgottenAfterMs: hour },
} as const satisfies Record<string, LockoutRow>;
export type LockoutKind = keyof typeof lockouts;

/**
 * After so many failures in a row no attempt is accepted for a day: the limit of NIST SP 800-63B,
 * section 3.2.2.
 */
const mostInARow = 100;

/** One failure more. The delay doubles with each that is not free. */
export const countFailure = (kind: LockoutKind, before: Failures | undefined, now: number): Failures => {
  const { free, firstDelayMs, longestDelayMs, forgottenAfterMs } = lockouts[kind];
  const failures = (before === undefined || now - before.failedAt > forgottenAfterMs ? 0 : before.failures) + 1;
  const delay =
    failures < free
      ? 0
      : failures >= mostInARow
        ? 24 * hour
        : Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(20, failures - free));
  return { failures, failedAt: now, lockedUntil: delay === 0 ? null : now + delay };
};
