// TDE groups and applications, their credentials, and the database instances that use them.

import { canonicalJson } from '../../../../base/bytes.ts';
import type { CompatibilitySwitch } from '../../../../base/compatibility-switches.ts';
import {
  type ApplicationCallers,
  anyCaller,
  type Instance,
  isAnyCaller,
  type TdeApplication,
  type TdeGroup,
} from '../../../../domain/tde.ts';
import type { Integrity } from '../../../../domain/vault.ts';
import type { StoredAccessGuid } from '../../../../ports/tde-repositories.ts';
import { membersOf } from './members.ts';
import { noted, whenEnabled } from './reactivates.ts';
import { besideThings, long, plainTable, policyTable, type RowOf, rowMac, rowVersion, stateOf, text } from './table.ts';
import { parseTags } from './values.ts';

export const applicationsTables = {
  tde_groups: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text({ of: 'tenants' }),
      name: text(),
      vault_id: text({ of: 'vaults' }),
      created_at: long(),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    unique: { name: 'tde_groups_name', columns: ['tenant_id', 'name'] },
    indexes: [{ name: 'tde_groups_of_tenant', columns: ['tenant_id', 'id'] }],
    beside: {},
    snapshots: {
      marks: [],
      fixed: [],
      beside: 'copied',
      existing: 'replaced',
      reactivates: { nothing: 'a name, and where its keys are' },
    },
    purge: { kept: 'the tombstones of its keys are of it' },
    search: { kind: 'group', terms: { name: 'name' }, state: null },
    statistics: { none: 'its applications are counted' },
    records: 'none',
    pruned: { never: 'its keys are of it' },
    copied: 'for trials, too',
    changes: { not: 'read at each use' },
  }),
  tde_applications: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text({ of: 'tenants' }),
      group_id: text({ of: 'tde_groups' }),
      name: text(),
      app_id: text({ to: 'what the program calls itself' }),
      state: text(),
      created_at: long(),
      row_mac: rowMac,
      /** Canonical JSON; null: none. */
      compatibility: text({ null: true }),
      row_version: rowVersion,
      /** Canonical JSON; null: any. */
      callers: text({ null: true }),
      token_label: text({ default: '' }),
    },
    unique: { name: 'tde_applications_name', columns: ['tenant_id', 'name'] },
    indexes: [
      { name: 'tde_applications_by_group', columns: ['group_id', 'id'] },
      { name: 'tde_applications_of_tenant', columns: ['tenant_id', 'id'] },
      { name: 'tde_applications_token_label', columns: ['tenant_id', 'token_label'], unique: true },
    ],
    plans: { tde_applications_by_scope: "coalesce(tenant_id, '')" },
    codeWhenSet: { compatibility: /^\[/, callers: /^\{/ },
    codeUnlessSame: { token_label: 'name' },
    beside: {},
    snapshots: {
      marks: [],
      fixed: ['token_label'],
      beside: 'copied',
      existing: 'replaced',
      reactivates: whenEnabled('application', ['group_id', 'compatibility', 'callers']),
    },
    purge: 'by a step',
    search: { kind: 'application', terms: { name: 'name', app_id: 'app-id' }, state: stateOf },
    statistics: { counted: 'applications', where: () => `"state" = 'enabled'` },
    records: 'none',
    pruned: { never: 'its keys are of it' },
    copied: 'for trials, too',
    changes: 'told',
  }),
  access_guids: policyTable({
    ...besideThings,
    columns: {
      id: text({ key: true }),
      application_id: text({ of: 'tde_applications' }),
      hash: text({ unique: true }),
      created_at: long(),
      removed_at: long({ null: true }),
      last_used_at: long({ null: true }),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    indexes: [{ name: 'access_guids_by_application', columns: ['application_id'] }],
    beside: { last_used_at: 'a mark of use' },
    snapshots: {
      marks: ['last_used_at'],
      fixed: ['hash', 'application_id', 'created_at'],
      beside: { not: 'names one place in the world' },
      existing: 'replaced',
      reactivates: (row, before) =>
        row.removed_at === null && (before === undefined || before.removed_at !== null)
          ? [{ ...noted('access-guid', row, before), application: String(row.application_id) }]
          : [],
    },
    purge: 'by a step',
    pruned: { never: 'says until when it was used' },
    copied: 'for trials, too',
    changes: 'told',
  }),
  instances: plainTable({
    ...besideThings,
    columns: {
      id: text({ key: true }),
      application_id: text({ of: 'tde_applications' }),
      access_guid_id: text({ of: 'access_guids' }),
      app_id: text({ to: 'what the program calls itself' }),
      host: text(),
      process: text(),
      os_user: text(),
      library_version: text(),
      agent_version: text(),
      pid: long(),
      first_used_at: long(),
      last_used_at: long(),
      uses: long(),
    },
    unique: { name: 'instances_identity', columns: ['access_guid_id', 'app_id', 'host', 'process', 'os_user'] },
    indexes: [{ name: 'instances_by_application', columns: ['application_id', 'last_used_at'] }],
    unauthenticated: 'marks of use',
    snapshots: {
      marks: ['library_version', 'agent_version', 'pid', 'last_used_at', 'uses'],
      fixed: [],
      beside: { not: 'names one place in the world' },
      existing: 'kept',
      reactivates: { nothing: 'marks of use' },
    },
    purge: { removed: 'application_id', of: 'tde_applications' },
    pruned: { by: 'the number that an application may have' },
    copied: 'for trials, too',
  }),
};

type Row<T extends keyof typeof applicationsTables> = RowOf<(typeof applicationsTables)[T]>;

/** Only a tampered row, which is refused, has anything else here. */
const parseCallers = (text: string | null): ApplicationCallers => {
  try {
    if (text === null) return anyCaller;
    const { networks, certificates } = JSON.parse(text) as Partial<ApplicationCallers>;
    return Array.isArray(networks) && Array.isArray(certificates) ? { networks, certificates } : anyCaller;
  } catch {
    return anyCaller;
  }
};

const groupMembers = membersOf<TdeGroup>()(applicationsTables.tde_groups);

export const groupRow = groupMembers.toRow;

export const toGroup = (row: Row<'tde_groups'>, integrity: Integrity): TdeGroup => ({
  ...groupMembers.fromRow(row),
  integrity,
});

const applicationMembers = membersOf<TdeApplication>()(applicationsTables.tde_applications, 'compatibility', 'callers');

export const applicationRow = (application: TdeApplication) => ({
  ...applicationMembers.toRow(application),
  compatibility: application.compatibility.length === 0 ? null : canonicalJson(application.compatibility),
  callers: isAnyCaller(application.callers) ? null : canonicalJson({ ...application.callers }),
});

export const toApplication = (row: Row<'tde_applications'>, integrity: Integrity): TdeApplication => ({
  ...applicationMembers.fromRow(row),
  compatibility: parseTags(row.compatibility) as readonly CompatibilitySwitch[],
  callers: parseCallers(row.callers),
  integrity,
});

const accessGuidMembers = membersOf<StoredAccessGuid>()(applicationsTables.access_guids);

export const accessGuidRow = accessGuidMembers.toRow;

export const toAccessGuid = (row: Row<'access_guids'>, integrity: Integrity): StoredAccessGuid => ({
  ...accessGuidMembers.fromRow(row),
  integrity,
});

const instanceMembers = membersOf<Instance>()(applicationsTables.instances);

export const instanceRow = instanceMembers.toRow;

export const toInstance = instanceMembers.fromRow;
