// What the service can do: the interface that fronts, the command line and diagnostics call. Each
// folder has the interface of its part (`interface.ts`), the files that implement it and, where the
// part is more than one file, an `index.ts` that builds it from ports.
//
// Every method that changes something writes its audit record in the same transaction and resolves
// after the commit and after every in-memory view in this process has been renewed. Errors are
// `ServiceError`. Times are milliseconds since the epoch. Identifiers are compared byte for byte;
// an unknown one is 'not-found' ('key-not-found' for keys).

import type { FleetNode } from '../domain/node.ts';
import type { Fleet } from '../ports/fleet.ts';
import type { DistributedPackages } from '../ports/packages.ts';
import type { AccessOperations, AuthenticationOperations, TokenOperations } from './access/access-operations.ts';
import type { ApplicationOperations, TdeGroupOperations } from './applications/applications-operations.ts';
import type { ApprovalOperations, DualControlOperations } from './approvals/approvals-operations.ts';
import type { AuditOperations } from './audit/audit-operations.ts';
import type { CopyOperations } from './copies/interface.ts';
import type {
  DiagnosticsOperations,
  EndpointOperations,
  ExternalKeyStoreOperations,
} from './endpoints/endpoints-operations.ts';
import type { KeyOperations, MasterKeyOperations } from './keys/keys-operations.ts';
import type { NodeOperations } from './nodes/nodes-operations.ts';
import type { NotificationOperations } from './notifications/notifications-operations.ts';
import type { PeopleOperations } from './people/people-operations.ts';
import type { RequestOperations } from './requests/requests-operations.ts';
import type { RootOperations } from './root/root-operations.ts';
import type { RunbookOperations } from './runbooks/runbooks-operations.ts';
import type { SearchOperations } from './search/search-operations.ts';
import type {
  ClockOperations,
  OverviewOperations,
  QuarantineOperations,
  ServiceSettings,
  SetupOperations,
  StatusOperations,
} from './service/service-operations.ts';
import type { IdempotencyOperations } from './shared/answer-once.ts';
import type { JobState } from './shared/job-board.ts';
import type { PreconditionOperations } from './shared/preconditions.ts';
import type { RecoveryKeyOperations, SnapshotOperations } from './snapshots/snapshots-operations.ts';
import type { TdeOperations } from './tde/tde-operations.ts';
import type { TenantOperations } from './tenants/tenants-operations.ts';
import type { VaultOperations } from './vaults/vaults-operations.ts';

export type * from './access/access-operations.ts';
export type * from './applications/applications-operations.ts';
export type * from './approvals/approvals-operations.ts';
export type * from './audit/audit-operations.ts';
export type * from './endpoints/endpoints-operations.ts';
export type * from './keys/keys-operations.ts';
export type * from './nodes/nodes-operations.ts';
export type * from './notifications/notifications-operations.ts';
export type * from './requests/requests-operations.ts';
export type * from './root/root-operations.ts';
export type * from './runbooks/runbooks-operations.ts';
export type * from './search/search-operations.ts';
export type * from './service/service-operations.ts';
export type * from './tde/tde-operations.ts';
export type * from './tenants/tenants-operations.ts';
export type * from './vaults/vaults-operations.ts';

export interface Operations extends PeopleOperations, AuthenticationOperations, StatusOperations {
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
  readonly packages: DistributedPackages;
  readonly endpoints: EndpointOperations;
  readonly overview: OverviewOperations;
  readonly setup: SetupOperations;
  /** The settings that apply, and where each comes from. */
  readonly settings: () => Promise<ServiceSettings>;
  readonly runbooks: RunbookOperations;
  readonly diagnostics: DiagnosticsOperations;
  readonly requests: RequestOperations;
  readonly externalKeyStores: ExternalKeyStoreOperations;
  readonly snapshots: SnapshotOperations;
  readonly copies: CopyOperations;
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
  /** What runs by the clock, as this node knows it, and which node does what. */
  readonly jobs: () => Promise<{ readonly nodes: readonly FleetNode[]; readonly jobs: readonly JobState[] }>;
  readonly quarantine: QuarantineOperations;
  readonly tde: TdeOperations;
}
