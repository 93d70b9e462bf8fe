// Handlers of snapshots.

import { toRfc3339 } from '../../../base/time.ts';
import type { Snapshot, SnapshotRestore } from '../../../contract/api/snapshots-routes.ts';
import type { Snapshot as Held } from '../../../domain/snapshot.ts';
import type { Operations } from '../../../operations/index.ts';
import type { RuledRestore } from '../../../operations/snapshots/snapshots-operations.ts';
import { StreamedFile } from '../export.ts';
import { representCopies, representPage } from '../represent.ts';
import { representCopy } from './copies-handlers.ts';
import type { Handlers } from './handler.ts';

const moment = (at: number | null): string | null => (at === null ? null : toRfc3339(at));
const day = 86_400_000;

const represent =
  (undeleteDays: number) =>
  (snapshot: Held): Snapshot => ({
    id: snapshot.id,
    tenantId: snapshot.tenantId,
    origin: snapshot.origin,
    state: snapshot.state,
    at: toRfc3339(snapshot.createdAt),
    size: snapshot.size,
    rows: snapshot.counts?.rows ?? {},
    keys: snapshot.counts?.rows.keys ?? 0,
    omitted: snapshot.counts?.omitted ?? 0,
    erased: snapshot.counts?.erased ?? 0,
    recoveryKeyIds: snapshot.recoveryKeyIds,
    signer: snapshot.signer,
    verification:
      snapshot.verification === null ? null : { ...snapshot.verification, at: toRfc3339(snapshot.verification.at) },
    verifiedAt: moment(snapshot.verifiedAt),
    deletedAt: moment(snapshot.deletedAt),
    purgeAt:
      snapshot.state === 'deleted' && snapshot.deletedAt !== null
        ? toRfc3339(snapshot.deletedAt + undeleteDays * day)
        : null,
    purgedAt: moment(snapshot.purgedAt),
    failure: snapshot.failure,
    tampered: snapshot.integrity !== 'ok',
  });

const representRestore = (dryRun: boolean, outcome: RuledRestore): SnapshotRestore => ({
  dryRun,
  ...outcome,
  stayDestroyed: outcome.stayDestroyed.map((each) => ({ ...each, destroyedAt: toRfc3339(each.destroyedAt) })),
});

export const snapshotsHandlers = ({ snapshots }: Operations): Handlers['snapshots'] => {
  const shower = async (): Promise<(snapshot: Held) => Snapshot> =>
    represent((await snapshots.schedule()).settings.undeleteDays);
  const show = async (snapshot: Held): Promise<Snapshot> => (await shower())(snapshot);
  return {
    create: async ({ actor, body }) => {
      const made = await snapshots.create(actor, body.tenantId ?? null);
      return { id: made.id, answer: await show(made) };
    },
    list: async ({ actor, query }) => representPage(await snapshots.list(actor, query), await shower()),
    schedule: async ({ actor }) => {
      const { settings, next } = await snapshots.schedule();
      const directory = actor.reach === actor.tenantId ? null : settings.directory;
      return { ...settings, directory, next: moment(next) };
    },
    get: async ({ actor, path }) => show(await snapshots.get(actor, path.id)),
    exports: async ({ actor, path }) => ({ items: (await snapshots.exports(actor, path.id)).map(representCopy) }),
    delete: async ({ actor, path }) => show(await snapshots.delete(actor, path.id)),
    undelete: async ({ actor, path }) => show(await snapshots.undelete(actor, path.id)),
    export: async ({ actor, path }) =>
      new StreamedFile('application/octet-stream', `${path.id}.dkesnap`, await snapshots.export(actor, path.id)),
    import: async ({ actor, query, file }) => {
      const held = await snapshots.import(actor, file, query.signer);
      return { id: held.id, answer: await show(held) };
    },
    open: async ({ actor, path, body }) => {
      const opening = await snapshots.beginOpening(actor, path.id, body.recoveryKeyId);
      return { id: opening.id, answer: { ...opening, expiresAt: toRfc3339(opening.expiresAt) } };
    },
    verify: async ({ actor, path }) => show(await snapshots.verify(actor, path.id, null)),
    verifyOpened: async ({ actor, path, body }) => show(await snapshots.verify(actor, path.id, body)),
    restore: async ({ actor, path, query, body }) => {
      const run = query.dryRun === true;
      const { openingId, sealedKey, tenantId = null, newTenant = null } = body;
      const request = { tenantId, newTenant, dryRun: run };
      return representRestore(run, await snapshots.restore(actor, path.id, { openingId, sealedKey }, request));
    },
    ofKey: async ({ actor, path }) => representCopies(await snapshots.ofKey(actor, path.id)),
  };
};
