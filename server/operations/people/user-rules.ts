// Who may change what of a user. Administrators manage only users whose roles they could give:
// otherwise a person who resets passwords could act as any user.

import { command } from '../../base/command-line.ts';
import { ServiceError } from '../../base/service-error.ts';
import { faultOfGrants, type Grant, isAllowed, lastingGrants } from '../../domain/access.ts';
import type { Actor, TenantActor } from '../../domain/actor.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import { isEmail } from '../../domain/user.ts';
import type { Vault } from '../../domain/vault.ts';
import type { StoredUser } from '../../ports/people.ts';
import type { Repositories } from '../../ports/store.ts';
import { requireGrantable } from '../access/grants.ts';
import { byId, each, mostAtOnce } from '../shared/paging.ts';

export const findUser = async (
  from: Pick<Repositories, 'users'>,
  tenant: TenantScope,
  id: string,
): Promise<StoredUser> => {
  const user = await from.users.get(tenant, id);
  if (user === undefined || user.state === 'deleted') throw new ServiceError('not-found', 'user not found');
  return user;
};

export const checkEmail = (email: string | null): string | null => {
  if (email !== null && !isEmail(email)) throw new ServiceError('validation', 'the e-mail address is not valid');
  return email;
};
export const checkSubject = (subject: string | null): string | null => {
  if (subject !== null && !/^[\x21-\x7e]{1,255}$/.test(subject))
    throw new ServiceError('validation', 'the subject must be 1 to 255 printable ASCII characters');
  return subject;
};

/**
 * A claim may give the owner of a subject roles for the whole platform, so a tenant's administrator
 * must not set subjects.
 */
export const requireSubjectRight = (own: readonly Grant[]): void => {
  if (!isAllowed(own, 'users:manage', null, null))
    throw new ServiceError(
      'forbidden',
      'setting a subject at the OpenID provider requires users:manage for the whole platform',
      {
        hint: 'ask a platform administrator',
      },
    );
};

/** Rights from a break-glass token end with it, but a user does not expire. */
export const requireLasting = (own: readonly Grant[], grants: readonly Grant[]): void => {
  if (grants.length === 0 || faultOfGrants(grants, lastingGrants(own), 'users:manage') === undefined) return;
  throw new ServiceError(
    'forbidden',
    'a break-glass token cannot give users roles or a way to sign in, because users do not expire',
    {
      hint: 'create a token that expires with it instead: dke token create NAME --role ROLE --expires TIME',
    },
  );
};

/**
 * The vault whose dual control names the user, or one whose row was changed, so that it may: every
 * row is read, between other work.
 */
export const findNamingVault = async (
  from: Pick<Repositories, 'vaults'>,
  userId: string,
): Promise<Vault | undefined> => {
  for await (const vault of each((window) => from.vaults.list(everyTenant, window), byId, mostAtOnce)) {
    const isNamed = vault.state !== 'deleted' && vault.dualControl?.approvers?.includes(userId) === true;
    if (isNamed || vault.integrity !== 'ok') return vault;
  }
  return undefined;
};

/**
 * A person who resets the password of an approver could approve as that approver. Without the name
 * in the rule that is useless, and to add the name again needs the agreement that the rule asks
 * for. `found`: what the rows said just before the unit of work (findNamingVault). The index adds
 * what changed since: without them, it proves nothing.
 */
export const refuseNamedApprover = async (
  tx: Repositories,
  userId: string,
  found: Vault | undefined,
): Promise<void> => {
  const vault = found ?? (await tx.vaults.findNaming(userId));
  if (vault === undefined) return;
  if (vault.integrity !== 'ok')
    throw new ServiceError(
      'key-tampered',
      'the row of a vault was changed from outside the service: whom its dual control names is not known',
      { hint: 'dke verify names what was changed; restore the database or a snapshot of the tenant' },
    );
  throw new ServiceError('conflict', `the dual control of the vault ${vault.name} names this user as an approver`, {
    hint: `first set the rule without this user (dke vault dual-control set), and add the user again afterwards; the other approvers must approve both`,
  });
};

/**
 * Who names another subject for an approver could agree as that person to requests that wait
 * already.
 */
export const refuseAwaitedApprover = async (tx: Repositories, userId: string): Promise<void> => {
  for (const { id, rules, subject } of await tx.approvals.listOpen())
    if (rules.some(({ approvers }) => approvers?.includes(userId)))
      throw new ServiceError(
        'conflict',
        `this user is an eligible approver of a pending request about ${subject.name}`,
        {
          hint: `change the subject after the request has ended: ${command`dke approval show ${id}`}`,
        },
      );
};

/** Whether they may do everything, everywhere. */
export const isSupreme = (grants: readonly Grant[]): boolean =>
  grants.some(({ role, tenantId }) => role === 'administrator' && tenantId === null);

export const checkGrants = async (tx: Repositories, grants: readonly Grant[], own: readonly Grant[]): Promise<void> => {
  const fault = faultOfGrants(grants, own, 'users:manage');
  if (fault !== undefined)
    throw new ServiceError('validation', fault, { hint: 'GET /api/roles lists the roles (dke token roles)' });
  if (grants.some(({ role }) => role === 'break-glass'))
    throw new ServiceError('validation', 'break-glass can only be given as a token that expires, not to a user', {
      hint: 'dke token create NAME --role break-glass --expires TIME',
    });
  await requireGrantable(tx, grants);
};

/** 'forbidden' for a user who may do what the caller could not give. */
export const findManaged = async (
  tx: Repositories,
  { reach }: TenantActor,
  own: readonly Grant[],
  id: string,
): Promise<StoredUser> => {
  const user = await findUser(tx, reach, id);
  const fault = user.grants.length === 0 ? undefined : faultOfGrants(user.grants, own, 'users:manage');
  if (fault !== undefined)
    throw new ServiceError('forbidden', 'this user has roles that you cannot give', {
      hint: 'only a user who could give all of their roles can manage them',
    });
  return user;
};

export const refuseOneself = (actor: Actor, id: string, what: string): void => {
  if (actor.kind === 'user' && actor.id === id)
    throw new ServiceError('conflict', `users cannot ${what}`, { hint: 'ask another administrator' });
};

/** An administrator must stay, and a token that expires does not. */
export const refuseLast = async (tx: Repositories, user: StoredUser): Promise<void> => {
  const counts = user.state === 'active' && (user.password !== null || user.subject !== null);
  if (!counts || user.tenantId !== null || !isSupreme(user.grants)) return;
  if ((await tx.users.countAdministrators()) + (await tx.tokens.countAdministrators('lasting')) < 2)
    throw new ServiceError('conflict', 'this is the last administrator (tokens that expire do not count)', {
      hint: 'first create another user with the role administrator, or such a token without an expiry',
    });
};
