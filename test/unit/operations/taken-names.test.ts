// User names are one space for the whole service (docs/decisions/0061). A manager of one tenant
// gets one answer for every name that is taken.
import { expect, test } from 'vitest';
import type { Grant } from '../../../server/domain/access.ts';
import { inTenant, serviceActor } from '../../../server/domain/actor.ts';
import { administrator } from '../../support/open-service.ts';
import { everything, makeUser } from '../../support/people.ts';
import { sharedService } from '../../support/shared.ts';

const opened = sharedService();

test('a name that is taken, or looks like a taken one, has one answer, whose it is and whatever its state', async () => {
  const { tenants, users } = opened.operations;
  const [ours, theirs] = [
    await tenants.create(administrator, { name: 'ours' }),
    await tenants.create(administrator, { name: 'theirs' }),
  ];
  const of = (tenantId: string) => ({ ...administrator, ...inTenant(serviceActor('test'), tenantId), tenantId });
  const auditor = (tenantId: string): readonly Grant[] => [{ role: 'auditor', scope: null, tenantId }];
  const add = (tenantId: string, name: string) =>
    users.create(of(tenantId), everything, { name, grants: auditor(tenantId) });
  await add(ours.id, 'of.ours');
  await add(theirs.id, 'of.theirs');
  await users.disable(of(theirs.id), everything, (await add(theirs.id, 'disabled')).user.id);
  const { user: gone } = await add(theirs.id, 'gone');
  await users.delete(of(theirs.id), everything, gone.id);
  await makeUser(opened.operations, 'of.the.platform');
  const answers = new Set<string>();
  const taken = ['of.ours', 'of.theirs', 'disabled', 'of.the.platform'];
  const alike = ['OF.THEIRS', 'ｏf.theirs', 'Disabled', 'of.the.ｐlatform'];
  for (const name of [...taken, ...alike]) {
    const error = await add(ours.id, name).then(
      () => undefined,
      ({ code, message, hint }: { code: string; message: string; hint: string }) => ({ code, message, hint }),
    );
    expect([name, error?.code]).toEqual([name, 'conflict']);
    answers.add(JSON.stringify(error));
  }
  expect([...answers]).toEqual([
    JSON.stringify({
      ...{ code: 'conflict', message: 'a user with this name already exists' },
      hint: 'names are compared without regard to case',
    }),
  ]);
  // What no one sees in it makes no other name.
  for (const unseen of ['\u200d', '\u200c', '\ufe0f'])
    await expect(add(ours.id, `of.theirs${unseen}`)).rejects.toMatchObject({ code: 'validation' });
  // The name of a deleted user is free again.
  expect((await add(ours.id, 'gone')).user.name).toBe('gone');
});
