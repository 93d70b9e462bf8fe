// The vaults whose rules name a user, as a password reset asks for them in its unit of work: the
// database selects them, and the others are neither read nor checked.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openStore } from '../../../server/store/store.ts';
import { folderOfTest } from '../../support/folders.ts';
import { askUnlocked } from '../../support/test-store.ts';

test('a reset reads the vaults that name the user, and no other', async () => {
  const path = join(folderOfTest(), 'dke.db');
  const checked: string[] = [];
  const store = await openStore({
    path,
    clock: { now: () => 0, monotonic: () => 0 },
    authenticateRow: (text) => {
      checked.push(text);
      return '';
    },
    onFatal: (error) => {
      throw error;
    },
  });
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  await askUnlocked(() => database.exec('begin immediate'));
  const insert = database.prepare(
    `insert into vaults (id, tenant_id, name, kind, state, created_at, row_mac, dual_control)
     values (?, 'tenant', ?, 'tde', 'enabled', 1, '', ?)`,
  );
  const rule = (approver: string): string => JSON.stringify({ approvers: [approver], operations: ['key.destroy'] });
  for (let at = 0; at < 1_000; at += 1)
    insert.run(`vault-${at}`, `vault ${at}`, at % 100 === 7 ? rule(at === 507 ? 'user-1' : 'user-2') : null);
  database.exec('commit');
  database.close();
  checked.length = 0;
  const found = await store.write((tx) => tx.vaults.listNaming('user-1'));
  expect(found.map(({ id }) => id)).toEqual(['vault-507']);
  const read = checked.flatMap((text) => /vault-\d+/.exec(text)?.[0] ?? []);
  expect(new Set(read)).toEqual(new Set(['vault-507']));
  await store.close();
});
