// A change is confirmed when every node that can hear of it shows it. A node that does not say so
// in time is named, with when it stops using keys.

import { pendingForMs, pendingOf } from '../../domain/change-protocol.ts';
import type { Unconfirmed } from '../../ports/fleet.ts';
import type { SeenNode } from '../../ports/node-link.ts';
import type { Ports } from '../../ports/ports.ts';

/** A node that has been silent for so long is not waited for. */
export const silentAfterMs = 3_000;
/** How long a change waits for the others. */
const acknowledgeMs = 2_000;

export const confirmed: Unconfirmed = { pendingNodes: [], pendingUntil: null };

export interface Acknowledgement {
  /** A node has said that it shows this change. */
  heard(id: string, epoch: number): void;
  /** The next database may be another one, in which these numbers are of other changes. */
  forget(): void;
  /** What the node shows. */
  shownBy(node: SeenNode): number;
  /** Waits; answers who may act on what was before this change. */
  wait(epoch: number): Promise<Unconfirmed>;
}

export const createAcknowledgement = (
  heardNodes: () => Promise<readonly SeenNode[]>,
  { clock, log }: Pick<Ports, 'clock' | 'log'>,
  selfId: string,
): Acknowledgement => {
  /** What others said that they show. */
  const shown = new Map<string, number>();
  const waiters = new Set<() => void>();
  const shownBy = (node: SeenNode): number => Math.max(node.epoch, shown.get(node.id) ?? 0);

  return {
    heard: (id, epoch) => {
      shown.set(id, Math.max(epoch, shown.get(id) ?? 0));
      for (const wake of [...waiters]) wake();
    },
    forget: () => shown.clear(),
    shownBy,
    wait: async (epoch) => {
      const until = clock.monotonic() + acknowledgeMs;
      const isBehind = (node: SeenNode): boolean => shownBy(node) < epoch;
      const mayAct = async (): Promise<readonly SeenNode[]> =>
        pendingOf(
          (await heardNodes()).filter(({ id }) => id !== selfId),
          epoch,
          shownBy,
        );
      const behind = await mayAct();
      const hearing = behind.filter(({ silentMs }) => silentMs < silentAfterMs);
      while (hearing.some(isBehind)) {
        const left = until - clock.monotonic();
        if (left <= 0) break;
        await new Promise<void>((resolve) => {
          const end = (): void => {
            clearTimeout(late);
            waiters.delete(end);
            resolve();
          };
          const late = setTimeout(end, left);
          waiters.add(end);
        });
      }
      if (!behind.some(isBehind)) return confirmed;
      // The nodes are read again: a node that has ended in the meantime is not waited for.
      const pending = await mayAct();
      if (pending.length === 0) return confirmed;
      const pendingNodes = pending.map(({ name }) => name).sort();
      const forMs = pendingForMs(pending);
      const pendingUntil = forMs === null ? null : clock.now() + forMs;
      log.warn('a change is not yet confirmed by every node', { epoch, pending: pendingNodes, until: pendingUntil });
      return { pendingNodes, pendingUntil };
    },
  };
};
