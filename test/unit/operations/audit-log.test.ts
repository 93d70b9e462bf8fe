// The audit log as a whole: through the real store and addon, exported and checked offline with the
// public key alone, changed in every way that a person who can write to the database may think of.
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Checkpoint,
  parseCheckpoint,
  parseVerifierKey,
  publicKeyOf,
  type Verifier,
} from '../../../server/base/checkpoint.ts';
import { inclusionProof, leafHash, nodeHash, type SubtreeHash } from '../../../server/base/merkle-tree.ts';
import { type AuditVerdict, verifyAuditLog } from '../../../server/cli/verify/audit-export.ts';
import { inTenant } from '../../../server/domain/actor.ts';
import { type AuditEvent, auditKinds, auditSeverities } from '../../../server/domain/audit-event.ts';
import { verifyInclusion } from '../../support/inclusion.ts';
import { administrator, type OpenedService, openTestService } from '../../support/open-service.ts';
import fc from '../../support/property.ts';
import { onSqlite, queryStored } from '../../support/test-store.ts';
import { sizeOf } from '../../support/tiers.ts';

const verifierOf = async ({ operations }: OpenedService): Promise<Verifier> => {
  const verifier = parseVerifierKey((await operations.audit.log()).verifierKey);
  if (verifier === null) throw new Error('the service shows no verifier key');
  return verifier;
};
const exported = async ({ operations }: OpenedService): Promise<string[]> => {
  const lines: string[] = [];
  for await (const page of await operations.audit.export(administrator)) lines.push(...page);
  return lines;
};
async function* each(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}
const isRecord = (line: string): boolean => !line.startsWith('{"checkpoint"');

const batches = sizeOf('audit log batches');
const inBatch = 250;

describe('a long log', () => {
  let service: OpenedService;
  let lines: string[];
  let verifier: Verifier;
  let newest: Checkpoint;
  const check = (changed: readonly string[], known: readonly Checkpoint[] = []): Promise<AuditVerdict> =>
    verifyAuditLog(each(changed), verifier, known);

  beforeAll(async () => {
    service = await openTestService();
    // Vaults are created in batches, and many checkpoints may end in one batch.
    for (let batch = 0; batch < batches; batch++) {
      await Promise.all(
        Array.from({ length: inBatch }, (_, i) =>
          service.operations.vaults.create(administrator, { name: `vault ${batch * inBatch + i}` }),
        ),
      );
      if (batch % 4 === 3) await service.operations.audit.checkpoint();
    }
    lines = await exported(service);
    verifier = await verifierOf(service);
    const last = JSON.parse(lines.at(-1) ?? '') as { readonly checkpoint: string };
    newest = parseCheckpoint(last.checkpoint) as Checkpoint;
  });
  afterAll(() => service.remove());

  test('is searched by time in steps, although clocks were set back, as if it were read whole', async () => {
    const { audit } = service.operations;
    type Query = Parameters<typeof audit.list>[1];
    const read = async (query: Query): Promise<AuditEvent[]> => {
      const found: AuditEvent[] = [];
      for (let after: string | undefined; ; ) {
        const { items, next } = await audit.list(administrator, { ...query, limit: 700, ...(after && { after }) });
        found.push(...items);
        if (next === null) return found;
        after = next;
      }
    };
    const all = await read({ order: 'oldest' });
    const times = [...new Set(all.map(({ at }) => at))].sort((a, b) => a - b);
    const middle = times[Math.floor(times.length / 2)] ?? 0;
    for (const span of [{ from: middle }, { to: middle }, { from: middle, to: middle + 1 }, { from: 0 }, { to: 0 }])
      for (const order of ['newest', 'oldest'] as const)
        for (const kind of ['vault.created', 'key.created'] as const) {
          const { from = 0, to = Number.MAX_SAFE_INTEGER }: { readonly from?: number; readonly to?: number } = span;
          const expected = all.filter((event) => event.at >= from && event.at < to && event.kind === kind);
          if (order === 'newest') expected.reverse();
          expect(await read({ ...span, order, kind })).toEqual(expected);
        }
    let rounds = 0;
    const count = (): void => {
      rounds += 1;
      immediate = setImmediate(count);
    };
    let immediate = setImmediate(count);
    await read({ to: 0, order: 'newest' });
    clearImmediate(immediate);
    expect(rounds).toBeGreaterThan(1);
  });

  test('is exported completely, and verifies', async () => {
    const records = lines.filter(isRecord);
    expect(records.length).toBeGreaterThan(batches * inBatch);
    expect(await check(lines, [newest])).toEqual({
      records: records.length,
      hidden: 0,
      part: null,
      hiddenAfter: 0,
      checkpoints: lines.length - records.length,
      signed: records.length,
      findings: [],
      keys: [publicKeyOf(verifier)],
    });
    expect(newest.size).toBe(records.length);
  });

  test('no record can be changed under the root that was signed; the service proves the same', async () => {
    const records = lines.filter(isRecord);
    const leaves = records.map((line) => leafHash(Buffer.from(line)));
    const known = new Map<string, Buffer>();
    const subtree: SubtreeHash = async (level, position) => {
      const name = `${level} ${position}`;
      const hash =
        known.get(name) ??
        (level === 0
          ? (leaves[position] as Buffer)
          : nodeHash(await subtree(level - 1, position * 2), await subtree(level - 1, position * 2 + 1)));
      known.set(name, hash);
      return hash;
    };
    const { size, root } = newest;
    let held = 0;
    for (const [index, line] of records.entries()) {
      const hashes = await inclusionProof(subtree, index, size);
      const changed = leafHash(Buffer.from(line.replace('"kind"', '"kinD"')));
      const claim = { index, size, root, leaf: leaves[index] as Buffer };
      if (!verifyInclusion(claim, hashes) || verifyInclusion({ ...claim, leaf: changed }, hashes)) break;
      held += 1;
      if (index % 100 !== 0) continue;
      const proof = await service.operations.audit.prove(administrator, index + 1);
      expect(proof.entry).toBe(line);
      if (parseCheckpoint(proof.checkpoint.note)?.size === size) expect(proof.hashes).toEqual(hashes);
    }
    expect(held).toBe(records.length);
  });

  test('a changed character is found, wherever it is', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(lines.length - 1), fc.double({ min: 0, max: 1, noNaN: true }), async (at, where) => {
        const line = lines[at] ?? '';
        const place = Math.min(line.length - 1, Math.floor(where * line.length));
        const other = String.fromCharCode(line.charCodeAt(place) ^ 1);
        const changed = lines.with(at, `${line.slice(0, place)}${other}${line.slice(place + 1)}`);
        expect((await check(changed)).findings).not.toEqual([]);
      }),
      { numRuns: 20 },
    );
  });

  test('a record that is left out, twice there, in another place, or of another service is found', async () => {
    const at = lines.findIndex((line, i) => i > lines.length / 3 && isRecord(line) && isRecord(lines[i + 1] ?? ''));
    const [line = '', next = ''] = lines.slice(at, at + 2);
    const swapped = lines.with(at, next).with(at + 1, line);
    const forged = JSON.stringify({ ...(JSON.parse(line) as object), actorName: 'nobody' });
    for (const changed of [lines.toSpliced(at, 1), lines.toSpliced(at, 0, line), swapped, lines.with(at, forged)])
      expect((await check(changed)).findings).not.toEqual([]);
    // With a corrected number, and all following ones: the root shows it.
    const left: string[] = lines.slice(0, at);
    for (const each of lines.slice(at + 1))
      left.push(
        isRecord(each) ? each.replace(/"sequence":(\d+)/, (_, n: string) => `"sequence":${Number(n) - 1}`) : each,
      );
    expect((await check(left)).findings).not.toEqual([]);
  });

  test('an end that is cut off is found: without a checkpoint at once, with one by another that was kept', async () => {
    const lastRecord = lines.findLastIndex(isRecord);
    const within = lines.findLastIndex((line, i) => isRecord(line) && isRecord(lines[i + 1] ?? ''));
    const inside = await check(lines.slice(0, within + 1));
    expect(inside.findings.join()).toContain('are not covered by a checkpoint');
    const earlier = lines.findLastIndex((line, i) => i < lastRecord && !isRecord(line));
    const cut = lines.slice(0, earlier + 1);
    expect((await check(cut)).findings).toEqual([]);
    expect((await check(cut, [newest])).findings).toEqual([
      `the end is missing: the file has ${cut.filter(isRecord).length} records, but the stored checkpoint covers ${newest.size}`,
    ]);
    expect((await check([])).findings).not.toEqual([]);
  });

  test('a log of another service does not verify', async () => {
    const other = await openTestService();
    try {
      expect((await verifyAuditLog(each(await exported(other)), verifier)).findings).not.toEqual([]);
      expect((await verifyAuditLog(each(lines), await verifierOf(other))).findings).not.toEqual([]);
    } finally {
      await other.remove();
    }
  });
});

describe('records of a severity', () => {
  test('are those of every kind that matters as much, in either order, page by page', async () => {
    const service = await openTestService();
    try {
      const { audit, vaults, keys, applications, tdeGroups } = service.operations;
      const { id: vaultId } = await vaults.create(administrator, { name: 'watched' });
      const group = await tdeGroups.create(administrator, { name: 'watched' });
      for (let at = 0; at < 4; at += 1) {
        const key = await keys.create(administrator, { name: `key ${at}`, vaultId });
        await keys.disable(administrator, key.id);
        const named = { name: `database ${at}`, groupId: group.id };
        const { application } = await applications.register(administrator, named);
        await applications.disable(administrator, application.id);
        await keys.softDelete(administrator, key.id);
        await applications.setCompatibility(administrator, application.id, ['sha1-signatures']);
      }
      type Query = Parameters<typeof audit.list>[1];
      const all = async (query: Query): Promise<readonly number[]> => {
        const found: number[] = [];
        for (let after: string | undefined; ; ) {
          const page = await audit.list(administrator, { ...query, limit: 3, after });
          found.push(...page.items.map(({ sequence }) => sequence));
          if (page.next === null) return found;
          after = page.next;
        }
      };
      const every = (await audit.list(administrator, { limit: 1000 })).items;
      for (const [at, severity] of auditSeverities.entries()) {
        const matters = every.filter(({ kind }) => auditSeverities.indexOf(auditKinds[kind].severity) >= at);
        const newest = matters.map(({ sequence }) => sequence);
        expect(await all({ severity })).toEqual(newest);
        expect(await all({ severity, order: 'oldest' })).toEqual(newest.toReversed());
        expect(await all({ severity, from: 0 })).toEqual(newest);
        const deleted = matters.filter(({ kind }) => kind === 'key.deleted').map(({ sequence }) => sequence);
        expect(await all({ severity, kind: 'key.deleted' })).toEqual(deleted);
        const narrow = { actorId: administrator.id, subjectId: vaultId, requestId: matters[0]?.requestId ?? '' };
        for (const [member, value] of Object.entries(narrow)) {
          const own = matters.filter((event) => event[member as keyof typeof narrow] === value);
          const sequences = own.map(({ sequence }) => sequence);
          expect(await all({ severity, [member]: value })).toEqual(sequences);
          expect(await all({ severity, [member]: value, order: 'oldest' })).toEqual(sequences.toReversed());
        }
      }
      expect(every.filter(({ kind }) => auditKinds[kind].severity === 'high').length).toBeGreaterThanOrEqual(4);
    } finally {
      await service.remove();
    }
  });
});

describe('a database that differs from the checkpoint next to the root key', () => {
  const copyOf = (folder: string): string => {
    const copy = mkdtempSync(join(tmpdir(), 'dke-copy-'));
    cpSync(folder, copy, { recursive: true });
    return copy;
  };
  const vaults = async ({ operations }: OpenedService, ...names: readonly string[]): Promise<void> => {
    for (const name of names) await operations.vaults.create(administrator, { name });
  };

  const files = onSqlite('a database goes back to an older state by its files');
  test.runIf(files)(
    'an older one is neither used nor changed, unless an operator says so: then the log continues under a new name',
    async () => {
      const first = await openTestService();
      await vaults(first, 'one');
      await first.stop();
      const { dataDirectory } = first.config;
      const older = copyOf(dataDirectory);
      const second = await openTestService({ folder: first.folder });
      await vaults(second, 'two', 'three');
      const { origin } = await second.operations.audit.log();
      await second.stop();
      // The root key file stays; the database is restored from the copy.
      for (const name of ['dke.db', 'dke.db-wal', 'dke.db-shm']) rmSync(join(dataDirectory, name), { force: true });
      cpSync(join(older, 'dke.db'), join(dataDirectory, 'dke.db'));
      const before = readFileSync(join(dataDirectory, 'dke.db'));
      const closed = await openTestService({ folder: first.folder });
      const { reason, ...found } = await closed.operations.quarantine.get(administrator);
      expect(found).toMatchObject({ quarantined: true, finding: 'older' });
      expect(reason).toMatch(/is older than its last checkpoint/);
      await expect(vaults(closed, 'four')).rejects.toMatchObject({ code: 'unavailable' });
      await closed.stop();
      expect(readFileSync(join(dataDirectory, 'dke.db')).equals(before)).toBe(true);

      const accepted = await openTestService({ folder: first.folder, acceptDatabase: true });
      const [record] = (await accepted.operations.audit.list(administrator, { kind: 'audit-log.accepted' })).items;
      expect(record?.details).toMatchObject({ state: 'older' });
      const after = await accepted.operations.audit.log();
      expect(after.origin).not.toBe(origin);
      expect((await verifyAuditLog(each(await exported(accepted)), await verifierOf(accepted))).findings).toEqual([]);
      await accepted.stop();
      const again = await openTestService({ folder: first.folder });
      await again.remove();
      rmSync(older, { recursive: true });
    },
  );

  test('one whose records and hashes were rewritten is in quarantine', async () => {
    const service = await openTestService();
    await vaults(service, 'one', 'two');
    await service.stop();
    const changed = await queryStored(
      service.folder,
      "update audit_events set actor_name = 'nobody', leaf_hash = zeroblob(32) where sequence = 2 returning sequence",
    );
    expect(changed).toHaveLength(1);
    const closed = await openTestService({ folder: service.folder });
    expect((await closed.operations.quarantine.get(administrator)).reason).toMatch(/its audit log was changed/);
    await closed.remove();
  });

  test('one whose record was rewritten, its hash left as it was, is found by its export', async () => {
    const service = await openTestService();
    await vaults(service, 'one', 'two');
    await service.stop();
    await queryStored(service.folder, "update audit_events set actor_name = 'nobody' where sequence = 2");
    const again = await openTestService({ folder: service.folder });
    const { findings } = await verifyAuditLog(each(await exported(again)), await verifierOf(again));
    expect(findings.join()).toMatch(/records 1 to \d+ are not those/);
    await again.remove();
  });
});

describe("one tenant's part of the log", () => {
  let service: OpenedService;
  let verifier: Verifier;
  let lines: string[];
  let acme: string;
  const part = async (tenantId: string): Promise<string[]> => {
    const collected: string[] = [];
    for await (const page of await service.operations.audit.exportTenant(inTenant(administrator, tenantId)))
      collected.push(...page);
    return collected;
  };
  const check = (changed: readonly string[]): Promise<AuditVerdict> => verifyAuditLog(each(changed), verifier);
  const isHidden = (line: string): boolean => line.startsWith('{"hidden"');

  beforeAll(async () => {
    service = await openTestService();
    const { tenants, vaults } = service.operations;
    acme = (await tenants.create(administrator, { name: 'acme' })).id;
    const zeta = (await tenants.create(administrator, { name: 'zeta' })).id;
    // In every mixture: one after the other, and long runs of one.
    for (let at = 0; at < 120; at++) {
      const of = at % 3 === 0 || (at > 40 && at < 75) ? acme : zeta;
      await vaults.create(inTenant(administrator, of), { name: `secret name of ${of} ${at}` });
    }
    verifier = await verifierOf(service);
    lines = await part(acme);
    const [other] = [zeta];
    expect(lines.join('')).not.toContain(other);
    expect(lines.filter((line) => isRecord(line) && !isHidden(line)).every((line) => line.includes(acme))).toBe(true);
  });
  afterAll(() => service.remove());

  test('verifies with the public key alone, and contains nothing of others', async () => {
    const shown = lines.filter((line) => isRecord(line) && !isHidden(line));
    const size = parseCheckpoint((JSON.parse(lines.at(-1) ?? '') as { checkpoint: string }).checkpoint)?.size;
    expect(await check(lines)).toEqual({
      records: shown.length,
      hidden: (size ?? 0) - shown.length,
      part: acme,
      hiddenAfter: 0,
      checkpoints: 1,
      signed: size,
      findings: [],
      keys: [publicKeyOf(verifier)],
    });
    expect(shown.length).toBeGreaterThan(60);
    // A few hashes for each gap, however long it is.
    expect(lines.join('').length).toBeLessThan(shown.join('').length * 2);
  });

  test('a record that was edited, left out, moved or hidden is found', async () => {
    const records = lines.flatMap((line, at) => (isRecord(line) && !isHidden(line) ? [at] : []));
    for (const at of [records[0], records[20], records.at(-1)] as number[]) {
      const edited = lines.with(at, lines[at]?.replace('"at":"2', '"at":"3') ?? '');
      const left = lines.toSpliced(at, 1);
      const hash = leafHash(Buffer.from(lines[at] ?? '', 'utf8')).toString('base64');
      for (const changed of [
        edited,
        left,
        lines.toSpliced(at, 1, lines[at + 1] ?? '', lines[at] ?? '').toSpliced(at + 2, 1),
      ])
        expect((await check(changed)).findings.length).toBeGreaterThan(0);
      if (at !== records.at(-1))
        expect((await check(lines.with(at, `{"hidden":[[0,"${hash}"]]}`))).findings).toEqual([
          expect.stringMatching(/the tenant had \d+ records when this was exported, but the file has \d+/),
        ]);
    }
  });

  test('a whole export in which records were hidden is not valid, and says how many', async () => {
    const whole: string[] = [];
    for await (const page of await service.operations.audit.export(administrator)) whole.push(...page);
    expect((await check(whole)).findings).toEqual([]);
    const hide = (line: string): string =>
      isRecord(line) ? JSON.stringify({ hidden: [[0, leafHash(Buffer.from(line, 'utf8')).toString('base64')]] }) : line;
    const all = whole.map(hide);
    const records = whole.filter(isRecord).length;
    expect(await check(all)).toMatchObject({
      ...{ records: 0, hidden: records, part: null },
      findings: [expect.stringMatching(`^${records} of the records are hidden, and the file does not say`)],
    });
    // With records of two tenants, or without the record of the export, the lines are not a part
    // for one tenant either.
    const undeclared = expect.stringMatching(/hidden, and the file does not say/);
    expect((await check(whole.with(3, hide(whole[3] ?? '')))).findings).toContainEqual(undeclared);
    const shown = lines.flatMap((line, at) => (isRecord(line) && !isHidden(line) ? [at] : []));
    const last = shown.at(-1) ?? 0;
    expect((await check(lines.with(last, hide(lines[last] ?? '')))).findings).toEqual([undeclared]);
  });

  test('hashes that were changed are found', async () => {
    for (const [at, line] of lines.entries()) {
      if (!isHidden(line)) continue;
      const { hidden } = JSON.parse(line) as { hidden: [number, string][] };
      const [[level, hash] = [0, '']] = hidden;
      const other = Buffer.from(hash, 'base64');
      other[5] = (other[5] ?? 0) ^ 1;
      const changed = JSON.stringify({ hidden: hidden.with(0, [level, other.toString('base64')]) });
      expect((await check(lines.with(at, changed))).findings.length).toBeGreaterThan(0);
      expect(
        (await check(lines.with(at, JSON.stringify({ hidden: hidden.with(0, [level + 1, hash]) })))).findings.length,
      ).toBeGreaterThan(0);
      expect((await check(lines.with(at, '{"hidden":[["x",5],7]}'))).findings.length).toBeGreaterThan(0);
    }
  });
});
