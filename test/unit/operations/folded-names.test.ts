// Names of users in rows of a version that folded some of them otherwise: the first start folds
// them again.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openStore } from '../../../server/adapters/store/store.ts';
import { systemClock } from '../../../server/base/time.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import { foldUserName } from '../../../server/domain/user.ts';
import { foldedNames, foldNames } from '../../../server/operations/people/fold-names.ts';
import { withoutPerson } from '../../../server/operations/people/user-records.ts';
import { folderOfTest } from '../../support/folders.ts';
import { openTestService } from '../../support/open-service.ts';
import { storedUser } from '../../support/stored.ts';
import { askUnlocked, queryStored } from '../../support/test-store.ts';

test('a user of a version that folded the name otherwise is found by it; of two names that are one now, the first', async () => {
  const path = join(folderOfTest(), 'dke.db');
  const store = await openStore({
    path,
    clock: systemClock,
    authenticateRow: () => '',
    onFatal: (error) => {
      throw error;
    },
  });
  const names = ['νίκος.παππάς', 'J\u030can', 'ada', 'odysseas', 'odysseus'];
  const [nikos, jan, ada, first, second] = names.map((name) => storedUser({ name }));
  const database = new DatabaseSync(path);
  try {
    for (const user of [nikos, jan, ada, first, second])
      if (user !== undefined) await store.write((tx) => tx.users.insert(user));
    await askUnlocked(() => {
      const put = database.prepare('update users set name = ?, folded_name = ? where id = ?');
      // Earlier versions folded so.
      for (const [user, name] of [
        [nikos, 'νίκος.παππάς'],
        [jan, 'J\u030can'],
        [first, 'οδυσσεύς'],
        [second, 'οδυσσεύσ'],
      ] as const)
        put.run(name, name.normalize('NFKC').toLowerCase(), user?.id ?? '');
    });
    const found = async (name: string) => (await store.read.users.findByName(foldUserName(name)))?.id;
    expect([await found('νίκος.παππάς'), await found('J\u030can')]).toEqual([undefined, undefined]);
    await store.write(foldNames);
    expect(await Promise.all(['νίκος.παππάς', 'ΝΊΚΟΣ.ΠΑΠΠΆΣ', 'J\u030can', 'ADA', 'ΟΔΥΣΣΕΎΣ'].map(found))).toEqual(
      [nikos, nikos, jan, ada, first].map((user) => user?.id),
    );
    await store.write(async (tx) => {
      const other = await tx.users.get(everyTenant, second?.id ?? '');
      if (other !== undefined) await tx.users.update(withoutPerson(other));
    });
    expect((await store.read.users.get(everyTenant, second?.id ?? ''))?.state).toBe('deleted');
  } finally {
    database.close();
    await store.close();
  }
});

test('each start sees whether names are folded as it folds them', async () => {
  const service = await openTestService();
  try {
    const [row] = await queryStored(service.folder, 'select value from settings where name = ?', foldedNames.setting);
    expect(row).toEqual({ value: foldedNames.version });
  } finally {
    await service.remove();
  }
});
