// XKS endpoints, their credentials, diagnoses and latencies.

import { canonicalJson } from '../../../../base/bytes.ts';
import {
  defaultSettings,
  type Endpoint,
  type EndpointCredential,
  type EndpointSettings,
} from '../../../../domain/endpoint.ts';
import type { Integrity } from '../../../../domain/vault.ts';
import { recordAttributes } from '../../../../ports/key-record.ts';
import type { StoredDiagnosis } from '../../../../ports/xks-repositories.ts';
import { readDocument } from '../documents.ts';
import { membersOf } from './members.ts';
import { noted, whenEnabled } from './reactivates.ts';
import {
  besideThings,
  day,
  integer,
  long,
  plainTable,
  policyTable,
  type RowOf,
  rowMac,
  rowVersion,
  stateOf,
  text,
} from './table.ts';

export const endpointsTables = {
  endpoints: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text({ of: 'tenants' }),
      name: text(),
      prefix: text({ unique: true }),
      vault_id: text({ of: 'vaults' }),
      key_id: text({ of: 'keys' }),
      state: text(),
      settings: text(),
      created_at: long(),
      row_mac: rowMac,
      /** When its key was last used through it. */
      last_used_at: long({ null: true }),
      row_version: rowVersion,
    },
    indexes: [
      { name: 'endpoints_by_key', columns: ['key_id'] },
      { name: 'endpoints_of_tenant', columns: ['tenant_id', 'id'] },
    ],
    beside: { last_used_at: 'a mark of use' },
    snapshots: {
      marks: ['last_used_at'],
      fixed: [],
      beside: 'copied',
      existing: 'replaced',
      reactivates: whenEnabled('endpoint', ['settings', 'vault_id', 'key_id']),
    },
    purge: 'by a step',
    search: { kind: 'endpoint', terms: { name: 'name', prefix: 'prefix' }, state: stateOf, deleted: 'deleted' },
    statistics: { counted: 'endpoints', where: () => `"state" = 'enabled'` },
    records: 'none',
    pruned: { never: 'tombstones' },
    copied: 'for trials, too',
    changes: 'told',
  }),
  endpoint_credentials: policyTable({
    columns: {
      id: text({ key: true }),
      endpoint_id: text({ of: 'endpoints' }),
      access_key_id: text({ unique: true, to: 'its own name' }),
      created_at: long(),
      last_used_at: long({ null: true }),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    indexes: [{ name: 'endpoint_credentials_by_endpoint', columns: ['endpoint_id'] }],
    beside: { last_used_at: 'a mark of use' },
    snapshots: {
      marks: ['last_used_at'],
      fixed: ['access_key_id', 'endpoint_id', 'created_at'],
      beside: { not: 'names one place in the world' },
      existing: 'replaced',
      reactivates: (row, before) => [{ ...noted('credential', row, before), name: String(row.access_key_id) }],
    },
    records: {
      classes: ['endpoint-secret'],
      each: { tenant: 'endpoint_id' },
      attributes: ({ access_key_id: id }) => recordAttributes.credential(String(id)),
    },
    purge: 'by a step',
    search: { as: 'endpoint_id', by: 'access_key_id', field: 'access-key-id' },
    statistics: { none: 'its endpoint is counted' },
    pruned: { by: 'who replaces it' },
    copied: 'for trials, too',
    changes: 'told',
  }),
  diagnoses: plainTable({
    ...besideThings,
    columns: {
      id: text({ key: true }),
      endpoint_id: text({ of: 'endpoints' }),
      at: long(),
      results: text(),
      request_ids: text(),
    },
    indexes: [{ name: 'diagnoses_by_endpoint', columns: ['endpoint_id', 'id'] }],
    unauthenticated: 'results for people',
    snapshots: { without: 'results of their day' },
    purge: { removed: 'endpoint_id', of: 'endpoints' },
    pruned: { past: { at: 90 * day } },
  }),
  /** Figures by the minute. */
  xks_latency: plainTable({
    ...besideThings,
    columns: {
      minute: integer(),
      endpoint_id: text({ to: 'an endpoint that may be gone' }),
      node: text(),
      counts: text(),
      errors: integer(),
    },
    primaryKey: { name: 'xks_latency_key', columns: ['minute', 'endpoint_id', 'node'] },
    unauthenticated: 'figures',
    snapshots: { without: 'figures of their day' },
    purge: { removed: 'endpoint_id', of: 'endpoints' },
    pruned: { past: { minute: 8 * day }, unitMs: 60_000 },
  }),
};

type Row<T extends keyof typeof endpointsTables> = RowOf<(typeof endpointsTables)[T]>;

/**
 * Settings in a tampered row may be no JSON at all; such a row is refused by its integrity, so the
 * defaults do.
 */
const parseSettings = (text: string): EndpointSettings => {
  try {
    return { ...defaultSettings, ...(JSON.parse(text) as EndpointSettings) };
  } catch {
    return defaultSettings;
  }
};

const endpointMembers = membersOf<Endpoint>()(endpointsTables.endpoints, 'settings', 'last_used_at');

/** Without the time of its use, which is not policy and is written on its own. */
export const endpointRow = (endpoint: Endpoint) => ({
  ...endpointMembers.toRow(endpoint),
  settings: canonicalJson(endpoint.settings),
});

export const toEndpoint = (
  row: Row<'endpoints'>,
  credentials: readonly EndpointCredential[],
  integrity: Integrity,
): Endpoint => ({
  ...endpointMembers.fromRow(row),
  settings: parseSettings(row.settings),
  credentials,
  integrity,
});

const credentialMembers = membersOf<EndpointCredential>()(endpointsTables.endpoint_credentials);

export const credentialRow = credentialMembers.toRow;

export const toCredential = credentialMembers.fromRow;

export const diagnosisRow = (diagnosis: StoredDiagnosis) => ({
  id: diagnosis.id,
  endpoint_id: diagnosis.endpointId,
  at: diagnosis.at,
  results: JSON.stringify(diagnosis.results),
  request_ids: JSON.stringify(diagnosis.requestIds),
});

const resultExample = { id: '', layer: '', title: '', state: '', evidence: '' };

export const toDiagnosis = (row: Row<'diagnoses'>): StoredDiagnosis => ({
  id: row.id,
  endpointId: row.endpoint_id,
  at: row.at,
  results: readDocument<StoredDiagnosis['results']>(row.results, [resultExample], []),
  requestIds: readDocument<StoredDiagnosis['requestIds']>(row.request_ids, [''], []),
});
