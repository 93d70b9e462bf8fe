// People who sign in: who they are and what they may do. How they prove it is in sign-in.ts and in
// their factors.

import type { Grant } from './access.ts';
import { isDeceptive } from './name.ts';
import { looksLikeAnother } from './user-name-looks.ts';
import type { Integrity } from './vault.ts';

/** 'deleted': the row stays, because the audit log names it; the name is free again. */
export const userStates = ['active', 'disabled', 'deleted'] as const;
export type UserState = (typeof userStates)[number];

export interface User {
  readonly id: string;
  /** The tenant that they belong to; null: the platform. */
  readonly tenantId: string | null;
  /** What they type: unique without regard to case. */
  readonly name: string;
  readonly displayName: string;
  readonly email: string | null;
  readonly grants: readonly Grant[];
  readonly state: UserState;
  readonly hasPassword: boolean;
  readonly mustChangePassword: boolean;
  readonly passwordChangedAt: number | null;
  /** Who they are at the OpenID provider; null: they do not sign in through it. */
  readonly subject: string | null;
  readonly createdAt: number;
  readonly lastSignInAt: number | null;
}

/**
 * How an invitation reaches its user: the caller gets the link, it is sent to the user's address,
 * or both.
 */
export const invitationDeliveries = ['show', 'mail', 'mail-and-show'] as const;
export type InvitationDelivery = (typeof invitationDeliveries)[number];

/** A user as administrators see one. */
export interface UserView extends User {
  readonly integrity: Integrity;
  readonly factors: readonly Factor[];
  readonly lockedUntil: number | null;
  /** End of the invitation that waits to be redeemed. */
  readonly invitedUntil: number | null;
}

export const factorKinds = ['totp', 'passkey', 'recovery-code'] as const;
export type FactorKind = (typeof factorKinds)[number];

/** How a person proves their identity, in addition to a password. */
export interface Factor {
  readonly id: string;
  readonly userId: string;
  readonly kind: FactorKind;
  readonly name: string;
  /** Null: begun, and not confirmed by a first use. Counts for nothing. */
  readonly confirmedAt: number | null;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
}

/**
 * Names that look alike to people are one name (Unicode's compatibility form, no case). A small
 * sigma is the one of its place in the word, and a capital letter may have no small one of its own
 * but a letter with a mark.
 */
export const foldUserName = (name: string): string =>
  name.normalize('NFKC').replaceAll(/[ςσ]/g, 'Σ').toLowerCase().normalize('NFKC');

/**
 * 1 to 64 letters, digits and `. _ @ + -`, a letter or a digit first, and nothing that is not seen:
 * no joiner or selector either. Its letters are of one script, and it does not look like a name of
 * another spelling (user-name-looks.ts). For names that are new: a user who has another one keeps
 * it.
 */
export const isUserName = (name: string): boolean =>
  /^[\p{L}\p{N}][\p{L}\p{M}\p{N}._@+-]{0,63}$/u.test(name) &&
  !/\p{Default_Ignorable_Code_Point}/u.test(name) &&
  !isDeceptive(name) &&
  !looksLikeAnother(name);

export const isEmail = (text: string): boolean => text.length <= 254 && /^[^\s@]{1,64}@[^\s@]+$/u.test(text);

/** Whether the user has a second factor that they can use now. Recovery codes do not count. */
export const hasSecondFactor = (factors: readonly Pick<Factor, 'kind' | 'confirmedAt'>[]): boolean =>
  factors.some(({ kind, confirmedAt }) => kind !== 'recovery-code' && confirmedAt !== null);
