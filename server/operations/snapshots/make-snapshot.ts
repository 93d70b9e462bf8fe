// Makes a snapshot of a tenant: one state, read from beginning to end while others write. Every key
// is opened in the addon and sealed to the recovery keys; the service keeps nothing with which it
// could open the file again.

import { verifierKey } from '../../base/checkpoint.ts';
import { newId } from '../../base/ids.ts';
import { otherWork } from '../../base/next-turn.ts';
import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import type { Actor } from '../../domain/actor.ts';
import type { Snapshot, SnapshotOrigin } from '../../domain/snapshot.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import type { OwnedRecord } from '../../ports/key-record.ts';
import type { Ports } from '../../ports/ports.ts';
import type { SnapshotMaterial, SnapshotWriter } from '../../ports/snapshot-archive.ts';
import type { Repositories } from '../../ports/store.ts';
import type { TenantRow, TenantTable } from '../../ports/tenant-rows.ts';
import { auditOrigin } from '../audit/audit-origin.ts';
import { showTenant } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { setMaker, settleUnfinished } from './erase-destroyed.ts';
import { recipientsOf } from './recovery-keys.ts';
import { ownSigners } from './verify-snapshot.ts';

export type MakePorts = Pick<Ports, 'store' | 'ring' | 'core' | 'archive' | 'exclusion' | 'clock' | 'log' | 'fleet'>;

/**
 * Rows read at once: little enough that a request that comes in in the meantime does not notice.
 */
const pageSize = 50;
/** Applications that the record of a snapshot names. */
const mostNamed = 20;

export const signerOf = async (ring: Ports['ring'], from: Repositories): Promise<string> =>
  verifierKey(await auditOrigin(from), ring.auditPublicKey());

/**
 * Opens what there is of each version of a unit's key, and hands it on. Answers how many versions
 * did not open.
 */
const carryUnit = async (
  { ring, core, archive, log }: Pick<Ports, 'ring' | 'core' | 'archive' | 'log'>,
  writer: SnapshotWriter,
  id: string,
  records: readonly OwnedRecord[],
): Promise<number> => {
  const byVersion = Map.groupBy(records, ({ version }) => version);
  const materials: SnapshotMaterial[] = [];
  const opened: KeyRef[] = [];
  let lost = 0;
  try {
    for (const [version, copies] of byVersion) {
      let carried: { readonly key: KeyRef; readonly copies: string[] } | undefined;
      for (const record of copies) {
        let key: KeyRef;
        try {
          key = ring.open(record);
        } catch (error) {
          if (!(error instanceof ServiceError) || error.code !== 'key-tampered') throw error;
          continue;
        }
        opened.push(key);
        // Two copies of one version are of one key; of two that are not, neither can be said to be
        // right.
        if (carried !== undefined && archive.checkOf(carried.key) !== archive.checkOf(key)) {
          carried = undefined;
          break;
        }
        carried ??= { key, copies: [] };
        carried.copies.push(record.class);
      }
      const attributes = copies[0]?.attributes ?? '';
      if (carried === undefined) {
        lost += 1;
        log.error('a key cannot be opened: the snapshot does not contain it', { id, version });
      } else {
        // A copy that is damaged comes back with the other: what stood there is what is restored.
        materials.push({ version, copies: copies.map((each) => each.class), attributes, key: carried.key });
      }
    }
    if (materials.length > 0) await writer.unit(id, materials);
    return lost;
  } finally {
    for (const key of opened) core.release(key);
  }
};

interface Carried {
  /** How many rows and keys were damaged. */
  readonly omitted: number;
  /**
   * Applications with an access_guid that an earlier version issued and that was not used since:
   * only this service can check it. No secret of the service leaves for it.
   */
  readonly rotate: ReadonlySet<string>;
}

/** Writes every row of a tenant, and the keys of those that were not changed from outside. */
const carryTenant = async (
  ports: MakePorts,
  from: Repositories,
  writer: SnapshotWriter,
  tenantId: string,
): Promise<Carried> => {
  const { ring } = ports;
  let omitted = 0;
  const applications = new Map<string, string>();
  const rotate = new Set<string>();
  const carryRow = async (table: TenantTable, { row, integrity }: TenantRow): Promise<void> => {
    if (integrity !== 'ok') omitted += 1;
    else if (table === 'tde_applications') applications.set(String(row.id), String(row.name));
    else if (table === 'access_guids' && row.removed_at == null && ring.hashNeedsKey(String(row.hash)))
      rotate.add(applications.get(String(row.application_id)) ?? '');
    await writer.row(table, row, integrity !== 'ok');
  };
  const all = from.tenantRows.tables().map((each) => from.tenantRows.of(each));
  for (const { name: table, comesWith: owner } of all) {
    if (owner !== undefined) continue;
    const withIt = all.filter(({ comesWith }) => comesWith === table);
    for (let after: string | undefined; ; ) {
      const page = await from.tenantRows.page(table, tenantId, after, pageSize);
      const ids = page.map(({ row }) => String(row.id));
      const owners = from.tenantRows.owners(table, tenantId, page);
      const records = Map.groupBy(await from.tenantRows.recordsOf([...owners.values()]), ({ objectId }) => objectId);
      const beside = await Promise.all(
        withIt.map(async ({ name, identity: [first] }) => ({
          table: name,
          rows: Map.groupBy(await from.tenantRows.find(name, ids), ({ row }) => String(row[first])),
        })),
      );
      for (const [at, each] of page.entries()) {
        const id = ids[at] ?? '';
        await carryRow(table, each);
        for (const other of beside) for (const row of other.rows.get(id) ?? []) await carryRow(other.table, row);
        const own = records.get(id) ?? [];
        if (own.length > 0) omitted += await carryUnit(ports, writer, id, own);
      }
      await otherWork();
      after = ids.at(-1);
      if (page.length < pageSize) break;
    }
  }
  return { omitted, rotate };
};

export const makeSnapshot =
  (ports: MakePorts) =>
  async (actor: Actor, tenantId: string, origin: SnapshotOrigin): Promise<Snapshot> => {
    const { store, ring, archive, exclusion, clock, log, fleet } = ports;
    const tenant = await showTenant(store.read, tenantId);
    return exclusion.run(async () => {
      await archive.require();
      const createdAt = clock.now();
      const id = newId(createdAt);
      const begun: Snapshot = {
        id,
        tenantId: tenant.id,
        origin,
        state: 'creating',
        createdAt,
        auditSize: 0,
        size: null,
        counts: null,
        recoveryKeyIds: [],
        signer: null,
        verification: null,
        verifiedAt: null,
        deletedAt: null,
        purgedAt: null,
        failure: null,
        integrity: 'ok',
      };
      await recipientsOf(store.read);
      await settleUnfinished(ports);
      await store.write(async (tx) => {
        await tx.snapshots.insert(begun);
        await setMaker(tx, id, fleet.run());
      });
      const toRotate = new Set<string>();
      try {
        const made = await store.snapshot(async (from): Promise<Snapshot> => {
          const recipients = await recipientsOf(from);
          const preface = { snapshotId: id, tenantId: tenant.id, at: toRfc3339(createdAt), schema: store.schema };
          const writer = await archive.begin(preface, recipients);
          try {
            const auditSize = await from.audit.size();
            const checkpoint = (await from.audit.latestCheckpoint())?.note ?? null;
            const { omitted, rotate } = await carryTenant(ports, from, writer, tenant.id);
            for (const name of rotate) toRotate.add(name);
            const signer = await signerOf(ring, from);
            const { closing, size } = await writer.finish(
              { omitted, audit: { size: auditSize, checkpoint }, signer },
              (text) => ring.signAudit(text),
            );
            const { rows, units, materials } = closing;
            return {
              ...begun,
              state: 'available',
              auditSize,
              size,
              counts: { rows, units, materials, omitted, erased: 0 },
              recoveryKeyIds: recipients.map((each) => each.id),
              signer,
            };
          } catch (error) {
            await writer.abandon();
            throw error;
          }
        });
        // What was made is read before it counts.
        const { closing } = await archive.inspect(id, ownSigners(ring));
        const at = clock.now();
        const held: Snapshot = {
          ...made,
          verification: { at, depth: 'sealed', valid: true, finding: null },
          verifiedAt: at,
        };
        await store.write(async (tx) => {
          // Another node settles what seems to have been left in the middle.
          if ((await tx.snapshots.get(id))?.state !== 'creating')
            throw new ServiceError('conflict', 'another node abandoned this snapshot in the meantime', {
              hint: 'create another one',
            });
          // A key that was removed meanwhile would open it, and its removal has not named it.
          const live = new Set((await recipientsOf(tx)).map((each) => each.id));
          if (!made.recoveryKeyIds.every((each) => live.has(each)))
            throw new ServiceError('conflict', 'a recovery key was removed while the snapshot was created', {
              hint: 'create another one',
            });
          await tx.snapshots.update(held);
          await setMaker(tx, id, null);
          await recordEvent(tx, 'snapshot.created', actor, about('snapshot', { id, tenantId: tenant.id }), {
            origin,
            keys: closing.rows.keys ?? 0,
            units: closing.units,
            omitted: closing.omitted,
            size: made.size,
            recoveryKeys: made.recoveryKeyIds,
            digest: closing.digest,
            ...(toRotate.size === 0 ? {} : { rotate: [...toRotate].slice(0, mostNamed) }),
          });
        });
        return held;
      } catch (error) {
        const failure = error instanceof ServiceError ? error.message : 'an internal error';
        log.error('a snapshot could not be created', { snapshotId: id, error });
        try {
          await archive.remove(id);
        } catch (again) {
          log.error('the incomplete file of the snapshot could not be removed', { snapshotId: id, error: again });
        }
        await store
          .write(async (tx) => {
            if ((await tx.snapshots.get(id))?.state !== 'creating') return;
            await tx.snapshots.update({ ...begun, state: 'failed', failure });
            await setMaker(tx, id, null);
            await recordEvent(tx, 'snapshot.failed', actor, about('snapshot', { id, tenantId: tenant.id }), {
              origin,
              reason: failure,
            });
          })
          .catch((again: unknown) => log.error('the failure could not be recorded', { snapshotId: id, error: again }));
        throw error;
      }
    });
  };
