// Sessions: 256 random bits in a cookie, a keyed hash of them in the database, so that they outlive a restart and every node knows
// them. Each request looks its session up; what was found is believed for a second, in this process, and forgotten at once when this
// process changes it. A session of a token ends with the token, one of a user with a change of what the user may do.

import { ServiceError } from '../../base/errors.ts';
import { newId, serviceTenantId } from '../../base/ids.ts';
import { faultOfGrants, type Grant } from '../../domain/access.ts';
import type { Actor } from '../../domain/actor.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import { nextStep, type SignInMethod } from '../../domain/sign-in.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { StoredSession, StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { findTokenByValue, holderOfToken } from '../access/manage-tokens.ts';
import type { Operations } from '../index.ts';
import { byId, pageOf } from '../shared/paging.ts';
import type { ClaimedRoles } from './claimed-roles.ts';
import type { SessionCaller, SessionOperations, SessionView, SignInOrigin, StartedSession } from './interface.ts';
import { viewSession } from './views.ts';

/** How long a look-up is believed. */
const believedMs = 1_000;
/** A session whose sign-in is not finished is valid for so long. */
const unfinishedMs = 15 * 60_000;
/** The last use is written so often. */
const touchEveryMs = 60_000;
const mostBelieved = 10_000;
const valuePattern = /^[A-Za-z0-9_-]{43}$/;

type Found = Omit<SessionCaller, 'actor'> & { readonly actor: Omit<Actor, 'requestId' | 'peer'> };

export const sessionEnded = (): ServiceError =>
  new ServiceError('unauthenticated', 'the session expired or was ended', {
    hint: 'sign in again: dke login, or the console',
  });

export type SessionPorts = Pick<Ports, 'store' | 'core' | 'ring' | 'clock' | 'usage' | 'people' | 'log'> &
  Partial<Pick<Ports, 'provider'>>;

export const userActor = (
  { id, name }: Pick<StoredUser, 'id' | 'name'>,
  { requestId, peer }: Pick<SignInOrigin, 'requestId' | 'peer'>,
): Actor => ({ kind: 'user', id, name, requestId, peer });

/** 'forbidden' for a holder who may do more than could be given with `own`. */
const requireGivable = async (
  from: Pick<Repositories, 'users' | 'tokens'>,
  { kind, id }: StoredSession['holder'],
  own: readonly Grant[],
): Promise<void> => {
  const holder = kind === 'user' ? await from.users.get(everyTenant, id) : await from.tokens.get(everyTenant, id);
  if (holder === undefined || holder.grants.length === 0) return;
  if (faultOfGrants(holder.grants, own, 'users:manage') !== undefined)
    throw new ServiceError('forbidden', 'the user of this session has roles that you cannot give', {
      hint: 'only the user, or a person who could give all roles of the user, can end the session',
    });
};

/** A user as the holder of a session. */
export const holderOf = ({ id, name, tenantId }: Pick<StoredUser, 'id' | 'name' | 'tenantId'>) =>
  ({ kind: 'user', id, name, tenantId }) as const;

export const createSessions = (
  ports: SessionPorts,
  authenticateAdmin: Operations['authenticateAdmin'],
  claimedRoles: ClaimedRoles,
) => {
  const { store, core, ring, clock, people, log } = ports;
  const believed = new Map<string, { readonly found: Found; readonly at: number }>();
  const hashOf = (value: string): string | undefined =>
    valuePattern.test(value) ? ring.hashToken('session', value) : undefined;

  /** The same, and under the key that another node may have put into the place of the one in memory. */
  const storedHashOf = async (from: Repositories, value: string): Promise<string | undefined> => {
    const hash = hashOf(value);
    if (hash === undefined || (await from.sessions.findByHash(hash)) !== undefined) return hash;
    return (await ring.refreshHashKey(from, 'session-hash')) ? hashOf(value) : hash;
  };

  const isOver = (session: StoredSession, now: number): boolean =>
    now >= session.expiresAt || now >= session.usedAt + people.sessionIdleMs;

  const lookUp = async (hash: string): Promise<Found> => {
    const session = await store.read.sessions.findByHash(hash);
    const now = clock.now();
    if (session === undefined || session.integrity !== 'ok' || isOver(session, now)) throw sessionEnded();
    const { id: sessionId, expiresAt, holder } = session;
    let found: Found;
    if (holder.kind === 'token') {
      const token = await store.read.tokens.get(everyTenant, holder.id);
      const holds =
        token !== undefined &&
        token.integrity === 'ok' &&
        token.kind === 'api' &&
        token.revokedAt === null &&
        (token.expiresAt === null || token.expiresAt > now);
      const acting = holds ? await holderOfToken(store.read, token, ports.provider, now) : undefined;
      if (acting === undefined) throw sessionEnded();
      const { grants, ...actor } = acting;
      found = { actor, grants, sessionId, expiresAt, missing: null };
    } else {
      const user = await store.read.users.get(everyTenant, holder.id);
      if (user === undefined || user.integrity !== 'ok' || user.state !== 'active') throw sessionEnded();
      // One that was changed from outside is still asked for: an administrator removes it.
      const factors = await store.read.factors.list(user.id);
      const grants = (await claimedRoles.find(store.read, session)) ?? user.grants;
      const missing = nextStep({ ...user, grants }, factors, session.proved, people.secondFactor);
      if (missing !== null && now >= session.createdAt + unfinishedMs) throw sessionEnded();
      const { id, name } = user;
      found = {
        actor: { kind: 'user', id, name },
        grants: missing === null ? user.grants : [],
        sessionId,
        expiresAt,
        missing,
      };
    }
    if (now - session.usedAt >= Math.min(touchEveryMs, people.sessionIdleMs / 4))
      await store
        .write((tx) => tx.sessions.touch(session.id, now), { durable: false })
        // A database that takes no changes now does not keep people from reading.
        .catch((error: unknown) => log.warn('the last use of a session could not be written', { error }));
    return found;
  };

  /** Makes a session in the caller's transaction. The one that the browser had before ends. */
  const insert = async (
    tx: Repositories,
    holder: StoredSession['holder'] & { readonly name: string; readonly tenantId: string | null },
    how: { readonly method: SignInMethod; readonly proved: 1 | 2 },
    from: SignInOrigin,
    actor: Actor,
  ): Promise<{ readonly value: string; readonly hash: string }> => {
    const bytes = Buffer.alloc(32);
    core.random(bytes);
    const value = bytes.toString('base64url');
    core.wipe(bytes);
    await ring.refreshHashKey(tx, 'session-hash');
    const hash = ring.hashToken('session', value);
    const now = clock.now();
    const beforeHash = from.before === undefined ? undefined : hashOf(from.before);
    if (beforeHash !== undefined) {
      const before = await tx.sessions.findByHash(beforeHash);
      if (before !== undefined) await tx.sessions.remove(before.id);
      believed.delete(beforeHash);
    }
    const id = newId(now);
    await tx.sessions.insert({
      id,
      tenantId: holder.tenantId,
      hash,
      holder: { kind: holder.kind, id: holder.id },
      ...how,
      createdAt: now,
      usedAt: now,
      expiresAt: now + people.sessionMs,
      peer: from.peer,
      agent: from.agent?.slice(0, 255) ?? null,
      integrity: 'ok',
    });
    await tx.audit.append({
      kind: 'session.started',
      actor,
      tenantId: holder.tenantId ?? serviceTenantId,
      subject: { kind: 'session', id },
      details: { name: holder.name, ...how },
    });
    return { value, hash };
  };

  const open = async (
    { value, hash }: { readonly value: string; readonly hash: string },
    { requestId, peer }: Pick<SignInOrigin, 'requestId' | 'peer'>,
  ): Promise<StartedSession> => {
    const found = await lookUp(hash);
    return { ...found, actor: { ...found.actor, requestId, peer }, value };
  };

  /**
   * The session of the caller as this unit of work sees it. Throws 'unauthenticated' when it was ended meanwhile, or its user disabled: what
   * the session would give must not outlast that.
   */
  const requireLive = async (tx: Repositories, sessionId: string): Promise<StoredSession> => {
    const session = await tx.sessions.get(everyTenant, sessionId);
    const user = session?.holder.kind === 'user' ? await tx.users.get(everyTenant, session.holder.id) : undefined;
    if (session?.integrity !== 'ok' || user?.integrity !== 'ok' || user.state !== 'active') throw sessionEnded();
    return session;
  };

  const recordEnd = (
    tx: Repositories,
    actor: Actor,
    session: StoredSession,
    name: string,
    by: string,
  ): Promise<unknown> =>
    tx.audit.append({
      kind: 'session.ended',
      actor,
      tenantId: session.tenantId ?? serviceTenantId,
      subject: { kind: session.holder.kind, id: session.holder.id },
      details: { name, sessionId: session.id, by },
    });

  const list = async (
    tenant: TenantScope,
    userId: string | undefined,
    query: PageRequest,
  ): Promise<Page<SessionView>> => {
    const now = clock.now();
    const live = { userId, now, idleSince: now - people.sessionIdleMs };
    const page = await pageOf(query, (window) => store.read.sessions.list(tenant, live, window), byId);
    const items = [];
    for (const session of page.items) items.push(await viewSession(store.read, session));
    return { items, next: page.next };
  };

  /** `ofUser`: of this user alone. `own`: what the caller may give; the holder must not be able to do more. */
  const end = async (
    actor: Actor,
    tenant: TenantScope,
    id: string,
    ofUser: string | undefined,
    own: readonly Grant[] = [],
  ): Promise<SessionView> => {
    const view = await store.write(async (tx) => {
      const found = await tx.sessions.get(tenant, id);
      const isTheirs = ofUser === undefined || (found?.holder.kind === 'user' && found.holder.id === ofUser);
      if (found === undefined || !isTheirs) throw new ServiceError('not-found', 'session not found');
      const shown = await viewSession(tx, found);
      if (ofUser === undefined && found.holder.id !== actor.id) await requireGivable(tx, found.holder, own);
      await tx.sessions.remove(id);
      await recordEnd(tx, actor, found, shown.holder.name, ofUser === undefined ? 'administrator' : 'user');
      return shown;
    });
    believed.clear();
    return view;
  };

  const operations: SessionOperations = {
    authenticate: async (value, requestId, peer) => {
      let hash = hashOf(value);
      if (hash === undefined) throw sessionEnded();
      const now = clock.monotonic();
      let entry = believed.get(hash);
      if (entry === undefined || now - entry.at >= believedMs || clock.now() >= entry.found.expiresAt) {
        believed.delete(hash);
        hash = (await storedHashOf(store.read, value)) ?? hash;
        entry = { found: await lookUp(hash), at: now };
        believed.set(hash, entry);
        const [oldest] = believed.keys();
        if (believed.size > mostBelieved && oldest !== undefined) believed.delete(oldest);
      }
      return { ...entry.found, actor: { ...entry.found.actor, requestId, peer } };
    },

    startByToken: async (token, from) => {
      const { actor } = await authenticateAdmin(token, from.requestId, from.peer);
      const stored = await findTokenByValue(ports, 'api-token', token);
      if (stored === undefined) throw sessionEnded();
      const holder = { kind: 'token', id: stored.id, name: stored.name, tenantId: stored.tenantId } as const;
      const made = await store.write((tx) => insert(tx, holder, { method: 'token', proved: 1 }, from, actor));
      return open(made, from);
    },

    signOut: async (value, { requestId, peer }) => {
      const hash = await storedHashOf(store.read, value);
      if (hash === undefined) return;
      believed.delete(hash);
      const found = await store.read.sessions.findByHash(hash);
      if (found === undefined) return;
      const { holder } = await viewSession(store.read, found);
      const kind = holder.kind === 'user' ? 'user' : 'administrator';
      await store.write(async (tx) => {
        // Two requests may sign out at the same time: the session ends once.
        if ((await tx.sessions.get(everyTenant, found.id)) === undefined) return;
        await tx.sessions.remove(found.id);
        await recordEnd(
          tx,
          { kind, id: holder.id, name: holder.name, requestId, peer },
          found,
          holder.name,
          'sign-out',
        );
      });
    },

    list: ({ reach }, { userId, ...query }) => list(reach, userId, query),

    end: (actor, own, id) => end(actor, actor.reach, id, undefined, own),

    rotateKey: async (actor) => {
      const ended = await store.write(async (tx) => {
        await ring.rotateHashKey(tx, 'session-hash', clock.now());
        const count = await tx.sessions.removeAll();
        await tx.audit.append({
          kind: 'session.key-rotated',
          actor,
          tenantId: serviceTenantId,
          subject: { kind: 'service', id: 'session-key' },
          details: { sessionsEnded: count },
        });
        return count;
      });
      await ring.refreshHashKey(store.read, 'session-hash');
      believed.clear();
      return { sessionsEnded: ended };
    },
  };

  return {
    operations,
    list,
    end,
    insert,
    open,
    requireLive,
    /** After a change of users: what was believed may be wrong now. */
    forget: (): void => believed.clear(),
  };
};
export type Sessions = ReturnType<typeof createSessions>;
