// What an insider could gain or end, as facts about the stored rows, read past the service: which
// credentials work, which keys can be used and by what, who has which role, which rule protects
// what. Two readings are compared; what differs must be within the model.

import type { Grant } from '../../server/domain/access.ts';
import type { Effect } from './insider-model.ts';
import type { StoredRows } from './test-store.ts';

export interface Fact {
  /** Effects of which one explains that it came about. */
  readonly gain: readonly Effect[];
  /** Effects of which one explains that the fact ended. */
  readonly loss: readonly Effect[];
  readonly tenantId: string | null;
  /** When it ends on its own; null: never. Of tokens. */
  readonly until?: number | null;
  /** The vaults whose dual control has a say before it ends. */
  readonly governed?: readonly string[];
  /** Whatever actions their rules name. */
  readonly byAnyRule?: true;
}
export type Facts = ReadonlyMap<string, Fact>;

/**
 * Facts of these tenants, and of the platform's resources that were created since `since` (an id).
 */
export interface Extent {
  readonly tenants: readonly string[];
  readonly since: string;
}

type Row = Readonly<Record<string, unknown>>;

export const readFacts = async ({ query }: StoredRows, { tenants, since }: Extent): Promise<Facts> => {
  const facts = new Map<string, Fact>();
  const marks = tenants.map(() => '?').join(', ');
  const own = `tenant_id in (${marks})`;
  const read = (table: string, columns: string, where = own): Promise<readonly Row[]> =>
    query(`select ${columns} from ${table} where ${where}`, ...tenants);
  const readShared = (table: string, columns: string): Promise<readonly Row[]> =>
    query(`select ${columns} from ${table} where ${own} or (tenant_id is null and id >= ?)`, ...tenants, since);
  const add = (id: string, tenantId: unknown, gain: readonly Effect[], loss = gain, more: Partial<Fact> = {}): void => {
    facts.set(id, { gain, loss, tenantId: tenantId as string | null, ...more });
  };

  for (const { id, name, state } of await read('tenants', 'id, name, state', `id in (${marks})`)) {
    add(`tenant ${id} is called ${name}`, id, ['tenant']);
    if (state === 'active') add(`tenant ${id} is open`, id, ['tenant']);
    if (state !== 'deleted' && state !== 'purged') add(`tenant ${id} is kept`, id, ['tenant']);
    if (state !== 'purged') add(`tenant ${id} is there`, id, ['tenant'], ['purge']);
  }
  const vaults = await read('vaults', 'id, tenant_id, name, kind, state, dual_control');
  for (const { id, tenant_id, name, kind, state, dual_control } of vaults) {
    // A group has its own vault.
    const gain: readonly Effect[] = kind === 'tde' ? ['key', 'connect'] : ['key'];
    const governed = dual_control === null ? [] : [String(id)];
    if (state === 'enabled') add(`vault ${id} is enabled`, tenant_id, gain, ['end-key']);
    if (state !== 'deleted') {
      add(`vault ${id} is kept`, tenant_id, gain, ['end-key'], { governed });
      add(`vault ${id} is called ${name}`, tenant_id, gain, [...gain, 'end-key'], { governed, byAnyRule: true });
    }
    if (dual_control !== null) add(`vault ${id} has the rule ${dual_control}`, tenant_id, ['rule']);
  }
  const ruleOf = new Map(vaults.map(({ id, dual_control }) => [id, dual_control !== null]));
  for (const row of await read('keys', 'id, tenant_id, vault_id, kind, state, current_version')) {
    const { id, tenant_id, vault_id, kind, state } = row;
    const governed = ruleOf.get(vault_id) === true ? [String(vault_id)] : [];
    if (state === 'active') add(`key ${id} can be used`, tenant_id, ['key'], ['end-key', 'destroy', 'purge']);
    if (state !== 'destroyed') {
      add(`key ${id} is there`, tenant_id, ['key'], ['destroy', 'purge'], { governed });
      add(`key ${id} has version ${row.current_version}`, tenant_id, ['key'], ['key', 'destroy', 'purge']);
      if (state !== 'soft-deleted')
        add(`key ${id} is kept`, tenant_id, ['key'], ['end-key', 'destroy', 'purge'], {
          governed: kind === 'general' ? governed : [],
        });
    }
    if (kind === 'master') add(`key ${id} is in vault ${vault_id}`, tenant_id, ['connect'], ['connect'], { governed });
  }
  for (const { id, tenant_id } of await read('tde_groups', 'id, tenant_id')) add(`group ${id}`, tenant_id, ['connect']);
  for (const row of await read('tde_applications', 'id, tenant_id, group_id, state, compatibility, callers')) {
    add(`application ${row.id} is in group ${row.group_id}`, row.tenant_id, ['connect']);
    add(`application ${row.id} may use ${row.compatibility ?? 'nothing weak'}`, row.tenant_id, ['connect']);
    add(`application ${row.id} is used from ${row.callers ?? 'anywhere'}`, row.tenant_id, ['connect']);
    if (row.state === 'enabled') add(`application ${row.id} is enabled`, row.tenant_id, ['connect']);
  }
  const guids = `removed_at is null and application_id in (select id from tde_applications where ${own})`;
  const groups = new Map((await read('tde_groups', 'id, vault_id')).map(({ id, vault_id }) => [id, vault_id]));
  const applications = await read('tde_applications', 'id, group_id');
  const vaultOf = new Map(applications.map(({ id, group_id }) => [id, groups.get(group_id)]));
  const refusing = new Set(
    vaults.filter(({ dual_control }) => String(dual_control).includes('"databases":"refused"')).map(({ id }) => id),
  );
  for (const { id, application_id } of await read('access_guids', 'id, application_id', guids)) {
    const vault = vaultOf.get(application_id);
    add(`access_guid ${id} of ${application_id} works`, tenants[0], ['credential']);
    add(
      `access_guid ${id} uses keys of ${vault}`,
      tenants[0],
      ['use-as-database', 'connect'],
      ['credential', 'connect'],
    );
    if (!refusing.has(vault))
      add(
        `access_guid ${id} destroys keys of ${vault}`,
        tenants[0],
        ['destroy-as-database', 'connect', 'rule'],
        ['credential', 'connect', 'rule'],
      );
  }
  for (const row of await read('endpoints', 'id, tenant_id, key_id, state, settings')) {
    add(`endpoint ${row.id} leads to key ${row.key_id} by ${row.settings}`, row.tenant_id, ['connect']);
    if (row.state === 'enabled') add(`endpoint ${row.id} is enabled`, row.tenant_id, ['connect']);
  }
  const credentials = `endpoint_id in (select id from endpoints where state <> 'deleted' and ${own})`;
  for (const { id, endpoint_id } of await read('endpoint_credentials', 'id, endpoint_id', credentials))
    add(`credential ${id} of ${endpoint_id} works`, tenants[0], ['credential'], ['credential', 'connect']);
  for (const { id, tenant_id } of await read('external_key_stores', 'id, tenant_id'))
    add(`external key store ${id}`, tenant_id, ['connect']);

  for (const row of await readShared('api_tokens', 'id, tenant_id, grants, expires_at, revoked_at, owner_id')) {
    if (row.revoked_at !== null) continue;
    const more = { until: row.expires_at as number | null };
    const gain: readonly Effect[] = row.owner_id === null ? ['give'] : ['own'];
    // Everyone may end their own.
    for (const grant of JSON.parse(String(row.grants)) as Grant[])
      add(
        `token ${row.id}${row.owner_id === null ? '' : ` of ${row.owner_id}`} has ${JSON.stringify(grant)}`,
        row.tenant_id,
        gain,
        ['give', 'own'],
        more,
      );
  }
  const userColumns = 'id, tenant_id, grants, state, password, subject, invitation_hash';
  for (const row of await readShared('users', userColumns)) {
    if (row.state !== 'active') continue;
    for (const grant of JSON.parse(String(row.grants)) as Grant[])
      add(`user ${row.id} has ${JSON.stringify(grant)}`, row.tenant_id, ['enrol'], ['give', 'enrol']);
    if (row.subject !== null)
      add(`user ${row.id} signs in as ${row.subject}`, row.tenant_id, ['enrol'], ['give', 'enrol']);
    if (row.invitation_hash !== null)
      add(`user ${row.id} is invited by ${row.invitation_hash}`, row.tenant_id, ['enrol'], ['give', 'enrol', 'own']);
    if (row.password !== null)
      add(`user ${row.id} has ${row.password}`, row.tenant_id, ['own', 'enrol'], ['give', 'enrol', 'own']);
  }

  for (const { id, tenant_id, state } of await read('snapshots', 'id, tenant_id, state'))
    if (state === 'available') add(`snapshot ${id}`, tenant_id, ['snapshot', 'restore'], ['snapshot']);
  for (const { id, destroyed_at } of await read('outside_copies', 'id, destroyed_at')) {
    add(`export ${id}`, tenants[0], ['export']);
    if (destroyed_at !== null) add(`export ${id} is destroyed`, tenants[0], ['snapshot']);
  }
  for (const { id } of await query('select id from recovery_keys where removed_at is null'))
    add(`recovery key ${id}`, null, ['recovery-key']);
  for (const { id, tenant_id, document } of await read('approvals', 'id, tenant_id, document')) {
    const { decisions } = JSON.parse(String(document)) as {
      decisions: readonly { by: { id: string }; decision: string }[];
    };
    for (const { by, decision } of decisions) add(`request ${id}: ${decision} by ${by.id}`, tenant_id, ['decide']);
  }
  for (const { id, tenant_id } of await read(
    'notifications',
    'id, tenant_id',
    `acknowledged_at is not null and ${own}`,
  ))
    add(`notification ${id} is hidden`, tenant_id, ['inbox']);
  return facts;
};

export interface Difference {
  readonly what: string;
  readonly how: 'gained' | 'lost';
  readonly fact: Fact;
}
export const differencesOf = (before: Facts, after: Facts): readonly Difference[] => {
  const found: Difference[] = [];
  for (const [what, fact] of after) if (!before.has(what)) found.push({ what, how: 'gained', fact });
  for (const [what, fact] of before) if (!after.has(what)) found.push({ what, how: 'lost', fact });
  return found;
};
/** Effects of which one explains the difference. */
export const effectsOf = ({ how, fact }: Difference): readonly Effect[] => (how === 'gained' ? fact.gain : fact.loss);
