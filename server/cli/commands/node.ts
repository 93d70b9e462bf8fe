// `dke node`: the servers that share one store.

import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import { addNoun } from '../service/command-rows.ts';

const routes = operations.nodes;

export const addNode = (program: Command): void => {
  const noun = addNoun(program, 'node');
  noun.row(routes.list, 'list', 'Lists nodes.', {
    columns: {
      ID: 'id',
      NAME: (row) => (row.self ? `${row.name} *` : row.name),
      STATE: 'state',
      VERSION: 'version',
      BEHIND: 'behind',
      ROOT: 'rootEpoch',
      DUTIES: (row) => row.duties.join(' '),
      'LAST HEARTBEAT': 'heartbeatAt',
    },
  });
  noun.row(routes.get, 'show <node>', 'Shows a node, by id or name.');
  noun.row(routes.drain, 'drain <node>', 'Requests go to other nodes; it still answers.');
  noun.row(routes.resume, 'resume <node>', 'Undoes the draining of a node.');
  noun.row(
    routes.remove,
    'remove <node>',
    'Removes a node that will not return. The other nodes no longer wait for it.',
    {
      confirm: [
        routes.get,
        ({ name }) =>
          `Node ${name} cannot start again. This does not erase its root key file: destroy it together with the host.`,
      ],
    },
  );
};
