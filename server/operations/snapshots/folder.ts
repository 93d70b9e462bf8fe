// The one folder of snapshots that all nodes use. What makes a destroyed key unrecoverable is that it is overwritten in every snapshot,
// where it lies: a node that looked into a folder of its own would find nothing there and call that done. So the first node marks its
// folder, the store says which mark it is, and a node whose folder has another one, or none, leaves snapshots alone and names the node
// that has them.

import { ServiceError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import type { Fleet } from '../../ports/fleet.ts';
import type { Ports } from '../../ports/ports.ts';
import type { SnapshotArchive } from '../../ports/snapshot-archive.ts';

export const folderSetting = 'snapshot-folder';

export interface SnapshotFolder {
  /** At start, and when a node was removed. Marks the folder when none is, or when that was the folder of a node that is removed. */
  settle(): Promise<void>;
  /** Whether this node has the folder. */
  reached(): boolean;
  /** Whether work on all snapshots is this node's: it has the folder, or the one that has it does not run. */
  mayTend(): Promise<boolean>;
  /** 'unavailable', with the name of the node that has it. */
  require(): void;
  /** The archive, which does nothing where the folder is another one. */
  readonly archive: SnapshotArchive;
}

export const createSnapshotFolder = (
  { store, clock, log }: Pick<Ports, 'store' | 'clock' | 'log'>,
  archive: SnapshotArchive,
  fleet: Pick<Fleet, 'id' | 'name' | 'nodes' | 'others'>,
): SnapshotFolder => {
  const shared = store.link !== undefined;
  /** As the store has it: the mark, and the node that made it. */
  let known: { readonly mark: string; readonly nodeId: string; readonly nodeName: string } | undefined;
  const reached = (): boolean => !shared || (known !== undefined && archive.mark() === known.mark);
  const require = (): void => {
    if (reached()) return;
    throw new ServiceError(
      'unavailable',
      `snapshots lie on node ${known?.nodeName ?? 'another node'}, not on this one`,
      {
        hint: `ask that node, or give every node one folder that all of them reach: snapshots.directory in dke.toml (here ${archive.directory})`,
      },
    );
  };

  const settle = async (): Promise<void> => {
    if (!shared) return;
    const others = new Set((await fleet.others()).map(({ id }) => id));
    const own = archive.mark() ?? newId(clock.now());
    known = await store.write(async (tx) => {
      const text = await tx.settings.get(folderSetting);
      const before = text === undefined ? undefined : (JSON.parse(text) as NonNullable<typeof known>);
      const isLost = before !== undefined && before.nodeId !== fleet.id && !others.has(before.nodeId);
      if (before !== undefined && !isLost) return before;
      const now = { mark: own, nodeId: fleet.id, nodeName: fleet.name };
      archive.setMark(own);
      await tx.settings.set(folderSetting, JSON.stringify(now));
      return now;
    });
    if (!reached())
      log.warn('this node has not got the folder of the snapshots: it makes, shows and restores none', {
        directory: archive.directory,
        node: known.nodeName,
      });
  };

  /** Everything that touches a file. */
  const guarded: SnapshotArchive = {
    ...archive,
    begin: async (...given) => {
      require();
      return archive.begin(...given);
    },
    inspect: async (...given) => {
      require();
      return archive.inspect(...given);
    },
    preface: async (...given) => {
      require();
      return archive.preface(...given);
    },
    items: (...given) => {
      require();
      return archive.items(...given);
    },
    erase: async (...given) => {
      require();
      return archive.erase(...given);
    },
    has: (id) => {
      require();
      return archive.has(id);
    },
    rename: (from, to) => {
      require();
      archive.rename(from, to);
    },
    remove: (id) => {
      require();
      archive.remove(id);
    },
    receive: async (...given) => {
      require();
      return archive.receive(...given);
    },
    content: (id) => {
      require();
      return archive.content(id);
    },
  };
  const mayTend = async (): Promise<boolean> => {
    if (reached() || known === undefined) return reached();
    const holder = (await fleet.nodes()).find(({ id }) => id === known?.nodeId);
    if (holder === undefined || holder.state === 'removed') await settle();
    return reached() || holder?.state !== 'active';
  };
  return { settle, reached, mayTend, require, archive: guarded };
};
