// Handlers of nodes.

import type { Operations } from '../../../operations/index.ts';
import { representNode } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const nodesHandlers = ({ nodes }: Operations): Handlers['nodes'] => ({
  list: async ({ actor }) => ({ items: (await nodes.list(actor)).map(representNode) }),
  get: async ({ actor, path }) => representNode(await nodes.get(actor, path.id)),
  drain: async ({ actor, path }) => representNode(await nodes.drain(actor, path.id)),
  resume: async ({ actor, path }) => representNode(await nodes.resume(actor, path.id)),
  remove: async ({ actor, path }) => representNode(await nodes.remove(actor, path.id)),
});
