// Makes a key store endpoint over one AES-256 key of one vault.

import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { type Endpoint, prefixPattern } from '../../domain/endpoint.ts';
import type { Ports } from '../../ports/ports.ts';
import { findKey, findVault } from '../shared/find.ts';
import { checkName } from '../shared/names.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { checkEndpointSettings, checkRules, withDefaults } from './endpoint-settings.ts';
import type { EndpointCall } from './endpoints-operations.ts';

export const createEndpoint =
  ({
    store,
    core,
    directory,
    clock,
    identity,
  }: Pick<Ports, 'store' | 'core' | 'directory' | 'clock' | 'identity'>): EndpointCall<'create'> =>
  async (actor, input) => {
    checkName(input.name);
    const settings = withDefaults(input.settings ?? {});
    checkEndpointSettings(settings, identity);
    checkRules(settings.rules);
    const random = Buffer.alloc(10);
    core.random(random);
    const prefix = input.prefix ?? random.toString('hex');
    if (!prefixPattern.test(prefix))
      throw new ServiceError('validation', 'a prefix must be 1 to 64 letters, digits, hyphens and underscores');
    const endpoint = await store.write(async (tx): Promise<Endpoint> => {
      const vault = await findVault(tx, actor.tenantId, input.vaultId);
      const key = await findKey(tx, actor.tenantId, input.keyId);
      if (vault.state === 'deleted') throw new ServiceError('conflict', 'the vault is deleted');
      if (key.vaultId !== vault.id) throw new ServiceError('conflict', 'the key is not in this vault');
      if (key.kind !== 'general' || key.algorithm !== 'aes' || key.bits !== 256)
        throw new ServiceError('key-usage', 'an endpoint requires a general-purpose AES-256 key');
      if (key.state !== 'active' && key.state !== 'disabled')
        throw new ServiceError('conflict', `the key is ${key.state}`);
      if ((await tx.endpoints.findByPrefix(prefix)) !== undefined)
        throw new ServiceError('conflict', 'the prefix is already in use', {
          hint: 'choose another one; prefixes of deleted endpoints are not reused',
        });
      const now = clock.now();
      const made: Endpoint = {
        id: newId(now),
        tenantId: key.tenantId,
        name: input.name,
        prefix,
        vaultId: vault.id,
        keyId: key.id,
        state: 'enabled',
        settings,
        createdAt: now,
        credentials: [],
        integrity: 'ok',
      };
      await tx.endpoints.insert(made);
      await recordEvent(tx, 'endpoint.created', actor, about('endpoint', made), {
        name: made.name,
        prefix,
        vaultId: vault.id,
        keyId: key.id,
      });
      return made;
    });
    await directory.renew({ endpoints: [endpoint.id] });
    return endpoint;
  };
