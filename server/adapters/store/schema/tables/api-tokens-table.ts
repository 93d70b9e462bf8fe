// API tokens.

import { canonicalJson } from '../../../../base/bytes.ts';
import type { Grant } from '../../../../domain/access.ts';
import type { Integrity } from '../../../../domain/vault.ts';
import type { StoredToken } from '../../../../ports/store.ts';
import { membersOf } from './members.ts';
import { long, policyTable, type RowOf, rowMac, rowVersion, text } from './table.ts';

export const apiTokensTables = {
  api_tokens: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text({ of: 'tenants', null: true }),
      kind: text(),
      name: text(),
      grants: text(),
      hash: text({ unique: true }),
      created_at: long(),
      expires_at: long({ null: true }),
      revoked_at: long({ null: true }),
      last_used_at: long({ null: true }),
      row_mac: rowMac,
      /** The user whose token it is; null: the service's. */
      owner_id: text({ null: true, to: 'a person' }),
      row_version: rowVersion,
      /** Who acts by it: the user who made it, or the token itself. Null: of an earlier version. */
      person_id: text({ null: true, to: 'who acts by it' }),
    },
    codeSinceLayout: { person_id: 3 },
    indexes: [{ name: 'api_tokens_of_tenant', columns: ['tenant_id', 'id'] }],
    beside: { last_used_at: 'a mark of use' },
    snapshots: { without: "the service's own: they do not come back with a tenant" },
    purge: 'by a step',
    search: {
      kind: 'token',
      terms: { name: 'name' },
      state: ({ revoked_at: at }) => (at === null ? 'active' : 'revoked'),
      everywhere: true,
    },
    statistics: {
      counted: 'tokens',
      where: (now) => `"revoked_at" is null and ("expires_at" is null or "expires_at" > ${now})`,
    },
    records: 'none',
    pruned: { never: 'tells who has acted' },
    copied: 'with the store',
    changes: { not: 'read at each use' },
  }),
};

type Row<T extends keyof typeof apiTokensTables> = RowOf<(typeof apiTokensTables)[T]>;

/** A row that was changed from outside gives no roles, whatever is in it. */
export const parseGrants = (text: string, integrity: Integrity): readonly Grant[] =>
  integrity === 'ok' ? (JSON.parse(text) as readonly Grant[]) : [];

const members = membersOf<StoredToken>()(apiTokensTables.api_tokens, 'grants');

export const tokenRow = (token: StoredToken) => ({
  ...members.toRow(token),
  grants: canonicalJson(token.grants),
});

export const toToken = (row: Row<'api_tokens'>, integrity: Integrity): StoredToken => ({
  ...members.fromRow(row),
  grants: parseGrants(row.grants, integrity),
  integrity,
});
