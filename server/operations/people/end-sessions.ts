// Sessions as users and administrators see them, and how they end them.

import { ServiceError } from '../../base/service-error.ts';
import { faultOfGrants, type Grant } from '../../domain/access.ts';
import type { Actor } from '../../domain/actor.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { StoredSession } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { byId, pageOf } from '../shared/paging.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { SessionView } from './people-operations.ts';
import { viewSession } from './shown-users.ts';

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

/** `forget`: what was believed of sessions may be wrong now. */
export const createSessionEnds = (
  { store, clock, people }: Pick<Ports, 'store' | 'clock' | 'people'>,
  forget: () => void,
) => {
  const recordEnd = (
    tx: Repositories,
    actor: Actor,
    session: StoredSession,
    name: string,
    by: string,
  ): Promise<unknown> =>
    recordEvent(
      tx,
      'session.ended',
      actor,
      about(session.holder.kind, { id: session.holder.id, tenantId: session.tenantId }),
      { name, sessionId: session.id, by },
    );

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

  /**
   * `ofUser`: only of this user. `own`: the roles that the caller may grant; the holder must not
   * have more.
   */
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
    forget();
    return view;
  };

  return { list, end, recordEnd };
};
