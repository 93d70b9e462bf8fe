// What an operator does about nodes: the servers that share this one's store.

import { ServiceError } from '../../base/service-error.ts';
import type { Actor } from '../../domain/actor.ts';
import type { FleetNode, NodeState } from '../../domain/node.ts';
import type { Ports } from '../../ports/ports.ts';
import { aboutService, recordEvent } from '../shared/record-event.ts';
import type { NodeOperations } from './nodes-operations.ts';

const kinds = { draining: 'node.drained', active: 'node.resumed', removed: 'node.removed' } as const;

export const manageNodes = ({ store, fleet }: Pick<Ports, 'store' | 'fleet'>): NodeOperations => {
  const find = async (id: string): Promise<FleetNode> => {
    const node = (await fleet.nodes()).find((one) => one.id === id);
    if (node === undefined) throw new ServiceError('not-found', 'node not found');
    return node;
  };
  const change =
    (state: 'draining' | 'active' | 'removed') =>
    async (actor: Actor, id: string): Promise<FleetNode> => {
      await store.write(async (tx) => {
        const before = await tx.nodes.get(id);
        if (before === undefined) throw new ServiceError('not-found', 'node not found');
        if (before.state === state) return;
        const from: readonly NodeState[] = state === 'active' ? ['draining'] : ['active', 'draining', 'stopped'];
        if (!from.includes(before.state))
          throw new ServiceError('conflict', `the node is ${before.state}`, {
            ...(before.state === 'removed'
              ? { hint: 'delete the file node in its data directory; it then joins as a new node' }
              : {}),
          });
        if (state === 'removed' && id === fleet.id)
          throw new ServiceError('conflict', 'a node cannot remove itself', {
            hint: 'send the request to another node; if this is the last node, stop it',
          });
        await tx.nodes.setState(id, state);
        await recordEvent(tx, kinds[state], actor, aboutService(id), { name: before.name });
      });
      if (id === fleet.id) await fleet.look();
      return find(id);
    };

  return {
    list: () => fleet.nodes(),
    get: (_actor, id) => find(id),
    drain: change('draining'),
    resume: change('active'),
    remove: change('removed'),
  };
};
