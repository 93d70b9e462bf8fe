// What holds an erasure run back: it is reported once, in the log and the audit log, until it
// changes.

import { canonicalJson } from '../../base/bytes.ts';
import type { Actor } from '../../domain/actor.ts';
import type { ErasureBlockers } from '../../ports/erasure.ts';
import type { Ports } from '../../ports/ports.ts';
import { aboutService, recordEvent } from '../shared/record-event.ts';
import { type DamagedRecord, describeDamage } from './reseal-records.ts';

type HoldPorts = Pick<Ports, 'store' | 'root' | 'clock' | 'log'>;

/** Subjects that the audit log names. */
export const mostNamed = 20;
/** What held the last run back, and since when. */
export const heldSetting = 'erasure-held';

/** Answers since when it holds. `told` identifies it. */
const reportOnce = async (
  { store, root, clock, log }: HoldPorts,
  actor: Actor,
  told: string,
  message: string,
  details: Readonly<Record<string, unknown>>,
): Promise<number> => {
  const before = await store.read.settings.get(heldSetting);
  if (before?.startsWith(`${told} `) === true) return Number(before.slice(told.length + 1));
  const since = clock.now();
  log.error(message, details);
  await store.write(async (tx) => {
    await tx.settings.set(heldSetting, `${told} ${since}`);
    await recordEvent(tx, 'erasure.blocked', actor, aboutService(), { rootEpoch: root.current.epoch, ...details });
  });
  return since;
};

const nothing: Omit<ErasureBlockers, 'since'> = { records: [], nodes: [], standbys: [], snapshots: [] };

/** The old root key stays: a good backup of the records opens only with it. */
export const holdForRecords = async (
  ports: HoldPorts,
  actor: Actor,
  damaged: readonly DamagedRecord[],
): Promise<ErasureBlockers> => {
  const records = await describeDamage(ports.store.read, damaged);
  const since = await reportOnce(
    ports,
    actor,
    canonicalJson(records.map(({ id, version, copy }) => `${copy} ${version} ${id}`)),
    'the erasure run is blocked: stored records cannot be opened (dke status names them)',
    {
      records: records.length,
      subjects: records.slice(0, mostNamed).map(({ kind, id, name, copy }) => ({ kind, id, name, copy })),
    },
  );
  return { ...nothing, since, records };
};

const waitsFor = {
  nodes: 'the erasure run waits for nodes: start them, or remove them (dke node remove NAME)',
  standbys:
    'the erasure run waits for copies of the database that have not stored the new records: bring them up to date, drop their replication slots, or release a removed standby (dke root release-copy NAME)',
  snapshots:
    'the erasure run waits for missing snapshot files: mount their disk or restore them, or delete the snapshots',
} as const;

/** For what an operator must bring back or give up. */
export const holdFor = async (
  ports: HoldPorts,
  actor: Actor,
  what: keyof typeof waitsFor,
  names: readonly string[],
): Promise<ErasureBlockers> => {
  const told = `${what} ${canonicalJson([...names].sort())}`;
  const since = await reportOnce(ports, actor, told, waitsFor[what], { [what]: names });
  return { ...nothing, since, [what]: names };
};
