// What the first page of the console shows: what needs somebody, and how the endpoints do.

import { findAttention } from '../domain/attention.ts';
import { largestPageSize } from '../domain/page.ts';
import { everyTenant } from '../domain/tenant.ts';
import type { AuditSinkState } from '../ports/audit-sink.ts';
import type { ServedCertificate } from '../ports/meter.ts';
import type { Ports } from '../ports/ports.ts';
import { findEndpoint } from './find.ts';
import type { Operations, OverviewOperations } from './index.ts';
import type { XksLatency } from './xks-latency.ts';

export interface OverviewSources {
  readonly latency: XksLatency;
  readonly health: Operations['health'];
  readonly certificates: () => readonly ServedCertificate[];
  readonly auditSinks: () => Promise<readonly AuditSinkState[]>;
}

export const readOverview = (
  { store, core, directory, erasure, clock }: Pick<Ports, 'store' | 'core' | 'directory' | 'erasure' | 'clock'>,
  sources: OverviewSources,
): OverviewOperations => {
  const platformFacts = async () => {
    const { checks } = await sources.health();
    const { state, failure } = erasure.state();
    return {
      failedChecks: checks.filter(({ healthy }) => !healthy).map(({ name, detail }) => ({ name, detail })),
      certificates: sources.certificates(),
      erasure: { state, failure },
      memoryLocked: core.memoryStatus().locked,
      droppedRequests: directory.requestLog().dropped,
      sinks: await sources.auditSinks(),
    };
  };
  return {
    attention: async ({ reach }) => {
      const now = clock.now();
      const window = { limit: largestPageSize };
      const [endpoints, keyStores, applications, tokens] = await Promise.all([
        store.read.endpoints.list(reach, window),
        store.read.externalKeyStores.list(reach, window),
        store.read.applications.list(reach, {}, window),
        store.read.tokens.list(reach, window),
      ]);
      const latency = await sources.latency.lastHour(endpoints.map(({ id }) => id));
      const masterKeys = [];
      for (const { id, name, state } of applications) {
        if (state !== 'enabled') continue;
        const newest = await store.read.objects.newestMasterKey(id);
        const key = newest === undefined ? undefined : await store.read.keys.get(reach, newest);
        if (key !== undefined) masterKeys.push({ applicationId: id, applicationName: name, createdAt: key.createdAt });
      }
      return findAttention({
        now,
        platform: reach === everyTenant ? await platformFacts() : null,
        endpoints: endpoints.flatMap(({ id, name, state, integrity, credentials }) => {
          const own = latency.get(id);
          return own === undefined
            ? []
            : [{ id, name, state, tampered: integrity !== 'ok', credentials, latency: own }];
        }),
        keyStores: keyStores.map(({ id, name, connection: { state, errorCode, since } }) => ({
          id,
          name,
          state,
          errorCode,
          since,
        })),
        masterKeys,
        tokens: tokens.flatMap(({ id, name, expiresAt, revokedAt }) =>
          expiresAt === null || revokedAt !== null ? [] : [{ id, name, expiresAt }],
        ),
      });
    },
    latency: async ({ tenantId, reach }, { endpointId, span }) => {
      const ids =
        endpointId === undefined
          ? (await store.read.endpoints.list(reach, { limit: largestPageSize })).map(({ id }) => id)
          : [(await findEndpoint(store.read, tenantId, endpointId)).id];
      return sources.latency.read(ids, span);
    },
  };
};
