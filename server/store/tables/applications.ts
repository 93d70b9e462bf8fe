// TDE groups and applications, their credentials, and the database instances that use them.

import { canonicalJson } from '../../base/bytes.ts';
import type { CompatibilitySwitch } from '../../base/compatibility.ts';
import {
  type ApplicationCallers,
  type ApplicationState,
  anyCaller,
  type Instance,
  isAnyCaller,
  type TdeApplication,
  type TdeGroup,
} from '../../domain/tde.ts';
import type { Integrity } from '../../domain/vault.ts';
import type { StoredAccessGuid } from '../../ports/tde-repositories.ts';
import { long, plainTable, policyTable, type RowOf, rowMac, rowVersion, text } from './table.ts';
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
    code: ['id', 'tenant_id', 'name', 'vault_id', 'created_at'],
    beside: {},
    snapshots: { marks: [] },
  }),
  tde_applications: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text({ of: 'tenants' }),
      group_id: text({ of: 'tde_groups' }),
      name: text(),
      app_id: text(),
      state: text(),
      created_at: long(),
      row_mac: rowMac,
      /** Canonical JSON; null: none. */
      compatibility: text({ null: true }),
      row_version: rowVersion,
      /** Canonical JSON; null: any. */
      callers: text({ null: true }),
    },
    unique: { name: 'tde_applications_name', columns: ['tenant_id', 'name'] },
    indexes: [
      { name: 'tde_applications_by_group', columns: ['group_id', 'id'] },
      { name: 'tde_applications_of_tenant', columns: ['tenant_id', 'id'] },
    ],
    statistics: { tde_applications_by_scope: "coalesce(tenant_id, '')" },
    code: ['id', 'tenant_id', 'group_id', 'name', 'app_id', 'state', 'created_at', 'compatibility', 'callers'],
    codeWhenSet: ['compatibility', 'callers'],
    beside: {},
    snapshots: { marks: [] },
  }),
  access_guids: policyTable({
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
    code: ['id', 'application_id', 'hash', 'created_at', 'removed_at'],
    beside: { last_used_at: 'a mark of use' },
    snapshots: { marks: ['last_used_at'] },
  }),
  instances: plainTable({
    columns: {
      id: text({ key: true }),
      application_id: text({ of: 'tde_applications' }),
      access_guid_id: text({ of: 'access_guids' }),
      app_id: text(),
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
    snapshots: { marks: ['library_version', 'agent_version', 'pid', 'last_used_at', 'uses'] },
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

export const groupRow = (group: TdeGroup) => ({
  id: group.id,
  tenant_id: group.tenantId,
  name: group.name,
  vault_id: group.vaultId,
  created_at: group.createdAt,
});

export const toGroup = (row: Row<'tde_groups'>, integrity: Integrity): TdeGroup => ({
  id: row.id,
  tenantId: row.tenant_id,
  name: row.name,
  vaultId: row.vault_id,
  createdAt: row.created_at,
  integrity,
});

export const applicationRow = (application: TdeApplication) => ({
  id: application.id,
  tenant_id: application.tenantId,
  group_id: application.groupId,
  name: application.name,
  app_id: application.appId,
  state: application.state,
  compatibility: application.compatibility.length === 0 ? null : canonicalJson(application.compatibility),
  callers: isAnyCaller(application.callers) ? null : canonicalJson({ ...application.callers }),
  created_at: application.createdAt,
});

export const toApplication = (row: Row<'tde_applications'>, integrity: Integrity): TdeApplication => ({
  id: row.id,
  tenantId: row.tenant_id,
  groupId: row.group_id,
  name: row.name,
  appId: row.app_id,
  state: row.state as ApplicationState,
  compatibility: parseTags(row.compatibility) as readonly CompatibilitySwitch[],
  callers: parseCallers(row.callers),
  createdAt: row.created_at,
  integrity,
});

export const accessGuidRow = (accessGuid: StoredAccessGuid) => ({
  id: accessGuid.id,
  application_id: accessGuid.applicationId,
  hash: accessGuid.hash,
  created_at: accessGuid.createdAt,
  removed_at: accessGuid.removedAt,
  last_used_at: accessGuid.lastUsedAt,
});

export const toAccessGuid = (row: Row<'access_guids'>, integrity: Integrity): StoredAccessGuid => ({
  id: row.id,
  applicationId: row.application_id,
  hash: row.hash,
  createdAt: row.created_at,
  removedAt: row.removed_at,
  lastUsedAt: row.last_used_at,
  integrity,
});

export const instanceRow = (instance: Instance): Row<'instances'> => ({
  id: instance.id,
  application_id: instance.applicationId,
  access_guid_id: instance.accessGuidId,
  app_id: instance.appId,
  host: instance.host,
  process: instance.process,
  os_user: instance.osUser,
  library_version: instance.libraryVersion,
  agent_version: instance.agentVersion,
  pid: instance.pid,
  first_used_at: instance.firstUsedAt,
  last_used_at: instance.lastUsedAt,
  uses: instance.uses,
});

export const toInstance = (row: Row<'instances'>): Instance => ({
  id: row.id,
  applicationId: row.application_id,
  accessGuidId: row.access_guid_id,
  appId: row.app_id,
  host: row.host,
  process: row.process,
  osUser: row.os_user,
  libraryVersion: row.library_version,
  agentVersion: row.agent_version,
  pid: row.pid,
  firstUsedAt: row.first_used_at,
  lastUsedAt: row.last_used_at,
  uses: row.uses,
});
