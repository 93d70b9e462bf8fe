// Generated from the OpenAPI document (npm run generate). Do not edit.

import { type FileAnswer, type FileBody, type InTenant, type Operation, operation, type Paging, pagedOperation, replacingOperation } from '../operation.ts';
import type * as t from './types.ts';

export const operations = {
  tenants: {
    /** Create a tenant */
    create: operation<{ body: t.NewTenant }, t.Tenant>({
      method: 'post', path: '/api/tenants', body: { name: null }, creates: true,
    }),
    /** List tenants */
    list: operation<{ query?: InTenant }, { readonly items: readonly t.Tenant[] }>({
      method: 'get', path: '/api/tenants', inTenant: true,
    }),
    /** Get a tenant */
    get: operation<{ path: { id: string } }, t.Tenant>({ method: 'get', path: '/api/tenants/{id}' }),
    /** Rename a tenant */
    rename: replacingOperation<{ path: { id: string }; body: t.RenameTenant }, t.TenantAfterChange>({
      method: 'put', path: '/api/tenants/{id}', body: { name: null }, changes: true,
    }),
    /** Delete a tenant */
    delete: operation<{ path: { id: string }; query?: {
      /** true: shows what would stop and changes nothing. */
      readonly dryRun?: boolean | undefined;
    } }, t.ChangedTenantAfterChange>({
      method: 'delete', path: '/api/tenants/{id}', query: { dryRun: null }, changes: true,
    }),
    /** Suspend a tenant */
    suspend: operation<{ path: { id: string }; query?: {
      /** true: shows what would stop and changes nothing. */
      readonly dryRun?: boolean | undefined;
    } }, t.ChangedTenantAfterChange>({
      method: 'post', path: '/api/tenants/{id}/suspend', query: { dryRun: null }, changes: true,
    }),
    /** Resume a suspended tenant */
    resume: operation<{ path: { id: string } }, t.TenantAfterChange>({
      method: 'post', path: '/api/tenants/{id}/resume', changes: true,
    }),
    /** Restore a deleted tenant */
    restore: operation<{ path: { id: string } }, t.TenantAfterChange>({
      method: 'post', path: '/api/tenants/{id}/restore', changes: true,
    }),
    /** Purge a deleted tenant */
    purge: operation<{ path: { id: string }; query?: {
      /** true: shows what would stop and changes nothing. */
      readonly dryRun?: boolean | undefined;
    }; body?: t.PurgeTenant }, t.ChangedTenantAfterChange>({
      method: 'post', path: '/api/tenants/{id}/purge', query: { dryRun: null }, body: { confirm: null }, changes: true,
    }),
  },
  vaults: {
    /** Create a vault */
    create: operation<{ query?: InTenant; body: t.NewVault }, t.Vault>({
      method: 'post', path: '/api/vaults', body: { name: null }, inTenant: true, creates: true,
    }),
    /** List vaults */
    list: pagedOperation<{ query?: Paging & InTenant }, { readonly items: readonly t.Vault[]; readonly next: string | null }>({
      method: 'get', path: '/api/vaults', query: { after: null, limit: null }, inTenant: true,
    }),
    /** Get a vault */
    get: operation<{ path: { id: string }; query?: InTenant }, t.Vault>({
      method: 'get', path: '/api/vaults/{id}', inTenant: true,
    }),
    /** Delete a vault */
    delete: operation<{ path: { id: string }; query?: {
      /** true: shows what would be done and who must approve, and changes nothing. */
      readonly dryRun?: boolean | undefined;
    } & InTenant }, t.DeletedVaultAfterChange>({
      method: 'delete', path: '/api/vaults/{id}', query: { dryRun: null }, inTenant: true, changes: true,
    }),
    /** Enable a vault */
    enable: operation<{ path: { id: string }; query?: InTenant }, t.VaultAfterChange>({
      method: 'post', path: '/api/vaults/{id}/enable', inTenant: true, changes: true,
    }),
    /** Disable a vault */
    disable: operation<{ path: { id: string }; query?: InTenant }, t.VaultAfterChange>({
      method: 'post', path: '/api/vaults/{id}/disable', inTenant: true, changes: true,
    }),
    /** Rename a vault */
    rename: replacingOperation<{ path: { id: string }; query?: {
      /** true: shows what would be done and who must approve, and changes nothing. */
      readonly dryRun?: boolean | undefined;
    } & InTenant; body: t.NewName }, t.RenamedVaultAfterChange>({
      method: 'put', path: '/api/vaults/{id}/name', query: { dryRun: null }, body: { name: null }, inTenant: true, changes: true,
    }),
    /** Set the rotation profile of a vault */
    setProfile: replacingOperation<{ path: { id: string }; query?: InTenant; body: t.NewVaultProfile }, t.VaultAfterChange>({
      method: 'put', path: '/api/vaults/{id}/profile', body: { profile: ['standard', 'high-security'] }, inTenant: true, changes: true,
    }),
    /** Get the dual control of a vault */
    dualControl: operation<{ path: { id: string }; query?: InTenant }, t.VaultDualControl>({
      method: 'get', path: '/api/vaults/{id}/dual-control', inTenant: true,
    }),
    /** Set the dual control of a vault */
    setDualControl: replacingOperation<{ path: { id: string }; query?: {
      /** true: shows what would be done and who must approve, and changes nothing. */
      readonly dryRun?: boolean | undefined;
    } & InTenant; body: t.NewDualControlRule }, t.VaultDualControlAfterChange>({
      method: 'put', path: '/api/vaults/{id}/dual-control', query: { dryRun: null }, body: { required: null, approvers: null, actions: null, databases: ['allowed', 'refused'] }, inTenant: true, changes: true,
    }),
    /** Remove the dual control of a vault */
    removeDualControl: operation<{ path: { id: string }; query?: {
      /** true: shows what would be done and who must approve, and changes nothing. */
      readonly dryRun?: boolean | undefined;
    } & InTenant }, t.VaultDualControlAfterChange>({
      method: 'delete', path: '/api/vaults/{id}/dual-control', query: { dryRun: null }, inTenant: true, changes: true,
    }),
  },
  keys: {
    /** Create a key */
    create: operation<{ query?: InTenant; body: t.NewKey }, t.Key>({
      method: 'post', path: '/api/keys', body: { name: null, vaultId: null, tags: null }, inTenant: true, creates: true,
    }),
    /** List keys */
    list: pagedOperation<{ query?: {
      readonly vaultId?: string | undefined;
      readonly kind?: 'general' | 'master' | undefined;
      readonly state?: 'active' | 'disabled' | 'soft-deleted' | 'destroyed' | undefined;
      /** Keys with exactly this tag. */
      readonly tag?: string | undefined;
      /** Inclusive. */
      readonly createdAfter?: string | undefined;
      /** Exclusive. */
      readonly createdBefore?: string | undefined;
      /** Keys last used at this time or later. */
      readonly usedAfter?: string | undefined;
      /** Keys last used before this time. Keys that were never used are not included. */
      readonly usedBefore?: string | undefined;
      /** true: keys that were never used. */
      readonly neverUsed?: boolean | undefined;
    } & Paging & InTenant }, {
      readonly items: readonly t.Key[];
      readonly next: string | null;
      /** How many match in all: on the first page, when there are more pages. Absent above 200,000, and on other pages. */
      readonly total?: number | undefined;
    }>({
      method: 'get', path: '/api/keys', query: { after: null, limit: null, vaultId: null, kind: ['general', 'master'], state: ['active', 'disabled', 'soft-deleted', 'destroyed'], tag: null, createdAfter: null, createdBefore: null, usedAfter: null, usedBefore: null, neverUsed: null }, inTenant: true,
    }),
    /** Export the inventory of keys */
    export: operation<{ query?: {
      readonly vaultId?: string | undefined;
      readonly kind?: 'general' | 'master' | undefined;
      readonly state?: 'active' | 'disabled' | 'soft-deleted' | 'destroyed' | undefined;
      /** Keys with exactly this tag. */
      readonly tag?: string | undefined;
      /** Inclusive. */
      readonly createdAfter?: string | undefined;
      /** Exclusive. */
      readonly createdBefore?: string | undefined;
      /** Keys last used at this time or later. */
      readonly usedAfter?: string | undefined;
      /** Keys last used before this time. Keys that were never used are not included. */
      readonly usedBefore?: string | undefined;
      /** true: keys that were never used. */
      readonly neverUsed?: boolean | undefined;
      readonly format?: 'ndjson' | 'csv' | undefined;
    } & InTenant }, FileAnswer>({
      method: 'get', path: '/api/keys/export', query: { vaultId: null, kind: ['general', 'master'], state: ['active', 'disabled', 'soft-deleted', 'destroyed'], tag: null, createdAfter: null, createdBefore: null, usedAfter: null, usedBefore: null, neverUsed: null, format: ['ndjson', 'csv'] }, inTenant: true, streams: ['application/x-ndjson', 'text/csv'],
    }),
    /** Get a key */
    get: operation<{ path: { id: string }; query?: InTenant }, t.Key>({
      method: 'get', path: '/api/keys/{id}', inTenant: true,
    }),
    /** Change a key */
    change: replacingOperation<{ path: { id: string }; query?: InTenant; body: t.KeyChange }, t.KeyAfterChange>({
      method: 'put', path: '/api/keys/{id}', body: { name: null, tags: null }, inTenant: true, changes: true,
    }),
    /** Soft-delete a key */
    delete: operation<{ path: { id: string }; query?: {
      /** true: shows what would be done and who must approve, and changes nothing. */
      readonly dryRun?: boolean | undefined;
    } & InTenant }, t.DeletedKeyAfterChange>({
      method: 'delete', path: '/api/keys/{id}', query: { dryRun: null }, inTenant: true, changes: true,
    }),
    /** List the versions of a key */
    versions: operation<{ path: { id: string }; query?: InTenant }, { readonly items: readonly t.KeyVersion[] }>({
      method: 'get', path: '/api/keys/{id}/versions', inTenant: true,
    }),
    /** Show who uses a key */
    use: operation<{ path: { id: string }; query?: InTenant }, t.KeyUse>({
      method: 'get', path: '/api/keys/{id}/use', inTenant: true,
    }),
    /** Enable a key */
    enable: operation<{ path: { id: string }; query?: InTenant }, t.KeyAfterChange>({
      method: 'post', path: '/api/keys/{id}/enable', inTenant: true, changes: true,
    }),
    /** Disable a key */
    disable: operation<{ path: { id: string }; query?: InTenant }, t.KeyAfterChange>({
      method: 'post', path: '/api/keys/{id}/disable', inTenant: true, changes: true,
    }),
    /** Rotate a key */
    rotate: operation<{ path: { id: string }; query?: InTenant }, t.KeyVersionAfterChange>({
      method: 'post', path: '/api/keys/{id}/rotate', inTenant: true, changes: true,
    }),
  },
  tdeGroups: {
    /** Create a TDE group */
    create: operation<{ query?: InTenant; body: t.NewTdeGroup }, t.TdeGroup>({
      method: 'post', path: '/api/tde/groups', body: { name: null }, inTenant: true, creates: true,
    }),
    /** List TDE groups */
    list: pagedOperation<{ query?: Paging & InTenant }, { readonly items: readonly t.TdeGroup[]; readonly next: string | null }>({
      method: 'get', path: '/api/tde/groups', query: { after: null, limit: null }, inTenant: true,
    }),
    /** Get a TDE group */
    get: operation<{ path: { id: string }; query?: InTenant }, t.TdeGroup>({
      method: 'get', path: '/api/tde/groups/{id}', inTenant: true,
    }),
    /** Rename a TDE group */
    rename: replacingOperation<{ path: { id: string }; query?: {
      /** true: shows what would be done and who must approve, and changes nothing. */
      readonly dryRun?: boolean | undefined;
    } & InTenant; body: t.NewName }, t.RenamedTdeGroupAfterChange>({
      method: 'put', path: '/api/tde/groups/{id}/name', query: { dryRun: null }, body: { name: null }, inTenant: true, changes: true,
    }),
  },
  applications: {
    /** Register a TDE application */
    register: operation<{ query?: InTenant; body: t.NewTdeApplication }, t.RegisteredApplication>({
      method: 'post', path: '/api/tde/applications', body: { name: null, groupId: null, appId: null }, inTenant: true, creates: true, showsOnce: ['accessGuid', 'config.pkcs11_toml'],
    }),
    /** List TDE applications */
    list: pagedOperation<{ query?: { readonly groupId?: string | undefined } & Paging & InTenant }, {
      readonly items: readonly t.TdeApplication[];
      readonly next: string | null;
      /** How many match in all: on the first page, when there are more pages. Absent above 200,000, and on other pages. */
      readonly total?: number | undefined;
    }>({
      method: 'get', path: '/api/tde/applications', query: { after: null, limit: null, groupId: null }, inTenant: true,
    }),
    /** Get a TDE application */
    get: operation<{ path: { id: string }; query?: InTenant }, t.TdeApplication>({
      method: 'get', path: '/api/tde/applications/{id}', inTenant: true,
    }),
    /** Enable a TDE application */
    enable: operation<{ path: { id: string }; query?: InTenant }, t.TdeApplicationAfterChange>({
      method: 'post', path: '/api/tde/applications/{id}/enable', inTenant: true, changes: true,
    }),
    /** Disable a TDE application */
    disable: operation<{ path: { id: string }; query?: InTenant }, t.TdeApplicationAfterChange>({
      method: 'post', path: '/api/tde/applications/{id}/disable', inTenant: true, changes: true,
    }),
    /** Rename a TDE application */
    rename: replacingOperation<{ path: { id: string }; query?: InTenant; body: t.NewName }, t.TdeApplicationAfterChange>({
      method: 'put', path: '/api/tde/applications/{id}/name', body: { name: null }, inTenant: true, changes: true,
    }),
    /** Set the compatibility switches of a TDE application */
    setCompatibility: replacingOperation<{ path: { id: string }; query?: InTenant; body: t.TdeApplicationCompatibility }, t.TdeApplicationAfterChange>({
      method: 'put', path: '/api/tde/applications/{id}/compatibility', body: { switches: null }, inTenant: true, changes: true,
    }),
    /** Set the allowed callers of a TDE application */
    setCallers: replacingOperation<{ path: { id: string }; query?: InTenant; body: t.TdeApplicationCallers }, t.TdeApplicationAfterChange>({
      method: 'put', path: '/api/tde/applications/{id}/callers', body: { networks: null, certificates: null }, inTenant: true, changes: true,
    }),
    /** Move a TDE application to another group */
    move: operation<{ path: { id: string }; query?: {
      /** Shows the consequences and changes nothing. */
      readonly dryRun?: boolean | undefined;
    } & InTenant; body: t.MoveTdeApplication }, t.MovedTdeApplicationAfterChange>({
      method: 'post', path: '/api/tde/applications/{id}/move', query: { dryRun: null }, body: { groupId: null, confirm: null }, inTenant: true, changes: true,
    }),
    /** Issue a second access_guid */
    rotateAccessGuid: operation<{ path: { id: string }; query?: InTenant }, t.IssuedAccessGuid>({
      method: 'post', path: '/api/tde/applications/{id}/access-guids', inTenant: true, creates: true, showsOnce: ['accessGuid', 'config.pkcs11_toml'],
    }),
    /** List an application's access_guids */
    accessGuids: operation<{ path: { id: string }; query?: InTenant }, { readonly items: readonly t.AccessGuid[] }>({
      method: 'get', path: '/api/tde/applications/{id}/access-guids', inTenant: true,
    }),
    /** Remove an access_guid */
    removeAccessGuid: operation<{ path: { id: string; accessGuidId: string }; query?: InTenant }, t.AccessGuidAfterChange>({
      method: 'delete', path: '/api/tde/applications/{id}/access-guids/{accessGuidId}', inTenant: true,
    }),
    /** List the instances of an application */
    instances: operation<{ path: { id: string }; query?: InTenant }, { readonly items: readonly t.TdeInstance[] }>({
      method: 'get', path: '/api/tde/applications/{id}/instances', inTenant: true,
    }),
  },
  packages: {
    /** List the packages for database hosts */
    list: operation<{ query?: InTenant }, { readonly items: readonly t.DistributedPackage[] }>({
      method: 'get', path: '/api/packages', inTenant: true,
    }),
    /** Download a package */
    download: operation<{ path: { name: string }; query?: InTenant }, FileAnswer>({
      method: 'get', path: '/api/packages/{name}/file', inTenant: true, streams: ['application/octet-stream'],
    }),
  },
  masterKeys: {
    /** List an application's master keys */
    list: pagedOperation<{ path: { applicationId: string }; query?: Paging & InTenant }, { readonly items: readonly t.MasterKey[]; readonly next: string | null }>({
      method: 'get', path: '/api/tde/applications/{applicationId}/master-keys', query: { after: null, limit: null }, inTenant: true,
    }),
    /** Get a master key */
    get: operation<{ path: { applicationId: string; keyId: string }; query?: InTenant }, t.MasterKey>({
      method: 'get', path: '/api/tde/applications/{applicationId}/master-keys/{keyId}', inTenant: true,
    }),
    /** Show who would lose access if a master key were destroyed */
    blastRadius: operation<{ path: { applicationId: string; keyId: string }; query?: InTenant }, t.BlastRadius>({
      method: 'get', path: '/api/tde/applications/{applicationId}/master-keys/{keyId}/blast-radius', inTenant: true,
    }),
    /** Repair a master key that encrypts but cannot decrypt */
    allowDecryption: operation<{ path: { applicationId: string; keyId: string }; query?: InTenant }, t.MasterKeyAfterChange>({
      method: 'post', path: '/api/tde/applications/{applicationId}/master-keys/{keyId}/allow-decryption', inTenant: true,
    }),
    /** Destroy a master key */
    destroy: operation<{ path: { applicationId: string; keyId: string }; query?: {
      /** Shows the blast radius and changes nothing. */
      readonly dryRun?: boolean | undefined;
    } & InTenant; body?: t.DestroyMasterKey }, t.DestroyedMasterKeyAfterChange>({
      method: 'post', path: '/api/tde/applications/{applicationId}/master-keys/{keyId}/destroy', query: { dryRun: null }, body: { confirm: null }, inTenant: true,
    }),
  },
  endpoints: {
    /** Create a key store endpoint */
    create: operation<{ query?: InTenant; body: t.NewEndpoint }, t.Endpoint>({
      method: 'post', path: '/api/endpoints', body: { name: null, vaultId: null, keyId: null, prefix: null, settings: null }, inTenant: true, creates: true,
    }),
    /** List key store endpoints */
    list: pagedOperation<{ query?: Paging & InTenant }, {
      readonly items: readonly t.Endpoint[];
      readonly next: string | null;
      /** How many match in all: on the first page, when there are more pages. Absent above 200,000, and on other pages. */
      readonly total?: number | undefined;
    }>({
      method: 'get', path: '/api/endpoints', query: { after: null, limit: null }, inTenant: true,
    }),
    /** Get a key store endpoint */
    get: operation<{ path: { id: string }; query?: InTenant }, t.Endpoint>({
      method: 'get', path: '/api/endpoints/{id}', inTenant: true,
    }),
    /** Delete a key store endpoint */
    delete: operation<{ path: { id: string }; query?: InTenant }, t.EndpointAfterChange>({
      method: 'delete', path: '/api/endpoints/{id}', inTenant: true, changes: true,
    }),
    /** Enable a key store endpoint */
    enable: operation<{ path: { id: string }; query?: InTenant }, t.EndpointAfterChange>({
      method: 'post', path: '/api/endpoints/{id}/enable', inTenant: true, changes: true,
    }),
    /** Disable a key store endpoint */
    disable: operation<{ path: { id: string }; query?: InTenant }, t.EndpointAfterChange>({
      method: 'post', path: '/api/endpoints/{id}/disable', inTenant: true, changes: true,
    }),
    /** Rename a key store endpoint */
    rename: replacingOperation<{ path: { id: string }; query?: InTenant; body: t.NewName }, t.EndpointAfterChange>({
      method: 'put', path: '/api/endpoints/{id}/name', body: { name: null }, inTenant: true, changes: true,
    }),
    /** Replace the settings of a key store endpoint */
    changeSettings: replacingOperation<{ path: { id: string }; query?: InTenant; body: t.EndpointSettings }, t.EndpointAfterChange>({
      method: 'put', path: '/api/endpoints/{id}/settings', body: { operatorProbes: null, rate: null, clientCertificate: null, rules: null }, inTenant: true, changes: true,
    }),
    /** Test requests against the rules of a key store endpoint */
    simulateRules: operation<{ path: { id: string }; query?: InTenant; body: t.RuleSimulation }, { readonly items: readonly t.RuleDecision[] } & t.PendingMembers>({
      method: 'post', path: '/api/endpoints/{id}/rules/simulate', body: { rules: null, requests: null }, inTenant: true,
    }),
    /** Add a SigV4 credential */
    addCredential: operation<{ path: { id: string }; query?: InTenant }, t.XksProxyConfiguration>({
      method: 'post', path: '/api/endpoints/{id}/credentials', inTenant: true, creates: true, showsOnce: ['XksProxyAuthenticationCredential.RawSecretAccessKey'],
    }),
    /** Remove a SigV4 credential */
    removeCredential: operation<{ path: { id: string; credentialId: string }; query?: InTenant }, t.EndpointAfterChange>({
      method: 'delete', path: '/api/endpoints/{id}/credentials/{credentialId}', inTenant: true,
    }),
  },
  diagnostics: {
    /** Run the diagnostics of a key store endpoint */
    run: operation<{ path: { id: string }; query?: InTenant; body?: t.NewDiagnosis }, t.Diagnosis>({
      method: 'post', path: '/api/endpoints/{id}/diagnostics', body: { callerTime: null, cloud: null }, inTenant: true, creates: true, long: true,
    }),
    /** List earlier diagnostics of a key store endpoint */
    list: pagedOperation<{ path: { id: string }; query?: Paging & InTenant }, { readonly items: readonly t.Diagnosis[]; readonly next: string | null }>({
      method: 'get', path: '/api/endpoints/{id}/diagnostics', query: { after: null, limit: null }, inTenant: true,
    }),
    /** Run the diagnostics of a key store endpoint and stream the results */
    follow: operation<{ path: { id: string }; query?: InTenant; body?: t.NewDiagnosis }, FileAnswer>({
      method: 'post', path: '/api/endpoints/{id}/diagnostics/follow', body: { callerTime: null, cloud: null }, inTenant: true, streams: ['application/x-ndjson'],
    }),
    /** Get a diagnostics run */
    get: operation<{ path: { id: string; diagnosisId: string }; query?: InTenant }, t.Diagnosis>({
      method: 'get', path: '/api/endpoints/{id}/diagnostics/{diagnosisId}', inTenant: true,
    }),
  },
  requests: {
    /** Search the request log of all endpoints */
    search: pagedOperation<{ query?: {
      /** `none`: requests that did not reach an endpoint. */
      readonly endpointId?: string | undefined;
      /** `health`, `metadata`, `encrypt`, `decrypt`; `unknown` for any other path. */
      readonly operation?: string | undefined;
      readonly result?: 'answered' | 'refused' | undefined;
      /** Whether its signature was valid. Anyone can send requests without a valid signature. */
      readonly signed?: boolean | undefined;
      readonly status?: number | undefined;
      readonly errorName?: string | undefined;
      readonly kmsOperation?: string | undefined;
      /** Exact text, or a prefix followed by `*`. */
      readonly principal?: string | undefined;
      /** Exact text, or a prefix followed by `*`. */
      readonly kmsKeyArn?: string | undefined;
      readonly awsSourceVpc?: string | undefined;
      readonly awsSourceVpce?: string | undefined;
      readonly kmsViaService?: string | undefined;
      readonly externalKeyId?: string | undefined;
      readonly requestId?: string | undefined;
      readonly kmsRequestId?: string | undefined;
      /** Inclusive. */
      readonly from?: string | undefined;
      /** Exclusive. */
      readonly to?: string | undefined;
    } & Paging & InTenant }, { readonly items: readonly t.EndpointRequest[]; readonly next: string | null }>({
      method: 'get', path: '/api/requests', query: { after: null, limit: null, endpointId: null, operation: null, result: ['answered', 'refused'], signed: null, status: null, errorName: null, kmsOperation: null, principal: null, kmsKeyArn: null, awsSourceVpc: null, awsSourceVpce: null, kmsViaService: null, externalKeyId: null, requestId: null, kmsRequestId: null, from: null, to: null }, inTenant: true,
    }),
    /** Export the request log of all endpoints */
    export: operation<{ query?: {
      /** `none`: requests that did not reach an endpoint. */
      readonly endpointId?: string | undefined;
      /** `health`, `metadata`, `encrypt`, `decrypt`; `unknown` for any other path. */
      readonly operation?: string | undefined;
      readonly result?: 'answered' | 'refused' | undefined;
      /** Whether its signature was valid. Anyone can send requests without a valid signature. */
      readonly signed?: boolean | undefined;
      readonly status?: number | undefined;
      readonly errorName?: string | undefined;
      readonly kmsOperation?: string | undefined;
      /** Exact text, or a prefix followed by `*`. */
      readonly principal?: string | undefined;
      /** Exact text, or a prefix followed by `*`. */
      readonly kmsKeyArn?: string | undefined;
      readonly awsSourceVpc?: string | undefined;
      readonly awsSourceVpce?: string | undefined;
      readonly kmsViaService?: string | undefined;
      readonly externalKeyId?: string | undefined;
      readonly requestId?: string | undefined;
      readonly kmsRequestId?: string | undefined;
      /** Inclusive. */
      readonly from?: string | undefined;
      /** Exclusive. */
      readonly to?: string | undefined;
      readonly format?: 'ndjson' | 'csv' | undefined;
    } & InTenant }, FileAnswer>({
      method: 'get', path: '/api/requests/export', query: { endpointId: null, operation: null, result: ['answered', 'refused'], signed: null, status: null, errorName: null, kmsOperation: null, principal: null, kmsKeyArn: null, awsSourceVpc: null, awsSourceVpce: null, kmsViaService: null, externalKeyId: null, requestId: null, kmsRequestId: null, from: null, to: null, format: ['ndjson', 'csv'] }, inTenant: true, streams: ['application/x-ndjson', 'text/csv'],
    }),
    /** Find the requests for a CloudTrail event */
    correlate: operation<{ query?: InTenant; body: t.CloudTrailText }, t.CorrelatedRequestsAfterChange>({
      method: 'post', path: '/api/requests/correlate', body: { text: null }, inTenant: true,
    }),
    /** Compare the request log with its hashes in the audit log */
    verify: operation<{ query?: {
      /** Inclusive. */
      readonly from?: string | undefined;
      /** Exclusive. */
      readonly to?: string | undefined;
    } }, t.RequestLogVerification>({
      method: 'get', path: '/api/requests/verification', query: { from: null, to: null }, long: true,
    }),
    /** Search the request log of an endpoint */
    searchOne: pagedOperation<{ path: { id: string }; query?: {
      /** `health`, `metadata`, `encrypt`, `decrypt`; `unknown` for any other path. */
      readonly operation?: string | undefined;
      readonly result?: 'answered' | 'refused' | undefined;
      /** Whether its signature was valid. Anyone can send requests without a valid signature. */
      readonly signed?: boolean | undefined;
      readonly status?: number | undefined;
      readonly errorName?: string | undefined;
      readonly kmsOperation?: string | undefined;
      /** Exact text, or a prefix followed by `*`. */
      readonly principal?: string | undefined;
      /** Exact text, or a prefix followed by `*`. */
      readonly kmsKeyArn?: string | undefined;
      readonly awsSourceVpc?: string | undefined;
      readonly awsSourceVpce?: string | undefined;
      readonly kmsViaService?: string | undefined;
      readonly externalKeyId?: string | undefined;
      readonly requestId?: string | undefined;
      readonly kmsRequestId?: string | undefined;
      /** Inclusive. */
      readonly from?: string | undefined;
      /** Exclusive. */
      readonly to?: string | undefined;
    } & Paging & InTenant }, { readonly items: readonly t.EndpointRequest[]; readonly next: string | null }>({
      method: 'get', path: '/api/endpoints/{id}/requests', query: { after: null, limit: null, operation: null, result: ['answered', 'refused'], signed: null, status: null, errorName: null, kmsOperation: null, principal: null, kmsKeyArn: null, awsSourceVpc: null, awsSourceVpce: null, kmsViaService: null, externalKeyId: null, requestId: null, kmsRequestId: null, from: null, to: null }, inTenant: true,
    }),
    /** Export the request log of an endpoint */
    exportOne: operation<{ path: { id: string }; query?: {
      /** `health`, `metadata`, `encrypt`, `decrypt`; `unknown` for any other path. */
      readonly operation?: string | undefined;
      readonly result?: 'answered' | 'refused' | undefined;
      /** Whether its signature was valid. Anyone can send requests without a valid signature. */
      readonly signed?: boolean | undefined;
      readonly status?: number | undefined;
      readonly errorName?: string | undefined;
      readonly kmsOperation?: string | undefined;
      /** Exact text, or a prefix followed by `*`. */
      readonly principal?: string | undefined;
      /** Exact text, or a prefix followed by `*`. */
      readonly kmsKeyArn?: string | undefined;
      readonly awsSourceVpc?: string | undefined;
      readonly awsSourceVpce?: string | undefined;
      readonly kmsViaService?: string | undefined;
      readonly externalKeyId?: string | undefined;
      readonly requestId?: string | undefined;
      readonly kmsRequestId?: string | undefined;
      /** Inclusive. */
      readonly from?: string | undefined;
      /** Exclusive. */
      readonly to?: string | undefined;
      readonly format?: 'ndjson' | 'csv' | undefined;
    } & InTenant }, FileAnswer>({
      method: 'get', path: '/api/endpoints/{id}/requests/export', query: { operation: null, result: ['answered', 'refused'], signed: null, status: null, errorName: null, kmsOperation: null, principal: null, kmsKeyArn: null, awsSourceVpc: null, awsSourceVpce: null, kmsViaService: null, externalKeyId: null, requestId: null, kmsRequestId: null, from: null, to: null, format: ['ndjson', 'csv'] }, inTenant: true, streams: ['application/x-ndjson', 'text/csv'],
    }),
  },
  runbooks: {
    /** List the runbooks */
    list: operation<{ query?: InTenant }, { readonly items: readonly t.Runbook[] }>({
      method: 'get', path: '/api/runbooks', inTenant: true,
    }),
    /** Get a runbook with an application's own values */
    fill: operation<{ path: { applicationId: string; name: string }; query?: {
      /** 11g R2; 12c to 18c; 19c and later */
      readonly release?: '11g' | '12c-18c' | '19c' | undefined;
      readonly containers?: 'non-cdb' | 'cdb' | undefined;
    } & InTenant }, t.FilledRunbook>({
      method: 'get', path: '/api/tde/applications/{applicationId}/runbooks/{name}', query: { release: ['11g', '12c-18c', '19c'], containers: ['non-cdb', 'cdb'] }, inTenant: true,
    }),
    /** List runbook runs of an application */
    runs: pagedOperation<{ path: { applicationId: string }; query?: Paging & InTenant }, { readonly items: readonly t.RunbookRun[]; readonly next: string | null }>({
      method: 'get', path: '/api/tde/applications/{applicationId}/runbook-runs', query: { after: null, limit: null }, inTenant: true,
    }),
    /** Start a runbook run */
    start: operation<{ path: { applicationId: string }; query?: InTenant; body: t.NewRunbookRun }, t.RunbookRun>({
      method: 'post', path: '/api/tde/applications/{applicationId}/runbook-runs', body: { runbook: ['rotate', 'check', 'restart-after-rotation', 'migrate', 'reverse-migrate', 'standby', 'restore', 'clone-pdb', 'upgrade-library', 'destroy'], release: ['11g', '12c-18c', '19c'], containers: ['non-cdb', 'cdb'] }, inTenant: true, creates: true,
    }),
    /** Get a runbook run */
    get: operation<{ path: { applicationId: string; runId: string }; query?: InTenant }, t.RunbookRun>({
      method: 'get', path: '/api/tde/applications/{applicationId}/runbook-runs/{runId}', inTenant: true,
    }),
    /** Complete a step */
    completeStep: operation<{ path: { applicationId: string; runId: string; step: string }; query?: InTenant; body?: t.StepCompletion }, t.RunbookRunAfterChange>({
      method: 'put', path: '/api/tde/applications/{applicationId}/runbook-runs/{runId}/steps/{step}', body: { outcome: ['done', 'not-needed'], note: null }, inTenant: true,
    }),
    /** Reopen a step */
    reopenStep: operation<{ path: { applicationId: string; runId: string; step: string }; query?: InTenant }, t.RunbookRunAfterChange>({
      method: 'delete', path: '/api/tde/applications/{applicationId}/runbook-runs/{runId}/steps/{step}', inTenant: true,
    }),
    /** Finish a run */
    finish: operation<{ path: { applicationId: string; runId: string }; query?: InTenant; body?: t.FinishRunbookRun }, t.RunbookRunAfterChange>({
      method: 'post', path: '/api/tde/applications/{applicationId}/runbook-runs/{runId}/finish', body: { outcome: ['done', 'abandoned'], note: null }, inTenant: true,
    }),
  },
  externalKeyStores: {
    /** Register an external key store */
    register: operation<{ query?: InTenant; body: t.NewExternalKeyStore }, t.ExternalKeyStore>({
      method: 'post', path: '/api/external-key-stores', body: { name: null, customKeyStoreId: null, region: null, endpointId: null }, inTenant: true, creates: true,
    }),
    /** List external key stores */
    list: pagedOperation<{ query?: Paging & InTenant }, { readonly items: readonly t.ExternalKeyStore[]; readonly next: string | null }>({
      method: 'get', path: '/api/external-key-stores', query: { after: null, limit: null }, inTenant: true,
    }),
    /** Get an external key store */
    get: operation<{ path: { id: string }; query?: InTenant }, t.ExternalKeyStore>({
      method: 'get', path: '/api/external-key-stores/{id}', inTenant: true,
    }),
    /** Unregister an external key store */
    remove: operation<{ path: { id: string }; query?: InTenant }, t.ExternalKeyStoreAfterChange>({
      method: 'delete', path: '/api/external-key-stores/{id}', inTenant: true,
    }),
    /** Check the connection of an external key store now */
    probe: operation<{ path: { id: string }; query?: InTenant }, t.ExternalKeyStoreAfterChange>({
      method: 'post', path: '/api/external-key-stores/{id}/probe', inTenant: true,
    }),
  },
  approvals: {
    /** List approval requests */
    list: pagedOperation<{ query?: {
      readonly state?: 'pending' | 'approved' | 'completed' | 'rejected' | 'withdrawn' | 'expired' | 'outdated' | undefined;
      readonly subjectId?: string | undefined;
    } & Paging & InTenant }, { readonly items: readonly t.Approval[]; readonly next: string | null }>({
      method: 'get', path: '/api/approvals', query: { after: null, limit: null, state: ['pending', 'approved', 'completed', 'rejected', 'withdrawn', 'expired', 'outdated'], subjectId: null }, inTenant: true,
    }),
    /** Get an approval request */
    get: operation<{ path: { id: string }; query?: InTenant }, t.Approval>({
      method: 'get', path: '/api/approvals/{id}', inTenant: true,
    }),
    /** Approve a request */
    approve: operation<{ path: { id: string }; query?: InTenant; body?: t.Decision }, t.ApprovalAfterChange>({
      method: 'post', path: '/api/approvals/{id}/approve', body: { comment: null }, inTenant: true, changes: true,
    }),
    /** Reject a request */
    reject: operation<{ path: { id: string }; query?: InTenant; body?: t.Decision }, t.ApprovalAfterChange>({
      method: 'post', path: '/api/approvals/{id}/reject', body: { comment: null }, inTenant: true, changes: true,
    }),
    /** Withdraw a request */
    withdraw: operation<{ path: { id: string }; query?: InTenant }, t.ApprovalAfterChange>({
      method: 'post', path: '/api/approvals/{id}/withdraw', inTenant: true, changes: true,
    }),
  },
  snapshots: {
    /** Create a snapshot of a tenant */
    create: operation<{ query?: InTenant; body?: t.NewSnapshot }, t.Snapshot>({
      method: 'post', path: '/api/snapshots', body: { tenantId: null }, inTenant: true, creates: true, long: true,
    }),
    /** List snapshots */
    list: pagedOperation<{ query?: {
      readonly tenantId?: string | undefined;
      readonly state?: 'creating' | 'available' | 'deleted' | 'purged' | 'failed' | 'missing' | undefined;
    } & Paging & InTenant }, { readonly items: readonly t.Snapshot[]; readonly next: string | null }>({
      method: 'get', path: '/api/snapshots', query: { after: null, limit: null, tenantId: null, state: ['creating', 'available', 'deleted', 'purged', 'failed', 'missing'] }, inTenant: true,
    }),
    /** Get the schedule, storage and retention of snapshots */
    schedule: operation<{ query?: InTenant }, t.SnapshotSchedule>({
      method: 'get', path: '/api/snapshot-schedule', inTenant: true,
    }),
    /** Get a snapshot */
    get: operation<{ path: { id: string }; query?: InTenant }, t.Snapshot>({
      method: 'get', path: '/api/snapshots/{id}', inTenant: true,
    }),
    /** Delete a snapshot */
    delete: operation<{ path: { id: string }; query?: InTenant }, t.SnapshotAfterChange>({
      method: 'delete', path: '/api/snapshots/{id}', inTenant: true,
    }),
    /** List the exported copies of a snapshot */
    exports: operation<{ path: { id: string }; query?: InTenant }, { readonly items: readonly t.Copy[] }>({
      method: 'get', path: '/api/snapshots/{id}/exports', inTenant: true,
    }),
    /** Undelete a snapshot */
    undelete: operation<{ path: { id: string }; query?: InTenant }, t.SnapshotAfterChange>({
      method: 'post', path: '/api/snapshots/{id}/undelete', inTenant: true,
    }),
    /** Export a snapshot */
    export: operation<{ path: { id: string } }, FileAnswer>({
      method: 'get', path: '/api/snapshots/{id}/file', streams: ['application/octet-stream'],
    }),
    /** Import a snapshot */
    import: operation<{ query?: {
      /** Verifier key of the service that created it, if that is another one. */
      readonly signer?: string | undefined;
    }; body: FileBody | Uint8Array }, t.Snapshot>({
      method: 'post', path: '/api/snapshot-imports', query: { signer: null }, creates: true, takes: 'application/octet-stream',
    }),
    /** Start opening a snapshot */
    open: operation<{ path: { id: string }; body?: t.NewSnapshotOpening }, t.SnapshotOpening>({
      method: 'post', path: '/api/snapshots/{id}/openings', body: { recoveryKeyId: null }, creates: true,
    }),
    /** Verify a snapshot */
    verify: operation<{ path: { id: string }; query?: InTenant; body?: {} }, t.SnapshotAfterChange>({
      method: 'post', path: '/api/snapshots/{id}/verify', body: {  }, inTenant: true, long: true,
    }),
    /** Verify a snapshot with its key */
    verifyOpened: operation<{ path: { id: string }; body: t.SnapshotOpeningAnswer }, t.SnapshotAfterChange>({
      method: 'post', path: '/api/snapshots/{id}/verify-opened', body: { openingId: null, sealedKey: null }, long: true,
    }),
    /** Restore a snapshot */
    restore: operation<{ path: { id: string }; query?: { readonly dryRun?: boolean | undefined }; body: t.SnapshotRestoreRequest }, t.SnapshotRestoreAfterChange>({
      method: 'post', path: '/api/snapshots/{id}/restore', query: { dryRun: null }, body: { openingId: null, sealedKey: null, tenantId: null, newTenant: null }, long: true,
    }),
    /** List remaining copies of a key */
    ofKey: operation<{ path: { id: string }; query?: InTenant }, t.KeyCopies>({
      method: 'get', path: '/api/keys/{id}/snapshots', inTenant: true,
    }),
  },
  copies: {
    /** List files that left the service with its keys */
    list: pagedOperation<{ query?: {
      readonly tenantId?: string | undefined;
      readonly kind?: 'exported-snapshot' | 'service-backup' | 'root-backup' | undefined;
      /** true: only those that are not confirmed as destroyed */
      readonly left?: boolean | undefined;
    } & Paging & InTenant }, { readonly items: readonly t.Copy[]; readonly next: string | null }>({
      method: 'get', path: '/api/copies', query: { after: null, limit: null, tenantId: null, kind: ['exported-snapshot', 'service-backup', 'root-backup'], left: null }, inTenant: true,
    }),
    /** Get a file that left the service */
    get: operation<{ path: { id: string }; query?: InTenant }, t.Copy>({
      method: 'get', path: '/api/copies/{id}', inTenant: true,
    }),
    /** Confirm that a file is destroyed */
    confirmDestroyed: operation<{ path: { id: string }; query?: InTenant; body?: t.CopyConfirmation }, { readonly items: readonly t.Copy[] } & t.PendingMembers>({
      method: 'post', path: '/api/copies/{id}/confirm-destroyed', body: { andOlder: null }, inTenant: true,
    }),
  },
  recoveryKeys: {
    /** Register a recovery key */
    register: operation<{ body: t.NewRecoveryKey }, t.RecoveryKey>({
      method: 'post', path: '/api/recovery-keys', body: { name: null, publicKey: null }, creates: true,
    }),
    /** List recovery keys */
    list: operation<{}, { readonly items: readonly t.RecoveryKey[] }>({ method: 'get', path: '/api/recovery-keys' }),
    /** Remove a recovery key */
    remove: operation<{ path: { id: string }; query?: {
      /** true: remove even the last key while snapshots are scheduled. */
      readonly force?: boolean | undefined;
    } }, t.RecoveryKeyAfterChange>({
      method: 'delete', path: '/api/recovery-keys/{id}', query: { force: null },
    }),
  },
  notifications: {
    /** List notifications, most urgent first */
    list: pagedOperation<{ query?: {
      readonly state?: 'open' | 'resolved' | undefined;
      readonly kind?: 'key.rotation-due' | 'master-key.rotation-due' | 'master-key.unreadable' | 'endpoint.credential-due' | 'application.access-guid-due' | 'tls.certificate-expiring' | 'tls.certificate-old' | 'tls.file-unusable' | 'tls.certificate-created' | 'tls.issuer-changed' | 'client-authority.expiring' | 'client-certificate.expiring' | 'token.expiring' | 'token.old' | 'token.key-old' | 'token.former-key' | 'session.key-old' | 'administrator.recovered' | 'key-store.disconnected' | 'endpoint.failing' | 'endpoint.late' | 'endpoint.slow' | 'endpoint.tampered' | 'endpoint.credential-unused' | 'approval.pending' | 'dual-control.unsatisfiable' | 'audit.sink-behind' | 'audit.sink-forked' | 'audit.checkpoint-stale' | 'audit.key-old' | 'snapshot.failed' | 'snapshot.old' | 'snapshot.none' | 'snapshot.unopened' | 'snapshot.folder-missing' | 'backup.old' | 'root.backup-old' | 'setup.risk-accepted' | 'erasure.blocked' | 'erasure.failed' | 'erasure.copies-left' | 'health.failing' | 'memory.unlocked' | 'requests.sink-lost' | 'requests.dropped' | 'clock.jumped' | 'log.failing' | 'node.offline' | undefined;
      /** The lowest severity to list. */
      readonly minSeverity?: 'info' | 'low' | 'medium' | 'high' | 'critical' | undefined;
      /** Whether it is acknowledged. */
      readonly acknowledged?: boolean | undefined;
    } & Paging & InTenant }, { readonly items: readonly t.Notification[]; readonly next: string | null }>({
      method: 'get', path: '/api/notifications', query: { after: null, limit: null, state: ['open', 'resolved'], kind: ['key.rotation-due', 'master-key.rotation-due', 'master-key.unreadable', 'endpoint.credential-due', 'application.access-guid-due', 'tls.certificate-expiring', 'tls.certificate-old', 'tls.file-unusable', 'tls.certificate-created', 'tls.issuer-changed', 'client-authority.expiring', 'client-certificate.expiring', 'token.expiring', 'token.old', 'token.key-old', 'token.former-key', 'session.key-old', 'administrator.recovered', 'key-store.disconnected', 'endpoint.failing', 'endpoint.late', 'endpoint.slow', 'endpoint.tampered', 'endpoint.credential-unused', 'approval.pending', 'dual-control.unsatisfiable', 'audit.sink-behind', 'audit.sink-forked', 'audit.checkpoint-stale', 'audit.key-old', 'snapshot.failed', 'snapshot.old', 'snapshot.none', 'snapshot.unopened', 'snapshot.folder-missing', 'backup.old', 'root.backup-old', 'setup.risk-accepted', 'erasure.blocked', 'erasure.failed', 'erasure.copies-left', 'health.failing', 'memory.unlocked', 'requests.sink-lost', 'requests.dropped', 'clock.jumped', 'log.failing', 'node.offline'], minSeverity: ['info', 'low', 'medium', 'high', 'critical'], acknowledged: null }, inTenant: true,
    }),
    /** Acknowledge a notification */
    acknowledge: operation<{ path: { id: string }; query?: InTenant }, t.NotificationAfterChange>({
      method: 'post', path: '/api/notifications/{id}/acknowledge', inTenant: true,
    }),
    /** Release a notification */
    release: operation<{ path: { id: string }; query?: InTenant }, t.NotificationAfterChange>({
      method: 'delete', path: '/api/notifications/{id}/acknowledge', inTenant: true,
    }),
    /** List notification targets */
    targets: operation<{}, { readonly items: readonly t.NotificationTarget[] }>({
      method: 'get', path: '/api/notifications/targets',
    }),
    /** Send a test notification to every target */
    test: operation<{}, { readonly items: readonly { readonly name: string; readonly failure: string | null }[] } & t.PendingMembers>({
      method: 'post', path: '/api/notifications/test',
    }),
  },
  audit: {
    /** Get the audit log's signing keys */
    log: operation<{ query?: InTenant }, t.AuditLog>({ method: 'get', path: '/api/audit/log', inTenant: true }),
    /** Rotate the audit log's signing key */
    rotateKey: operation<{}, t.AuditLogAfterChange>({ method: 'post', path: '/api/audit/log/rotate-key' }),
    /** List the checkpoints of the audit log */
    checkpoints: pagedOperation<{ query?: Paging }, { readonly items: readonly t.AuditCheckpoint[]; readonly next: string | null }>({
      method: 'get', path: '/api/audit/checkpoints', query: { after: null, limit: null },
    }),
    /** List the sinks of the audit log */
    sinks: operation<{}, { readonly items: readonly t.AuditSink[] }>({ method: 'get', path: '/api/audit/sinks' }),
    /** Export the whole audit log */
    export: operation<{}, FileAnswer>({ method: 'get', path: '/api/audit/export', streams: ['application/x-ndjson'] }),
    /** Export one tenant's part of the audit log */
    exportTenant: operation<{ query?: InTenant }, FileAnswer>({
      method: 'get', path: '/api/audit/tenant-export', inTenant: true, streams: ['application/x-ndjson'],
    }),
    /** Prove that a record is in the audit log */
    prove: operation<{ path: { sequence: string }; query?: InTenant }, t.AuditProof>({
      method: 'get', path: '/api/audit/records/{sequence}/proof', inTenant: true,
    }),
    /** List key migration activity */
    migrations: pagedOperation<{ query?: {
      readonly applicationId?: string | undefined;
      /** Inclusive. */
      readonly from?: string | undefined;
      /** Exclusive. */
      readonly to?: string | undefined;
    } & Paging & InTenant }, { readonly items: readonly t.KeyMigration[]; readonly next: string | null }>({
      method: 'get', path: '/api/audit/migrations', query: { after: null, limit: null, applicationId: null, from: null, to: null }, inTenant: true,
    }),
    /** List audit records */
    list: pagedOperation<{ query?: {
      readonly kind?: 'service.started' | 'service.stopped' | 'tls.certificate-created' | 'tls.issuer-changed' | 'clock.jumped' | 'clock.confirmed' | 'node.drained' | 'node.resumed' | 'node.removed' | 'tenant.created' | 'tenant.renamed' | 'tenant.suspended' | 'tenant.resumed' | 'tenant.deleted' | 'tenant.restored' | 'tenant.purged' | 'tenant.cleared' | 'tenant.unrecoverable' | 'vault.created' | 'vault.enabled' | 'vault.disabled' | 'vault.deleted' | 'key.created' | 'key.changed' | 'key.enabled' | 'key.disabled' | 'key.rotated' | 'key.deleted' | 'key.reimported' | 'key.destroyed' | 'key.unrecoverable' | 'key.repaired' | 'key.wrapped' | 'key.sent' | 'key.decryption-ended' | 'key.decryption-allowed' | 'key.exported' | 'key.denied' | 'row.tampered' | 'root.rotation-requested' | 'root.rotated' | 'tenant.key-rotation-requested' | 'tenant.key-rotated' | 'service.backed-up' | 'root.backed-up' | 'root.provider-added' | 'root.provider-removed' | 'root.provider-rewrapped' | 'erasure.started' | 'erasure.blocked' | 'erasure.copy-released' | 'erasure.finished' | 'audit.sink-forked' | 'recovery-key.registered' | 'recovery-key.removed' | 'snapshot.created' | 'snapshot.failed' | 'snapshot.imported' | 'snapshot.verified' | 'snapshot.deleted' | 'snapshot.undeleted' | 'snapshot.purged' | 'snapshot.exported' | 'copy.destroyed' | 'snapshot.keys-erased' | 'snapshot.opening-started' | 'snapshot.restored' | 'group.renamed' | 'group.created' | 'application.registered' | 'application.renamed' | 'application.enabled' | 'application.disabled' | 'application.compatibility-changed' | 'application.callers-changed' | 'application.moved' | 'access-guid.added' | 'access-guid.removed' | 'runbook.started' | 'runbook.step-completed' | 'runbook.step-reopened' | 'runbook.finished' | 'instance.first-used' | 'application.used' | 'object.created' | 'object.updated' | 'object.destroyed' | 'endpoint.created' | 'endpoint.renamed' | 'endpoint.enabled' | 'endpoint.disabled' | 'endpoint.settings-changed' | 'endpoint.deleted' | 'endpoint.credential-added' | 'endpoint.credential-removed' | 'vault.renamed' | 'vault.profile-changed' | 'notification.acknowledged' | 'notification.released' | 'setup.confirmed' | 'notification.tested' | 'dual-control.changed' | 'approval.requested' | 'approval.approved' | 'approval.rejected' | 'approval.withdrawn' | 'approval.expired' | 'approval.outdated' | 'approval.completed' | 'key-inventory.exported' | 'request-log.exported' | 'request-log.minute' | 'request-log.pruned' | 'audit-log.exported' | 'audit-log.accepted' | 'audit-log.key-rotated' | 'external-key-store.registered' | 'external-key-store.state-changed' | 'external-key-store.removed' | 'user.created' | 'user.changed' | 'user.enabled' | 'user.disabled' | 'user.cleared' | 'user.deleted' | 'user.locked' | 'user.unlocked' | 'invitation.issued' | 'password.changed' | 'second-factor.added' | 'second-factor.removed' | 'recovery-codes.created' | 'recovery-code.used' | 'session.started' | 'session.ended' | 'session.key-rotated' | 'sign-in.refused' | 'device-sign-in.requested' | 'device-sign-in.approved' | 'device-sign-in.refused' | 'device-sign-in.issued' | 'token.key-rotated' | 'token.former-key-ended' | 'token.created' | 'break-glass.created' | 'administrator.recovered' | 'token.revoked' | 'authentication.failed' | undefined;
      /** Records of kinds that have this severity or a higher one. */
      readonly severity?: 'info' | 'low' | 'medium' | 'high' | 'critical' | undefined;
      readonly actorId?: string | undefined;
      readonly subjectId?: string | undefined;
      readonly requestId?: string | undefined;
      /** Inclusive. */
      readonly from?: string | undefined;
      /** Exclusive. */
      readonly to?: string | undefined;
      readonly order?: 'newest' | 'oldest' | undefined;
    } & Paging & InTenant }, { readonly items: readonly t.AuditRecord[]; readonly next: string | null }>({
      method: 'get', path: '/api/audit', query: { after: null, limit: null, kind: ['service.started', 'service.stopped', 'tls.certificate-created', 'tls.issuer-changed', 'clock.jumped', 'clock.confirmed', 'node.drained', 'node.resumed', 'node.removed', 'tenant.created', 'tenant.renamed', 'tenant.suspended', 'tenant.resumed', 'tenant.deleted', 'tenant.restored', 'tenant.purged', 'tenant.cleared', 'tenant.unrecoverable', 'vault.created', 'vault.enabled', 'vault.disabled', 'vault.deleted', 'key.created', 'key.changed', 'key.enabled', 'key.disabled', 'key.rotated', 'key.deleted', 'key.reimported', 'key.destroyed', 'key.unrecoverable', 'key.repaired', 'key.wrapped', 'key.sent', 'key.decryption-ended', 'key.decryption-allowed', 'key.exported', 'key.denied', 'row.tampered', 'root.rotation-requested', 'root.rotated', 'tenant.key-rotation-requested', 'tenant.key-rotated', 'service.backed-up', 'root.backed-up', 'root.provider-added', 'root.provider-removed', 'root.provider-rewrapped', 'erasure.started', 'erasure.blocked', 'erasure.copy-released', 'erasure.finished', 'audit.sink-forked', 'recovery-key.registered', 'recovery-key.removed', 'snapshot.created', 'snapshot.failed', 'snapshot.imported', 'snapshot.verified', 'snapshot.deleted', 'snapshot.undeleted', 'snapshot.purged', 'snapshot.exported', 'copy.destroyed', 'snapshot.keys-erased', 'snapshot.opening-started', 'snapshot.restored', 'group.renamed', 'group.created', 'application.registered', 'application.renamed', 'application.enabled', 'application.disabled', 'application.compatibility-changed', 'application.callers-changed', 'application.moved', 'access-guid.added', 'access-guid.removed', 'runbook.started', 'runbook.step-completed', 'runbook.step-reopened', 'runbook.finished', 'instance.first-used', 'application.used', 'object.created', 'object.updated', 'object.destroyed', 'endpoint.created', 'endpoint.renamed', 'endpoint.enabled', 'endpoint.disabled', 'endpoint.settings-changed', 'endpoint.deleted', 'endpoint.credential-added', 'endpoint.credential-removed', 'vault.renamed', 'vault.profile-changed', 'notification.acknowledged', 'notification.released', 'setup.confirmed', 'notification.tested', 'dual-control.changed', 'approval.requested', 'approval.approved', 'approval.rejected', 'approval.withdrawn', 'approval.expired', 'approval.outdated', 'approval.completed', 'key-inventory.exported', 'request-log.exported', 'request-log.minute', 'request-log.pruned', 'audit-log.exported', 'audit-log.accepted', 'audit-log.key-rotated', 'external-key-store.registered', 'external-key-store.state-changed', 'external-key-store.removed', 'user.created', 'user.changed', 'user.enabled', 'user.disabled', 'user.cleared', 'user.deleted', 'user.locked', 'user.unlocked', 'invitation.issued', 'password.changed', 'second-factor.added', 'second-factor.removed', 'recovery-codes.created', 'recovery-code.used', 'session.started', 'session.ended', 'session.key-rotated', 'sign-in.refused', 'device-sign-in.requested', 'device-sign-in.approved', 'device-sign-in.refused', 'device-sign-in.issued', 'token.key-rotated', 'token.former-key-ended', 'token.created', 'break-glass.created', 'administrator.recovered', 'token.revoked', 'authentication.failed'], severity: ['info', 'low', 'medium', 'high', 'critical'], actorId: null, subjectId: null, requestId: null, from: null, to: null, order: ['newest', 'oldest'] }, inTenant: true,
    }),
  },
  tokens: {
    /** Create a token */
    create: operation<{ query?: InTenant; body: t.NewToken }, t.IssuedToken>({
      method: 'post', path: '/api/tokens', body: { name: null, expiresAt: null, kind: ['api', 'metrics'], grants: null }, inTenant: true, creates: true, showsOnce: ['token'],
    }),
    /** List tokens */
    list: pagedOperation<{ query?: {
      /** Those that this user created for themselves. */
      readonly userId?: string | undefined;
    } & Paging & InTenant }, { readonly items: readonly t.Token[]; readonly next: string | null }>({
      method: 'get', path: '/api/tokens', query: { after: null, limit: null, userId: null }, inTenant: true,
    }),
    /** List roles and their permissions */
    roles: operation<{ query?: InTenant }, { readonly items: readonly t.Role[] }>({
      method: 'get', path: '/api/roles', inTenant: true,
    }),
    /** Revoke a token */
    revoke: operation<{ path: { id: string }; query?: InTenant }, t.TokenAfterChange>({
      method: 'delete', path: '/api/tokens/{id}', inTenant: true,
    }),
    /** Rotate the key of API tokens */
    rotateKey: operation<{ body?: t.TokenKeyRotation }, t.TokenKeyChangeAfterChange>({
      method: 'post', path: '/api/tokens/rotate-key', body: { compromised: null },
    }),
    /** Remove the former key of API tokens */
    endFormerKey: operation<{ body?: t.EndOfTokenKey }, t.TokenKeyChangeAfterChange>({
      method: 'post', path: '/api/tokens/end-former-key', body: { force: null },
    }),
  },
  users: {
    /** Create a user */
    create: operation<{ query?: InTenant; body: t.NewUser }, t.InvitedUser>({
      method: 'post', path: '/api/users', body: { name: null, displayName: null, email: null, grants: null, subject: null, deliver: ['show', 'mail', 'mail-and-show'] }, inTenant: true, creates: true, showsOnce: ['invitation.token', 'invitation.url'],
    }),
    /** List users */
    list: pagedOperation<{ query?: Paging & InTenant }, { readonly items: readonly t.User[]; readonly next: string | null }>({
      method: 'get', path: '/api/users', query: { after: null, limit: null }, inTenant: true,
    }),
    /** Get a user */
    get: operation<{ path: { id: string }; query?: InTenant }, t.User>({
      method: 'get', path: '/api/users/{id}', inTenant: true,
    }),
    /** Change a user */
    update: replacingOperation<{ path: { id: string }; query?: InTenant; body: t.UserChange }, t.UserAfterChange>({
      method: 'put', path: '/api/users/{id}', body: { displayName: null, email: null, grants: null, subject: null, mustChangePassword: null }, inTenant: true, changes: true,
    }),
    /** Delete a user */
    delete: operation<{ path: { id: string }; query?: InTenant }, t.UserAfterChange>({
      method: 'delete', path: '/api/users/{id}', inTenant: true, changes: true,
    }),
    /** Enable a user */
    enable: operation<{ path: { id: string }; query?: InTenant }, t.UserAfterChange>({
      method: 'post', path: '/api/users/{id}/enable', inTenant: true,
    }),
    /** Disable a user */
    disable: operation<{ path: { id: string }; query?: InTenant }, t.UserAfterChange>({
      method: 'post', path: '/api/users/{id}/disable', inTenant: true, changes: true,
    }),
    /** Unlock a user */
    unlock: operation<{ path: { id: string }; query?: InTenant }, t.UserAfterChange>({
      method: 'post', path: '/api/users/{id}/unlock', inTenant: true,
    }),
    /** Reset a password */
    resetPassword: operation<{ path: { id: string }; query?: InTenant; body?: t.PasswordReset }, t.InvitedUser>({
      method: 'post', path: '/api/users/{id}/invitation', body: { revokeTokens: null, deliver: ['show', 'mail', 'mail-and-show'] }, inTenant: true, creates: true, showsOnce: ['invitation.token', 'invitation.url'],
    }),
    /** Remove a user's second factors */
    removeFactors: operation<{ path: { id: string }; query?: InTenant }, t.UserAfterChange>({
      method: 'delete', path: '/api/users/{id}/factors', inTenant: true,
    }),
    /** List the permissions of a user */
    permissions: operation<{ path: { id: string }; query?: InTenant }, t.UserPermissions>({
      method: 'get', path: '/api/users/{id}/permissions', inTenant: true,
    }),
    /** End all sessions of a user */
    endSessions: operation<{ path: { id: string }; query?: InTenant }, t.EndedSessionsAfterChange>({
      method: 'delete', path: '/api/users/{id}/sessions', inTenant: true,
    }),
  },
  sessions: {
    /** List sessions */
    list: pagedOperation<{ query?: { readonly userId?: string | undefined } & Paging & InTenant }, { readonly items: readonly t.OpenSession[]; readonly next: string | null }>({
      method: 'get', path: '/api/sessions', query: { after: null, limit: null, userId: null }, inTenant: true,
    }),
    /** End a session */
    end: operation<{ path: { id: string }; query?: InTenant }, t.OpenSessionAfterChange>({
      method: 'delete', path: '/api/sessions/{id}', inTenant: true,
    }),
    /** Rotate the session key */
    rotateKey: operation<{}, t.RotatedSessionKeyAfterChange>({ method: 'post', path: '/api/sessions/rotate-key' }),
  },
  profile: {
    /** Get my profile */
    get: operation<{ query?: InTenant }, t.User>({ method: 'get', path: '/api/profile', inTenant: true }),
    /** Change my password */
    changePassword: operation<{ query?: InTenant; body: t.PasswordChange }, t.SessionAfterChange>({
      method: 'post', path: '/api/profile/password', body: { current: null, password: null }, inTenant: true,
    }),
    /** Start setting up a one-time password */
    beginTotp: operation<{ query?: InTenant; body: t.NewTotp }, t.PendingTotp>({
      method: 'post', path: '/api/profile/totp', body: { name: null }, inTenant: true, creates: true, showsOnce: ['secret', 'uri'],
    }),
    /** Confirm a one-time password with its first code */
    confirmTotp: operation<{ path: { id: string }; query?: InTenant; body: t.TotpConfirmation }, t.SessionAfterChange>({
      method: 'post', path: '/api/profile/totp/{id}/confirm', body: { code: null }, inTenant: true,
    }),
    /** Start setting up a passkey */
    beginPasskey: operation<{ query?: InTenant }, t.PasskeyQuestionAfterChange>({
      method: 'post', path: '/api/profile/passkeys/options', inTenant: true,
    }),
    /** Save a passkey */
    addPasskey: operation<{ query?: InTenant; body: t.NewPasskey }, t.SessionAfterChange>({
      method: 'post', path: '/api/profile/passkeys', body: { name: null, answer: null }, inTenant: true,
    }),
    /** Create recovery codes */
    makeRecoveryCodes: operation<{ query?: InTenant }, t.RecoveryCodes>({
      method: 'post', path: '/api/profile/recovery-codes', inTenant: true, creates: true, showsOnce: ['codes'],
    }),
    /** Remove one of my second factors */
    removeFactor: operation<{ path: { id: string }; query?: InTenant }, t.UserAfterChange>({
      method: 'delete', path: '/api/profile/factors/{id}', inTenant: true,
    }),
    /** Create a token for myself */
    createToken: operation<{ query?: InTenant; body: t.NewOwnToken }, t.IssuedToken>({
      method: 'post', path: '/api/profile/tokens', body: { name: null, expiresAt: null, grants: null }, inTenant: true, creates: true, showsOnce: ['token'],
    }),
    /** List my tokens */
    tokens: pagedOperation<{ query?: Paging & InTenant }, { readonly items: readonly t.Token[]; readonly next: string | null }>({
      method: 'get', path: '/api/profile/tokens', query: { after: null, limit: null }, inTenant: true,
    }),
    /** Revoke one of my tokens */
    revokeToken: operation<{ path: { id: string }; query?: InTenant }, t.TokenAfterChange>({
      method: 'delete', path: '/api/profile/tokens/{id}', inTenant: true,
    }),
    /** List my sessions */
    sessions: pagedOperation<{ query?: Paging & InTenant }, { readonly items: readonly t.OpenSession[]; readonly next: string | null }>({
      method: 'get', path: '/api/profile/sessions', query: { after: null, limit: null }, inTenant: true,
    }),
    /** End all my other sessions */
    endOtherSessions: operation<{ query?: InTenant }, t.EndedSessionsAfterChange>({
      method: 'delete', path: '/api/profile/sessions', inTenant: true,
    }),
    /** End one of my sessions */
    endSession: operation<{ path: { id: string }; query?: InTenant }, t.OpenSessionAfterChange>({
      method: 'delete', path: '/api/profile/sessions/{id}', inTenant: true,
    }),
  },
  session: {
    /** Sign in */
    start: operation<{ body: t.SignIn }, t.SessionAfterChange>({
      method: 'post', path: '/api/session', body: { user: null, password: null, token: null },
    }),
    /** Get the current session */
    get: operation<{ query?: InTenant }, t.Session>({ method: 'get', path: '/api/session', inTenant: true }),
    /** Sign out */
    end: operation<{ query?: InTenant }, undefined>({ method: 'delete', path: '/api/session', inTenant: true }),
    /** List the sign-in methods */
    methods: operation<{}, t.SignInMethods>({ method: 'get', path: '/api/sign-in' }),
    /** Start a sign-in with a passkey */
    beginPasskey: operation<{}, t.PasskeyQuestionAfterChange>({ method: 'post', path: '/api/session/passkey/options' }),
    /** Sign in with a passkey */
    passkey: operation<{ body: t.PasskeySignIn }, t.SessionAfterChange>({
      method: 'post', path: '/api/session/passkey', body: { answer: null },
    }),
    /** Start a sign-in with the OpenID provider */
    beginOpenId: operation<{}, t.OpenIdStartAfterChange>({ method: 'post', path: '/api/session/openid' }),
    /** Receive the answer of the OpenID provider */
    finishOpenId: operation<{ query?: { readonly state?: string | undefined } }, undefined>({
      method: 'get', path: '/api/session/openid/callback', query: { state: null },
    }),
    /** Start verifying a passkey as the second factor */
    beginSecondFactor: operation<{ query?: InTenant }, t.PasskeyQuestionAfterChange>({
      method: 'post', path: '/api/session/second-factor/options', inTenant: true,
    }),
    /** Verify the second factor */
    secondFactor: operation<{ query?: InTenant; body: t.SecondFactor }, t.SessionAfterChange>({
      method: 'post', path: '/api/session/second-factor', body: { code: null, recoveryCode: null, passkey: null }, inTenant: true,
    }),
    /** Accept an invitation */
    redeem: operation<{ body: t.InvitationUse }, t.SessionAfterChange>({
      method: 'post', path: '/api/session/invitation', body: { invitation: null, password: null },
    }),
  },
  deviceSignIn: {
    /** Ask for a sign-in in the browser */
    start: operation<{ body: t.NewDeviceSignIn }, t.DeviceSignInStartAfterChange>({
      method: 'post', path: '/api/device-sign-in', body: { host: null, roles: null, hours: null },
    }),
    /** Take the token of a sign-in in the browser */
    poll: operation<{ body: t.DeviceSignInPoll }, t.DeviceSignInAnswerAfterChange>({
      method: 'post', path: '/api/device-sign-in/token', body: { deviceCode: null },
    }),
    /** End the sign-in of a command */
    end: operation<{ body: t.DeviceSignInEnd }, undefined>({
      method: 'post', path: '/api/device-sign-in/end', body: { token: null },
    }),
    /** Show who asks for a sign-in in the browser */
    find: operation<{ query?: InTenant; body: t.UserCode }, t.DeviceSignInRequestAfterChange>({
      method: 'post', path: '/api/device-sign-in/find', body: { userCode: null }, inTenant: true,
    }),
    /** Approve a sign-in of a command */
    approve: operation<{ query?: InTenant; body: t.DeviceSignInApproval }, t.DeviceSignInRequestAfterChange>({
      method: 'post', path: '/api/device-sign-in/approve', body: { userCode: null, hours: null, grants: null }, inTenant: true,
    }),
    /** Refuse a sign-in of a command */
    refuse: operation<{ query?: InTenant; body: t.DeviceSignInRefusal }, t.DeviceSignInRequestAfterChange>({
      method: 'post', path: '/api/device-sign-in/refuse', body: { userCode: null }, inTenant: true,
    }),
  },
  nodes: {
    /** List nodes */
    list: operation<{}, { readonly items: readonly t.Node[] }>({ method: 'get', path: '/api/nodes' }),
    /** Get a node */
    get: operation<{ path: { id: string } }, t.Node>({ method: 'get', path: '/api/nodes/{id}' }),
    /** Remove a node */
    remove: operation<{ path: { id: string } }, t.NodeAfterChange>({ method: 'delete', path: '/api/nodes/{id}' }),
    /** Drain a node */
    drain: operation<{ path: { id: string } }, t.NodeAfterChange>({ method: 'post', path: '/api/nodes/{id}/drain' }),
    /** Resume a drained node */
    resume: operation<{ path: { id: string } }, t.NodeAfterChange>({ method: 'post', path: '/api/nodes/{id}/resume' }),
  },
  status: {
    /** List the scheduled jobs */
    jobs: operation<{}, { readonly items: readonly t.Job[] }>({ method: 'get', path: '/api/jobs' }),
    /** Get the state of the service */
    get: operation<{}, t.Status>({ method: 'get', path: '/api/status' }),
  },
  clock: {
    /** Get the clock that decides deadlines */
    get: operation<{}, t.Clock>({ method: 'get', path: '/api/clock' }),
    /** Confirm the time after the clock has jumped */
    confirm: operation<{ body: {
      /** The current time of a clock that you trust. It must be within five minutes of the clock of the service. */
      readonly time: string;
    } }, t.ClockAfterChange>({
      method: 'post', path: '/api/clock/confirm', body: { time: null },
    }),
  },
  root: {
    /** Get the epoch and providers of the root key */
    get: operation<{}, t.Root>({ method: 'get', path: '/api/root' }),
    /** Rotate the root key, or the key of one tenant */
    rotate: operation<{ body?: {
      /** Rotate only the key of this tenant, not the root key. */
      readonly tenantId?: string | undefined;
    } }, t.RootAfterChange>({
      method: 'post', path: '/api/root/rotate', body: { tenantId: null },
    }),
    /** Stop waiting for a copy of the database */
    releaseCopy: operation<{ body: {
      /** As `waitsFor` names it: `standby second`. */
      readonly name: string;
    } }, t.RootAfterChange>({
      method: 'post', path: '/api/root/copies/release', body: { name: null },
    }),
  },
  quarantine: {
    /** Get the quarantine state */
    get: operation<{}, t.Quarantine>({ method: 'get', path: '/api/quarantine' }),
    /** Accept the database and end the quarantine */
    confirm: operation<{ body: {
      /** The code that the service printed on its standard output when it started. */
      readonly code: string;
    } }, t.QuarantineAfterChange>({
      method: 'post', path: '/api/quarantine/confirm', body: { code: null },
    }),
  },
  search: {
    /** Search names, labels, users and ids */
    find: operation<{ query?: {
      readonly q: string;
      /** Only these kinds, separated by commas: key, vault, group, application, endpoint, external-key-store, user, token, tenant, node, snapshot, approval, request, audit-actor, audit-request, audit-subject. */
      readonly kind?: string | undefined;
      /** The maximum for each kind. */
      readonly limit?: number | undefined;
    } & InTenant }, t.SearchResult>({
      method: 'get', path: '/api/search', query: { q: null, kind: null, limit: null }, inTenant: true,
    }),
  },
  overview: {
    /** Get the latency of key store endpoints */
    latency: operation<{ query?: { readonly span?: 'hour' | 'day' | undefined; readonly endpointId?: string | undefined } & InTenant }, { readonly items: readonly t.LatencyPoint[] }>({
      method: 'get', path: '/api/latency', query: { span: ['hour', 'day'], endpointId: null }, inTenant: true,
    }),
  },
  settings: {
    /** List the settings of the service and their sources */
    get: operation<{}, t.Settings>({ method: 'get', path: '/api/settings' }),
  },
  setup: {
    /** Get the progress of the setup */
    get: operation<{}, t.Setup>({ method: 'get', path: '/api/setup' }),
    /** Accept the risk of a setup step that is not done, or withdraw that */
    confirm: operation<{ body: t.SetupConfirmation }, t.SetupAfterChange>({
      method: 'put', path: '/api/setup', body: { step: ['root-protection', 'root-key', 'administrator', 'recovery-codes', 'first-token', 'audit-sinks', 'snapshot-schedule'], confirmed: null },
    }),
  },
} satisfies Readonly<Record<string, Readonly<Record<string, Operation>>>>;

export type Operations = typeof operations;
