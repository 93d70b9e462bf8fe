// Snapshots as a person writes them who has a recovery key and a signer that the service trusts:
// the content of a genuine one, changed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openArchive } from '../../server/adapters/archives/archive.ts';
import { readItems } from '../../server/adapters/archives/inspect-snapshot.ts';
import { newId } from '../../server/base/ids.ts';
import type { SnapshotItem, SnapshotMaterial, SnapshotRow } from '../../server/ports/snapshot-archive.ts';
import { core } from './core-keys.ts';
import type { OpenedService } from './open-service.ts';
import { makeArchive, type makeRecoveryKey, makeSigner, openSnapshotKey } from './snapshot-files.ts';

export type ForgedItem = SnapshotItem;
type Recovery = Pick<ReturnType<typeof makeRecoveryKey>, 'id' | 'key' | 'publicKey'>;

export interface Forger {
  /** For `snapshots.trusted_signers`, and for the import. */
  readonly verifier: string;
  /** The content of a snapshot. Its keys stay open until `end`. */
  read(service: Pick<OpenedService, 'config'>, id: string): Promise<readonly ForgedItem[]>;
  /** The file of a snapshot of a tenant that does not exist, with this content. */
  write(items: readonly ForgedItem[], tenantId?: string): Promise<{ readonly id: string; readonly file: Buffer }>;
  end(): void;
}

export const makeForger = (recovery: Recovery): Forger => {
  const signer = makeSigner();
  const place = makeArchive();
  const open: ForgedItem[] = [];
  return {
    verifier: signer.verifier,
    read: async ({ config }, id) => {
      const preface = await openArchive(core, config.snapshots.directory).preface(id);
      const key = openSnapshotKey(preface, recovery);
      const items: ForgedItem[] = [];
      for await (const item of readItems(core, join(config.snapshots.directory, `${id}.dkesnap`), key))
        items.push(item);
      core.release(key);
      open.push(...items);
      return items;
    },
    write: async (items, tenantId = newId(Date.now())) => {
      const id = place.newId();
      const writer = await place.archive.begin(
        { snapshotId: id, tenantId, at: new Date().toISOString(), schema: '0001-baseline' },
        [recovery],
      );
      let unit: { readonly id: string; readonly materials: SnapshotMaterial[] } | undefined;
      const endUnit = async (): Promise<void> => {
        if (unit !== undefined) await writer.unit(unit.id, unit.materials);
        unit = undefined;
      };
      for (const item of items) {
        if (item.kind === 'row') {
          await endUnit();
          await writer.row(item.table, item.row, item.tampered);
          continue;
        }
        if (item.key === null) continue;
        if (unit?.id !== item.unitId) await endUnit();
        unit ??= { id: item.unitId, materials: [] };
        unit.materials.push({ ...item, key: item.key });
      }
      await endUnit();
      const audit = { size: 1, checkpoint: null };
      await writer.finish({ omitted: 0, audit, signer: signer.verifier }, (text) => signer.sign(text));
      return { id, file: readFileSync(place.pathOf(id)) };
    },
    end: () => {
      for (const item of open.splice(0)) if (item.kind === 'material' && item.key !== null) core.release(item.key);
      place.end();
    },
  };
};

/**
 * Copies items under fresh ids, hashes, token prefixes and access key ids: none conflicts with a
 * stored row.
 */
export const withFreshIds = (items: readonly ForgedItem[]): readonly ForgedItem[] => {
  const ids = new Map<string, string>();
  const known = new Set<string>();
  for (const item of items) known.add(item.kind === 'row' ? String(item.row.id ?? item.row.key_id) : item.unitId);
  const names = new Map<string, string>();
  const attributesOf = (attributes: string): string =>
    [...names].reduce((text, [from, to]) => text.replace(from, to), attributes);
  const idOf = (id: string): string => {
    if (!known.has(id) || id.startsWith('00000000-0000')) return id;
    const fresh = ids.get(id) ?? newId(Date.now());
    ids.set(id, fresh);
    return fresh;
  };
  const rowOf = (row: SnapshotRow): SnapshotRow =>
    Object.fromEntries(
      Object.entries(row).map(([column, value]) => {
        if (typeof value !== 'string') return [column, value];
        if (column === 'hash') return [column, `${newId(1)}${newId(1)}`.replaceAll('-', '')];
        if (column === 'prefix' || column === 'access_key_id') {
          names.set(value, newId(1).replaceAll('-', '').slice(12));
          return [column, names.get(value) ?? ''];
        }
        return [column, idOf(value)];
      }),
    );
  return items.map((item) =>
    item.kind === 'row'
      ? { ...item, row: rowOf(item.row) }
      : { ...item, unitId: idOf(item.unitId), attributes: attributesOf(item.attributes) },
  );
};
