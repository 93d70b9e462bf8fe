// API tokens: create, list, revoke, authenticate. The value is shown once and stored as a keyed hash; the look-up
// goes by that hash, so that no comparison sees the token and time tells nothing about it.

import { toRfc3339 } from '../base/clock.ts';
import { ServiceError } from '../base/errors.ts';
import { newId, serviceTenantId } from '../base/ids.ts';
import { faultOfGrants, type Grant, longestBreakGlassMs, rowOf, type Scope } from '../domain/access.ts';
import type { TenantActor } from '../domain/actor.ts';
import type { ApiToken, TokenKind } from '../domain/api-token.ts';
import { everyTenant, type TenantScope } from '../domain/tenant.ts';
import type { TokenPurpose } from '../ports/key-ring.ts';
import type { Ports } from '../ports/ports.ts';
import type { Repositories, StoredToken } from '../ports/store.ts';
import { looksLikeBearer, makeBearer } from './bearer.ts';
import { findApplication, findEndpoint, findTenant, findToken } from './find.ts';
import type { NewGrant, Operations, TokenOperations } from './index.ts';
import { checkName } from './names.ts';
import { byId, pageOf } from './paging.ts';

const purposeOf = { api: 'api-token', metrics: 'metrics-token' } as const satisfies Record<TokenKind, TokenPurpose>;

/** 'not-found' when a role is given for something that is not there. */
const findScope = async (tx: Repositories, tenant: TenantScope, scope: Scope | null): Promise<void> => {
  if (scope?.kind === 'application') await findApplication(tx, tenant, scope.id);
  if (scope?.kind === 'endpoint') await findEndpoint(tx, tenant, scope.id);
};

/** Those who name no tenant and may act in any give a role for the whole platform, unless it is one within a tenant. */
export const completeGrants = (actor: TenantActor, grants: readonly NewGrant[]): readonly Grant[] =>
  grants.map(({ role, scope, tenantId }) => {
    const within = actor.reach !== everyTenant || rowOf(role).reach === 'tenant';
    return { role, scope, tenantId: tenantId === undefined ? (within ? actor.tenantId : null) : tenantId };
  });

/** 'not-found' when a role is given within a tenant, or for a resource, that is not there. */
export const requireGrantable = async (tx: Repositories, grants: readonly Grant[]): Promise<void> => {
  for (const { scope, tenantId } of grants) {
    if (tenantId !== null) await findTenant(tx, tenantId);
    await findScope(tx, tenantId ?? everyTenant, scope);
  }
};

export const nameGrant = ({ role, scope, tenantId }: Grant): string =>
  [
    role,
    ...(scope === null ? [] : [`of ${scope.kind} ${scope.id}`]),
    ...(tenantId === null ? [] : [`in ${tenantId}`]),
  ].join(' ');

const show = ({ hash: _hash, integrity: _integrity, ...token }: StoredToken): ApiToken => token;

export const createToken =
  ({ store, core, ring, clock }: Pick<Ports, 'store' | 'core' | 'ring' | 'clock'>): TokenOperations['create'] =>
  async (actor, own, { name, expiresAt, kind = 'api', grants: given = [] }) => {
    checkName(name);
    const now = clock.now();
    const grants = completeGrants(actor, given);
    if (kind === 'metrics' && grants.length > 0)
      throw new ServiceError('validation', 'a token for metrics has no roles');
    const fault = kind === 'metrics' ? undefined : faultOfGrants(grants, own);
    if (fault !== undefined)
      throw new ServiceError('validation', fault, { hint: 'GET /api/roles lists the roles (dke token roles)' });
    const breaksGlass = grants.some(({ role }) => role === 'break-glass');
    if (breaksGlass && (expiresAt === undefined || expiresAt === null || expiresAt > now + longestBreakGlassMs))
      throw new ServiceError('validation', 'a break-glass token holds for eight hours at most: give its expiry');
    if (expiresAt !== undefined && expiresAt !== null && (!Number.isSafeInteger(expiresAt) || expiresAt <= now))
      throw new ServiceError('validation', 'the expiry is not in the future');
    if (kind === 'metrics' && actor.reach !== everyTenant)
      throw new ServiceError('validation', 'a token for metrics is the whole platform’s: name no tenant');
    const tenantId = actor.reach === everyTenant ? null : actor.reach;
    const purpose = purposeOf[kind];
    const token = makeBearer(core, purpose);
    const stored: StoredToken = {
      id: newId(now),
      tenantId,
      kind,
      name,
      grants,
      hash: ring.hashToken(purpose, token),
      createdAt: now,
      expiresAt: expiresAt ?? null,
      revokedAt: null,
      lastUsedAt: null,
      integrity: 'ok',
    };
    await store.write(async (tx) => {
      await requireGrantable(tx, grants);
      await tx.tokens.insert(stored);
      await tx.audit.append({
        kind: 'token.created',
        actor,
        tenantId: tenantId ?? serviceTenantId,
        subject: { kind: 'token', id: stored.id },
        details: {
          name,
          kind,
          roles: grants.map(nameGrant),
          expiresAt: stored.expiresAt === null ? null : toRfc3339(stored.expiresAt),
        },
      });
      if (breaksGlass)
        await tx.audit.append({
          kind: 'break-glass.given',
          actor,
          tenantId: tenantId ?? serviceTenantId,
          subject: { kind: 'token', id: stored.id },
          details: { name, expiresAt: stored.expiresAt === null ? null : toRfc3339(stored.expiresAt) },
        });
    });
    return { record: show(stored), token };
  };

export const listTokens =
  ({ store, usage }: Pick<Ports, 'store' | 'usage'>): TokenOperations['list'] =>
  async ({ reach }, query) => {
    await usage.flush(false);
    const page = await pageOf(query, (window) => store.read.tokens.list(reach, window), byId);
    return { items: page.items.map(show), next: page.next };
  };

export const revokeToken =
  ({ store, clock }: Pick<Ports, 'store' | 'clock'>): TokenOperations['revoke'] =>
  (actor, id) =>
    store.write(async (tx) => {
      const before = await findToken(tx, actor.reach, id);
      if (before.revokedAt !== null) return show(before);
      const now = clock.now();
      const live = before.expiresAt === null || before.expiresAt > now;
      const isAdministrator = before.grants.some(({ role, tenantId }) => role === 'administrator' && tenantId === null);
      if (isAdministrator && live && (await tx.tokens.countLive(now)) < 2)
        throw new ServiceError('conflict', 'this is the last live administrator token', {
          hint: 'create another one first',
        });
      const after: StoredToken = { ...before, revokedAt: now };
      await tx.tokens.update(after);
      await tx.audit.append({
        kind: 'token.revoked',
        actor,
        tenantId: before.tenantId ?? serviceTenantId,
        subject: { kind: 'token', id },
        details: { name: before.name },
      });
      return show(after);
    });

/** Finds a token of this kind that holds now; 'unauthenticated', in one message, for every other. */
const authenticate =
  (
    { store, ring, clock, usage }: Pick<Ports, 'store' | 'ring' | 'clock' | 'usage'>,
    kind: TokenKind,
    channel: 'api' | 'metrics',
  ) =>
  async (token: string): Promise<ApiToken> => {
    const purpose = purposeOf[kind];
    const found = looksLikeBearer(purpose, token)
      ? await store.read.tokens.findByHash(ring.hashToken(purpose, token))
      : undefined;
    const now = clock.now();
    const reason =
      found === undefined || found.kind !== kind
        ? 'unknown'
        : found.integrity !== 'ok'
          ? 'tampered'
          : found.revokedAt !== null
            ? 'revoked'
            : found.expiresAt !== null && found.expiresAt <= now
              ? 'expired'
              : undefined;
    if (found === undefined || reason !== undefined) {
      usage.refused(channel, reason ?? 'unknown');
      throw new ServiceError('unauthenticated', 'the token does not hold');
    }
    usage.tokenUsed(found.id);
    return show(found);
  };

export const authenticateAdmin = (
  ports: Pick<Ports, 'store' | 'ring' | 'clock' | 'usage'>,
): Operations['authenticateAdmin'] => {
  const find = authenticate(ports, 'api', 'api');
  return async (token, requestId, peer) => {
    const { id, name, grants } = await find(token);
    return { actor: { kind: 'administrator', id, name, requestId, peer }, grants };
  };
};

export const authenticateMetrics = (
  ports: Pick<Ports, 'store' | 'ring' | 'clock' | 'usage'>,
): Operations['authenticateMetrics'] => {
  const find = authenticate(ports, 'metrics', 'metrics');
  return async (token) => {
    await find(token);
  };
};
