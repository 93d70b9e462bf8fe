// Writes a snapshot in one pass: rows and sealed keys go out in segments as they come, so that what
// is held is one segment. The keys that seal it are created here and released at the end; from then
// on only a recovery key opens it.

import { createHash } from 'node:crypto';
import type { Core, KekRef, KeyRef } from '../../../addon/core.ts';
import { labelBytes } from '../../../addon/labels.ts';
import { canonicalJson, toBase64 } from '../../base/bytes.ts';
import { idBytes } from '../../base/ids.ts';
import { type RecoveryPublicKey, sealingContext } from '../../base/recovery-key.ts';
import type { DiskFile, ForeignDisk } from '../../ports/foreign-disk.ts';
import type { SnapshotClosing, SnapshotPreface, SnapshotRow, SnapshotWriter } from '../../ports/snapshot-archive.ts';
import {
  closingText,
  fixedParts,
  headLength,
  packClosing,
  packHead,
  packSegmentHead,
  segmentNonce,
  sha256,
  slotFixed,
  slotLength,
  tagLength,
} from './snapshot-layout.ts';

export type SnapshotCore = Pick<
  Core,
  | 'generateGeneric'
  | 'generateKek'
  | 'hkdf'
  | 'hpkeSealKey'
  | 'sealRecord'
  | 'openRecord'
  | 'cipher'
  | 'describe'
  | 'checkValue'
  | 'exportPublicKey'
  | 'release'
>;

/** A segment is closed when its rows or its slots reach this. */
const fullRows = 65_536;
const fullSlots = 128;

/**
 * The two keys that a snapshot's own key gives: rows are under one, the units' keys under the
 * other.
 */
export const deriveKeys = (
  core: Pick<Core, 'hkdf'>,
  key: KeyRef,
  prefaceBytes: Uint8Array,
): { readonly rows: KeyRef; readonly units: KekRef } => {
  const salt = sha256(prefaceBytes);
  return {
    rows: core.hkdf(key, 'sha256', salt, labelBytes('dke snapshot 1 rows'), 'aes', 32),
    units: core.hkdf(key, 'sha256', salt, labelBytes('dke snapshot 1 units'), 'kek', 32),
  };
};

/** What a unit's own key is bound to. */
export const unitContext = (snapshotId: string, tenantId: string, unitId: string) => ({
  tenant: idBytes(tenantId),
  object: idBytes(unitId),
  version: 1,
  epoch: 1,
  class: 'snapshot-unit',
  attributes: idBytes(snapshotId),
});
/** What a key that is sealed under a unit's own key is bound to. */
export const materialContext = (tenantId: string, unitId: string, version: number, attributes: string) => ({
  tenant: idBytes(tenantId),
  object: idBytes(unitId),
  version,
  epoch: 1,
  class: 'snapshot-material',
  attributes: Buffer.from(attributes, 'utf8'),
});

/** Identifies a key: its check value, or the hash of its public half. Hexadecimal. */
export const checkOf = (core: Pick<Core, 'describe' | 'checkValue' | 'exportPublicKey'>, key: KeyRef): string => {
  const { kind } = core.describe(key);
  return kind === 'aes' || kind === 'generic'
    ? core.checkValue(key).toString('hex')
    : sha256(core.exportPublicKey(key)).toString('hex');
};

const rowText = (table: string, row: SnapshotRow, tampered: boolean): string =>
  JSON.stringify({
    table,
    ...(tampered ? { tampered } : {}),
    row: Object.fromEntries(
      Object.entries(row).map(([column, value]) => [
        column,
        value instanceof Uint8Array ? { base64: toBase64(value) } : value,
      ]),
    ),
  });

/** The head of a file, with its key sealed to each recovery key, and what that key gives. */
const sealHead = (
  core: SnapshotCore,
  named: Omit<SnapshotPreface, 'recipients'>,
  recoveryKeys: readonly RecoveryPublicKey[],
): { readonly head: Buffer; readonly keys: ReturnType<typeof deriveKeys> } => {
  const { snapshotId, tenantId } = named;
  const own = core.generateGeneric(32);
  try {
    const recipients = recoveryKeys.map(({ id, publicKey }) => {
      const { info, aad } = sealingContext(snapshotId, tenantId, id);
      return { recoveryKeyId: id, sealedKey: toBase64(core.hpkeSealKey(publicKey, info, aad, own)) };
    });
    const head = packHead({ ...named, recipients });
    return { head, keys: deriveKeys(core, own, head.subarray(headLength)) };
  } finally {
    core.release(own);
  }
};

/**
 * A segment's rows under the snapshot's key, and the slots of its units, which they are bound to.
 */
const packSegment = (
  core: SnapshotCore,
  key: KeyRef,
  texts: readonly string[],
  slots: readonly Buffer[],
  nonce: Buffer,
): { readonly fixed: Buffer; readonly allSlots: Buffer; readonly ciphertext: Buffer; readonly segmentHead: Buffer } => {
  const plain = Buffer.from(texts.length === 0 ? '' : `${texts.join('\n')}\n`);
  const allSlots = Buffer.concat(slots);
  const ciphertext = Buffer.alloc(plain.length + tagLength);
  const fixed = fixedParts(allSlots);
  core.cipher(key, 'encrypt', { algorithm: 'aes-gcm', iv: nonce, aad: sha256(fixed), tagLength }, plain, ciphertext);
  const segmentHead = packSegmentHead(slots.length, ciphertext.length);
  return { fixed, allSlots, ciphertext, segmentHead };
};

const packSlot = (unitId: string, sealed: Buffer): Buffer => {
  const slot = Buffer.alloc(slotLength);
  idBytes(unitId).copy(slot, 0);
  sha256(sealed).copy(slot, 16);
  sealed.copy(slot, slotFixed);
  return slot;
};

/** The whole file under its name, durably. */
const publish = async (disk: ForeignDisk, file: DiskFile, draft: string, path: string): Promise<void> => {
  await file.sync();
  await file.close();
  await disk.rename(draft, path);
};

export const beginSnapshot = async (
  core: SnapshotCore,
  path: string,
  named: Omit<SnapshotPreface, 'recipients'>,
  recoveryKeys: readonly RecoveryPublicKey[],
  disk: ForeignDisk,
): Promise<SnapshotWriter> => {
  const { snapshotId, tenantId } = named;
  const { head, keys } = sealHead(core, named, recoveryKeys);
  const draft = `${path}.part`;
  const digest = createHash('sha256');
  const rows: Record<string, number> = {};
  let file: DiskFile | undefined;
  let size = 0;
  let segments = 0;
  let lines = 0;
  let units = 0;
  let materials = 0;
  let texts: string[] = [];
  let textLength = 0;
  let slots: Buffer[] = [];

  const end = (): void => {
    core.release(keys.rows);
    core.release(keys.units);
  };
  const write = async (bytes: Uint8Array): Promise<void> => {
    await file?.put(bytes, size);
    size += bytes.length;
  };
  const add = (text: string): void => {
    texts.push(text);
    textLength += text.length + 1;
    lines += 1;
  };
  const flush = async (last: boolean): Promise<void> => {
    const { fixed, allSlots, ciphertext, segmentHead } = packSegment(
      core,
      keys.rows,
      texts,
      slots,
      segmentNonce(segments, last),
    );
    digest.update(segmentHead).update(fixed).update(ciphertext);
    await write(Buffer.concat([segmentHead, allSlots, ciphertext]));
    segments += 1;
    texts = [];
    textLength = 0;
    slots = [];
  };
  const flushWhenFull = async (): Promise<void> => {
    if (textLength >= fullRows || slots.length >= fullSlots) await flush(false);
  };

  try {
    file = await disk.open(draft, 'wx');
    digest.update(head);
    await write(head);
  } catch (error) {
    end();
    await file?.close().catch(() => undefined);
    // Not a file that was there before it.
    if (file !== undefined) await disk.remove(draft).catch(() => undefined);
    throw error;
  }
  const opened = file;

  return {
    row: async (table, row, tampered = false) => {
      add(rowText(table, row, tampered));
      rows[table] = (rows[table] ?? 0) + 1;
      await flushWhenFull();
    },
    unit: async (id, given) => {
      const unit = core.generateKek();
      try {
        for (const { version, copies, attributes, key } of given) {
          const record = toBase64(core.sealRecord(unit, materialContext(tenantId, id, version, attributes), key));
          const check = checkOf(core, key);
          add(canonicalJson({ unit: id, version, copies, attributes, check, record }));
          materials += 1;
        }
        const sealed = core.sealRecord(keys.units, unitContext(snapshotId, tenantId, id), unit);
        slots.push(packSlot(id, sealed));
        units += 1;
      } finally {
        core.release(unit);
      }
      await flushWhenFull();
    },
    finish: async (given, sign) => {
      await flush(true);
      const closing: SnapshotClosing = {
        ...given,
        format: 1,
        snapshotId,
        digest: toBase64(digest.digest()),
        segments,
        lines,
        units,
        materials,
        rows,
      };
      await write(packClosing(closing, sign(closingText(closing))));
      await publish(disk, opened, draft, path);
      end();
      return { closing, size };
    },
    abandon: async () => {
      end();
      await opened.close().catch(() => undefined);
      await disk.remove(draft).catch(() => undefined);
    },
  };
};
