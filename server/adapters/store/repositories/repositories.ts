// All repositories over Kysely, for every dialect: no SQL here or in them that only one database
// understands. A set of repositories works on one connection: the reader's, or the writer's inside
// a unit of work.

import { type Kysely, sql } from 'kysely';
import type { Clock } from '../../../base/time.ts';
import type { Repositories } from '../../../ports/store.ts';
import type { ReadingAs, RowSet } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';
import { createTokens } from './api-tokens-repository.ts';
import { createAccessGuids, createApplications, createGroups, createInstances } from './applications-repository.ts';
import { createApprovalRepository } from './approvals-repository.ts';
import { createAuditRepository, type OnAppend } from './audit-log-repository.ts';
import { createDecisions } from './decisions-repository.ts';
import { createDiagnoses, createEndpoints } from './endpoints-repository.ts';
import { createExternalKeyStores } from './external-key-stores-repository.ts';
import { createIdempotencyRows } from './kept-answers-repository.ts';
import { createKeyRecords } from './key-records-repository.ts';
import { createKeyTags } from './key-tags-repository.ts';
import { createKeys } from './keys-repository.ts';
import { createNodes } from './nodes-repository.ts';
import { createNotificationRepository } from './notifications-repository.ts';
import { createWhole } from './offline-check.ts';
import { createOutsideCopies } from './outside-copies-repository.ts';
import { createPeople } from './people-repository.ts';
import { createPruning } from './pruning.ts';
import { createPurge } from './purge.ts';
import { createRequestLog } from './request-log-repository.ts';
import { createRunbookRuns } from './runbook-runs-repository.ts';
import { createSearch, createTerms } from './search-index-repository.ts';
import { createSettings } from './settings-repository.ts';
import { createKeyBindings, createOpenings, createRecoveryKeys, createSnapshots } from './snapshots-repository.ts';
import { createTdeRequests } from './tde-requests-repository.ts';
import { createTenantKeks } from './tenant-keks-repository.ts';
import { createTenantRows } from './tenant-rows-repository.ts';
import { createTenants } from './tenants-repository.ts';
import { createTokenObjects } from './token-objects-repository.ts';
import { createVaults } from './vaults-repository.ts';
import { createLatency } from './xks-latency-repository.ts';

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
  const settings = createSettings(db);
  return {
    nodes: createNodes(db, settings),
    tdeRequests: createTdeRequests(db, policyRows),
    settings,
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
