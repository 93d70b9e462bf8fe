// Everything that a service can do, built from its ports.

import { readRunbooks } from '../../adapters/runbooks/read-runbooks.ts';
import { createAccess } from '../../operations/access/access.ts';
import {
  authenticateAdmin,
  authenticateMetrics,
  createToken,
  listTokens,
  revokeToken,
} from '../../operations/access/manage-tokens.ts';
import { endFormerTokenKey, rotateTokenKey } from '../../operations/access/rotate-token-key.ts';
import { createApplicationOperations, createTdeGroupOperations } from '../../operations/applications/index.ts';
import { dualControl } from '../../operations/approvals/dual-control.ts';
import type { Approvals } from '../../operations/approvals/governed-operation.ts';
import type { LogForwarding } from '../../operations/audit/forward-logs.ts';
import { readAudit } from '../../operations/audit/read-audit.ts';
import type { AuditSealer } from '../../operations/audit/seal-audit-log.ts';
import { manageCopies } from '../../operations/copies/manage-copies.ts';
import { diagnoseEndpoint } from '../../operations/endpoints/diagnose-endpoint.ts';
import { externalKeyStores } from '../../operations/endpoints/external-key-stores.ts';
import { createEndpointOperations } from '../../operations/endpoints/index.ts';
import type { Operations } from '../../operations/index.ts';
import { createKeyOperations, createMasterKeyOperations } from '../../operations/keys/index.ts';
import { manageNodes } from '../../operations/nodes/manage-nodes.ts';
import type { NotificationDelivery } from '../../operations/notifications/deliver.ts';
import { inbox } from '../../operations/notifications/inbox.ts';
import { createPeople } from '../../operations/people/index.ts';
import { readRequests } from '../../operations/requests/read-requests.ts';
import { manageRoot } from '../../operations/root/manage-root.ts';
import { followRunbook } from '../../operations/runbooks/follow-runbook.ts';
import { createSearchOperation } from '../../operations/search/find-anything.ts';
import { readStatus } from '../../operations/service/read-status.ts';
import { recoveryKeys } from '../../operations/snapshots/recovery-keys.ts';
import type { SnapshotSettings } from '../../operations/snapshots/snapshot-settings.ts';
import { createTdeOperations } from '../../operations/tde/index.ts';
import type { TenantRules } from '../../operations/tenants/change-tenant.ts';
import { createTenantOperations } from '../../operations/tenants/index.ts';
import { createVaultOperations } from '../../operations/vaults/index.ts';
import type { Ports } from '../../ports/ports.ts';

export interface OperationParts {
  readonly sealer: AuditSealer;
  readonly forwarding: LogForwarding;
  readonly approvals: Approvals;
  readonly delivery: NotificationDelivery;
  readonly rules: {
    readonly tenants: TenantRules;
    readonly snapshots: Pick<SnapshotSettings, 'schedule' | 'exportSecondPerson'>;
  };
  /** What is about the process itself, built where it is. */
  readonly ready: Pick<
    Operations,
    | 'snapshots'
    | 'quarantine'
    | 'health'
    | 'idempotency'
    | 'preconditions'
    | 'overview'
    | 'settings'
    | 'packages'
    | 'setup'
    | 'clock'
    | 'jobs'
  >;
}

export const createOperations = (ports: Ports, parts: OperationParts): Operations => {
  const { sealer, forwarding, approvals, delivery, rules } = parts;
  const administrators = authenticateAdmin(ports);
  return {
    ...parts.ready,
    tenants: createTenantOperations(ports, approvals, rules.tenants),
    nodes: manageNodes(ports),
    observe: ports.fleet.observe,
    confirm: ports.fleet.confirm,
    vaults: createVaultOperations(ports, approvals),
    keys: createKeyOperations(ports, approvals),
    masterKeys: createMasterKeyOperations(ports, approvals),
    tdeGroups: createTdeGroupOperations(ports, approvals),
    applications: createApplicationOperations(ports, approvals),
    endpoints: createEndpointOperations(ports),
    externalKeyStores: externalKeyStores(ports),
    diagnostics: diagnoseEndpoint(ports, ports.diagnosis),
    requests: readRequests(ports),
    runbooks: followRunbook(ports, readRunbooks()),
    copies: manageCopies(ports),
    recoveryKeys: recoveryKeys(ports, approvals, rules.snapshots),
    audit: readAudit(ports, sealer, forwarding),
    approvals: approvals.operations,
    dualControl: dualControl(ports, approvals),
    notifications: inbox(ports, delivery),
    search: createSearchOperation(ports),
    root: manageRoot(ports),
    access: createAccess(ports),
    tokens: {
      create: createToken(ports),
      list: listTokens(ports),
      revoke: revokeToken(ports),
      rotateKey: rotateTokenKey(ports),
      endFormerKey: endFormerTokenKey(ports),
    },
    tde: createTdeOperations(ports),
    ...createPeople(ports, administrators),
    authenticateAdmin: administrators,
    authenticateMetrics: authenticateMetrics(ports),
    status: readStatus(ports),
  };
};
