// Handlers of tenants.

import type { Operations } from '../../../operations/index.ts';
import { ValidationError } from '../api-problem.ts';
import { representTenant } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const tenantsHandlers = ({ tenants }: Operations): Handlers['tenants'] => {
  /** Shows what an event would stop; carries it out unless that was all. */
  const stopping =
    (event: 'suspend' | 'delete' | 'purge', confirm: (name: string) => void = () => undefined) =>
    async (actor: Parameters<typeof tenants.impact>[0], id: string, dryRun: boolean) => {
      const { tenant, contents } = await tenants.impact(actor, id, event);
      if (dryRun) return { dryRun, tenant: representTenant(tenant), impact: contents };
      confirm(tenant.name);
      return { dryRun, tenant: representTenant(await tenants[event](actor, id)), impact: contents };
    };
  return {
    create: async ({ actor, body }) => {
      const tenant = await tenants.create(actor, body);
      return { id: tenant.id, answer: representTenant(tenant) };
    },
    list: async ({ actor }) => ({ items: (await tenants.list(actor)).map(representTenant) }),
    get: async ({ actor, path }) => representTenant(await tenants.get(actor, path.id)),
    rename: async ({ actor, path, body }) => representTenant(await tenants.rename(actor, path.id, body)),
    suspend: ({ actor, path, query }) => stopping('suspend')(actor, path.id, query.dryRun === true),
    resume: async ({ actor, path }) => representTenant(await tenants.resume(actor, path.id)),
    delete: ({ actor, path, query }) => stopping('delete')(actor, path.id, query.dryRun === true),
    restore: async ({ actor, path }) => representTenant(await tenants.restore(actor, path.id)),
    purge: ({ actor, path, query, body }) =>
      stopping('purge', (name) => {
        if (body.confirm !== name)
          throw new ValidationError([
            { path: 'confirm', message: body.confirm === undefined ? 'is missing' : "is not the tenant's name" },
          ]);
      })(actor, path.id, query.dryRun === true),
  };
};
