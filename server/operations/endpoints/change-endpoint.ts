// Enables, disables, renames or deletes an endpoint. Deletion wipes its credentials; the prefix is
// never given again.

import type { TenantActor } from '../../domain/actor.ts';
import type { Endpoint, EndpointState } from '../../domain/endpoint.ts';
import type { Ports } from '../../ports/ports.ts';
import { findEndpoint } from '../shared/find.ts';
import { checkName } from '../shared/names.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { EndpointCall } from './endpoints-operations.ts';

const kinds = {
  enabled: 'endpoint.enabled',
  disabled: 'endpoint.disabled',
  deleted: 'endpoint.deleted',
} as const satisfies Record<EndpointState, string>;

export const changeEndpoint =
  ({ store, directory }: Pick<Ports, 'store' | 'directory'>, state: EndpointState) =>
  async (actor: TenantActor, id: string): Promise<Endpoint> => {
    const endpoint = await store.write(async (tx): Promise<Endpoint> => {
      const before = await findEndpoint(tx, actor.tenantId, id);
      if (before.state === state) return before;
      const details = { name: before.name };
      const after: Endpoint = { ...before, state, credentials: state === 'deleted' ? [] : before.credentials };
      await tx.endpoints.update(after);
      if (state === 'deleted')
        for (const credential of before.credentials) {
          await tx.records.wipe({
            tenantId: before.tenantId,
            objectId: credential.id,
            version: 1,
            class: 'endpoint-secret',
          });
          await tx.endpoints.removeCredential(credential.id);
        }
      await recordEvent(tx, kinds[state], actor, about('endpoint', after), details);
      return after;
    });
    await directory.renew({ endpoints: [id] });
    return endpoint;
  };

export const renameEndpoint =
  ({ store, directory }: Pick<Ports, 'store' | 'directory'>): EndpointCall<'rename'> =>
  async (actor, id, { name }) => {
    checkName(name);
    const endpoint = await store.write(async (tx): Promise<Endpoint> => {
      const before = await findEndpoint(tx, actor.tenantId, id);
      if (before.name === name) return before;
      const after: Endpoint = { ...before, name };
      await tx.endpoints.update(after);
      await recordEvent(tx, 'endpoint.renamed', actor, about('endpoint', after), { name, from: before.name });
      return after;
    });
    await directory.renew({ endpoints: [id] });
    return endpoint;
  };
