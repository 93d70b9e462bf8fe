// Conditional changes: the change applies to the checked state, also with many concurrent changes.
import { beforeEach, expect, test } from 'vitest';
import type { Vault } from '../../../server/domain/vault.ts';
import { administrator, masterKey, registerCaller } from '../../support/open-service.ts';
import { everything, makeUser } from '../../support/people.ts';
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

test.each([
  ['a token', 'forbidden'],
  ['a session', 'unauthenticated'],
] as const)('a condition reads who calls, by %s, and what they lost before it decides', async (by, code) => {
  const { access, authenticateAdmin, preconditions, profile, sessions, users, vaults } = opened.operations;
  const { user, session } = await makeUser(opened.operations, 'uma', 'auditor');
  const expiresAt = Date.now() + 3_600_000;
  const { token } = await profile.createToken(session, { name: 'of uma', expiresAt, grants: undefined });
  const ask = async () => {
    const { grants } = await (by === 'a token'
      ? authenticateAdmin(token, 'r', null)
      : sessions.authenticate(session.value, 'r', null, { isUse: false, isFresh: true }));
    return { actor: administrator, grants };
  };
  const granted = await ask();
  const rename = (name: string, before: () => unknown) =>
    preconditions.under(
      async () => access.requireAsMuch(await ask(), granted),
      async () => {
        await before();
        return vaults.rename(administrator, vault.id, { name });
      },
    );
  expect((await rename('in time', () => undefined)).name).toBe('in time');
  let come: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => {
    come = resolve;
  });
  const approver = { role: 'key-approver', scope: null, tenantId: null } as const;
  const change = { displayName: 'uma', email: null, subject: null, mustChangePassword: false, grants: [approver] };
  const lost = asked.then(() => users.update(administrator, everything, user.id, change));
  const late = rename('too late', () => {
    come();
    return lost;
  });
  await expect(late).rejects.toMatchObject({ code });
  expect((await vaults.get(administrator, vault.id)).name).toBe('in time');
});
