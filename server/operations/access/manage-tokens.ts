// API tokens: create, list, revoke, authenticate. The value is shown once and stored as a keyed
// hash; the look-up goes by that hash, so that no comparison sees the token and time tells nothing
// about it.

import { command } from '../../base/command-line.ts';
import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import {
  effectiveGrants,
  faultOfGrants,
  type Grant,
  givesRoles,
  isAllowed,
  lastingGrants,
  longestBreakGlassMs,
} from '../../domain/access.ts';
import type { Actor } from '../../domain/actor.ts';
import type { ApiToken, TokenKind } from '../../domain/api-token.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { IdentityProvider } from '../../ports/identity.ts';
import type { BearerPurpose } from '../../ports/key-ring.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories, StoredToken } from '../../ports/store.ts';
import type { Window } from '../../ports/window.ts';
import { findToken } from '../shared/find.ts';
import { checkName } from '../shared/names.ts';
import { byId, each, pageOf } from '../shared/paging.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { AuthenticationOperations, TokenOperations } from './access-operations.ts';
import { looksLikeBearer, makeBearer } from './bearer.ts';
import { completeGrants, nameGrant, requireGrantable } from './grants.ts';
import { personBehind } from './identities.ts';
import { isTokenOverdue } from './provider-managed-users.ts';

const purposeOf = { api: 'api-token', metrics: 'metrics-token' } as const satisfies Record<TokenKind, BearerPurpose>;

const show = ({ hash: _hash, personId: _personId, ...token }: StoredToken): ApiToken => token;

/**
 * When a token must have expired: what only a break-glass token allows ends with that token,
 * however many others are made in between. Null: whenever it is asked for.
 */
const latestExpiry = async (
  from: Pick<Repositories, 'tokens'>,
  makerId: string,
  {
    own,
    grants,
    kind,
    now,
  }: {
    readonly own: readonly Grant[];
    readonly grants: readonly Grant[];
    readonly kind: TokenKind;
    readonly now: number;
  },
): Promise<number | null> => {
  const lasting = lastingGrants(own);
  const endsWithMaker =
    kind === 'metrics'
      ? !isAllowed(lasting, 'tokens:manage', null, null)
      : faultOfGrants(grants, lasting) !== undefined;
  if (!endsWithMaker) return null;
  const maker = await from.tokens.get(everyTenant, makerId);
  return Math.min(maker?.expiresAt ?? Number.POSITIVE_INFINITY, now + longestBreakGlassMs);
};

/**
 * `check` runs first in the unit of work that creates the token; when it throws, nothing is
 * created. `id`: of what it is made for, once.
 */
export const createToken =
  (
    { store, core, ring, clock }: Pick<Ports, 'store' | 'core' | 'ring' | 'clock'>,
    check: (tx: Repositories) => Promise<void> = () => Promise.resolve(),
    id?: string,
  ): TokenOperations['create'] =>
  async (actor, own, { name, expiresAt, kind = 'api', grants: given = [], ownerId = null }) => {
    checkName(name);
    const now = clock.now();
    const grants = completeGrants(actor, given);
    if (kind === 'metrics' && grants.length > 0)
      throw new ServiceError('validation', 'a token for metrics has no roles');
    const fault =
      kind === 'metrics'
        ? undefined
        : // A user's own token does what the user may do, so no role is given.
          faultOfGrants(grants, ownerId === null ? own : 'the service');
    if (fault !== undefined)
      throw new ServiceError('validation', fault, { hint: 'GET /api/roles lists the roles (dke token roles)' });
    const breaksGlass = grants.some(({ role }) => role === 'break-glass');
    const latest =
      own === 'the service' || ownerId !== null
        ? null
        : await latestExpiry(store.read, actor.id, { own, grants, kind, now });
    // Its holder would give roles that do not end with the emergency.
    if (latest !== null && grants.some(({ role }) => role !== 'break-glass' && givesRoles(role)))
      throw new ServiceError('validation', 'a break-glass token cannot give other roles that can give roles', {
        hint: 'give break-glass instead: it ends with yours',
      });
    const limit = latest ?? (breaksGlass ? now + longestBreakGlassMs : null);
    if (limit !== null && (expiresAt === undefined || expiresAt === null || expiresAt > limit))
      throw new ServiceError(
        'validation',
        latest === null
          ? 'a break-glass token must expire within eight hours'
          : 'a token that is created with a break-glass token must expire no later than that token',
        { hint: command`dke token create NAME --role ROLE --expires=${toRfc3339(limit)}` },
      );
    if (expiresAt !== undefined && expiresAt !== null && (!Number.isSafeInteger(expiresAt) || expiresAt <= now))
      throw new ServiceError('validation', 'the expiry must be in the future');
    if (kind === 'metrics' && actor.reach !== everyTenant)
      throw new ServiceError('validation', 'a token for metrics belongs to the whole platform: do not name a tenant');
    const tenantId = actor.reach === everyTenant ? null : actor.reach;
    const purpose = purposeOf[kind];
    const token = makeBearer(core, purpose);
    const record: ApiToken = {
      id: id ?? newId(now),
      tenantId,
      kind,
      name,
      grants,
      createdAt: now,
      expiresAt: expiresAt ?? null,
      revokedAt: null,
      lastUsedAt: null,
      ownerId,
      integrity: 'ok',
    };
    await store.write(async (tx) => {
      await check(tx);
      await requireGrantable(tx, grants);
      // The audit log names tokens: two of one name could not be told apart there.
      if (await tx.tokens.hasLive(tenantId, ownerId, name, now))
        throw new ServiceError('conflict', `there is already a valid token named ${name}`, {
          hint: 'choose another name, or revoke that token first (dke token list, dke token revoke)',
        });
      // Another node may have put a new key into the place of the one in memory.
      await ring.followHashKey(tx, 'api-token-hash');
      const personId = await personBehind(tx, actor, record.id);
      await tx.tokens.insert({ ...record, personId, hash: ring.hashToken(purpose, token) });
      await recordEvent(tx, 'token.created', actor, about('token', { id: record.id, tenantId }), {
        name,
        kind,
        roles: grants.map(nameGrant),
        expiresAt: record.expiresAt === null ? null : toRfc3339(record.expiresAt),
      });
      if (breaksGlass)
        await recordEvent(tx, 'break-glass.created', actor, about('token', { id: record.id, tenantId }), {
          name,
          expiresAt: record.expiresAt === null ? null : toRfc3339(record.expiresAt),
        });
    });
    return { record, token };
  };

/** The tokens of one user, who has few: all are read, in steps. */
const ofOwner =
  (from: Pick<Repositories, 'tokens'>, tenant: TenantScope, ownerId: string) =>
  async ({ after, limit }: Window): Promise<readonly StoredToken[]> => {
    const found: StoredToken[] = [];
    const behind = (window: Window) => from.tokens.list(tenant, { ...window, after: window.after ?? after });
    for await (const token of each(behind, byId)) {
      if (token.ownerId === ownerId) found.push(token);
      if (found.length === limit) break;
    }
    return found;
  };

export const listTokens =
  ({ store, usage }: Pick<Ports, 'store' | 'usage'>): TokenOperations['list'] =>
  async ({ reach }, { userId, ...query }) => {
    await usage.flush(false);
    const page = await pageOf(
      query,
      userId === undefined ? (window) => store.read.tokens.list(reach, window) : ofOwner(store.read, reach, userId),
      byId,
    );
    return { items: page.items.map(show), next: page.next };
  };

export const isAdministrator = ({ ownerId, grants }: Pick<ApiToken, 'ownerId' | 'grants'>): boolean =>
  ownerId === null && grants.some(({ role, tenantId }) => role === 'administrator' && tenantId === null);

/**
 * Counts the administrators that could replace this token, and the token itself: what expires does
 * not replace what lasts; among tokens that expire, one must stay.
 */
export const countAdministrators = async (
  tx: Repositories,
  { expiresAt }: Pick<ApiToken, 'expiresAt'>,
  now: number,
): Promise<number> =>
  (await tx.tokens.countAdministrators(expiresAt === null ? 'lasting' : { liveAt: now })) +
  (await tx.users.countAdministrators());

export const revokeToken =
  ({ store, clock }: Pick<Ports, 'store' | 'clock'>): TokenOperations['revoke'] =>
  (actor, own, id) =>
    store.write(async (tx) => {
      const before = await findToken(tx, actor.reach, id);
      const isTheirs = before.id === actor.id || (before.ownerId !== null && before.ownerId === actor.id);
      const fault = isTheirs || before.grants.length === 0 ? undefined : faultOfGrants(before.grants, own);
      if (fault !== undefined)
        throw new ServiceError('forbidden', 'this token has roles that you cannot give', {
          hint: 'only a caller who could give all roles of the token can revoke it',
        });
      if (before.revokedAt !== null) return show(before);
      const now = clock.now();
      const live = before.expiresAt === null || before.expiresAt > now;
      if (isAdministrator(before) && live) {
        if ((await countAdministrators(tx, before, now)) < 2)
          throw new ServiceError(
            'conflict',
            'this is the last administrator token that does not expire, and no user is an administrator',
            { hint: 'first create another one without an expiry, or a user with the role administrator' },
          );
      }
      const after: StoredToken = { ...before, revokedAt: now };
      await tx.tokens.update(after);
      await recordEvent(tx, 'token.revoked', actor, about('token', before), { name: before.name });
      return show(after);
    });

/** Revokes all tokens that are chosen, in the caller's unit of work, and returns them. */
export const revokeTokens = async (
  tx: Repositories,
  actor: Actor,
  now: number,
  isChosen: (token: StoredToken) => boolean,
): Promise<readonly StoredToken[]> => {
  const revoked: StoredToken[] = [];
  for await (const token of each((window) => tx.tokens.list(everyTenant, window), byId)) {
    if (!isChosen(token) || token.revokedAt !== null || token.integrity !== 'ok') continue;
    revoked.push(token);
    await tx.tokens.update({ ...token, revokedAt: now });
    await recordEvent(tx, 'token.revoked', actor, about('token', token), { name: token.name });
  }
  return revoked;
};

/** The API tokens of a user. */
export const revokeTokensOf = async (tx: Repositories, actor: Actor, ownerId: string, now: number): Promise<void> => {
  await revokeTokens(tx, actor, now, (token) => token.ownerId === ownerId);
};

/** Who acts by a token, and what they may do now. */
export interface TokenHolder {
  readonly kind: 'administrator' | 'user';
  readonly id: string;
  readonly name: string;
  readonly grants: readonly Grant[];
}

/**
 * A user's own token may do only what the user may, and its actions count as the user's: requester
 * and approver are distinguished by this. Undefined: it is not valid, because its owner was
 * deleted.
 */
export const holderOfToken = async (
  from: Pick<Repositories, 'users'>,
  { id, name, grants, ownerId, createdAt }: Pick<ApiToken, 'id' | 'name' | 'grants' | 'ownerId' | 'createdAt'>,
  provider: IdentityProvider | undefined,
  now: number,
): Promise<TokenHolder | undefined> => {
  if (ownerId === null) return { kind: 'administrator', id, name, grants };
  const owner = await from.users.get(everyTenant, ownerId);
  if (owner === undefined || owner.state !== 'active' || owner.integrity !== 'ok') return undefined;
  if (isTokenOverdue(provider, owner, createdAt, now)) return undefined;
  return {
    kind: 'user',
    id: owner.id,
    name: `${owner.name} (token ${name})`,
    grants: effectiveGrants(grants, owner.grants),
  };
};

type AuthenticatePorts = Pick<Ports, 'store' | 'ring' | 'clock' | 'usage' | 'log'> & Partial<Pick<Ports, 'provider'>>;

/**
 * The stored token with this value: under the present key, a former one, or one that another node
 * has made since.
 */
export const findTokenByValue = async (
  { store: { read }, ring }: Pick<Ports, 'store' | 'ring'>,
  purpose: BearerPurpose,
  token: string,
): Promise<StoredToken | undefined> => {
  const find = async (): Promise<StoredToken | undefined> => {
    for (const hash of [ring.hashToken(purpose, token), ...ring.formerHashes(purpose, token)]) {
      const found = await read.tokens.findByHash(hash);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return (await find()) ?? ((await ring.refreshHashKey({ read }, 'api-token-hash')) ? find() : undefined);
};

/**
 * Stores a token under the present key. A database that takes no changes now does not keep programs
 * out: the next use tries again.
 */
const renewHash = async (
  { store, ring, log }: Pick<Ports, 'store' | 'ring' | 'log'>,
  { id, hash }: StoredToken,
  purpose: BearerPurpose,
  token: string,
): Promise<void> => {
  try {
    await store.write(async (tx) => {
      await ring.followHashKey(tx, 'api-token-hash');
      const current = await tx.tokens.get(everyTenant, id);
      if (current?.hash !== hash || current.revokedAt !== null || current.integrity !== 'ok') return;
      await tx.tokens.update({ ...current, hash: ring.hashToken(purpose, token) });
    });
  } catch (error) {
    log.warn('an API token could not be stored under the current key', { id, error });
  }
};

/**
 * Finds a token of this kind that holds now; 'unauthenticated', in one message, for every other.
 */
const authenticate =
  (ports: AuthenticatePorts, kind: TokenKind, channel: 'api' | 'metrics') =>
  async (token: string, isUse = true): Promise<TokenHolder> => {
    const { store, ring, clock, usage, provider } = ports;
    const purpose = purposeOf[kind];
    const found = looksLikeBearer(purpose, token) ? await findTokenByValue(ports, purpose, token) : undefined;
    const now = clock.now();
    const holder = found === undefined ? undefined : await holderOfToken(store.read, found, provider, now);
    const reason =
      found === undefined || found.kind !== kind
        ? 'unknown'
        : found.integrity !== 'ok'
          ? 'tampered'
          : found.revokedAt !== null
            ? 'revoked'
            : found.expiresAt !== null && found.expiresAt <= now
              ? 'expired'
              : holder === undefined
                ? 'owner'
                : undefined;
    if (found === undefined || holder === undefined || reason !== undefined) {
      usage.refused(channel, reason ?? 'unknown');
      throw new ServiceError('unauthenticated', 'the token is invalid, expired or revoked', {
        hint:
          kind === 'metrics'
            ? 'create another one: dke token create NAME --kind metrics'
            : 'sign in with dke login, or create another token: dke token create NAME --role ROLE',
      });
    }
    usage.tokenUsed(found.id);
    // Not while a request is under way: a write would pass for the change that it is about.
    if (isUse && ring.isFormerTokenHash(found.hash)) await renewHash(ports, found, purpose, token);
    return holder;
  };

export const authenticateAdmin = (ports: AuthenticatePorts): AuthenticationOperations['authenticateAdmin'] => {
  const find = authenticate(ports, 'api', 'api');
  return async (token, requestId, peer, { isUse } = {}) => {
    const { kind, id, name, grants } = await find(token, isUse);
    return { actor: { kind, id, name, requestId, peer }, grants };
  };
};

export const authenticateMetrics = (ports: AuthenticatePorts): AuthenticationOperations['authenticateMetrics'] => {
  const find = authenticate(ports, 'metrics', 'metrics');
  return async (token) => {
    await find(token);
  };
};
