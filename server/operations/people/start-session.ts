// A new session: 256 random bits, of which the database has a keyed hash.

import { newId } from '../../base/ids.ts';
import type { Actor } from '../../domain/actor.ts';
import type { SignInMethod } from '../../domain/sign-in.ts';
import type { StoredSession, StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { SignInOrigin } from './people-operations.ts';

/** A user as the holder of a session. */
export const holderOf = ({ id, name, tenantId }: Pick<StoredUser, 'id' | 'name' | 'tenantId'>) =>
  ({ kind: 'user', id, name, tenantId }) as const;

/** Makes a session in the caller's transaction. The one that the browser had before ends. */
export const createStartSession =
  (
    { core, ring, clock, people }: Pick<Ports, 'core' | 'ring' | 'clock' | 'people'>,
    {
      hashOf,
      forgetHash,
    }: { readonly hashOf: (value: string) => string | undefined; readonly forgetHash: (hash: string) => void },
  ) =>
  async (
    tx: Repositories,
    holder: StoredSession['holder'] & { readonly name: string; readonly tenantId: string | null },
    { method, proved }: { readonly method: SignInMethod; readonly proved: 1 | 2 },
    from: SignInOrigin,
    actor: Actor,
    /**
     * The session that continues: no new value makes it last longer, or its sign-in more recent.
     */
    continued?: Pick<StoredSession, 'createdAt' | 'expiresAt'>,
  ): Promise<{ readonly value: string; readonly hash: string }> => {
    const bytes = Buffer.alloc(32);
    core.random(bytes);
    const value = bytes.toString('base64url');
    core.wipe(bytes);
    await ring.followHashKey(tx, 'session-hash');
    const hash = ring.hashToken('session', value);
    const now = clock.now();
    const beforeHash = from.before === undefined ? undefined : hashOf(from.before);
    if (beforeHash !== undefined) {
      const before = await tx.sessions.findByHash(beforeHash);
      if (before !== undefined) await tx.sessions.remove(before.id);
      forgetHash(beforeHash);
    }
    const id = newId(now);
    await tx.sessions.insert({
      id,
      tenantId: holder.tenantId,
      hash,
      holder: { kind: holder.kind, id: holder.id },
      method,
      proved,
      createdAt: continued?.createdAt ?? now,
      usedAt: now,
      expiresAt: continued?.expiresAt ?? now + people.sessionMs,
      peer: from.peer,
      agent: from.agent?.slice(0, 255) ?? null,
      integrity: 'ok',
    });
    await recordEvent(tx, 'session.started', actor, about('session', { id, tenantId: holder.tenantId }), {
      name: holder.name,
      method,
      proved,
    });
    return { value, hash };
  };
