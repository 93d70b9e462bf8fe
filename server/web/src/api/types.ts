// The types of the API's answers, taken from the contract that the server validates against. Types
// only: no schema reaches the pages' script.

import type { RouteRow } from '../../../fronts/contract/api/row.ts';
import type { Session as SessionAnswer } from '../../../fronts/contract/api/session.ts';

export type { Approval } from '../../../fronts/contract/api/approvals.ts';
export type {
  AuditCheckpoint,
  AuditKind,
  AuditLog,
  AuditRecord,
  AuditSink,
  KeyMigration,
} from '../../../fronts/contract/api/audit.ts';
export type { ClockState } from '../../../fronts/contract/api/clock.ts';
export type { Copy } from '../../../fronts/contract/api/copies.ts';
export type { DeviceSignInRequest } from '../../../fronts/contract/api/device-sign-in.ts';
export type { CheckResult, Diagnosis, DiagnosisEvent } from '../../../fronts/contract/api/diagnostics.ts';
export type {
  AuthorizationRule,
  Endpoint,
  EndpointCredential,
  EndpointSettings,
  ProxyConfiguration,
  RuleDecision,
  SimulatedRequest,
} from '../../../fronts/contract/api/endpoints.ts';
export type { ExternalKeyStore } from '../../../fronts/contract/api/external-key-stores.ts';
export type { DeletedKey, Key, KeyCopies, KeyUse, KeyVersion } from '../../../fronts/contract/api/keys.ts';
export type { BlastRadius, MasterKey } from '../../../fronts/contract/api/master-keys.ts';
export type { Node } from '../../../fronts/contract/api/nodes.ts';
export type { Notification, NotificationTarget } from '../../../fronts/contract/api/notifications.ts';
export type { LatencyPoint } from '../../../fronts/contract/api/overview.ts';
export type { DistributedPackage } from '../../../fronts/contract/api/packages.ts';
export type { Quarantine } from '../../../fronts/contract/api/quarantine.ts';
export type { RecoveryKey } from '../../../fronts/contract/api/recovery-keys.ts';
export type {
  CorrelatedRequests,
  EndpointRequest,
  RequestLogVerification,
} from '../../../fronts/contract/api/requests.ts';
export type { Root } from '../../../fronts/contract/api/root.ts';
export type {
  FilledRunbook,
  Runbook,
  RunbookRun,
  RunbookStep,
} from '../../../fronts/contract/api/runbooks.ts';
export type { FoundItem, SearchResult } from '../../../fronts/contract/api/search.ts';
export type { Session } from '../../../fronts/contract/api/session.ts';
export type { OpenSession } from '../../../fronts/contract/api/sessions.ts';
export type { Settings } from '../../../fronts/contract/api/settings.ts';
export type { Setup } from '../../../fronts/contract/api/setup.ts';
export type { Snapshot, SnapshotOpening, SnapshotRestore } from '../../../fronts/contract/api/snapshots.ts';
export type { Job, Status } from '../../../fronts/contract/api/status.ts';
export type {
  AccessGuid,
  Application,
  ApplicationMove,
  Instance,
  IssuedAccessGuid,
  MovedApplication,
  RegisteredApplication,
} from '../../../fronts/contract/api/tde-applications.ts';
export type { TdeGroup } from '../../../fronts/contract/api/tde-groups.ts';
export type { ChangedTenant, Tenant, TenantImpact } from '../../../fronts/contract/api/tenants.ts';
export type { IssuedToken, RoleDescription, Token, TokenKeyChange } from '../../../fronts/contract/api/tokens.ts';
export type { Factor, InvitedUser, User } from '../../../fronts/contract/api/users.ts';
export type { DualControlRule, Vault, VaultDualControl } from '../../../fronts/contract/api/vaults.ts';

/** A permission, and where it is valid. */
export type Right = SessionAnswer['permissions'][number];

/** What a call needs, as the contract names it. */
export type Permission = Exclude<RouteRow['needs'], 'signed-in' | 'sign-in'>;

/** Answer of `GET /api/snapshot-schedule`. */
export interface SnapshotSchedule {
  readonly directory: string;
  readonly schedule: string | null;
  readonly next: string | null;
  readonly keepCount: number | null;
  readonly keepDays: number | null;
  readonly undeleteDays: number;
}
