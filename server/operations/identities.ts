// Who can act for themselves: whoever an approver or a requester may be. Beside what they may do it tells since when they are there, because
// nobody is made an approver for a request that waits already.

import { type Grant, isAllowed, type Permission } from '../domain/access.ts';
import type { Identity } from '../domain/approval.ts';
import { largestPageSize } from '../domain/page.ts';
import { everyTenant } from '../domain/tenant.ts';
import type { Repositories, StoredToken } from '../ports/store.ts';

export interface ActingIdentity extends Identity {
  readonly grants: readonly Grant[];
  readonly createdAt: number;
}

type From = Pick<Repositories, 'tokens'>;

const isLive = (token: StoredToken, now: number): boolean =>
  token.integrity === 'ok' &&
  token.kind === 'api' &&
  token.revokedAt === null &&
  (token.expiresAt === null || token.expiresAt > now);

const ofToken = ({ id, name, grants, createdAt }: StoredToken): ActingIdentity => ({ id, name, grants, createdAt });

/** Undefined when nobody of this id may act now. */
export const findIdentity = async (from: From, id: string, now: number): Promise<ActingIdentity | undefined> => {
  const token = await from.tokens.get(everyTenant, id);
  return token !== undefined && isLive(token, now) ? ofToken(token) : undefined;
};

/** Whoever has a permission in a tenant, by id. */
export const listIdentities = async (
  from: From,
  permission: Permission,
  tenantId: string,
  now: number,
): Promise<readonly ActingIdentity[]> => {
  const found: ActingIdentity[] = [];
  let after: string | undefined;
  do {
    const page = await from.tokens.list(everyTenant, { after, limit: largestPageSize });
    found.push(...page.filter((token) => isLive(token, now)).map(ofToken));
    after = page.length < largestPageSize ? undefined : page.at(-1)?.id;
  } while (after !== undefined);
  return found.filter(({ grants }) => isAllowed(grants, permission, tenantId, null));
};
