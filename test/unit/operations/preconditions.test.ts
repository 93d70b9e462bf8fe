// Conditional changes: the change applies to the checked state, also with many concurrent changes.
import { beforeEach, expect, test } from 'vitest';
import type { Vault } from '../../../server/domain/vault.ts';
import { administrator, masterKey, registerCaller } from '../../support/open-service.ts';
import { freshService } from '../../support/shared.ts';

const opened = freshService();
let vault: Vault;
beforeEach(async () => {
  vault = await opened.operations.vaults.create(administrator, { name: 'contested' });
});

const state = async (): Promise<string> => (await opened.operations.vaults.get(administrator, vault.id)).state;
const switchOver = async (): Promise<Vault> =>
  (await state()) === 'enabled'
    ? opened.operations.vaults.disable(administrator, vault.id)
    : opened.operations.vaults.enable(administrator, vault.id);
/** Disables the vault if it is enabled when that is done. */
const disableEnabled = (): Promise<Vault> =>
  opened.operations.preconditions.under(
    async () => {
      if ((await state()) !== 'enabled') throw new Error('not enabled');
    },
    () => opened.operations.vaults.disable(administrator, vault.id),
  );

test('of many that ask at once one is carried out', async () => {
  const ended = await Promise.allSettled(Array.from({ length: 20 }, disableEnabled));
  expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  const refused = ended.filter((each) => each.status === 'rejected').map(({ reason }) => (reason as Error).message);
  expect(new Set(refused)).toEqual(new Set(['not enabled']));
  expect(await state()).toBe('disabled');
});

test('it is checked in the first unit of work, and what comes after has met it', async () => {
  let looks = 0;
  await opened.operations.preconditions.under(
    async () => {
      looks += 1;
    },
    async () => {
      expect(looks).toBe(0);
      await switchOver();
      await switchOver();
    },
  );
  expect(looks).toBe(1);
  expect(await state()).toBe('enabled');
});

test('a unit of work that was refused leaves the condition to the next one', async () => {
  const { preconditions, vaults } = opened.operations;
  let looks = 0;
  await preconditions.under(
    async () => {
      looks += 1;
    },
    async () => {
      await expect(vaults.create(administrator, { name: 'contested' })).rejects.toMatchObject({ code: 'conflict' });
      await vaults.disable(administrator, vault.id);
    },
  );
  expect(looks).toBe(2);
});

test('a check that would change something is refused, and delays no one', async () => {
  const { preconditions, vaults } = opened.operations;
  const changing = preconditions.under(
    async () => void (await vaults.enable(administrator, vault.id)),
    () => vaults.disable(administrator, vault.id),
  );
  await expect(changing).rejects.toMatchObject({ code: 'internal' });
  expect(await state()).toBe('enabled');
  expect((await vaults.disable(administrator, vault.id)).state).toBe('disabled');
});

test('uses that are written on the way are not taken for the change', async () => {
  const { preconditions, keys, tde } = opened.operations;
  const { caller } = await registerCaller(opened, 'uses');
  const key = await tde.generateKey(caller, masterKey('MK.USED'));
  await tde.encrypt(caller, key.handle, { algorithm: 'aes-ecb' }, Buffer.alloc(16));
  const seen: (number | null)[] = [];
  await preconditions.under(
    async () => {
      seen.push((await keys.get(administrator, key.id)).lastUsedAt);
    },
    () => keys.softDelete(administrator, key.id),
  );
  // Checked once, and after the use was there: in the unit of work that deletes.
  expect(seen).toEqual([expect.any(Number)]);
});

test('what a request has set going is under no condition when the request has ended', async () => {
  const { preconditions, vaults } = opened.operations;
  let goOn: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  let later: Promise<unknown> = Promise.resolve();
  const check = () => Promise.reject(new Error('no longer so'));
  await preconditions.under(check, async () => {
    later = ended.then(() => vaults.disable(administrator, vault.id));
  });
  goOn();
  expect(await later).toMatchObject({ state: 'disabled' });
});
