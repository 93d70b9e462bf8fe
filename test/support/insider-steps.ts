// What people try in a sequence of steps: requests to the API about whatever there is, made of
// random numbers.

import type { Facts } from './insider-facts.ts';
import { most } from './insider-model.ts';
import { fresh, settings } from './insider-world.ts';

const hour = 3_600_000;

export interface Pick {
  of<T>(list: readonly T[]): T;
  readonly flip: boolean;
}
export const pickBy = (seeds: readonly number[]): Pick => {
  let at = 0;
  const next = (): number => {
    at += 1;
    return seeds[at % seeds.length] ?? 0;
  };
  return {
    of: <T>(list: readonly T[]): T => list[(next() >> (at % 8)) % Math.max(1, list.length)] as T,
    get flip() {
      return next() % 2 === 1;
    },
  };
};

export type Things = Readonly<
  Record<'vault' | 'key' | 'group' | 'application' | 'endpoint' | 'token' | 'user' | 'snapshot', string[]>
> & {
  readonly guid: [string, string][];
  readonly credential: [string, string][];
};
export const thingsOf = (facts: Facts): Things => {
  const found: Record<string, Set<string>> = {};
  const pairs: { guid: [string, string][]; credential: [string, string][] } = { guid: [], credential: [] };
  for (const what of facts.keys()) {
    const [kind = '', id = '', , owner = ''] = what.split(' ');
    if (kind === 'access_guid') pairs.guid.push([owner, id]);
    else if (kind === 'credential') pairs.credential.push([owner, id]);
    else found[kind] = (found[kind] ?? new Set()).add(id);
  }
  const list = (kind: string): string[] => [...(found[kind] ?? [])];
  return {
    ...pairs,
    vault: list('vault'),
    key: list('key'),
    group: list('group'),
    application: list('application'),
    endpoint: list('endpoint'),
    token: list('token'),
    user: list('user'),
    snapshot: list('snapshot'),
  };
};

export type Asked = { readonly method: string; readonly path: string; readonly body?: object };
type Maker = (scene: Scene, pick: Pick) => Asked;
const post = (path: string, body: object = {}): Asked => ({ method: 'POST', path, body });
const put = (path: string, body: object): Asked => ({ method: 'PUT', path, body });
const remove = (path: string): Asked => ({ method: 'DELETE', path });

const grantsOf = ({ tenantId, otherTenantId }: Scene, pick: Pick): readonly object[] =>
  Array.from({ length: pick.flip ? 1 : 2 }, () => ({
    role: pick.of(Object.keys(most).filter((role) => role !== 'application-owner')),
    scope: null,
    ...pick.of([{}, { tenantId }, { tenantId }, { tenantId: null }, { tenantId: otherTenantId }]),
  }));
const expiries = (): readonly object[] => [
  {},
  { expiresAt: null },
  ...[0.5, 2, 7.9, 9, 24 * 30].map((hours) => ({ expiresAt: new Date(Date.now() + hours * hour).toISOString() })),
];
const ruleBy = ({ anna, bert, tokens }: Scene, pick: Pick): object => ({
  required: pick.of([1, 2]),
  approvers: pick.of([null, [anna], [anna, bert], [pick.of(tokens)]]),
  actions: pick.of([['destroy'], ['destroy', 'export', 'restore'], []]),
  databases: pick.of(['allowed', 'refused']),
});

const makers: readonly (readonly [weight: number, Maker])[] = [
  [
    6,
    (scene, pick) => post('/tokens', { name: fresh('token'), grants: grantsOf(scene, pick), ...pick.of(expiries()) }),
  ],
  [1, (scene, pick) => remove(`/tokens/${pick.of(scene.things.token)}`)],
  [3, (scene, pick) => post('/users', { name: fresh('user'), grants: grantsOf(scene, pick) })],
  [
    3,
    (scene, pick) =>
      put(`/users/${pick.of(scene.things.user)}`, {
        displayName: 'Changed',
        email: null,
        grants: grantsOf(scene, pick),
        subject: pick.flip ? fresh('subject') : null,
        mustChangePassword: false,
      }),
  ],
  [4, (scene, pick) => post(`/users/${pick.of([...scene.things.user, scene.anna, scene.bert])}/invitation`)],
  [1, (scene, pick) => remove(`/users/${pick.of(scene.things.user)}/factors`)],
  [1, (scene, pick) => post(`/users/${pick.of(scene.things.user)}/${pick.of(['enable', 'disable', 'unlock'])}`)],
  [1, (scene, pick) => remove(`/users/${pick.of(scene.things.user)}`)],
  [
    3,
    (scene, pick) =>
      post('/profile/tokens', {
        name: fresh('own'),
        expiresAt: new Date(Date.now() + pick.of([1, 9, 99]) * hour).toISOString(),
        ...(pick.flip ? { grants: grantsOf(scene, pick) } : {}),
      }),
  ],
  [2, (scene, pick) => put(`/vaults/${pick.of(scene.things.vault)}/dual-control`, ruleBy(scene, pick))],
  [2, (scene, pick) => remove(`/vaults/${pick.of(scene.things.vault)}/dual-control`)],
  [1, () => post('/vaults', { name: fresh('vault') })],
  [1, (scene, pick) => post(`/vaults/${pick.of(scene.things.vault)}/${pick.of(['enable', 'disable'])}`)],
  [1, (scene, pick) => remove(`/vaults/${pick.of(scene.things.vault)}`)],
  [2, (scene, pick) => put(`/vaults/${pick.of(scene.things.vault)}/name`, { name: fresh('renamed') })],
  [2, (scene, pick) => put(`/tde/groups/${pick.of(scene.things.group)}/name`, { name: fresh('renamed') })],
  [1, (scene, pick) => post('/keys', { name: fresh('key'), vaultId: pick.of(scene.things.vault) })],
  [2, (scene, pick) => post(`/keys/${pick.of(scene.things.key)}/${pick.of(['enable', 'disable', 'rotate'])}`)],
  [4, (scene, pick) => remove(`/keys/${pick.of([...scene.things.key, scene.governedKey])}`)],
  [1, () => post('/tde/groups', { name: fresh('group') })],
  [1, (scene, pick) => post('/tde/applications', { name: fresh('application'), groupId: pick.of(scene.things.group) })],
  [
    1,
    (scene, pick) => post(`/tde/applications/${pick.of(scene.things.application)}/${pick.of(['enable', 'disable'])}`),
  ],
  [
    1,
    (scene, pick) =>
      put(`/tde/applications/${pick.of(scene.things.application)}/compatibility`, {
        switches: pick.of([[], ['sha1-signatures']]),
      }),
  ],
  [
    3,
    (scene, pick) =>
      post(`/tde/applications/${scene.application.id}/move`, {
        groupId: pick.of(scene.things.group),
        confirm: scene.application.name,
      }),
  ],
  [2, (scene, pick) => post(`/tde/applications/${pick.of(scene.things.application)}/access-guids`)],
  [
    1,
    (scene, pick) => {
      const [owner, id] = pick.of(scene.things.guid) ?? ['', ''];
      return remove(`/tde/applications/${pick.flip ? owner : pick.of(scene.things.application)}/access-guids/${id}`);
    },
  ],
  [
    3,
    (scene) =>
      post(`/tde/applications/${scene.application.id}/master-keys/${scene.application.masterKeyId}/destroy`, {
        confirm: scene.application.name,
      }),
  ],
  [
    1,
    (scene, pick) =>
      post('/endpoints', {
        name: fresh('endpoint'),
        vaultId: pick.of(scene.things.vault),
        keyId: pick.of(scene.things.key),
      }),
  ],
  [
    1,
    (scene, pick) =>
      post(`/endpoints/${pick.of(scene.things.endpoint)}/${pick.of(['enable', 'disable', 'credentials'])}`),
  ],
  [
    1,
    (scene, pick) =>
      put(`/endpoints/${pick.of(scene.things.endpoint)}/settings`, { ...settings, operatorProbes: pick.flip }),
  ],
  [1, (scene, pick) => remove(`/endpoints/${pick.of(scene.things.endpoint)}`)],
  [
    1,
    (scene, pick) => {
      const [owner, id] = pick.of(scene.things.credential) ?? ['', ''];
      return remove(`/endpoints/${pick.flip ? owner : pick.of(scene.things.endpoint)}/credentials/${id}`);
    },
  ],
  [10, (scene, pick) => post(`/approvals/${pick.of(scene.requests.slice(-4)) ?? 'none'}/approve`, {})],
  [
    1,
    (scene, pick) =>
      post(`/approvals/${pick.of(scene.requests.slice(-4)) ?? 'none'}/${pick.of(['reject', 'withdraw'])}`, {}),
  ],
  [
    1,
    (scene, pick) =>
      post(`/tenants/${pick.of([scene.otherTenantId, scene.tenantId])}/${pick.of(['suspend', 'resume', 'resume'])}`),
  ],
  [1, (scene, pick) => remove(`/tenants/${pick.of([scene.otherTenantId, scene.tenantId])}`)],
  [1, (scene, pick) => post(`/tenants/${pick.of([scene.otherTenantId, scene.tenantId])}/restore`)],
];
const weighted = makers.flatMap(([weight, maker]) => Array.from({ length: weight }, () => maker));
/** The request that a number represents. */
export const requestOf = (what: number, scene: Scene, pick: Pick): Asked =>
  (weighted[what % weighted.length] as Maker)(scene, pick);

export interface Scene {
  readonly tenantId: string;
  readonly otherTenantId: string;
  /** Users who must agree before keys of the governed vault end. */
  readonly anna: string;
  readonly bert: string;
  readonly governedKey: string;
  readonly application: { readonly id: string; readonly name: string; readonly masterKeyId: string };
  /** Ids of tokens that people have. */
  readonly tokens: string[];
  readonly requests: string[];
  things: Things;
}
