// All repositories over Kysely, for every dialect: no SQL here or in them that only one database
// understands. A set of repositories works on one connection: the reader's, or the writer's inside
// a unit of work.

import { type Kysely, sql } from 'kysely';
import type { Clock } from '../base/clock.ts';
import type { Repositories } from '../ports/store.ts';
import { createTokens } from './api-tokens.ts';
import { createAccessGuids, createApplications, createGroups, createInstances } from './applications.ts';
import { createApprovalRepository } from './approvals.ts';
import { createAuditRepository, type OnAppend } from './audit-log.ts';
import { createDecisions } from './decisions.ts';
import { createDiagnoses, createEndpoints } from './endpoints.ts';
import { createExternalKeyStores } from './external-key-stores.ts';
import { createIdempotencyRows } from './idempotency.ts';
import { createKeyRecords } from './key-records.ts';
import { createKeyTags } from './key-tags.ts';
import { createKeys } from './keys.ts';
import { createNodes } from './nodes.ts';
import { createNotificationRepository } from './notifications.ts';
import { createOutsideCopies } from './outside-copies.ts';
import { createPeople } from './people.ts';
import { createPruning } from './pruning.ts';
import { createPurge } from './purge.ts';
import { createRequestLog } from './request-log.ts';
import type { ReadingAs, RowSet } from './row-set.ts';
import { createRunbookRuns } from './runbook-runs.ts';
import type { Schema } from './schema.ts';
import { createSearch, createTerms } from './search.ts';
import { createSettings } from './settings.ts';
import { createKeyBindings, createOpenings, createRecoveryKeys, createSnapshots } from './snapshots.ts';
import { createTdeRequests } from './tde-requests.ts';
import { createTenantKeks } from './tenant-keks.ts';
import { createTenantRows } from './tenant-rows.ts';
import { createTenants } from './tenants.ts';
import { createTokenObjects } from './token-objects.ts';
import { createVaults } from './vaults.ts';
import { createWhole } from './whole.ts';
import { createLatency } from './xks-latency.ts';

export const createRepositories = (
  db: Kysely<Schema>,
  set: RowSet,
  as: ReadingAs,
  clock: Clock,
  onAppend: OnAppend = () => undefined,
): Repositories => {
  const policyRows = set.over(db, as);
  const terms = createTerms(db);
  const keyTags = createKeyTags(db);
  const records = createKeyRecords(db);
  return {
    nodes: createNodes(db),
    tdeRequests: createTdeRequests(db, policyRows),
    settings: createSettings(db),
    decisions: createDecisions(db, policyRows),
    tenants: createTenants(db, policyRows, clock),
    keks: createTenantKeks(db),
    purge: createPurge(db),
    pruning: createPruning(db, policyRows, records),
    whole: createWhole(db, policyRows, set, as),
    records,
    vaults: createVaults(db, policyRows, terms),
    keys: createKeys(db, policyRows, terms, keyTags),
    groups: createGroups(db, policyRows, terms),
    applications: createApplications(db, policyRows, terms),
    accessGuids: createAccessGuids(db, policyRows),
    instances: createInstances(db),
    objects: createTokenObjects(db, policyRows),
    endpoints: createEndpoints(db, policyRows, terms),
    tokens: createTokens(db, policyRows, terms),
    audit: createAuditRepository(db, clock, onAppend),
    externalKeyStores: createExternalKeyStores(db, policyRows, terms),
    diagnoses: createDiagnoses(db),
    latency: createLatency(db),
    runbookRuns: createRunbookRuns(db),
    approvals: createApprovalRepository(db, policyRows),
    notifications: createNotificationRepository(db),
    requests: createRequestLog(db),
    search: createSearch(db),
    snapshots: createSnapshots(db, policyRows),
    outsideCopies: createOutsideCopies(db, policyRows),
    openings: createOpenings(db),
    recoveryKeys: createRecoveryKeys(db, policyRows),
    keyBindings: createKeyBindings(db),
    tenantRows: createTenantRows(db, policyRows, terms, keyTags),
    ...createPeople(db, policyRows, terms),
    idempotency: createIdempotencyRows(db, policyRows),
  };
};

/** For the store's probe. */
export const oneRow = sql<{ readonly one: number }>`select 1 as one`;
