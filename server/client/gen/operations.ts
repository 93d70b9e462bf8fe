// Generated from the OpenAPI document (npm run generate). Do not edit.

import type { FileAnswer, FileBody, InTenant, Operation } from '../operation.ts';
import type * as t from './types.ts';

export interface Operations {
  readonly tenants: {
    /** Create a tenant */
    readonly create: Operation<{
      readonly body: t.NewTenant;
    }, t.Tenant>;
    /** List tenants */
    readonly list: Operation<{
      readonly query?: InTenant;
    }, {
      readonly items: readonly t.Tenant[];
    }>;
    /** Get a tenant */
    readonly get: Operation<{
      readonly path: {
        readonly id: string;
      };
    }, t.Tenant>;
    /** Rename a tenant */
    readonly rename: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly body: t.RenameTenant;
    }, t.TenantAfterChange>;
    /** Delete a tenant */
    readonly delete: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** true: shows what would stop and changes nothing. */
        readonly dryRun?: boolean | undefined;
      };
    }, t.ChangedTenantAfterChange>;
    /** Suspend a tenant */
    readonly suspend: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** true: shows what would stop and changes nothing. */
        readonly dryRun?: boolean | undefined;
      };
    }, t.ChangedTenantAfterChange>;
    /** Resume a suspended tenant */
    readonly resume: Operation<{
      readonly path: {
        readonly id: string;
      };
    }, t.TenantAfterChange>;
    /** Restore a deleted tenant */
    readonly restore: Operation<{
      readonly path: {
        readonly id: string;
      };
    }, t.TenantAfterChange>;
    /** Purge a deleted tenant */
    readonly purge: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** true: shows what would stop and changes nothing. */
        readonly dryRun?: boolean | undefined;
      };
      readonly body?: t.PurgeTenant;
    }, t.ChangedTenantAfterChange>;
  };
  readonly vaults: {
    /** Create a vault */
    readonly create: Operation<{
      readonly query?: InTenant;
      readonly body: t.NewVault;
    }, t.Vault>;
    /** List vaults */
    readonly list: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.Vault[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Get a vault */
    readonly get: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.Vault>;
    /** Delete a vault */
    readonly delete: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** true: shows what would be done and who must approve, and changes nothing. */
        readonly dryRun?: boolean | undefined;
      } & InTenant;
    }, t.DeletedVaultAfterChange>;
    /** Enable a vault */
    readonly enable: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.VaultAfterChange>;
    /** Disable a vault */
    readonly disable: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.VaultAfterChange>;
    /** Set the rotation profile of a vault */
    readonly setProfile: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
      readonly body: t.NewVaultProfile;
    }, t.VaultAfterChange>;
    /** Get the dual control of a vault */
    readonly dualControl: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.VaultDualControl>;
    /** Set the dual control of a vault */
    readonly setDualControl: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** true: shows what would be done and who must approve, and changes nothing. */
        readonly dryRun?: boolean | undefined;
      } & InTenant;
      readonly body: t.NewDualControlRule;
    }, t.VaultDualControlAfterChange>;
    /** Remove the dual control of a vault */
    readonly removeDualControl: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** true: shows what would be done and who must approve, and changes nothing. */
        readonly dryRun?: boolean | undefined;
      } & InTenant;
    }, t.VaultDualControlAfterChange>;
  };
  readonly keys: {
    /** Create a key */
    readonly create: Operation<{
      readonly query?: InTenant;
      readonly body: t.NewKey;
    }, t.Key>;
    /** List keys */
    readonly list: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
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
      } & InTenant;
    }, {
      readonly items: readonly t.Key[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Export the inventory of keys */
    readonly export: Operation<{
      readonly query?: {
        readonly vaultId?: string | undefined;
        readonly kind?: 'general' | 'master' | undefined;
        readonly state?: 'active' | 'disabled' | 'soft-deleted' | 'destroyed' | undefined;
        /** Keys with exactly this tag. */
        readonly tag?: string | undefined;
        /** Inclusive. */
        readonly createdAfter?: string | undefined;
        /** Exclusive. */
        readonly createdBefore?: string | undefined;
        readonly format?: 'ndjson' | 'csv' | undefined;
      } & InTenant;
    }, FileAnswer>;
    /** Get a key */
    readonly get: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.Key>;
    /** Change a key */
    readonly change: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
      readonly body: t.KeyChange;
    }, t.KeyAfterChange>;
    /** Soft-delete a key */
    readonly delete: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** true: shows what would be done and who must approve, and changes nothing. */
        readonly dryRun?: boolean | undefined;
      } & InTenant;
    }, t.DeletedKeyAfterChange>;
    /** List the versions of a key */
    readonly versions: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, {
      readonly items: readonly t.KeyVersion[];
    }>;
    /** Show who uses a key */
    readonly use: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.KeyUse>;
    /** Enable a key */
    readonly enable: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.KeyAfterChange>;
    /** Disable a key */
    readonly disable: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.KeyAfterChange>;
    /** Rotate a key */
    readonly rotate: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.KeyVersionAfterChange>;
  };
  readonly tdeGroups: {
    /** Create a TDE group */
    readonly create: Operation<{
      readonly query?: InTenant;
      readonly body: t.NewTdeGroup;
    }, t.TdeGroup>;
    /** List TDE groups */
    readonly list: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.TdeGroup[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Get a TDE group */
    readonly get: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.TdeGroup>;
  };
  readonly applications: {
    /** Register a TDE application */
    readonly register: Operation<{
      readonly query?: InTenant;
      readonly body: t.NewTdeApplication;
    }, t.RegisteredApplication>;
    /** List TDE applications */
    readonly list: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
        readonly groupId?: string | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.TdeApplication[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Get a TDE application */
    readonly get: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.TdeApplication>;
    /** Enable a TDE application */
    readonly enable: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.TdeApplicationAfterChange>;
    /** Disable a TDE application */
    readonly disable: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.TdeApplicationAfterChange>;
    /** Set the compatibility switches of a TDE application */
    readonly setCompatibility: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
      readonly body: t.TdeApplicationCompatibility;
    }, t.TdeApplicationAfterChange>;
    /** Set the allowed callers of a TDE application */
    readonly setCallers: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
      readonly body: t.TdeApplicationCallers;
    }, t.TdeApplicationAfterChange>;
    /** Move a TDE application to another group */
    readonly move: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** Shows the consequences and changes nothing. */
        readonly dryRun?: boolean | undefined;
      } & InTenant;
      readonly body: t.MoveTdeApplication;
    }, t.MovedTdeApplicationAfterChange>;
    /** Issue a second access_guid */
    readonly rotateAccessGuid: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.IssuedAccessGuid>;
    /** List an application's access_guids */
    readonly accessGuids: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, {
      readonly items: readonly t.AccessGuid[];
    }>;
    /** Remove an access_guid */
    readonly removeAccessGuid: Operation<{
      readonly path: {
        readonly id: string;
        readonly accessGuidId: string;
      };
      readonly query?: InTenant;
    }, t.AccessGuidAfterChange>;
    /** List the instances of an application */
    readonly instances: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, {
      readonly items: readonly t.TdeInstance[];
    }>;
  };
  readonly packages: {
    /** List the packages for database hosts */
    readonly list: Operation<{
      readonly query?: InTenant;
    }, {
      readonly items: readonly t.DistributedPackage[];
    }>;
    /** Download a package */
    readonly download: Operation<{
      readonly path: {
        readonly name: string;
      };
      readonly query?: InTenant;
    }, FileAnswer>;
  };
  readonly masterKeys: {
    /** List an application's master keys */
    readonly list: Operation<{
      readonly path: {
        readonly applicationId: string;
      };
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.MasterKey[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Get a master key */
    readonly get: Operation<{
      readonly path: {
        readonly applicationId: string;
        readonly keyId: string;
      };
      readonly query?: InTenant;
    }, t.MasterKey>;
    /** Show who would lose access if a master key were destroyed */
    readonly blastRadius: Operation<{
      readonly path: {
        readonly applicationId: string;
        readonly keyId: string;
      };
      readonly query?: InTenant;
    }, t.BlastRadius>;
    /** Destroy a master key */
    readonly destroy: Operation<{
      readonly path: {
        readonly applicationId: string;
        readonly keyId: string;
      };
      readonly query?: {
        /** Shows the blast radius and changes nothing. */
        readonly dryRun?: boolean | undefined;
      } & InTenant;
      readonly body?: t.DestroyMasterKey;
    }, t.DestroyedMasterKeyAfterChange>;
  };
  readonly endpoints: {
    /** Create a key store endpoint */
    readonly create: Operation<{
      readonly query?: InTenant;
      readonly body: t.NewEndpoint;
    }, t.Endpoint>;
    /** List key store endpoints */
    readonly list: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.Endpoint[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Get a key store endpoint */
    readonly get: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.Endpoint>;
    /** Delete a key store endpoint */
    readonly delete: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.EndpointAfterChange>;
    /** Enable a key store endpoint */
    readonly enable: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.EndpointAfterChange>;
    /** Disable a key store endpoint */
    readonly disable: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.EndpointAfterChange>;
    /** Replace the settings of a key store endpoint */
    readonly changeSettings: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
      readonly body: t.EndpointSettings;
    }, t.EndpointAfterChange>;
    /** Test requests against the rules of a key store endpoint */
    readonly simulateRules: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
      readonly body: t.RuleSimulation;
    }, {
      readonly items: readonly t.RuleDecision[];
      /** Nodes that did not confirm this change within two seconds and may still use the earlier state. Absent when there are none. */
      readonly pendingNodes?: readonly string[] | undefined;
      /** When the last of the nodes in `pendingNodes` stops using keys if it has not confirmed the change. Null: no limit. */
      readonly pendingUntil?: string | null | undefined;
    }>;
    /** Add a SigV4 credential */
    readonly addCredential: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.XksProxyConfiguration>;
    /** Remove a SigV4 credential */
    readonly removeCredential: Operation<{
      readonly path: {
        readonly id: string;
        readonly credentialId: string;
      };
      readonly query?: InTenant;
    }, t.EndpointAfterChange>;
  };
  readonly diagnostics: {
    /** Run the diagnostics of a key store endpoint */
    readonly run: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
      readonly body?: t.NewDiagnosis;
    }, t.Diagnosis>;
    /** List earlier diagnostics of a key store endpoint */
    readonly list: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.Diagnosis[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Run the diagnostics of a key store endpoint and stream the results */
    readonly follow: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
      readonly body?: t.NewDiagnosis;
    }, FileAnswer>;
    /** Get a diagnostics run */
    readonly get: Operation<{
      readonly path: {
        readonly id: string;
        readonly diagnosisId: string;
      };
      readonly query?: InTenant;
    }, t.Diagnosis>;
  };
  readonly requests: {
    /** Search the request log of all endpoints */
    readonly search: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
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
        readonly externalKeyId?: string | undefined;
        readonly requestId?: string | undefined;
        readonly kmsRequestId?: string | undefined;
        /** Inclusive. */
        readonly from?: string | undefined;
        /** Exclusive. */
        readonly to?: string | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.EndpointRequest[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Export the request log of all endpoints */
    readonly export: Operation<{
      readonly query?: {
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
        readonly externalKeyId?: string | undefined;
        readonly requestId?: string | undefined;
        readonly kmsRequestId?: string | undefined;
        /** Inclusive. */
        readonly from?: string | undefined;
        /** Exclusive. */
        readonly to?: string | undefined;
        readonly format?: 'ndjson' | 'csv' | undefined;
      } & InTenant;
    }, FileAnswer>;
    /** Find the requests for a CloudTrail event */
    readonly correlate: Operation<{
      readonly query?: InTenant;
      readonly body: t.CloudTrailText;
    }, t.CorrelatedRequestsAfterChange>;
    /** Compare the request log with its hashes in the audit log */
    readonly verify: Operation<{
      readonly query?: {
        /** Inclusive. */
        readonly from?: string | undefined;
        /** Exclusive. */
        readonly to?: string | undefined;
      };
    }, t.RequestLogVerification>;
    /** Search the request log of an endpoint */
    readonly searchOne: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
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
        readonly externalKeyId?: string | undefined;
        readonly requestId?: string | undefined;
        readonly kmsRequestId?: string | undefined;
        /** Inclusive. */
        readonly from?: string | undefined;
        /** Exclusive. */
        readonly to?: string | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.EndpointRequest[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Export the request log of an endpoint */
    readonly exportOne: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
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
        readonly externalKeyId?: string | undefined;
        readonly requestId?: string | undefined;
        readonly kmsRequestId?: string | undefined;
        /** Inclusive. */
        readonly from?: string | undefined;
        /** Exclusive. */
        readonly to?: string | undefined;
        readonly format?: 'ndjson' | 'csv' | undefined;
      } & InTenant;
    }, FileAnswer>;
  };
  readonly runbooks: {
    /** List the runbooks */
    readonly list: Operation<{
      readonly query?: InTenant;
    }, {
      readonly items: readonly t.Runbook[];
    }>;
    /** Get a runbook with an application's own values */
    readonly fill: Operation<{
      readonly path: {
        readonly applicationId: string;
        readonly name: string;
      };
      readonly query?: {
        /** 11g R2; 12c to 18c; 19c and later */
        readonly release?: '11g' | '12c-18c' | '19c' | undefined;
        readonly containers?: 'non-cdb' | 'cdb' | undefined;
      } & InTenant;
    }, t.FilledRunbook>;
    /** List runbook runs of an application */
    readonly runs: Operation<{
      readonly path: {
        readonly applicationId: string;
      };
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.RunbookRun[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Start a runbook run */
    readonly start: Operation<{
      readonly path: {
        readonly applicationId: string;
      };
      readonly query?: InTenant;
      readonly body: t.NewRunbookRun;
    }, t.RunbookRun>;
    /** Get a runbook run */
    readonly get: Operation<{
      readonly path: {
        readonly applicationId: string;
        readonly runId: string;
      };
      readonly query?: InTenant;
    }, t.RunbookRun>;
    /** Complete a step */
    readonly completeStep: Operation<{
      readonly path: {
        readonly applicationId: string;
        readonly runId: string;
        readonly step: string;
      };
      readonly query?: InTenant;
      readonly body?: t.StepCompletion;
    }, t.RunbookRunAfterChange>;
    /** Reopen a step */
    readonly reopenStep: Operation<{
      readonly path: {
        readonly applicationId: string;
        readonly runId: string;
        readonly step: string;
      };
      readonly query?: InTenant;
    }, t.RunbookRunAfterChange>;
    /** Finish a run */
    readonly finish: Operation<{
      readonly path: {
        readonly applicationId: string;
        readonly runId: string;
      };
      readonly query?: InTenant;
      readonly body?: t.FinishRunbookRun;
    }, t.RunbookRunAfterChange>;
  };
  readonly externalKeyStores: {
    /** Register an external key store */
    readonly register: Operation<{
      readonly query?: InTenant;
      readonly body: t.NewExternalKeyStore;
    }, t.ExternalKeyStore>;
    /** List external key stores */
    readonly list: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.ExternalKeyStore[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Get an external key store */
    readonly get: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.ExternalKeyStore>;
    /** Unregister an external key store */
    readonly remove: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.ExternalKeyStoreAfterChange>;
    /** Check the connection of an external key store now */
    readonly probe: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.ExternalKeyStoreAfterChange>;
  };
  readonly approvals: {
    /** List approval requests */
    readonly list: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
        readonly state?: 'pending' | 'approved' | 'completed' | 'rejected' | 'withdrawn' | 'expired' | 'outdated' | undefined;
        readonly subjectId?: string | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.Approval[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Get an approval request */
    readonly get: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.Approval>;
    /** Approve a request */
    readonly approve: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
      readonly body?: t.Decision;
    }, t.ApprovalAfterChange>;
    /** Reject a request */
    readonly reject: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
      readonly body?: t.Decision;
    }, t.ApprovalAfterChange>;
    /** Withdraw a request */
    readonly withdraw: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.ApprovalAfterChange>;
  };
  readonly snapshots: {
    /** Create a snapshot of a tenant */
    readonly create: Operation<{
      readonly query?: InTenant;
      readonly body?: t.NewSnapshot;
    }, t.Snapshot>;
    /** List snapshots */
    readonly list: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
        readonly tenantId?: string | undefined;
        readonly state?: 'creating' | 'available' | 'deleted' | 'purged' | 'failed' | 'missing' | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.Snapshot[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Get the schedule, storage and retention of snapshots */
    readonly schedule: Operation<{
      readonly query?: InTenant;
    }, t.SnapshotSchedule>;
    /** Get a snapshot */
    readonly get: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.Snapshot>;
    /** Delete a snapshot */
    readonly delete: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.SnapshotAfterChange>;
    /** List the exported copies of a snapshot */
    readonly exports: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, {
      readonly items: readonly t.SnapshotExport[];
    }>;
    /** Undelete a snapshot */
    readonly undelete: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.SnapshotAfterChange>;
    /** Export a snapshot */
    readonly export: Operation<{
      readonly path: {
        readonly id: string;
      };
    }, FileAnswer>;
    /** Import a snapshot */
    readonly import: Operation<{
      readonly query?: {
        /** Verifier key of the service that created it, if that is another one. */
        readonly signer?: string | undefined;
      };
      readonly body: FileBody | Uint8Array;
    }, t.Snapshot>;
    /** Start opening a snapshot */
    readonly open: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly body?: t.NewSnapshotOpening;
    }, t.SnapshotOpening>;
    /** Verify a snapshot */
    readonly verify: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
      readonly body?: {};
    }, t.SnapshotAfterChange>;
    /** Verify a snapshot with its key */
    readonly verifyOpened: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly body: t.SnapshotOpeningAnswer;
    }, t.SnapshotAfterChange>;
    /** Restore a snapshot */
    readonly restore: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        readonly dryRun?: boolean | undefined;
      };
      readonly body: t.SnapshotRestoreRequest;
    }, t.SnapshotRestoreAfterChange>;
    /** List remaining copies of a key */
    readonly ofKey: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.KeySnapshots>;
  };
  readonly recoveryKeys: {
    /** Register a recovery key */
    readonly register: Operation<{
      readonly body: t.NewRecoveryKey;
    }, t.RecoveryKey>;
    /** List recovery keys */
    readonly list: Operation<{}, {
      readonly items: readonly t.RecoveryKey[];
    }>;
    /** Remove a recovery key */
    readonly remove: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** true: remove even the last key while snapshots are scheduled. */
        readonly force?: boolean | undefined;
      };
    }, t.RecoveryKeyAfterChange>;
  };
  readonly notifications: {
    /** List notifications, most urgent first */
    readonly list: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
        readonly state?: 'open' | 'resolved' | undefined;
        readonly kind?: 'key.rotation-due' | 'master-key.rotation-due' | 'endpoint.credential-due' | 'application.access-guid-due' | 'tls.certificate-expiring' | 'tls.certificate-old' | 'tls.file-unusable' | 'tls.certificate-created' | 'tls.issuer-changed' | 'client-authority.expiring' | 'client-certificate.expiring' | 'token.expiring' | 'token.old' | 'token.key-old' | 'token.former-key' | 'session.key-old' | 'administrator.recovered' | 'key-store.disconnected' | 'endpoint.failing' | 'endpoint.late' | 'endpoint.slow' | 'endpoint.tampered' | 'endpoint.credential-unused' | 'approval.pending' | 'dual-control.unsatisfiable' | 'audit.sink-behind' | 'audit.checkpoint-stale' | 'audit.key-old' | 'snapshot.failed' | 'snapshot.old' | 'snapshot.none' | 'snapshot.unopened' | 'snapshot.folder-missing' | 'backup.old' | 'root.backup-old' | 'erasure.blocked' | 'erasure.failed' | 'health.failing' | 'memory.unlocked' | 'requests.sink-lost' | 'requests.dropped' | 'clock.jumped' | 'log.failing' | 'node.offline' | undefined;
        /** The lowest severity to list. */
        readonly minSeverity?: 'info' | 'low' | 'medium' | 'high' | 'critical' | undefined;
        /** Whether it is acknowledged. */
        readonly acknowledged?: boolean | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.Notification[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Acknowledge a notification */
    readonly acknowledge: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.NotificationAfterChange>;
    /** Release a notification */
    readonly release: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.NotificationAfterChange>;
    /** List notification targets */
    readonly targets: Operation<{}, {
      readonly items: readonly t.NotificationTarget[];
    }>;
    /** Send a test notification to every target */
    readonly test: Operation<{}, {
      readonly items: readonly {
        readonly name: string;
        readonly failure: string | null;
      }[];
      /** Nodes that did not confirm this change within two seconds and may still use the earlier state. Absent when there are none. */
      readonly pendingNodes?: readonly string[] | undefined;
      /** When the last of the nodes in `pendingNodes` stops using keys if it has not confirmed the change. Null: no limit. */
      readonly pendingUntil?: string | null | undefined;
    }>;
  };
  readonly audit: {
    /** Get the audit log's signing keys */
    readonly log: Operation<{
      readonly query?: InTenant;
    }, t.AuditLog>;
    /** Rotate the audit log's signing key */
    readonly rotateKey: Operation<{}, t.AuditLogAfterChange>;
    /** List the checkpoints of the audit log */
    readonly checkpoints: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
      };
    }, {
      readonly items: readonly t.AuditCheckpoint[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** List the sinks of the audit log */
    readonly sinks: Operation<{}, {
      readonly items: readonly t.AuditSink[];
    }>;
    /** Export the whole audit log */
    readonly export: Operation<{}, FileAnswer>;
    /** Export one tenant's part of the audit log */
    readonly exportTenant: Operation<{
      readonly query?: InTenant;
    }, FileAnswer>;
    /** Prove that a record is in the audit log */
    readonly prove: Operation<{
      readonly path: {
        readonly sequence: string;
      };
      readonly query?: InTenant;
    }, t.AuditProof>;
    /** List key migration activity */
    readonly migrations: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
        readonly applicationId?: string | undefined;
        /** Inclusive. */
        readonly from?: string | undefined;
        /** Exclusive. */
        readonly to?: string | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.KeyMigration[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** List audit records */
    readonly list: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
        readonly kind?: 'service.started' | 'service.stopped' | 'tls.certificate-created' | 'tls.issuer-changed' | 'node.drained' | 'node.resumed' | 'node.removed' | 'clock.jumped' | 'clock.confirmed' | 'tenant.created' | 'tenant.renamed' | 'tenant.suspended' | 'tenant.resumed' | 'tenant.deleted' | 'tenant.restored' | 'tenant.purged' | 'tenant.unrecoverable' | 'vault.created' | 'vault.enabled' | 'vault.disabled' | 'vault.deleted' | 'key.created' | 'key.changed' | 'key.enabled' | 'key.disabled' | 'key.rotated' | 'key.deleted' | 'key.reimported' | 'key.destroyed' | 'key.unrecoverable' | 'key.repaired' | 'key.wrapped' | 'key.sent' | 'key.decryption-ended' | 'key.exported' | 'key.denied' | 'row.tampered' | 'root.rotation-requested' | 'root.rotated' | 'tenant.key-rotation-requested' | 'tenant.key-rotated' | 'service.backed-up' | 'root.backed-up' | 'root.provider-added' | 'root.provider-removed' | 'root.provider-rewrapped' | 'erasure.started' | 'erasure.blocked' | 'erasure.finished' | 'recovery-key.registered' | 'recovery-key.removed' | 'snapshot.created' | 'snapshot.failed' | 'snapshot.imported' | 'snapshot.verified' | 'snapshot.deleted' | 'snapshot.undeleted' | 'snapshot.purged' | 'snapshot.exported' | 'snapshot.keys-erased' | 'snapshot.opening-started' | 'snapshot.restored' | 'group.created' | 'application.registered' | 'application.enabled' | 'application.disabled' | 'application.compatibility-changed' | 'application.callers-changed' | 'application.moved' | 'access-guid.added' | 'access-guid.removed' | 'runbook.started' | 'runbook.step-completed' | 'runbook.step-reopened' | 'runbook.finished' | 'instance.first-used' | 'application.used' | 'object.created' | 'object.updated' | 'object.destroyed' | 'endpoint.created' | 'endpoint.enabled' | 'endpoint.disabled' | 'endpoint.settings-changed' | 'endpoint.deleted' | 'endpoint.credential-added' | 'endpoint.credential-removed' | 'vault.profile-changed' | 'notification.acknowledged' | 'notification.released' | 'setup.confirmed' | 'notification.tested' | 'dual-control.changed' | 'approval.requested' | 'approval.approved' | 'approval.rejected' | 'approval.withdrawn' | 'approval.expired' | 'approval.outdated' | 'approval.completed' | 'key-inventory.exported' | 'request-log.exported' | 'request-log.minute' | 'request-log.pruned' | 'audit-log.exported' | 'audit-log.accepted' | 'audit-log.key-rotated' | 'external-key-store.registered' | 'external-key-store.state-changed' | 'external-key-store.removed' | 'user.created' | 'user.changed' | 'user.enabled' | 'user.disabled' | 'user.deleted' | 'user.locked' | 'user.unlocked' | 'invitation.issued' | 'password.changed' | 'second-factor.added' | 'second-factor.removed' | 'recovery-codes.created' | 'recovery-code.used' | 'session.started' | 'session.ended' | 'session.key-rotated' | 'sign-in.refused' | 'token.key-rotated' | 'token.former-key-ended' | 'token.created' | 'break-glass.created' | 'administrator.recovered' | 'token.revoked' | 'authentication.failed' | undefined;
        readonly actorId?: string | undefined;
        readonly subjectId?: string | undefined;
        readonly requestId?: string | undefined;
        /** Inclusive. */
        readonly from?: string | undefined;
        /** Exclusive. */
        readonly to?: string | undefined;
        readonly order?: 'newest' | 'oldest' | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.AuditRecord[];
      readonly next: string | null;
    }> & { readonly paged: true };
  };
  readonly tokens: {
    /** Create a token */
    readonly create: Operation<{
      readonly query?: InTenant;
      readonly body: t.NewToken;
    }, t.IssuedToken>;
    /** List tokens */
    readonly list: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.Token[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** List roles and their permissions */
    readonly roles: Operation<{
      readonly query?: InTenant;
    }, {
      readonly items: readonly t.Role[];
    }>;
    /** Revoke a token */
    readonly revoke: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.TokenAfterChange>;
    /** Rotate the key of API tokens */
    readonly rotateKey: Operation<{
      readonly body?: t.TokenKeyRotation;
    }, t.TokenKeyChangeAfterChange>;
    /** Remove the former key of API tokens */
    readonly endFormerKey: Operation<{
      readonly body?: t.EndOfTokenKey;
    }, t.TokenKeyChangeAfterChange>;
  };
  readonly users: {
    /** Create a user */
    readonly create: Operation<{
      readonly query?: InTenant;
      readonly body: t.NewUser;
    }, t.InvitedUser>;
    /** List users */
    readonly list: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.User[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** Get a user */
    readonly get: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.User>;
    /** Change a user */
    readonly update: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
      readonly body: t.UserChange;
    }, t.UserAfterChange>;
    /** Delete a user */
    readonly delete: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.UserAfterChange>;
    /** Enable a user */
    readonly enable: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.UserAfterChange>;
    /** Disable a user */
    readonly disable: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.UserAfterChange>;
    /** Unlock a user */
    readonly unlock: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.UserAfterChange>;
    /** Reset a password */
    readonly resetPassword: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
      readonly body?: t.PasswordReset;
    }, t.InvitedUser>;
    /** Remove a user's second factors */
    readonly removeFactors: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.UserAfterChange>;
    /** List the permissions of a user */
    readonly permissions: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.UserPermissions>;
    /** End all sessions of a user */
    readonly endSessions: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.EndedSessionsAfterChange>;
  };
  readonly sessions: {
    /** List sessions */
    readonly list: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
        readonly userId?: string | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.OpenSession[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** End a session */
    readonly end: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.OpenSessionAfterChange>;
    /** Rotate the session key */
    readonly rotateKey: Operation<{}, t.RotatedSessionKeyAfterChange>;
  };
  readonly profile: {
    /** Get my profile */
    readonly get: Operation<{
      readonly query?: InTenant;
    }, t.User>;
    /** Change my password */
    readonly changePassword: Operation<{
      readonly query?: InTenant;
      readonly body: t.PasswordChange;
    }, t.SessionAfterChange>;
    /** Start setting up a one-time password */
    readonly beginTotp: Operation<{
      readonly query?: InTenant;
      readonly body: t.NewTotp;
    }, t.PendingTotp>;
    /** Confirm a one-time password with its first code */
    readonly confirmTotp: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
      readonly body: t.TotpConfirmation;
    }, t.SessionAfterChange>;
    /** Start setting up a passkey */
    readonly beginPasskey: Operation<{
      readonly query?: InTenant;
    }, t.PasskeyQuestionAfterChange>;
    /** Save a passkey */
    readonly addPasskey: Operation<{
      readonly query?: InTenant;
      readonly body: t.NewPasskey;
    }, t.SessionAfterChange>;
    /** Create recovery codes */
    readonly makeRecoveryCodes: Operation<{
      readonly query?: InTenant;
    }, t.RecoveryCodes>;
    /** Remove one of my second factors */
    readonly removeFactor: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.UserAfterChange>;
    /** Create a token for myself */
    readonly createToken: Operation<{
      readonly query?: InTenant;
      readonly body: t.NewOwnToken;
    }, t.IssuedToken>;
    /** List my sessions */
    readonly sessions: Operation<{
      readonly query?: {
        /** The `next` of the previous page. */
        readonly after?: string | undefined;
        /** The maximum number of items. A page of large items is shorter: continue while `next` is not null. */
        readonly limit?: number | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.OpenSession[];
      readonly next: string | null;
    }> & { readonly paged: true };
    /** End one of my sessions */
    readonly endSession: Operation<{
      readonly path: {
        readonly id: string;
      };
      readonly query?: InTenant;
    }, t.OpenSessionAfterChange>;
  };
  readonly session: {
    /** Sign in */
    readonly start: Operation<{
      readonly body: t.SignIn;
    }, t.SessionAfterChange>;
    /** Get the current session */
    readonly get: Operation<{
      readonly query?: InTenant;
    }, t.Session>;
    /** Sign out */
    readonly end: Operation<{
      readonly query?: InTenant;
    }, undefined>;
    /** List the sign-in methods */
    readonly methods: Operation<{}, t.SignInMethods>;
    /** Start a sign-in with a passkey */
    readonly beginPasskey: Operation<{}, t.PasskeyQuestionAfterChange>;
    /** Sign in with a passkey */
    readonly passkey: Operation<{
      readonly body: t.PasskeySignIn;
    }, t.SessionAfterChange>;
    /** Start a sign-in with the OpenID provider */
    readonly beginOpenId: Operation<{}, t.OpenIdStartAfterChange>;
    /** Receive the answer of the OpenID provider */
    readonly finishOpenId: Operation<{
      readonly query?: {
        readonly state?: string | undefined;
      };
    }, undefined>;
    /** Start verifying a passkey as the second factor */
    readonly beginSecondFactor: Operation<{
      readonly query?: InTenant;
    }, t.PasskeyQuestionAfterChange>;
    /** Verify the second factor */
    readonly secondFactor: Operation<{
      readonly query?: InTenant;
      readonly body: t.SecondFactor;
    }, t.SessionAfterChange>;
    /** Accept an invitation */
    readonly redeem: Operation<{
      readonly body: t.InvitationUse;
    }, t.SessionAfterChange>;
  };
  readonly nodes: {
    /** List nodes */
    readonly list: Operation<{}, {
      readonly items: readonly t.Node[];
    }>;
    /** Get a node */
    readonly get: Operation<{
      readonly path: {
        readonly id: string;
      };
    }, t.Node>;
    /** Remove a node */
    readonly remove: Operation<{
      readonly path: {
        readonly id: string;
      };
    }, t.NodeAfterChange>;
    /** Drain a node */
    readonly drain: Operation<{
      readonly path: {
        readonly id: string;
      };
    }, t.NodeAfterChange>;
    /** Resume a drained node */
    readonly resume: Operation<{
      readonly path: {
        readonly id: string;
      };
    }, t.NodeAfterChange>;
  };
  readonly status: {
    /** Get the state of the service */
    readonly get: Operation<{}, t.Status>;
  };
  readonly clock: {
    /** Get the clock that decides deadlines */
    readonly get: Operation<{}, t.Clock>;
    /** Confirm the time after the clock has jumped */
    readonly confirm: Operation<{
      readonly body: {
        /** The current time of a clock that you trust. It must be within five minutes of the clock of the service. */
        readonly time: string;
      };
    }, t.ClockAfterChange>;
  };
  readonly root: {
    /** Get the epoch and providers of the root key */
    readonly get: Operation<{}, t.Root>;
    /** Rotate the root key, or the key of one tenant */
    readonly rotate: Operation<{
      readonly body?: {
        /** Rotate only the key of this tenant, not the root key. */
        readonly tenantId?: string | undefined;
      };
    }, t.RootAfterChange>;
  };
  readonly quarantine: {
    /** Get the quarantine state */
    readonly get: Operation<{}, t.Quarantine>;
    /** Accept the database and end the quarantine */
    readonly confirm: Operation<{
      readonly body: {
        /** The code that the service printed on its standard output when it started. */
        readonly code: string;
      };
    }, t.QuarantineAfterChange>;
  };
  readonly search: {
    /** Search names, labels, users and ids */
    readonly find: Operation<{
      readonly query?: {
        readonly q: string;
        /** Only these kinds, separated by commas: key, vault, group, application, endpoint, external-key-store, user, token, tenant, node, snapshot, approval, request, audit-actor, audit-request, audit-subject. */
        readonly kind?: string | undefined;
        /** The maximum for each kind. */
        readonly limit?: number | undefined;
      } & InTenant;
    }, t.SearchResult>;
  };
  readonly overview: {
    /** Get the latency of key store endpoints */
    readonly latency: Operation<{
      readonly query?: {
        readonly span?: 'hour' | 'day' | undefined;
        readonly endpointId?: string | undefined;
      } & InTenant;
    }, {
      readonly items: readonly t.LatencyPoint[];
    }>;
  };
  readonly settings: {
    /** List the settings of the service and their sources */
    readonly get: Operation<{}, t.Settings>;
  };
  readonly setup: {
    /** Get the progress of the setup */
    readonly get: Operation<{}, t.Setup>;
    /** Mark a manual setup step as complete or not complete */
    readonly confirm: Operation<{
      readonly body: t.SetupConfirmation;
    }, t.SetupAfterChange>;
  };
}

export const operations: Operations = {
  tenants: {
    create: { method: 'post', path: '/api/tenants', body: { name: null }, creates: true },
    list: { method: 'get', path: '/api/tenants', inTenant: true },
    get: { method: 'get', path: '/api/tenants/{id}' },
    rename: { method: 'put', path: '/api/tenants/{id}', body: { name: null }, changes: true },
    delete: { method: 'delete', path: '/api/tenants/{id}', query: { dryRun: null }, changes: true },
    suspend: { method: 'post', path: '/api/tenants/{id}/suspend', query: { dryRun: null }, changes: true },
    resume: { method: 'post', path: '/api/tenants/{id}/resume', changes: true },
    restore: { method: 'post', path: '/api/tenants/{id}/restore', changes: true },
    purge: { method: 'post', path: '/api/tenants/{id}/purge', query: { dryRun: null }, body: { confirm: null }, changes: true },
  },
  vaults: {
    create: { method: 'post', path: '/api/vaults', body: { name: null }, inTenant: true, creates: true },
    list: { method: 'get', path: '/api/vaults', query: { after: null, limit: null }, inTenant: true, paged: true },
    get: { method: 'get', path: '/api/vaults/{id}', inTenant: true },
    delete: { method: 'delete', path: '/api/vaults/{id}', query: { dryRun: null }, inTenant: true, changes: true },
    enable: { method: 'post', path: '/api/vaults/{id}/enable', inTenant: true, changes: true },
    disable: { method: 'post', path: '/api/vaults/{id}/disable', inTenant: true, changes: true },
    setProfile: { method: 'put', path: '/api/vaults/{id}/profile', body: { profile: ['standard', 'high-security'] }, inTenant: true, changes: true },
    dualControl: { method: 'get', path: '/api/vaults/{id}/dual-control', inTenant: true },
    setDualControl: { method: 'put', path: '/api/vaults/{id}/dual-control', query: { dryRun: null }, body: { required: null, approvers: null, actions: null, databases: ['allowed', 'refused'] }, inTenant: true, changes: true },
    removeDualControl: { method: 'delete', path: '/api/vaults/{id}/dual-control', query: { dryRun: null }, inTenant: true, changes: true },
  },
  keys: {
    create: { method: 'post', path: '/api/keys', body: { name: null, vaultId: null, tags: null }, inTenant: true, creates: true },
    list: { method: 'get', path: '/api/keys', query: { after: null, limit: null, vaultId: null, kind: ['general', 'master'], state: ['active', 'disabled', 'soft-deleted', 'destroyed'], tag: null, createdAfter: null, createdBefore: null, usedAfter: null, usedBefore: null, neverUsed: null }, inTenant: true, paged: true },
    export: { method: 'get', path: '/api/keys/export', query: { vaultId: null, kind: ['general', 'master'], state: ['active', 'disabled', 'soft-deleted', 'destroyed'], tag: null, createdAfter: null, createdBefore: null, format: ['ndjson', 'csv'] }, inTenant: true, streams: ['application/x-ndjson', 'text/csv'] },
    get: { method: 'get', path: '/api/keys/{id}', inTenant: true },
    change: { method: 'put', path: '/api/keys/{id}', body: { name: null, tags: null }, inTenant: true, changes: true },
    delete: { method: 'delete', path: '/api/keys/{id}', query: { dryRun: null }, inTenant: true, changes: true },
    versions: { method: 'get', path: '/api/keys/{id}/versions', inTenant: true },
    use: { method: 'get', path: '/api/keys/{id}/use', inTenant: true },
    enable: { method: 'post', path: '/api/keys/{id}/enable', inTenant: true, changes: true },
    disable: { method: 'post', path: '/api/keys/{id}/disable', inTenant: true, changes: true },
    rotate: { method: 'post', path: '/api/keys/{id}/rotate', inTenant: true, changes: true },
  },
  tdeGroups: {
    create: { method: 'post', path: '/api/tde/groups', body: { name: null }, inTenant: true, creates: true },
    list: { method: 'get', path: '/api/tde/groups', query: { after: null, limit: null }, inTenant: true, paged: true },
    get: { method: 'get', path: '/api/tde/groups/{id}', inTenant: true },
  },
  applications: {
    register: { method: 'post', path: '/api/tde/applications', body: { name: null, groupId: null, appId: null }, inTenant: true, creates: true },
    list: { method: 'get', path: '/api/tde/applications', query: { after: null, limit: null, groupId: null }, inTenant: true, paged: true },
    get: { method: 'get', path: '/api/tde/applications/{id}', inTenant: true },
    enable: { method: 'post', path: '/api/tde/applications/{id}/enable', inTenant: true, changes: true },
    disable: { method: 'post', path: '/api/tde/applications/{id}/disable', inTenant: true, changes: true },
    setCompatibility: { method: 'put', path: '/api/tde/applications/{id}/compatibility', body: { switches: null }, inTenant: true, changes: true },
    setCallers: { method: 'put', path: '/api/tde/applications/{id}/callers', body: { networks: null, certificates: null }, inTenant: true, changes: true },
    move: { method: 'post', path: '/api/tde/applications/{id}/move', query: { dryRun: null }, body: { groupId: null, confirm: null }, inTenant: true, changes: true },
    rotateAccessGuid: { method: 'post', path: '/api/tde/applications/{id}/access-guids', inTenant: true, creates: true },
    accessGuids: { method: 'get', path: '/api/tde/applications/{id}/access-guids', inTenant: true },
    removeAccessGuid: { method: 'delete', path: '/api/tde/applications/{id}/access-guids/{accessGuidId}', inTenant: true },
    instances: { method: 'get', path: '/api/tde/applications/{id}/instances', inTenant: true },
  },
  packages: {
    list: { method: 'get', path: '/api/packages', inTenant: true },
    download: { method: 'get', path: '/api/packages/{name}/file', inTenant: true, streams: ['application/octet-stream'] },
  },
  masterKeys: {
    list: { method: 'get', path: '/api/tde/applications/{applicationId}/master-keys', query: { after: null, limit: null }, inTenant: true, paged: true },
    get: { method: 'get', path: '/api/tde/applications/{applicationId}/master-keys/{keyId}', inTenant: true },
    blastRadius: { method: 'get', path: '/api/tde/applications/{applicationId}/master-keys/{keyId}/blast-radius', inTenant: true },
    destroy: { method: 'post', path: '/api/tde/applications/{applicationId}/master-keys/{keyId}/destroy', query: { dryRun: null }, body: { confirm: null }, inTenant: true },
  },
  endpoints: {
    create: { method: 'post', path: '/api/endpoints', body: { name: null, vaultId: null, keyId: null, prefix: null, settings: null }, inTenant: true, creates: true },
    list: { method: 'get', path: '/api/endpoints', query: { after: null, limit: null }, inTenant: true, paged: true },
    get: { method: 'get', path: '/api/endpoints/{id}', inTenant: true },
    delete: { method: 'delete', path: '/api/endpoints/{id}', inTenant: true, changes: true },
    enable: { method: 'post', path: '/api/endpoints/{id}/enable', inTenant: true, changes: true },
    disable: { method: 'post', path: '/api/endpoints/{id}/disable', inTenant: true, changes: true },
    changeSettings: { method: 'put', path: '/api/endpoints/{id}/settings', body: { operatorProbes: null, rate: null, clientCertificate: null, rules: null }, inTenant: true, changes: true },
    simulateRules: { method: 'post', path: '/api/endpoints/{id}/rules/simulate', body: { rules: null, requests: null }, inTenant: true },
    addCredential: { method: 'post', path: '/api/endpoints/{id}/credentials', inTenant: true, creates: true },
    removeCredential: { method: 'delete', path: '/api/endpoints/{id}/credentials/{credentialId}', inTenant: true },
  },
  diagnostics: {
    run: { method: 'post', path: '/api/endpoints/{id}/diagnostics', body: { callerTime: null, cloud: null }, inTenant: true, creates: true, long: true },
    list: { method: 'get', path: '/api/endpoints/{id}/diagnostics', query: { after: null, limit: null }, inTenant: true, paged: true },
    follow: { method: 'post', path: '/api/endpoints/{id}/diagnostics/follow', body: { callerTime: null, cloud: null }, inTenant: true, streams: ['application/x-ndjson'] },
    get: { method: 'get', path: '/api/endpoints/{id}/diagnostics/{diagnosisId}', inTenant: true },
  },
  requests: {
    search: { method: 'get', path: '/api/requests', query: { after: null, limit: null, endpointId: null, operation: null, result: ['answered', 'refused'], signed: null, status: null, errorName: null, kmsOperation: null, principal: null, kmsKeyArn: null, externalKeyId: null, requestId: null, kmsRequestId: null, from: null, to: null }, inTenant: true, paged: true },
    export: { method: 'get', path: '/api/requests/export', query: { endpointId: null, operation: null, result: ['answered', 'refused'], signed: null, status: null, errorName: null, kmsOperation: null, principal: null, kmsKeyArn: null, externalKeyId: null, requestId: null, kmsRequestId: null, from: null, to: null, format: ['ndjson', 'csv'] }, inTenant: true, streams: ['application/x-ndjson', 'text/csv'] },
    correlate: { method: 'post', path: '/api/requests/correlate', body: { text: null }, inTenant: true },
    verify: { method: 'get', path: '/api/requests/verification', query: { from: null, to: null }, long: true },
    searchOne: { method: 'get', path: '/api/endpoints/{id}/requests', query: { after: null, limit: null, operation: null, result: ['answered', 'refused'], signed: null, status: null, errorName: null, kmsOperation: null, principal: null, kmsKeyArn: null, externalKeyId: null, requestId: null, kmsRequestId: null, from: null, to: null }, inTenant: true, paged: true },
    exportOne: { method: 'get', path: '/api/endpoints/{id}/requests/export', query: { operation: null, result: ['answered', 'refused'], signed: null, status: null, errorName: null, kmsOperation: null, principal: null, kmsKeyArn: null, externalKeyId: null, requestId: null, kmsRequestId: null, from: null, to: null, format: ['ndjson', 'csv'] }, inTenant: true, streams: ['application/x-ndjson', 'text/csv'] },
  },
  runbooks: {
    list: { method: 'get', path: '/api/runbooks', inTenant: true },
    fill: { method: 'get', path: '/api/tde/applications/{applicationId}/runbooks/{name}', query: { release: ['11g', '12c-18c', '19c'], containers: ['non-cdb', 'cdb'] }, inTenant: true },
    runs: { method: 'get', path: '/api/tde/applications/{applicationId}/runbook-runs', query: { after: null, limit: null }, inTenant: true, paged: true },
    start: { method: 'post', path: '/api/tde/applications/{applicationId}/runbook-runs', body: { runbook: ['rotate', 'check', 'restart-after-rotation', 'migrate', 'reverse-migrate', 'standby', 'restore', 'clone-pdb', 'upgrade-library', 'destroy'], release: ['11g', '12c-18c', '19c'], containers: ['non-cdb', 'cdb'] }, inTenant: true, creates: true },
    get: { method: 'get', path: '/api/tde/applications/{applicationId}/runbook-runs/{runId}', inTenant: true },
    completeStep: { method: 'put', path: '/api/tde/applications/{applicationId}/runbook-runs/{runId}/steps/{step}', body: { outcome: ['done', 'not-needed'], note: null }, inTenant: true },
    reopenStep: { method: 'delete', path: '/api/tde/applications/{applicationId}/runbook-runs/{runId}/steps/{step}', inTenant: true },
    finish: { method: 'post', path: '/api/tde/applications/{applicationId}/runbook-runs/{runId}/finish', body: { outcome: ['done', 'abandoned'], note: null }, inTenant: true },
  },
  externalKeyStores: {
    register: { method: 'post', path: '/api/external-key-stores', body: { name: null, customKeyStoreId: null, region: null, endpointId: null }, inTenant: true, creates: true },
    list: { method: 'get', path: '/api/external-key-stores', query: { after: null, limit: null }, inTenant: true, paged: true },
    get: { method: 'get', path: '/api/external-key-stores/{id}', inTenant: true },
    remove: { method: 'delete', path: '/api/external-key-stores/{id}', inTenant: true },
    probe: { method: 'post', path: '/api/external-key-stores/{id}/probe', inTenant: true },
  },
  approvals: {
    list: { method: 'get', path: '/api/approvals', query: { after: null, limit: null, state: ['pending', 'approved', 'completed', 'rejected', 'withdrawn', 'expired', 'outdated'], subjectId: null }, inTenant: true, paged: true },
    get: { method: 'get', path: '/api/approvals/{id}', inTenant: true },
    approve: { method: 'post', path: '/api/approvals/{id}/approve', body: { comment: null }, inTenant: true, changes: true },
    reject: { method: 'post', path: '/api/approvals/{id}/reject', body: { comment: null }, inTenant: true, changes: true },
    withdraw: { method: 'post', path: '/api/approvals/{id}/withdraw', inTenant: true, changes: true },
  },
  snapshots: {
    create: { method: 'post', path: '/api/snapshots', body: { tenantId: null }, inTenant: true, creates: true, long: true },
    list: { method: 'get', path: '/api/snapshots', query: { after: null, limit: null, tenantId: null, state: ['creating', 'available', 'deleted', 'purged', 'failed', 'missing'] }, inTenant: true, paged: true },
    schedule: { method: 'get', path: '/api/snapshot-schedule', inTenant: true },
    get: { method: 'get', path: '/api/snapshots/{id}', inTenant: true },
    delete: { method: 'delete', path: '/api/snapshots/{id}', inTenant: true },
    exports: { method: 'get', path: '/api/snapshots/{id}/exports', inTenant: true },
    undelete: { method: 'post', path: '/api/snapshots/{id}/undelete', inTenant: true },
    export: { method: 'get', path: '/api/snapshots/{id}/file', streams: ['application/octet-stream'] },
    import: { method: 'post', path: '/api/snapshot-imports', query: { signer: null }, creates: true, takes: 'application/octet-stream' },
    open: { method: 'post', path: '/api/snapshots/{id}/openings', body: { recoveryKeyId: null }, creates: true },
    verify: { method: 'post', path: '/api/snapshots/{id}/verify', body: {  }, inTenant: true, long: true },
    verifyOpened: { method: 'post', path: '/api/snapshots/{id}/verify-opened', body: { openingId: null, sealedKey: null }, long: true },
    restore: { method: 'post', path: '/api/snapshots/{id}/restore', query: { dryRun: null }, body: { openingId: null, sealedKey: null, tenantId: null, newTenant: null }, long: true },
    ofKey: { method: 'get', path: '/api/keys/{id}/snapshots', inTenant: true },
  },
  recoveryKeys: {
    register: { method: 'post', path: '/api/recovery-keys', body: { name: null, publicKey: null }, creates: true },
    list: { method: 'get', path: '/api/recovery-keys' },
    remove: { method: 'delete', path: '/api/recovery-keys/{id}', query: { force: null } },
  },
  notifications: {
    list: { method: 'get', path: '/api/notifications', query: { after: null, limit: null, state: ['open', 'resolved'], kind: ['key.rotation-due', 'master-key.rotation-due', 'endpoint.credential-due', 'application.access-guid-due', 'tls.certificate-expiring', 'tls.certificate-old', 'tls.file-unusable', 'tls.certificate-created', 'tls.issuer-changed', 'client-authority.expiring', 'client-certificate.expiring', 'token.expiring', 'token.old', 'token.key-old', 'token.former-key', 'session.key-old', 'administrator.recovered', 'key-store.disconnected', 'endpoint.failing', 'endpoint.late', 'endpoint.slow', 'endpoint.tampered', 'endpoint.credential-unused', 'approval.pending', 'dual-control.unsatisfiable', 'audit.sink-behind', 'audit.checkpoint-stale', 'audit.key-old', 'snapshot.failed', 'snapshot.old', 'snapshot.none', 'snapshot.unopened', 'snapshot.folder-missing', 'backup.old', 'root.backup-old', 'erasure.blocked', 'erasure.failed', 'health.failing', 'memory.unlocked', 'requests.sink-lost', 'requests.dropped', 'clock.jumped', 'log.failing', 'node.offline'], minSeverity: ['info', 'low', 'medium', 'high', 'critical'], acknowledged: null }, inTenant: true, paged: true },
    acknowledge: { method: 'post', path: '/api/notifications/{id}/acknowledge', inTenant: true },
    release: { method: 'delete', path: '/api/notifications/{id}/acknowledge', inTenant: true },
    targets: { method: 'get', path: '/api/notifications/targets' },
    test: { method: 'post', path: '/api/notifications/test' },
  },
  audit: {
    log: { method: 'get', path: '/api/audit/log', inTenant: true },
    rotateKey: { method: 'post', path: '/api/audit/log/rotate-key' },
    checkpoints: { method: 'get', path: '/api/audit/checkpoints', query: { after: null, limit: null }, paged: true },
    sinks: { method: 'get', path: '/api/audit/sinks' },
    export: { method: 'get', path: '/api/audit/export', streams: ['application/x-ndjson'] },
    exportTenant: { method: 'get', path: '/api/audit/tenant-export', inTenant: true, streams: ['application/x-ndjson'] },
    prove: { method: 'get', path: '/api/audit/records/{sequence}/proof', inTenant: true },
    migrations: { method: 'get', path: '/api/audit/migrations', query: { after: null, limit: null, applicationId: null, from: null, to: null }, inTenant: true, paged: true },
    list: { method: 'get', path: '/api/audit', query: { after: null, limit: null, kind: ['service.started', 'service.stopped', 'tls.certificate-created', 'tls.issuer-changed', 'node.drained', 'node.resumed', 'node.removed', 'clock.jumped', 'clock.confirmed', 'tenant.created', 'tenant.renamed', 'tenant.suspended', 'tenant.resumed', 'tenant.deleted', 'tenant.restored', 'tenant.purged', 'tenant.unrecoverable', 'vault.created', 'vault.enabled', 'vault.disabled', 'vault.deleted', 'key.created', 'key.changed', 'key.enabled', 'key.disabled', 'key.rotated', 'key.deleted', 'key.reimported', 'key.destroyed', 'key.unrecoverable', 'key.repaired', 'key.wrapped', 'key.sent', 'key.decryption-ended', 'key.exported', 'key.denied', 'row.tampered', 'root.rotation-requested', 'root.rotated', 'tenant.key-rotation-requested', 'tenant.key-rotated', 'service.backed-up', 'root.backed-up', 'root.provider-added', 'root.provider-removed', 'root.provider-rewrapped', 'erasure.started', 'erasure.blocked', 'erasure.finished', 'recovery-key.registered', 'recovery-key.removed', 'snapshot.created', 'snapshot.failed', 'snapshot.imported', 'snapshot.verified', 'snapshot.deleted', 'snapshot.undeleted', 'snapshot.purged', 'snapshot.exported', 'snapshot.keys-erased', 'snapshot.opening-started', 'snapshot.restored', 'group.created', 'application.registered', 'application.enabled', 'application.disabled', 'application.compatibility-changed', 'application.callers-changed', 'application.moved', 'access-guid.added', 'access-guid.removed', 'runbook.started', 'runbook.step-completed', 'runbook.step-reopened', 'runbook.finished', 'instance.first-used', 'application.used', 'object.created', 'object.updated', 'object.destroyed', 'endpoint.created', 'endpoint.enabled', 'endpoint.disabled', 'endpoint.settings-changed', 'endpoint.deleted', 'endpoint.credential-added', 'endpoint.credential-removed', 'vault.profile-changed', 'notification.acknowledged', 'notification.released', 'setup.confirmed', 'notification.tested', 'dual-control.changed', 'approval.requested', 'approval.approved', 'approval.rejected', 'approval.withdrawn', 'approval.expired', 'approval.outdated', 'approval.completed', 'key-inventory.exported', 'request-log.exported', 'request-log.minute', 'request-log.pruned', 'audit-log.exported', 'audit-log.accepted', 'audit-log.key-rotated', 'external-key-store.registered', 'external-key-store.state-changed', 'external-key-store.removed', 'user.created', 'user.changed', 'user.enabled', 'user.disabled', 'user.deleted', 'user.locked', 'user.unlocked', 'invitation.issued', 'password.changed', 'second-factor.added', 'second-factor.removed', 'recovery-codes.created', 'recovery-code.used', 'session.started', 'session.ended', 'session.key-rotated', 'sign-in.refused', 'token.key-rotated', 'token.former-key-ended', 'token.created', 'break-glass.created', 'administrator.recovered', 'token.revoked', 'authentication.failed'], actorId: null, subjectId: null, requestId: null, from: null, to: null, order: ['newest', 'oldest'] }, inTenant: true, paged: true },
  },
  tokens: {
    create: { method: 'post', path: '/api/tokens', body: { name: null, expiresAt: null, kind: ['api', 'metrics'], grants: null }, inTenant: true, creates: true },
    list: { method: 'get', path: '/api/tokens', query: { after: null, limit: null }, inTenant: true, paged: true },
    roles: { method: 'get', path: '/api/roles', inTenant: true },
    revoke: { method: 'delete', path: '/api/tokens/{id}', inTenant: true },
    rotateKey: { method: 'post', path: '/api/tokens/rotate-key', body: { compromised: null } },
    endFormerKey: { method: 'post', path: '/api/tokens/end-former-key', body: { force: null } },
  },
  users: {
    create: { method: 'post', path: '/api/users', body: { name: null, displayName: null, email: null, grants: null, subject: null }, inTenant: true, creates: true },
    list: { method: 'get', path: '/api/users', query: { after: null, limit: null }, inTenant: true, paged: true },
    get: { method: 'get', path: '/api/users/{id}', inTenant: true },
    update: { method: 'put', path: '/api/users/{id}', body: { displayName: null, email: null, grants: null, subject: null, mustChangePassword: null }, inTenant: true, changes: true },
    delete: { method: 'delete', path: '/api/users/{id}', inTenant: true, changes: true },
    enable: { method: 'post', path: '/api/users/{id}/enable', inTenant: true },
    disable: { method: 'post', path: '/api/users/{id}/disable', inTenant: true, changes: true },
    unlock: { method: 'post', path: '/api/users/{id}/unlock', inTenant: true },
    resetPassword: { method: 'post', path: '/api/users/{id}/invitation', body: { revokeTokens: null }, inTenant: true, creates: true },
    removeFactors: { method: 'delete', path: '/api/users/{id}/factors', inTenant: true },
    permissions: { method: 'get', path: '/api/users/{id}/permissions', inTenant: true },
    endSessions: { method: 'delete', path: '/api/users/{id}/sessions', inTenant: true },
  },
  sessions: {
    list: { method: 'get', path: '/api/sessions', query: { after: null, limit: null, userId: null }, inTenant: true, paged: true },
    end: { method: 'delete', path: '/api/sessions/{id}', inTenant: true },
    rotateKey: { method: 'post', path: '/api/sessions/rotate-key' },
  },
  profile: {
    get: { method: 'get', path: '/api/profile', inTenant: true },
    changePassword: { method: 'post', path: '/api/profile/password', body: { current: null, password: null }, inTenant: true },
    beginTotp: { method: 'post', path: '/api/profile/totp', body: { name: null }, inTenant: true, creates: true },
    confirmTotp: { method: 'post', path: '/api/profile/totp/{id}/confirm', body: { code: null }, inTenant: true },
    beginPasskey: { method: 'post', path: '/api/profile/passkeys/options', inTenant: true },
    addPasskey: { method: 'post', path: '/api/profile/passkeys', body: { name: null, answer: null }, inTenant: true },
    makeRecoveryCodes: { method: 'post', path: '/api/profile/recovery-codes', inTenant: true, creates: true },
    removeFactor: { method: 'delete', path: '/api/profile/factors/{id}', inTenant: true },
    createToken: { method: 'post', path: '/api/profile/tokens', body: { name: null, expiresAt: null, grants: null }, inTenant: true, creates: true },
    sessions: { method: 'get', path: '/api/profile/sessions', query: { after: null, limit: null }, inTenant: true, paged: true },
    endSession: { method: 'delete', path: '/api/profile/sessions/{id}', inTenant: true },
  },
  session: {
    start: { method: 'post', path: '/api/session', body: { user: null, password: null, token: null } },
    get: { method: 'get', path: '/api/session', inTenant: true },
    end: { method: 'delete', path: '/api/session', inTenant: true },
    methods: { method: 'get', path: '/api/sign-in' },
    beginPasskey: { method: 'post', path: '/api/session/passkey/options' },
    passkey: { method: 'post', path: '/api/session/passkey', body: { answer: null } },
    beginOpenId: { method: 'post', path: '/api/session/openid' },
    finishOpenId: { method: 'get', path: '/api/session/openid/callback', query: { state: null } },
    beginSecondFactor: { method: 'post', path: '/api/session/second-factor/options', inTenant: true },
    secondFactor: { method: 'post', path: '/api/session/second-factor', body: { code: null, recoveryCode: null, passkey: null }, inTenant: true },
    redeem: { method: 'post', path: '/api/session/invitation', body: { invitation: null, password: null } },
  },
  nodes: {
    list: { method: 'get', path: '/api/nodes' },
    get: { method: 'get', path: '/api/nodes/{id}' },
    remove: { method: 'delete', path: '/api/nodes/{id}' },
    drain: { method: 'post', path: '/api/nodes/{id}/drain' },
    resume: { method: 'post', path: '/api/nodes/{id}/resume' },
  },
  status: {
    get: { method: 'get', path: '/api/status' },
  },
  clock: {
    get: { method: 'get', path: '/api/clock' },
    confirm: { method: 'post', path: '/api/clock/confirm', body: { time: null } },
  },
  root: {
    get: { method: 'get', path: '/api/root' },
    rotate: { method: 'post', path: '/api/root/rotate', body: { tenantId: null } },
  },
  quarantine: {
    get: { method: 'get', path: '/api/quarantine' },
    confirm: { method: 'post', path: '/api/quarantine/confirm', body: { code: null } },
  },
  search: {
    find: { method: 'get', path: '/api/search', query: { q: null, kind: null, limit: null }, inTenant: true },
  },
  overview: {
    latency: { method: 'get', path: '/api/latency', query: { span: ['hour', 'day'], endpointId: null }, inTenant: true },
  },
  settings: {
    get: { method: 'get', path: '/api/settings' },
  },
  setup: {
    get: { method: 'get', path: '/api/setup' },
    confirm: { method: 'put', path: '/api/setup', body: { step: ['root-key', 'administrator', 'audit-sinks'], confirmed: null } },
  },
};
