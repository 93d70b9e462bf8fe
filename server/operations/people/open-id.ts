// Signing in at the OpenID provider. Who comes back is known by the subject. Where a claim gives
// roles, the provider decides who is a user here and what they may do, at each sign-in; otherwise
// an administrator has registered the subject.

import { command } from '../../base/command-line.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Grant } from '../../domain/access.ts';
import { nextStep } from '../../domain/sign-in.ts';
import type { IdentityProvider, OpenIdPerson } from '../../ports/identity.ts';
import type { StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Attempts } from './attempts.ts';
import { type ClaimedRoles, isOwnedOtherwise, sameGrants, setRoles } from './claimed-roles.ts';
import { addOpenIdUser, withdrawRoles } from './open-id-users.ts';
import type { OpenIdOperations } from './people-operations.ts';
import type { Sessions } from './session-secrets.ts';
import type { SignIn } from './sign-in.ts';

const holdsMs = 10 * 60_000;
export const openIdCallback = '/api/session/openid/callback';

const grantsOf = ({ roles }: OpenIdPerson): readonly Grant[] | null =>
  roles === null || roles === 'not-told' ? null : roles.map((role) => ({ role, scope: null, tenantId: null }));

/** What is said instead of the general sentence. */
const refusals: Readonly<Record<string, string>> = {
  'not-told': 'the OpenID provider has not said which groups or roles you have',
};
const noAccess = (reason: string, { subject }: OpenIdPerson): ServiceError =>
  new ServiceError(
    'forbidden',
    refusals[reason] ?? 'your account at the OpenID provider has no access to this service',
    {
      hint:
        reason === 'not-of-provider'
          ? 'the user of your subject has a tenant, a password or a passkey: an administrator must remove the subject from that user'
          : reason === 'not-told'
            ? 'nothing was changed: the provider must send the claim of role_claim ([oidc] in dke.toml), which some leave out for people with many groups: docs/people.md'
            : `an administrator can register you: ${command`dke user create NAME --role ROLE --subject=${subject}`}`,
    },
  );

export const createOpenIdOperations = (
  {
    store,
    core,
    clock,
    identity,
    people,
    provider,
  }: Pick<Ports, 'store' | 'core' | 'clock' | 'identity' | 'people'> & {
    readonly provider: IdentityProvider | undefined;
  },
  attempts: Attempts,
  sessions: Sessions,
  signIn: SignIn,
  claimedRoles: ClaimedRoles,
): OpenIdOperations => {
  const requireProvider = (): IdentityProvider => {
    if (provider === undefined)
      throw new ServiceError('conflict', 'no OpenID provider is set up', { hint: 'set one in [oidc] in dke.toml' });
    return provider;
  };
  const textOf = (state: string): string => `openid\0${state}`;
  /** The browser that began is the one that comes back. */
  const bindingHash = (binding: string): string => attempts.hashOf(`binding\0${binding}`);

  return {
    label: () => provider?.label ?? null,

    begin: async () => {
      const { url, state, data } = await requireProvider().begin(`${identity.publicUrl()}${openIdCallback}`);
      const bytes = Buffer.alloc(32);
      core.random(bytes);
      const binding = bytes.toString('base64url');
      core.wipe(bytes);
      const kept = JSON.stringify({ binding: bindingHash(binding), data });
      const attempt = { kind: 'openid', userId: null, data: kept, value: textOf(state), holdsMs } as const;
      await store.write((tx) => attempts.keep(tx, attempt), { durable: false });
      return { url, binding };
    },

    finish: async (search, binding, from) => {
      const returned = new URL(`${identity.publicUrl()}${openIdCallback}${search}`);
      const state = returned.searchParams.get('state') ?? '';
      const attempt = await store.write((tx) => attempts.take(tx, textOf(state)), { durable: false });
      const kept =
        attempt?.kind === 'openid'
          ? (JSON.parse(attempt.data) as { readonly binding: string; readonly data: string })
          : undefined;
      if (kept === undefined || binding === undefined || kept.binding !== bindingHash(binding)) {
        await signIn.refuse({ method: 'openid', reason: 'unknown-state', user: undefined }, undefined, from);
        throw new ServiceError('unauthenticated', 'this sign-in was started in another browser, or too long ago', {
          hint: 'start again at the sign-in page',
        });
      }
      const person = await requireProvider().finish(returned, kept.data, from.peer);
      const grants = grantsOf(person);
      const known = await store.read.users.findBySubject(person.subject);
      const reasonOf = async (): Promise<string | undefined> => {
        if (person.roles === 'not-told') return 'not-told';
        if (grants !== null && grants.length === 0) return 'no-role';
        if (known === undefined) return grants === null ? 'unknown-user' : undefined;
        if (known.integrity !== 'ok') return 'tampered';
        if (known.state !== 'active') return 'disabled';
        return grants !== null && (await isOwnedOtherwise(store.read, known)) ? 'not-of-provider' : undefined;
      };
      const reason = await reasonOf();
      if (reason !== undefined) {
        if (reason === 'no-role' && known !== undefined) {
          await withdrawRoles({ store, clock }, claimedRoles, known.id, from);
          sessions.forget();
        }
        await signIn.refuse({ method: 'openid', reason, user: known }, undefined, from);
        throw noAccess(reason, person);
      }
      const user = known ?? (await addOpenIdUser({ store, clock }, person, from));
      const how = { method: 'openid', proved: person.secondFactor ? 2 : 1 } as const;
      let changed = false;
      let waiting: readonly Grant[] | undefined;
      // Roles, and what forbids them, as they are when the session starts: an administrator may
      // have changed them in the meantime.
      const takeRoles = async (tx: Repositories, current: StoredUser): Promise<StoredUser> => {
        [changed, waiting] = [false, undefined];
        if (grants === null) return current;
        if (await isOwnedOtherwise(tx, current)) throw noAccess('not-of-provider', person);
        await claimedRoles.forget(tx, current.id);
        if (sameGrants(current.grants, grants)) return current;
        const factors = await tx.factors.list(current.id);
        const isComplete = nextStep({ ...current, grants }, factors, how.proved, people.secondFactor) === null;
        const after = isComplete
          ? await setRoles(tx, current, grants, from)
          : await claimedRoles.narrow(tx, current, grants, from);
        if (!isComplete) waiting = grants;
        changed = after !== current;
        return after;
      };
      const keepWaiting = async (tx: Repositories, sessionHash: string): Promise<void> => {
        if (waiting !== undefined) await claimedRoles.keep(tx, user.id, sessionHash, waiting);
      };
      const started = await signIn.admit(user, how, undefined, from, takeRoles, keepWaiting);
      if (changed) sessions.forget();
      return started;
    },
  };
};
