// What depends on what, as columns of things and the lines between them: built from the answers of
// the API, without drawing. The picture and its list show the same graph.

import type {
  BlastRadius,
  Copy,
  Endpoint,
  Instance,
  Key,
  KeyCopies,
  KeyUse,
  MasterKey,
  Snapshot,
  Vault,
} from '../api/types.ts';

export type ThingKind = 'vault' | 'key' | 'endpoint' | 'group' | 'application' | 'host' | 'snapshot' | 'copy' | 'more';

/** Where the page of a thing is. */
export type ThingPage =
  | { readonly to: '/vaults/$id' | '/keys/$id' | '/endpoints/$id' | '/tde/applications/$id'; readonly id: string }
  | { readonly to: '/snapshots' | '/tde/groups' };

export interface Thing {
  readonly id: string;
  readonly kind: ThingKind;
  readonly name: string;
  /** One more fact, such as a state. */
  readonly note?: string;
  readonly page?: ThingPage;
  /** The subject of the map. */
  readonly self?: true;
}

export interface Graph {
  readonly columns: readonly { readonly title: string; readonly things: readonly Thing[] }[];
  /** Ids of things; the second one depends on the first, or contains it. */
  readonly edges: readonly (readonly [from: string, to: string])[];
}

/** More than these in one column are counted and not drawn. */
const mostShown = 12;

/** `more`: so many things, or at least so many, were not read. */
export const few = (things: readonly Thing[], what: string, more = 0): readonly Thing[] => {
  const hidden = Math.max(0, things.length - mostShown) + more;
  if (hidden === 0) return things;
  const name = `${more > 0 ? 'At least ' : ''}${hidden.toLocaleString('en')} more ${what}`;
  return [...things.slice(0, mostShown), { id: `more ${what}`, kind: 'more', name }];
};

/** Only columns with something in them, and only lines between things that are shown. */
const graphOf = (
  columns: readonly (readonly [title: string, things: readonly Thing[]])[],
  edges: readonly (readonly [string, string])[],
): Graph => {
  const ids = new Set(columns.flatMap(([, things]) => things.map(({ id }) => id)));
  return {
    columns: columns.flatMap(([title, things]) => (things.length === 0 ? [] : [{ title, things }])),
    edges: edges.filter(([from, to]) => ids.has(from) && ids.has(to)),
  };
};
const toAll = (from: string, things: readonly Thing[]): readonly (readonly [string, string])[] =>
  things.map(({ id }) => [from, id] as const);

const places: Readonly<Record<KeyCopies['items'][number]['place'], string>> = {
  database: 'Database',
  'root-key': 'Root key file',
  snapshot: 'Snapshot',
  'other-tenant': 'Copy in another tenant',
  'exported-snapshot': 'Exported snapshot',
  'service-backup': 'Backup of the service',
  'root-backup': 'Backup of the root key',
};

const copiesOf = ({ items, count }: KeyCopies): readonly Thing[] => {
  const things = items.map(
    ({ place, id, at, tenantName }): Thing => ({
      id: `copy ${place} ${id}`,
      kind: place === 'snapshot' ? 'snapshot' : 'copy',
      name: places[place],
      note: tenantName ?? at.slice(0, 10),
      ...(place === 'other-tenant' ? {} : { page: { to: '/snapshots' } }),
    }),
  );
  const hidden = count - items.filter(({ waits }) => waits).length;
  return few(things, 'copies', Math.max(0, hidden));
};

const hasFile: ReadonlySet<Snapshot['state']> = new Set(['available', 'deleted', 'missing']);
/** Snapshots of the tenant whose state is not older than the key. */
const snapshotsOf = (
  snapshots: readonly Snapshot[],
  { tenantId, createdAt: since }: { readonly tenantId: string; readonly createdAt: string },
): readonly Thing[] =>
  few(
    snapshots
      .filter((each) => each.tenantId === tenantId && hasFile.has(each.state) && each.at >= since)
      .map(({ id, at, state }) => ({
        id: `snapshot ${id}`,
        kind: 'snapshot',
        name: 'Snapshot',
        note: state === 'available' ? at.slice(0, 10) : `${at.slice(0, 10)}, ${state}`,
        page: { to: '/snapshots' },
      })),
    'snapshots',
  );

const hostsOf = (instances: readonly Pick<Instance, 'host'>[]): readonly Thing[] =>
  few(
    [...new Set(instances.map(({ host }) => host))].map((host) => ({ id: `host ${host}`, kind: 'host', name: host })),
    'hosts',
  );

const keyThing = ({ id, name, effectiveState }: Pick<Key, 'id' | 'name' | 'effectiveState'>): Thing => ({
  id: `key ${id}`,
  kind: 'key',
  name,
  ...(effectiveState === 'active' ? {} : { note: effectiveState }),
  page: { to: '/keys/$id', id },
});
const applicationThing = (id: string, name: string, note?: string): Thing => ({
  id: `application ${id}`,
  kind: 'application',
  name,
  ...(note === undefined ? {} : { note }),
  page: { to: '/tde/applications/$id', id },
});
const vaultThing = (id: string, name: string): Thing => ({
  id: `vault ${id}`,
  kind: 'vault',
  name,
  page: { to: '/vaults/$id', id },
});
const endpointThing = ({ id, name, state }: Pick<Endpoint, 'id' | 'name' | 'state'>): Thing => ({
  id: `endpoint ${id}`,
  kind: 'endpoint',
  name,
  ...(state === 'enabled' ? {} : { note: state }),
  ...(state === 'deleted' ? {} : { page: { to: '/endpoints/$id', id } }),
});

/** `radius`: of a master key, for those who may see it. */
export const graphOfKey = (
  key: Pick<Key, 'id' | 'name' | 'tenantId' | 'vaultId' | 'effectiveState' | 'createdAt'>,
  known: {
    readonly vaultName: string;
    readonly use?: KeyUse | undefined;
    readonly radius?: BlastRadius | undefined;
    readonly snapshots?: readonly Snapshot[] | undefined;
  },
): Graph => {
  const { use, radius, snapshots = [] } = known;
  const vault = vaultThing(key.vaultId, known.vaultName);
  const self: Thing = { ...keyThing(key), self: true };
  const endpoints = few((use?.endpoints ?? []).map(endpointThing), 'endpoints');
  const owner =
    radius !== undefined
      ? [applicationThing(radius.applicationId, radius.applicationName)]
      : use !== undefined && use.application !== null
        ? [applicationThing(use.application.id, use.application.name)]
        : [];
  const others = (radius?.groupApplications ?? []).map(({ id, name }) => applicationThing(id, name, 'same group'));
  const applications = few([...owner, ...others], 'applications');
  const hosts =
    radius === undefined
      ? []
      : hostsOf([...radius.instances, ...radius.groupApplications.flatMap((each) => each.instances)]);
  const hostEdges =
    radius === undefined
      ? []
      : [
          ...radius.instances.map(({ host }) => [`application ${radius.applicationId}`, `host ${host}`] as const),
          ...radius.groupApplications.flatMap(({ id, instances }) =>
            instances.map(({ host }) => [`application ${id}`, `host ${host}`] as const),
          ),
        ];
  const copies =
    use === undefined && radius === undefined ? [] : copiesOf((radius ?? use)?.copies ?? { count: 0, items: [] });
  const kept = [...snapshotsOf(snapshots, key), ...copies];
  return graphOf(
    [
      ['Vault', [vault]],
      ['Key', [self]],
      ['Used by', [...endpoints, ...applications]],
      ['Hosts', hosts],
      ['Also contained in', kept],
    ],
    [
      [vault.id, self.id],
      ...toAll(self.id, endpoints),
      ...toAll(self.id, applications),
      ...[...new Map(hostEdges.map((edge) => [edge.join('\n'), edge])).values()],
      ...toAll(self.id, kept),
    ],
  );
};

export const graphOfVault = (
  vault: Pick<Vault, 'id' | 'name' | 'tenantId' | 'createdAt'>,
  known: {
    readonly keys: readonly Key[];
    readonly hasMoreKeys: boolean;
    readonly endpoints?: readonly Endpoint[] | undefined;
    readonly applications?: readonly { readonly id: string; readonly name: string }[] | undefined;
    readonly snapshots?: readonly Snapshot[] | undefined;
    readonly copies?: readonly Copy[] | undefined;
  },
): Graph => {
  const self: Thing = { ...vaultThing(vault.id, vault.name), self: true };
  const live = known.keys.filter(({ state }) => state !== 'destroyed');
  const keys = few(live.map(keyThing), 'keys', known.hasMoreKeys ? 1 : 0);
  const own = (known.endpoints ?? []).filter(({ vaultId, state }) => vaultId === vault.id && state !== 'deleted');
  const endpoints = few(own.map(endpointThing), 'endpoints');
  const owners = new Set(live.flatMap(({ applicationId }) => (applicationId === null ? [] : [applicationId])));
  const applications = few(
    (known.applications ?? []).filter(({ id }) => owners.has(id)).map(({ id, name }) => applicationThing(id, name)),
    'applications',
  );
  const files = few(
    (known.copies ?? []).map(({ id, kind, at }) => ({
      id: `copy ${kind} ${id}`,
      kind: 'copy',
      name: places[kind],
      note: at.slice(0, 10),
      page: { to: '/snapshots' },
    })),
    'copies',
  );
  const kept = [...snapshotsOf(known.snapshots ?? [], vault), ...files];
  return graphOf(
    [
      ['Vault', [self]],
      ['Keys', keys],
      ['Used by', [...endpoints, ...applications]],
      ['Also contained in', kept],
    ],
    [
      ...toAll(self.id, keys),
      ...own.map(({ id, keyId }) => [`key ${keyId}`, `endpoint ${id}`] as const),
      ...live.map(({ id, applicationId }) => [`key ${id}`, `application ${applicationId}`] as const),
      ...toAll(self.id, kept),
    ],
  );
};

export const graphOfApplication = (
  application: { readonly id: string; readonly name: string; readonly groupId: string },
  known: {
    readonly groupName: string;
    readonly keys: readonly MasterKey[];
    readonly hasMoreKeys: boolean;
    readonly instances: readonly Instance[];
  },
): Graph => {
  const group: Thing = {
    id: `group ${application.groupId}`,
    kind: 'group',
    name: known.groupName,
    page: { to: '/tde/groups' },
  };
  const self: Thing = { ...applicationThing(application.id, application.name), self: true };
  const live = known.keys.filter(({ state }) => state !== 'destroyed');
  const keys = few(live.map(keyThing), 'keys', known.hasMoreKeys ? 1 : 0);
  const hosts = hostsOf(known.instances);
  return graphOf(
    [
      ['Group', [group]],
      ['Master keys', keys],
      ['Application', [self]],
      ['Hosts', hosts],
    ],
    [...toAll(group.id, keys), ...keys.map(({ id }) => [id, self.id] as const), ...toAll(self.id, hosts)],
  );
};
