// `dke key-store`: external key stores, the cloud's side of an endpoint, and whether they are
// connected.

import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import { addNoun } from '../service/command-rows.ts';

const routes = operations.externalKeyStores;

export const addKeyStore = (program: Command): void => {
  const noun = addNoun(program, 'key-store');
  noun.row(
    routes.register,
    'register <name>',
    'Registers a custom key store of the cloud; DKE then checks its connection regularly.',
    {
      options: {
        '--id <custom-key-store-id>': { help: 'id of the key store in the cloud: cks-...', required: true },
        '--region <region>': { help: 'region of the cloud, for example eu-central-1', required: true },
        '--endpoint <endpoint>': { help: 'id or name of the endpoint that the key store calls', required: true },
      },
    },
  );
  noun.row(routes.list, 'list', 'Lists external key stores with their connection.', {
    columns: {
      ID: 'id',
      NAME: 'name',
      'CUSTOM KEY STORE': 'customKeyStoreId',
      CONNECTION: (row) => row.connection.state,
      ERROR: (row) => row.connection.errorCode,
      SINCE: (row) => row.connection.since,
      SAYS: (row) => row.connection.source,
    },
  });
  noun.row(routes.get, 'show <key-store>', 'Shows an external key store, by id or name.');
  noun.row(routes.probe, 'probe <key-store>', 'Checks its connection now.');
  noun.row(routes.remove, 'remove <key-store>', 'Removes it. Nothing changes in the cloud or at the endpoint.');
};
