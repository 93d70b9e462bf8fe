// Vaults.

import { canonicalJson } from '../../../../base/bytes.ts';
import type { DualControlRule } from '../../../../domain/dual-control.ts';
import type { Integrity, Vault } from '../../../../domain/vault.ts';
import { same } from '../../../../ports/tenant-rows.ts';
import { membersOf } from './members.ts';
import { becomes, noted } from './reactivates.ts';
import { long, policyTable, type RowOf, rowMac, rowVersion, stateOf, text } from './table.ts';

export const vaultsTables = {
  vaults: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text({ of: 'tenants' }),
      name: text(),
      kind: text(),
      state: text(),
      created_at: long(),
      row_mac: rowMac,
      /** Canonical JSON of the rule; null: none. */
      dual_control: text({ null: true }),
      /** How often its keys are to be rotated. */
      profile: text({ default: 'standard' }),
      row_version: rowVersion,
    },
    indexes: [
      { name: 'vaults_by_name', columns: ['tenant_id', 'name'] },
      { name: 'vaults_of_tenant', columns: ['tenant_id', 'id'] },
    ],
    beside: {},
    snapshots: {
      marks: [],
      fixed: ['kind', 'created_at'],
      beside: 'copied',
      existing: 'replaced',
      reactivates: (row, before) => [
        // A new vault lets no caller use anything on its own.
        ...(before !== undefined && becomes('enabled', row, before) ? [noted('vault', row, before)] : []),
        ...(same(row.dual_control, before?.dual_control) ? [] : [noted('dual-control', row, before, 'changed')]),
      ],
    },
    purge: 'by a step',
    search: { kind: 'vault', terms: { name: 'name' }, state: stateOf },
    statistics: { counted: 'vaults', where: () => `"state" != 'deleted'` },
    records: 'none',
    pruned: { never: 'tombstones' },
    copied: 'for trials, too',
    changes: 'told',
  }),
};

type Row<T extends keyof typeof vaultsTables> = RowOf<(typeof vaultsTables)[T]>;

/** A rule of another form is in a tampered row, which is refused. */
export const parseRule = (text: string | null): DualControlRule | null => {
  try {
    const rule = text === null ? null : (JSON.parse(text) as DualControlRule);
    const approvers: unknown = rule?.approvers ?? [];
    return Array.isArray(approvers) && approvers.every((each) => typeof each === 'string') ? rule : null;
  } catch {
    return null;
  }
};

const members = membersOf<Vault>()(vaultsTables.vaults, 'dual_control');

export const vaultRow = (vault: Vault) => ({
  ...members.toRow(vault),
  dual_control: vault.dualControl === null ? null : canonicalJson({ ...vault.dualControl }),
});

export const toVault = (row: Row<'vaults'>, integrity: Integrity): Vault => ({
  ...members.fromRow(row),
  dualControl: parseRule(row.dual_control),
  integrity,
});
