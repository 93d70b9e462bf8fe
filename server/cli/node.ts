// `dke node`: the servers that share one store.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import type { Node } from '../fronts/contract/api/nodes.ts';
import { action, type Caller } from './caller.ts';
import { CommandError } from './exit-codes.ts';
import { confirm } from './output.ts';

const routes = apiRoutes.nodes;

/** By id, or by a name that one node bears alone. */
const findNode = async (call: Caller['call'], text: string): Promise<Node> => {
  const { items } = await call(routes.list);
  const found = items.filter(({ id, name, state }) => id === text || (name === text && state !== 'removed'));
  const [node] = found;
  if (node === undefined)
    throw new CommandError('not-found', `there is no node named ${text}`, {
      hint: 'dke node list shows those that there are; case matters',
    });
  if (found.length > 1)
    throw new CommandError('config', `${found.length} are named ${text}`, {
      hint: `give one of the ids ${found.map(({ id }) => id).join(', ')}`,
    });
  return node;
};

export const addNode = (program: Command): void => {
  const noun = program.command('node').summary('nodes: the servers that share one database');

  noun
    .command('list')
    .description('Lists nodes.')
    .action(
      action(async ({ call, output }) => {
        output.list(await call(routes.list), [
          ['ID', (row) => row.id],
          ['NAME', (row) => (row.self ? `${row.name} *` : row.name)],
          ['STATE', (row) => row.state],
          ['VERSION', (row) => row.version],
          ['BEHIND', (row) => String(row.behind)],
          ['ROOT', (row) => String(row.rootEpoch)],
          ['DUTIES', (row) => row.duties.join(' ')],
          ['LAST HEARTBEAT', (row) => row.heartbeatAt],
        ]);
      }),
    );

  noun
    .command('show <node>')
    .description('Shows a node, by id or name.')
    .action(
      action(async ({ call, output }, _, node) => {
        const { id } = await findNode(call, node);
        output.record(await call(routes.get, { path: { id } }));
      }),
    );

  for (const [verb, description] of [
    ['drain', 'Requests go to other nodes; it still answers.'],
    ['resume', 'Ends the draining of a node.'],
  ] as const)
    noun
      .command(`${verb} <node>`)
      .description(description)
      .action(
        action(async ({ call, output }, _, node) => {
          const { id } = await findNode(call, node);
          output.record(await call(routes[verb], { path: { id } }));
        }),
      );

  noun
    .command('remove <node>')
    .description('Removes a node that does not come back: nothing waits for it any more.')
    .option('--confirm <name>', 'the name of the node, to go on without a question')
    .action(
      action<{ readonly confirm?: string }>(async ({ call, output }, options, node) => {
        const { id, name } = await findNode(call, node);
        await confirm(
          `Node ${name} does not start again. Its root key file is not erased by this: destroy it with the host.`,
          name,
          options.confirm,
        );
        output.record(await call(routes.remove, { path: { id } }));
      }),
    );
};
