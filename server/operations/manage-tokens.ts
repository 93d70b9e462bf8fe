// Administrator tokens: create, list, revoke, authenticate. The value is shown once and stored as a keyed hash; the look-up
// goes by that hash, so that no comparison sees the token and time tells nothing about it.

import { toRfc3339 } from '../base/clock.ts';
import { ServiceError } from '../base/errors.ts';
import { newId, serviceTenantId } from '../base/ids.ts';
import type { ApiToken } from '../domain/api-token.ts';
import type { Ports } from '../ports/ports.ts';
import type { StoredToken } from '../ports/store.ts';
import { looksLikeBearer, makeBearer } from './bearer.ts';
import { findToken } from './find.ts';
import type { Operations, TokenOperations } from './index.ts';
import { checkName } from './names.ts';
import { byId, pageOf } from './paging.ts';

const show = ({ hash: _hash, integrity: _integrity, ...token }: StoredToken): ApiToken => token;

export const createToken =
  ({ store, core, ring, clock }: Pick<Ports, 'store' | 'core' | 'ring' | 'clock'>): TokenOperations['create'] =>
  async (actor, { name, expiresAt }) => {
    checkName(name);
    const now = clock.now();
    if (expiresAt !== undefined && expiresAt !== null && (!Number.isSafeInteger(expiresAt) || expiresAt <= now))
      throw new ServiceError('validation', 'the expiry is not in the future');
    const token = makeBearer(core, 'api-token');
    const stored: StoredToken = {
      id: newId(now),
      name,
      hash: ring.hashToken('api-token', token),
      createdAt: now,
      expiresAt: expiresAt ?? null,
      revokedAt: null,
      lastUsedAt: null,
      integrity: 'ok',
    };
    await store.write(async (tx) => {
      await tx.tokens.insert(stored);
      await tx.audit.append({
        kind: 'token.created',
        actor,
        tenantId: serviceTenantId,
        subject: { kind: 'token', id: stored.id },
        details: { name, expiresAt: stored.expiresAt === null ? null : toRfc3339(stored.expiresAt) },
      });
    });
    return { record: show(stored), token };
  };

export const listTokens =
  ({ store, usage }: Pick<Ports, 'store' | 'usage'>): TokenOperations['list'] =>
  async (_actor, query) => {
    await usage.flush(false);
    const page = await pageOf(query, (window) => store.read.tokens.list(window), byId);
    return { items: page.items.map(show), next: page.next };
  };

export const revokeToken =
  ({ store, clock }: Pick<Ports, 'store' | 'clock'>): TokenOperations['revoke'] =>
  (actor, id) =>
    store.write(async (tx) => {
      const before = await findToken(tx, id);
      if (before.revokedAt !== null) return show(before);
      const now = clock.now();
      const live = before.expiresAt === null || before.expiresAt > now;
      if (live && (await tx.tokens.countLive(now)) < 2)
        throw new ServiceError('conflict', 'this is the last live token', { hint: 'create another one first' });
      const after: StoredToken = { ...before, revokedAt: now };
      await tx.tokens.update(after);
      await tx.audit.append({
        kind: 'token.revoked',
        actor,
        tenantId: serviceTenantId,
        subject: { kind: 'token', id },
        details: { name: before.name },
      });
      return show(after);
    });

export const authenticateAdmin =
  ({ store, ring, clock, usage }: Pick<Ports, 'store' | 'ring' | 'clock' | 'usage'>): Operations['authenticateAdmin'] =>
  async (token, requestId, peer) => {
    const found = looksLikeBearer('api-token', token)
      ? await store.read.tokens.findByHash(ring.hashToken('api-token', token))
      : undefined;
    const now = clock.now();
    const reason =
      found === undefined
        ? 'unknown'
        : found.integrity !== 'ok'
          ? 'tampered'
          : found.revokedAt !== null
            ? 'revoked'
            : found.expiresAt !== null && found.expiresAt <= now
              ? 'expired'
              : undefined;
    if (found === undefined || reason !== undefined) {
      usage.refused('api', reason ?? 'unknown');
      throw new ServiceError('unauthenticated', 'the token does not hold');
    }
    usage.tokenUsed(found.id);
    return { kind: 'administrator', id: found.id, name: found.name, requestId, peer };
  };
