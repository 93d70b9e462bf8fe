// Handlers of the service's state.

import type { Operations } from '../../../operations/index.ts';
import { representStatus } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const statusHandlers = (operations: Operations): Handlers['status'] => ({
  get: async ({ actor }) => {
    const [service, health] = await Promise.all([operations.status(actor), operations.health()]);
    return representStatus(service, health);
  },
});
