// Values of token objects other than secret keys. A writer of the database cannot put an older
// value back, with or without its key; a snapshot carries none that was put back; and a value that
// was replaced or destroyed ends with the next erasure run.
import { beforeEach, describe, expect, test } from 'vitest';
import { verifyOffline } from '../../../server/app/host/offline.ts';
import type { TdeCaller } from '../../../server/operations/tde/tde-operations.ts';
import {
  administrator,
  dataObject,
  instance,
  masterKey,
  registerCaller,
  untilAudited,
} from '../../support/open-service.ts';
import { freshService, restart } from '../../support/shared.ts';
import { actorIn, handOf, handWith } from '../../support/snapshots.ts';
import { queryStored } from '../../support/test-store.ts';

const settings = {
  toml: '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n[snapshots]\nrestore_second_person = false\n',
};
const opened = freshService(settings);
const tampered = expect.objectContaining({ code: 'key-tampered' });
let caller: TdeCaller;
let handle: number;
let id: string;
beforeEach(async () => {
  ({ caller } = await registerCaller(opened, 'erp'));
  ({ handle, id } = await opened.operations.tde.createObject(caller, dataObject('list'), Buffer.from('first')));
});

const read = async (of = caller): Promise<string> => (await opened.operations.tde.readValue(of, handle)).toString();
const replace = async (value: string): Promise<void> => {
  await opened.operations.tde.updateObject(caller, handle, {}, Buffer.from(value));
};
interface Kept {
  readonly content: Buffer;
  readonly record: Buffer;
}
/** The value and its key, as a person who reads the database has them. */
const keep = async (): Promise<Kept> => {
  const [object] = await queryStored(opened.folder, 'select content from tde_objects where id = ?', id);
  const [record] = await queryStored(opened.folder, 'select record from key_records where object_id = ?', id);
  const bytesOf = (value: unknown): Buffer => Buffer.from(value as Uint8Array);
  return { content: bytesOf(object?.content), record: bytesOf(record?.record) };
};
const putBack = async ({ content, record }: Partial<Kept>): Promise<void> => {
  await opened.stop();
  if (content !== undefined)
    await queryStored(opened.folder, 'update tde_objects set content = ? where id = ?', content, id);
  if (record !== undefined)
    await queryStored(opened.folder, 'update key_records set record = ? where object_id = ?', record, id);
  await restart(opened, settings);
};
const findings = async (): Promise<readonly string[]> => {
  await opened.stop();
  try {
    const noPassphrase = () => Promise.reject(new Error('no passphrase is needed'));
    return (await verifyOffline(opened.config, noPassphrase)).findings;
  } finally {
    await restart(opened, settings);
  }
};
/** Reads the value of the copy that is in another tenant. */
const readIn = async (tenantId: string): Promise<string> => {
  const { operations, folder } = opened;
  const [row] = await queryStored(folder, 'select handle from tde_objects where tenant_id = ?', tenantId);
  const [application] = (await operations.applications.list(actorIn(tenantId), { limit: 1 })).items;
  const issued = await operations.applications.rotateAccessGuid(actorIn(tenantId), application?.id ?? '');
  const { accessGuid } = issued;
  const login = { accessGuid, appId: application?.appId ?? '', instance, requestId: 'r', peer: null };
  const other = await operations.tde.authenticate(login);
  return (await operations.tde.readValue(other, Number(row?.handle))).toString();
};

describe('an older value that is put back in the database', () => {
  test.each(['the value', 'the value and its key'])('%s: is refused, and verification names it', async (what) => {
    const { content, record } = await keep();
    await replace('second');
    await replace('third');
    expect(await read()).toBe('third');
    await putBack(what === 'the value' ? { content } : { content, record });
    await expect(read()).rejects.toEqual(tampered);
    await expect(replace('fourth')).rejects.toEqual(tampered);
    expect((await findings()).join()).toContain(`tde_objects ${id}: the row was changed from outside`);
  });

  test('is not in a snapshot: a restore has the sound value, or none', async () => {
    const before = await handOf(opened);
    const { content } = await keep();
    await replace('second');
    const sound = await before.make(administrator.tenantId);
    await putBack({ content });
    const hand = handWith(opened, before.recovery);
    const { tenantId } = await hand.restore(await hand.make(administrator.tenantId), { newTenant: 'beside' });
    await expect(readIn(tenantId)).rejects.toEqual(tampered);
    await hand.restore(sound, { tenantId: administrator.tenantId });
    expect(await read()).toBe('second');
  });
});

test('a snapshot from before a change brings the older value back, which is then the only one', async () => {
  const hand = await handOf(opened);
  const before = await hand.make(administrator.tenantId);
  await replace('second');
  const kept = await keep();
  const { counts } = await hand.restore(before, { tenantId: administrator.tenantId });
  expect(counts.tde_objects).toMatchObject({ changed: 1 });
  expect(await read()).toBe('first');
  await putBack(kept);
  await expect(read()).rejects.toEqual(tampered);
  await handWith(opened, hand.recovery).restore(before, { tenantId: administrator.tenantId });
  expect(await read()).toBe('first');
  expect(await findings()).toEqual([]);
});

test('a time that was written into a row from outside does not become that of a restored one', async () => {
  const hand = await handOf(opened);
  const before = await hand.make(administrator.tenantId);
  await opened.stop();
  await queryStored(
    opened.folder,
    'update tde_objects set content = null, content_replaced_at = ? where id = ?',
    Date.now() + 1_000_000_000,
    id,
  );
  await restart(opened, settings);
  await handWith(opened, hand.recovery).restore(before, { tenantId: administrator.tenantId });
  expect(await read()).toBe('first');
  const [row] = await queryStored(opened.folder, 'select content_replaced_at as at from tde_objects where id = ?', id);
  expect(Number(row?.at)).toBeLessThan(Date.now() + 1_000_000);
});

test('the copy of a tenant has its values', async () => {
  const hand = await handOf(opened);
  await replace('second');
  const { tenantId } = await hand.restore(await hand.make(administrator.tenantId), { newTenant: 'beside' });
  expect(await readIn(tenantId)).toBe('second');
});

test('who reads next to a change gets one of the values', async () => {
  const changes = Array.from({ length: 30 }, (_, at) => `value ${at}`);
  let isOver = false;
  const seen = new Set<string>();
  const reading = Array.from({ length: 3 }, async () => {
    while (!isOver) seen.add(await read());
  });
  for (const value of changes) await replace(value);
  isOver = true;
  await Promise.all(reading);
  for (const value of seen) expect(['first', ...changes]).toContain(value);
  expect(await read()).toBe('value 29');
});

describe('the erasure run', () => {
  const finished = async () => untilAudited(opened, 'erasure.finished');

  test.each(['replaced', 'destroyed'])('follows when a value is %s', async (how) => {
    const { record } = await keep();
    if (how === 'replaced') await replace('second');
    else await opened.operations.tde.destroyObject(caller, handle);
    expect((await finished()).details).toMatchObject({ keys: 0, objects: 1 });
    await expect.poll(async () => (await opened.operations.status(administrator)).erasure.pendingObjects).toBe(0);
    if (how === 'destroyed') return;
    expect(await read()).toBe('second');
    expect((await keep()).record.equals(record)).toBe(false);
  });

  test('does not follow when a value is created, or its object changed otherwise', async () => {
    const { tde } = opened.operations;
    await tde.updateObject(caller, handle, { label: 'bmFtZQ==' });
    await tde.createObject(caller, dataObject('other'), Buffer.from('value'));
    const key = await tde.generateKey(caller, masterKey('destroyed'));
    await tde.destroyObject(caller, key.handle);
    expect((await finished()).details).toMatchObject({ keys: 1, objects: 0 });
  });
});
