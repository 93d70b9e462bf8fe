// People of several roles who act in one tenant at random, each with every credential that they
// have come by; and what the model says of each change: within what its author can reach, for no
// longer than their emergency lasts, and under the dual control that was agreed.

import type { Grant, Role } from '../../server/domain/access.ts';
import type { DualControlRule } from '../../server/domain/dual-control.ts';
import { replacing } from './console-api.ts';
import { type Difference, differencesOf, effectsOf, type Facts, readFacts } from './insider-facts.ts';
import { canGive, type Effect, most, reachOf } from './insider-model.ts';
import { type Asked, pickBy, requestOf, type Scene, thingsOf } from './insider-steps.ts';
import {
  addCredential,
  fresh,
  makeApplication,
  makeEndpoint,
  makeGroup,
  makeKey,
  makeToken,
  makeUser,
  makeVault,
} from './insider-world.ts';
import { administrator, type OpenedService } from './open-service.ts';
import { bytesOf, goodPassword, originOf } from './people.ts';
import { actorIn } from './snapshots.ts';
import type { StoredRows } from './test-store.ts';

export interface Step {
  readonly who: number;
  readonly what: number;
  readonly seeds: readonly number[];
}

const hour = 3_600_000;
/** The people of each sequence: where they have their first roles, and which. */
const cast: readonly { readonly name: string; readonly roles: readonly Role[]; readonly within: boolean }[] = [
  { name: 'olga', roles: ['tenant-administrator'], within: true },
  { name: 'otto', roles: ['tenant-administrator', 'key-approver'], within: true },
  { name: 'kurt', roles: ['key-manager'], within: true },
  { name: 'dora', roles: ['key-destroyer'], within: true },
  { name: 'cara', roles: ['connection-manager'], within: true },
  { name: 'paul', roles: ['platform-operator', 'key-destroyer'], within: false },
  { name: 'rita', roles: ['recovery-officer'], within: false },
  { name: 'anke', roles: ['auditor', 'key-approver'], within: false },
  { name: 'emma', roles: ['break-glass'], within: false },
  { name: 'emil', roles: ['break-glass'], within: true },
];

type Headers = Readonly<Record<string, string>>;
interface Credential {
  readonly id: string;
  readonly headers: Headers;
}
interface Person {
  readonly name: string;
  readonly within: boolean;
  readonly reach: Set<Effect>;
  /** What they can give permanently; the rest ends with `horizon`. */
  readonly lasting: Set<Role>;
  readonly emergency: Set<Role>;
  horizon: number;
  readonly credentials: Credential[];
  readonly invitations: string[];
  /** Signs the person in again; undefined for users without a password. */
  readonly signIn?: () => Promise<Credential>;
}
const givable = (roles: readonly Role[], within: boolean): Set<Role> =>
  new Set((Object.keys(most) as Role[]).filter((other) => roles.some((role) => canGive(role, other, within))));

const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` });
const cookie = (value: string): Headers => ({ cookie: `__Host-dke-session=${value}`, 'sec-fetch-site': 'same-origin' });

export interface Play {
  /** Throws when the model does not allow what has changed. */
  step(step: Step): Promise<void>;
}

export const beginPlay = async (opened: OpenedService, stored: StoredRows, base: string): Promise<Play> => {
  const { operations } = opened;
  const { id: since } = await operations.tenants.create(administrator, { name: fresh('other') });
  const { id: tenantId } = await operations.tenants.create(administrator, { name: fresh('tenant') });
  const actor = actorIn(tenantId);
  const place = { opened, governed: false, actor };
  const other = { opened, governed: false, actor: actorIn(since) };
  await makeKey(other, await makeVault(other));
  await makeUser(opened, 'auditor', since);

  const people: Person[] = [];
  const tokens: string[] = [];
  for (const { name, roles, within } of cast) {
    const tenant = within ? tenantId : null;
    const grants = roles.map((role) => ({ role, scope: null, tenantId: tenant }));
    const { id, token } = await makeToken(opened, grants, tenant);
    tokens.push(id);
    const isGlass = roles.includes('break-glass');
    people.push({
      name,
      within,
      reach: new Set([...reachOf(roles, within), 'own']),
      lasting: givable(
        roles.filter((role) => role !== 'break-glass'),
        within,
      ),
      emergency: givable(roles, within),
      horizon: isGlass ? Date.now() + hour : 0,
      credentials: [{ id, headers: bearer(token) }],
      invitations: [],
    });
  }
  const approver = async (name: string): Promise<string> => {
    const { id, name: userName, invitation } = await makeUser(opened, 'key-approver', tenantId);
    const signIn = async (): Promise<Credential> => {
      const { value: again } = await operations.signIn.byPassword(userName, bytesOf(goodPassword), originOf());
      return { id, headers: cookie(again) };
    };
    const { value } = await operations.signIn.redeem(invitation, bytesOf(goodPassword), originOf());
    const roles: readonly Role[] = ['key-approver'];
    const credentials = [{ id, headers: cookie(value) }];
    const reach = new Set<Effect>([...reachOf(roles, true), 'own']);
    people.push({
      name,
      within: true,
      reach,
      lasting: new Set(),
      emergency: new Set(),
      horizon: 0,
      credentials,
      invitations: [],
      signIn,
    });
    return id;
  };
  const anna = await approver('anna');
  const bert = await approver('bert');

  const rule: DualControlRule = {
    required: 2,
    approvers: [anna, bert],
    actions: ['destroy', 'export', 'restore'],
    databases: 'refused',
  };
  const vault = await makeVault(place);
  await makeEndpoint(place, vault);
  await addCredential(place, await makeEndpoint(place, vault));
  const governedVault = await makeVault(place);
  const governedKey = await makeKey(place, governedVault);
  await operations.dualControl.change(actor, governedVault, rule);
  const application = await makeApplication(place);
  const { vaultId } = await operations.tdeGroups.get(actor, application.groupId);
  await operations.dualControl.change(actor, vaultId, rule);
  await makeGroup(place);

  const extent = { tenants: [tenantId, since], since };
  let facts = await readFacts(stored, extent);
  const scene: Scene = {
    tenantId,
    otherTenantId: since,
    anna,
    bert,
    governedKey,
    application,
    tokens,
    requests: [],
    things: thingsOf(facts),
  };
  /** The requester and the approvers of each request. */
  const requests = new Map<string, { readonly by: Person; readonly agreed: Set<string> }>();
  const history: string[] = [];
  const honest: ReadonlyMap<string, string> = new Map([
    [anna, 'anna'],
    [bert, 'bert'],
  ]);

  const grantOf = (what: string): Grant | undefined => {
    const json = / has (\{.*\})$/.exec(what)?.[1];
    return json === undefined ? undefined : (JSON.parse(json) as Grant);
  };
  const ruleOf = (vaultId: string): DualControlRule | undefined => {
    for (const what of facts.keys()) {
      const json = what.startsWith(`vault ${vaultId} has the rule `) ? what.slice(what.indexOf('{')) : undefined;
      if (json !== undefined) return JSON.parse(json) as DualControlRule;
    }
    return undefined;
  };
  const isStricter = (before: DualControlRule, after: DualControlRule | undefined): boolean =>
    after !== undefined &&
    after.required >= before.required &&
    before.actions.every((action) => after.actions.includes(action)) &&
    (before.databases === 'allowed' || after.databases === 'refused') &&
    (before.approvers === null || after.approvers?.every((id) => before.approvers?.includes(id)) === true);

  /** Why the model does not allow it; undefined: it does. */
  const faultOf = (
    difference: Difference,
    person: Person,
    agreed: string | undefined,
    after: Facts,
  ): string | undefined => {
    const { what, how, fact } = difference;
    const request = agreed === undefined ? undefined : requests.get(agreed);
    const reach = new Set([...person.reach, ...(request?.by.reach ?? [])]);
    if (!effectsOf(difference).some((effect) => reach.has(effect))) return 'beyond their roles';
    const authors = request === undefined ? [person] : [person, request.by];
    if (authors.every(({ within }) => within) && fact.tenantId !== tenantId) return 'outside their tenant';
    const grant = grantOf(what);
    if (how === 'gained' && grant !== undefined && !fact.gain.includes('own')) {
      const places = person.within ? [tenantId] : [tenantId, since, null];
      if (!places.includes(grant.tenantId)) return 'a role outside their tenant';
      if (!person.emergency.has(grant.role)) return 'a role that they cannot give';
      const lasts = fact.until === undefined || fact.until === null || fact.until > person.horizon;
      if (!person.lasting.has(grant.role) && lasts) return 'a role that outlasts their emergency';
    }
    if (how === 'gained' && grant !== undefined && fact.gain.includes('own')) {
      const owner = / of (\S+) has /.exec(what)?.[1];
      if (!facts.has(`user ${owner} has ${JSON.stringify(grant)}`)) return 'a role that its owner does not have';
    }
    // Anyone with a user's invitation can become that user, with the user's roles.
    const invited = how === 'gained' ? /^user (\S+) (?:is invited by|signs in as) /.exec(what)?.[1] : undefined;
    if (invited !== undefined)
      for (const each of after.keys()) {
        const role = each.startsWith(`user ${invited} has {`) ? grantOf(each)?.role : undefined;
        if (role !== undefined && !person.lasting.has(role))
          return 'a way to be a person who may do more than they can give';
      }
    if (how === 'gained') return undefined;
    // A resource under a rule ends only when the required number of its approvers have approved.
    const ruled = /^vault (\S+) has the rule /.exec(what)?.[1];
    for (const vaultId of ruled === undefined ? (fact.governed ?? []) : [ruled]) {
      const before = ruleOf(vaultId);
      const named = before?.approvers?.map((id) => honest.get(id)) ?? [undefined];
      if (before === undefined || named.includes(undefined)) continue;
      if (ruled === undefined && fact.byAnyRule !== true && !before.actions.includes('destroy')) continue;
      const now = [...after.keys()].find((each) => each.startsWith(`vault ${vaultId} has the rule `));
      if (
        ruled !== undefined &&
        isStricter(before, now === undefined ? undefined : JSON.parse(now.slice(now.indexOf('{'))))
      )
        continue;
      const consents = named.filter((name) => name !== undefined && request?.agreed.has(name) === true);
      if (consents.length < before.required) return `only ${consents.join(', ') || 'no one'} has agreed`;
    }
    return undefined;
  };

  const ask = async (person: Person, { id, headers }: Credential, { method, path, body }: Asked) => {
    const target = `/api${path}${person.within || path.startsWith('/tenants') ? '' : `?tenant=${tenantId}`}`;
    const response = await fetch(`${base}${target}`, {
      method,
      headers: { ...replacing(method), ...headers, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    history.push(`${person.name} as ${id}: ${method} ${target} ${JSON.stringify(body ?? {})} -> ${response.status}`);
    return { status: response.status, answer: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> };
  };

  /** Others may have given roles to users as whom this person acts. */
  const learn = ({ credentials, reach, lasting, emergency }: Person): void => {
    for (const { id } of credentials)
      for (const what of facts.keys()) {
        const grant = what.startsWith(`user ${id} has {`) ? grantOf(what) : undefined;
        if (grant === undefined) continue;
        for (const effect of reachOf([grant.role], grant.tenantId !== null)) reach.add(effect);
        for (const role of givable([grant.role], grant.tenantId !== null)) {
          lasting.add(role);
          emergency.add(role);
        }
      }
  };
  /**
   * Who has lost everything signs in again, or is given their first roles again, so that people
   * continue.
   */
  const comeBack = async (person: Person): Promise<void> => {
    const signedIn = await person.signIn?.().catch(() => undefined);
    if (signedIn !== undefined) person.credentials.push(signedIn);
    const { roles, within } = cast.find(({ name }) => name === person.name) ?? { roles: [], within: true };
    if (roles.length === 0) return;
    const tenant = within ? tenantId : null;
    const { id, token } = await makeToken(
      opened,
      roles.map((role) => ({ role, scope: null, tenantId: tenant })),
      tenant,
    );
    tokens.push(id);
    person.credentials.push({ id, headers: bearer(token) });
    if (person.horizon > 0) person.horizon = Date.now() + hour;
    facts = await readFacts(stored, extent);
  };

  return {
    step: async ({ who, what, seeds }) => {
      const pick = pickBy(seeds);
      const person = people[who % people.length] as Person;
      if (person.credentials.length === 0) await comeBack(person);
      if (person.credentials.length === 0) return;
      learn(person);
      let agreed: string | undefined;
      const invitation = person.invitations.pop();
      if (invitation !== undefined && what % 2 === 0) {
        const started = await operations.signIn
          .redeem(invitation, bytesOf(goodPassword), originOf())
          .catch(() => undefined);
        history.push(`${person.name}: redeems an invitation -> ${started?.actor.id}`);
        if (started !== undefined) person.credentials.push({ id: started.actor.id, headers: cookie(started.value) });
      } else {
        if (invitation !== undefined) person.invitations.push(invitation);
        const asked = requestOf(what, scene, pick);
        const credential = pick.of(person.credentials.slice(-6).concat(person.credentials.slice(0, 1)));
        const { status, answer } = await ask(person, credential, asked);
        if (status === 401) person.credentials.splice(person.credentials.indexOf(credential), 1);
        const requestId = /^\/approvals\/([^/]+)\/approve$/.exec(asked.path)?.[1];
        if (status === 202 && typeof answer.id === 'string' && !requests.has(answer.id)) {
          requests.set(answer.id, { by: person, agreed: new Set() });
          scene.requests.push(answer.id);
        }
        if (status === 200 && requestId !== undefined) {
          agreed = requestId;
          requests.get(requestId)?.agreed.add(person.name);
        }
        if (status === 201 && typeof answer.token === 'string') {
          const { id } = answer.record as { readonly id: string };
          person.credentials.push({ id, headers: bearer(answer.token) });
          tokens.push(id);
        }
        const invited = answer.invitation as { readonly token: string } | null | undefined;
        if (status === 201 && invited != null) person.invitations.push(invited.token);
        if (status >= 500)
          throw new Error(`the service failed: ${JSON.stringify(answer)}\n${history.slice(-5).join('\n')}`);
      }
      const after = await readFacts(stored, extent);
      for (const difference of differencesOf(facts, after)) {
        const fault = faultOf(difference, person, agreed, after);
        if (fault !== undefined)
          throw new Error(
            `${person.name}: ${fault}: ${difference.how}: ${difference.what} (anna ${anna}, bert ${bert})\n${history.slice(-40).join('\n')}`,
          );
      }
      facts = after;
      scene.things = thingsOf(facts);
    },
  };
};
