// Long tables, filled behind a service's back: so many rows in every table that a list of the API
// shows. Their authentication codes are not valid, so they are shown as tampered; what it takes to
// list them is the same.

import { newId } from '../../server/base/ids.ts';

/** What the rows refer to. */
export interface LongTableIds {
  readonly applicationId: string;
  readonly endpointId: string;
  readonly vaultId: string;
  readonly keyId: string;
  readonly groupId: string;
}
export const longTableIds = (): LongTableIds => ({
  applicationId: newId(1),
  endpointId: newId(1),
  vaultId: newId(1),
  keyId: newId(1),
  groupId: newId(1),
});

/** What the long tables hold, as SQL: columns, and their values of the row number n. */
const longTables = (
  tenantId: string,
  padded: string,
  { applicationId, endpointId, vaultId, keyId, groupId }: LongTableIds,
): readonly (readonly [table: string, columns: string, values: string])[] => {
  const id = (prefix: string) => `'${prefix}' || ${padded}`;
  const t = `'${tenantId}'`;
  return [
    [
      'vaults',
      'id, tenant_id, name, kind, state, created_at, row_mac',
      `${id('v')}, ${t}, ${id('vault ')}, 'general', 'enabled', 1, ''`,
    ],
    [
      'tde_groups',
      'id, tenant_id, name, vault_id, created_at, row_mac',
      `${id('g')}, ${t}, ${id('group ')}, '${vaultId}', 1, ''`,
    ],
    [
      'tde_applications',
      'id, tenant_id, group_id, name, app_id, token_label, state, created_at, row_mac',
      `${id('a')}, ${t}, '${groupId}', ${id('application ')}, 'db', ${id('application ')}, 'enabled', 1, ''`,
    ],
    [
      'keys',
      'id, tenant_id, vault_id, name, kind, algorithm, bits, usages, state, current_version, created_at, application_id, tags, last_used_at, row_mac',
      `${id('k')}, ${t}, '${vaultId}', ${id('key ')}, case when n % 3 = 0 then 'master' else 'general' end, 'aes', 256, '[]', case when n % 1000 = 0 then 'destroyed' else 'active' end, 1, 1, case when n % 3 = 0 then '${applicationId}' end, case when n % 5 = 0 then '["env=prod"]' end, case when n % 1000 > 1 then n end, ''`,
    ],
    ['key_tags', 'tenant_id, tag, key_id', `${t}, case when n % 5 = 0 then 'env=prod' else 'n' || n end, ${id('k')}`],
    [
      'endpoints',
      'id, tenant_id, name, prefix, vault_id, key_id, state, settings, created_at, row_mac',
      `${id('e')}, ${t}, ${id('endpoint ')}, ${id('prefix')}, '${vaultId}', '${keyId}', 'disabled', '{}', 1, ''`,
    ],
    [
      'external_key_stores',
      'id, tenant_id, name, custom_key_store_id, region, endpoint_id, created_at, connection, looked_at, row_mac',
      `${id('x')}, ${t}, ${id('store ')}, ${id('cks-')}, 'eu-central-1', '${endpointId}', 1, '{"state":"UNKNOWN"}', 9000000000000, ''`,
    ],
    ['diagnoses', 'id, endpoint_id, at, results, request_ids', `${id('d')}, '${endpointId}', 1, '[]', '[]'`],
    [
      'runbook_runs',
      'id, tenant_id, application_id, runbook, content, started_at, started_by',
      `${id('r')}, ${t}, '${applicationId}', 'rotate', '{"title":"","release":"","containers":"","warnings":[],"steps":[]}', 1, '{"id":"a","name":"a"}'`,
    ],
    [
      'approvals',
      'id, tenant_id, kind, subject_kind, subject_id, state, requested_by, requested_at, expires_at, document, row_mac',
      `${id('p')}, ${t}, 'key.delete', 'key', '${keyId}' || (n % 1000), case when n % 1000 = 0 then 'pending' else 'rejected' end, 'a', 1, 9000000000000, '{"parameters":{},"impact":{},"rules":[],"fingerprint":"","decisions":[],"missing":0,"subjectName":"","requesterName":""}', ''`,
    ],
    [
      'snapshots',
      'id, tenant_id, origin, state, created_at, audit_size, recovery_key_ids, row_mac',
      `${id('s')}, ${t}, 'made', case when n % 1000 = 0 then 'available' else 'purged' end, 1, 1, '[]', ''`,
    ],
    [
      'outside_copies',
      'id, kind, tenant_id, snapshot_id, at, actor_id, actor_name, state_from, state_until, destroyed_at, row_mac',
      `${id('c')}, 'exported-snapshot', ${t}, ${id('s')}, 1, 'a', 'a', 1, 1, case when n % 1000 > 2 then 1 end, ''`,
    ],
    [
      'notifications',
      'id, tenant_id, kind, subject_kind, subject_id, subject_name, severity, stage, harm_at, details, raised_at, resolved_at',
      `${id('n')}, ${t}, case when n % 1000 < 2 then 'endpoint.credential-due' else 'master-key.rotation-due' end, 'key', ${id('s')}, 's', 'low', 1, n, '{}', 1, case when n % 2 = 0 then 1 end`,
    ],
    [
      'audit_events',
      'sequence, at, kind, actor_kind, actor_id, actor_name, tenant_id, subject_kind, subject_id, request_id, details, leaf_hash',
      `10000000 + n, 1700000000000 + n, case when n % 1000 = 0 then 'key.created' else 'vault.created' end, 'user', 'actor-' || (n % 1000), 'a', ${t}, 'key', 'subject-' || (n % 1000), 'request-' || n, '{}', 'x'`,
    ],
    ['audit_checkpoints', 'size, at, note', `10000000 + n, 1, 'note'`],
    [
      'api_tokens',
      'id, tenant_id, kind, name, grants, hash, created_at, row_mac',
      `${id('t')}, ${t}, 'api', ${id('token ')}, '[]', ${id('hash')}, 1, ''`,
    ],
    [
      'users',
      'id, tenant_id, name, folded_name, display_name, grants, state, must_change_password, created_at, row_mac',
      `${id('u')}, ${t}, ${id('user')}, ${id('user')}, 'User', '[]', 'active', 0, 1, ''`,
    ],
    [
      'sessions',
      'id, tenant_id, hash, holder_kind, holder_id, method, proved, created_at, used_at, expires_at, row_mac',
      `${id('o')}, ${t}, ${id('hash')}, 'user', 'user-' || (n % 1000), 'password', 1, 9000000000000, 9000000000000, 9000000000000, ''`,
    ],
    [
      'request_log',
      'at, endpoint_id, operation, status, error_name, request_id, kms_request_id, duration_ms, read_ms, auth_ms, crypto_ms',
      `1700000000000 + n, '${endpointId}', 'decrypt', 200, case when n % 1000 = 0 then 'AccessDeniedException' end, 'request-' || n, 'kms-' || n, 1, 1, 1, 1`,
    ],
  ];
};

/** How each database counts, and writes a number with six digits. */
const dialects = {
  sqlite: {
    counted: (many: number) =>
      `with recursive counted(n) as (select 1 union all select n + 1 from counted where n < ${many})`,
    padded: "printf('%06d', n)",
  },
  postgres: {
    counted: (many: number) => `with counted as (select n from generate_series(1, ${many}) as n)`,
    padded: "lpad(n::text, 6, '0')",
  },
} as const;

/** The statements that fill them, and the terms by which the keys are found. */
export const fillLongTables = (
  dialect: keyof typeof dialects,
  many: number,
  tenantId: string,
  ids: LongTableIds,
): readonly string[] => {
  const { padded } = dialects[dialect];
  const counted = dialects[dialect].counted(many);
  const { applicationId, endpointId, vaultId, keyId, groupId } = ids;
  return [
    `insert into vaults (id, tenant_id, name, kind, state, created_at, row_mac) values ('${vaultId}', '${tenantId}', 'v', 'general', 'enabled', 1, '')`,
    `insert into tde_groups (id, tenant_id, name, vault_id, created_at, row_mac) values ('${groupId}', '${tenantId}', 'g', '${vaultId}', 1, '')`,
    `insert into tde_applications (id, tenant_id, group_id, name, app_id, state, created_at, row_mac)
      values ('${applicationId}', '${tenantId}', '${groupId}', 'a', 'db', 'enabled', 1, '')`,
    `insert into keys (id, tenant_id, vault_id, name, kind, algorithm, bits, usages, state, current_version, created_at, row_mac)
      values ('${keyId}', '${tenantId}', '${vaultId}', 'k', 'general', 'aes', 256, '[]', 'active', 1, 1, '')`,
    `insert into endpoints (id, tenant_id, name, prefix, vault_id, key_id, state, settings, created_at, row_mac)
      values ('${endpointId}', '${tenantId}', 'e', 'e', '${vaultId}', '${keyId}', 'disabled', '{}', 1, '')`,
    ...longTables(tenantId, padded, ids).map(
      ([table, columns, values]) => `insert into ${table} (${columns}) ${counted} select ${values} from counted`,
    ),
    ...[
      ["'key ' ||", 'name'],
      ['', 'name'],
      ["'k' ||", 'id'],
    ].map(
      ([before, field]) =>
        `insert into search_terms (scope, kind, term, subject_id, field) ${counted}
          select '${tenantId}', 'key', ${before} ${padded}, 'k' || ${padded}, '${field}' from counted`,
    ),
  ];
};
