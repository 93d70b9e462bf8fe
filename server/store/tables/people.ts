// Users, their factors and sessions, sign-ins under way, and attempts that failed.

import { integer, long, plainTable, policyTable, rowMac, rowVersion, text } from './table.ts';

export const peopleTables = {
  users: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text({ of: 'tenants', null: true }),
      name: text(),
      /** Null when deleted. */
      folded_name: text({ unique: true, null: true }),
      display_name: text(),
      email: text({ null: true }),
      grants: text(),
      state: text(),
      password: text({ null: true }),
      password_changed_at: long({ null: true }),
      must_change_password: integer(),
      subject: text({ unique: true, null: true }),
      invitation_hash: text({ unique: true, null: true }),
      invited_until: long({ null: true }),
      created_at: long(),
      last_sign_in_at: long({ null: true }),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    indexes: [{ name: 'users_by_tenant', columns: ['tenant_id', 'id'] }],
    beside: { last_sign_in_at: 'a mark of use' },
    snapshots: { without: "the service's own: they do not come back with a tenant" },
    purge: 'by a step',
  }),
  user_factors: policyTable({
    columns: {
      id: text({ key: true }),
      user_id: text({ of: 'users' }),
      kind: text(),
      name: text(),
      data: text(),
      counter: long(),
      confirmed_at: long({ null: true }),
      created_at: long(),
      last_used_at: long({ null: true }),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    indexes: [{ name: 'user_factors_by_user', columns: ['user_id', 'id'] }],
    code: ['id', 'user_id', 'kind', 'name', 'data', 'confirmed_at', 'created_at', 'counter'],
    codeSinceVersions: ['counter'],
    records: { classes: ['second-factor'], each: { tenant: 'the service', where: `"kind" = 'totp'` } },
    beside: { last_used_at: 'a mark of use' },
    snapshots: { without: "the service's own: they do not come back with a tenant" },
    purge: 'by a step',
  }),
  sessions: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text({ of: 'tenants', null: true }),
      hash: text({ unique: true }),
      holder_kind: text(),
      holder_id: text(),
      method: text(),
      proved: integer(),
      created_at: long(),
      used_at: long(),
      expires_at: long(),
      peer: text({ null: true }),
      agent: text({ null: true }),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    indexes: [
      { name: 'sessions_by_tenant', columns: ['tenant_id', 'id'] },
      { name: 'sessions_by_holder', columns: ['holder_id', 'id'] },
    ],
    // Written once a minute for each session that is used, and not under the code: that would be a
    // new version of the policy rows each time. It only ends a session earlier than `expires_at`,
    // which is under the code: a writer of the database who moves it keeps an idle session until
    // then, at most.
    beside: { used_at: 'a mark of use, which ends it before its time' },
    snapshots: { without: "the service's own: they do not come back with a tenant" },
    purge: 'by a step',
  }),
  sign_in_attempts: plainTable({
    columns: {
      hash: text({ key: true }),
      kind: text(),
      user_id: text({ null: true }),
      data: text(),
      expires_at: long(),
    },
    unauthenticated: 'digests of what only the other party has',
    snapshots: { without: 'of their minute' },
    purge: { kept: 'for minutes' },
  }),
  sign_in_failures: plainTable({
    columns: {
      id: text({ key: true }),
      failures: integer(),
      failed_at: long(),
      locked_until: long({ null: true }),
    },
    unauthenticated: 'counters',
    snapshots: { without: 'of their day' },
    purge: { kept: 'for days, without a name' },
  }),
};
