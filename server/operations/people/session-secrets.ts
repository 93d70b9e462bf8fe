// Sessions: 256 random bits in a cookie, and a keyed hash of them in the database, so that they
// survive a restart and every node knows them. Each request looks its session up (find-session.ts).
// A session of a token ends with the token; a session of a user ends when what the user may do
// changes (end-sessions.ts).

import { callerBelievedMs } from '../../base/caller-belief.ts';
import type { Actor } from '../../domain/actor.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { AuthenticationOperations } from '../access/access-operations.ts';
import { findTokenByValue } from '../access/manage-tokens.ts';
import { aboutService, recordEvent } from '../shared/record-event.ts';
import type { ClaimedRoles } from './claimed-roles.ts';
import { createSessionEnds } from './end-sessions.ts';
import { createFindSession, type Found, requireLive, sessionEnded } from './find-session.ts';
import type { SessionOperations, SignInOrigin, StartedSession } from './people-operations.ts';
import { viewSession } from './shown-users.ts';
import { createStartSession } from './start-session.ts';

const mostBelieved = 10_000;
const valuePattern = /^[A-Za-z0-9_-]{43}$/;

export type SessionPorts = Pick<Ports, 'store' | 'core' | 'ring' | 'clock' | 'usage' | 'people' | 'log'> &
  Partial<Pick<Ports, 'provider'>>;

export const userActor = (
  { id, name }: Pick<StoredUser, 'id' | 'name'>,
  { requestId, peer }: Pick<SignInOrigin, 'requestId' | 'peer'>,
): Actor => ({ kind: 'user', id, name, requestId, peer });

export const createSessions = (
  ports: SessionPorts,
  authenticateAdmin: AuthenticationOperations['authenticateAdmin'],
  claimedRoles: ClaimedRoles,
) => {
  const { store, ring, clock } = ports;
  const lookUp = createFindSession(ports, claimedRoles);
  /** `isUse`: the request counted as a use. One that does is not answered from one that did not. */
  const believed = new Map<string, { readonly found: Found; readonly at: number; readonly isUse: boolean }>();
  /** Changes with each `forget`: what was read before is not believed afterwards. */
  let generation = 0;
  /** After a change of users or sessions: what was believed may be wrong now. */
  const forget = (): void => {
    generation += 1;
    believed.clear();
  };
  const { list, end, recordEnd } = createSessionEnds(ports, forget);
  const hashOf = (value: string): string | undefined =>
    valuePattern.test(value) ? ring.hashToken('session', value) : undefined;

  /**
   * `hashOf` for a lookup in the database: when the hash is not found there, another node may have
   * replaced the key, which is then read again.
   */
  const storedHashOf = async (value: string): Promise<string | undefined> => {
    const hash = hashOf(value);
    if (hash === undefined || (await store.read.sessions.findByHash(hash)) !== undefined) return hash;
    return (await ring.refreshHashKey(store, 'session-hash')) ? hashOf(value) : hash;
  };

  const insert = createStartSession(ports, { hashOf, forgetHash: (hash) => believed.delete(hash) });

  const open = async (
    { value, hash }: { readonly value: string; readonly hash: string },
    { requestId, peer }: Pick<SignInOrigin, 'requestId' | 'peer'>,
  ): Promise<StartedSession> => {
    const { found } = await lookUp(hash);
    return { ...found, actor: { ...found.actor, requestId, peer }, value };
  };

  const operations: SessionOperations = {
    authenticate: async (value, requestId, peer, { isUse = true, isFresh = false } = {}) => {
      let hash = hashOf(value);
      if (hash === undefined) throw sessionEnded();
      const now = clock.monotonic();
      let entry = isFresh ? undefined : believed.get(hash);
      if (
        entry === undefined ||
        (isUse && !entry.isUse) ||
        now - entry.at >= callerBelievedMs ||
        clock.now() >= entry.found.expiresAt
      ) {
        believed.delete(hash);
        const before = generation;
        hash = (await storedHashOf(value)) ?? hash;
        const { found, isOfToken } = await lookUp(hash, isUse);
        entry = { found, at: now, isUse };
        // A token that is revoked, anywhere, ends its sessions at once.
        if (!isOfToken && before === generation) believed.set(hash, entry);
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
      const hash = await storedHashOf(value);
      if (hash === undefined) return;
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
      forget();
    },

    list: ({ reach }, { userId, ...query }) => list(reach, userId, query),

    end: (actor, own, id) => end(actor, actor.reach, id, undefined, own),

    rotateKey: async (actor) => {
      const ended = await store.write(async (tx) => {
        await ring.rotateHashKey(tx, 'session-hash', clock.now());
        const count = await tx.sessions.removeAll();
        await recordEvent(tx, 'session.key-rotated', actor, aboutService('session-key'), { sessionsEnded: count });
        return count;
      });
      await ring.refreshHashKey(store, 'session-hash');
      forget();
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
    forget,
  };
};
export type Sessions = ReturnType<typeof createSessions>;
