// When a snapshot was last opened with a recovery key: by a verification with the key, or by a
// restore. Kept apart from the snapshots, whose last verification may have been one without the
// key, and which are removed in time.

import type { Snapshot } from '../../domain/snapshot.ts';
import type { Repositories } from '../../ports/store.ts';

const settingOf = (tenantId: string): string => `snapshot-opened:${tenantId}`;
const firstSetting = 'snapshot-first-opened';

export const rememberOpened = async (
  tx: Pick<Repositories, 'settings'>,
  tenantId: string,
  at: number,
): Promise<void> => {
  await tx.settings.set(settingOf(tenantId), String(at));
  if ((await tx.settings.get(firstSetting)) === undefined) await tx.settings.set(firstSetting, String(at));
};

/**
 * When these snapshots were opened, as far as their last verifications show it: before
 * `rememberOpened` existed, openings were known only from them.
 */
const openingsIn = (snapshots: readonly Snapshot[]): readonly number[] =>
  snapshots.flatMap(({ verification }) =>
    verification?.valid === true && verification.depth === 'opened' ? [verification.at] : [],
  );

/** `snapshots`: of this tenant. Null: none was ever opened. */
export const lastOpenedAt = async (
  from: Pick<Repositories, 'settings'>,
  tenantId: string,
  snapshots: readonly Snapshot[],
): Promise<number | null> => {
  const kept = await from.settings.get(settingOf(tenantId));
  const times = [...(kept === undefined ? [] : [Number(kept)]), ...openingsIn(snapshots)];
  return times.length === 0 ? null : Math.max(...times);
};

/** When a snapshot of any tenant was opened first; null: never. `snapshots`: of all tenants. */
export const firstOpenedAt = async (
  from: Pick<Repositories, 'settings'>,
  snapshots: readonly Snapshot[],
): Promise<number | null> => {
  const kept = await from.settings.get(firstSetting);
  const times = [...(kept === undefined ? [] : [Number(kept)]), ...openingsIn(snapshots)];
  return times.length === 0 ? null : Math.min(...times);
};
