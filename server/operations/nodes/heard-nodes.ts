// How long each other node has been silent, by this node's own monotonic clock: a heartbeat counts
// from when it was first seen here. The database's wall clock may jump, and another database may
// continue with another clock after a failover; so it counts only for a node that was silent before
// this one began to listen, and no longer has a connection.

import type { NodeLink, SeenNode } from '../../ports/node-link.ts';
import type { Ports } from '../../ports/ports.ts';

/** Reads the nodes' rows, with `silentMs` as this node knows it. */
export const createHeardNodes = (
  link: Pick<NodeLink, 'nodes' | 'connected'>,
  clock: Pick<Ports['clock'], 'monotonic'>,
): (() => Promise<readonly SeenNode[]>) => {
  const heard = new Map<string, { readonly heartbeatAt: number; readonly at: number }>();
  return async () => {
    const found = await link.nodes();
    const isNew = ({ id }: SeenNode): boolean => !heard.has(id);
    const connected = found.some((node) => isNew(node) && node.silentMs > 0) ? await link.connected() : undefined;
    // After the answer: what it tells is at least as old.
    const now = clock.monotonic();
    return found.map((node): SeenNode => {
      const before = heard.get(node.id);
      if (before?.heartbeatAt === node.heartbeatAt) return { ...node, silentMs: now - before.at };
      const silentMs = before === undefined && connected?.has(node.id) === false ? node.silentMs : 0;
      heard.set(node.id, { heartbeatAt: node.heartbeatAt, at: now - silentMs });
      return { ...node, silentMs };
    });
  };
};
