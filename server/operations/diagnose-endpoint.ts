// Diagnostics of one key store endpoint: runs them, keeps what they found, and shows it.

import { ServiceError } from '../base/errors.ts';
import { newId } from '../base/ids.ts';
import type { EndpointDiagnosis } from '../ports/endpoint-diagnosis.ts';
import type { Ports } from '../ports/ports.ts';
import type { StoredDiagnosis } from '../ports/store.ts';
import { findEndpoint } from './find.ts';
import type { DiagnosticsOperations } from './index.ts';
import { byId, pageOf } from './paging.ts';

/** Of so many earlier runs it is known which requests were theirs. */
const rememberedRuns = 50;

export const diagnoseEndpoint = (
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  diagnosis: EndpointDiagnosis,
): DiagnosticsOperations => {
  const running = new Map<string, Promise<StoredDiagnosis>>();
  const run = async (id: string, request: Parameters<EndpointDiagnosis['run']>[1]): Promise<StoredDiagnosis> => {
    const earlier = await store.read.diagnoses.list(id, { limit: rememberedRuns });
    const own = new Set(earlier.flatMap(({ requestIds }) => requestIds));
    const { results, requestIds } = await diagnosis.run(id, request, own);
    const at = clock.now();
    const made: StoredDiagnosis = { id: newId(at), endpointId: id, at, results, requestIds };
    await store.write((tx) => tx.diagnoses.insert(made));
    return made;
  };
  return {
    run: async ({ tenantId }, id, request) => {
      const endpoint = await findEndpoint(store.read, tenantId, id);
      if (endpoint.state === 'deleted') throw new ServiceError('conflict', 'the endpoint is deleted');
      // One run at a time: a second would only see the first one's requests.
      await running.get(id)?.catch(() => undefined);
      const current = run(id, request).finally(() => running.delete(id));
      running.set(id, current);
      return current;
    },
    list: async ({ tenantId }, id, query) => {
      await findEndpoint(store.read, tenantId, id);
      return pageOf(query, (window) => store.read.diagnoses.list(id, window), byId);
    },
    get: async ({ tenantId }, id, diagnosisId) => {
      // Those of a deleted endpoint are there still.
      const endpoint = await store.read.endpoints.get(tenantId, id);
      const found = endpoint === undefined ? undefined : await store.read.diagnoses.get(diagnosisId);
      if (found?.endpointId !== id) throw new ServiceError('not-found', 'no such diagnosis');
      return found;
    },
  };
};
