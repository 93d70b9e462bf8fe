// What a node tells the others in a setting of its own. It is not on the disk when it is written,
// so that a failover may lose it, and another start of the same node may write it, too: what is
// stored is compared once a minute, and written again where it says something else.

import type { Clock } from '../../base/time.ts';
import { type NodeSetting, nodeSettings } from '../../domain/node.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';

const compareEveryMs = 60_000;

export const createTelling = (
  { store, clock }: Pick<Ports, 'store'> & { readonly clock: Pick<Clock, 'monotonic'> },
  nodeId: string,
  what: NodeSetting,
) => {
  let told: { readonly about: string; readonly text: string | null; readonly at: number } | undefined;
  return {
    /**
     * `about` decides whether there is something else to tell; `textOf` is what is stored of it.
     */
    tell: async (
      about: string,
      textOf: (from: Pick<Repositories, 'audit'>) => Promise<string | null>,
    ): Promise<void> => {
      const before = told?.about === about ? told : undefined;
      if (before !== undefined && clock.monotonic() - before.at < compareEveryMs) return;
      const at = clock.monotonic();
      let text = before === undefined ? await textOf(store.read) : before.text;
      if (((await store.read.settings.get(nodeSettings[what](nodeId))) ?? null) !== text) {
        const isTold = await store.write(
          async (tx) => {
            text = await textOf(tx);
            return tx.nodes.tell(nodeId, what, text);
          },
          { durable: false, background: true },
        );
        // The node has no row yet, or none that counts.
        if (!isTold) return;
      }
      told = { about, text, at };
    },
    /** Tells it again, whatever it was before. */
    forget: (): void => {
      told = undefined;
    },
  };
};
