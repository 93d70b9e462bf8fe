// Who can act for themselves: users, and tokens without an owner (a user's token acts as the user). Every possible approver or requester
// be is one of them. In addition to what they may do it tells since when they are there, because a new identity is not an approver of a request that already waits
// already.

import { type Grant, isAllowed, type Permission } from '../../domain/access.ts';
import type { Actor } from '../../domain/actor.ts';
import type { Identity } from '../../domain/approval.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { StoredUser } from '../../ports/people.ts';
import type { Repositories, StoredToken } from '../../ports/store.ts';
import { byId, each } from '../shared/paging.ts';

export interface ActingIdentity extends Identity {
  readonly kind: Actor['kind'];
  readonly grants: readonly Grant[];
  /** Since when the same person or program has acted by it: after a new password it may be another person. */
  readonly since: number;
}

type From = Pick<Repositories, 'tokens' | 'users'>;

const ofToken = (token: StoredToken, now: number): readonly ActingIdentity[] => {
  const { id, name, grants, createdAt, ownerId, integrity, kind, revokedAt, expiresAt } = token;
  const live = integrity === 'ok' && kind === 'api' && revokedAt === null && (expiresAt === null || expiresAt > now);
  return live && ownerId === null ? [{ kind: 'administrator', id, name, grants, since: createdAt }] : [];
};
const ofUser = (user: StoredUser): readonly ActingIdentity[] => {
  const { id, name, grants, createdAt, passwordChangedAt, state, integrity } = user;
  const since = Math.max(createdAt, passwordChangedAt ?? 0);
  return state === 'active' && integrity === 'ok' ? [{ kind: 'user', id, name, grants, since }] : [];
};

/** Undefined when no identity with this id may act now. */
export const findIdentity = async (from: From, id: string, now: number): Promise<ActingIdentity | undefined> => {
  const token = await from.tokens.get(everyTenant, id);
  if (token !== undefined) return ofToken(token, now)[0];
  const user = await from.users.get(everyTenant, id);
  return user === undefined ? undefined : ofUser(user)[0];
};

/** All who have a permission in a tenant: tokens, then users, by id. */
export const listIdentities = async (
  from: From,
  permission: Permission,
  tenantId: string,
  now: number,
): Promise<readonly ActingIdentity[]> => {
  const found: ActingIdentity[] = [];
  for await (const token of each((window) => from.tokens.list(everyTenant, window), byId))
    found.push(...ofToken(token, now));
  for await (const user of each((window) => from.users.list(everyTenant, window), byId)) found.push(...ofUser(user));
  return found.filter(({ grants }) => isAllowed(grants, permission, tenantId, null));
};
