// Snapshots of a tenant with many keys: how long one takes to make, to verify with its key and to
// restore elsewhere, how large it is, what memory it takes, and how long an erasure run takes that
// takes one key out of it. The service runs in this process; nothing else is asked of it.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from '../../server/base/ids.ts';
import type { TenantActor } from '../../server/domain/actor.ts';
import {
  administrator,
  masterKey,
  type OpenedService,
  openTestService,
  registerCaller,
  untilAudited,
} from '../support/open-service.ts';
import { handOf } from '../support/snapshots.ts';
import { openPlace, type StoreName, stores } from './places.ts';

export interface SnapshotFigure {
  readonly store: StoreName;
  readonly keys: number;
  readonly makeSeconds: number;
  readonly verifySeconds: number;
  readonly restoreSeconds: number;
  readonly fileMiB: number;
  /** The maximum memory of the process, minus that before. */
  readonly memoryMiB: number;
}
export interface ErasureFigure {
  readonly store: StoreName;
  readonly keys: number;
  readonly seconds: number;
}

const seconds = async (work: () => Promise<unknown>): Promise<number> => {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
};
const MiB = 1_048_576;

const settings = '[erasure]\ngather_ms = 20\n[memory]\nallow_unlocked = true\n';
/** General keys: one version, one record each. Many requests at once share a commit. */
export const fill = async ({ operations }: OpenedService, tenantId: string, keys: number): Promise<void> => {
  const actor: TenantActor = { ...administrator, tenantId, reach: tenantId };
  const vault = await operations.vaults.create(actor, { name: `bench ${newId(Date.now())}` });
  const lanes = 64;
  for (let made = 0; made < keys; made += lanes)
    await Promise.all(
      Array.from({ length: Math.min(lanes, keys - made) }, (_, at) =>
        operations.keys.create(actor, { name: `key ${made + at}`, vaultId: vault.id }),
      ),
    );
};

export const measureSnapshots = async (store: StoreName, keys: number): Promise<SnapshotFigure> => {
  const [place, otherPlace] = [await openPlace(store), await openPlace(store)];
  const opened = await openTestService({ toml: `${settings}${place.toml}` });
  const { verifierKey } = await opened.operations.audit.log();
  const trusting = `[snapshots]\ntrusted_signers = ["${verifierKey}"]\nrestore_second_person = false\n`;
  const other = await openTestService({ toml: `${settings}${trusting}${otherPlace.toml}` });
  try {
    const tenantId = (await opened.operations.tenants.default()).id;
    await fill(opened, tenantId, keys);
    const hand = await handOf(opened);
    const there = await handOf(other, hand.recovery);
    const before = process.memoryUsage().rss;
    let most = before;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss);
    }, 50);
    let id = '';
    const makeSeconds = await seconds(async () => {
      id = await hand.make(tenantId);
    });
    const path = join(opened.config.snapshots.directory, `${id}.dkesnap`);
    const verifySeconds = await seconds(async () =>
      opened.operations.snapshots.verify(administrator, id, await hand.answer(id)),
    );
    const content = await opened.operations.snapshots.export(administrator, id);
    await other.operations.snapshots.import(administrator, content, verifierKey);
    const restoreSeconds = await seconds(() => there.restore(id, { newTenant: 'restored' }));
    clearInterval(watch);
    return {
      store,
      keys,
      makeSeconds,
      verifySeconds,
      restoreSeconds,
      fileMiB: statSync(path).size / MiB,
      memoryMiB: (most - before) / MiB,
    };
  } finally {
    await other.remove();
    await opened.remove();
    await otherPlace.remove();
    await place.remove();
  }
};

/**
 * From the destruction of one key to the moment when it is unrecoverable, among so many; one
 * snapshot is held.
 */
export const measureErasure = async (store: StoreName, keys: number): Promise<ErasureFigure> => {
  const place = await openPlace(store);
  const opened = await openTestService({ toml: `${settings}${place.toml}` });
  try {
    const tenantId = (await opened.operations.tenants.default()).id;
    await fill(opened, tenantId, keys);
    const { caller } = await registerCaller(opened, 'bench');
    const { id } = await opened.operations.tde.generateKey(caller, masterKey('to be destroyed'));
    await (await handOf(opened)).make(tenantId);
    return {
      store,
      keys,
      seconds: await seconds(async () => {
        await opened.operations.masterKeys.destroy(administrator, caller.application.id, id);
        await untilAudited(opened, 'key.unrecoverable', id);
      }),
    };
  } finally {
    await opened.remove();
    await place.remove();
  }
};

export const snapshotText = ({
  store,
  keys,
  makeSeconds,
  verifySeconds,
  restoreSeconds,
  fileMiB,
  memoryMiB,
}: SnapshotFigure): string =>
  [
    `a tenant with ${keys} keys on ${store}: snapshot ${makeSeconds.toFixed(1)} s, verified with its key ${verifySeconds.toFixed(1)} s, ` +
      `restored into an empty service ${restoreSeconds.toFixed(1)} s`,
    `file ${fileMiB.toFixed(0)} MiB, memory meanwhile ${memoryMiB.toFixed(0)} MiB more`,
  ].join('\n');

export const erasureText = ({ store, keys, seconds: took }: ErasureFigure): string =>
  `erasure run among ${keys} keys on ${store}, with one snapshot held: ${took.toFixed(1)} s`;

if (import.meta.main) {
  const [keys = '100000', erased = '10000', ...names] = process.argv.slice(2);
  for (const store of stores) {
    if (names.length > 0 && !names.includes(store)) continue;
    console.log(erasureText(await measureErasure(store, Number(erased))));
    console.log(snapshotText(await measureSnapshots(store, Number(keys))));
  }
}
