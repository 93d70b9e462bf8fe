// Recovery keys: those to which snapshots and backups are sealed from now on. The service knows
// their public halves only.

import { parseBase64, toBase64 } from '../../base/bytes.ts';
import { command } from '../../base/command-line.ts';
import { serviceTenantId } from '../../base/ids.ts';
import { parseRecoveryKey, type RecoveryPublicKey, recoveryKeyId } from '../../base/recovery-key.ts';
import { ServiceError } from '../../base/service-error.ts';
import { type Actor, inTenant } from '../../domain/actor.ts';
import type { ListedRecoveryKey, RecoveryKey } from '../../domain/snapshot.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { type Approvals, secondIfAny } from '../approvals/governed-operation.ts';
import { checkName } from '../shared/names.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { listSnapshots } from './erase-destroyed.ts';
import type { SnapshotSettings } from './snapshot-settings.ts';
import type { RecoveryKeyOperations } from './snapshots-operations.ts';

type NewRecoveryKey = { readonly name: string; readonly publicKey: string };

/** Snapshots that the record of a removal names. */
const mostNamed = 100;

/**
 * Public halves of the live recovery keys: the only list of recipients. Each row has the right
 * code, is the newest one that the row set knows, and its id is the digest of its key, which is
 * what people compare.
 */
export const recipientsOf = async (from: Pick<Repositories, 'recoveryKeys'>): Promise<readonly RecoveryPublicKey[]> => {
  const live = (await from.recoveryKeys.list()).filter(({ removedAt }) => removedAt === null);
  if (live.length === 0)
    throw new ServiceError('conflict', 'no recovery key is registered', {
      hint: 'run dke recovery-key create --out FILE on a separate machine, then dke recovery-key register',
    });
  return live.map(({ id, name, publicKey, integrity }) => {
    const key = parseBase64(publicKey);
    if (integrity !== 'ok' || key?.length !== 32 || recoveryKeyId(key) !== id)
      throw new ServiceError('key-tampered', `the recovery key ${name} was changed from outside`, {
        hint: 'remove it and register it again from its file; otherwise another key could open the snapshot',
      });
    return { id, publicKey: key };
  });
};

/** Which of these keys open which snapshots: those whose file was not purged. */
const withSnapshots = async (
  from: Repositories,
  keys: readonly RecoveryKey[],
): Promise<readonly ListedRecoveryKey[]> => {
  const held = await listSnapshots(from, ['available', 'missing', 'deleted']);
  return keys.map((key) => ({
    ...key,
    snapshots: held.filter(({ recoveryKeyIds }) => recoveryKeyIds.includes(key.id)).map(({ id }) => id),
  }));
};
const oneWithSnapshots = async (from: Repositories, key: RecoveryKey): Promise<ListedRecoveryKey> =>
  (await withSnapshots(from, [key]))[0] ?? { ...key, snapshots: [] };

/**
 * The head of a snapshot, and of a backup of the service, has room for the content key sealed to so
 * many (64 KiB; about 170 bytes each).
 */
export const mostRecoveryKeys = 256;

export const recoveryKeys = (
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { withApproval }: Pick<Approvals, 'withApproval'>,
  /** `schedule`: snapshots are made by the clock. */
  { schedule, exportSecondPerson }: Pick<SnapshotSettings, 'schedule' | 'exportSecondPerson'>,
): RecoveryKeyOperations => {
  /** What `register` would write, over a removed key of the same id. */
  const check = async (from: Repositories, { name, publicKey }: NewRecoveryKey) => {
    const parsed = parseRecoveryKey(publicKey);
    if (parsed === null)
      throw new ServiceError('validation', 'publicKey is not a recovery key', {
        hint: 'it begins with dke-recovery-key+; dke recovery-key create prints it',
      });
    const before = await from.recoveryKeys.get(parsed.id);
    if (before !== undefined && before.removedAt === null && before.integrity === 'ok')
      throw new ServiceError('conflict', `this recovery key is already registered as ${before.name}`);
    if ((await from.recoveryKeys.list()).filter(({ removedAt }) => removedAt === null).length >= mostRecoveryKeys)
      throw new ServiceError('conflict', `${mostRecoveryKeys} recovery keys are registered, which is the limit`, {
        hint: 'remove one that is not needed (dke recovery-key remove), then register this one',
      });
    const key: RecoveryKey = {
      id: parsed.id,
      name,
      publicKey: toBase64(parsed.publicKey),
      createdAt: clock.now(),
      removedAt: null,
      integrity: 'ok',
    };
    return { key, before };
  };
  const governed = withApproval('recovery-key.register', {
    permission: 'recovery-keys:manage',
    plan: async (from, tenantId, wanted: NewRecoveryKey, requesterId) => {
      const { key, before } = await check(from, wanted);
      return {
        tenantId,
        subject: { kind: 'recovery-key', id: key.id, name: key.name },
        vaults: [],
        second: exportSecondPerson
          ? await secondIfAny(from, 'new recovery keys', { tenantId, requesterId, now: clock.now() })
          : null,
        impact: { recoveryKeyId: key.id, opens: 'every snapshot and backup that is created from now on' },
        state: { removedBefore: before?.removedAt ?? null },
      };
    },
    carryOut: async (tx, actor, wanted) => {
      const { key, before } = await check(tx, wanted);
      if (before === undefined) await tx.recoveryKeys.insert(key);
      else await tx.recoveryKeys.update(key);
      await recordEvent(tx, 'recovery-key.registered', actor, about('recovery-key', { id: key.id, tenantId: null }), {
        name: key.name,
        recoveryKeyId: key.id,
      });
      return { answer: key, afterCommit: () => Promise.resolve() };
    },
  });
  return {
    list: async (_actor: Actor) => withSnapshots(store.read, await store.read.recoveryKeys.list()),
    register: async (actor, { name, publicKey }) => {
      checkName(name);
      await check(store.read, { name, publicKey });
      // A recovery key belongs to the platform: approvers of a single tenant cannot approve it.
      return oneWithSnapshots(store.read, await governed.run(inTenant(actor, serviceTenantId), { name, publicKey }));
    },
    /**
     * Snapshots that were sealed to it still open with it: the answer and the record name them.
     * `force`: also the last one, while snapshots are made by the clock.
     */
    remove: (actor: Actor, id: string, force: boolean) =>
      store.write(async (tx) => {
        const before = await tx.recoveryKeys.get(id);
        if (before === undefined) throw new ServiceError('not-found', 'recovery key not found');
        if (before.removedAt !== null)
          throw new ServiceError('conflict', 'the recovery key is removed', {
            hint: 'keep its file: it still opens older snapshots; register another one for new snapshots',
          });
        const isLast = (await tx.recoveryKeys.list()).every((each) => each.id === id || each.removedAt !== null);
        if (isLast && schedule !== null && !force)
          throw new ServiceError(
            'conflict',
            'this is the last recovery key: without one, no scheduled snapshots are created',
            {
              hint: `register another one first (dke recovery-key create, then dke recovery-key register); to remove it anyway: ${command`dke recovery-key remove --force ${id}`}`,
            },
          );
        const after = await oneWithSnapshots(tx, { ...before, removedAt: clock.now(), integrity: 'ok' });
        await tx.recoveryKeys.update(after);
        await recordEvent(tx, 'recovery-key.removed', actor, about('recovery-key', { id, tenantId: null }), {
          name: before.name,
          recoveryKeyId: id,
          snapshots: after.snapshots.slice(0, mostNamed),
          snapshotCount: after.snapshots.length,
        });
        return after;
      }),
  };
};
