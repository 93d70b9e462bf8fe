// Users, as administrators manage them. They manage only users whose roles they could give: otherwise a person who resets passwords could
// act as any user.

import { toRfc3339 } from '../../base/clock.ts';
import { ServiceError } from '../../base/errors.ts';
import { newId, serviceTenantId } from '../../base/ids.ts';
import { effectivePermissions, faultOfGrants, type Grant, isAllowed, lastingGrants } from '../../domain/access.ts';
import type { Actor, TenantActor } from '../../domain/actor.ts';
import type { AuditDetails, AuditKind } from '../../domain/audit-event.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import { foldUserName, isEmail, isUserName } from '../../domain/user.ts';
import type { IdentityProvider } from '../../ports/identity.ts';
import type { StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { makeBearer } from '../access/bearer.ts';
import { completeGrants, nameGrant, requireGrantable } from '../access/grants.ts';
import { revokeTokensOf } from '../access/manage-tokens.ts';
import { checkName } from '../shared/names.ts';
import { byId, each, pageOf } from '../shared/paging.ts';
import type { Invitation, UserOperations } from './interface.ts';
import { failuresKey } from './lockout.ts';
import { refuseOwnSecret } from './provided.ts';
import type { Sessions } from './sessions.ts';
import { viewUser } from './views.ts';

export type UserPorts = Pick<Ports, 'store' | 'core' | 'ring' | 'clock' | 'people' | 'identity'> & {
  readonly provider: IdentityProvider | undefined;
};

export const findUser = async (
  from: Pick<Repositories, 'users'>,
  tenant: TenantScope,
  id: string,
): Promise<StoredUser> => {
  const user = await from.users.get(tenant, id);
  if (user === undefined || user.state === 'deleted') throw new ServiceError('not-found', 'user not found');
  return user;
};

const checkEmail = (email: string | null): string | null => {
  if (email !== null && !isEmail(email)) throw new ServiceError('validation', 'the e-mail address is not valid');
  return email;
};
const checkSubject = (subject: string | null): string | null => {
  if (subject !== null && !/^[\x21-\x7e]{1,255}$/.test(subject))
    throw new ServiceError('validation', 'the subject must be 1 to 255 printable ASCII characters');
  return subject;
};

/** A claim may give the owner of a subject roles for the whole platform, so a tenant's administrator must not set subjects. */
const requireSubjectRight = (own: readonly Grant[]): void => {
  if (!isAllowed(own, 'users:manage', null, null))
    throw new ServiceError(
      'forbidden',
      'setting a subject at the OpenID provider requires users:manage for the whole platform',
      {
        hint: 'ask a platform administrator',
      },
    );
};

/** What a break-glass token alone allows ends with it, but a user does not expire. */
const requireLasting = (own: readonly Grant[], grants: readonly Grant[]): void => {
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
 * A person who resets the password of an approver could approve as that approver. Without the name in the rule that is useless, and to add the name
 * again needs the agreement that the rule asks for.
 */
const refuseNamedApprover = async (tx: Repositories, userId: string): Promise<void> => {
  for await (const vault of each((window) => tx.vaults.list(everyTenant, window), byId))
    if (vault.state !== 'deleted' && vault.dualControl?.approvers?.includes(userId))
      throw new ServiceError('conflict', `the dual control of the vault ${vault.name} names this user as an approver`, {
        hint: `first set the rule without this user (dke vault dual-control set), and add the user again afterwards; the other approvers must approve both`,
      });
};

/** Who names another subject for an approver could agree as that person to requests that wait already. */
const refuseAwaitedApprover = async (tx: Repositories, userId: string): Promise<void> => {
  for (const { id, rules, subject } of await tx.approvals.listOpen())
    if (rules.some(({ approvers }) => approvers?.includes(userId)))
      throw new ServiceError(
        'conflict',
        `this user is an eligible approver of a pending request about ${subject.name}`,
        {
          hint: `change the subject after the request has ended: dke approval show ${id}`,
        },
      );
};

/** Whether they may do everything, everywhere. */
const isSupreme = (grants: readonly Grant[]): boolean =>
  grants.some(({ role, tenantId }) => role === 'administrator' && tenantId === null);

/** Takes every factor of a user away, with the secrets of one-time passwords. */
export const removeFactorsOf = async (tx: Repositories, userId: string): Promise<number> => {
  const factors = await tx.factors.list(userId);
  for (const { id, kind } of factors) {
    if (kind === 'totp') await tx.records.wipe(id, 1, 'second-factor');
    await tx.factors.remove(id);
  }
  return factors.length;
};

export const createUsers = (ports: UserPorts, sessions: Sessions): UserOperations => {
  const { store, core, ring, clock, people, identity, provider } = ports;

  const checkGrants = async (tx: Repositories, grants: readonly Grant[], own: readonly Grant[]): Promise<void> => {
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
  const findManaged = async (
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

  const refuseOneself = (actor: Actor, id: string, what: string): void => {
    if (actor.kind === 'user' && actor.id === id)
      throw new ServiceError('conflict', `users cannot ${what}`, { hint: 'ask another administrator' });
  };

  /** An administrator must stay, and a token that expires does not. */
  const refuseLast = async (tx: Repositories, user: StoredUser): Promise<void> => {
    const counts = user.state === 'active' && (user.password !== null || user.subject !== null);
    if (!counts || user.tenantId !== null || !isSupreme(user.grants)) return;
    if ((await tx.users.countAdministrators()) + (await tx.tokens.countAdministrators('lasting')) < 2)
      throw new ServiceError('conflict', 'this is the last administrator (tokens that expire do not count)', {
        hint: 'first create another user with the role administrator, or such a token without an expiry',
      });
  };

  const record = <K extends AuditKind>(
    tx: Repositories,
    kind: K,
    actor: Actor,
    user: Pick<StoredUser, 'id' | 'tenantId'>,
    details: AuditDetails<K>,
  ): Promise<unknown> =>
    tx.audit.append({
      kind,
      actor,
      tenantId: user.tenantId ?? serviceTenantId,
      subject: { kind: 'user', id: user.id },
      details,
    });

  const invite = (): Invitation & { readonly hash: string } => {
    const token = makeBearer(core, 'invitation');
    return {
      token,
      hash: ring.hashToken('invitation', token),
      expiresAt: clock.now() + people.invitationMs,
      url: `${identity.publicUrl()}/invitation#${token}`,
    };
  };

  const endSessionsOf = (tx: Repositories, id: string): Promise<number> =>
    tx.sessions.removeOf({ kind: 'user', id }, null);

  /** One change of a user with its record; what sessions were believed to be is forgotten. */
  const change = async (
    actor: TenantActor,
    own: readonly Grant[],
    id: string,
    work: (tx: Repositories, before: StoredUser) => Promise<StoredUser>,
  ) => {
    const view = await store.write(async (tx) =>
      viewUser(ports, tx, await work(tx, await findManaged(tx, actor, own, id))),
    );
    sessions.forget();
    return view;
  };

  return {
    create: async (actor, own, input) => {
      const { name, displayName = name, email = null, subject = null } = input;
      if (!isUserName(name))
        throw new ServiceError(
          'validation',
          'a user name must be 1 to 64 letters, digits and . _ @ + -, and begin with a letter or digit',
        );
      checkName(displayName);
      checkEmail(email);
      checkSubject(subject);
      if (subject !== null) requireSubjectRight(lastingGrants(own));
      const grants = completeGrants(actor, input.grants);
      const now = clock.now();
      const invitation = subject === null ? invite() : null;
      const user: StoredUser = {
        id: newId(now),
        tenantId: actor.reach === everyTenant ? null : actor.reach,
        name,
        displayName,
        email,
        grants,
        state: 'active',
        hasPassword: false,
        mustChangePassword: false,
        passwordChangedAt: null,
        subject,
        createdAt: now,
        lastSignInAt: null,
        password: null,
        invitationHash: invitation?.hash ?? null,
        invitedUntil: invitation?.expiresAt ?? null,
        integrity: 'ok',
      };
      const view = await store.write(async (tx) => {
        await checkGrants(tx, grants, own);
        requireLasting(own, grants);
        if ((await tx.users.findByName(foldUserName(name))) !== undefined)
          throw new ServiceError('conflict', 'a user with this name already exists', {
            hint: 'names are compared without regard to case',
          });
        if (subject !== null && (await tx.users.findBySubject(subject)) !== undefined)
          throw new ServiceError('conflict', 'a user with this subject already exists', {
            hint: 'a subject can belong to only one user: run dke user list to find it',
          });
        await tx.users.insert(user);
        await record(tx, 'user.created', actor, user, {
          name,
          roles: grants.map(nameGrant),
          ...(subject === null ? {} : { subject }),
        });
        if (invitation !== null)
          await record(tx, 'invitation.issued', actor, user, { name, expiresAt: toRfc3339(invitation.expiresAt) });
        return viewUser(ports, tx, user, []);
      });
      return {
        user: view,
        invitation:
          invitation === null
            ? null
            : { token: invitation.token, expiresAt: invitation.expiresAt, url: invitation.url },
      };
    },

    list: async ({ reach }, query) => {
      const page = await pageOf(query, (window) => store.read.users.list(reach, window), byId);
      const factors = Map.groupBy(await store.read.factors.listOf(page.items.map(byId)), ({ userId }) => userId);
      const items = [];
      for (const user of page.items) items.push(await viewUser(ports, store.read, user, factors.get(user.id) ?? []));
      return { items, next: page.next };
    },
    get: async ({ reach }, id) => viewUser(ports, store.read, await findUser(store.read, reach, id)),

    update: async (actor, own, id, { displayName, email, subject, mustChangePassword, grants: given }) => {
      checkName(displayName);
      checkEmail(email);
      checkSubject(subject);
      const grants = completeGrants(actor, given);
      return change(actor, own, id, async (tx, before) => {
        const sameRoles =
          JSON.stringify(before.grants.map(nameGrant).sort()) === JSON.stringify(grants.map(nameGrant).sort());
        if (!sameRoles) {
          refuseOneself(actor, id, 'change their own roles');
          await checkGrants(tx, grants, own);
          requireLasting(own, grants);
          if (!isSupreme(grants)) await refuseLast(tx, before);
        }
        if (subject !== before.subject) {
          requireSubjectRight(lastingGrants(own));
          await refuseNamedApprover(tx, id);
          await refuseAwaitedApprover(tx, id);
        }
        if (subject !== null && subject !== before.subject && (await tx.users.findBySubject(subject)) !== undefined)
          throw new ServiceError('conflict', 'a user with this subject already exists', {
            hint: 'a subject can belong to only one user: run dke user list to find it',
          });
        const after: StoredUser = { ...before, displayName, email, subject, mustChangePassword, grants };
        const changed = (['displayName', 'email', 'subject', 'mustChangePassword'] as const).filter(
          (member) => before[member] !== after[member],
        );
        if (changed.length === 0 && sameRoles) return before;
        await tx.users.update(after);
        const ends = !sameRoles || before.subject !== subject;
        const sessionsEnded = ends ? await endSessionsOf(tx, id) : 0;
        await record(tx, 'user.changed', actor, after, {
          name: after.name,
          changed: [...changed, ...(sameRoles ? [] : ['roles'])],
          ...(sameRoles ? {} : { roles: grants.map(nameGrant) }),
          sessionsEnded,
        });
        return after;
      });
    },

    enable: (actor, own, id) =>
      change(actor, own, id, async (tx, before) => {
        if (before.state === 'active') return before;
        requireLasting(own, before.grants);
        const after: StoredUser = { ...before, state: 'active' };
        await tx.users.update(after);
        await record(tx, 'user.enabled', actor, after, { name: after.name });
        return after;
      }),

    disable: (actor, own, id) =>
      change(actor, own, id, async (tx, before) => {
        if (before.state === 'disabled') return before;
        refuseOneself(actor, id, 'disable themselves');
        await refuseLast(tx, before);
        const after: StoredUser = { ...before, state: 'disabled' };
        await tx.users.update(after);
        const sessionsEnded = await endSessionsOf(tx, id);
        await record(tx, 'user.disabled', actor, after, { name: after.name, sessionsEnded });
        return after;
      }),

    unlock: (actor, own, id) =>
      change(actor, own, id, async (tx, user) => {
        const key = failuresKey(ring, 'user', foldUserName(user.name));
        if ((await tx.failures.get(key)) === undefined) return user;
        await tx.failures.remove(key);
        await record(tx, 'user.unlocked', actor, user, { name: user.name });
        return user;
      }),

    resetPassword: async (actor, own, id, { revokeTokens = false } = {}) => {
      const { hash, ...invitation } = invite();
      const user = await change(actor, own, id, async (tx, before) => {
        refuseOneself(actor, id, 'reset their own password');
        refuseOwnSecret(provider, before);
        requireLasting(own, before.grants);
        await refuseNamedApprover(tx, id);
        if (before.state !== 'active')
          throw new ServiceError('conflict', 'the user is disabled', { hint: 'enable them first' });
        await refuseLast(tx, before);
        const after: StoredUser = {
          ...before,
          password: null,
          hasPassword: false,
          invitationHash: hash,
          invitedUntil: invitation.expiresAt,
        };
        await tx.users.update(after);
        const sessionsEnded = await endSessionsOf(tx, id);
        if (revokeTokens) await revokeTokensOf(tx, actor, id, clock.now());
        await record(tx, 'invitation.issued', actor, after, {
          name: after.name,
          expiresAt: toRfc3339(invitation.expiresAt),
          sessionsEnded,
        });
        return after;
      });
      return { user, invitation };
    },

    removeFactors: (actor, own, id) =>
      change(actor, own, id, async (tx, user) => {
        refuseOneself(actor, id, 'remove all their own second factors');
        requireLasting(own, user.grants);
        await refuseNamedApprover(tx, id);
        for (const { kind, name, confirmedAt } of await tx.factors.list(id))
          if (kind !== 'recovery-code' && confirmedAt !== null)
            await record(tx, 'second-factor.removed', actor, user, {
              name: user.name,
              kind,
              factor: name,
              by: 'administrator',
            });
        await removeFactorsOf(tx, id);
        await endSessionsOf(tx, id);
        return user;
      }),

    delete: (actor, own, id) =>
      change(actor, own, id, async (tx, before) => {
        refuseOneself(actor, id, 'delete themselves');
        await refuseLast(tx, before);
        const after: StoredUser = {
          ...before,
          state: 'deleted',
          password: null,
          hasPassword: false,
          subject: null,
          invitationHash: null,
          invitedUntil: null,
        };
        await tx.users.update(after);
        await removeFactorsOf(tx, id);
        const sessionsEnded = await endSessionsOf(tx, id);
        await record(tx, 'user.deleted', actor, after, { name: after.name, sessionsEnded });
        return after;
      }),

    permissions: async ({ reach }, id) => {
      const { grants, state } = await findUser(store.read, reach, id);
      return { grants, rights: state === 'active' ? effectivePermissions(grants) : [] };
    },

    endSessions: async (actor, own, id) => {
      let ended = 0;
      await change(actor, own, id, async (tx, user) => {
        ended = await endSessionsOf(tx, id);
        if (ended > 0) await record(tx, 'session.ended', actor, user, { name: user.name, by: 'administrator' });
        return user;
      });
      return ended;
    },
  };
};
