// Restores a snapshot: one unit of work, so that half of it is never visible. A dry run does all of
// it in a copy of the tables, while others change the real ones: what it says is what would happen.

import { hash } from 'node:crypto';
import { canonicalJson } from '../../base/bytes.ts';
import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import { type Actor, inTenant } from '../../domain/actor.ts';
import type { ApprovalRule } from '../../domain/approval.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import type { RestoreRing } from '../../ports/key-ring.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Activated } from '../../ports/tenant-rows.ts';
import type { Window } from '../../ports/window.ts';
import type { Approvals } from '../approvals/governed-operation.ts';
import { findTenant, vaultsOf } from '../shared/find.ts';
import { noteRestore } from '../shared/newest-restore.ts';
import { byId, each, fewAtOnce } from '../shared/paging.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { checkTenantName, createTenantIn, newTenant as makeTenant } from '../tenants/create-tenant.ts';
import { findSnapshot } from './find-snapshot.ts';
import { rememberOpened } from './last-opening.ts';
import { isOwnFile, requireTrusted } from './own-file.ts';
import { type RestoreOutcome, restoreRows } from './restore-rows.ts';
import type { RestoreTarget, RestorePorts as RunningPorts } from './running-restore.ts';
import type { SnapshotSettings } from './snapshot-settings.ts';
import { trustedFor } from './verify-snapshot.ts';

type RestorePorts = Pick<
  Ports,
  'store' | 'ring' | 'core' | 'archive' | 'directory' | 'erasure' | 'exclusion' | 'clock' | 'usage' | 'log'
>;

export interface RestoreRequest {
  /** An existing tenant; null: the one that the snapshot is of. */
  readonly tenantId: string | null;
  /** A new tenant of this name. */
  readonly newTenant: string | null;
  readonly dryRun: boolean;
}

/**
 * What was restored; for a dry run also whose dual control applies (none: it would be done at
 * once).
 */
export type RuledRestore = RestoreOutcome & { readonly rules: readonly ApprovalRule[] };

/**
 * Where others find the request: the snapshot's tenant; where it is not here, the one that it goes
 * into, or the oldest.
 */
const tenantToAskIn = async (from: Repositories, fromTenantId: string, into: string | null): Promise<string> => {
  if ((await from.tenants.stored(fromTenantId)) !== undefined) return fromTenantId;
  return into ?? (await from.tenants.list())[0]?.id ?? fromTenantId;
};

/** The file of a snapshot, and its key. */
interface Opened {
  readonly key: KeyRef;
  readonly file: RestoredFile;
}

/** What lets callers use keys that they could not use before. A rule governs its own change. */
const widensUse = ({ kind, change }: Activated): boolean =>
  kind === 'access-guid' || kind === 'credential' || (kind !== 'dual-control' && change !== 'created');

const widening = ({ activated }: RestoreOutcome): readonly Activated[] => activated.filter(widensUse);

/** The plan that is approved: what becomes active, by name, from which file. */
const planOf = (found: RestoreOutcome, file: string): NonNullable<Wanted['activates']> => {
  const items = widening(found).map(({ kind, change, id, name }) => ({ kind, change, id, name }));
  return {
    names: items.slice(0, mostNamed).map(({ kind, change, name }) => `${kind} ${name} (${change})`),
    count: items.length,
    digest: hash('sha256', canonicalJson({ file, items }), 'hex'),
  };
};

const mostNamed = 100;

const chooseTarget = async (
  { ring, clock }: Pick<RunningPorts, 'ring' | 'clock'>,
  tx: Repositories,
  actor: Actor,
  snapshot: Snapshot,
  { isOwn }: RestoredFile,
  { tenantId, newTenant }: Pick<RestoreRequest, 'tenantId' | 'newTenant'>,
): Promise<RestoreTarget> => {
  const { tenantId: fromTenantId } = snapshot;
  if (newTenant !== null) {
    const now = clock.now();
    // Its own id, where it is free: references to the tenant elsewhere stay valid.
    const id = (await tx.tenants.stored(fromTenantId)) === undefined ? fromTenantId : newId(now);
    await createTenantIn({ ring }, tx, actor, { ...makeTenant(checkTenantName(newTenant), now), id });
    return { tenantId: id, newTenant: true, fromTenantId };
  }
  const id = tenantId ?? fromTenantId;
  if (tenantId === null && (await tx.tenants.stored(id)) === undefined)
    throw new ServiceError('conflict', 'the tenant of the snapshot does not exist here', {
      hint: 'specify an empty tenant, or a name for a new tenant',
    });
  const { state } = await findTenant(tx, id);
  if (state !== 'active' && state !== 'suspended')
    throw new ServiceError('conflict', `the tenant is ${state}`, {
      hint: 'restore the tenant first, or specify a new one',
    });
  if (
    (id !== fromTenantId || !isOwn) &&
    (await tx.tenantRows.count('keys', id)) + (await tx.tenantRows.count('tde_groups', id)) > 0
  )
    throw new ServiceError('conflict', 'the tenant already has keys or groups', {
      hint: isOwn
        ? 'restore to the tenant of the snapshot, an empty tenant or a new one'
        : 'restore a snapshot that this service did not make to an empty tenant or a new one',
    });
  return { tenantId: id, newTenant: false, fromTenantId };
};

/** What is restored into where, as it is kept while it waits. */
type Wanted = {
  readonly snapshotId: string;
  readonly tenantId: string | null;
  readonly newTenant: string | null;
  /**
   * The restore creates credentials, brings back into use what was disabled or removed, or sets
   * attributes back: a second person must approve.
   */
  readonly widensUse: boolean;
  /**
   * What the second person agrees to: the items that become active by their names, and a digest
   * over all of them and over the file. Null where no second person is needed. Another content is
   * another request.
   */
  readonly activates: { readonly names: readonly string[]; readonly count: number; readonly digest: string } | null;
};

/** What the file is known by: an erasure does not change it. */
interface RestoredFile {
  readonly digest: string;
  readonly signer: string;
  /** This service made it: what is in it was here before. */
  readonly isOwn: boolean;
}
const readFile = async (ports: RestorePorts, id: string): Promise<RestoredFile> => {
  const { ring, archive, store } = ports;
  const snapshot = await findSnapshot(store.read, id, ['available']);
  const { closing } = await archive.inspect(id, trustedFor(ring, snapshot));
  const isOwn = closing.snapshotId === id && (await isOwnFile(ports, closing));
  return { digest: closing.digest, signer: closing.signer, isOwn };
};

/** Null: no second person is needed. All that a foreign file brings is new here. */
const planIn = ({ digest, isOwn }: RestoredFile, found: RestoreOutcome): Wanted['activates'] =>
  isOwn && widening(found).length === 0 ? null : planOf(found, digest);

/** For the audit log. */
const detailsOf = (found: RestoreOutcome) => {
  const sum = (of: 'created' | 'changed' | 'unchanged'): number =>
    Object.values(found.counts).reduce((total, each) => total + each[of], 0);
  return {
    tenantId: found.tenantId,
    newTenant: found.newTenant,
    newIds: found.newIds,
    created: sum('created'),
    changed: sum('changed'),
    unchanged: sum('unchanged'),
    stayDestroyed: found.stayDestroyed.slice(0, mostNamed).map(({ id: keyId, name }) => ({ id: keyId, name })),
    ...(found.withoutValue.length === 0
      ? {}
      : { withoutValue: found.withoutValue.slice(0, mostNamed).map(({ id }) => id) }),
    activated: found.activated.slice(0, mostNamed).map((each) => ({ ...each })),
    activatedCount: found.activated.length,
  };
};

export const restoreSnapshot = (
  ports: RestorePorts,
  { withApproval }: Pick<Approvals, 'withApproval'>,
  { restoreSecondPerson, trustedSigners }: Pick<SnapshotSettings, 'restoreSecondPerson' | 'trustedSigners'>,
) => {
  const { store, ring, core, archive, clock, erasure, exclusion, usage, log } = ports;

  const restoreIn = async (
    tx: Repositories,
    actor: Actor,
    { key, file }: Opened,
    wanted: Wanted,
    own: RestoreRing = ring,
  ): Promise<RestoreOutcome> => {
    const { snapshotId } = wanted;
    const snapshot = await findSnapshot(tx, snapshotId, ['available']);
    requireTrusted(file.isOwn, trustedSigners, file.signer);
    const working = { ...ports, ring: own };
    const target = await chooseTarget(working, tx, actor, snapshot, file, wanted);
    return restoreRows(working, tx, archive.items(snapshotId, key, trustedFor(ring, snapshot), file.digest), target);
  };

  /**
   * Under the rules of the vaults that it comes from, and of those that are where it goes: these
   * may get an older rule back. The key is the snapshot's own.
   */
  const governed = withApproval('snapshot.restore', {
    permission: 'snapshots:restore',
    by: 'requester',
    plan: async (from, askedIn, { snapshotId, tenantId, newTenant, widensUse: widens, activates }: Wanted) => {
      const snapshot = await findSnapshot(from, snapshotId, ['available']);
      const into = newTenant === null ? (tenantId ?? snapshot.tenantId) : null;
      const there = into === null ? [] : await vaultsOf(from, into);
      const source = into === snapshot.tenantId ? [] : await vaultsOf(from, snapshot.tenantId);
      const at = toRfc3339(snapshot.createdAt);
      return {
        tenantId: askedIn,
        subject: { kind: 'snapshot', id: snapshotId, name: at },
        vaults: [...source, ...there],
        ruled: new Set(there.map(({ id }) => id)),
        second: widens
          ? 'restores of foreign snapshots, and those that create credentials, end a block or set attributes back'
          : null,
        impact: {
          into: newTenant ?? into,
          newTenant: newTenant !== null,
          keys: snapshot.counts?.rows.keys ?? 0,
          activates: activates?.names ?? [],
          activatesCount: activates?.count ?? 0,
        },
        state: { at, activates: activates?.digest ?? null },
      };
    },
    carryOut: async (tx, actor, wanted, opened: Opened) => {
      const found = await restoreIn(tx, actor, opened, wanted);
      // What is there may have changed since the second person was found not to be needed.
      const planned = restoreSecondPerson ? planIn(opened.file, found) : null;
      if (planned !== null && planned.digest !== wanted.activates?.digest)
        throw new ServiceError('conflict', 'what the restore would re-enable has changed in the meantime', {
          hint: 'repeat the restore: a second person must approve it',
        });
      await rememberOpened(tx, (await findSnapshot(tx, wanted.snapshotId)).tenantId, clock.now());
      await noteRestore(tx, clock.now());
      const subject = about('snapshot', { id: wanted.snapshotId, tenantId: found.tenantId });
      await recordEvent(tx, 'snapshot.restored', actor, subject, detailsOf(found));
      return { answer: found, afterCommit: () => Promise.resolve() };
    },
  });

  /**
   * `key`: the snapshot's own; it is released here. Throws `ApprovalNeeded` where it waits; a dry
   * run never does.
   */
  return async (actor: Actor, id: string, key: KeyRef, request: RestoreRequest): Promise<RuledRestore> => {
    const { dryRun, ...target } = request;
    const wanted: Wanted = { snapshotId: id, ...target, widensUse: false, activates: null };
    /** Does all of it in a copy of the tables that is not kept. */
    const tryOut = async (opened: Opened): Promise<RestoreOutcome> => {
      const aside = ring.aside();
      try {
        return await store.tryOut((tx) => restoreIn(tx, actor, opened, wanted, aside));
      } finally {
        aside.close();
      }
    };
    try {
      const { tenantId } = await findSnapshot(store.read, id, ['available']);
      const acting = inTenant(actor, await tenantToAskIn(store.read, tenantId, target.tenantId));
      await usage.flush(false);
      let rules: readonly ApprovalRule[] = [];
      const outcome = await exclusion.run(async () => {
        const opened: Opened = { key, file: await readFile(ports, id) };
        const found = dryRun || restoreSecondPerson ? await tryOut(opened) : undefined;
        const activates = restoreSecondPerson && found !== undefined ? planIn(opened.file, found) : null;
        const planned: Wanted = { ...wanted, widensUse: activates !== null, activates };
        if (found === undefined || !dryRun) return governed.run(acting, planned, opened);
        ({ rules } = await governed.plan(acting, planned));
        return found;
      });
      if (!dryRun) {
        await renewTenant(ports, outcome.tenantId);
        erasure.schedule();
        log.warn('a snapshot was restored', { snapshotId: id, tenantId: outcome.tenantId });
      }
      return { ...outcome, rules };
    } finally {
      core.release(key);
    }
  };
};

/** Loads the tenant into the service's memory again: nothing from before the restore stays. */
const renewTenant = async (
  { store, directory }: Pick<Ports, 'store' | 'directory'>,
  tenantId: string,
): Promise<void> => {
  const idsOf = async (
    list: (window: Window) => Promise<readonly { readonly id: string }[]>,
  ): Promise<readonly string[]> => {
    const ids: string[] = [];
    for await (const { id } of each(list, byId, fewAtOnce)) ids.push(id);
    return ids;
  };
  const known = directory.endpoints().filter((endpoint) => endpoint.tenantId === tenantId);
  const endpoints = new Set([
    ...known.map(({ id }) => id),
    ...(await idsOf((window) => store.read.endpoints.list(tenantId, window))),
  ]);
  const keys = new Set(known.map(({ keyId }) => keyId));
  for (const id of endpoints) {
    const endpoint = await store.read.endpoints.stored(tenantId, id);
    if (endpoint !== undefined) keys.add(endpoint.keyId);
  }
  // With a vault every object goes out of memory.
  await directory.renew({
    tenants: [tenantId],
    vaults: await idsOf((window) => store.read.vaults.list(tenantId, window)),
    applications: await idsOf((window) => store.read.applications.list(tenantId, {}, window)),
    endpoints: [...endpoints],
    keys: [...keys],
  });
};
