// What an erasure run waits for before it overwrites the old root key. A copy of the database that
// lags behind, and takes over, has the records as they were sealed under the old root key: without
// that key nothing of it could be opened again. So every copy that the database knows must have
// stored the records that are sealed again. For those that it does not know (of the storage, by
// files), an operator states how far they may lag.

import { canonicalJson } from '../../base/bytes.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Actor } from '../../domain/actor.ts';
import { awaitedCopies } from '../../domain/root-run.ts';
import type { LogPosition, NodeLink } from '../../ports/node-link.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { aboutService, recordEvent } from '../shared/record-event.ts';

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

/**
 * What is waited for, in the database that it protects: a restart, or the node that has the duty
 * next, continues with it.
 */
const copiesSetting = 'erasure-copies';
interface Awaited {
  /** Everything was sealed under this root key, for the first time, at this position. */
  readonly rootEpoch: number;
  readonly position: LogPosition;
  /**
   * Copies that are not known to be up to date: one that has lost its connection since may take
   * over all the same.
   */
  readonly names: readonly string[];
}
const readAwaited = async ({ decisions }: Pick<Repositories, 'decisions'>): Promise<Awaited | undefined> => {
  const text = await decisions.get(copiesSetting);
  return text === undefined ? undefined : (JSON.parse(text) as Awaited);
};

/**
 * To be called when nothing is sealed under the old root key, and all of that is committed durably.
 */
export const createAwaitCopies = (
  { store, root, clock }: Pick<Ports, 'store' | 'root' | 'clock'>,
  /** How far a copy that the database does not know may lag. */
  lagMs: number,
): AwaitCopies => {
  /** When this process began to wait: another one may have begun earlier, by another clock. */
  let began: { readonly rootEpoch: number; readonly at: number } | undefined;

  const { link } = store;
  const write = (awaited: Awaited | null): Promise<unknown> =>
    store.write((tx) => tx.decisions.set(copiesSetting, awaited === null ? null : JSON.stringify(awaited)));
  /**
   * Checks the copies once, and keeps what was seen before it counts. Undefined: another server is
   * the primary now.
   */
  const look = async (known: NodeLink, { rootEpoch, position }: Awaited) => {
    const copies = await known.copies(position);
    if (copies === 'other') return undefined;
    const next = ({ names }: Awaited): readonly string[] => [...awaitedCopies(new Set(names), copies)].sort();
    const before = await readAwaited(store.read);
    const isSame = (stored: Awaited): boolean =>
      canonicalJson(next(stored)) === canonicalJson([...stored.names].sort());
    // Within the unit of work again: an operator may have released a copy in the meantime.
    if (before !== undefined && !isSame(before))
      await store.write(async (tx) => {
        const stored = (await readAwaited(tx)) ?? before;
        await tx.decisions.set(copiesSetting, JSON.stringify({ rootEpoch, position, names: next(stored) }));
      });
    return { copies, names: next(before ?? { rootEpoch, position, names: [] }) };
  };
  const begin = async (known: NodeLink): Promise<Awaited> => {
    const rootEpoch = root.current.epoch;
    const stored = await readAwaited(store.read);
    if (stored?.rootEpoch === rootEpoch) {
      if (began?.rootEpoch !== rootEpoch) began = { rootEpoch, at: clock.monotonic() };
      return stored;
    }
    const position = await known.logPosition();
    // Asked after the position: another server may have taken over since the last unit of work,
    // without what was sealed again.
    if ((await store.read.keks.list()).some((kek) => kek.rootEpoch !== rootEpoch))
      throw new Error('the database is sealed under another root key: the run starts again');
    const copies = await known.copies(position);
    // Every copy that is known now, until it was seen up to date.
    const names = copies === 'other' ? [] : copies.map(({ name }) => name);
    began = { rootEpoch, at: clock.monotonic() };
    await write({ rootEpoch, position, names });
    return { rootEpoch, position, names };
  };
  return async (isStopping) => {
    if (link === undefined) return { behind: [], forMs: 0 };
    const awaited = await begin(link);
    const at = began?.at ?? clock.monotonic();
    const until = clock.monotonic() + waitMs;
    for (;;) {
      const seen = await look(link, awaited);
      if (seen === undefined) {
        await write(null);
        throw new Error('another server has become the primary of the database: the run starts again there');
      }
      const { copies, names } = seen;
      const slow = copies.filter(({ isBehind, isSlow }) => isBehind && isSlow);
      const behind = names
        .filter((name) => !slow.some((copy) => copy.name === name))
        .map((name) => `${name}${copies.find((copy) => copy.name === name)?.hint ?? disconnected}`);
      if (behind.length === 0 || clock.monotonic() > until || isStopping())
        return { behind, forMs: Math.max(slow.length > 0 ? slowMs : 0, lagMs - (clock.monotonic() - at)) };
      await new Promise<void>((resolve) => {
        setTimeout(resolve, lookEveryMs);
      });
    }
  };
};

const disconnected = ', disconnected';
/**
 * An operator states that a copy will never become the database. One that is connected and behind
 * is waited for again at the next look. Throws 'not-found' when it is not waited for.
 */
export const releaseCopy = async (tx: Repositories, actor: Actor, given: string): Promise<void> => {
  const stored = await readAwaited(tx);
  // `given` may be a name as it is shown: followed by a hint, or by "disconnected".
  const name = stored?.names.find(
    (each) => given === each || given.startsWith(`${each}, `) || given.startsWith(`${each}. `),
  );
  if (stored === undefined || name === undefined)
    throw new ServiceError('not-found', 'the erasure run does not wait for a copy of this name', {
      hint: 'dke root show lists what it waits for',
    });
  await tx.decisions.set(
    copiesSetting,
    JSON.stringify({ ...stored, names: stored.names.filter((each) => each !== name) }),
  );
  await recordEvent(tx, 'erasure.copy-released', actor, aboutService(), { name, rootEpoch: stored.rootEpoch });
};
