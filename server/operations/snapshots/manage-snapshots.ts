// Snapshots as they are kept: listed, exported, imported, deleted with a time in which that can be undone, purged by the clock; and which
// of them may still hold a key.

import { parseVerifierKey, publicKeyOf } from '../../base/checkpoint.ts';
import { toRfc3339 } from '../../base/clock.ts';
import { ServiceError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { type Actor, inTenant, type TenantActor } from '../../domain/actor.ts';
import type { KeyCopies } from '../../domain/key.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { Snapshot, SnapshotExport } from '../../domain/snapshot.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { SnapshotFilter } from '../../ports/snapshots.ts';
import type { Approvals } from '../approvals/governed-operation.ts';
import { findCopies } from '../keys/key-copies.ts';
import { findKey, vaultsOf } from '../shared/find.ts';
import { byId, pageOf } from '../shared/paging.ts';
import { eraseUnits, listSnapshots, settleUnfinished } from './erase-destroyed.ts';
import { findSnapshot } from './find-snapshot.ts';
import { inspectFile, ownSigners, requireTrusted } from './verify-snapshot.ts';

export interface SnapshotSettings {
  readonly directory: string;
  /** Cron expression, UTC; null: none is made by the clock. */
  readonly schedule: string | null;
  /** Scheduled ones that are kept of each tenant, and for how long; null: no limit. */
  readonly keepCount: number | null;
  readonly keepDays: number | null;
  /** How long a deletion can be undone. */
  readonly undeleteDays: number;
  /** Verifier keys of other services whose snapshots may be imported. */
  readonly trustedSigners: readonly string[];
  /** Whether a restore that creates credentials, brings back into use what was disabled or removed, or sets attributes back waits for a second person. */
  readonly restoreSecondPerson: boolean;
}

type ManagePorts = Pick<Ports, 'store' | 'ring' | 'archive' | 'exclusion' | 'clock' | 'deadlines' | 'log'>;

/** What is known of the whereabouts of a key in snapshots. */
export interface KeySnapshots {
  readonly keyId: string;
  /** Copies that left the service, and may hold the key: those who have one and a recovery key have the key. */
  readonly exported: readonly SnapshotExport[];
  /** What restores have made of it in other tenants. */
  readonly copies: KeyCopies;
}

const day = 86_400_000;
const subjectOf = (id: string) => ({ kind: 'snapshot', id }) as const;

export const manageSnapshots = (
  ports: ManagePorts,
  { withApproval }: Pick<Approvals, 'withApproval'>,
  settings: SnapshotSettings,
) => {
  const { store, ring, archive, exclusion, clock, deadlines } = ports;

  /** Under the rules of all vaults of the tenant: any of their keys may be in it. Recorded before the first byte leaves. */
  const governedExport = withApproval('snapshot.export', {
    permission: 'snapshots:export',
    by: 'requester',
    plan: async (from, _tenantId, { snapshotId }: { readonly snapshotId: string }) => {
      const { tenantId, createdAt, size, counts } = await findSnapshot(from, snapshotId, ['held']);
      if (!archive.has(snapshotId))
        throw new ServiceError('conflict', 'the file of the snapshot is missing', {
          hint: 'restore it from a copy with dke snapshot import, or create another snapshot',
        });
      const at = toRfc3339(createdAt);
      return {
        tenantId,
        subject: { ...subjectOf(snapshotId), name: at },
        vaults: await vaultsOf(from, tenantId),
        impact: { size, keys: counts?.rows.keys ?? 0 },
        state: { at },
      };
    },
    carryOut: async (tx, actor, { snapshotId }) => {
      const { tenantId, createdAt, size } = await findSnapshot(tx, snapshotId, ['held']);
      const at = clock.now();
      await tx.snapshots.insertExport({
        id: newId(at),
        snapshotId,
        at,
        actorId: actor.id,
        actorName: actor.name,
        createdAt,
      });
      await tx.audit.append({
        kind: 'snapshot.exported',
        actor,
        tenantId,
        subject: subjectOf(snapshotId),
        details: { size },
      });
      return { answer: undefined, afterCommit: () => Promise.resolve() };
    },
  });

  const remove = async (actor: Actor, id: string, reach: TenantScope): Promise<Snapshot> =>
    store.write(async (tx) => {
      const before = await findSnapshot(tx, id, ['held', 'missing'], reach);
      const deletedAt = await deadlines.latest();
      // There is no file to undelete: the person who deletes the snapshot confirms that it is destroyed.
      if (before.state === 'missing') {
        const purged: Snapshot = { ...before, state: 'purged', deletedAt, purgedAt: deletedAt };
        await tx.snapshots.update(purged);
        await tx.audit.append({
          kind: 'snapshot.purged',
          actor,
          tenantId: before.tenantId,
          subject: subjectOf(id),
          details: { origin: before.origin },
        });
        return purged;
      }
      const after: Snapshot = { ...before, state: 'deleted', deletedAt };
      await tx.snapshots.update(after);
      await tx.audit.append({
        kind: 'snapshot.deleted',
        actor,
        tenantId: before.tenantId,
        subject: subjectOf(id),
        details: { origin: before.origin, purgeAt: toRfc3339(deletedAt + settings.undeleteDays * day) },
      });
      return after;
    });

  return {
    list: async ({ reach }: TenantActor, query: PageRequest & SnapshotFilter): Promise<Page<Snapshot>> => {
      const tenantId = reach === everyTenant ? query.tenantId : reach;
      // Of another tenant that is asked for, there are none.
      if (query.tenantId !== undefined && query.tenantId !== tenantId) return { items: [], next: null };
      return pageOf(query, (window) => store.read.snapshots.list({ ...query, tenantId }, window), byId);
    },
    get: ({ reach }: TenantActor, id: string) => findSnapshot(store.read, id, undefined, reach),
    exports: async ({ reach }: TenantActor, id: string) => {
      await findSnapshot(store.read, id, undefined, reach);
      return store.read.snapshots.exports(id);
    },
    settings: () => settings,
    delete: (actor: TenantActor, id: string) => remove(actor, id, actor.reach),
    undelete: (actor: TenantActor, id: string): Promise<Snapshot> =>
      store.write(async (tx) => {
        const before = await findSnapshot(tx, id, ['deleted'], actor.reach);
        if (!archive.has(id))
          throw new ServiceError('conflict', 'the file of the snapshot is missing', {
            hint: 'restore it from a copy with dke snapshot import, or create another snapshot',
          });
        const after: Snapshot = { ...before, state: 'held', deletedAt: null };
        await tx.snapshots.update(after);
        await tx.audit.append({
          kind: 'snapshot.undeleted',
          actor,
          tenantId: before.tenantId,
          subject: subjectOf(id),
          details: { origin: before.origin },
        });
        return after;
      }),
    /** Throws `ApprovalNeeded` where it waits. */
    export: async (actor: Actor, id: string): Promise<AsyncIterable<Uint8Array>> => {
      const snapshot = await findSnapshot(store.read, id, ['held']);
      const { tenantId } = snapshot;
      // A file that is gone is named by the plan.
      if (archive.has(id)) await inspectFile(ports, actor, snapshot);
      await governedExport.run(inTenant(actor, tenantId), { snapshotId: id });
      return archive.content(id);
    },
    /** `signer`: the verifier key of the service that made it, when that is not this one: one of `trustedSigners`. What is destroyed here is taken out at once. */
    import: async (actor: Actor, body: AsyncIterable<Uint8Array>, signer: string | undefined): Promise<Snapshot> => {
      const given = signer === undefined ? null : parseVerifierKey(signer);
      if (signer !== undefined && given === null)
        throw new ServiceError('validation', 'signer is not a verifier key', {
          hint: 'use the verifierKey (NAME+ID+KEY) that dke audit log shows on the service that created the snapshot',
        });
      const own = ownSigners(ring);
      if (signer !== undefined) requireTrusted(ring, settings.trustedSigners, signer);
      const other = given === null ? null : publicKeyOf(given);
      const arrived = newId(clock.now());
      return exclusion.run(async () => {
        await archive.receive(arrived, body);
        let id = arrived;
        try {
          const { preface, closing, size, erased } = await archive.inspect(
            arrived,
            other === null ? own : [...own, other],
          );
          const before = await store.read.snapshots.get(preface.snapshotId);
          if (before !== undefined && (before.state === 'held' || before.state === 'deleted') && archive.has(before.id))
            throw new ServiceError('conflict', `this snapshot is already here, and it is ${before.state}`);
          id = preface.snapshotId;
          archive.rename(arrived, id);
          const at = clock.now();
          const { rows, units, materials, leftOut } = closing;
          // Missing until what is destroyed here is erased from the file: should the service end before that, nothing else is done with the file.
          const found: Snapshot = {
            id,
            tenantId: preface.tenantId,
            origin: 'imported',
            state: 'missing',
            createdAt: Date.parse(preface.at),
            auditSize: before?.auditSize ?? 0,
            size,
            counts: { rows, units, materials, leftOut, erased: erased.length },
            recoveryKeyIds: preface.recipients.map((each) => each.recoveryKeyId),
            signer: closing.signer,
            verification: { at, depth: 'sealed', sound: true, finding: null },
            verifiedAt: at,
            deletedAt: null,
            purgedAt: null,
            failure: null,
            integrity: 'ok',
          };
          await store.write(async (tx) => {
            const now = await tx.snapshots.get(id);
            if (now?.state !== before?.state)
              throw new ServiceError('conflict', 'the snapshot was changed in the meantime', {
                hint: 'import it again',
              });
            if (now === undefined) await tx.snapshots.insert(found);
            else await tx.snapshots.update(found);
            await tx.audit.append({
              kind: 'snapshot.imported',
              actor,
              tenantId: preface.tenantId,
              subject: subjectOf(id),
              details: { signer: closing.signer, units, erased: erased.length },
            });
          });
          await eraseUnits(ports, actor, found, new Set(await store.read.tenantRows.destroyedSince(-1)));
          return await store.write(async (tx) => {
            const erased = await findSnapshot(tx, id, ['missing', 'held']);
            const held: Snapshot = { ...erased, state: 'held' };
            await tx.snapshots.update(held);
            return held;
          });
        } catch (error) {
          archive.remove(arrived);
          throw error;
        }
      });
    },
    ofKey: async ({ tenantId, reach }: TenantActor, keyId: string): Promise<KeySnapshots> => {
      const key = await findKey(store.read, tenantId, keyId);
      const sizeAt = async (kind: 'key.created' | 'key.destroyed', otherwise: number): Promise<number> =>
        (await store.read.audit.list(everyTenant, { kind, subjectId: keyId, order: 'oldest' }, { limit: 1 }))[0]
          ?.sequence ?? otherwise;
      const from = await sizeAt('key.created', 0);
      const to = await sizeAt('key.destroyed', Number.MAX_SAFE_INTEGER);
      const exported = await store.read.snapshots.exportsBetween(key.tenantId, from, to);
      // A copy that left after the key had been taken out of it is without the key.
      const { unrecoverableAt } = key;
      return {
        keyId,
        exported: exported.filter(({ at }) => unrecoverableAt === null || at < unrecoverableAt),
        copies: await findCopies(store.read, key, reach),
      };
    },

    /** Scheduled ones that are too many or too old are deleted, and what was deleted long enough ago is purged. */
    tidy: async (actor: Actor): Promise<void> => {
      const now = await deadlines.now();
      const held = await listSnapshots(store.read, ['held']);
      const scheduled = Map.groupBy(
        held.filter(({ origin }) => origin === 'scheduled'),
        ({ tenantId }) => tenantId,
      );
      for (const own of scheduled.values()) {
        const newestFirst = own.toSorted((one, other) => other.createdAt - one.createdAt);
        for (const [at, snapshot] of newestFirst.entries()) {
          const tooMany = settings.keepCount !== null && at >= settings.keepCount;
          const tooOld = settings.keepDays !== null && now - snapshot.createdAt > settings.keepDays * day;
          // The newest one is never too old: it may be the last there is.
          if (tooMany || (tooOld && at > 0)) await remove(actor, snapshot.id, everyTenant);
        }
      }
      // Where the folder is away, files cannot be removed.
      if (!archive.reached()) return;
      const isDue = ({ deletedAt }: Snapshot): boolean =>
        deletedAt !== null && now - deletedAt >= settings.undeleteDays * day;
      for (const { id } of (await listSnapshots(store.read, ['deleted'])).filter(isDue)) {
        await store.write(async (tx) => {
          // It may have been undeleted meanwhile: then its file is needed, so the file is removed in the unit of work that decides.
          const snapshot = await tx.snapshots.get(id);
          if (snapshot?.state !== 'deleted' || !isDue(snapshot)) return;
          archive.remove(id);
          await tx.snapshots.update({ ...snapshot, state: 'purged', purgedAt: now, integrity: 'ok' });
          await tx.audit.append({
            kind: 'snapshot.purged',
            actor,
            tenantId: snapshot.tenantId,
            subject: subjectOf(id),
            details: { origin: snapshot.origin },
          });
        });
      }
    },

    /** At start: what was being made when the process ended. */
    settle: (): Promise<void> => settleUnfinished(ports),
  };
};
