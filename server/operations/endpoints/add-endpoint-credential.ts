// Adds a SigV4 credential to an endpoint: at most two live, the old and the new one of a rotation.
// The secret is made in the addon, leaves once as bytes, and is stored sealed.

import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { EndpointCredential } from '../../domain/endpoint.ts';
import type { CryptoCore } from '../../ports/crypto-core.ts';
import type { Ports } from '../../ports/ports.ts';
import { credentialOwner } from '../keys/key-records.ts';
import { findEndpoint } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { EndpointOperations } from './endpoints-operations.ts';

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const mostLive = 2;

/** 24 characters of A-Z2-7: 120 random bits. */
const makeAccessKeyId = (core: Pick<CryptoCore, 'random'>): string => {
  const bytes = Buffer.alloc(24);
  core.random(bytes);
  return [...bytes].map((byte) => alphabet[byte & 31]).join('');
};

export const addEndpointCredential =
  ({
    store,
    core,
    ring,
    directory,
    clock,
  }: Pick<Ports, 'store' | 'core' | 'ring' | 'directory' | 'clock'>): EndpointOperations['addCredential'] =>
  async (actor, id) => {
    const { key, characters } = core.generateSecretAccessKey();
    try {
      const credential = await store.write(async (tx): Promise<EndpointCredential> => {
        const endpoint = await findEndpoint(tx, actor.tenantId, id);
        if (endpoint.credentials.length >= mostLive)
          throw new ServiceError('conflict', 'the endpoint already has two valid credentials', {
            hint: 'remove the old one first',
          });
        const now = clock.now();
        const made: EndpointCredential = {
          id: newId(now),
          endpointId: id,
          accessKeyId: makeAccessKeyId(core),
          createdAt: now,
          lastUsedAt: null,
        };
        await tx.endpoints.insertCredential(endpoint.tenantId, made);
        await tx.records.put(ring.seal(credentialOwner(endpoint, made), 1, 'endpoint-secret', key));
        await recordEvent(tx, 'endpoint.credential-added', actor, about('endpoint', endpoint), {
          accessKeyId: made.accessKeyId,
        });
        return made;
      });
      await directory.renew({ endpoints: [id] });
      return { credential, secretAccessKey: characters };
    } catch (error) {
      core.wipe(characters);
      throw error;
    } finally {
      core.release(key);
    }
  };
