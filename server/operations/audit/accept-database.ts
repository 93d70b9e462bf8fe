// An operator accepts a database that does not match the checkpoint stored with the root key.

import { parseCheckpoint } from '../../base/checkpoint.ts';
import { newId } from '../../base/ids.ts';
import { type Actor, serviceActor } from '../../domain/actor.ts';
import type { Unsound } from '../../domain/audit-finding.ts';
import type { Ports } from '../../ports/ports.ts';
import { aboutService, recordEvent } from '../shared/record-event.ts';
import { nameLog, originSetting } from './audit-origin.ts';
import { expectedOf, isNamedAnew, restoredSetting, sizeOf } from './compare-log.ts';

/**
 * The log continues under a new name, and records that. `nameAtStart`: its name when this node
 * started.
 */
export const acceptDatabase = async (
  { store, root, clock, log }: Pick<Ports, 'store' | 'root' | 'clock' | 'log'>,
  {
    finding,
    actor,
    nameAtStart,
  }: { readonly finding: Unsound; readonly actor: Actor | undefined; readonly nameAtStart: string | undefined },
): Promise<void> => {
  log.warn('the database was accepted although it does not match the checkpoint next to the root key', {
    ...finding,
  });
  store.committed?.accept();
  const note = root.anchor.read();
  // Every node is confirmed. With another name for each, the checkpoints of those before would no
  // longer be of this log.
  const isNamed =
    ['lost-changes', 'older'].includes(finding.state) && (await isNamedAnew({ store, root }, nameAtStart));
  await store.rowSet.adopt((note === undefined ? null : parseCheckpoint(note))?.rows?.version ?? 0);
  await store.write(async (tx) => {
    const former = (await tx.decisions.get(originSetting)) ?? null;
    if (!isNamed) {
      await nameLog(tx, clock.now());
      await tx.audit.dropCheckpoints();
    }
    await tx.decisions.set(restoredSetting, null);
    await recordEvent(tx, 'audit-log.accepted', actor ?? serviceActor(newId(clock.now())), aboutService('audit-log'), {
      state: finding.state,
      size: sizeOf(finding),
      expected: expectedOf(finding),
      former,
    });
  });
};
