// Rules that other key services have broken, where no other test has them by name. The table "What
// happened to others" in docs/threat-model.md lists all of them.
import { afterEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { apiRoutes } from '../../../server/contract/api/index.ts';
import type { RouteGroup } from '../../../server/contract/api/row.ts';
import type { Role } from '../../../server/domain/access.ts';
import { inTenant, type TenantActor } from '../../../server/domain/actor.ts';
import { administrator, masterKey, registerCaller } from '../../support/open-service.ts';
import {
  bytesOf,
  errorOf,
  everything,
  goodPassword,
  inviteUser,
  makeUser,
  originOf,
  waits,
} from '../../support/people.ts';
import { freshService } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';
import { codeOf } from '../../support/totp.ts';

const opened = freshService();
afterEach(() => void vi.useRealTimers());
const hour = 3_600_000;
const day = 24 * hour;

const actor = async (role: Role): Promise<TenantActor> => {
  const { tenantId } = administrator;
  const { token } = await opened.operations.tokens.create(administrator, 'the service', {
    name: role,
    grants: [{ role, scope: null, tenantId }],
  });
  return inTenant((await opened.operations.authenticateAdmin(token, 'call-1', null)).actor, tenantId);
};
/** A person with a one-time password; answers its secret. */
const withFactor = async (name: string): Promise<string> => {
  const { factors } = opened.operations;
  const { session } = await makeUser(opened.operations, name, 'key-manager');
  const { id, secret } = await factors.begin(session, 'phone');
  const text = secret.toString();
  await factors.confirm(session, id, bytesOf(codeOf(text, -1)), originOf());
  return text;
};

/** The members of a body, at any depth. */
const membersOf = (schema: unknown): readonly string[] =>
  schema === undefined
    ? []
    : [
        ...JSON.stringify(z.toJSONSchema(schema as z.ZodType, { io: 'input', unrepresentable: 'any' })).matchAll(
          /"(\w+)":\{/g,
        ),
      ].map(([, member = '']) => member);

const spellings = ['ada', 'Ada', 'ADA', 'ａｄａ', 'ＡDA'];
test.each(spellings)('a person is one person under every spelling of the name: %s', async (spelling) => {
  const { signIn, users } = opened.operations;
  await makeUser(opened.operations, 'Ada');
  const wrong = (name: string) => errorOf(signIn.byPassword(name, bytesOf('not the right password'), originOf()));
  const grants = [{ role: 'auditor' as const, scope: null, tenantId: null }];
  expect(await errorOf(users.create(administrator, everything, { name: spelling, grants }))).toBe('conflict');
  // Each spelling counts for the lock of all.
  for (const each of spellings) await wrong(each);
  expect(await errorOf(signIn.byPassword(spelling, bytesOf(goodPassword), originOf()))).toBe('rate-limited');
});

test('a name with spaces or unseen letters is another one: it signs no one in, and no user can have it', async () => {
  const { signIn, users } = opened.operations;
  await makeUser(opened.operations, 'ada');
  const grants = [{ role: 'auditor' as const, scope: null, tenantId: null }];
  const unseen = ['\u200b', '\u200c', '\u200d', '\u2060', '\ufeff', '\u00ad', '\u034f', '\u115f', '\u3164', '\ufe0f'];
  const around = [' ', '\t', '\u00a0', '\u3000', '\u202e', '\u0000', '.', '/'];
  for (const each of [...unseen, ...around].flatMap((mark) => [`${mark}ada`, `ada${mark}`, `a${mark}da`])) {
    const refused = await errorOf(signIn.byPassword(each, bytesOf(goodPassword), originOf()));
    expect([each, ['unauthenticated', 'validation'].includes(refused)]).toEqual([each, true]);
    // A dot counts as a letter of a name.
    if (each === 'a.da' || each === 'ada.') continue;
    expect([each, await errorOf(users.create(administrator, everything, { name: each, grants }))]).toEqual([
      each,
      'validation',
    ]);
  }
});

test('a one-time code is used once, in every spelling of its digits', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const { signIn } = opened.operations;
  const code = codeOf(await withFactor('ada'));
  const caller = await signIn.byPassword('ada', bytesOf(goodPassword), originOf());
  expect((await signIn.secondFactor(caller, { code: bytesOf(code) }, originOf())).missing).toBeNull();
  const next = await signIn.byPassword('ada', bytesOf(goodPassword), originOf());
  const wide = [...code].map((digit) => String.fromCodePoint(0xff10 + Number(digit))).join('');
  for (const again of [code, ` ${code} `, `${code.slice(0, 3)} ${code.slice(3)}`, wide])
    expect([again, await errorOf(signIn.secondFactor(next, { code: bytesOf(again) }, originOf()))]).toEqual([
      again,
      'unauthenticated',
    ]);
});

test('what has expired is refused, although nothing has removed it', async () => {
  // Nothing but the time of day moves: no job runs.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
  const { operations } = opened;
  const { tokens, authenticateAdmin, sessions, signIn, approvals, dualControl } = operations;
  const auditor = [{ role: 'auditor' as const, scope: null, tenantId: null }];
  const { token } = await tokens.create(administrator, 'the service', {
    name: 'short',
    grants: auditor,
    expiresAt: Date.now() + hour,
  });
  const { invitation } = await inviteUser(operations, 'late');
  const { session } = await makeUser(operations, 'ada');
  await withFactor('mona');
  const step = await signIn.byPassword('mona', bytesOf(goodPassword), originOf());
  const approver = await actor('key-approver');
  const destroyer = await actor('key-destroyer');
  const { caller, groupId } = await registerCaller(opened, 'db');
  const { id: keyId } = await operations.tde.generateKey(caller, masterKey('MK'));
  const { vaultId } = await operations.tdeGroups.get(administrator, groupId);
  await dualControl.change(administrator, vaultId, {
    ...{ required: 1, approvers: null, actions: ['destroy'], databases: 'allowed' },
  });
  const request = await waits(operations.masterKeys.destroy(destroyer, caller.application.id, keyId));
  const uses: Readonly<Record<string, () => Promise<unknown>>> = {
    'an API token': () => authenticateAdmin(token, 'call-2', null),
    'an invitation': () => signIn.redeem(invitation, bytesOf(goodPassword), originOf()),
    'a session': () => sessions.authenticate(session.value, 'call-2', null),
    'a sign-in between its two steps': () => sessions.authenticate(step.value, 'call-2', null),
    'a request for approval': () => approvals.approve(approver, request.id, null),
  };
  const rows = async () =>
    (
      await queryStored(
        opened.folder,
        'select (select count(*) from api_tokens) + (select count(*) from sessions) + (select count(*) from sign_in_attempts) as n',
      )
    )[0];
  const before = await rows();
  vi.setSystemTime(Date.now() + 400 * day);
  for (const [name, use] of Object.entries(uses))
    expect([name, await errorOf(use()).catch(() => 'it was allowed')]).toEqual([
      name,
      name === 'a request for approval' ? 'conflict' : 'unauthenticated',
    ]);
  expect(await rows()).toEqual(before);
});

test('what changes around a key leaves its sealed bytes as they are', async () => {
  const { keys, vaults } = opened.operations;
  const vault = await vaults.create(administrator, { name: 'vault' });
  const key = await keys.create(administrator, { name: 'key', vaultId: vault.id });
  const sealed = () =>
    queryStored(opened.folder, `select * from key_records where object_id = '${key.id}' order by version, class`);
  const first = await sealed();
  expect(first).toHaveLength(1);
  await keys.change(administrator, key.id, { name: 'other name', tags: ['tag'] });
  await keys.disable(administrator, key.id);
  await keys.enable(administrator, key.id);
  expect(await sealed()).toEqual(first);
  await keys.rotate(administrator, key.id);
  expect((await sealed())[0]).toEqual(first[0]);
});

test('no caller names an address that the service then calls: the file dke.toml alone does', () => {
  const named = Object.entries(apiRoutes).flatMap(([group, rows]) =>
    Object.entries(rows as RouteGroup).flatMap(([name, { body }]) =>
      membersOf(body).flatMap((member) =>
        /url|uri|host|address|server/i.test(member) ? [`${group}.${name}: ${member}`] : [],
      ),
    ),
  );
  // What the cloud is set to: compared with the service's own address, and not called.
  const compared = ['uriEndpoint', 'uriPath'];
  const ofDiagnostics = ['run', 'follow'].flatMap((name) => compared.map((member) => `diagnostics.${name}: ${member}`));
  // The name that a command's host gives itself is shown to a person.
  expect(named).toEqual([...ofDiagnostics, 'deviceSignIn.start: host']);
});
