// Insiders: every role at every operation of the API, within a tenant and for the whole platform,
// with dual control and without. The real service carries each one out, each with a subject of its
// own; the stored rows are compared before and after. What a role may is what the model defines
// (insider-model.ts), not the permission tables: an operation or a role that is not in the model
// fails here by its name.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { apiRoutes } from '../../server/contract/api/index.ts';
import type { RouteGroup, RouteRow } from '../../server/contract/api/row.ts';
import { type Role, roleNames, rowOf } from '../../server/domain/access.ts';
import { governedKinds } from '../../server/domain/approval.ts';
import { type ForeignFile, makeAdversaries, type Prepared, prepareFiles } from '../support/adversaries.ts';
import { replacing } from '../support/console-api.ts';
import { sharedFolder } from '../support/folders.ts';
import { differencesOf, effectsOf, readFacts } from '../support/insider-facts.ts';
import { type Effect, effectOf, effects, gives, most, ofPlatform, reachOf } from '../support/insider-model.ts';
import { type Attempt, attempts, type Send, setPair } from '../support/insider-operations.ts';
import { makeApplication, makeEndpoint, makeToken, makeWorld, type World } from '../support/insider-world.ts';
import { administrator } from '../support/open-service.ts';
import { sharedApi, sharedService } from '../support/shared.ts';
import { answerOpening } from '../support/snapshots.ts';
import { withStored } from '../support/test-store.ts';
import { inLongTier } from '../support/tiers.ts';

const routes = Object.entries(apiRoutes).flatMap(([group, rows]) =>
  Object.entries(rows as RouteGroup).map(([name, row]) => ({ name: `${group}.${name}`, row })),
);

const adversaries = makeAdversaries();
const toml = `[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n[snapshots]\n${adversaries.signers}`;
const opened = sharedService({ toml });
const elsewhere = sharedFolder();
let prepared: Prepared;
beforeAll(async () => {
  prepared = await prepareFiles(opened, adversaries, `${elsewhere}/old`, { toml });
});
afterAll(() => adversaries.end());
const api = sharedApi(opened);
const worlds: World[] = [];

beforeAll(async () => {
  const requester = (await makeToken(opened, [{ role: 'administrator', scope: null }])).id;
  setPair(opened, { requester, approver: (await makeToken(opened, [{ role: 'key-approver', scope: null }])).id });
  const { hand } = prepared;
  for (const governed of [false, true]) worlds.push(await makeWorld(opened, hand, governed));
});

const send = async (token: string, method: string, path: string, { body, file }: Partial<Attempt>) => {
  const type = file === undefined ? 'application/json' : 'application/octet-stream';
  const content = file ?? (body === undefined ? undefined : JSON.stringify(body));
  const response = await fetch(`${api.base}${path}`, {
    method: method.toUpperCase(),
    headers: {
      ...replacing(method),
      authorization: `Bearer ${token}`,
      ...(content === undefined ? {} : { 'content-type': type }),
    },
    ...(content === undefined ? {} : { body: content }),
  });
  return { status: response.status, text: await response.text() };
};
const targetOf = ({ path }: RouteRow, { path: named, query }: Attempt, tenantId: string | null): string => {
  const target = path.replace(/\{(\w+)\}/g, (_, parameter: string) => named?.[parameter] ?? 'none');
  const asked = [...(tenantId === null ? [] : [`tenant=${tenantId}`]), ...(query === undefined ? [] : [query])];
  return asked.length === 0 ? target : `${target}?${asked.join('&')}`;
};

test('the model knows every operation, every role and everything that can wait for approval', () => {
  for (const { name } of routes) expect([name, effectOf(name) !== undefined]).toEqual([name, true]);
  for (const role of roleNames) expect([role, Object.hasOwn(most, role)]).toEqual([role, true]);
  const waiting = routes.filter(({ name }) => effectOf(name)?.waits !== undefined).map(({ name }) => name);
  expect(routes.filter(({ row }) => row.mayWait === true).map(({ name }) => name)).toEqual(waiting);
  // A rule is set and removed by two operations.
  expect(waiting).toHaveLength(Object.keys(governedKinds).length + 1);
  for (const { name, row } of routes) {
    const { effect } = effectOf(name) ?? { effect: 'own' };
    const isOpen = row.needs === 'sign-in' || row.needs === 'signed-in';
    expect([name, effect === 'own']).toEqual([name, isOpen]);
    if (!isOpen && (/\{\w+\}/.test(row.path) || row.body !== undefined))
      expect([name, Object.hasOwn(attempts, name)]).toEqual([name, true]);
  }
});

test('roles that do something alone are few, and who gives roles does nothing else with keys', () => {
  const able = (effect: Effect): readonly Role[] =>
    roleNames.filter((role) => role !== 'administrator' && role !== 'break-glass' && most[role].includes(effect));
  expect(able('destroy')).toEqual(['key-destroyer']);
  expect([able('give'), able('enrol')]).toEqual([['tenant-administrator'], ['tenant-administrator']]);
  expect(able('decide')).toEqual(['key-approver']);
  expect(able('restore')).toEqual(['recovery-officer']);
  expect(able('export')).toEqual(['platform-operator']);
  // An access_guid is all that a database has: who creates one uses keys, and destroys them where
  // no rule refuses it.
  for (const effect of ['credential', 'use-as-database', 'destroy-as-database'] as const)
    expect(able(effect)).toEqual(['connection-manager', 'application-owner']);
  // Without giving roles, no one reaches more than their own.
  for (const role of roleNames)
    if (gives[role] === undefined)
      expect([role, [...reachOf([role], false)].sort()]).toEqual([role, [...most[role]].sort()]);
  for (const effect of ofPlatform) expect(reachOf(['administrator'], true).has(effect)).toBe(false);
});

const waiting = new Map<string, Attempt>();
/** What some operations do next to that for which they are there. */
const also: Readonly<Record<string, readonly Effect[]>> = {
  // With its first access_guid.
  'applications.register': ['credential', 'use-as-database', 'destroy-as-database'],
  'applications.rotateAccessGuid': ['use-as-database', 'destroy-as-database'],
  // The last approval carries out the operation.
  'approvals.approve': ['end-key'],
};
interface Planned {
  readonly name: string;
  readonly row: RouteRow;
  readonly effect: Effect;
  readonly waits: boolean;
  readonly attempt: Attempt;
  readonly mayHere: boolean;
}
/** Every operation with a subject, and whether the model lets the caller do it. */
const plan = async (
  world: World,
  { role, within, isScoped }: { readonly role: Role; readonly within: string | null; readonly isScoped: boolean },
): Promise<readonly Planned[]> => {
  const planned: Planned[] = [];
  for (const { name, row } of routes) {
    const { effect, waits = undefined } = effectOf(name) ?? { effect: 'own' as const };
    if (effect === 'own') continue;
    const id = `${world.tenantId} ${name}`;
    const attempt = waiting.get(id) ?? (await attempts[name]?.(world)) ?? {};
    const isHere = !isScoped || attempt.scope !== undefined;
    const mayHere =
      isHere &&
      most[role].includes(effect) &&
      (within === null || (!ofPlatform.has(effect) && row.tenancy !== 'platform'));
    // What is refused, or only reads, leaves its subject for the next caller.
    if (mayHere && !/^(see|export)-/.test(effect)) waiting.delete(id);
    else waiting.set(id, attempt);
    planned.push({ name, row, effect, waits: waits === 'rule', attempt, mayHere });
  }
  return planned;
};
/** A role where it can be given. */
const callers = roleNames.flatMap((role) =>
  (['platform', 'tenant'] as const)
    .filter((reach) => rowOf(role).reach === undefined || rowOf(role).reach === reach)
    .map((reach) => ({ role, reach })),
);
const everywhere = inLongTier('contract/insider-matrix: each reach with and without dual control');
describe.each([false, true])('dual control: %s', (governed) => {
  const here = callers.filter(
    ({ role, reach }) => everywhere || rowOf(role).reach !== undefined || governed === (reach === 'tenant'),
  );
  test.each(here)('$role of the $reach: every operation', async ({ role, reach }) => {
    const world = worlds.find((each) => each.governed === governed);
    if (world === undefined) throw new Error('there is no such tenant');
    const { tenantId } = world;
    const within = reach === 'tenant' ? tenantId : null;
    const isScoped = rowOf(role).scoped === true;
    const tokens = new Map<string, string>();
    const tokenFor = async (scope: Attempt['scope']): Promise<string> => {
      const resource = isScoped ? (scope ?? { kind: 'application' as const, id: world.ids.application.id }) : null;
      const known = tokens.get(JSON.stringify(resource));
      if (known !== undefined) return known;
      const { token } = await makeToken(opened, [{ role, scope: resource, tenantId: within }], within);
      tokens.set(JSON.stringify(resource), token);
      return token;
    };
    await withStored(opened.folder, async (stored) => {
      const problems: unknown[] = [];
      const factsOf = (...tries: readonly Attempt[]) =>
        readFacts(stored, {
          tenants: [tenantId, ...tries.flatMap(({ path }) => Object.values(path ?? {}))],
          since: '',
        });
      const planned = await plan(world, { role, within, isScoped });
      const call = async ({ name, row, attempt, mayHere }: Planned, given = attempt) => {
        const token = await tokenFor(attempt.scope);
        const named = row.tenancy === 'platform' || row.tenancy === 'itself' || within !== null ? null : tenantId;
        const { status, text } = await send(token, row.method, targetOf(row, given, named), given);
        const isDone = status >= 200 && status < 300 && status !== 202;
        return {
          name,
          mayHere,
          status,
          text: text.slice(0, 1500),
          isExpected: attempt.answers?.includes(status) ?? isDone,
        };
      };

      // What is refused, and what only reads, at once: nothing of it changes anything.
      const quiet = planned.filter(({ mayHere, effect }) => !mayHere || /^(see|export)-/.test(effect));
      for (const { attempt } of quiet) await tokenFor(attempt.scope);
      const before = await factsOf(...quiet.map(({ attempt }) => attempt));
      // But exports and long requests one after the other: a caller has a limited number of them.
      const isLong = ({ row }: Planned): boolean => row.streams !== undefined || row.long !== undefined;
      const answers = await Promise.all(quiet.filter((each) => !isLong(each)).map((each) => call(each)));
      for (const each of quiet.filter(isLong)) answers.push(await call(each));
      for (const answer of answers) {
        // A role in one tenant cannot even detect another one.
        const isRefused = answer.status === 403 || (within !== null && answer.status === 404);
        if (answer.mayHere ? !answer.isExpected : !isRefused) problems.push({ problem: 'refused or not', ...answer });
      }
      const changed = differencesOf(before, await factsOf(...quiet.map(({ attempt }) => attempt)));
      if (changed.length > 0)
        problems.push({
          problem: 'what was refused, or only reads, changed something',
          changed: changed.map(({ what, how }) => `${how}: ${what}`),
        });

      for (const each of planned.filter((one) => !quiet.includes(one))) {
        const { name, effect, waits, attempt } = each;
        const token = await tokenFor(attempt.scope);
        const ask: Send = (method, path, body) =>
          send(token, method, path, { ...(body === undefined ? {} : { body }) });
        const given = attempt.before === undefined ? attempt : { ...attempt, ...(await attempt.before(ask)) };
        const earlier = await factsOf(given);
        const answer = await call(each, given);
        const differences = differencesOf(earlier, await factsOf(given));
        const tell = (problem: string): void => {
          problems.push({ problem, ...answer, differences: differences.map(({ what, how }) => `${how}: ${what}`) });
        };
        if (governed && waits) {
          if (answer.status !== 202) tell('it did not wait');
          if (differences.length > 0) tell('it waits, and something changed');
          continue;
        }
        if (!answer.isExpected) tell('it was not done');
        if (attempt.changes === true && differences.length === 0) tell('nothing changed');
        const alone = differences.filter(
          ({ how, fact }) => how === 'gained' && fact.gain.includes('destroy-as-database'),
        );
        if (governed && alone.length > 0) tell('a database of their own destroys keys under a rule');
        // The result is the purpose of the operation.
        for (const difference of differences)
          if (!effectsOf(difference).some((one) => one === effect || also[name]?.includes(one) === true))
            tell(`beyond: ${effects[effect]}`);
      }
      expect(problems).toEqual([]);
    });
  });
});

/** Roles of the whole platform, and of a tenant that no file is of. */
const fileCallers = callers.map(({ role, reach }) => ({ role, reach, mayHere: reach === 'platform' }));
const codeOf = ({ status, text }: Awaited<ReturnType<typeof send>>): string =>
  status < 300 ? 'imported' : (JSON.parse(text) as { readonly code: string }).code;

describe('a file of another: TS, OF and BW', () => {
  const factsOfDefault = () =>
    withStored(opened.folder, (stored) =>
      readFacts(stored, { tenants: [administrator.tenantId], since: '' }).then((facts) => [...facts.keys()]),
    );
  const importWith = (token: string, { file, signer }: ForeignFile) =>
    send(token, 'post', `/api/snapshot-imports${signer === undefined ? '' : `?signer=${encodeURIComponent(signer)}`}`, {
      file,
    });

  test.each(fileCallers)('$role of the $reach brings each of them', async ({ role, reach, mayHere }) => {
    const world = worlds.find(({ governed }) => !governed);
    if (world === undefined) throw new Error('there is no such tenant');
    const scope = rowOf(role).scoped === true ? { kind: 'application' as const, id: world.ids.application.id } : null;
    const within = reach === 'tenant' ? world.tenantId : null;
    const { token } = await makeToken(opened, [{ role, scope, tenantId: within }], within);
    const mayImport = mayHere && most[role].includes('restore');
    const expected = await factsOfDefault();
    for (const each of await prepared.files()) {
      const answer = codeOf(await importWith(token, each));
      expect([each.name, answer]).toEqual([each.name, mayImport ? each.answer : 'forbidden']);
      if (answer === 'imported') expected.push(`snapshot ${each.id}`);
    }
    expect((await factsOfDefault()).toSorted()).toEqual(expected.toSorted());
  });

  test.each(fileCallers.filter(({ role, mayHere }) => mayHere && most[role].includes('restore')))(
    'TS: what $role restores of it waits for a second person',
    async ({ role }) => {
      const [each] = await prepared.files();
      if (each === undefined) throw new Error('TS has no file');
      const { token } = await makeToken(opened, [{ role, scope: null }]);
      expect(codeOf(await importWith(token, each))).toBe('imported');
      const before = await factsOfDefault();
      const opening = await send(token, 'post', `/api/snapshots/${each.id}/openings`, {
        body: { recoveryKeyId: adversaries.recovery.id },
      });
      const answer = answerOpening(JSON.parse(opening.text), adversaries.recovery.key);
      const restored = await send(token, 'post', `/api/snapshots/${each.id}/restore`, {
        body: { ...answer, newTenant: `of ${role}` },
      });
      expect([restored.status, restored.text]).toEqual([202, expect.stringContaining('snapshot.restore')]);
      expect((await factsOfDefault()).toSorted()).toEqual(before.toSorted());
    },
  );
});

test('an owner of one application or endpoint does nothing with another one', async () => {
  const world = worlds.find((each) => !each.governed);
  if (world === undefined) throw new Error('there is no such tenant');
  const { tenantId, ids } = world;
  const own = { application: (await makeApplication(world)).id, endpoint: await makeEndpoint(world, ids.vault) };
  const tokens = new Map<string, string>();
  for (const kind of ['application', 'endpoint'] as const) {
    const grant = { role: 'application-owner', scope: { kind, id: own[kind] }, tenantId } as const;
    tokens.set(kind, (await makeToken(opened, [grant], tenantId)).token);
  }
  const tried: string[] = [];
  const done: unknown[] = [];
  for (const { name, row } of routes) {
    const { scope, ...attempt } = (await attempts[name]?.(world)) ?? {};
    const token = tokens.get(scope?.kind ?? '');
    if (token === undefined) continue;
    tried.push(name);
    const { status } = await send(token, row.method, targetOf(row, attempt, null), attempt);
    if (status !== 403 && status !== 404) done.push([name, status]);
  }
  expect(done).toEqual([]);
  expect(tried).toEqual(routes.filter(({ row }) => row.scope !== undefined).map(({ name }) => name));
});

test('what is of another application or endpoint is not found below the own one', async () => {
  const world = worlds.find((each) => !each.governed);
  if (world === undefined) throw new Error('there is no such tenant');
  const { tenantId, ids } = world;
  const own = await makeApplication(world);
  const endpoint = await makeEndpoint(world, ids.vault);
  const below: readonly (readonly [operation: string, path: Readonly<Record<string, string>>])[] = [
    ['applications.removeAccessGuid', { id: own.id, accessGuidId: ids.application.accessGuidId }],
    ['masterKeys.get', { applicationId: own.id, keyId: ids.application.masterKeyId }],
    ['masterKeys.blastRadius', { applicationId: own.id, keyId: ids.application.masterKeyId }],
    ['masterKeys.allowDecryption', { applicationId: own.id, keyId: ids.application.masterKeyId }],
    ['masterKeys.destroy', { applicationId: own.id, keyId: ids.application.masterKeyId }],
    ['runbooks.get', { applicationId: own.id, runId: ids.run }],
    ['runbooks.completeStep', { applicationId: own.id, runId: ids.run, step: 'check' }],
    ['runbooks.reopenStep', { applicationId: own.id, runId: ids.run, step: 'check' }],
    ['runbooks.finish', { applicationId: own.id, runId: ids.run }],
    ['endpoints.removeCredential', { id: endpoint, credentialId: ids.credential }],
    ['diagnostics.get', { id: endpoint, diagnosisId: ids.diagnosis }],
  ];
  // Each operation with two ids is here.
  const two = routes.filter(({ row }) => (row.path.match(/\{(?!name)\w+\}/g)?.length ?? 0) > 1).map(({ name }) => name);
  expect(below.map(([name]) => name).sort()).toEqual(two.sort());
  const scopes = [
    { kind: 'application', id: own.id },
    { kind: 'endpoint', id: endpoint },
  ] as const;
  for (const [name, path] of below) {
    const row = routes.find((each) => each.name === name)?.row;
    const scope = scopes.find(({ kind }) => kind === row?.scope?.kind) ?? scopes[0];
    const roles = { 'masterKeys.destroy': 'key-destroyer', 'masterKeys.allowDecryption': 'key-manager' } as const;
    const role = Object.hasOwn(roles, name) ? roles[name as keyof typeof roles] : ('application-owner' as const);
    const grant = { role, scope: role === 'application-owner' ? scope : null, tenantId };
    const { token } = await makeToken(opened, [grant], tenantId);
    if (row === undefined) throw new Error(`there is no ${name}`);
    const body =
      row.method === 'get' ? {} : { body: name === 'masterKeys.destroy' ? { confirm: ids.application.name } : {} };
    const { status } = await send(token, row.method, targetOf(row, { path }, null), body);
    expect([name, status]).toEqual([name, 404]);
  }
});
