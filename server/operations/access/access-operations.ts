// Who may do what, and API tokens.

import type { Grant, Permission, Right, Role, RoleRow, Scope } from '../../domain/access.ts';
import type { Actor, TenantActor } from '../../domain/actor.ts';
import type { ApiToken, TokenKind } from '../../domain/api-token.ts';
import type { Page, PageRequest } from '../../domain/page.ts';

/** A caller, and what they may do. */
export interface Granted {
  readonly actor: TenantActor;
  readonly grants: readonly Grant[];
}

export interface AccessOperations {
  /**
   * 'forbidden', naming the permission and the roles that have it. `tenantId`: of the tenant that
   * the request is about, null for the platform; `scope`: the resource that it is about.
   */
  check(grants: readonly Grant[], permission: Permission, tenantId: string | null, scope: Scope | null): void;
  /**
   * The tenant that the caller acts in: the one that is named (by id or name), else the default one
   * if they may act in it, else the first of theirs. 'not-found' for one that is not there or not
   * theirs; 'unauthenticated' where it is suspended or deleted and they have no role beyond it.
   */
  actIn(actor: Actor, grants: readonly Grant[], named: string | undefined): TenantActor;
  /**
   * Throws 'forbidden' unless the caller acts in the same tenant as before and everything that they
   * were granted then is still granted: what is under way may have been decided by any of it.
   */
  requireAsMuch(now: Granted, before: Granted): void;
  /**
   * The actor, seeing what every tenant and the platform has where they have this right for the
   * whole platform.
   */
  reaching(actor: TenantActor, grants: readonly Grant[], permission: Permission): TenantActor;
  /**
   * 'not-found' for a tenant in which the caller has no role, even if they have this right in
   * another tenant.
   */
  requireTenant(grants: readonly Grant[], permission: Permission, tenantId: string): void;
  /** 'conflict' when the tenant acted in is deleted: nothing in it can be changed. */
  requireChangeable(actor: TenantActor): void;
  /**
   * `requireChangeable`, decided by the stored tenant as the unit of work sees it that has this as
   * a condition (preconditions.ts).
   */
  requireStillChangeable(actor: TenantActor): Promise<void>;
  /** The caller's rights: for the whole platform, then in tenants, then for single resources. */
  effective(grants: readonly Grant[]): readonly Right[];
  roles(): readonly {
    readonly role: Role;
    readonly description: string;
    readonly scoped: boolean;
    /** Where it can be given; null: for the whole platform as well as within one tenant. */
    readonly reach: NonNullable<RoleRow['reach']> | null;
    readonly permissions: readonly Permission[];
  }[];
}

/**
 * `tenantId` absent: the tenant acted in; for those who name none and may act in any, the whole
 * platform where the role can be so.
 */
export type NewGrant = Omit<Grant, 'tenantId'> & { readonly tenantId?: string | null | undefined };

export interface TokenKeyChange {
  readonly tokensEnded: number;
  /** Tokens that are accepted only under a former key, until their next use. */
  readonly tokensLeft: number;
}

export interface TokenOperations {
  /** `token` is shown this once. */
  create(
    actor: TenantActor,
    /** What the caller may do. */
    own: readonly Grant[] | 'the service',
    /** `kind`: for the API when absent. */
    input: {
      readonly name: string;
      readonly expiresAt?: number | null | undefined;
      readonly kind?: TokenKind | undefined;
      /**
       * For a token of the API: at least one. Supreme roles are given only by `own` that has one.
       */
      readonly grants?: readonly NewGrant[] | undefined;
      /**
       * The owner of the token. The token never has more permissions than its owner, and is revoked
       * with them.
       */
      readonly ownerId?: string | null | undefined;
    },
  ): Promise<{ readonly record: ApiToken; readonly token: string }>;
  /** `userId`: those that this user created for themselves. */
  list(actor: TenantActor, query: PageRequest & { readonly userId?: string | undefined }): Promise<Page<ApiToken>>;
  /**
   * The last live one of an administrator is not revoked ('conflict'); 'forbidden' for one with
   * roles that `own` could not give, unless it is the actor's.
   */
  revoke(actor: TenantActor, own: readonly Grant[] | 'the service', id: string): Promise<ApiToken>;
  /**
   * A new key hashes tokens; those that exist are accepted under the former one, and stored under
   * the new one at their next use. `compromised`: all tokens end at once; 'conflict' when no
   * administrator would remain, 'forbidden' as `revoke`.
   */
  rotateKey(
    actor: Actor,
    own: readonly Grant[],
    how: { readonly compromised?: boolean | undefined },
  ): Promise<TokenKeyChange>;
  /**
   * Former keys end. 'conflict' while tokens are accepted only under one; `force` ends these;
   * refused as `compromised`.
   */
  endFormerKey(
    actor: Actor,
    own: readonly Grant[],
    how: { readonly force?: boolean | undefined },
  ): Promise<TokenKeyChange>;
}

export interface AuthenticationOperations {
  /**
   * The actor behind an administrator token; 'unauthenticated' when it is not valid (one message
   * for every reason).
   */
  authenticateAdmin(
    token: string,
    requestId: string,
    peer: string | null,
    how?: { readonly isUse?: boolean },
  ): Promise<{ readonly actor: Actor; readonly grants: readonly Grant[] }>;
  /**
   * Whether this token may read metrics: 'unauthenticated' when not. Administrators' tokens may
   * not.
   */
  authenticateMetrics(token: string): Promise<void>;
}
