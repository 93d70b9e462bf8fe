// The inventory of keys: everything that the caller may read, in every state, page by page.
import { beforeAll, expect, test } from 'vitest';
import type { TenantActor } from '../../../server/domain/actor.ts';
import type { Key } from '../../../server/domain/key.ts';
import { exportKeys } from '../../../server/fronts/api/export.ts';
import { administrator } from '../../support/open-service.ts';
import { sharedService } from '../../support/shared.ts';

const opened = sharedService();
let other: TenantActor;
beforeAll(async () => {
  const { operations } = opened;
  const { id } = await operations.tenants.create(administrator, { name: 'other' });
  other = { ...administrator, tenantId: id, reach: id };
});

const exported = async (actor: TenantActor, filter = {}): Promise<readonly Key[]> => {
  const keys: Key[] = [];
  for await (const page of await opened.operations.keys.export(actor, filter, 'csv')) keys.push(...page);
  return keys;
};

test('has the keys of all tenants for a platform role, and of one tenant for its users', async () => {
  const { vaults, keys, audit } = opened.operations;
  const mine = await vaults.create(administrator, { name: 'mine' });
  const theirs = await vaults.create(other, { name: 'theirs' });
  // More than one page.
  const made: string[] = [];
  for (let at = 0; at < 260; at += 1)
    made.push((await keys.create(administrator, { name: `key ${at}`, vaultId: mine.id, tags: ['env=test'] })).id);
  const foreign = await keys.create(other, { name: '=cmd()', vaultId: theirs.id });
  await keys.softDelete(administrator, made[0] ?? '');

  expect((await exported(administrator)).map(({ id }) => id)).toEqual([foreign.id, ...made.toReversed()]);
  expect((await exported(other)).map(({ id }) => id)).toEqual([foreign.id]);
  expect((await exported(administrator, { state: 'soft-deleted' })).map(({ id }) => id)).toEqual([made[0]]);
  expect(await exported(administrator, { tag: 'env=prod' })).toEqual([]);
  // A filter by use keeps the order: none of these keys was used.
  expect(await exported(administrator, { usedAfter: 0 })).toEqual([]);
  expect((await exported(administrator, { neverUsed: true })).map(({ id }) => id)).toEqual([
    foreign.id,
    ...made.toReversed(),
  ]);
  const { items } = await audit.list(other, { kind: 'key-inventory.exported' });
  expect(items.map(({ details }) => details)).toEqual([{ format: 'csv', filter: {} }]);
});

test('is CSV that a spreadsheet takes as text, or one JSON object a line', async () => {
  const { keys } = opened.operations;
  const csv = await new Response(exportKeys(await keys.export(other, {}, 'csv'), 'csv').body).text();
  const [head = '', line = '', ...rest] = csv.split('\r\n');
  expect(head.split(',').slice(0, 5)).toEqual(['tenantId', 'id', 'name', 'kind', 'state']);
  expect(line.split(',').slice(2, 6)).toEqual(["'=cmd()", 'general', 'active', 'AES-256']);
  expect(rest).toEqual(['']);
  const json = await new Response(exportKeys(await keys.export(other, {}, 'ndjson'), 'ndjson').body).text();
  expect(JSON.parse(json)).toMatchObject({ name: '=cmd()', tenantId: other.tenantId, state: 'active' });
});
