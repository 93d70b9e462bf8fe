// Who can act for themselves: users, and tokens without an owner (a user's own token acts as the
// user). Each possible requester or approver is one of them.
//
// Which person an identity is stands in the row of a token, under its code: the user who made it,
// also through other tokens, because that user has seen its value. A token that no user made is a
// person of its own. Since when it acts follows from the audit log, too, which is signed and in an
// order that no clock changes: from records that are under its root. A user whose password was set
// later than a request was made may be another person than before: the record says so, and the time
// in the row, which is under its code, where the record was taken away.

import { ServiceError } from '../../base/service-error.ts';
import { type Grant, isAllowed, type Permission } from '../../domain/access.ts';
import type { Actor } from '../../domain/actor.ts';
import type { Approval, Identity } from '../../domain/approval.ts';
import type { AuditEvent, AuditKind } from '../../domain/audit-event.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { StoredUser } from '../../ports/people.ts';
import type { Repositories, Store, StoredToken } from '../../ports/store.ts';
import { byId, each } from '../shared/paging.ts';
import { decidingRecord } from '../shared/tree-of-log.ts';

export interface ActingIdentity extends Identity {
  readonly kind: Actor['kind'];
  readonly grants: readonly Grant[];
  /** When it was made, or got its password, by the clock of that time. */
  readonly since: number;
  /** Whether it can sign in: who has not accepted an invitation approves nothing, nor counts. */
  readonly isEnrolled: boolean;
  /** The user who acts by it; its own id where no user is known. Two of one person count once. */
  readonly personId: string;
}

type From = Pick<Repositories, 'tokens' | 'users' | 'audit'>;
type Unnamed = Omit<ActingIdentity, 'personId'>;

const refuse = (what: string): never => {
  throw new ServiceError('key-tampered', `${what} was changed from outside`, {
    hint: 'compare the database with a backup; dke verify names every such row',
  });
};

/** The newest record of this kind about an identity or a request. Throws 'key-tampered'. */
const newestOf = async (
  { audit }: Pick<From, 'audit'>,
  subjectId: string,
  kind: AuditKind,
): Promise<AuditEvent | undefined> => {
  const event = await decidingRecord(audit, { subjectId, kind, order: 'newest' });
  return event === null ? refuse(`the audit record ${kind} of ${subjectId}`) : event;
};

/**
 * Who has made a token, by the audit log: for rows of earlier versions, and those that are gone.
 */
const recordedPerson = async (from: Pick<From, 'audit'>, id: string): Promise<string> => {
  const seen = new Set<string>();
  for (let token = id; !seen.has(token); ) {
    seen.add(token);
    const made = await newestOf(from, token, 'token.created');
    if (made?.actorKind === 'user') return made.actorId;
    if (made?.actorKind !== 'administrator') break;
    token = made.actorId;
  }
  return id;
};
/**
 * Who has made a token that is stored. Each has a record: a token without one is not believed.
 * Throws 'key-tampered'.
 */
const makerOf = async (from: Pick<From, 'audit'>, { id, name }: StoredToken): Promise<string> => {
  const made = await newestOf(from, id, 'token.created');
  return made === undefined ? refuse(`the audit record of who made the token ${name}`) : recordedPerson(from, id);
};

/**
 * The person behind the id of a user or a token, also of one that has ended. A row that was changed
 * from outside does not say who it is, and nothing is decided without that.
 */
export const personOf = async (from: Pick<From, 'tokens' | 'audit'>, id: string): Promise<string> => {
  const token = await from.tokens.get(everyTenant, id);
  if (token === undefined) return recordedPerson(from, id);
  if (token.integrity !== 'ok') return refuse(`the stored token ${token.name}`);
  return token.personId ?? makerOf(from, token);
};

/** The person behind a token that is made now. */
export const personBehind = async (
  from: Pick<From, 'tokens' | 'audit'>,
  { kind, id }: Pick<Actor, 'kind' | 'id'>,
  tokenId: string,
): Promise<string> => {
  if (kind === 'user') return id;
  const person = kind === 'administrator' ? await personOf(from, id) : id;
  return person === id ? tokenId : person;
};

/**
 * At the first start of this version, after the root of the log was compared: rows of earlier
 * versions say who is behind the token, too. Where the log does not prove it, the row stays as it
 * is, and nothing is decided by the token.
 */
export const adoptPersons = async ({ read, write }: Pick<Store, 'read' | 'write'>): Promise<void> => {
  for await (const { id, personId, integrity } of each((window) => read.tokens.list(everyTenant, window), byId))
    if (personId === null && integrity === 'ok')
      await write(async (tx) => {
        const token = await tx.tokens.get(everyTenant, id);
        if (token?.integrity !== 'ok') return;
        const person = await makerOf(tx, token).catch((error: unknown) => {
          if (error instanceof ServiceError && error.code === 'key-tampered') return null;
          throw error;
        });
        if (person !== null) await tx.tokens.update({ ...token, personId: person });
      });
};

const named = async (from: From, identity: Unnamed): Promise<ActingIdentity> => ({
  ...identity,
  personId: await personOf(from, identity.id),
});

/**
 * Whether the same person has acted by it since before the request was made: two witnesses agree,
 * the order of the log, which no clock moves, and the times in rows with codes.
 */
export const wasThereBefore = async (
  from: Pick<From, 'audit'>,
  { id, kind, since }: Pick<ActingIdentity, 'id' | 'kind' | 'since'>,
  request: Pick<Approval, 'id' | 'requestedAt'>,
): Promise<boolean> => {
  if (since > request.requestedAt) return false;
  const requested = await newestOf(from, request.id, 'approval.requested');
  const beginnings = kind === 'user' ? (['user.created', 'password.changed'] as const) : (['token.created'] as const);
  for (const beginning of beginnings)
    if (((await newestOf(from, id, beginning))?.sequence ?? 0) > (requested?.sequence ?? -1)) return false;
  return requested !== undefined;
};

const ofToken = (token: StoredToken, now: number): readonly Unnamed[] => {
  const { id, name, grants, ownerId, integrity, kind, revokedAt, expiresAt, createdAt } = token;
  const live = integrity === 'ok' && kind === 'api' && revokedAt === null && (expiresAt === null || expiresAt > now);
  return live && ownerId === null
    ? [{ kind: 'administrator', id, name, grants, since: createdAt, isEnrolled: true }]
    : [];
};
const ofUser = (user: StoredUser): readonly Unnamed[] => {
  const { id, name, grants, state, integrity, createdAt, passwordChangedAt, password, subject } = user;
  const isEnrolled = password !== null || subject !== null;
  const since = Math.max(createdAt, passwordChangedAt ?? 0);
  return state === 'active' && integrity === 'ok' ? [{ kind: 'user', id, name, grants, since, isEnrolled }] : [];
};

/** Undefined when no identity with this id may act now. */
export const findIdentity = async (from: From, id: string, now: number): Promise<ActingIdentity | undefined> => {
  const token = await from.tokens.get(everyTenant, id);
  const user = token === undefined ? await from.users.get(everyTenant, id) : undefined;
  const [found] = token !== undefined ? ofToken(token, now) : user !== undefined ? ofUser(user) : [];
  return found === undefined ? undefined : named(from, found);
};

/** How many people some identities are that can sign in, beside one of them. */
export const countPeople = (identities: readonly ActingIdentity[], except: string | null): number =>
  new Set(
    identities
      .filter(({ isEnrolled }) => isEnrolled)
      .map(({ personId }) => personId)
      .filter((id) => id !== except),
  ).size;

/** All who have a permission in a tenant: tokens, then users, by id. */
export const listIdentities = async (
  from: From,
  permission: Permission,
  tenantId: string,
  now: number,
): Promise<readonly ActingIdentity[]> => {
  const found: Unnamed[] = [];
  for await (const token of each((window) => from.tokens.list(everyTenant, window), byId))
    found.push(...ofToken(token, now));
  for await (const user of each((window) => from.users.list(everyTenant, window), byId)) found.push(...ofUser(user));
  const able: ActingIdentity[] = [];
  for (const each of found) if (isAllowed(each.grants, permission, tenantId, null)) able.push(await named(from, each));
  return able;
};
