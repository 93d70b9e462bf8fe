// Groups of TDE applications: who may use whose keys, the preview and result of a move, the audit
// records of refused attempts, and a rotation history of 500 keys whose look-ups cost as many
// queries as one key's.
import { AsyncLocalStorage } from 'node:async_hooks';
import { join } from 'node:path';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { beforeAll, describe, expect, test } from 'vitest';
import { ServiceError } from '../../../server/base/service-error.ts';
import { toRfc3339 } from '../../../server/base/time.ts';
import type { TdeCaller } from '../../../server/operations/index.ts';
import { isVisible } from '../../../server/operations/tde/visibility.ts';
import { administrator, dataObject, instance, masterKey, registerCaller, toLabel } from '../../support/open-service.ts';
import { restart, sharedService } from '../../support/shared.ts';
import { onSqlite } from '../../support/test-store.ts';

const opened = sharedService();

const code = (wanted: string) => expect.objectContaining({ name: ServiceError.name, code: wanted });
const cbc = { algorithm: 'aes-cbc', iv: Buffer.alloc(16) } as const;
const plain = Buffer.alloc(32, 7);
const audit = async (kind: Parameters<typeof opened.operations.audit.list>[1]['kind'], actorId?: string) =>
  (await opened.operations.audit.list(administrator, { kind, actorId, order: 'oldest', limit: 1000 })).items;

/** Authenticates the application again, as its next request does. */
const again = (accessGuid: string, requestId = 'next'): Promise<TdeCaller> =>
  opened.operations.tde.authenticate({ accessGuid, appId: 'db', instance, requestId, peer: null });

describe('what a database keeps beside the master key of another one of its group', () => {
  test('can be read, and neither changed nor destroyed; a database may keep its own under the same label', async () => {
    const { caller: source, groupId } = await registerCaller(opened, 'source of a clone');
    const { caller: clone } = await registerCaller(opened, 'clone', groupId);
    const { tde } = opened.operations;
    const metadata = dataObject('ORACLE.SECURITY.KM.ENCRYPTION.30363946');
    const { handle } = await tde.createObject(source, metadata, Buffer.from('of the source'));
    expect((await tde.readValue(clone, handle)).toString()).toBe('of the source');
    await expect(tde.updateObject(clone, handle, {}, Buffer.from('other'))).rejects.toEqual(code('forbidden'));
    await expect(tde.destroyObject(clone, handle)).rejects.toEqual(code('forbidden'));
    const own = await tde.createObject(clone, metadata, Buffer.from('of the clone'));
    const found = await tde.findObjects(clone, { label: metadata.label, after: 0, limit: 10 });
    expect(found.objects.map((each) => [each.handle, each.owned])).toEqual([
      [handle, false],
      [own.handle, true],
    ]);
    await tde.destroyObject(clone, own.handle);
    expect((await tde.readValue(source, handle)).toString()).toBe('of the source');
  });
});

test('a second group of one name in a tenant is refused as a group, not as its vault', async () => {
  const { tdeGroups } = opened.operations;
  await tdeGroups.create(administrator, { name: 'taken' });
  await expect(tdeGroups.create(administrator, { name: 'taken' })).rejects.toMatchObject({
    ...{ code: 'conflict', message: 'a group with this name already exists' },
  });
});

describe('a database of another group that looks for a master key', () => {
  test('finds none, and the service records application, host, process and label', async () => {
    const { caller: owner } = await registerCaller(opened, 'looked-for');
    const { caller: outsider } = await registerCaller(opened, 'looking');
    const { tde } = opened.operations;
    const key = await tde.generateKey(owner, masterKey('MK.LOOKED'));
    const query = { label: key.label, after: 0, limit: 10 };
    expect((await tde.findObjects(outsider, query)).objects).toEqual([]);
    const [event, ...others] = await audit('key.denied', outsider.application.id);
    expect(others).toEqual([]);
    expect(event).toMatchObject({
      subjectId: key.id,
      requestId: 'call-1',
      details: {
        name: 'MK.LOOKED',
        label: key.label,
        applicationId: outsider.application.id,
        host: instance.host,
        process: instance.process,
        operation: 'find',
        reason: 'another group',
      },
    });
  });

  test('with every heartbeat does not fill the audit log: the first is recorded, the rest counted', async () => {
    const { caller: owner } = await registerCaller(opened, 'heard');
    const { caller: outsider } = await registerCaller(opened, 'heartbeat');
    const { tde } = opened.operations;
    const key = await tde.generateKey(owner, masterKey('MK.HEARTBEAT'));
    for (let beat = 0; beat < 200; beat += 1) {
      await tde.findObjects(outsider, { label: key.label, after: 0, limit: 10 });
      await expect(tde.checkUse(outsider, key.handle, 'encrypt')).rejects.toEqual(code('key-not-found'));
    }
    const events = await audit('key.denied', outsider.application.id);
    expect(events.map(({ details }) => details.operation)).toEqual(['find', 'encrypt']);
  });

  test('by guessing handles leaves no more than a hundred records', async () => {
    const { caller: owner } = await registerCaller(opened, 'guessed');
    const { caller: outsider } = await registerCaller(opened, 'guessing');
    const { tde } = opened.operations;
    const handles: number[] = [];
    for (let at = 0; at < 120; at += 1)
      handles.push((await tde.generateKey(owner, masterKey(`MK.GUESS.${at}`))).handle);
    for (const handle of handles) await expect(tde.getObject(outsider, handle)).rejects.toEqual(code('key-not-found'));
    // Nor would one of another tenant whose row named the same group.
    const [first = 0] = handles;
    const object = await tde.getObject(owner, first);
    const stored = { ...object, groupId: outsider.application.groupId, tenantId: outsider.application.tenantId };
    expect(
      [stored, { ...stored, tenantId: 'another' }, { ...stored, groupId: 'another' }].map((each) =>
        isVisible(outsider, each as never),
      ),
    ).toEqual([true, false, false]);
    expect((await audit('key.denied', outsider.application.id)).length).toBeLessThanOrEqual(101);
  });

  test('finds nothing to record where no one has the label, nor for what is not a key', async () => {
    const { caller: owner } = await registerCaller(opened, 'has-data');
    const { caller: other } = await registerCaller(opened, 'has-none');
    const { tde } = opened.operations;
    await tde.createObject(owner, dataObject('PROBE'), Buffer.from('x'));
    for (const label of ['PROBE', 'NOWHERE'])
      await tde.findObjects(other, { label: toLabel(label), after: 0, limit: 10 });
    expect(await audit('key.denied', other.application.id)).toEqual([]);
  });
});

describe('an application that moves to another group', () => {
  const setUp = async (name: string) => {
    const mover = await registerCaller(opened, `${name}-mover`);
    const left = await registerCaller(opened, `${name}-left`, mover.groupId);
    const joined = await registerCaller(opened, `${name}-joined`);
    const { tde } = opened.operations;
    const own = await tde.generateKey(mover.caller, masterKey(`${name}-OWN`));
    const theirs = await tde.generateKey(left.caller, masterKey(`${name}-THEIRS`));
    const id = mover.caller.application.id;
    return { mover, left, joined, own, theirs, id, tde, applications: opened.operations.applications };
  };

  test('is shown the consequences first, and nothing is changed', async () => {
    const { mover, left, joined, id, applications } = await setUp('planned');
    const move = await applications.planMove(administrator, id, joined.groupId);
    expect(move).toMatchObject({
      from: { id: mover.groupId },
      to: { id: joined.groupId },
      keys: 1,
      objects: 0,
      conflictingLabels: [],
      keysLost: 1,
      leaves: [{ name: 'planned-left', keys: 1, instances: [{ host: instance.host }] }],
      joins: [{ name: 'planned-joined', keys: 0 }],
      instances: [{ process: instance.process }],
    });
    expect((await applications.get(administrator, id)).groupId).toBe(mover.groupId);
    expect(left.groupId).toBe(mover.groupId);
  });

  test('takes its keys along, in use, and loses those of others with its next request', async () => {
    const { mover, left, joined, own, theirs, id, tde, applications } = await setUp('moved');
    const sealed = await tde.encrypt(mover.caller, own.handle, cbc, plain);
    await applications.move(administrator, id, joined.groupId);

    const next = await again(mover.accessGuid);
    expect(await tde.decrypt(next, own.handle, cbc, sealed)).toEqual(plain);
    await expect(tde.encrypt(next, theirs.handle, cbc, plain)).rejects.toEqual(code('key-not-found'));
    expect((await tde.findObjects(next, { label: theirs.label, after: 0, limit: 1 })).objects).toEqual([]);
    const was = await again(left.accessGuid);
    await expect(tde.encrypt(was, own.handle, cbc, plain)).rejects.toEqual(code('key-not-found'));
    const now = await again(joined.accessGuid);
    expect(await tde.decrypt(now, own.handle, cbc, sealed)).toEqual(plain);
    await expect(tde.destroyObject(now, own.handle)).rejects.toEqual(code('forbidden'));

    const [event] = (await audit('application.moved')).filter(({ subjectId }) => subjectId === id);
    expect(event?.details).toMatchObject({ keys: 1, keysLost: 1, leaves: ['moved-left'], joins: ['moved-joined'] });
    const key = await opened.operations.keys.get(administrator, own.id);
    const group = await opened.operations.tdeGroups.get(administrator, joined.groupId);
    expect(key.vaultId).toBe(group.vaultId);
    const radius = await opened.operations.masterKeys.blastRadius(administrator, id, own.id);
    expect(radius.groupApplications.map(({ name }) => name)).toEqual(['moved-joined']);
  });

  test('is also stopped in a request that started before', async () => {
    const { mover, joined, theirs, id, tde, applications } = await setUp('begun');
    await tde.encrypt(mover.caller, theirs.handle, cbc, plain);
    // The caller of a request that was admitted before the move.
    await applications.move(administrator, id, joined.groupId);
    await expect(tde.encrypt(mover.caller, theirs.handle, cbc, plain)).rejects.toEqual(code('key-not-found'));
    await expect(tde.generateKey(mover.caller, masterKey('BEGUN-NEW'))).rejects.toEqual(code('conflict'));
  });

  test('does not move where one of its labels is taken, nor to its own group, nor to a vault that is switched off', async () => {
    const { mover, joined, id, tde, applications } = await setUp('taken');
    await tde.generateKey(joined.caller, masterKey('taken-OWN'));
    const move = await applications.planMove(administrator, id, joined.groupId);
    expect(move.conflictingLabels).toEqual(['taken-OWN']);
    await expect(applications.move(administrator, id, joined.groupId)).rejects.toEqual(code('label-exists'));
    await expect(applications.move(administrator, id, mover.groupId)).rejects.toEqual(code('conflict'));
    const closed = await opened.operations.tdeGroups.create(administrator, { name: 'closed' });
    await opened.operations.vaults.disable(administrator, closed.vaultId);
    await expect(applications.planMove(administrator, id, closed.id)).rejects.toEqual(code('conflict'));
    expect((await applications.get(administrator, id)).groupId).toBe(mover.groupId);
  });
});

describe('a credential that is not valid', () => {
  test('says that it was removed, or that the application is disabled, only to a caller who has it', async () => {
    const { accessGuid, caller } = await registerCaller(opened, 'credentials');
    const { applications } = opened.operations;
    const { id } = caller.application;
    const second = await applications.rotateAccessGuid(administrator, id);
    const first = (await applications.accessGuids(administrator, id)).at(-1);
    await applications.removeAccessGuid(administrator, id, first?.id ?? '');
    const refused = (reason: string) => expect.objectContaining({ code: 'unauthenticated', reason });
    await expect(again(accessGuid)).rejects.toEqual(refused('removed'));
    await expect(again(accessGuid.replace(/.$/, (c) => (c === 'A' ? 'B' : 'A')))).rejects.toEqual(refused('unknown'));
    await applications.disable(administrator, id);
    await expect(again(second.accessGuid, 'refused-id')).rejects.toEqual(refused('disabled'));
    await restart(opened);
    const events = (await audit('authentication.failed')).map(({ subjectKind, subjectId, details }) => ({
      subjectKind,
      subjectId,
      ...details,
    }));
    expect(events).toContainEqual(expect.objectContaining({ subjectId: id, reason: 'removed', name: 'credentials' }));
    expect(events).toContainEqual(
      expect.objectContaining({ subjectKind: 'application', reason: 'disabled', lastRequestId: 'refused-id' }),
    );
    expect(events).toContainEqual(expect.objectContaining({ subjectKind: 'service', reason: 'unknown' }));
    expect(JSON.stringify(events)).not.toContain(accessGuid);
  });
});

describe('a rotation history of 500 master keys', () => {
  const keys = 500;
  let caller: TdeCaller;
  let handles: number[];
  const path = () => join(opened.folder, 'dke-data', 'dke.db');

  const counting = new AsyncLocalStorage<true>();
  /**
   * The statements that it runs, and the rows that they give; not those that the service runs by
   * the clock in the meantime.
   */
  const counted = async <T>(work: () => Promise<T>) => {
    const statements: string[] = [];
    let rows = 0;
    const { all, run } = StatementSync.prototype;
    StatementSync.prototype.all = function (this: StatementSync, ...given: Parameters<typeof all>) {
      const answer = all.apply(this, given);
      if (counting.getStore() === true) {
        statements.push(this.sourceSQL);
        rows += answer.length;
      }
      return answer;
    } as typeof all;
    StatementSync.prototype.run = function (this: StatementSync, ...given: Parameters<typeof run>) {
      if (counting.getStore() === true) statements.push(this.sourceSQL);
      return run.apply(this, given);
    } as typeof run;
    try {
      return { answer: await counting.run(true, work), statements, rows };
    } finally {
      Object.assign(StatementSync.prototype, { all, run });
    }
  };
  beforeAll(async () => {
    ({ caller } = await registerCaller(opened, 'history'));
    handles = [];
    for (let at = 0; at < keys; at += 1)
      handles.push((await opened.operations.tde.generateKey(caller, masterKey(`HISTORY.${at}`))).handle);
  });

  const plans = onSqlite("SQLite's query plans");
  test.runIf(plans)('finds and opens the first as the last, with the same statements, by an index', async () => {
    const { tde } = opened.operations;
    const find = (at: number) =>
      counted(() => tde.findObjects(caller, { label: toLabel(`HISTORY.${at}`), after: 0, limit: 10 }));
    const [first, last] = [await find(0), await find(keys - 1)];
    expect(first.answer.objects[0]?.handle).toBe(handles[0]);
    expect(last.answer.objects[0]?.handle).toBe(handles[keys - 1]);
    expect(first.statements).toEqual(last.statements);
    // The search, and the object and the key that it found, which contain the permitted uses.
    expect([first.rows, last.rows]).toEqual([3, 3]);
    expect(first.statements).toHaveLength(3);
    const again = await find(0);
    expect(again.statements).toHaveLength(0);

    const database = new DatabaseSync(path(), { readOnly: true });
    const parameters = (sql: string) => Array.from({ length: sql.split('?').length - 1 }, () => 0);
    const plan = (sql: string): string =>
      database
        .prepare(`explain query plan ${sql}`)
        .all(...parameters(sql))
        .map((row) => String(row.detail))
        .join('\n');
    const [search = '', ...fetched] = first.statements.map(plan);
    expect(search).toMatch(/SEARCH tde_objects USING INDEX tde_objects_by_label \(group_id=\? AND label=\?/);
    expect(search).not.toMatch(/SCAN/);
    for (const each of fetched) expect(each).toMatch(/^SEARCH \w+ USING .*\((?:rowid|handle|id|tenant_id)=\?/);
    const page = await counted(() =>
      opened.operations.masterKeys.list(administrator, caller.application.id, { limit: 100 }),
    );
    for (const sql of page.statements) expect(plan(sql), sql).not.toMatch(/SCAN|TEMP B-TREE/);
    database.close();
  });

  test.runIf(plans)('pages with as many statements as one key costs, newest first, all of it', async () => {
    const { masterKeys } = opened.operations;
    const { id } = caller.application;
    const one = await counted(() => masterKeys.list(administrator, id, { limit: 1 }));
    const many = await counted(() => masterKeys.list(administrator, id, { limit: 100 }));
    expect(many.statements.length).toBe(one.statements.length);
    expect(many.rows).toBeLessThanOrEqual(450);
    const names: string[] = [];
    for (let after: string | undefined; ; ) {
      const { items, next } = await masterKeys.list(administrator, id, { limit: 100, after });
      names.push(...items.map(({ name }) => name));
      if (next === null) break;
      after = next;
    }
    expect(names).toEqual(Array.from({ length: keys }, (_, at) => `HISTORY.${keys - 1 - at}`));
    expect(one.answer.items[0]).toMatchObject({ newest: true, firstUsedAt: null, lastUsedAt: null });
    expect(many.answer.items.filter(({ newest }) => newest)).toHaveLength(1);
  });

  test.runIf(plans)('moves with all its keys in a few statements for hundreds of them', async () => {
    const { applications } = opened.operations;
    const { caller: mover, accessGuid, groupId: first } = await registerCaller(opened, 'moves with many');
    const { id } = mover.application;
    const { groupId } = await registerCaller(opened, 'joined by many');
    const isWrite = (sql: string): boolean => /^\s*(?:with\b.*?)?\b(?:insert|update|delete)\b/is.test(sql);
    const moves: { readonly all: number; readonly writes: number }[] = [];
    for (const to of [groupId, first, groupId]) {
      const caller = await again(accessGuid);
      for (let at = 0; at < 150; at += 1)
        await opened.operations.tde.generateKey(caller, masterKey(`MOVED.${moves.length}.${at}`));
      const { answer, statements } = await counted(() => applications.move(administrator, id, to));
      expect(answer.move.keys).toBe(150 * (moves.length + 1));
      moves.push({ all: statements.length, writes: statements.filter(isWrite).length });
    }
    // The moves are of 150, 300 and 450 keys. Each 200 keys hold the writer for only a few
    // statements, however many a single key costs.
    const [one, , three] = moves;
    if (one === undefined || three === undefined) throw new Error('three moves were counted');
    expect(one.writes).toBeGreaterThan(0);
    expect(three.writes - one.writes).toBeLessThanOrEqual(2 * 10);
    expect(three.all).toBeLessThan(100);
    const { vaultId } = await opened.operations.tdeGroups.get(administrator, groupId);
    const page = await opened.operations.masterKeys.list(administrator, id, { limit: 450 });
    expect(page.items).toHaveLength(450);
    for (const key of page.items)
      expect(await opened.operations.keys.get(administrator, key.id)).toMatchObject({ vaultId });
  });

  test.runIf(plans)('stays in memory, opened, while others register, create and change what is theirs', async () => {
    const { tde, vaults, applications, tdeGroups, keys: all } = opened.operations;
    const [handle = 0] = handles;
    const use = () => counted(() => tde.encrypt(caller, handle, cbc, plain));
    await use();
    expect((await use()).statements).toEqual([]);
    const { caller: other, groupId } = await registerCaller(opened, 'beside the history');
    const { handle: theirs } = await tde.generateKey(other, masterKey('BESIDE'));
    const { vaultId } = await tdeGroups.get(administrator, groupId);
    await vaults.create(administrator, { name: 'beside the history' });
    await applications.rotateAccessGuid(administrator, other.application.id);
    await vaults.disable(administrator, vaultId);
    expect((await use()).statements).toEqual([]);
    // What was changed is known at once.
    await expect(tde.encrypt(other, theirs, cbc, plain)).rejects.toEqual(code('key-disabled'));
    const { id } = await tde.getObject(caller, handle);
    await all.disable(administrator, id);
    await expect(tde.encrypt(caller, handle, cbc, plain)).rejects.toEqual(code('key-disabled'));
    await all.enable(administrator, id);
  });

  test('shows when each was activated and last used; the activation does not change', async () => {
    const { tde, masterKeys } = opened.operations;
    const { id } = caller.application;
    const [handle = 0] = handles;
    const key = await tde.getObject(caller, handle);
    await tde.encrypt(caller, handle, cbc, plain);
    const used = await masterKeys.get(administrator, id, key.id);
    expect(used.firstUsedAt).not.toBeNull();
    expect(used.lastUsedAt).toBeGreaterThanOrEqual(used.firstUsedAt ?? Number.NaN);
    while (Date.now() === used.lastUsedAt) await new Promise((resolve) => setImmediate(resolve));
    await tde.encrypt(caller, handle, cbc, plain);
    const later = await masterKeys.get(administrator, id, key.id);
    expect(later.firstUsedAt).toBe(used.firstUsedAt);
    expect(later.lastUsedAt).toBeGreaterThan(used.firstUsedAt ?? 0);
    expect(later.newest).toBe(false);
    // A query of the key's users, and the impact before its removal, have the same times of use.
    const { name, groupId } = caller.application;
    const times = { firstUsedAt: later.firstUsedAt, lastUsedAt: later.lastUsedAt };
    const group = (await opened.operations.tdeGroups.get(administrator, groupId)).name;
    expect(await opened.operations.keys.use(administrator, key.id)).toEqual({
      ...{ keyId: key.id, ...times, endpoints: [], copies: { count: 0, items: [] } },
      application: { id, name, groupId, groupName: group },
    });
    const evidence = { lastUsedAt: toRfc3339(later.lastUsedAt ?? 0), lastUsedBy: name };
    expect((await masterKeys.destroyNeeds(administrator, id, key.id)).impact).toMatchObject(evidence);
    expect((await opened.operations.keys.planSoftDelete(administrator, key.id)).impact).toMatchObject(evidence);
  });

  test('loses none by rotation: the oldest still decrypts', async () => {
    const { tde } = opened.operations;
    const [handle = 0] = handles;
    const sealed = await tde.encrypt(caller, handle, cbc, plain);
    expect(await tde.decrypt(caller, handle, cbc, sealed)).toEqual(plain);
    expect((await tde.findObjects(caller, { after: 0, limit: 1000 })).objects).toHaveLength(keys);
  });
});
