// What an erasure run waits for before it overwrites the old root key. A copy of the database that lags behind, and takes over, has the records as they
// were sealed under the old root key: without that key nothing of it could be opened again. So every copy that the database knows must have stored the
// records that are sealed again. For those that it does not know (of the storage, by files), an operator states how far they may lag.

import { awaitedCopies } from '../../domain/root-run.ts';
import type { LogPosition } from '../../ports/node-link.ts';
import type { Ports } from '../../ports/ports.ts';

const lookEveryMs = 100;
/** How long copies have before the run is called blocked. It continues on its own in any case. */
const waitMs = 6_000;
/** How often a copy is asked for that usually takes long. */
const slowMs = 2_000;

export interface CopiesState {
  /** Names of copies that should have stored everything, and have not. */
  readonly behind: readonly string[];
  /** When to look again, where nothing is amiss; 0: the old root key may go. */
  readonly forMs: number;
}

export type AwaitCopies = (isStopping: () => boolean) => Promise<CopiesState>;

/** To be called when nothing is sealed under the old root key, and all of that is committed durably. */
export const createAwaitCopies = (
  { store, root, clock }: Pick<Ports, 'store' | 'root' | 'clock'>,
  /** How far a copy that the database does not know may lag. */
  lagMs: number,
): AwaitCopies => {
  /** The first time that everything was sealed under this root key. */
  let sealed: { readonly rootEpoch: number; readonly position: LogPosition; readonly at: number } | undefined;
  /** Copies that were seen behind, and not yet up to date: one that has lost its connection since may take over all the same. */
  let awaited: ReadonlySet<string> = new Set();

  const { link } = store;
  return async (isStopping) => {
    if (link === undefined) return { behind: [], forMs: 0 };
    if (sealed?.rootEpoch !== root.current.epoch) {
      awaited = new Set();
      const found = await link.logPosition();
      // Asked after the position: another server may have taken over since the last unit of work, without what was sealed again.
      if ((await store.read.keks.list()).some(({ rootEpoch }) => rootEpoch !== root.current.epoch))
        throw new Error('the database is sealed under another root key: the run starts again');
      sealed = { rootEpoch: root.current.epoch, position: found, at: clock.monotonic() };
    }
    const { position, at } = sealed;
    const until = clock.monotonic() + waitMs;
    for (;;) {
      const copies = await link.copies(position);
      if (copies === 'other') {
        sealed = undefined;
        throw new Error('another server has become the primary of the database: the run starts again there');
      }
      awaited = awaitedCopies(awaited, copies);
      const slow = copies.filter(({ isBehind, isSlow }) => isBehind && isSlow);
      const behind = [...awaited]
        .filter((name) => !slow.some((copy) => copy.name === name))
        .map((name) => (copies.some((copy) => copy.name === name) ? name : `${name}, disconnected`));
      if (behind.length === 0 || clock.monotonic() > until || isStopping())
        return { behind, forMs: Math.max(slow.length > 0 ? slowMs : 0, lagMs - (clock.monotonic() - at)) };
      await new Promise<void>((resolve) => {
        setTimeout(resolve, lookEveryMs);
      });
    }
  };
};
