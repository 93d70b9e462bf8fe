// The policy rows are compared with their set once a minute while the service runs, and differences
// are reported.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseCheckpoint } from '../../../server/base/checkpoint.ts';
import { decisionNames } from '../../../server/domain/decisions.ts';
import { newTenant } from '../../../server/operations/tenants/create-tenant.ts';
import { openSealers, type Sealers } from '../../support/sealers.ts';

let folder: string;
let sealers: Sealers;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dke-compared-'));
});
afterEach(async () => {
  await sealers.store.close();
  rmSync(folder, { recursive: true, force: true });
});

test('rows that are committed during a comparison do not count as a difference', async () => {
  sealers = await openSealers(join(folder, 'dke.db'));
  const { store } = sealers;
  const tenant = newTenant('earlier', 1);
  await store.write((tx) => tx.tenants.insert(tenant));
  await sealers.node(true).sealer.inspect();
  const found = await store.snapshot(async (state) => {
    // The state is fixed, and this process knows a newer one by the time when it compares.
    await store.write(async (tx) => {
      await tx.tenants.insert(newTenant('later', 1));
      const now = await tx.tenants.get(tenant.id);
      if (now === undefined) throw new Error('the tenant is not there');
      await tx.tenants.update({ ...now, name: 'renamed' });
    });
    return state.whole.compareRowSet();
  });
  expect(found).toEqual({ differences: [], older: [] });
});

test('an old row that is put back is found within a minute, and the row is named', async () => {
  const path = join(folder, 'dke.db');
  sealers = await openSealers(path);
  const { store, pass } = sealers;
  const { sealer, anchor, found } = sealers.node(true);
  expect(await sealer.inspect()).toEqual({ state: 'intact' });
  const tenant = newTenant('default', 1);
  await store.write(async (tx) => {
    await tx.tenants.insert(tenant);
    await tx.audit.append({
      kind: 'tenant.created',
      actor: { kind: 'service', id: 'test', name: 'test', requestId: 'r', peer: null },
      tenantId: tenant.id,
      subject: { kind: 'tenant', id: tenant.id },
      details: { name: tenant.name },
    });
  });
  const database = new DatabaseSync(path);
  const older = database.prepare('select state, row_mac, row_version from tenants').get();
  await store.write(async (tx) => {
    await tx.tenants.get(tenant.id);
    await tx.tenants.update({ ...tenant, state: 'suspended' });
  });
  await sealer.checkpoint();
  expect(parseCheckpoint(anchor() ?? '')?.rows?.version).toBe(5);

  pass(61_000);
  await sealer.run();
  await store.snapshot(() => Promise.resolve());
  expect(found).toEqual([]);

  database.prepare('update tenants set state = ?, row_mac = ?, row_version = ?').run(...Object.values(older ?? {}));
  database.close();
  await expect
    .poll(async () => {
      pass(61_000);
      await sealer.run();
      return found;
    })
    .toMatchObject([
      {
        ...{ state: 'rows-changed', size: 1, older: [`tenants ${tenant.id}`] },
        // The finding has the code found and the code expected, and where each is from.
        differences: [
          {
            ...{
              what: 'code of the policy rows in version 5',
              foundIn: `its ${decisionNames.length + 1} policy rows`,
              expectedIn: 'its table row_set',
            },
            ...{ found: expect.stringMatching(/^[0-9a-f]{64}$/), expected: expect.stringMatching(/^[0-9a-f]{64}$/) },
          },
        ],
      },
    ]);
  // Nothing is signed.
  const signed = anchor();
  await sealer.run();
  expect(anchor()).toBe(signed);
});

describe('a decision that was removed', () => {
  const path = (): string => join(folder, 'dke.db');
  const ask = (...statements: readonly string[]): void => {
    const database = new DatabaseSync(path());
    for (const statement of statements) database.exec(statement);
    database.close();
  };
  beforeEach(async () => {
    sealers = await openSealers(path());
    expect(await sealers.node(true).sealer.inspect()).toEqual({ state: 'intact' });
    await sealers.store.write((tx) => tx.decisions.set('erasure-covered', '1'));
    await sealers.store.write((tx) => tx.settings.set('snapshots.last', '1'));
  });

  test.each(['delete from decisions', "delete from decisions where id = 'erasure-covered'"])(
    'has no value, also where a setting has its name, after: %s',
    async (statement) => {
      const { store } = sealers;
      ask(statement, "insert into settings (name, value) values ('erasure-covered', '9')");
      await expect(store.read.decisions.get('erasure-covered')).rejects.toMatchObject({ code: 'key-tampered' });
      await expect(store.write((tx) => tx.decisions.set('erasure-covered', '2'))).rejects.toMatchObject({
        code: 'key-tampered',
      });
      await store.close();
      sealers = await openSealers(path());
      expect(await sealers.node(true).sealer.inspect()).toMatchObject({ state: 'rows-changed' });
      expect(await sealers.store.read.decisions.get('erasure-covered')).toBeUndefined();
    },
  );

  test('is taken from the setting of a version that had no rows for decisions', async () => {
    await sealers.store.close();
    // A database of a version without decision rows: its head covers only the rows that it has.
    ask(
      'delete from decisions',
      'delete from row_set',
      "insert into settings (name, value) values ('erasure-covered', '9')",
    );
    sealers = await openSealers(path());
    await sealers.node(true).sealer.inspect();
    expect(await sealers.store.read.decisions.get('erasure-covered')).toBe('9');
    expect(await sealers.store.read.settings.get('erasure-covered')).toBeUndefined();
  });
});
