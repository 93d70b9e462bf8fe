// The redo of an instance: its logs, each under a key of its own, and what is applied from them.
import type { Core } from './core.ts';
import { under } from './current-key.ts';
import { OraError } from './ora-error.ts';
import type { DatabaseProcess } from './process.ts';
import type { Row } from './views.ts';

const filesByNumber = (core: Core): Record<string, string> => {
  return Object.fromEntries(core.control.files.map(({ number, file }) => [`file.${number}`, core.path(file)]));
};

/** Applies the redo since the last checkpoint; answers how many changes the blocks did not have. */
export const replay = async (core: Core, by: DatabaseProcess): Promise<number> => {
  await core.attach(by);
  let applied = 0;
  for (let sequence = core.control.redo.checkpoint; sequence <= core.control.redo.current; sequence += 1) {
    const redo = core.redo(sequence);
    applied += (await core.do(by, 'replay', { redo, ...filesByNumber(core) })).applied ?? 0;
  }
  core.control.redo.checkpoint = core.control.redo.current;
  core.lazy = false;
  core.save();
  return applied;
};

export const switchLog = async (core: Core): Promise<readonly Row[]> => {
  const lgwr = core.process('lgwr');
  const root = core.control.containers[0];
  const key = root === undefined ? undefined : (root.keys.all ?? root.keys.tablespace);
  const sequence = core.control.redo.current + 1;
  const usable = key !== undefined && core.openIn.has(1);
  if (key !== undefined && !usable) throw new OraError('ORA-28365');
  if (usable) await core.attach(lgwr);
  await core.do(lgwr, 'create-redo', {
    path: core.redo(sequence),
    sequence,
    ...(usable ? under(core, 'tablespace', key) : {}),
  });
  core.control.redo.current = sequence;
  core.save();
  return [];
};
