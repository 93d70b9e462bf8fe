// Handlers of the service's state.

import type { Operations } from '../../../operations/index.ts';
import { representJob, representStatus } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const statusHandlers = (operations: Operations): Handlers['status'] => ({
  get: async ({ actor }) => {
    const [service, health] = await Promise.all([operations.status(actor), operations.health()]);
    return representStatus(service, health);
  },
  jobs: async () => {
    const { nodes, jobs } = await operations.jobs();
    return { items: jobs.map(representJob(nodes)) };
  },
});
