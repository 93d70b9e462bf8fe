// Key and vault: the vault behind the endpoint is in use.

import { command } from '../../../base/command-line.ts';
import { ok } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';

export const vaultEnabled: EndpointCheck = {
  id: 'vault-enabled',
  layer: 'key',
  title: 'the vault is enabled',
  fault: 'the vault is disabled or deleted',
  needs: [],
  run: ({ vault }) => {
    if (vault?.integrity === 'tampered')
      return foretold('vault-gone', 'its stored row was changed outside of DKE', 'restore a backup');
    if (vault?.state === 'enabled') return ok(vault.name);
    return foretold(
      'vault-gone',
      vault === undefined ? 'the vault is deleted' : `the vault ${vault.name} is ${vault.state}`,
      vault?.state === 'disabled' ? command`dke vault enable ${vault.name}` : 'create an endpoint in another vault',
    );
  },
};
