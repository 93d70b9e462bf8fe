// How an instance starts and ends, and what is done next to SQL: backup and restore, and a standby.
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readControlFile } from './control-file.ts';
import { copyDatabase } from './copy-database.ts';
import type { Core } from './core.ts';
import { openAutomatically, readConfiguration } from './keystores.ts';
import { OraError } from './ora-error.ts';
import { staticParameters } from './parameters.ts';
import { writeDriverProfile } from './profile.ts';
import { replay } from './redo.ts';
import type { Row } from './views.ts';

export const startUp = async (core: Core, mount: boolean): Promise<readonly Row[]> => {
  if (core.state !== 'down') throw new OraError('ORA-01081');
  writeDriverProfile(core.profile, core.path('profile'));
  mkdirSync(core.host.traces, { recursive: true });
  core.alert(`Starting ORACLE instance ${core.name} (${core.profile.title}, simulated)`);
  const { parameters } = core.control;
  core.static = Object.fromEntries(
    staticParameters.flatMap((name) => (parameters[name] === undefined ? [] : [[name, parameters[name]]])),
  );
  core.order = readConfiguration(core);
  const standby = core.control.role === 'standby';
  for (const role of ['gen0', 'fg0', 'lgwr', ...(standby ? ['mrp0'] : [])]) core.table.start(role);
  core.session = { container: 1, process: core.process('fg0') };
  core.state = 'mounted';
  if (!existsSync(core.redo()))
    await core.do(core.process('lgwr'), 'create-redo', { path: core.redo(), sequence: core.control.redo.current });
  if (core.order.includes('F') && existsSync(core.automatic)) await openAutomatically(core);
  return mount ? [] : await openDatabase(core);
};

export const openDatabase = async (core: Core): Promise<readonly Row[]> => {
  if (core.control.role === 'primary' && !core.control.clean && !core.isMember) {
    core.alert('Beginning crash recovery');
    const applied = await replay(core, core.process('fg0'));
    core.alert(`Completed crash recovery: ${applied} changes`);
  }
  core.state = 'open';
  core.control.clean = false;
  core.save();
  return [];
};

/** SIGKILL to every process at once. */
export const die = async (core: Core): Promise<void> => {
  core.state = 'down';
  await Promise.all(core.table.all().map((each) => each.kill()));
  core.down();
};

export const shutDown = async (core: Core, mode: 'IMMEDIATE' | 'ABORT'): Promise<readonly Row[]> => {
  if (mode === 'ABORT') {
    await die(core);
    return [];
  }
  if (core.control.role === 'primary' && core.state === 'open') {
    // What is in memory only is written: the rows of the redo that no block has yet.
    if (core.lazy) await replay(core, core.process('fg0'));
    core.control.redo.checkpoint = core.control.redo.current;
    core.control.clean = true;
  }
  core.save();
  await Promise.all(core.table.all().map((each) => each.stop()));
  core.down();
  return [];
};

export const rman = async (core: Core, command: 'restore' | 'recover' | 'list'): Promise<readonly Row[]> => {
  if (command === 'list') return core.backup === null ? [] : [{ KEY: 1, TY: 'B', S: 'A' }];
  if (core.state !== 'mounted') throw new OraError('ORA-01034', 'not mounted');
  if (command === 'recover') {
    await replay(core, core.process('fg0'));
    return [];
  }
  const saved = core.backup === null ? undefined : readControlFile(join(core.backup, 'control'));
  if (core.backup === null || saved === undefined) throw new OraError('RMAN-06023');
  copyDatabase(core.backup, core.directory, ['data'], ['control', 'sqlnet.ora']);
  for (const part of ['containers', 'files', 'tables', 'keys', 'redo'] as const)
    core.control[part] = structuredClone(saved[part]) as never;
  core.control.nextNumber = saved.nextNumber;
  core.control.clean = saved.clean;
  core.save();
  return [];
};

/**
 * Redo transport and apply: fetches the primary's new redo and lets mrp0 apply it. Returns the
 * number of changes.
 */
export const applyFrom = async (core: Core, primary: Core): Promise<number> => {
  const { control } = core;
  for (let sequence = control.redo.checkpoint; sequence <= primary.control.redo.current; sequence += 1)
    copyFileSync(primary.redo(sequence), core.redo(sequence));
  for (const part of ['containers', 'files', 'tables', 'keys'] as const)
    control[part] = structuredClone(primary.control[part]) as never;
  control.nextNumber = primary.control.nextNumber;
  control.redo.current = primary.control.redo.current;
  for (const { file } of control.files) mkdirSync(dirname(core.path(file)), { recursive: true });
  return await replay(core, core.process('mrp0'));
};
