// The one folder of snapshots that all nodes use. What makes a destroyed key unrecoverable is that
// it is overwritten in every snapshot, where it is: in another folder, or on the bare mount point
// of a disk that is not mounted, nothing is found, and that would count as done. So the folder has
// a mark, the store knows it, and it is compared before a file is used. Where it is another one, or
// none, snapshots are left alone.

import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Fleet } from '../../ports/fleet.ts';
import type { Ports } from '../../ports/ports.ts';
import type { SnapshotArchive } from '../../ports/snapshot-archive.ts';
import { listSnapshots } from './erase-destroyed.ts';

export const folderSetting = 'snapshot-folder';

export interface SnapshotFolder {
  /**
   * At start, and when a node was removed. Marks the folder at the first start, when it has the
   * snapshots and lost its mark, or when the one that was marked was that of a node that is
   * removed.
   */
  settle(): Promise<void>;
  /** Whether this node has the folder. */
  reached(): Promise<boolean>;
  /** Whether the node that should have the folder has it not. */
  away(): Promise<boolean>;
  /**
   * Whether work on all snapshots is this node's: it has the folder, or the one that has it does
   * not run.
   */
  mayTend(): Promise<boolean>;
  /** 'unavailable', with the name of the node that has it, or what to do. */
  require(): Promise<void>;
  /** The archive, which does nothing where the folder is another one. */
  readonly archive: SnapshotArchive;
}

export const createSnapshotFolder = (
  { store, clock, log }: Pick<Ports, 'store' | 'clock' | 'log'>,
  archive: SnapshotArchive,
  fleet: Pick<Fleet, 'id' | 'name' | 'nodes' | 'others'>,
): SnapshotFolder => {
  const shared = store.link !== undefined;
  /** The snapshot folder according to the store: its mark, and the node that made the mark. */
  let known: { readonly mark: string; readonly nodeId: string; readonly nodeName: string } | undefined;
  const reached = async (): Promise<boolean> => known !== undefined && (await archive.mark()) === known.mark;
  const isOurs = (): boolean => !shared || known?.nodeId === fleet.id;
  const fault = (): ServiceError =>
    isOurs()
      ? new ServiceError(
          'unavailable',
          `${archive.directory} is not the snapshot folder: its disk is not mounted, or it is the wrong folder`,
          {
            hint: `mount the disk, or correct snapshots.directory in dke.toml; if the files are permanently lost, use this folder from now on: printf '%s\\n' ${known?.mark} > ${archive.directory}/folder`,
          },
        )
      : new ServiceError('unavailable', `snapshots are on node ${known?.nodeName ?? 'another node'}, not on this one`, {
          hint: `send the request to that node, or set snapshots.directory in dke.toml to a folder that all nodes share (here ${archive.directory})`,
        });
  const require = async (): Promise<void> => {
    if (!(await reached())) throw fault();
  };

  const settle = async (): Promise<void> => {
    const others = new Set((await fleet.others()).map(({ id }) => id));
    const expected = await listSnapshots(store.read, ['available', 'deleted', 'missing']);
    // A folder without a mark that has one of the snapshots is accepted: it is from before there
    // were marks, or was moved without its mark.
    let hasThem = expected.length === 0;
    for (const { id } of expected) hasThem ||= await archive.has(id);
    const found = await archive.mark();
    known = await store.write(async (tx) => {
      const text = await tx.decisions.get(folderSetting);
      const before = text === undefined ? undefined : (JSON.parse(text) as NonNullable<typeof known>);
      const isOthers = shared && before !== undefined && before.nodeId !== fleet.id;
      if (isOthers && others.has(before.nodeId)) return before;
      // With snapshots to be found in it, the folder that was marked stays the folder, unless its
      // node is removed.
      const kept = isOthers || (expected.length === 0 && found !== undefined) ? undefined : before?.mark;
      const mark = kept ?? found ?? newId(clock.now());
      const now = { mark, nodeId: fleet.id, nodeName: fleet.name };
      if (found === undefined && (hasThem || isOthers)) await archive.setMark(mark);
      if (before?.mark !== mark || isOthers) await tx.decisions.set(folderSetting, JSON.stringify(now));
      return now;
    });
    if (await reached()) return;
    const { message, hint } = fault();
    log.warn(message, { hint });
  };

  /** Everything that touches a file. */
  const guarded: SnapshotArchive = {
    ...archive,
    reached,
    require,
    begin: async (...given) => {
      await require();
      return archive.begin(...given);
    },
    inspect: async (...given) => {
      await require();
      return archive.inspect(...given);
    },
    preface: async (...given) => {
      await require();
      return archive.preface(...given);
    },
    async *items(...given) {
      await require();
      yield* archive.items(...given);
    },
    erase: async (...given) => {
      await require();
      return archive.erase(...given);
    },
    has: async (id) => {
      await require();
      return archive.has(id);
    },
    rename: async (from, to) => {
      await require();
      await archive.rename(from, to);
    },
    remove: async (id) => {
      await require();
      await archive.remove(id);
    },
    receive: async (...given) => {
      await require();
      return archive.receive(...given);
    },
    content: async (id) => {
      await require();
      return archive.content(id);
    },
  };
  const mayTend = async (): Promise<boolean> => {
    if (known === undefined || (await reached())) return known !== undefined;
    const holder = (await fleet.nodes()).find(({ id }) => id === known?.nodeId);
    if (holder === undefined || holder.state === 'removed') await settle();
    return (await reached()) || isOurs() || holder?.state !== 'active';
  };
  return { settle, reached, away: async () => isOurs() && !(await reached()), mayTend, require, archive: guarded };
};
