// Diagnostics of one key store endpoint: runs them, keeps what they found, and shows it.

import type { CheckWatch } from '../../base/diagnostic-checks.ts';
import { newId } from '../../base/ids.ts';
import { LimitRefused } from '../../base/limit-refusals.ts';
import { ServiceError } from '../../base/service-error.ts';
import { createShares } from '../../base/shares.ts';
import type { TenantActor } from '../../domain/actor.ts';
import type { DiagnosisRequest, EndpointDiagnosis } from '../../ports/endpoint-diagnosis.ts';
import type { StoredDiagnosis } from '../../ports/xks-repositories.ts';
import { showEndpoint } from '../shared/find.ts';
import { byId, pageOf } from '../shared/paging.ts';
import type { DiagnosticsOperations } from './endpoints-operations.ts';
import { type LookPorts, lookAtKeyStore } from './external-key-stores.ts';

/**
 * What `work` tells, as it is told; ends, or throws, as the work does. The work continues after its
 * reader has stopped.
 */
const eventsOf = <E>(work: (tell: (event: E) => void) => Promise<void>): AsyncIterable<E> => {
  const told: E[] = [];
  let ended = false;
  let wake: () => void = () => undefined;
  const done = work((event) => {
    told.push(event);
    wake();
  }).finally(() => {
    ended = true;
    wake();
  });
  // The reader of the events handles it; no one else has to.
  done.catch(() => undefined);
  return (async function* take() {
    for (;;) {
      const next = told.shift();
      if (next !== undefined) yield next;
      else if (ended) return await done;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  })();
};

/**
 * Runs, with those that wait: of an endpoint, and of all. They continue after their caller has
 * gone.
 */
const mostRuns = { endpoint: 3, all: 24 };

/** Number of earlier runs whose requests are known as the service's own, not the cloud's. */
const rememberedRuns = 50;

export const diagnoseEndpoint = (ports: LookPorts, diagnosis: EndpointDiagnosis): DiagnosticsOperations => {
  const { store, clock } = ports;
  const lookAt = lookAtKeyStore(ports);
  /** What was seen of a connection before is not told as what is. */
  const lookAgain = async (endpointId: string): Promise<void> => {
    for (const known of await store.read.externalKeyStores.listByEndpoint(endpointId))
      if (known.integrity === 'ok') await lookAt(known);
  };
  const running = new Map<string, Promise<StoredDiagnosis>>();
  const places = createShares({ all: mostRuns.all, group: mostRuns.endpoint, caller: mostRuns.endpoint });
  const run = async (id: string, request: DiagnosisRequest, watch?: CheckWatch): Promise<StoredDiagnosis> => {
    const earlier = await store.read.diagnoses.list(id, { limit: rememberedRuns });
    await lookAgain(id);
    const own = new Set(earlier.flatMap(({ requestIds }) => requestIds));
    const { results, requestIds } = await diagnosis.run(id, request, own, watch);
    const at = clock.now();
    const made: StoredDiagnosis = { id: newId(at), endpointId: id, at, results, requestIds };
    await store.write((tx) => tx.diagnoses.insert(made));
    return made;
  };
  /** Throws when there is nothing to run. */
  const requireLive = async ({ tenantId }: TenantActor, id: string): Promise<void> => {
    const { state } = await showEndpoint(store.read, tenantId, id);
    if (state === 'deleted') throw new ServiceError('conflict', 'the endpoint is deleted');
  };
  /** One run at a time: a second would only see the first one's requests. */
  const runAlone = async (id: string, request: DiagnosisRequest, watch?: CheckWatch): Promise<StoredDiagnosis> => {
    const release = places.take(id, id);
    if (release === undefined)
      throw new LimitRefused('diagnoses', 'too many diagnostics are running', {
        hint: 'wait until they have ended: dke doctor runs ENDPOINT shows them',
        retryAfterSeconds: 10,
      });
    try {
      for (let before = running.get(id); before !== undefined; before = running.get(id))
        await before.catch(() => undefined);
      const current = run(id, request, watch).finally(() => running.delete(id));
      running.set(id, current);
      return await current;
    } finally {
      release();
    }
  };
  return {
    run: async (actor, id, request) => {
      await requireLive(actor, id);
      return runAlone(id, request);
    },
    follow: async (actor, id, request) => {
      await requireLive(actor, id);
      return eventsOf((tell) =>
        runAlone(id, request, {
          started: (checks) => tell({ kind: 'started', checks }),
          ended: (result) => tell({ kind: 'ended', result }),
        }).then((made) => tell({ kind: 'kept', diagnosis: made })),
      );
    },
    list: async ({ tenantId }, id, query) => {
      await showEndpoint(store.read, tenantId, id);
      return pageOf(query, (window) => store.read.diagnoses.list(id, window), byId);
    },
    get: async ({ tenantId }, id, diagnosisId) => {
      // `stored` also finds a deleted endpoint: its diagnostics runs stay readable.
      const endpoint = await store.read.endpoints.stored(tenantId, id);
      const found = endpoint === undefined ? undefined : await store.read.diagnoses.get(diagnosisId);
      if (found?.endpointId !== id) throw new ServiceError('not-found', 'diagnostics run not found');
      return found;
    },
  };
};
