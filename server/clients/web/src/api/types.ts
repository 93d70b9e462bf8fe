// The types of the API's answers, taken from the contract that the server validates against. Types
// only: no schema reaches the pages' script.

import type { RouteRow } from '../../../../contract/api/row.ts';
import type { Session as SessionAnswer } from '../../../../contract/api/sign-in-routes.ts';

export type { Approval } from '../../../../contract/api/approvals-routes.ts';
export type {
  AuditCheckpoint,
  AuditKind,
  AuditLog,
  AuditRecord,
  AuditSink,
  KeyMigration,
} from '../../../../contract/api/audit-routes.ts';
export type { ClockState } from '../../../../contract/api/clock-routes.ts';
export type { Copy } from '../../../../contract/api/copies-routes.ts';
export type { DeviceSignInRequest } from '../../../../contract/api/device-sign-in-routes.ts';
export type { CheckResult, Diagnosis, DiagnosisEvent } from '../../../../contract/api/diagnostics-routes.ts';
export type {
  AuthorizationRule,
  Endpoint,
  EndpointCredential,
  EndpointSettings,
  ProxyConfiguration,
  RuleDecision,
  SimulatedRequest,
} from '../../../../contract/api/endpoints-routes.ts';
export type { ExternalKeyStore } from '../../../../contract/api/external-key-stores-routes.ts';
export type { DeletedKey, Key, KeyCopies, KeyUse, KeyVersion } from '../../../../contract/api/keys-routes.ts';
export type { BlastRadius, MasterKey } from '../../../../contract/api/master-keys-routes.ts';
export type { Node } from '../../../../contract/api/nodes-routes.ts';
export type { Notification, NotificationTarget } from '../../../../contract/api/notifications-routes.ts';
export type { LatencyPoint } from '../../../../contract/api/overview-routes.ts';
export type { DistributedPackage } from '../../../../contract/api/packages-routes.ts';
export type { Quarantine } from '../../../../contract/api/quarantine-routes.ts';
export type { RecoveryKey } from '../../../../contract/api/recovery-keys-routes.ts';
export type {
  CorrelatedRequests,
  EndpointRequest,
  RequestLogVerification,
} from '../../../../contract/api/requests-routes.ts';
export type { Root } from '../../../../contract/api/root-routes.ts';
export type {
  FilledRunbook,
  Runbook,
  RunbookRun,
  RunbookStep,
} from '../../../../contract/api/runbooks-routes.ts';
export type { FoundItem, SearchResult } from '../../../../contract/api/search-routes.ts';
export type { OpenSession } from '../../../../contract/api/session-routes.ts';
export type { Settings } from '../../../../contract/api/settings-routes.ts';
export type { Setup } from '../../../../contract/api/setup-routes.ts';
export type { Session } from '../../../../contract/api/sign-in-routes.ts';
export type { Snapshot, SnapshotOpening, SnapshotRestore } from '../../../../contract/api/snapshots-routes.ts';
export type { Job, Status } from '../../../../contract/api/status-routes.ts';
export type {
  AccessGuid,
  Application,
  ApplicationMove,
  Instance,
  IssuedAccessGuid,
  MovedApplication,
  RegisteredApplication,
} from '../../../../contract/api/tde-applications-routes.ts';
export type { TdeGroup } from '../../../../contract/api/tde-groups-routes.ts';
export type { ChangedTenant, Tenant, TenantImpact } from '../../../../contract/api/tenants-routes.ts';
export type { IssuedToken, RoleDescription, Token, TokenKeyChange } from '../../../../contract/api/tokens-routes.ts';
export type { Factor, InvitedUser, User } from '../../../../contract/api/users-routes.ts';
export type { DualControlRule, Vault, VaultDualControl } from '../../../../contract/api/vaults-routes.ts';

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
