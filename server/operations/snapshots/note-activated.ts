// What a restore creates, reactivates or changes of that which decides who may use keys: rows that let a caller use them, attributes that protect
// them, and rules about who must agree. The person who restores is told, and an approval may be required.

import { refusalOfState } from '../../domain/key-policy.ts';
import type { SnapshotRow } from '../../ports/snapshot-archive.ts';
import type { TenantTable } from '../../ports/tenant-rows.ts';
import { nameFromLabel } from '../shared/names.ts';
import { type Activated, differIn, type RunningRestore, same } from './running-restore.ts';

/** What decides what a token object may be used for, and whether its value may leave. */
const protection = ['usages', 'sensitive', 'extractable', 'attributes', 'wrapped_sensitive', 'rules'] as const;

const isUsable = ({ kind, state, disabled_at: disabledAt }: SnapshotRow): boolean =>
  refusalOfState({ kind, state, disabledAt } as Parameters<typeof refusalOfState>[0]) === null;

/** `before`: the row that is here; undefined: there is none. */
export const noteActivated = (
  { activated, applications }: Pick<RunningRestore, 'activated' | 'applications'>,
  table: TenantTable,
  row: SnapshotRow,
  before: SnapshotRow | undefined,
): void => {
  const change = before === undefined ? 'created' : 'reactivated';
  const note = (kind: Activated['kind'], name: SnapshotRow[string] | undefined, how: Activated['change'] = change) =>
    activated.push({ kind, change: how, id: String(row.id), name: String(name) });
  const becomes = (state: string): boolean => row.state === state && before?.state !== state;
  const differs = (...columns: readonly string[]): boolean => before !== undefined && differIn(columns, row, before);
  if (table === 'tde_applications' && becomes('enabled')) note('application', row.name);
  else if (table === 'tde_applications' && differs('group_id', 'compatibility', 'callers'))
    note('application', row.name, 'changed');
  if (table === 'access_guids' && row.removed_at === null && (before === undefined || before.removed_at !== null))
    note('access-guid', applications.get(String(row.application_id)) ?? row.application_id);
  if (table === 'endpoints' && becomes('enabled')) note('endpoint', row.name);
  else if (table === 'endpoints' && differs('settings', 'vault_id', 'key_id')) note('endpoint', row.name, 'changed');
  if (table === 'endpoint_credentials') note('credential', row.access_key_id);
  // A new vault or key lets no caller use anything on its own.
  if (table === 'vaults' && before !== undefined && becomes('enabled')) note('vault', row.name);
  // A soft-deleted master key is not among them: its database has gone on using it.
  if (table === 'keys' && before !== undefined && !isUsable(before) && isUsable(row)) note('key', row.name);
  // Attributes that have become stricter since: what they protect against would be possible again.
  if (table === 'tde_objects' && row.destroyed_at === null && differs(...protection))
    note('token-object', nameFromLabel(String(row.label)), 'changed');
  if (table === 'vaults' && !same(row.dual_control, before?.dual_control))
    note('dual-control', row.name, before === undefined ? 'created' : 'changed');
};
