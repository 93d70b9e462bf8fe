// Ends a SigV4 credential: its sealed secret is overwritten and the row deleted; the audit log
// keeps the access key id.

import { ServiceError } from '../../base/service-error.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
import type { Ports } from '../../ports/ports.ts';
import { showEndpoint } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { EndpointCall } from './endpoints-operations.ts';

export const removeEndpointCredential =
  ({ store, directory }: Pick<Ports, 'store' | 'directory'>): EndpointCall<'removeCredential'> =>
  async (actor, id, credentialId) => {
    const endpoint = await store.write(async (tx): Promise<Endpoint> => {
      const before = await showEndpoint(tx, actor.tenantId, id);
      const credential = before.credentials.find((candidate) => candidate.id === credentialId);
      if (credential === undefined) throw new ServiceError('not-found', 'credential not found');
      const { tenantId } = before;
      await tx.records.wipe({ tenantId, objectId: credentialId, version: 1, class: 'endpoint-secret' });
      await tx.endpoints.removeCredential(credentialId);
      await recordEvent(tx, 'endpoint.credential-removed', actor, about('endpoint', before), {
        accessKeyId: credential.accessKeyId,
      });
      return { ...before, credentials: before.credentials.filter((candidate) => candidate.id !== credentialId) };
    });
    await directory.renew({ endpoints: [id] });
    return endpoint;
  };
