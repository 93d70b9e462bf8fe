// What the service can do: the face that fronts, the command line and diagnostics call. Each member is one file beside this
// one; `compose.ts` builds them from ports.
//
// Every method that changes something writes its audit record in the same transaction and resolves after the commit and
// after every in-memory view in this process has been renewed. Errors are `ServiceError`. Times are milliseconds since
// the epoch. Identifiers are compared byte for byte; an unknown one is 'not-found' ('key-not-found' for keys).

import type {
  CipherParameters,
  Digest,
  MacParameters,
  OaepParameters,
  RsaEncryptionParameters,
  SignatureParameters,
  Sp800108Parameters,
} from '../../addon/core.ts';
import type { CheckResult, PlannedCheck } from '../base/checks.ts';
import type { CompatibilitySwitch } from '../base/compatibility.ts';
import type { RequestLogVerdict } from '../base/request-minutes.ts';
import type { Grant, Permission, Right, Role, RoleRow, Scope } from '../domain/access.ts';
import type { Actor, TenantActor } from '../domain/actor.ts';
import type { ApiToken, TokenKind } from '../domain/api-token.ts';
import type { Approval, ApprovalState, Identity } from '../domain/approval.ts';
import type { AuditEvent, AuditKind } from '../domain/audit-event.ts';
import type { AuthorizationRule, RequestOrigin, RuleDecision } from '../domain/authorization-rule.ts';
import type { DualControlRule } from '../domain/dual-control.ts';
import type { Endpoint, EndpointCredential, EndpointDiagnosisRecord, EndpointSettings } from '../domain/endpoint.ts';
import type { ExternalKeyStore } from '../domain/external-key-store.ts';
import type { Key, KeyAlgorithm, KeyUsage, KeyUse, KeyVersion } from '../domain/key.ts';
import type { LatencySummary } from '../domain/latency.ts';
import type { FleetNode } from '../domain/node.ts';
import type { Notification, NotificationFilter, RotationProfile } from '../domain/notification.ts';
import type { Page, PageRequest } from '../domain/page.ts';
import type { RequestFilter } from '../domain/request-log.ts';
import type { RunbookRun, RunOutcome, StepOutcome } from '../domain/runbook-run.ts';
import type { Containers, FilledRunbook, Release, RunbookSummary } from '../domain/runbooks.ts';
import type { Found, SearchKind } from '../domain/search.ts';
import type { SettledStep, Setup } from '../domain/setup.ts';
import type {
  AccessGuid,
  ApplicationCallers,
  ApplicationMove,
  BlastRadius,
  Instance,
  MasterKey,
  ObjectClass,
  TdeApplication,
  TdeGroup,
  TokenObject,
} from '../domain/tde.ts';
import type { Tenant, TenantEvent } from '../domain/tenant.ts';
import type { Vault } from '../domain/vault.ts';
import type { DeadlineState } from '../ports/deadlines.ts';
import type { DiagnosisRequest } from '../ports/endpoint-diagnosis.ts';
import type { ErasureState } from '../ports/erasure.ts';
import type { Fleet } from '../ports/fleet.ts';
import type { Recipient, SealedKey } from '../ports/key-ring.ts';
import type { LogSinkState } from '../ports/log-sink.ts';
import type { NotificationTargetState } from '../ports/notification-target.ts';
import type { RootBackup, RootWay } from '../ports/root-provider.ts';
import type { KeyListFilter, StoredCheckpoint, TenantContents } from '../ports/store.ts';
import type { XksRequestRecord } from '../ports/xks-directory.ts';

import type { DryRun } from './approvals.ts';
import type { IdempotencyOperations } from './idempotency.ts';
import type { PeopleOperations } from './people/face.ts';
import type { PreconditionOperations } from './preconditions.ts';
import type { RecoveryKeyOperations, SnapshotOperations } from './snapshots/index.ts';

export interface NodeOperations {
  list(actor: Actor): Promise<readonly FleetNode[]>;
  get(actor: Actor, id: string): Promise<FleetNode>;
  drain(actor: Actor, id: string): Promise<FleetNode>;
  resume(actor: Actor, id: string): Promise<FleetNode>;
  remove(actor: Actor, id: string): Promise<FleetNode>;
}

export interface TenantOperations {
  /** By id, purged ones too; within one tenant that one alone. */
  list(actor: TenantActor): Promise<readonly Tenant[]>;
  get(actor: TenantActor, id: string): Promise<Tenant>;
  /** With a KEK of its own, and nothing else. Names are unique among those that are not purged: 'conflict'. */
  create(actor: Actor, input: { readonly name: string }): Promise<Tenant>;
  /** 'conflict' when the name is taken, or the tenant deleted. */
  rename(actor: TenantActor, id: string, input: { readonly name: string }): Promise<Tenant>;
  /** Everything in it stops before this resolves: endpoints, databases (open sessions too), tokens. */
  suspend(actor: TenantActor, id: string): Promise<Tenant>;
  resume(actor: TenantActor, id: string): Promise<Tenant>;
  /** As suspended, and it can be restored until `purgeAt`. The default tenant is not deleted: 'conflict'. */
  delete(actor: TenantActor, id: string): Promise<Tenant>;
  /** As it was when it was deleted; keys that were destroyed stay so. 'conflict' after its retention. */
  restore(actor: TenantActor, id: string): Promise<Tenant>;
  /** Of a deleted tenant, before its retention is over as well. Terminal; an erasure turn follows by itself. */
  purge(actor: TenantActor, id: string): Promise<Tenant>;
  /** What is in the tenant; 'conflict' where its state refuses the event. */
  impact(
    actor: TenantActor,
    id: string,
    event: TenantEvent,
  ): Promise<{ readonly tenant: Tenant; readonly contents: TenantContents }>;
  /** The tenant that those act in who may act in any and name none. */
  default(): Promise<Tenant>;
}

export interface VaultOperations {
  /** Names are unique among the live vaults of a tenant: 'conflict'. */
  create(actor: TenantActor, input: { readonly name: string }): Promise<Vault>;
  list(actor: TenantActor, query: PageRequest): Promise<Page<Vault>>;
  get(actor: TenantActor, id: string): Promise<Vault>;
  enable(actor: TenantActor, id: string): Promise<Vault>;
  disable(actor: TenantActor, id: string): Promise<Vault>;
  /** The row stays with state 'deleted'; keys inside are found no more. A TDE vault with live master keys: 'conflict'. */
  delete(actor: TenantActor, id: string): Promise<Vault>;
  /** How often its keys are to be rotated. */
  setProfile(actor: TenantActor, id: string, profile: RotationProfile): Promise<Vault>;
  planDelete(actor: TenantActor, id: string): Promise<DryRun>;
}

export interface ApprovalFilter extends PageRequest {
  readonly state?: ApprovalState | undefined;
  readonly subjectId?: string | undefined;
}

/** What dual control holds back; how an operation gets under it is told in approvals.ts. */
export interface ApprovalOperations {
  /** Newest first. */
  list(actor: TenantActor, query: ApprovalFilter): Promise<Page<Approval>>;
  get(actor: TenantActor, id: string): Promise<Approval>;
  /** The last agreement carries out the operation. 'forbidden' for the requester, and for whom the rule does not admit. */
  approve(actor: TenantActor, id: string, comment: string | null): Promise<Approval>;
  /** Ends it. */
  refuse(actor: TenantActor, id: string, comment: string | null): Promise<Approval>;
  /** By the requester alone. */
  withdraw(actor: TenantActor, id: string): Promise<Approval>;
}

export interface VaultDualControl {
  readonly vault: Vault;
  /** Who could agree now. */
  readonly approvers: readonly Identity[];
}

export interface DualControlOperations {
  get(actor: TenantActor, vaultId: string): Promise<VaultDualControl>;
  /** Null takes the rule away. A weaker rule needs the agreement that the present one asks for: `ApprovalNeeded`. */
  change(actor: TenantActor, vaultId: string, rule: DualControlRule | null): Promise<VaultDualControl>;
  planChange(actor: TenantActor, vaultId: string, rule: DualControlRule | null): Promise<DryRun>;
}

/** A notification with what is to be said about it. */
export interface InboxItem extends Notification {
  readonly text: string;
  readonly cure: string;
  /** What to do in a few words, and the page of the console that it begins on. */
  readonly action: string;
  readonly page: string;
}

export interface NotificationOperations {
  /** Open ones by the time of their harm, resolved ones newest first. */
  list(
    actor: TenantActor,
    query: PageRequest & NotificationFilter & { readonly state?: 'open' | 'resolved' | undefined },
  ): Promise<Page<InboxItem>>;
  /** Somebody takes care; what is taken or over already stays as it is. */
  acknowledge(actor: TenantActor, id: string): Promise<InboxItem>;
  /** Nobody takes care any more. */
  release(actor: TenantActor, id: string): Promise<InboxItem>;
  targets(): Promise<readonly NotificationTargetState[]>;
  /** Sends a test to every target; null: it took it. */
  test(actor: Actor): Promise<readonly { readonly name: string; readonly failure: string | null }[]>;
}

/** Without `usedAfter` and `usedBefore` newest first, with one of them longest unused first. */
export type KeyFilter = PageRequest & Omit<KeyListFilter, 'applicationId'>;

export interface KeyOperations {
  /** An AES-256 key for encrypt and decrypt, made inside the addon. The name is for people and need not be unique. */
  create(
    actor: TenantActor,
    input: { readonly name: string; readonly vaultId: string; readonly tags?: readonly string[] | undefined },
  ): Promise<Key>;
  /** Its name and its tags, whole. A master key's name stays: 'conflict'. */
  change(
    actor: TenantActor,
    id: string,
    input: { readonly name: string; readonly tags: readonly string[] },
  ): Promise<Key>;
  list(actor: TenantActor, query: KeyFilter): Promise<Page<Key>>;
  /** Any state, destroyed ones too: a tombstone outlives its key. */
  get(actor: TenantActor, id: string): Promise<Key>;
  versions(actor: TenantActor, id: string): Promise<readonly KeyVersion[]>;
  /** Who uses it, and when it was last used. */
  use(actor: TenantActor, id: string): Promise<KeyUse>;
  enable(actor: TenantActor, id: string): Promise<Key>;
  disable(actor: TenantActor, id: string): Promise<Key>;
  /**
   * Soft deletion, for general and master keys: the row stays, the vault copy is cleared. `vaultCopyCleared` false means
   * that clearing failed (best effort) while the state did change.
   */
  softDelete(actor: TenantActor, id: string): Promise<{ readonly key: Key; readonly vaultCopyCleared: boolean }>;
  planSoftDelete(actor: TenantActor, id: string): Promise<DryRun>;
  /** Adds a version; older versions go on opening what they sealed. General keys only: 'conflict' for master keys. */
  rotate(actor: TenantActor, id: string): Promise<KeyVersion>;
}

export interface TdeGroupOperations {
  /** Makes the group and its vault. */
  create(actor: TenantActor, input: { readonly name: string }): Promise<TdeGroup>;
  list(actor: TenantActor, query: PageRequest): Promise<Page<TdeGroup>>;
  get(actor: TenantActor, id: string): Promise<TdeGroup>;
}

/** An access_guid, shown this once: keep the text short-lived and out of logs. */
export interface IssuedAccessGuid {
  readonly record: AccessGuid;
  /** The bearer credential: `access_token` in pkcs11.toml. */
  readonly accessGuid: string;
  /** `server_url` in pkcs11.toml; embeds the access_guid and the application's app_id. */
  readonly serverUrl: string;
}

export interface ApplicationOperations {
  register(
    actor: TenantActor,
    /** `appId` defaults to the name when that fits `appIdPattern`, else 'default'. */
    input: { readonly name: string; readonly groupId: string; readonly appId?: string | undefined },
  ): Promise<IssuedAccessGuid & { readonly application: TdeApplication }>;
  list(
    actor: TenantActor,
    query: PageRequest & { readonly groupId?: string | undefined },
  ): Promise<Page<TdeApplication>>;
  get(actor: TenantActor, id: string): Promise<TdeApplication>;
  enable(actor: TenantActor, id: string): Promise<TdeApplication>;
  disable(actor: TenantActor, id: string): Promise<TdeApplication>;
  /** Turns on these compatibility switches, and turns off all others. */
  setCompatibility(actor: TenantActor, id: string, switches: readonly CompatibilitySwitch[]): Promise<TdeApplication>;
  /** Replaces where its credentials may be used from. 'conflict' where the listener asks for no client certificates. */
  setCallers(actor: TenantActor, id: string, callers: ApplicationCallers): Promise<TdeApplication>;
  /** What `move` would mean, and whose agreement it needs. */
  planMove(actor: TenantActor, id: string, groupId: string): Promise<ApplicationMove>;
  moveNeeds(actor: TenantActor, id: string, groupId: string): Promise<DryRun>;
  /** Moves it with its objects. What it could use of its old group, it can use no more from the next request on. */
  move(
    actor: TenantActor,
    id: string,
    groupId: string,
  ): Promise<{ readonly application: TdeApplication; readonly move: ApplicationMove }>;
  /** Issues a second access_guid; both hold until `removeAccessGuid`. With two live ones: 'conflict'. */
  rotateAccessGuid(actor: TenantActor, id: string): Promise<IssuedAccessGuid>;
  /** Live and removed ones, newest first. */
  accessGuids(actor: TenantActor, id: string): Promise<readonly AccessGuid[]>;
  /** The last live one is not removed ('conflict'): disable the application instead. */
  removeAccessGuid(actor: TenantActor, id: string, accessGuidId: string): Promise<AccessGuid>;
  /** Latest use first. */
  instances(actor: TenantActor, id: string): Promise<readonly Instance[]>;
}

export interface MasterKeyOperations {
  /** The history of an application: newest first, destroyed ones included. */
  list(actor: TenantActor, applicationId: string, query: PageRequest): Promise<Page<MasterKey>>;
  get(actor: TenantActor, applicationId: string, keyId: string): Promise<MasterKey>;
  blastRadius(actor: TenantActor, applicationId: string, keyId: string): Promise<BlastRadius>;
  /** Terminal. Both copies are overwritten in the transaction of the marker; an erasure turn follows by itself. */
  destroy(
    actor: TenantActor,
    applicationId: string,
    keyId: string,
  ): Promise<{ readonly key: MasterKey; readonly blastRadius: BlastRadius }>;
  destroyNeeds(actor: TenantActor, applicationId: string, keyId: string): Promise<DryRun>;
}

/** A credential whose secret is shown this once. The caller wipes `secretAccessKey` after it was sent. */
export interface IssuedEndpointCredential {
  readonly credential: EndpointCredential;
  /** 64 ASCII characters. */
  readonly secretAccessKey: Buffer;
}

/** What the rules that were given say, and what those that hold say. */
export interface SimulatedDecision extends RuleDecision {
  readonly current: Pick<RuleDecision, 'effect' | 'rule'>;
}

export interface EndpointOperations {
  /** `prefix` is made at random when absent; a taken one is 'conflict'. The key must be a live AES-256 key of the vault. */
  create(
    actor: TenantActor,
    input: {
      readonly name: string;
      readonly prefix?: string | undefined;
      readonly vaultId: string;
      readonly keyId: string;
      /** Those that are absent have their defaults. */
      readonly settings?: { readonly [S in keyof EndpointSettings]?: EndpointSettings[S] | undefined } | undefined;
    },
  ): Promise<Endpoint>;
  list(actor: TenantActor, query: PageRequest): Promise<Page<Endpoint>>;
  get(actor: TenantActor, id: string): Promise<Endpoint>;
  enable(actor: TenantActor, id: string): Promise<Endpoint>;
  disable(actor: TenantActor, id: string): Promise<Endpoint>;
  delete(actor: TenantActor, id: string): Promise<Endpoint>;
  /** What rules say to requests: these ones, or the endpoint's own when absent. Changes nothing. */
  simulateRules(
    actor: TenantActor,
    id: string,
    input: { readonly rules?: readonly AuthorizationRule[] | undefined; readonly requests: readonly RequestOrigin[] },
  ): Promise<readonly SimulatedDecision[]>;
  /** Replaces the settings as a whole. Rules or certificates that cannot hold: 'validation'. */
  changeSettings(actor: TenantActor, id: string, settings: EndpointSettings): Promise<Endpoint>;
  /** At most two live: 'conflict'. */
  addCredential(actor: TenantActor, id: string): Promise<IssuedEndpointCredential>;
  removeCredential(actor: TenantActor, id: string, credentialId: string): Promise<Endpoint>;
}

export type LoggedRequest = XksRequestRecord & { readonly sequence: number };
/** Page by page, newest first. */
export type RequestPages = AsyncIterable<readonly LoggedRequest[]>;

/** The request log of the key store endpoints. */
export interface RequestOperations {
  /** Newest first. A page may be short before the end, even empty: `next` tells. Endpoints that were deleted have theirs too. */
  search(actor: TenantActor, filter: RequestFilter & PageRequest): Promise<Page<LoggedRequest>>;
  /** Audited. The records are read while they are taken, so that no more than a page is in memory. */
  export(actor: TenantActor, filter: RequestFilter, format: 'ndjson' | 'csv'): Promise<RequestPages>;
  /**
   * The records of the calls that a CloudTrail event tells of: its text as it was copied, whatever stands around it, or a bare
   * request id. 'validation' when there is no request id in it.
   */
  correlate(actor: TenantActor, text: string): Promise<CorrelatedRequests>;
  /** Compares the log with the hashes of its minutes in the audit log; the last hour when no time is given. Of every tenant. */
  verify(
    actor: TenantActor,
    span: { readonly from?: number | undefined; readonly to?: number | undefined },
  ): Promise<RequestLogVerdict>;
}

export interface CorrelatedRequests {
  /** What was looked for. */
  readonly kmsRequestIds: readonly string[];
  /** Newest first; at most 1000. */
  readonly items: readonly LoggedRequest[];
  /** The time of the oldest record that the log still has; null: it has none. */
  readonly oldest: number | null;
}

export interface ExternalKeyStoreOperations {
  /** One of the cloud's custom key stores, once in each region: 'conflict'. */
  register(
    actor: TenantActor,
    input: {
      readonly name: string;
      readonly customKeyStoreId: string;
      readonly region: string;
      readonly endpointId: string;
    },
  ): Promise<ExternalKeyStore>;
  list(actor: TenantActor, query: PageRequest): Promise<Page<ExternalKeyStore>>;
  get(actor: TenantActor, id: string): Promise<ExternalKeyStore>;
  /** Looks now. */
  probe(actor: TenantActor, id: string): Promise<ExternalKeyStore>;
  /** Forgets it; nothing changes in the cloud or at the endpoint. */
  remove(actor: TenantActor, id: string): Promise<ExternalKeyStore>;
}

export interface ServiceSettings {
  /** The file; null: there is none. */
  readonly source: string | null;
  readonly items: readonly {
    readonly name: string;
    readonly value: string | null;
    readonly origin: 'file' | 'default';
  }[];
}

export interface SetupOperations {
  get(): Promise<Setup>;
  /** Keeps, or takes back, somebody's word about a step that the service cannot see. */
  settle(actor: Actor, step: SettledStep, settled: boolean): Promise<Setup>;
}

export interface OverviewOperations {
  /** Oldest first; of all endpoints when none is named. */
  latency(
    actor: TenantActor,
    query: { readonly endpointId?: string | undefined; readonly span: 'hour' | 'day' },
  ): Promise<readonly (LatencySummary & { readonly at: number })[]>;
}

export interface RunbookVariant {
  readonly runbook: string;
  readonly release: Release;
  readonly containers: Containers;
}

export interface RunbookOperations {
  /** In the order in which they are shown. */
  all(): Promise<readonly RunbookSummary[]>;
  /** With the application's own values. An unknown runbook: 'not-found'; a release that it cannot be followed on: 'conflict'. */
  fill(actor: TenantActor, applicationId: string, variant: RunbookVariant): Promise<FilledRunbook>;
  /** Newest first. */
  list(actor: TenantActor, applicationId: string, query: PageRequest): Promise<Page<RunbookRun>>;
  get(actor: TenantActor, applicationId: string, id: string): Promise<RunbookRun>;
  start(actor: TenantActor, applicationId: string, variant: RunbookVariant): Promise<RunbookRun>;
  /** Ticking again replaces the tick. A finished run: 'conflict'. */
  tick(
    actor: TenantActor,
    applicationId: string,
    id: string,
    step: string,
    tick: { readonly outcome: StepOutcome; readonly note: string | null },
  ): Promise<RunbookRun>;
  untick(actor: TenantActor, applicationId: string, id: string, step: string): Promise<RunbookRun>;
  /** As done only when every step is ticked: 'conflict'. */
  finish(
    actor: TenantActor,
    applicationId: string,
    id: string,
    end: { readonly outcome: RunOutcome; readonly note: string | null },
  ): Promise<RunbookRun>;
}

/** What happens in a run: which checks there are, each as it ends, and at last the run as it is kept. */
export type DiagnosisEvent =
  | { readonly kind: 'begun'; readonly checks: readonly PlannedCheck[] }
  | { readonly kind: 'ended'; readonly result: CheckResult }
  | { readonly kind: 'kept'; readonly diagnosis: EndpointDiagnosisRecord };

export interface DiagnosticsOperations {
  /** Runs every check of the endpoint, from this node and through its public name; takes seconds when something hangs. */
  run(actor: TenantActor, endpointId: string, request: DiagnosisRequest): Promise<EndpointDiagnosisRecord>;
  /** The same run, told while it goes on. It goes on, and is kept, when nobody listens any more. */
  follow(actor: TenantActor, endpointId: string, request: DiagnosisRequest): Promise<AsyncIterable<DiagnosisEvent>>;
  /** Newest first. */
  list(actor: TenantActor, endpointId: string, query: PageRequest): Promise<Page<EndpointDiagnosisRecord>>;
  get(actor: TenantActor, endpointId: string, diagnosisId: string): Promise<EndpointDiagnosisRecord>;
}

export interface AuditFilter extends PageRequest {
  readonly kind?: AuditKind | undefined;
  readonly actorId?: string | undefined;
  readonly subjectId?: string | undefined;
  readonly requestId?: string | undefined;
  /** Inclusive. */
  readonly from?: number | undefined;
  /** Exclusive. */
  readonly to?: number | undefined;
  /** 'newest' first when absent. */
  readonly order?: 'newest' | 'oldest' | undefined;
}

export interface MigrationFilter extends PageRequest {
  readonly applicationId?: string | undefined;
  /** When the key was made: inclusive. */
  readonly from?: number | undefined;
  /** Exclusive. */
  readonly to?: number | undefined;
}

/** An application made a master key, and used it. */
export interface KeyMigration {
  /** Of the record of the key. */
  readonly sequence: number;
  readonly at: number;
  readonly tenantId: string;
  /** 'first-key': the application had none here before, as when a database comes from a local wallet. */
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
  /** What the application did from then on, for ten minutes or until it made the next key, by the minute: counts by use. */
  readonly uses: { readonly [use: string]: number };
  readonly failures: number;
  readonly lastAt: number;
  /** The numbers of the records that this is from. */
  readonly records: readonly number[];
}

export interface AuditOperations {
  /** Newest first. A page may be short before the end. */
  migrations(actor: TenantActor, query: MigrationFilter): Promise<Page<KeyMigration>>;
  list(actor: TenantActor, query: AuditFilter): Promise<Page<AuditEvent>>;
  /** Who signs the checkpoints: to be kept away from the service. */
  log(): Promise<AuditLog>;
  /** Newest first. */
  checkpoints(actor: TenantActor, query: PageRequest): Promise<Page<StoredCheckpoint>>;
  /** The sinks of the configuration file. */
  sinks(actor: TenantActor): Promise<readonly LogSinkState[]>;
  /** Covers every record with a checkpoint; answers the newest one. Undefined when there is no record. */
  checkpoint(): Promise<StoredCheckpoint | undefined>;
  /** That a record is in the tree of the newest checkpoint, which is made when the record is newer. */
  prove(actor: TenantActor, sequence: number): Promise<AuditProof>;
  /** Audited. The whole log from its beginning to the newest checkpoint, which is made for it, as lines of text. */
  export(actor: TenantActor): Promise<AsyncIterable<readonly string[]>>;
  /** Audited. The records of the tenant acted in, with the hashes of all that lies between: enough for the signed root. */
  exportTenant(actor: TenantActor): Promise<AsyncIterable<readonly string[]>>;
}

export interface AuditLog {
  /** The log's name in its checkpoints. */
  readonly origin: string;
  /** base/checkpoint.ts. */
  readonly verifierKey: string;
  readonly size: number;
  readonly checkpoint: StoredCheckpoint | null;
}

export interface AuditProof {
  /** The record's text (domain/audit-event.ts): the tree's leaf is its hash. */
  readonly entry: string;
  readonly checkpoint: StoredCheckpoint;
  /** RFC 9162 section 2.1.3: the leaf's number is `sequence` - 1. */
  readonly hashes: readonly Buffer[];
}

export interface SearchQuery {
  readonly text: string;
  /** Only these; all when absent. */
  readonly kinds?: readonly SearchKind[] | undefined;
  /** Of each kind: 1 to 100, 10 when absent. */
  readonly limit?: number | undefined;
  /** Whoever names a tenant sees that one alone. */
  readonly namesTenant: boolean;
}

export interface SearchOperations {
  /**
   * By the beginnings of words, and by ids (domain/search.ts); in the order of the kinds. `searched` are the kinds that the caller may
   * see; `more` those of which there are others. 'validation' where the text has neither letter nor digit.
   */
  find(
    actor: TenantActor,
    grants: readonly Grant[],
    query: SearchQuery,
  ): Promise<{
    readonly items: readonly Found[];
    readonly more: readonly SearchKind[];
    readonly searched: readonly SearchKind[];
  }>;
}

export interface AccessOperations {
  /**
   * 'forbidden', naming the permission and the roles that have it. `tenantId`: of the tenant that the request is about, null for the
   * platform; `scope`: the resource that it is about.
   */
  check(grants: readonly Grant[], permission: Permission, tenantId: string | null, scope: Scope | null): void;
  /**
   * The tenant that somebody acts in: the one that is named (by id or name), else the default one if they may act in it, else the
   * first of theirs. 'not-found' for one that is not there or not theirs; 'unauthenticated' where it is suspended or deleted and
   * they have no role beyond it.
   */
  actIn(actor: Actor, grants: readonly Grant[], named: string | undefined): TenantActor;
  /** The actor, seeing what every tenant and the platform has where they have this right for the whole platform. */
  reaching(actor: TenantActor, grants: readonly Grant[], permission: Permission): TenantActor;
  /** 'not-found' for a tenant that somebody has no role in, though they have this right in another one. */
  requireTenant(grants: readonly Grant[], permission: Permission, tenantId: string): void;
  /** 'conflict' where nothing is changed any more: the tenant acted in is deleted. */
  requireChangeable(actor: TenantActor): void;
  /** The same, decided by the stored tenant as the unit of work sees it that this is a condition of (preconditions.ts). */
  requireStillChangeable(actor: TenantActor): Promise<void>;
  /** What somebody may do: everywhere, then in tenants, then with single resources. */
  effective(grants: readonly Grant[]): readonly Right[];
  roles(): readonly {
    readonly role: Role;
    readonly description: string;
    readonly scoped: boolean;
    /** Where it can be given; null: for the whole platform as well as within one tenant. */
    readonly reach: NonNullable<RoleRow['reach']> | null;
    readonly permissions: readonly Permission[];
  }[];
}

/** `tenantId` absent: the tenant acted in; for those who name none and may act in any, the whole platform where the role can be so. */
export type NewGrant = Omit<Grant, 'tenantId'> & { readonly tenantId?: string | null | undefined };

export interface TokenOperations {
  /** `token` is shown this once. */
  create(
    actor: TenantActor,
    /** What the caller may do. */
    own: readonly Grant[] | 'the service',
    /** `kind`: for the API when absent. */
    input: {
      readonly name: string;
      readonly expiresAt?: number | null | undefined;
      readonly kind?: TokenKind | undefined;
      /** For a token of the API: at least one. Supreme roles are given only by `own` that has one. */
      readonly grants?: readonly NewGrant[] | undefined;
      /** The user whose token it is to be: it does no more than they may, and ends with them. */
      readonly ownerId?: string | null | undefined;
    },
  ): Promise<{ readonly record: ApiToken; readonly token: string }>;
  list(actor: TenantActor, query: PageRequest): Promise<Page<ApiToken>>;
  /**
   * The last live one of an administrator is not revoked ('conflict'); 'forbidden' for one with roles that `own` could not give, unless it is the
   * actor's.
   */
  revoke(actor: TenantActor, own: readonly Grant[] | 'the service', id: string): Promise<ApiToken>;
}

export interface HealthCheck {
  readonly name: 'store' | 'root-key' | 'round-trip';
  readonly healthy: boolean;
  readonly detail: string;
  readonly durationMs: number;
}

export interface Health {
  readonly healthy: boolean;
  /** Keys can be used, though perhaps nothing can be changed. */
  readonly usable: boolean;
  readonly at: number;
  readonly checks: readonly HealthCheck[];
}

/** What the service tells about itself. */
export interface ServiceStatus {
  readonly version: string;
  readonly nodeVersion: string;
  readonly startedAt: number;
  readonly rootEpoch: number;
  readonly erasure: ErasureState & {
    readonly fileSystem: string;
    readonly overwritesInPlace: boolean;
    readonly pendingKeys: number;
  };
  readonly clock: DeadlineState;
  readonly store: { readonly dialect: string; readonly path: string | null };
  readonly memory: {
    readonly capacity: number;
    readonly used: number;
    readonly keys: number;
    readonly locked: boolean;
  };
  readonly requestLog: { readonly queued: number; readonly dropped: number; readonly droppedUnsigned: number };
}

// --- the TDE data path ------------------------------------------------------------------------------------------------

/** What the agent says about the process that calls; names are cut to 255 characters. */
export interface InstanceDescription {
  readonly host: string;
  readonly pid: number;
  readonly process: string;
  readonly library: string;
  readonly agent: string;
  readonly osUser: string;
}

/** A client certificate that a connection has shown, with proof that the caller has its private key. */
export interface ShownCertificate {
  /** SHA-256 of its DER: 32 bytes in hexadecimal digits and colons. */
  readonly fingerprint: string;
  readonly beginsAt: number;
  readonly endsAt: number;
}

/** Where a call comes from. */
export interface CallerFacts {
  readonly peer: string | null;
  /** Called only where the application requires a certificate. Null: none was shown. */
  readonly certificate?: (() => ShownCertificate | null) | undefined;
}

/** An authenticated application together with the instance that speaks for it. */
export interface TdeCaller {
  readonly actor: Actor;
  readonly application: TdeApplication;
  readonly accessGuidId: string;
  readonly appId: string;
  readonly instance: InstanceDescription;
  /** Under which key the request may be sent again, and the digest of what it asks for. */
  readonly once?: { readonly key: string; readonly fingerprint: string };
}

export interface TdeServiceInfo {
  readonly applicationId: string;
  readonly applicationName: string;
  readonly groupId: string;
  readonly tenantId: string;
  readonly serverVersion: string;
  readonly compatibility: readonly CompatibilitySwitch[];
  readonly epoch: number;
  /** What keys are sealed to on their way here. */
  readonly recipient: Recipient;
}

export interface NewTokenObject {
  readonly class: ObjectClass;
  readonly label: string;
  readonly algorithm: TokenObject['algorithm'];
  readonly bits: number | null;
  readonly usages: readonly KeyUsage[];
  readonly sensitive: boolean;
  readonly extractable: boolean;
  readonly modifiable: boolean;
  readonly destroyable: boolean;
  readonly private: boolean;
  readonly attributes: string;
}

/** A key becomes sensitive and stops being extractable, never the other way. */
export interface TokenObjectChange {
  readonly label?: string | undefined;
  readonly attributes?: string | undefined;
  readonly usages?: readonly KeyUsage[] | undefined;
  readonly sensitive?: true | undefined;
  readonly extractable?: false | undefined;
  /** What the change was computed from. */
  readonly seen?: { readonly attributes: string; readonly usages: readonly KeyUsage[] } | undefined;
}

/** A token object as one application sees it. */
export interface VisibleObject extends TokenObject {
  readonly owned: boolean;
  /** What `checkUse` would admit, where it was looked at. */
  readonly admits?: readonly KeyUsage[];
}

export type WrapMechanism =
  | { readonly way: 'key-wrap'; readonly padded: boolean; readonly iv?: Uint8Array | undefined }
  | { readonly way: 'cipher'; readonly cipher: CipherParameters }
  | { readonly way: 'oaep'; readonly oaep: OaepParameters };

export type DeriveMechanism =
  | { readonly way: 'ecdh'; readonly point: Uint8Array; readonly kdf: Digest | null; readonly shared: Uint8Array }
  | {
      readonly way: 'hkdf';
      readonly digest: Digest;
      readonly steps: 'both' | 'extract' | 'expand';
      readonly salt: Uint8Array;
      /** The handle of the secret key whose value is the salt. */
      readonly saltKey?: number | undefined;
      readonly info: Uint8Array;
    }
  | { readonly way: 'sp800-108'; readonly prf: MacParameters; readonly parts: Sp800108Parameters }
  | { readonly way: 'encryption'; readonly cipher: CipherParameters; readonly data: Uint8Array };

/** A key of the token, or the value of one that the agent has (the caller wipes it). */
export type KeyToWrap =
  | { readonly from: 'token'; readonly handle: number }
  | {
      readonly from: 'session';
      readonly class: 'secret-key' | 'private-key';
      readonly sensitive: boolean;
      readonly key: SealedKey;
    };

/** The client's own key, to which keys are sealed on their way out: an X25519 public key, and HPKE's `info`. */
export interface SealTo {
  readonly recipient: Uint8Array;
  readonly info: Uint8Array;
}

/** Where a key goes that comes of another. */
export type KeyDestination =
  | { readonly on: 'token'; readonly object: NewTokenObject }
  | (SealTo & {
      readonly on: 'session';
      readonly class: 'secret-key' | 'private-key';
      readonly algorithm: KeyAlgorithm;
      readonly bits: number | null;
      readonly sensitive: boolean;
      readonly extractable: boolean;
    });

/** One of the two is there. */
export interface MadeKey {
  readonly object: VisibleObject | null;
  readonly sealed: Buffer | null;
}

/** A part of a message whose other parts are in other requests. `state`: what the part before has answered, sealed. */
export interface PartOfMessage {
  readonly state: Uint8Array;
  readonly last: boolean;
  readonly input: Uint8Array;
}

export interface TdeOperations {
  /** Throws 'unauthenticated' (unknown, removed, or of a disabled application) in one message. Counts the instance's use. */
  authenticate(
    input: {
      readonly accessGuid: string;
      readonly appId: string;
      readonly instance: InstanceDescription;
      readonly requestId: string;
    } & CallerFacts,
  ): Promise<TdeCaller>;
  info(caller: TdeCaller): Promise<TdeServiceInfo>;
  generateKey(caller: TdeCaller, input: NewTokenObject): Promise<VisibleObject>;
  /** Both halves in one transaction, or neither. Without `publicKey` only the private half is kept. */
  generateKeyPair(
    caller: TdeCaller,
    input: { readonly privateKey: NewTokenObject; readonly publicKey: NewTokenObject | null },
  ): Promise<{ readonly privateKey: VisibleObject; readonly publicKey: VisibleObject | null }>;
  /** Data, a certificate or a public key. `value` stays the caller's. */
  createObject(caller: TdeCaller, input: NewTokenObject, value: Uint8Array): Promise<VisibleObject>;
  /**
   * A secret or a private key. 'conflict' with the reason `recipient-changed` when it was sealed to a public key that is no longer in use: nothing
   * was done.
   */
  importKey(caller: TdeCaller, input: NewTokenObject, key: SealedKey): Promise<VisibleObject>;
  findObjects(
    caller: TdeCaller,
    query: {
      readonly label?: string | undefined;
      readonly class?: ObjectClass | undefined;
      readonly after: number;
      readonly limit: number;
    },
  ): Promise<{ readonly objects: readonly VisibleObject[]; readonly more: boolean }>;
  getObject(caller: TdeCaller, handle: number): Promise<VisibleObject>;
  /**
   * The caller wipes the buffer. 'forbidden' for a sensitive or unextractable key. A key's value is sealed `to` the caller's key where
   * one is given.
   */
  readValue(caller: TdeCaller, handle: number, to?: SealTo): Promise<Buffer>;
  /**
   * 'conflict' where the object is not as the caller has `seen` it. `value`: the new value of a data object; it stays the caller's, which
   * wipes it.
   */
  updateObject(
    caller: TdeCaller,
    handle: number,
    change: TokenObjectChange,
    value?: Uint8Array,
  ): Promise<VisibleObject>;
  destroyObject(caller: TdeCaller, handle: number): Promise<void>;
  /** Withdraws the caller's request with this Idempotency-Key; see tde/withdraw-request.ts. */
  withdraw(caller: TdeCaller, key: string): Promise<'not-carried-out' | 'undone' | 'kept'>;
  checkUse(caller: TdeCaller, handle: number, usage: KeyUsage): Promise<void>;
  /** The caller wipes input and answer. */
  encrypt(caller: TdeCaller, handle: number, parameters: CipherParameters, input: Uint8Array): Promise<Buffer>;
  decrypt(caller: TdeCaller, handle: number, parameters: CipherParameters, input: Uint8Array): Promise<Buffer>;
  /** RSA-OAEP with a private key. The caller wipes the answer. */
  /** With a private RSA key. PKCS#1 v1.5 padding needs a compatibility switch. */
  decryptWithPrivateKey(
    caller: TdeCaller,
    handle: number,
    parameters: RsaEncryptionParameters,
    input: Uint8Array,
  ): Promise<Buffer>;
  sign(caller: TdeCaller, handle: number, parameters: MacParameters, input: Uint8Array): Promise<Buffer>;
  /** A part of a message under GCM or CCM; 'invalid-ciphertext' with the last one when the tag is wrong. The caller wipes input and output. */
  cipherPart(
    caller: TdeCaller,
    handle: number,
    use: 'encrypt' | 'decrypt' | 'check',
    parameters: CipherParameters,
    part: PartOfMessage,
  ): Promise<{ readonly state: Buffer; readonly output: Buffer }>;
  /** The MAC with the last part, else the state. */
  signPart(caller: TdeCaller, handle: number, parameters: MacParameters, part: PartOfMessage): Promise<Buffer>;
  /** The state; nothing after the last part, which brings the signature. A wrong one throws 'invalid-ciphertext'. */
  verifyPart(
    caller: TdeCaller,
    handle: number,
    parameters: MacParameters,
    part: PartOfMessage,
    signature: Uint8Array | null,
    length?: number,
  ): Promise<Buffer>;
  /** A signature by a private key, over what is hashed already. */
  signWithPrivateKey(
    caller: TdeCaller,
    handle: number,
    parameters: SignatureParameters,
    input: Uint8Array,
  ): Promise<Buffer>;
  /** A wrong signature throws 'invalid-ciphertext'. It is the whole MAC, or its first `length` bytes. */
  verify(
    caller: TdeCaller,
    handle: number,
    parameters: MacParameters,
    input: Uint8Array,
    signature: Uint8Array,
    length?: number,
  ): Promise<void>;
  /** 'forbidden' where the key, or this wrapping key, is none for it. */
  wrap(caller: TdeCaller, handle: number, mechanism: WrapMechanism, key: KeyToWrap): Promise<Buffer>;
  /** 'invalid-ciphertext' for whatever is wrong with the wrapped key. */
  unwrap(
    caller: TdeCaller,
    handle: number,
    mechanism: WrapMechanism,
    wrapped: Uint8Array,
    into: KeyDestination,
  ): Promise<MadeKey>;
  derive(caller: TdeCaller, handle: number, mechanism: DeriveMechanism, into: KeyDestination): Promise<MadeKey>;
}

export interface RootView {
  readonly epoch: number;
  /** Set while a turn is under way: both open. */
  readonly previousEpoch: number | null;
  /** A rotation was asked for or is under way. */
  readonly rotating: boolean;
  /** The newest that `dke root backup` made; null: none. */
  readonly backup: RootBackup | null;
  /** What keeps the old root key from being overwritten, where this node runs the erasure run. */
  readonly waitsFor: readonly string[];
  readonly providers: readonly RootWay[];
  readonly fileSystem: string;
  readonly overwritesInPlace: boolean;
}

export interface RootOperations {
  get(actor: Actor): Promise<RootView>;
  /**
   * Asks for a new root key and new keys of every tenant, or for a new key of one tenant; live records are sealed anew behind it,
   * while everything is served. Acknowledged is that it will be done, also after a restart.
   */
  rotate(actor: Actor, tenantId?: string): Promise<RootView>;
}

export interface QuarantineState {
  readonly quarantined: boolean;
  readonly reason: string | null;
  /**
   * `older`, `incomplete`: audit records are missing. `changed`: they are not the ones that were signed. `rows-changed`: policy rows were restored,
   * removed or added in the database. `lost-changes`: confirmed changes are missing, as after a failover. `restored`: a backup of the service was
   * restored.
   */
  readonly finding: 'older' | 'incomplete' | 'changed' | 'rows-changed' | 'lost-changes' | 'restored' | null;
  /** Records of the audit log that the database has, and had at the checkpoint. */
  readonly size: number | null;
  readonly expected: number | null;
  /** What the sinks of the audit log know of the time since; null: that cannot be told. */
  readonly missing: MissingRecords | null;
}

/** An audit record that a sink has and the database has not. */
export interface MissingRecord {
  readonly sequence: number;
  readonly at: string;
  readonly kind: string;
  readonly actorName: string;
  readonly subjectKind: string;
  readonly subjectId: string;
}

export interface MissingRecords {
  /** How many a sink that can be read here has. */
  readonly count: number;
  /** The last of them that a checkpoint of this service covers; 0: none. */
  readonly signed: number;
  /** The first ones, in order. */
  readonly records: readonly MissingRecord[];
  readonly sinks: readonly {
    readonly name: string;
    readonly type: string;
    readonly target: string;
    /** Null: it cannot be read from here. */
    readonly records: number | null;
  }[];
}

export interface ClockOperations {
  get(actor: Actor): Promise<DeadlineState>;
  /** Follows the clocks from now on. 'conflict' when they do not say what the operator says. */
  confirm(actor: Actor, time: number): Promise<DeadlineState>;
}

export interface QuarantineOperations {
  get(actor: Actor): Promise<QuarantineState>;
  /** Takes the database as it is; the service serves when this resolves. 'forbidden' for a wrong code. */
  confirm(actor: Actor, code: string): Promise<QuarantineState>;
}

export interface Operations extends PeopleOperations {
  readonly tenants: TenantOperations;
  readonly nodes: NodeOperations;
  /** Which servers do not show yet what a request has changed, or one that it repeats. */
  readonly observe: Fleet['observe'];
  readonly confirm: Fleet['confirm'];
  readonly idempotency: IdempotencyOperations;
  readonly preconditions: PreconditionOperations;
  readonly vaults: VaultOperations;
  readonly keys: KeyOperations;
  readonly tdeGroups: TdeGroupOperations;
  readonly applications: ApplicationOperations;
  readonly masterKeys: MasterKeyOperations;
  readonly endpoints: EndpointOperations;
  readonly overview: OverviewOperations;
  readonly setup: SetupOperations;
  /** As they are, and where each comes from. */
  readonly settings: () => Promise<ServiceSettings>;
  readonly runbooks: RunbookOperations;
  readonly diagnostics: DiagnosticsOperations;
  readonly requests: RequestOperations;
  readonly externalKeyStores: ExternalKeyStoreOperations;
  readonly snapshots: SnapshotOperations;
  readonly recoveryKeys: RecoveryKeyOperations;
  readonly audit: AuditOperations;
  readonly approvals: ApprovalOperations;
  readonly notifications: NotificationOperations;
  readonly dualControl: DualControlOperations;
  readonly search: SearchOperations;
  readonly access: AccessOperations;
  readonly tokens: TokenOperations;
  readonly root: RootOperations;
  readonly clock: ClockOperations;
  readonly quarantine: QuarantineOperations;
  readonly tde: TdeOperations;
  /** The actor behind an administrator token; 'unauthenticated' when it does not hold (one message for every reason). */
  authenticateAdmin(
    token: string,
    requestId: string,
    peer: string | null,
  ): Promise<{ readonly actor: Actor; readonly grants: readonly Grant[] }>;
  /** Whether this token may read metrics: 'unauthenticated' when not. Administrators' tokens may not. */
  authenticateMetrics(token: string): Promise<void>;
  /** Deep: store, root key, round trip on the service's own test key; at most 60 s old. */
  health(): Promise<Health>;
  status(actor: TenantActor): Promise<ServiceStatus>;
}
