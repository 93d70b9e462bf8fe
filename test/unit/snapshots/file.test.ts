// The file of a snapshot (addon/FORMAT.md, section 5), over the real addon: it returns its input;
// anything changed, cut, swapped or mixed is found; erased units no longer open, and all others
// still do.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { KeyRef } from '../../../addon/core.ts';
import { openArchive } from '../../../server/adapters/archives/archive.ts';
import { localDisk } from '../../../server/base/disk-files.ts';
import type { DiskFile, ForeignDisk } from '../../../server/ports/foreign-disk.ts';
import type { SnapshotItem } from '../../../server/ports/snapshot-archive.ts';
import { core } from '../../support/core-keys.ts';
import { codeOfWork } from '../../support/outcomes.ts';
import { makeArchive, makeRecoveryKey, makeSigner, openSnapshotKey } from '../../support/snapshot-files.ts';
import { sizeOf } from '../../support/tiers.ts';

const { archive, pathOf, newId, end } = makeArchive();
afterAll(end);
const signer = makeSigner();
const trusted = [signer.publicKey];
const recovery = makeRecoveryKey();
const other = makeRecoveryKey();
const tenantId = newId();

interface Made {
  readonly id: string;
  readonly units: readonly string[];
}

const make = async (units: number, rowText = 'a name', recipients = [recovery, other]): Promise<Made> => {
  const id = newId();
  const writer = await archive.begin(
    { snapshotId: id, tenantId, at: '2026-01-01T00:00:00.000Z', schema: 'test' },
    recipients,
  );
  const made: string[] = [];
  for (let each = 0; each < units; each += 1) {
    const unit = newId();
    const key = each % 3 === 2 ? core.generateEc('ed25519') : core.generateAes(256);
    await writer.row('keys', { id: unit, name: `${rowText} ${each}`, bits: 256, destroyed_at: null });
    await writer.unit(unit, [
      { version: 1, copies: ['vault-copy', 'sealed-copy'], attributes: '{"bits":256}', key },
      { version: 2, copies: [], attributes: '{}', key },
    ]);
    core.release(key);
    made.push(unit);
  }
  await writer.row('tde_objects', { id: newId(), content: Buffer.from([0, 1, 255]) });
  await writer.finish({ omitted: 0, audit: { size: 7, checkpoint: null }, signer: signer.verifier }, signer.sign);
  return { id, units: made };
};

const keyOf = async (id: string, by = recovery): Promise<KeyRef> => openSnapshotKey(await archive.preface(id), by);

/** The items without references, which are released here. */
const readAll = async (id: string, by = recovery): Promise<readonly SnapshotItem[]> => {
  const key = await keyOf(id, by);
  const items: SnapshotItem[] = [];
  try {
    for await (const item of archive.items(id, key, trusted)) {
      if (item.kind === 'material' && item.key !== null) {
        expect(archive.checkOf(item.key)).toBe(item.check);
        core.release(item.key);
      }
      items.push(item);
    }
  } finally {
    core.release(key);
  }
  return items;
};

const inspection = (id: string): Promise<string> => codeOfWork(archive.inspect(id, trusted));

describe('what is written is read', () => {
  test('rows, keys and counts, by each of the recovery keys', async () => {
    const { id, units } = await make(5);
    const { closing, preface, erased } = await archive.inspect(id, trusted);
    expect(closing).toMatchObject({ units: 5, materials: 10, lines: 16, segments: 1, omitted: 0 });
    expect(closing.rows).toEqual({ keys: 5, tde_objects: 1 });
    expect(preface).toMatchObject({ snapshotId: id, tenantId, schema: 'test' });
    expect(erased).toEqual([]);
    for (const by of [recovery, other]) {
      const items = await readAll(id, by);
      expect(items).toHaveLength(16);
      expect(items[0]).toMatchObject({ kind: 'row', table: 'keys', row: { id: units[0], destroyed_at: null } });
      expect(items[1]).toMatchObject({ kind: 'material', unitId: units[0], copies: ['vault-copy', 'sealed-copy'] });
      expect(items.at(-1)).toMatchObject({ row: { content: Buffer.from([0, 1, 255]) } });
    }
  });

  test('many segments', async () => {
    const { id } = await make(1_000);
    const { closing } = await archive.inspect(id, trusted);
    expect(closing.segments).toBeGreaterThan(5);
    expect(await readAll(id)).toHaveLength(3_001);
  });

  test('neither names nor keys are in the file, and no key stays in memory', async () => {
    const before = core.memoryStatus().keys;
    const { id } = await make(3, 'a canary of a name');
    await readAll(id);
    expect(core.memoryStatus().keys).toBe(before);
    const file = readFileSync(pathOf(id));
    expect(file.includes('canary')).toBe(false);
    expect(file.includes('destroyed_at')).toBe(false);
  });

  test('a recovery key that it was not sealed to opens nothing', async () => {
    const { id } = await make(1, 'name', [recovery]);
    const preface = await archive.preface(id);
    const [sealed] = preface.recipients;
    const moved = { ...preface, recipients: [{ recoveryKeyId: other.id, sealedKey: sealed?.sealedKey ?? '' }] };
    expect(() => openSnapshotKey(moved, other)).toThrow();
    const foreign = core.generateGeneric(32);
    const read = async (): Promise<void> => {
      for await (const item of archive.items(id, foreign, trusted)) expect(item).toBeUndefined();
    };
    expect(await codeOfWork(read())).toBe('key-tampered');
    core.release(foreign);
  });

  test('what is given up leaves nothing', async () => {
    const id = newId();
    const writer = await archive.begin({ snapshotId: id, tenantId, at: '2026-01-01T00:00:00.000Z', schema: 'test' }, [
      recovery,
    ]);
    await writer.row('keys', { id });
    await writer.abandon();
    expect(await archive.has(id)).toBe(false);
    // An id that was changed in the database stops nothing.
    expect(await archive.has('../dke.db')).toBe(false);
    archive.prepare();
  });
});

describe('what was changed is found without the key', () => {
  /** Each one in the long tier. */
  const step = sizeOf('snapshot bytes');

  test('a byte, wherever it is', async () => {
    const { id } = await make(2);
    const sound = readFileSync(pathOf(id));
    const accepted: number[] = [];
    for (let at = 0; at < sound.length; at += step) {
      const changed = Buffer.from(sound);
      changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8));
      writeFileSync(pathOf(id), changed);
      if ((await inspection(id)) === 'none') accepted.push(at);
    }
    expect(accepted).toEqual([]);
    writeFileSync(pathOf(id), sound);
    expect(await inspection(id)).toBe('none');
  });

  test('a cut, wherever it is, and something that follows', async () => {
    const { id } = await make(1);
    const sound = readFileSync(pathOf(id));
    for (let length = 0; length < sound.length; length += step) {
      writeFileSync(pathOf(id), sound.subarray(0, length));
      expect([length, await inspection(id)]).not.toEqual([length, 'none']);
    }
    writeFileSync(pathOf(id), Buffer.concat([sound, Buffer.from([0])]));
    expect(await inspection(id)).toBe('key-tampered');
  });

  test('segments that were swapped, left out, or taken from another snapshot', async () => {
    const [one, two] = [await make(600), await make(600)];
    const parts = (file: Buffer): Buffer[] => {
      const found: Buffer[] = [];
      let at = 16 + file.readUInt32BE(12);
      found.push(file.subarray(0, at));
      for (;;) {
        const slots = file.readUInt32BE(at);
        const length = slots === 0xffff_ffff ? file.length - at : 8 + slots * 219 + file.readUInt32BE(at + 4);
        found.push(file.subarray(at, at + length));
        at += length;
        if (slots === 0xffff_ffff) return found;
      }
    };
    const [mine, theirs] = [parts(readFileSync(pathOf(one.id))), parts(readFileSync(pathOf(two.id)))];
    expect(mine.length).toBeGreaterThan(5);
    const [head = mine, first = head, second = head, ...rest] = mine;
    for (const changed of [
      [head, second, first, ...rest],
      [head, first, ...rest],
      [head, first, theirs[2] ?? head, ...rest],
      [theirs[0] ?? head, first, second, ...rest],
      [head, first, second, second, ...rest],
    ]) {
      writeFileSync(pathOf(one.id), Buffer.concat(changed as Buffer[]));
      expect(await inspection(one.id)).toBe('key-tampered');
    }
  });

  test('a signature of another key is not trusted, though it is valid', async () => {
    const { id } = await make(1);
    expect(await codeOfWork(archive.inspect(id, [makeSigner().publicKey]))).toBe('conflict');
    expect(await codeOfWork(archive.inspect(id, []))).toBe('conflict');
  });
});

describe('erasing', () => {
  test('takes one unit permanently, is signed, and changes nothing else', async () => {
    const { id, units } = await make(300);
    const [gone = '', kept = ''] = [units[150], units[151]];
    const before = readFileSync(pathOf(id));
    const { found } = await archive.erase(id, async () => new Set([gone, newId()]), 1_234, signer);
    expect(found).toEqual([gone]);
    const after = readFileSync(pathOf(id));
    expect(after).toHaveLength(before.length);
    const changed = [...after.keys()].filter((at) => after[at] !== before[at]);
    expect((changed.at(-1) ?? 0) - (changed[0] ?? 0)).toBeLessThan(171);

    expect((await archive.inspect(id, trusted)).erased).toEqual([{ id: gone, at: 1_234 }]);
    const items = await readAll(id);
    const materials = items.filter((item) => item.kind === 'material');
    expect(materials.filter(({ unitId }) => unitId === gone).map(({ key, erasedAt }) => [key, erasedAt])).toEqual([
      [null, 1_234],
      [null, 1_234],
    ]);
    expect(materials.filter(({ unitId }) => unitId === kept).every(({ key }) => key !== null)).toBe(true);
    expect(materials.filter(({ key }) => key === null)).toHaveLength(2);
    // A repeat changes nothing.
    expect(await archive.erase(id, async () => new Set([gone]), 9_999, signer)).toEqual({ found: [gone], total: 1 });
    expect(await archive.erase(id, async () => new Set([newId()]), 9_999, signer)).toEqual({ found: [], total: 1 });
    expect(readFileSync(pathOf(id)).equals(after)).toBe(true);
  });

  test('one that is signed by no trusted key is damage, not an erasure', async () => {
    const { id, units } = await make(2);
    await archive.erase(id, async () => new Set(units.slice(0, 1)), 1_234, makeSigner());
    expect(await inspection(id)).toBe('key-tampered');
  });

  test('one that was cut off in the middle is damage until it is done again', async () => {
    const { id, units } = await make(2);
    const before = readFileSync(pathOf(id));
    await archive.erase(id, async () => new Set(units.slice(0, 1)), 1_234, signer);
    const after = readFileSync(pathOf(id));
    const at = [...after.keys()].find((place) => after[place] !== before[place]) ?? 0;
    writeFileSync(pathOf(id), Buffer.concat([after.subarray(0, at + 40), before.subarray(at + 40)]));
    expect(await inspection(id)).toBe('key-tampered');
    await archive.erase(id, async () => new Set(units.slice(0, 1)), 1_234, signer);
    expect(await inspection(id)).toBe('none');
  });

  test('one that stops inside its mark is done again too', async () => {
    const { id, units } = await make(2);
    const before = readFileSync(pathOf(id));
    await archive.erase(id, async () => new Set(units.slice(0, 1)), 1_234, signer);
    const after = readFileSync(pathOf(id));
    const at = [...after.keys()].find((place) => after[place] !== before[place]) ?? 0;
    // All of the mark, half of the signature, and zeros behind: it looks like an erasure.
    const half = Buffer.from(after);
    half.fill(0, at + 60, at + 171);
    writeFileSync(pathOf(id), half);
    expect(await inspection(id)).toBe('key-tampered');
    await archive.erase(id, async () => new Set(units.slice(0, 1)), 1_234, signer);
    expect(await inspection(id)).toBe('none');
  });
});

describe('a file that comes from elsewhere', () => {
  /** What the disk is asked for, in order; with so much space. */
  const receiveOn = async (free: number, pieces: readonly Uint8Array[]) => {
    const asked: string[] = [];
    let written = 0;
    const disk: ForeignDisk = {
      ...localDisk,
      open: async (path, flag) => {
        asked.push('open');
        const file = await localDisk.open(path, flag);
        const put: DiskFile['put'] = (bytes, at) => {
          asked.push('put');
          written += bytes.length;
          return file.put(bytes, at);
        };
        return { ...file, put };
      },
      space: async () => {
        asked.push('space');
        return { free, size: 2 ** 40 };
      },
    };
    const id = newId();
    async function* body() {
      yield* pieces;
    }
    const code = await codeOfWork(openArchive(core, dirname(pathOf(id)), disk).receive(id, body()));
    const names = readdirSync(dirname(pathOf(id))).filter((name) => name.startsWith(id));
    return { code, asked, written, names };
  };
  const inPieces = (bytes: Buffer, length: number): readonly Buffer[] =>
    Array.from({ length: Math.ceil(bytes.length / length) }, (_, at) => bytes.subarray(at * length, (at + 1) * length));

  test('is refused before anything of it is written when it does not begin as a snapshot does', async () => {
    const whole = readFileSync(pathOf((await make(1)).id));
    const garbage = Buffer.alloc(1 << 20, 0x5a);
    const otherPreface = Buffer.from(whole);
    otherPreface.fill(0x5a, 20, 60);
    const cut = whole.subarray(0, 40);
    for (const bytes of [garbage, otherPreface, cut, Buffer.alloc(0)]) {
      const { code, written, names } = await receiveOn(2 ** 39, inPieces(bytes, 7_000));
      expect({ written, names }).toEqual({ written: 0, names: [] });
      expect(code).not.toBe('none');
    }
  });

  test('is stored only where there is room, which is checked before its first byte', async () => {
    const whole = readFileSync(pathOf((await make(1)).id));
    const { code, asked, written, names } = await receiveOn(2 ** 20, inPieces(whole, 100));
    expect({ code, written, names }).toEqual({ code: 'unavailable', written: 0, names: [] });
    expect(asked).toEqual(['open', 'space']);
    const stored = await receiveOn(2 ** 39, inPieces(whole, 100));
    expect(stored).toMatchObject({ written: whole.length });
    expect(stored.asked.slice(0, 3)).toEqual(['open', 'space', 'put']);
    expect(stored.names).toHaveLength(1);
  });
});
