// Generated from the OpenAPI document (npm run generate). Do not edit.

export type Tenant = {
  readonly id: string;
  readonly name: string;
  readonly state: 'active' | 'suspended' | 'deleted' | 'purged';
  readonly createdAt: string;
  /** Kept while the tenant is deleted: after a restore, it is suspended again. */
  readonly suspendedAt: string | null;
  readonly deletedAt: string | null;
  /** Until then, the deleted tenant can be restored. */
  readonly purgeAt: string | null;
  readonly purgedAt: string | null;
  /** For its keys: From this time on, the service knows no copy that opens the key: not in the database, its old pages and logs, its snapshots and their exports, its backups, or another tenant. */
  readonly unrecoverableAt: string | null;
  /** tampered: the stored row was changed from outside; every use is refused */
  readonly integrity: 'ok' | 'tampered';
};

export type Problem = {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  /** Stable; see docs/api.md. */
  readonly code: 'validation' | 'unauthenticated' | 'forbidden' | 'sign-in-incomplete' | 'not-found' | 'key-not-found' | 'key-disabled' | 'key-destroyed' | 'key-usage' | 'key-tampered' | 'conflict' | 'label-exists' | 'precondition-failed' | 'precondition-required' | 'invalid-ciphertext' | 'data-length' | 'unsupported' | 'payload-too-large' | 'rate-limited' | 'dependency-timeout' | 'unavailable' | 'internal';
  readonly requestId: string;
  /** unconfirmed: the change was made but not confirmed by every node, or it may still be made. Repeat the call with the same Idempotency-Key, or read the resource. */
  readonly reason?: 'unconfirmed' | undefined;
  /** How to fix it. */
  readonly hint?: string | undefined;
  /** Which fields of the request are wrong. */
  readonly errors?: readonly { readonly path: string; readonly message: string }[] | undefined;
};

export type NewTenant = { readonly name: string };

export type RenameTenant = { readonly name: string };

/** Contents of the tenant that stop, or are destroyed. */
export type TenantImpact = {
  readonly vaults: number;
  /** Keys that are not destroyed, including master keys of databases. */
  readonly keys: number;
  /** Key store endpoints that are enabled. */
  readonly endpoints: number;
  /** Applications of databases that are enabled. */
  readonly applications: number;
  /** API tokens that are neither revoked nor expired. */
  readonly tokens: number;
  /** Files that left the service with its keys (`GET /api/copies`): exported snapshots and backups. A purge does not reach them. */
  readonly copies: number;
};

export type Approval = {
  readonly id: string;
  readonly tenantId: string;
  readonly operation: 'master-key.destroy' | 'key.delete' | 'vault.delete' | 'application.move' | 'dual-control.change' | 'vault.rename' | 'group.rename' | 'snapshot.export' | 'recovery-key.register' | 'snapshot.restore' | 'tenant.delete' | 'tenant.purge';
  readonly subject: { readonly kind: string; readonly id: string; readonly name: string };
  readonly parameters: { readonly [name: string]: unknown };
  /** As it was at the time of the request. Of one request that waits (`get`), names, times of use, processes and copies are those of now. */
  readonly impact: { readonly [name: string]: unknown };
  /** Of one request (`get`): what it would be now, if that is not what was asked for. An approval then ends the request as outdated. Empty: it is no longer possible. Null: nothing has changed. */
  readonly changed?: { readonly [name: string]: unknown } | null | undefined;
  /** Of one request that waits (`get`): names of the last 90 days that the subject, the vaults of the rules and other things of the impact had, with who changed them when. Up to 20 of one thing, the last one and those that it had for the longest time, and 200 in all. */
  readonly formerNames?: readonly FormerName[] | undefined;
  /** Of one request that waits (`get`): how many former names are left out, at least. A thing whose names were not all read counts as one. */
  readonly formerNamesOmitted?: number | undefined;
  /** Of a list, and of one request (`get`): whether the caller can approve or reject it now. */
  readonly mayDecide?: boolean | undefined;
  /** Of one request (`get`): who can approve it now. The requester, and tokens of the requester, cannot. */
  readonly able?: readonly { readonly id: string; readonly name: string }[] | undefined;
  readonly rules: readonly ApprovalRule[];
  /** approved: the requester completes it with the same call; outdated: the subject has changed since, and nothing was done */
  readonly state: 'pending' | 'approved' | 'completed' | 'rejected' | 'withdrawn' | 'expired' | 'outdated';
  /** How many more must approve. */
  readonly missing: number;
  readonly requestedBy: { readonly id: string; readonly name: string };
  readonly requestedAt: string;
  readonly expiresAt: string;
  readonly endedAt: string | null;
  readonly decisions: readonly {
    readonly by: { readonly id: string; readonly name: string };
    readonly decision: 'approve' | 'reject';
    readonly at: string;
    readonly comment: string | null;
  }[];
  /** tampered: the stored row was changed from outside; every use is refused */
  readonly integrity: 'ok' | 'tampered';
};

export type FormerName = {
  readonly kind: string;
  readonly id: string;
  readonly name: string;
  readonly formerName: string;
  readonly until: string;
  readonly by: { readonly id: string; readonly name: string };
};

export type ApprovalRule = {
  readonly vaultId: string;
  readonly vaultName: string;
  /** How many must approve, in addition to the requester. */
  readonly required: number;
  /** Eligible approvers when the request was made. Null in requests of older versions: every user or token with approvals:decide. */
  readonly approvers: readonly string[] | null;
};

export type PurgeTenant = {
  /** The exact name of the tenant. Not needed with dryRun=true. */
  readonly confirm?: string | undefined;
};

export type Vault = {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  /** tde: belongs to a TDE group and contains its master keys */
  readonly kind: 'general' | 'tde';
  readonly state: 'enabled' | 'disabled' | 'deleted';
  /** null: one person is enough */
  readonly dualControl: DualControlRule | null;
  /** How often its keys should be rotated. */
  readonly profile: 'standard' | 'high-security';
  readonly createdAt: string;
  /** tampered: the stored row was changed from outside; every use is refused */
  readonly integrity: 'ok' | 'tampered';
};

export type DualControlRule = {
  /** How many must approve, in addition to the requester. */
  readonly required: number;
  /** Ids of the tokens or users that may approve; null: everyone who has the permission. */
  readonly approvers: readonly string[] | null;
  /** destroy: destroying keys, and everything that ends their use permanently. */
  readonly actions: readonly ('destroy' | 'export' | 'restore')[];
  /** Whether a database may destroy a master key directly. */
  readonly databases: 'allowed' | 'refused';
};

export type NewVault = { readonly name: string };

export type ApprovalNeeds = {
  readonly impact: { readonly [name: string]: unknown };
  /** Empty: no approval is needed. */
  readonly rules: readonly ApprovalRule[];
};

export type NewName = { readonly name: string };

export type NewVaultProfile = { readonly profile: 'standard' | 'high-security' };

export type VaultDualControl = {
  readonly vaultId: string;
  readonly rule: DualControlRule | null;
  /** Eligible approvers. */
  readonly approvers: readonly { readonly id: string; readonly name: string }[];
  readonly plan?: ApprovalNeeds | undefined;
};

export type NewDualControlRule = {
  /** How many must approve, in addition to the requester. */
  readonly required: number;
  /** Ids of the tokens or users that may approve; null: everyone who has the permission. */
  readonly approvers?: readonly string[] | null | undefined;
  /** destroy: destroying keys, and everything that ends their use permanently. */
  readonly actions: readonly ('destroy' | 'export' | 'restore')[];
  /** Whether a database may destroy a master key directly. Default: refused in a rule about destroy. */
  readonly databases?: 'allowed' | 'refused' | undefined;
};

export type Key = {
  /** Case-sensitive; for a key store endpoint this is the external key id. */
  readonly id: string;
  readonly tenantId: string;
  readonly vaultId: string;
  /** A master key's name is its label, in hexadecimal if the label is not text. */
  readonly name: string;
  readonly kind: 'general' | 'master';
  readonly algorithm: 'aes' | 'generic' | 'rsa' | 'ec' | 'secp256k1' | 'brainpool' | 'ed25519' | 'ed448' | 'x25519' | 'x448';
  readonly bits: number;
  /** For people: AES-256, RSA-3072, P-384, brainpoolP256r1, Ed25519. */
  readonly type: string;
  readonly usages: readonly ('encrypt' | 'decrypt' | 'wrap' | 'unwrap' | 'sign' | 'verify' | 'derive')[];
  readonly state: 'active' | 'disabled' | 'soft-deleted' | 'destroyed';
  /** The state, unless the vault stops every use of the key. vault-disabled: Enable the vault: its keys can be used again at once. vault-deleted: Only a restore of a snapshot from before its deletion brings back the vault and its keys. */
  readonly effectiveState: 'active' | 'disabled' | 'soft-deleted' | 'destroyed' | 'vault-disabled' | 'vault-deleted';
  readonly disabledAt: string | null;
  readonly currentVersion: number;
  readonly createdAt: string;
  readonly deletedAt: string | null;
  /** When a soft-deleted master key last came back into its vault from the sealed copy. */
  readonly reimportedAt: string | null;
  /** From this time on, every use fails on every node. */
  readonly destroyedAt: string | null;
  /** From this time on, the service knows no copy that opens the key: not in the database, its old pages and logs, its snapshots and their exports, its backups, or another tenant. Null while it knows one (`copies` of `GET /api/keys/{id}/use`). */
  readonly unrecoverableAt: string | null;
  readonly applicationId: string | null;
  /** Sorted. */
  readonly tags: readonly string[];
  readonly firstUsedAt: string | null;
  /** When it was last used, accurate to ten seconds; null: never. */
  readonly lastUsedAt: string | null;
  /** tampered: the stored row was changed from outside; every use is refused */
  readonly integrity: 'ok' | 'tampered';
};

export type NewKey = {
  readonly name: string;
  readonly vaultId: string;
  /** Words or name=value. Duplicates are ignored. */
  readonly tags?: readonly string[] | undefined;
};

export type KeyChange = {
  readonly name: string;
  /** Words or name=value. Duplicates are ignored. */
  readonly tags: readonly string[];
};

export type KeyVersion = {
  readonly keyId: string;
  readonly version: number;
  readonly createdAt: string;
  readonly vaultCopy: boolean;
};

export type KeyUse = {
  readonly keyId: string;
  readonly firstUsedAt: string | null;
  readonly lastUsedAt: string | null;
  readonly copies: KeyCopies;
  /** Endpoints of the key, including deleted ones through which it was used; most recent use first. At most 1000. */
  readonly endpoints: readonly {
    readonly id: string;
    readonly name: string;
    readonly state: 'enabled' | 'disabled' | 'deleted';
    /** When data was last encrypted or decrypted through it. */
    readonly lastUsedAt: string | null;
    /** When it was last called with one of its current credentials, for any operation. */
    readonly lastRequestAt: string | null;
  }[];
  /** Of a master key. */
  readonly application: { readonly id: string; readonly name: string; readonly groupId: string; readonly groupName: string } | null;
};

/** Copies that the service knows: of the key in other tenants, and in files that left the service or are missing. While there is one that waits, a destroyed key can still be recovered. */
export type KeyCopies = {
  /** How many `unrecoverableAt` waits for. */
  readonly count: number;
  /** Up to 100, and only those that you may see. */
  readonly items: readonly {
    readonly place: 'database' | 'root-key' | 'snapshot' | 'other-tenant' | 'exported-snapshot' | 'service-backup' | 'root-backup';
    /** Of the key in the other tenant, of the snapshot, or of the file (`GET /api/copies/{id}`). */
    readonly id: string;
    readonly tenantId: string | null;
    readonly tenantName: string | null;
    readonly applicationId: string | null;
    readonly at: string;
    /** true: `unrecoverableAt` stays empty while it is there. */
    readonly waits: boolean;
    /** What it is, and what ends it. */
    readonly text: string;
  }[];
};

export type TdeGroup = {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  readonly vaultId: string;
  readonly createdAt: string;
  /** tampered: the stored row was changed from outside; every use is refused */
  readonly integrity: 'ok' | 'tampered';
};

export type NewTdeGroup = { readonly name: string };

export type RegisteredApplication = {
  readonly application: TdeApplication;
  readonly record: AccessGuid;
  /** The bearer credential. Shown only once. */
  readonly accessGuid: string;
  readonly serverUrl: string;
  readonly config: ConfigBundle;
};

export type TdeApplication = {
  readonly id: string;
  readonly tenantId: string;
  readonly groupId: string;
  readonly name: string;
  /** app_id, the last segment of server_url; instances can use others */
  readonly appId: string;
  /** The label of its PKCS#11 token: the name with which it was registered. It never changes. */
  readonly tokenLabel: string;
  readonly state: 'enabled' | 'disabled';
  /** Weaker cryptography that it is allowed to use: docs/compatibility.md. */
  readonly compatibility: readonly ('rsa-pkcs1-encryption' | 'sha1-signatures' | 'short-rsa-verification' | 'short-rsa-keys' | 'repeated-ivs')[];
  /** Allowed callers: docs/application-callers.md. */
  readonly callers: {
    /** Addresses and networks (CIDR). Empty: any address. */
    readonly networks: readonly string[];
    /** A caller must present one of these. Empty: no client certificate is required. */
    readonly certificates: readonly {
      readonly pem: string;
      /** SHA-256. */
      readonly fingerprint: string;
      readonly subject: string;
      readonly expiresAt: string;
    }[];
  };
  readonly createdAt: string;
  /** tampered: the stored row was changed from outside; every use is refused */
  readonly integrity: 'ok' | 'tampered';
};

export type AccessGuid = {
  /** Identifies the credential; it is not the credential. */
  readonly id: string;
  readonly applicationId: string;
  readonly createdAt: string;
  readonly removedAt: string | null;
  readonly lastUsedAt: string | null;
  /** tampered: the stored row was changed from outside; every use is refused */
  readonly integrity: 'ok' | 'tampered';
};

export type ConfigBundle = {
  /** Contains the access_guid: as secret as access_token. */
  readonly server_url: string;
  readonly access_token: string;
  /** The whole file. */
  readonly pkcs11_toml: string;
  /** The certificate that the database host has to trust, PEM, for `ca_file`. Null: that of a public authority, or one that you install separately. */
  readonly ca_pem: string | null;
  /** Mode of the file; owner: the database OS user. */
  readonly mode: '600';
  /** Where Oracle searches for the library. */
  readonly library: string;
};

export type NewTdeApplication = { readonly name: string; readonly groupId: string; readonly appId?: string | undefined };

export type TdeApplicationCompatibility = {
  readonly switches: readonly ('rsa-pkcs1-encryption' | 'sha1-signatures' | 'short-rsa-verification' | 'short-rsa-keys' | 'repeated-ivs')[];
};

export type TdeApplicationCallers = {
  /** Addresses and networks (CIDR). Empty: any address. */
  readonly networks: readonly string[];
  /** PEM, one certificate in each item: those of the clients, not of their issuer. */
  readonly certificates: readonly string[];
};

export type ApplicationMove = {
  readonly from: { readonly id: string; readonly name: string };
  readonly to: { readonly id: string; readonly name: string };
  /** Its own keys, which move with it. */
  readonly keys: number;
  /** Its other token objects, which move with it. */
  readonly objects: number;
  /** Labels of its keys that already exist in the new group. If there are any, the move is refused. */
  readonly conflictingLabels: readonly string[];
  /** Keys of other applications in the old group that it can no longer use. */
  readonly keysLost: number;
  /** Applications of the old group that can no longer use its keys. */
  readonly leaves: readonly {
    readonly id: string;
    readonly name: string;
    readonly keys: number;
    readonly instances: readonly TdeInstance[];
  }[];
  /** Applications of the new group, which can then use its keys. */
  readonly joins: readonly { readonly id: string; readonly name: string; readonly keys: number }[];
  readonly instances: readonly TdeInstance[];
};

export type TdeInstance = {
  readonly id: string;
  readonly applicationId: string;
  readonly accessGuidId: string;
  readonly appId: string;
  readonly host: string;
  readonly process: string;
  readonly osUser: string;
  readonly libraryVersion: string;
  readonly agentVersion: string;
  readonly pid: number;
  readonly firstUsedAt: string;
  readonly lastUsedAt: string;
  readonly uses: number;
};

export type MoveTdeApplication = {
  readonly groupId: string;
  /** The exact name of the application. Not needed with dryRun=true. */
  readonly confirm?: string | undefined;
};

export type IssuedAccessGuid = {
  readonly record: AccessGuid;
  /** The bearer credential. Shown only once. */
  readonly accessGuid: string;
  readonly serverUrl: string;
  readonly config: ConfigBundle;
};

export type DistributedPackage = {
  /** Of the file. */
  readonly name: string;
  readonly package: string;
  readonly version: string;
  readonly kind: 'deb' | 'rpm';
  readonly architecture: 'x86_64' | 'aarch64';
  /** Bytes. */
  readonly size: number;
  /** Of the file, in hexadecimal digits. */
  readonly sha256: string;
};

export type MasterKey = {
  /** Case-sensitive; for a key store endpoint this is the external key id. */
  readonly id: string;
  readonly tenantId: string;
  readonly vaultId: string;
  /** A master key's name is its label, in hexadecimal if the label is not text. */
  readonly name: string;
  readonly kind: 'master';
  readonly algorithm: 'aes' | 'generic' | 'rsa' | 'ec' | 'secp256k1' | 'brainpool' | 'ed25519' | 'ed448' | 'x25519' | 'x448';
  readonly bits: number;
  /** For people: AES-256, RSA-3072, P-384, brainpoolP256r1, Ed25519. */
  readonly type: string;
  readonly usages: readonly ('encrypt' | 'decrypt' | 'wrap' | 'unwrap' | 'sign' | 'verify' | 'derive')[];
  readonly state: 'active' | 'disabled' | 'soft-deleted' | 'destroyed';
  /** The state, unless the vault stops every use of the key. vault-disabled: Enable the vault: its keys can be used again at once. vault-deleted: Only a restore of a snapshot from before its deletion brings back the vault and its keys. */
  readonly effectiveState: 'active' | 'disabled' | 'soft-deleted' | 'destroyed' | 'vault-disabled' | 'vault-deleted';
  readonly disabledAt: string | null;
  readonly currentVersion: number;
  readonly createdAt: string;
  readonly deletedAt: string | null;
  /** When a soft-deleted master key last came back into its vault from the sealed copy. */
  readonly reimportedAt: string | null;
  /** From this time on, every use fails on every node. */
  readonly destroyedAt: string | null;
  /** From this time on, the service knows no copy that opens the key: not in the database, its old pages and logs, its snapshots and their exports, its backups, or another tenant. Null while it knows one (`copies` of `GET /api/keys/{id}/use`). */
  readonly unrecoverableAt: string | null;
  readonly applicationId: string;
  /** Sorted. */
  readonly tags: readonly string[];
  readonly firstUsedAt: string | null;
  /** When it was last used, accurate to ten seconds; null: never. */
  readonly lastUsedAt: string | null;
  /** tampered: the stored row was changed from outside; every use is refused */
  readonly integrity: 'ok' | 'tampered';
  readonly groupId: string;
  readonly handle: number;
  /** Base64 of the label's bytes. */
  readonly label: string;
  /** imported: also keys that were unwrapped or derived */
  readonly origin: 'generated' | 'imported';
  readonly class: 'secret-key' | 'private-key';
  readonly sensitive: boolean;
  readonly extractable: boolean;
  /** true: it has wrapped a sensitive key, and never decrypts again. */
  readonly neverDecrypts: boolean;
  /** Of a secret key: three bytes, hexadecimal. */
  readonly checkValue: string | null;
  /** Of a private key: its public half, SubjectPublicKeyInfo as PEM. */
  readonly publicKey: string | null;
  readonly sealedCopy: boolean;
  readonly vaultCopy: boolean;
  /** true: the newest of the application's secret keys that are not destroyed. */
  readonly newest: boolean;
};

export type BlastRadius = {
  readonly keyId: string;
  readonly applicationId: string;
  readonly applicationName: string;
  readonly instances: readonly TdeInstance[];
  /** Other applications of the group: they can find and use the key too. */
  readonly groupApplications: readonly { readonly id: string; readonly name: string; readonly instances: readonly TdeInstance[] }[];
  readonly appIds: readonly string[];
  readonly hosts: readonly string[];
  readonly lastUsedAt: string | null;
  readonly copies: KeyCopies;
};

export type DestroyMasterKey = {
  /** The exact name of the master key (its label). Not needed with dryRun=true. */
  readonly confirm?: string | undefined;
};

export type Endpoint = {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  readonly prefix: string;
  /** XksProxyUriEndpoint: the address of the service (server.public_url). */
  readonly uriEndpoint: string;
  /** XksProxyUriPath */
  readonly uriPath: string;
  readonly vaultId: string;
  /** The external key id (XksKeyId). */
  readonly keyId: string;
  /** What the key can do now. Unless it is active, every request for it is refused. */
  readonly keyState: 'active' | 'disabled' | 'soft-deleted' | 'destroyed' | 'vault-disabled' | 'vault-deleted';
  readonly state: 'enabled' | 'disabled' | 'deleted';
  readonly settings: EndpointSettings;
  readonly createdAt: string;
  readonly credentials: readonly EndpointCredential[];
  /** tampered: the stored row was changed from outside; every use is refused */
  readonly integrity: 'ok' | 'tampered';
};

export type EndpointSettings = {
  /** true: health requests need no signature. */
  readonly operatorProbes: boolean;
  /** Requests above it get 429. Null: no limit. */
  readonly rate: { readonly perSecond: number; readonly burst: number } | null;
  /** Mutual TLS. Null: no client certificate is required. */
  readonly clientCertificate: {
    /** CA bundle in PEM: the authority that issues the client certificates, and all above it up to the root. */
    readonly authorities: string;
    readonly commonName: string;
  } | null;
  readonly rules: readonly AuthorizationRule[];
};

/** Matches when each named subject matches one of its patterns (`*`: any characters, `?`: one). The first matching rule decides. A request that matches no rule is allowed. */
export type AuthorizationRule = {
  readonly name: string;
  readonly effect: 'allow' | 'deny';
  readonly when: {
    /** awsPrincipalArn */
    readonly principal?: readonly string[] | undefined;
    /** the account in awsPrincipalArn */
    readonly account?: readonly string[] | undefined;
    /** kmsKeyArn */
    readonly key?: readonly string[] | undefined;
    /** the region in kmsKeyArn */
    readonly region?: readonly string[] | undefined;
    /** kmsOperation */
    readonly operation?: readonly string[] | undefined;
    /** awsSourceVpc */
    readonly vpc?: readonly string[] | undefined;
    /** awsSourceVpce */
    readonly vpcEndpoint?: readonly string[] | undefined;
    /** kmsViaService */
    readonly viaService?: readonly string[] | undefined;
  };
};

export type EndpointCredential = {
  readonly id: string;
  readonly endpointId: string;
  readonly accessKeyId: string;
  readonly createdAt: string;
  readonly lastUsedAt: string | null;
};

export type NewEndpoint = {
  readonly name: string;
  readonly vaultId: string;
  readonly keyId: string;
  /** Random when absent. */
  readonly prefix?: string | undefined;
  /** Absent members have defaults. */
  readonly settings?: {
    /** true: health requests need no signature. */
    readonly operatorProbes?: boolean | undefined;
    /** Requests above it get 429. Null: no limit. */
    readonly rate?: { readonly perSecond: number; readonly burst: number } | null | undefined;
    /** Mutual TLS. Null: no client certificate is required. */
    readonly clientCertificate?: {
      /** CA bundle in PEM: the authority that issues the client certificates, and all above it up to the root. */
      readonly authorities: string;
      readonly commonName: string;
    } | null | undefined;
    readonly rules?: readonly AuthorizationRule[] | undefined;
  } | undefined;
};

export type RuleDecision = {
  readonly effect: 'allow' | 'deny';
  /** The rule that decides. Null: none matches, and the request is allowed. */
  readonly rule: string | null;
  /** The earlier rules that did not match, in order, each with the first subject that did not match. */
  readonly passed: readonly {
    readonly rule: string;
    readonly subject: 'principal' | 'account' | 'key' | 'region' | 'operation' | 'vpc' | 'vpcEndpoint' | 'viaService';
    /** Null: the request does not contain it. */
    readonly value: string | null;
  }[];
  /** The decision of the active rules. */
  readonly current: {
    readonly effect: 'allow' | 'deny';
    /** The rule that decides. Null: none matches, and the request is allowed. */
    readonly rule: string | null;
  };
};

export type RuleSimulation = {
  readonly rules?: readonly AuthorizationRule[] | undefined;
  readonly requests: readonly SimulatedRequest[];
};

export type SimulatedRequest = {
  /** The operation that the caller requested from the cloud key service. */
  readonly kmsOperation: string;
  /** The caller. */
  readonly awsPrincipalArn?: string | undefined;
  /** The key of the cloud. */
  readonly kmsKeyArn?: string | undefined;
  /** The VPC of the caller. */
  readonly awsSourceVpc?: string | undefined;
  /** The VPC endpoint of the call. */
  readonly awsSourceVpce?: string | undefined;
  /** The cloud service that made the call for the caller. */
  readonly kmsViaService?: string | undefined;
};

export type XksProxyConfiguration = {
  readonly XksProxyUriPath: string;
  readonly XksProxyAuthenticationCredential: { readonly AccessKeyId: string; readonly RawSecretAccessKey: string };
};

export type Diagnosis = {
  readonly id: string;
  readonly endpointId: string;
  readonly at: string;
  /** In order of dependency: start with the first that failed. */
  readonly results: readonly CheckResult[];
};

export type CheckResult = {
  readonly id: string;
  readonly layer: string;
  readonly title: string;
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly evidence: string;
  /** How to fix it. */
  readonly fix?: string | undefined;
  /** The exception that the cloud key service raises in this case. */
  readonly predicts?: string | undefined;
  /** What it reports when a store is created, when it connects (ConnectionErrorCode), when a key is created and when one is used; null: it does not ask for this there. */
  readonly reports?: {
    readonly create: string | null;
    readonly connect: string | null;
    readonly createKey: string | null;
    readonly use: string | null;
  } | undefined;
  readonly durationMs: number;
};

export type NewDiagnosis = {
  /** The clock of the caller, compared with that of the service. */
  readonly callerTime?: string | undefined;
  /** The configuration in the cloud, compared with that of the endpoint. */
  readonly cloud?: {
    /** XksProxyUriEndpoint */
    readonly uriEndpoint?: string | undefined;
    /** XksProxyUriPath */
    readonly uriPath?: string | undefined;
    /** AccessKeyId of the proxy credential */
    readonly accessKeyId?: string | undefined;
    /** XksKeyId */
    readonly externalKeyId?: string | undefined;
  } | undefined;
};

export type EndpointRequest = {
  /** Defines the order of the records. */
  readonly sequence: number;
  readonly at: string;
  readonly requestId: string;
  /** Null: the request did not reach an endpoint. */
  readonly endpointId: string | null;
  readonly operation: string;
  readonly kmsOperation: string | null;
  /** `requestID` of the event in CloudTrail. */
  readonly kmsRequestId: string | null;
  readonly principal: string | null;
  readonly kmsKeyArn: string | null;
  readonly awsSourceVpc: string | null;
  readonly awsSourceVpce: string | null;
  readonly kmsViaService: string | null;
  readonly externalKeyId: string | null;
  readonly credentialId: string | null;
  readonly status: number;
  readonly errorName: string | null;
  readonly durationMs: number;
  readonly phases: { readonly readMs: number; readonly authMs: number; readonly cryptoMs: number };
  /** Why it was refused, if the answer does not say. */
  readonly reason: string | null;
  readonly peer: string | null;
};

export type CloudTrailText = {
  /** A copied CloudTrail event (one, several, or part of one), or only a request id. */
  readonly text: string;
};

export type RequestLogVerification = {
  /** Records that were checked. */
  readonly requests: number;
  /** Minutes that were hashed. */
  readonly minutes: number;
  /** Records that arrived after their minute was hashed. */
  readonly late: number;
  /** Records that retention removed. Their hash is kept. */
  readonly pruned: number;
  /** Signed requests that were not recorded because the log could not keep up. Each such minute is a finding. */
  readonly dropped: number;
  /** Requests without a valid signature that were not recorded. */
  readonly droppedUnsigned: number;
  /** Records that are not yet covered by a hash. */
  readonly open: number;
  readonly valid: boolean;
  readonly findings: readonly string[];
};

export type Runbook = {
  readonly name: 'rotate' | 'check' | 'restart-after-rotation' | 'migrate' | 'reverse-migrate' | 'standby' | 'restore' | 'clone-pdb' | 'upgrade-library' | 'destroy';
  readonly title: string;
  readonly summary: string;
  readonly downtime: boolean;
  readonly releases: readonly ('11g' | '12c-18c' | '19c')[];
  /** true: the steps differ for container databases. */
  readonly byContainers: boolean;
};

export type FilledRunbook = {
  readonly name: 'rotate' | 'check' | 'restart-after-rotation' | 'migrate' | 'reverse-migrate' | 'standby' | 'restore' | 'clone-pdb' | 'upgrade-library' | 'destroy';
  readonly title: string;
  readonly summary: string;
  readonly downtime: boolean;
  /** 11g R2; 12c to 18c; 19c and later */
  readonly release: '11g' | '12c-18c' | '19c';
  readonly containers: 'non-cdb' | 'cdb' | null;
  readonly warnings: readonly string[];
  readonly steps: readonly RunbookStep[];
};

export type RunbookStep = {
  readonly id: string;
  readonly title: string;
  readonly place: 'host' | 'database' | 'console' | 'target-host' | 'target';
  readonly text?: string | undefined;
  readonly warning?: string | undefined;
  readonly sql?: string | undefined;
  readonly shell?: string | undefined;
  /** A line of the configuration file named in the title. */
  readonly setting?: string | undefined;
  /** How to check that the step worked. */
  readonly expect?: string | undefined;
  /** The equivalent dke command. */
  readonly command?: string | undefined;
  /** Only if the step before was answered with this Oracle error. */
  readonly onlyAfter?: string | undefined;
};

export type RunbookRun = {
  readonly id: string;
  readonly applicationId: string;
  readonly runbook: 'rotate' | 'check' | 'restart-after-rotation' | 'migrate' | 'reverse-migrate' | 'standby' | 'restore' | 'clone-pdb' | 'upgrade-library' | 'destroy';
  readonly title: string;
  /** 11g R2; 12c to 18c; 19c and later */
  readonly release: '11g' | '12c-18c' | '19c';
  readonly containers: 'non-cdb' | 'cdb' | null;
  readonly warnings: readonly string[];
  /** As shown when the run was started. */
  readonly steps: readonly RunbookStep[];
  readonly startedAt: string;
  readonly startedBy: { readonly id: string; readonly name: string };
  readonly finishedAt: string | null;
  readonly finishedBy: { readonly id: string; readonly name: string } | null;
  /** null: still in progress */
  readonly outcome: 'done' | 'abandoned' | null;
  readonly completedSteps: readonly {
    readonly step: string;
    readonly outcome: 'done' | 'not-needed';
    readonly at: string;
    readonly by: { readonly id: string; readonly name: string };
    readonly note: string | null;
  }[];
};

export type NewRunbookRun = {
  readonly runbook: 'rotate' | 'check' | 'restart-after-rotation' | 'migrate' | 'reverse-migrate' | 'standby' | 'restore' | 'clone-pdb' | 'upgrade-library' | 'destroy';
  /** 11g R2; 12c to 18c; 19c and later */
  readonly release?: '11g' | '12c-18c' | '19c' | undefined;
  readonly containers?: 'non-cdb' | 'cdb' | undefined;
};

export type StepCompletion = {
  readonly outcome?: 'done' | 'not-needed' | undefined;
  /** For the audit log. Do not enter secrets. */
  readonly note?: string | undefined;
};

export type FinishRunbookRun = {
  readonly outcome?: 'done' | 'abandoned' | undefined;
  /** For the audit log. Do not enter secrets. */
  readonly note?: string | undefined;
};

export type ExternalKeyStore = {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  readonly customKeyStoreId: string;
  readonly region: string;
  readonly endpointId: string;
  readonly createdAt: string;
  readonly connection: Connection;
  /** tampered: the stored row was changed from outside; every use is refused */
  readonly integrity: 'ok' | 'tampered';
};

export type Connection = {
  readonly state: 'DISCONNECTED' | 'CONNECTING' | 'CONNECTED' | 'FAILED' | 'DISCONNECTING';
  /** ConnectionErrorCode of AWS KMS */
  readonly errorCode: string | null;
  readonly detail: string | null;
  /** Source of the state: the probe of DKE, which acts as the cloud, or the cloud. Null before the first check. */
  readonly source: 'probe' | 'cloud' | null;
  readonly since: string | null;
  readonly checkedAt: string | null;
};

export type NewExternalKeyStore = {
  readonly name: string;
  readonly customKeyStoreId: string;
  readonly region: string;
  readonly endpointId: string;
};

export type Decision = {
  /** The reason, which is kept in the audit log. */
  readonly comment?: string | undefined;
};

export type Snapshot = {
  readonly id: string;
  readonly tenantId: string;
  readonly origin: 'requested' | 'scheduled' | 'imported';
  /** deleted: can be undeleted until `purgeAt`; missing: its file is missing */
  readonly state: 'creating' | 'available' | 'deleted' | 'purged' | 'failed' | 'missing';
  /** The time of the state in it. */
  readonly at: string;
  readonly size: number | null;
  /** Number of rows in each table. */
  readonly rows: { readonly [name: string]: number };
  readonly keys: number;
  /** Rows and keys that were damaged when it was created. */
  readonly omitted: number;
  /** Keys that were destroyed since, and erased from it. */
  readonly erased: number;
  readonly recoveryKeyIds: readonly string[];
  /** Verifier key of the service that created it. */
  readonly signer: string | null;
  readonly verification: {
    readonly at: string;
    /** opened: opened with a recovery key, and each key compared */
    readonly depth: 'sealed' | 'opened';
    readonly valid: boolean;
    readonly finding: string | null;
  } | null;
  /** When it was last verified successfully. */
  readonly verifiedAt: string | null;
  readonly deletedAt: string | null;
  /** Until when a deletion can be undone. */
  readonly purgeAt: string | null;
  readonly purgedAt: string | null;
  readonly failure: string | null;
  readonly tampered: boolean;
};

export type NewSnapshot = { readonly tenantId?: string | undefined };

export type SnapshotSchedule = {
  /** A folder of the host; null for users of one tenant */
  readonly directory: string | null;
  readonly schedule: string | null;
  readonly next: string | null;
  readonly keepCount: number | null;
  readonly keepDays: number | null;
  readonly undeleteDays: number;
};

export type Copy = {
  readonly id: string;
  readonly kind: 'exported-snapshot' | 'service-backup' | 'root-backup';
  /** null: of the whole service */
  readonly tenantId: string | null;
  /** Of an exported snapshot. */
  readonly snapshotId: string | null;
  /** When the file was made. */
  readonly at: string;
  readonly actorId: string;
  readonly actorName: string;
  /** The time of the state in it; null: not known. */
  readonly stateAt: string | null;
  /** Of backups: the root key that is in it, or that opens it. */
  readonly rootEpoch: number | null;
  /** When it was confirmed that the file is destroyed. */
  readonly destroyedAt: string | null;
  /** The stored row was changed from outside. The copy counts as one that has every key. */
  readonly tampered: boolean;
};

export type SnapshotOpening = {
  readonly id: string;
  readonly snapshotId: string;
  readonly tenantId: string;
  readonly recoveryKeyId: string;
  /** The snapshot's key, sealed to that recovery key (HPKE). */
  readonly sealedKey: string;
  /** The public key to which you seal it again after opening (X25519). */
  readonly publicKey: string;
  readonly expiresAt: string;
};

export type NewSnapshotOpening = { readonly recoveryKeyId?: string | undefined };

export type SnapshotOpeningAnswer = { readonly openingId: string; readonly sealedKey: string };

export type SnapshotRestoreRequest = {
  readonly openingId: string;
  readonly sealedKey: string;
  readonly tenantId?: string | undefined;
  readonly newTenant?: string | undefined;
};

export type CopyConfirmation = {
  /** Also all older files of this kind and tenant. */
  readonly andOlder?: boolean | undefined;
};

export type RecoveryKey = {
  readonly id: string;
  readonly name: string;
  /** dke-recovery-key+ID+BASE64 */
  readonly publicKey: string;
  readonly createdAt: string;
  /** New snapshots are not sealed to it; older ones still open. */
  readonly removedAt: string | null;
  /** The stored row was changed from outside. No snapshots are created. */
  readonly tampered: boolean;
  /** Snapshots that open with it, also after it was removed. Delete them if it must not open them. */
  readonly snapshotCount: number;
  /** Their ids, 100 at most. */
  readonly snapshots: readonly string[];
};

export type NewRecoveryKey = { readonly name: string; readonly publicKey: string };

export type Notification = {
  readonly id: string;
  readonly kind: 'key.rotation-due' | 'master-key.rotation-due' | 'master-key.unreadable' | 'endpoint.credential-due' | 'application.access-guid-due' | 'tls.certificate-expiring' | 'tls.certificate-old' | 'tls.file-unusable' | 'tls.certificate-created' | 'tls.issuer-changed' | 'client-authority.expiring' | 'client-certificate.expiring' | 'token.expiring' | 'token.old' | 'token.key-old' | 'token.former-key' | 'session.key-old' | 'administrator.recovered' | 'key-store.disconnected' | 'endpoint.failing' | 'endpoint.late' | 'endpoint.slow' | 'endpoint.tampered' | 'endpoint.credential-unused' | 'approval.pending' | 'dual-control.unsatisfiable' | 'audit.sink-behind' | 'audit.sink-forked' | 'audit.checkpoint-stale' | 'audit.key-old' | 'snapshot.failed' | 'snapshot.old' | 'snapshot.none' | 'snapshot.unopened' | 'snapshot.folder-missing' | 'backup.old' | 'root.backup-old' | 'setup.risk-accepted' | 'erasure.blocked' | 'erasure.failed' | 'erasure.copies-left' | 'health.failing' | 'memory.unlocked' | 'requests.sink-lost' | 'requests.dropped' | 'clock.jumped' | 'log.failing' | 'node.offline';
  /** The default tenant if it is about the platform. */
  readonly tenantId: string;
  readonly severity: 'info' | 'low' | 'medium' | 'high' | 'critical';
  /** Rises as the deadline comes nearer. Each stage needs a new acknowledgement. */
  readonly stage: number;
  readonly text: string;
  /** How to fix it. */
  readonly fix: string;
  /** Short form of the fix. */
  readonly action: string;
  /** Path of the console page where you start. */
  readonly page: string;
  readonly subject: { readonly kind: string; readonly id: string; readonly name: string };
  /** When it starts to cause harm. In the past: since when it does. */
  readonly harmAt: string;
  readonly details: { readonly [name: string]: unknown };
  readonly raisedAt: string;
  readonly resolvedAt: string | null;
  readonly acknowledgedAt: string | null;
  readonly acknowledgedBy: string | null;
};

export type NotificationTarget = {
  readonly name: string;
  readonly type: 'webhook' | 'email';
  readonly target: string;
  readonly waiting: number;
  readonly deliveredAt: string | null;
  readonly failure: { readonly since: string; readonly message: string } | null;
};

export type AuditLog = {
  readonly origin: string;
  readonly verifierKey: string;
  /** Keys that were rotated, newest first, and the last record that each one signed. */
  readonly formerKeys: readonly { readonly verifierKey: string; readonly through: number }[];
  readonly keySince: string | null;
  /** When the next rotation of the key is recommended. */
  readonly rotationDueAt: string | null;
  readonly size: number;
  readonly checkpoint: AuditCheckpoint | null;
};

export type AuditCheckpoint = {
  /** Number of records that it covers, starting with the first. */
  readonly size: number;
  readonly at: string;
  /** The signed note: c2sp.org/tlog-checkpoint. */
  readonly note: string;
};

export type AuditSink = {
  readonly name: string;
  readonly type: 'file' | 'syslog' | 'https';
  readonly target: string;
  /** The log that it receives. */
  readonly log: 'audit' | 'requests';
  /** Ids of the endpoints whose requests it receives; empty: all. */
  readonly endpoints: readonly string[];
  /** Sequence number of the last record that it has. */
  readonly forwarded: number;
  /** Number of records that it does not have yet. */
  readonly lag: number;
  /** Records that it never receives: the retention of the request log removed them before the sink received them. */
  readonly lost: number;
  readonly lostAt: string | null;
  /** Another history of the same log was found at the sink: the number of the first record that differs, and when. */
  readonly fork: { readonly record: number; readonly at: string } | null;
  /** Last delivery since the service started. */
  readonly deliveredAt: string | null;
  readonly failure: { readonly since: string; readonly message: string } | null;
};

export type AuditProof = {
  /** The leaf is SHA-256 of a zero byte and this text in UTF-8. */
  readonly entry: string;
  readonly checkpoint: AuditCheckpoint;
  readonly hashes: readonly string[];
};

export type KeyMigration = {
  /** Sequence number of the audit record of the key. */
  readonly sequence: number;
  readonly at: string;
  readonly tenantId: string;
  /** first-key: the application had no master key here before, as when a database moves from a local wallet. */
  readonly what: 'first-key' | 'further-key';
  readonly applicationId: string;
  readonly applicationName: string;
  readonly appId: string | null;
  readonly host: string | null;
  readonly process: string | null;
  readonly keyId: string;
  readonly keyName: string;
  readonly label: string | null;
  readonly origin: string | null;
  /** What the application did in the next ten minutes, or until it created its next key. Uses are recorded by the minute. */
  readonly uses: { readonly [name: string]: number };
  readonly failures: number;
  readonly lastAt: string;
  /** The audit records that this was derived from. */
  readonly records: readonly number[];
};

export type AuditRecord = {
  /** Defines the order of the records. Times are only for people. */
  readonly sequence: number;
  readonly at: string;
  readonly kind: 'service.started' | 'service.stopped' | 'tls.certificate-created' | 'tls.issuer-changed' | 'clock.jumped' | 'clock.confirmed' | 'node.drained' | 'node.resumed' | 'node.removed' | 'tenant.created' | 'tenant.renamed' | 'tenant.suspended' | 'tenant.resumed' | 'tenant.deleted' | 'tenant.restored' | 'tenant.purged' | 'tenant.cleared' | 'tenant.unrecoverable' | 'vault.created' | 'vault.enabled' | 'vault.disabled' | 'vault.deleted' | 'key.created' | 'key.changed' | 'key.enabled' | 'key.disabled' | 'key.rotated' | 'key.deleted' | 'key.reimported' | 'key.destroyed' | 'key.unrecoverable' | 'key.repaired' | 'key.wrapped' | 'key.sent' | 'key.decryption-ended' | 'key.decryption-allowed' | 'key.exported' | 'key.denied' | 'row.tampered' | 'root.rotation-requested' | 'root.rotated' | 'tenant.key-rotation-requested' | 'tenant.key-rotated' | 'service.backed-up' | 'root.backed-up' | 'root.provider-added' | 'root.provider-removed' | 'root.provider-rewrapped' | 'erasure.started' | 'erasure.blocked' | 'erasure.copy-released' | 'erasure.finished' | 'audit.sink-forked' | 'recovery-key.registered' | 'recovery-key.removed' | 'snapshot.created' | 'snapshot.failed' | 'snapshot.imported' | 'snapshot.verified' | 'snapshot.deleted' | 'snapshot.undeleted' | 'snapshot.purged' | 'snapshot.exported' | 'copy.destroyed' | 'snapshot.keys-erased' | 'snapshot.opening-started' | 'snapshot.restored' | 'group.renamed' | 'group.created' | 'application.registered' | 'application.renamed' | 'application.enabled' | 'application.disabled' | 'application.compatibility-changed' | 'application.callers-changed' | 'application.moved' | 'access-guid.added' | 'access-guid.removed' | 'runbook.started' | 'runbook.step-completed' | 'runbook.step-reopened' | 'runbook.finished' | 'instance.first-used' | 'application.used' | 'object.created' | 'object.updated' | 'object.destroyed' | 'endpoint.created' | 'endpoint.renamed' | 'endpoint.enabled' | 'endpoint.disabled' | 'endpoint.settings-changed' | 'endpoint.deleted' | 'endpoint.credential-added' | 'endpoint.credential-removed' | 'vault.renamed' | 'vault.profile-changed' | 'notification.acknowledged' | 'notification.released' | 'setup.confirmed' | 'notification.tested' | 'dual-control.changed' | 'approval.requested' | 'approval.approved' | 'approval.rejected' | 'approval.withdrawn' | 'approval.expired' | 'approval.outdated' | 'approval.completed' | 'key-inventory.exported' | 'request-log.exported' | 'request-log.minute' | 'request-log.pruned' | 'audit-log.exported' | 'audit-log.accepted' | 'audit-log.key-rotated' | 'external-key-store.registered' | 'external-key-store.state-changed' | 'external-key-store.removed' | 'user.created' | 'user.changed' | 'user.enabled' | 'user.disabled' | 'user.cleared' | 'user.deleted' | 'user.locked' | 'user.unlocked' | 'invitation.issued' | 'password.changed' | 'second-factor.added' | 'second-factor.removed' | 'recovery-codes.created' | 'recovery-code.used' | 'session.started' | 'session.ended' | 'session.key-rotated' | 'sign-in.refused' | 'device-sign-in.requested' | 'device-sign-in.approved' | 'device-sign-in.refused' | 'device-sign-in.issued' | 'token.key-rotated' | 'token.former-key-ended' | 'token.created' | 'break-glass.created' | 'administrator.recovered' | 'token.revoked' | 'authentication.failed';
  readonly actorKind: 'user' | 'administrator' | 'application' | 'service';
  readonly actorId: string;
  readonly actorName: string;
  readonly peer: string | null;
  readonly tenantId: string;
  readonly subjectKind: 'service' | 'tenant' | 'vault' | 'key' | 'group' | 'application' | 'object' | 'endpoint' | 'external-key-store' | 'snapshot' | 'copy' | 'recovery-key' | 'token' | 'approval' | 'user' | 'session' | 'notification';
  readonly subjectId: string;
  readonly requestId: string;
  readonly details: { readonly [name: string]: unknown };
};

export type IssuedToken = {
  readonly record: Token;
  /** Shown only once. */
  readonly token: string;
};

export type Token = {
  readonly id: string;
  /** metrics: reads /metrics and nothing else */
  readonly kind: 'api' | 'metrics';
  readonly name: string;
  readonly grants: readonly Grant[];
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  readonly lastUsedAt: string | null;
  /** The user who created it for themselves: it does no more than they may. null: a token for a program. */
  readonly ownerId: string | null;
  /** tampered: the stored row was changed from outside; every use is refused */
  readonly integrity: 'ok' | 'tampered';
};

export type Grant = {
  readonly role: 'administrator' | 'platform-operator' | 'tenant-administrator' | 'key-manager' | 'key-destroyer' | 'key-approver' | 'recovery-officer' | 'connection-manager' | 'application-owner' | 'auditor' | 'break-glass';
  /** The one resource that an `application-owner` has; null for every other role. */
  readonly scope: { readonly kind: 'application' | 'endpoint'; readonly id: string } | null;
  /** The tenant in which it applies; null: the whole platform and every tenant. */
  readonly tenantId: string | null;
};

export type NewToken = {
  readonly name: string;
  /** null: until revoked */
  readonly expiresAt?: string | null | undefined;
  /** metrics: reads /metrics and nothing else */
  readonly kind?: 'api' | 'metrics' | undefined;
  /** Its roles: at least one, but none for metrics. */
  readonly grants?: readonly NewGrant[] | undefined;
};

export type NewGrant = {
  readonly role: 'administrator' | 'platform-operator' | 'tenant-administrator' | 'key-manager' | 'key-destroyer' | 'key-approver' | 'recovery-officer' | 'connection-manager' | 'application-owner' | 'auditor' | 'break-glass';
  /** The one resource that an `application-owner` has; null for every other role. */
  readonly scope: { readonly kind: 'application' | 'endpoint'; readonly id: string } | null;
  /** The tenant in which it applies; null: the whole platform and every tenant. */
  readonly tenantId?: string | null | undefined;
};

export type Role = {
  readonly role: 'administrator' | 'platform-operator' | 'tenant-administrator' | 'key-manager' | 'key-destroyer' | 'key-approver' | 'recovery-officer' | 'connection-manager' | 'application-owner' | 'auditor' | 'break-glass';
  readonly description: string;
  /** true: given for one application or one endpoint. */
  readonly scoped: boolean;
  /** Given only for the whole platform, or only within one tenant; null: either. */
  readonly reach: 'platform' | 'tenant' | null;
  readonly permissions: readonly string[];
};

export type TokenKeyRotation = {
  /** Revoke all tokens now, including the caller's. */
  readonly compromised?: boolean | undefined;
};

export type EndOfTokenKey = {
  /** Revoke tokens that have not been used since the rotation. */
  readonly force?: boolean | undefined;
};

export type InvitedUser = {
  readonly user: User;
  /** null for users who sign in only with OpenID, and when it was sent by mail only */
  readonly invitation: Invitation | null;
  /** null: not by mail */
  readonly mailed: {
    readonly to: string;
    /** null: the mail server has accepted the mail */
    readonly failure: string | null;
  } | null;
};

export type User = {
  readonly id: string;
  /** The tenant of the user; null: the platform. */
  readonly tenantId: string | null;
  /** The name for signing in; unique, ignoring case. */
  readonly name: string;
  readonly displayName: string;
  readonly email: string | null;
  readonly grants: readonly Grant[];
  readonly state: 'active' | 'disabled' | 'deleted';
  readonly hasPassword: boolean;
  readonly mustChangePassword: boolean;
  readonly passwordChangedAt: string | null;
  /** The subject (`sub`) at the OpenID provider. */
  readonly subject: string | null;
  readonly factors: readonly Factor[];
  /** Too many failed attempts: passwords are refused until then. */
  readonly lockedUntil: string | null;
  /** When the unused invitation expires. */
  readonly invitedUntil: string | null;
  readonly createdAt: string;
  readonly lastSignInAt: string | null;
  /** tampered: the row was changed from outside */
  readonly integrity: 'ok' | 'tampered';
};

export type Factor = {
  readonly id: string;
  readonly kind: 'totp' | 'passkey' | 'recovery-code';
  readonly name: string;
  readonly createdAt: string;
  /** null: started, but not confirmed yet: it does not count as a factor */
  readonly confirmedAt: string | null;
  readonly lastUsedAt: string | null;
};

export type Invitation = {
  /** Shown only once, and single-use. */
  readonly token: string;
  readonly expiresAt: string;
  /** The address at which the person opens it. */
  readonly url: string;
};

export type NewUser = {
  readonly name: string;
  readonly displayName?: string | undefined;
  readonly email?: string | null | undefined;
  readonly grants: readonly NewGrant[];
  readonly subject?: string | null | undefined;
  /** show: the answer has the invitation; mail: it is sent to the user's e-mail address, and the answer does not have it (people.invitation_target in dke.toml); mail-and-show: both */
  readonly deliver?: 'show' | 'mail' | 'mail-and-show' | undefined;
};

export type UserChange = {
  readonly displayName: string;
  readonly email: string | null;
  readonly grants: readonly NewGrant[];
  readonly subject: string | null;
  /** The user must set a new password at the next sign-in. */
  readonly mustChangePassword: boolean;
};

export type PasswordReset = {
  readonly revokeTokens?: boolean | undefined;
  /** show: the answer has the invitation; mail: it is sent to the user's e-mail address, and the answer does not have it (people.invitation_target in dke.toml); mail-and-show: both */
  readonly deliver?: 'show' | 'mail' | 'mail-and-show' | undefined;
};

export type UserPermissions = {
  readonly grants: readonly Grant[];
  readonly permissions: readonly {
    readonly permission: string;
    /** The one resource that an `application-owner` has; null for every other role. */
    readonly scope: { readonly kind: 'application' | 'endpoint'; readonly id: string } | null;
    readonly tenantId: string | null;
  }[];
};

export type OpenSession = {
  readonly id: string;
  /** true: the session of this request. */
  readonly current: boolean;
  readonly holder: { readonly kind: 'user' | 'token'; readonly id: string; readonly name: string };
  readonly method: 'password' | 'invitation' | 'passkey' | 'openid' | 'token';
  /** Whether the person used two factors. */
  readonly secondFactor: boolean;
  readonly createdAt: string;
  /** Accurate to the minute. */
  readonly usedAt: string;
  /** At the latest. Without requests it ends sooner. */
  readonly expiresAt: string;
  readonly peer: string | null;
  /** The User-Agent of the browser. */
  readonly agent: string | null;
};

export type Session = {
  /** Id of the user or token. */
  readonly id: string;
  readonly kind: 'user' | 'token';
  /** Name of the user or token, as in the audit log. */
  readonly name: string;
  /** The tenant of the request: the one that `tenant` names, or your own. */
  readonly tenantId: string;
  readonly grants: readonly Grant[];
  /** What the caller may do: everywhere (scope and tenantId null), in one tenant, or with one resource. */
  readonly permissions: readonly {
    readonly permission: string;
    /** The one resource that an `application-owner` has; null for every other role. */
    readonly scope: { readonly kind: 'application' | 'endpoint'; readonly id: string } | null;
    readonly tenantId: string | null;
  }[];
  /** What the session needs before anything else: verify the second factor (second-factor), set a new password (new-password), or set up a second factor (enrolment). */
  readonly missing: 'second-factor' | 'new-password' | 'enrolment' | null;
  /** null: the caller uses a token, not a session */
  readonly expiresAt: string | null;
};

export type PasswordChange = { readonly current?: string | undefined; readonly password: string };

export type PendingTotp = {
  readonly id: string;
  /** Base32, for typing where a QR code cannot be scanned. */
  readonly secret: string;
  /** otpauth: the content of the QR code. */
  readonly uri: string;
};

export type NewTotp = { readonly name: string };

export type TotpConfirmation = { readonly code: string };

export type NewPasskey = {
  readonly name: string;
  /** PublicKeyCredential.toJSON() */
  readonly answer: { readonly [name: string]: unknown };
};

export type RecoveryCodes = { readonly codes: readonly string[] };

export type NewOwnToken = {
  readonly name: string;
  readonly expiresAt: string;
  readonly grants?: readonly NewGrant[] | undefined;
};

export type SignIn = {
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  readonly token?: string | undefined;
};

export type SignInMethods = {
  /** The display name of the OpenID provider; null: none. */
  readonly openId: string | null;
  readonly passkeys: boolean;
};

export type PasskeySignIn = {
  /** PublicKeyCredential.toJSON() */
  readonly answer: { readonly [name: string]: unknown };
};

export type SecondFactor = {
  readonly code?: string | undefined;
  readonly recoveryCode?: string | undefined;
  /** PublicKeyCredential.toJSON() */
  readonly passkey?: { readonly [name: string]: unknown } | undefined;
};

export type InvitationUse = { readonly invitation: string; readonly password: string };

export type NewDeviceSignIn = {
  readonly host: string;
  /** All when absent. */
  readonly roles?: readonly ('administrator' | 'platform-operator' | 'tenant-administrator' | 'key-manager' | 'key-destroyer' | 'key-approver' | 'recovery-officer' | 'connection-manager' | 'application-owner' | 'auditor' | 'break-glass')[] | undefined;
  readonly hours?: number | undefined;
};

export type DeviceSignInPoll = {
  /** The code that only the command has. */
  readonly deviceCode: string;
};

export type DeviceSignInEnd = { readonly token: string };

export type UserCode = {
  /** The code that the command shows. Case and separators do not count. */
  readonly userCode: string;
};

export type DeviceSignInApproval = {
  /** The code that the command shows. Case and separators do not count. */
  readonly userCode: string;
  readonly hours: number;
  readonly grants?: readonly NewGrant[] | undefined;
};

export type DeviceSignInRefusal = {
  /** The code that the command shows. Case and separators do not count. */
  readonly userCode: string;
};

export type Node = {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** offline: without a heartbeat for three seconds; removed: it does not start again */
  readonly state: 'active' | 'draining' | 'stopped' | 'removed' | 'offline';
  readonly startedAt: string;
  readonly heartbeatAt: string;
  /** Changes that it does not see yet. */
  readonly behind: number;
  readonly rootEpoch: number;
  /** true: it still has the old root key, because an erasure run is in progress. */
  readonly hasOldRoot: boolean;
  /** For an offline node that may still be running: when it stops using keys, at the latest. */
  readonly usesKeysUntil: string | null;
  /** Jobs that it does for all nodes. */
  readonly duties: readonly ('erasure' | 'audit' | 'forwarding' | 'key-stores' | 'pruning' | 'schedules')[];
  /** true: this node answered the request. */
  readonly self: boolean;
};

export type Job = {
  readonly name: string;
  /** null: at the times of `snapshots.schedule`. */
  readonly everySeconds: number | null;
  /** The node that does it for all; null: no node, at the moment. */
  readonly node: string | null;
  /** true: the node that answers does it. Otherwise the times and the failure are those of its own last run, if any: ask `node`. */
  readonly here: boolean;
  readonly running: boolean;
  /** Of the last run since this node started; null: none. */
  readonly startedAt: string | null;
  readonly durationMs: number | null;
  /** When a run last succeeded. */
  readonly succeededAt: string | null;
  /** Set while the last run failed. The log of the node has the details. */
  readonly failure: { readonly since: string; readonly message: string } | null;
  /** The earliest time of the next run. */
  readonly nextAt: string | null;
};

export type Status = {
  readonly version: string;
  readonly nodeVersion: string;
  /** Of OpenSSL in the core. */
  readonly libcryptoVersion: string;
  readonly startedAt: string;
  readonly rootEpoch: number;
  readonly health: {
    readonly healthy: boolean;
    readonly at: string;
    readonly checks: readonly {
      readonly name: 'store' | 'root-key' | 'round-trip' | 'clock' | 'disk' | 'database';
      readonly healthy: boolean;
      readonly detail: string;
      readonly durationMs: number;
    }[];
  };
  readonly erasure: {
    readonly fileSystem: string;
    /** false: the file system keeps copies; erasure is best effort */
    readonly overwritesInPlace: boolean;
    /** Destroyed keys that the next erasure run covers. */
    readonly pendingKeys: number;
    /** Destroyed keys that are not unrecoverable because of copies that the service knows. */
    readonly waitingKeys: number;
    /** Token objects whose replaced or destroyed values the next erasure run covers. */
    readonly pendingObjects: number;
    /** blocked: stored records cannot be opened and would be lost after the run, nodes do not take part, copies of the database are behind, or snapshot files are missing. failed: the run is retried. */
    readonly state: 'idle' | 'waiting' | 'running' | 'blocked' | 'failed';
    readonly failure: string | null;
    /** Of the state waiting. destructions: others of the next seconds share the run. copies: the WAL archive, or `replica_lag_seconds` for copies that the database does not show. node: no node that can run it has begun yet; it is the one with the duty `erasure`. */
    readonly waitsFor: 'destructions' | 'copies' | 'node' | null;
    readonly blockers: {
      readonly since: string;
      readonly records: readonly {
        readonly kind: 'key' | 'object' | 'credential' | 'other';
        readonly id: string;
        readonly name: string | null;
        readonly version: number;
        readonly copy: string;
      }[];
      /** Nodes that it waits for. Start or remove them. */
      readonly nodes: readonly string[];
      /** Standbys, replication slots or the WAL archive of the database that have not stored the records under the new root key: bring them up to date, or drop their slots. */
      readonly standbys: readonly string[];
      /** Snapshots whose files are missing: restore the files and verify the snapshots, or delete the snapshots. */
      readonly snapshots: readonly string[];
    } | null;
  };
  readonly clock: Clock;
  readonly store: { readonly dialect: string; readonly path: string | null };
  readonly memory: {
    readonly capacity: number;
    readonly used: number;
    readonly keys: number;
    readonly locked: boolean;
  };
  readonly requestLog: {
    readonly queued: number;
    /** Signed requests that could not be recorded since this node started. */
    readonly dropped: number;
    /** Requests without a valid signature that could not be recorded since this node started. */
    readonly droppedUnsigned: number;
  };
};

export type Clock = {
  /** The clock of this host. */
  readonly clock: string;
  /** The time that decides whether a deadline has passed. It is never later than the clock. */
  readonly deadlines: string;
  /** true: the clocks differ by more than an hour from the elapsed time. Nothing is purged, deleted or pruned by a deadline. */
  readonly jumped: boolean;
  readonly since: string | null;
  /** How far the clocks were ahead at that time; negative: behind. */
  readonly aheadSeconds: number | null;
  /** How long they have differed. After 86400 seconds, the service accepts the clocks. */
  readonly agreedSeconds: number | null;
};

export type Root = {
  readonly epoch: number;
  /** Set during an erasure run, when both root keys are open. */
  readonly previousEpoch: number | null;
  /** true: a rotation was requested or is in progress. */
  readonly rotating: boolean;
  /** The newest backup by `dke root backup`. A backup of an older epoch can no longer open anything. */
  readonly backup: { readonly epoch: number; readonly at: string } | null;
  /** Nodes, standbys, replication slots or the WAL archive of the database that prevent the old root key from being overwritten. Set only on the node that does the erasure run. */
  readonly waitsFor: readonly string[];
  readonly providers: readonly {
    readonly name: string;
    readonly type: 'file' | 'passphrase' | 'pkcs11';
    readonly createdAt: string | null;
    /** true: it opened the root key at this start. */
    readonly opened: boolean;
  }[];
  readonly fileSystem: string;
  readonly overwritesInPlace: boolean;
};

export type Quarantine = {
  readonly quarantined: boolean;
  readonly reason: string | null;
  /** older: records up to the checkpoint next to the root key are missing; incomplete: confirmed records after it are missing; changed: records differ from those that were signed; restored: a backup of the service was restored */
  readonly finding: 'older' | 'incomplete' | 'changed' | 'rows-changed' | 'lost-changes' | 'restored' | 'copied' | null;
  /** Current number of records in the audit log. */
  readonly size: number | null;
  /** Number of records at the checkpoint next to the root key. */
  readonly expected: number | null;
  /** When the difference was found, or when the service started with it. */
  readonly since: string | null;
  /** What was compared with what. */
  readonly differences: readonly {
    readonly what: string;
    readonly found: string;
    /** A place in the database. */
    readonly foundIn: string;
    readonly expected: string;
    /** A file with its time, a place in the database, or the memory of this process. */
    readonly expectedIn: string;
  }[];
  /** What the sinks of the audit log have recorded since then. */
  readonly missing: {
    /** Records that a sink has but the database does not. */
    readonly count: number;
    /** Sequence number of the last of them that a checkpoint of this service covers; 0: none. */
    readonly signed: number;
    /** The first 1000 records. */
    readonly records: readonly {
      readonly sequence: number;
      readonly at: string;
      readonly kind: string;
      readonly actorName: string;
      readonly subjectKind: string;
      readonly subjectId: string;
    }[];
    readonly sinks: readonly {
      readonly name: string;
      readonly type: string;
      readonly target: string;
      /** Null: DKE cannot read it. Search it yourself. */
      readonly records: number | null;
    }[];
  } | null;
};

export type SearchResult = {
  readonly items: readonly Found[];
  readonly more: readonly ('key' | 'vault' | 'group' | 'application' | 'endpoint' | 'external-key-store' | 'user' | 'token' | 'tenant' | 'node' | 'snapshot' | 'approval' | 'request' | 'audit-actor' | 'audit-request' | 'audit-subject')[];
  readonly searched: readonly ('key' | 'vault' | 'group' | 'application' | 'endpoint' | 'external-key-store' | 'user' | 'token' | 'tenant' | 'node' | 'snapshot' | 'approval' | 'request' | 'audit-actor' | 'audit-request' | 'audit-subject')[];
};

export type Found = {
  readonly kind: 'key' | 'vault' | 'group' | 'application' | 'endpoint' | 'external-key-store' | 'user' | 'token' | 'tenant' | 'node' | 'snapshot' | 'approval' | 'request' | 'audit-actor' | 'audit-request' | 'audit-subject';
  /** For a log record: the id that was searched for. */
  readonly id: string;
  readonly name: string;
  readonly foundIn: 'name' | 'id' | 'display-name' | 'email' | 'app-id' | 'prefix' | 'tag' | 'access-key-id' | 'custom-key-store-id' | 'request-id' | 'kms-request-id' | 'actor' | 'subject';
  /** Null: the platform. */
  readonly tenantId: string | null;
  /** Of a key: its `effectiveState`. */
  readonly state: string | null;
  /** Its path in the console */
  readonly page: string;
  /** Path in this API. */
  readonly api: string;
};

export type LatencyPoint = {
  /** Start of the interval. */
  readonly at: string;
  readonly requests: number;
  readonly errors: number;
  /** Longer than 100 ms: the cloud key service reports them as slow. */
  readonly over100Ms: number;
  /** Longer than 250 ms: the cloud key service has given up. */
  readonly over250Ms: number;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
};

export type Settings = {
  /** The file; null: there is none, and the defaults apply. */
  readonly source: string | null;
  readonly items: readonly {
    readonly name: string;
    /** As JSON; null: not set. */
    readonly value: string | null;
    readonly origin: 'file' | 'default';
  }[];
};

export type Setup = {
  /** When a snapshot was first opened with a recovery key; null: none yet. */
  readonly finishedAt: string | null;
  readonly steps: readonly {
    readonly step: 'root-protection' | 'root-key' | 'administrator' | 'recovery-codes' | 'first-token' | 'audit-sinks' | 'recovery-key' | 'snapshot-schedule' | 'snapshot';
    /** done: the service has verified it; confirmed: it is not done, and a user has accepted the risk. */
    readonly state: 'open' | 'confirmed' | 'done';
    /** What the service knows about it. */
    readonly finding: string;
    readonly confirmed: { readonly at: string; readonly by: string } | null;
  }[];
};

export type SetupConfirmation = {
  readonly step: 'root-protection' | 'root-key' | 'administrator' | 'recovery-codes' | 'first-token' | 'audit-sinks' | 'snapshot-schedule';
  readonly confirmed: boolean;
};

export type TenantAfterChange = Tenant & PendingMembers;

export type ChangedTenantAfterChange = { readonly dryRun: boolean; readonly tenant: Tenant; readonly impact: TenantImpact } & PendingMembers;

export type DeletedVaultAfterChange = {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  /** tde: belongs to a TDE group and contains its master keys */
  readonly kind: 'general' | 'tde';
  readonly state: 'enabled' | 'disabled' | 'deleted';
  /** null: one person is enough */
  readonly dualControl: DualControlRule | null;
  /** How often its keys should be rotated. */
  readonly profile: 'standard' | 'high-security';
  readonly createdAt: string;
  /** tampered: the stored row was changed from outside; every use is refused */
  readonly integrity: 'ok' | 'tampered';
  readonly plan?: ApprovalNeeds | undefined;
} & PendingMembers;

export type VaultAfterChange = Vault & PendingMembers;

export type RenamedVaultAfterChange = {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  /** tde: belongs to a TDE group and contains its master keys */
  readonly kind: 'general' | 'tde';
  readonly state: 'enabled' | 'disabled' | 'deleted';
  /** null: one person is enough */
  readonly dualControl: DualControlRule | null;
  /** How often its keys should be rotated. */
  readonly profile: 'standard' | 'high-security';
  readonly createdAt: string;
  /** tampered: the stored row was changed from outside; every use is refused */
  readonly integrity: 'ok' | 'tampered';
  readonly plan?: ApprovalNeeds | undefined;
} & PendingMembers;

export type VaultDualControlAfterChange = VaultDualControl & PendingMembers;

export type KeyAfterChange = Key & PendingMembers;

export type DeletedKeyAfterChange = {
  readonly key: Key;
  /** false: the key is deleted, but clearing its vault copy failed (clearing is best effort) */
  readonly vaultCopyCleared: boolean;
  readonly plan?: ApprovalNeeds | undefined;
} & PendingMembers;

export type KeyVersionAfterChange = KeyVersion & PendingMembers;

export type RenamedTdeGroupAfterChange = {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  readonly vaultId: string;
  readonly createdAt: string;
  /** tampered: the stored row was changed from outside; every use is refused */
  readonly integrity: 'ok' | 'tampered';
  readonly plan?: ApprovalNeeds | undefined;
} & PendingMembers;

export type TdeApplicationAfterChange = TdeApplication & PendingMembers;

export type MovedTdeApplicationAfterChange = {
  readonly dryRun: boolean;
  readonly application: TdeApplication;
  readonly move: ApplicationMove;
  readonly plan?: ApprovalNeeds | undefined;
} & PendingMembers;

export type AccessGuidAfterChange = AccessGuid & PendingMembers;

export type MasterKeyAfterChange = MasterKey & PendingMembers;

export type DestroyedMasterKeyAfterChange = {
  readonly dryRun: boolean;
  readonly key: MasterKey;
  readonly blastRadius: BlastRadius;
  readonly plan?: ApprovalNeeds | undefined;
} & PendingMembers;

export type EndpointAfterChange = Endpoint & PendingMembers;

export type CorrelatedRequestsAfterChange = {
  /** The request ids that were searched for. */
  readonly kmsRequestIds: readonly string[];
  readonly items: readonly EndpointRequest[];
  /** The time of the oldest record that the log still has. */
  readonly oldest: string | null;
} & PendingMembers;

export type RunbookRunAfterChange = RunbookRun & PendingMembers;

export type ExternalKeyStoreAfterChange = ExternalKeyStore & PendingMembers;

export type ApprovalAfterChange = Approval & PendingMembers;

export type SnapshotAfterChange = Snapshot & PendingMembers;

export type SnapshotRestoreAfterChange = {
  readonly dryRun: boolean;
  readonly tenantId: string;
  readonly newTenant: boolean;
  /** The ids in the snapshot already belong to another tenant, so everything got new ids. */
  readonly newIds: boolean;
  readonly counts: { readonly [name: string]: {
    readonly created: number;
    readonly changed: number;
    readonly unchanged: number;
    /** In the tenant but not in the snapshot. They stay. */
    readonly kept: number;
    /** Credentials of the original that a copy next to it does not get. */
    readonly omitted: number;
  } };
  readonly stayDestroyed: readonly {
    readonly id: string;
    readonly name: string;
    readonly label: string | null;
    readonly destroyedAt: string;
  }[];
  /** Token objects whose value was damaged before the snapshot was created: they are copied without it. Labels are in Base64. */
  readonly withoutValue: readonly { readonly id: string; readonly label: string }[];
  /** Applications, credentials and endpoints that the restore creates, reactivates or changes, vaults and keys that it reactivates, and attributes of token objects and dual-control rules that it changes: check them. */
  readonly activated: readonly {
    readonly kind: 'application' | 'access-guid' | 'endpoint' | 'credential' | 'vault' | 'key' | 'token-object' | 'dual-control';
    readonly change: 'created' | 'reactivated' | 'changed';
    readonly id: string;
    readonly name: string;
  }[];
  readonly newHandles: number;
  /** For a dry run: the dual-control rules that apply. Empty: no approval is needed. */
  readonly rules: readonly ApprovalRule[];
} & PendingMembers;

export type RecoveryKeyAfterChange = RecoveryKey & PendingMembers;

export type NotificationAfterChange = Notification & PendingMembers;

export type AuditLogAfterChange = AuditLog & PendingMembers;

export type TokenAfterChange = Token & PendingMembers;

export type TokenKeyChangeAfterChange = {
  /** How many tokens were revoked. */
  readonly tokensEnded: number;
  /** How many are accepted only under a former key. Each is stored under the new key at its next use. */
  readonly tokensLeft: number;
} & PendingMembers;

export type UserAfterChange = User & PendingMembers;

export type EndedSessionsAfterChange = { readonly ended: number } & PendingMembers;

export type OpenSessionAfterChange = OpenSession & PendingMembers;

export type RotatedSessionKeyAfterChange = {
  /** How many sessions were open. */
  readonly sessionsEnded: number;
} & PendingMembers;

export type SessionAfterChange = Session & PendingMembers;

export type PasskeyQuestionAfterChange = {
  /** WebAuthn Level 3, JSON */
  readonly options: { readonly [name: string]: unknown };
} & PendingMembers;

export type OpenIdStartAfterChange = {
  /** Address of the redirect. */
  readonly url: string;
} & PendingMembers;

export type DeviceSignInStartAfterChange = {
  /** The code that only the command has. */
  readonly deviceCode: string;
  /** The code that the command shows. Case and separators do not count. */
  readonly userCode: string;
  /** The page at which the person enters the code. */
  readonly url: string;
  /** The same page with the code, which browsers do not send. */
  readonly completeUrl: string;
  readonly expiresAt: string;
  /** The shortest time between two questions. */
  readonly intervalSeconds: number;
} & PendingMembers;

export type DeviceSignInAnswerAfterChange = {
  /** pending: ask again after `intervalSeconds`; slow-down: the same, and the interval has grown; refused: by the person, or because the approval is no longer valid; expired: also unknown, or taken before; issued: once. */
  readonly state: 'pending' | 'slow-down' | 'refused' | 'expired' | 'issued';
  readonly intervalSeconds: number;
  /** The user whose token it is; null unless issued. */
  readonly user: string | null;
  readonly issued: IssuedToken | null;
} & PendingMembers;

export type DeviceSignInRequestAfterChange = {
  /** What the command calls its host. Anyone can claim any name. */
  readonly host: string;
  /** The address from which the command asked. */
  readonly peer: string | null;
  readonly requestedAt: string;
  readonly expiresAt: string;
  /** Null: all of the person. */
  readonly roles: readonly ('administrator' | 'platform-operator' | 'tenant-administrator' | 'key-manager' | 'key-destroyer' | 'key-approver' | 'recovery-officer' | 'connection-manager' | 'application-owner' | 'auditor' | 'break-glass')[] | null;
  readonly hours: number;
} & PendingMembers;

export type NodeAfterChange = Node & PendingMembers;

export type ClockAfterChange = Clock & PendingMembers;

export type RootAfterChange = Root & PendingMembers;

export type QuarantineAfterChange = Quarantine & PendingMembers;

export type SetupAfterChange = Setup & PendingMembers;

/** What every answer to a change can have. */
export type PendingMembers = {
  /** Nodes that did not confirm this change within two seconds and may still use the earlier state. Absent when there are none. */
  readonly pendingNodes?: readonly string[] | undefined;
  /** When the last of the nodes in `pendingNodes` stops using keys if it has not confirmed the change. Null: no limit. */
  readonly pendingUntil?: string | null | undefined;
};

/** Stable codes of failures. */
export type ProblemCode = 'validation' | 'unauthenticated' | 'forbidden' | 'sign-in-incomplete' | 'not-found' | 'key-not-found' | 'key-disabled' | 'key-destroyed' | 'key-usage' | 'key-tampered' | 'conflict' | 'label-exists' | 'precondition-failed' | 'precondition-required' | 'invalid-ciphertext' | 'data-length' | 'unsupported' | 'payload-too-large' | 'rate-limited' | 'dependency-timeout' | 'unavailable' | 'internal';
