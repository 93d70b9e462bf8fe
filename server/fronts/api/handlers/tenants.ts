// Handlers of tenants.

import type { Operations } from '../../../operations/index.ts';
import { representTenant } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const tenantsHandlers = ({ tenants }: Operations): Handlers['tenants'] => ({
  list: async ({ actor }) => ({ items: (await tenants.list(actor)).map(representTenant) }),
  get: async ({ actor, path }) => representTenant(await tenants.get(actor, path.id)),
});
