// People in the store, and what hashes their passwords.

import type { Failures, SignInMethod } from '../domain/sign-in.ts';
import type { TenantScope } from '../domain/tenant.ts';
import type { Factor, User } from '../domain/user.ts';
import type { Integrity } from '../domain/vault.ts';
import type { Window } from './window.ts';

export interface StoredUser extends User {
  /** PHC string of Argon2id; null: they have none. */
  readonly password: string | null;
  readonly invitationHash: string | null;
  readonly invitedUntil: number | null;
  readonly integrity: Integrity;
}

export interface StoredFactor extends Factor {
  /**
   * Canonical JSON, by kind: a passkey's public key, a recovery code's hash. A TOTP secret is a key
   * record.
   */
  readonly data: string;
  /** The last time step of TOTP, or a passkey's signature counter: not policy, it only grows. */
  readonly counter: number;
  readonly integrity: Integrity;
}

export interface StoredSession {
  readonly id: string;
  /** The tenant of the session's holder; null: the holder belongs to the platform. */
  readonly tenantId: string | null;
  readonly hash: string;
  readonly holder: { readonly kind: 'user' | 'token'; readonly id: string };
  readonly method: SignInMethod;
  /** How many factors were shown. */
  readonly proved: 1 | 2;
  readonly createdAt: number;
  readonly usedAt: number;
  readonly expiresAt: number;
  readonly peer: string | null;
  /** What the browser calls itself; for people. */
  readonly agent: string | null;
  readonly integrity: Integrity;
}

/**
 * A sign-in that is under way elsewhere: at an authenticator, at the OpenID provider. Used once.
 */
export interface StoredAttempt {
  readonly hash: string;
  readonly kind:
    | 'passkey-sign-in'
    | 'passkey-second-factor'
    | 'passkey-registration'
    | 'openid'
    | 'claimed-roles'
    | 'device-code'
    | 'user-code';
  readonly userId: string | null;
  readonly data: string;
  readonly expiresAt: number;
}

export interface PeopleRepositories {
  readonly users: {
    get(tenant: TenantScope, id: string): Promise<StoredUser | undefined>;
    /** Finds a user who is not deleted; `name` is folded. */
    findByName(name: string): Promise<StoredUser | undefined>;
    findBySubject(subject: string): Promise<StoredUser | undefined>;
    findByInvitation(hash: string): Promise<StoredUser | undefined>;
    /** Not deleted, by id. */
    list(tenant: TenantScope, window: Window): Promise<readonly StoredUser[]>;
    /** Deleted users of every tenant whose row still has what belongs to the person; by id. */
    listUncleared(window: Window): Promise<readonly StoredUser[]>;
    /** Active administrators of the platform who can sign in. */
    countAdministrators(): Promise<number>;
    insert(user: StoredUser): Promise<void>;
    update(user: StoredUser): Promise<void>;
    /** Not policy. */
    touch(id: string, at: number): Promise<void>;
  };
  readonly factors: {
    get(id: string): Promise<StoredFactor | undefined>;
    /** The factors of one user, in the order of their ids. */
    list(userId: string): Promise<readonly StoredFactor[]>;
    /** Every user's, for a page of users. */
    listOf(userIds: readonly string[]): Promise<readonly StoredFactor[]>;
    insert(factor: StoredFactor): Promise<void>;
    update(factor: StoredFactor): Promise<void>;
    remove(id: string): Promise<void>;
  };
  readonly sessions: {
    get(tenant: TenantScope, id: string): Promise<StoredSession | undefined>;
    findByHash(hash: string): Promise<StoredSession | undefined>;
    /** Newest first, without those that have expired: at `now`, or unused since `idleSince`. */
    list(
      tenant: TenantScope,
      filter: { readonly userId?: string | undefined; readonly now: number; readonly idleSince: number },
      window: Window,
    ): Promise<readonly StoredSession[]>;
    insert(session: StoredSession): Promise<void>;
    touch(id: string, at: number): Promise<void>;
    remove(id: string): Promise<void>;
    /** Every session of a user, or of a token, but one. Answers how many. */
    removeOf(holder: StoredSession['holder'], except: string | null): Promise<number>;
    /** Every session of the service. Answers how many. */
    removeAll(): Promise<number>;
  };
  readonly attempts: {
    insert(attempt: StoredAttempt): Promise<void>;
    get(hash: string): Promise<StoredAttempt | undefined>;
    /** Removes it, so that it cannot be used again. */
    take(hash: string): Promise<StoredAttempt | undefined>;
    /** How many attempts of this kind have not expired. */
    count(kind: StoredAttempt['kind'], now: number): Promise<number>;
  };
  /**
   * Failed sign-ins by a keyed hash of a user's name or of an address: unknown names are counted,
   * too, and names are not stored.
   */
  readonly failures: {
    get(key: string): Promise<Failures | undefined>;
    put(key: string, failures: Failures): Promise<void>;
    remove(key: string): Promise<void>;
    /** Users, addresses and networks that are locked at this time. */
    countLocked(now: number): Promise<number>;
  };
}

/** Argon2id (RFC 9106). */
export interface PasswordHashes {
  /**
   * PHC string. The caller wipes the password. 'rate-limited' when too many wait. `peer`: each
   * address has a fair share.
   */
  hash(password: Uint8Array, peer: string | null): Promise<string>;
  /**
   * `stored` null: takes as long, and answers false. `outdated`: it is right, and should be hashed
   * again with today's parameters.
   */
  verify(password: Uint8Array, stored: string | null, peer: string | null): Promise<'holds' | 'outdated' | 'wrong'>;
}

/** What the configuration file says about people. */
export interface PeoplePolicy {
  /** Whether users who can change anything need a second factor. */
  readonly secondFactor: 'required' | 'optional';
  readonly sessionIdleMs: number;
  readonly sessionMs: number;
  readonly invitationMs: number;
}
