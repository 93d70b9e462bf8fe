// What the API can do, `dke` can: each row of the contract is called by a command. Which rows are
// called is read from the command's sources (test/support/api-calls.ts).
import { describe, expect, test } from 'vitest';
import { apiRoutes } from '../../server/contract/api/index.ts';
import type { RouteGroup } from '../../server/contract/api/row.ts';
import { apiUses, commandUses } from '../support/api-calls.ts';

/** Rows that no command calls, and why. */
const exceptions: Readonly<Record<string, string>> = {
  'session.start': 'dke login, on a connection of its own that takes the cookie and keeps the password as bytes',
  'session.end': 'dke logout, on the same connection',
  'deviceSignIn.start': 'dke login without a name, on a connection without a credential',
  'deviceSignIn.poll': 'dke login without a name, on the same connection',
  'deviceSignIn.end': 'dke logout',
  'deviceSignIn.find': 'of a person at the console: the command asks, the browser decides',
  'deviceSignIn.approve': 'of a person at the console: the command asks, the browser decides',
  'deviceSignIn.refuse': 'of a person at the console: the command asks, the browser decides',
  'session.redeem': 'the person who is invited does it at the console',
  'profile.get': 'of a person at the console; a token has no profile',
  'profile.changePassword': 'of a person at the console; a token has no profile',
  'session.methods': 'what the sign-in page shows',
  'session.beginPasskey': 'of a browser and its authenticator',
  'session.passkey': 'of a browser and its authenticator',
  'session.beginOpenId': 'of a browser',
  'session.finishOpenId': 'of a browser',
  'session.beginSecondFactor': 'of a browser and its authenticator',
  'profile.beginPasskey': 'of a browser and its authenticator',
  'profile.addPasskey': 'of a browser and its authenticator',
  'session.secondFactor': 'the second step of dke login, on the same connection',
  'profile.beginTotp': 'of a person at the console; a token has no profile',
  'profile.confirmTotp': 'of a person at the console; a token has no profile',
  'profile.makeRecoveryCodes': 'of a person at the console; a token has no profile',
  'profile.removeFactor': 'of a person at the console; dke user remove-factors does it for administrators',
  'profile.createToken': 'of a person at the console; dke token create does it for administrators',
  'profile.tokens': 'of a person at the console; dke token list --user shows them to administrators',
  'profile.revokeToken': 'of a person at the console; dke token revoke does it for administrators',
  'profile.endOtherSessions': 'of a person at the console; dke user end-sessions does it for administrators',
  'profile.sessions': 'of a person at the console; dke session list shows them to administrators',
  'profile.endSession': 'of a person at the console; dke session end does it for administrators',
};

const rows = Object.entries(apiRoutes).flatMap(([group, members]: [string, RouteGroup]) =>
  Object.keys(members).map((name) => `${group}.${name}`),
);

describe('the command and the API', () => {
  const uses = commandUses();
  const called = new Set(uses.flatMap((use) => use.rows));

  test('each row of the API is called by a command, or stands among the exceptions with a reason', () => {
    expect(rows.filter((row) => !called.has(row) && !Object.hasOwn(exceptions, row))).toEqual([]);
  });

  test('each exception is a row that no command calls', () => {
    expect(Object.keys(exceptions).filter((row) => !rows.includes(row) || called.has(row))).toEqual([]);
  });

  test('each call of the command names a row of the contract', () => {
    expect(uses.filter((use) => use.rows.length === 0 || use.rows.some((row) => !rows.includes(row)))).toEqual([]);
  });
});

describe('what a command reads, edits and writes', () => {
  test.each([
    'keys.change',
    'endpoints.changeSettings',
    'users.update',
    'applications.setCompatibility',
    'applications.setCallers',
  ])('%s is called together with what it is read by, so that nothing is lost that others change meanwhile', (row) => {
    const calls = commandUses().filter((use) => use.rows.includes(row));
    expect(calls.length).toBeGreaterThan(0);
    for (const { rows: together } of calls) expect(together).toEqual([`${row.split('.')[0]}.get`, row]);
  });
});

describe('how calls are read from sources', () => {
  const read = (text: string): readonly string[] => apiUses('x.ts', text).flatMap((use) => use.rows);
  test.each([
    ['a row itself', 'caller.call(operations.keys.get, {});', ['keys.get']],
    [
      'a constant',
      'const routes = operations.keys; const f = async () => { await bytes(routes.list); };',
      ['keys.list'],
    ],
    [
      'parts of a constant',
      'const { keys, vaults: v } = operations; call(keys.get); call(v.list);',
      ['keys.get', 'vaults.list'],
    ],
    [
      'a loop over literals',
      "const routes = operations.keys; for (const [verb] of [['enable', 1], ['disable', 2]] as const) call(routes[verb]);",
      ['keys.enable', 'keys.disable'],
    ],
    ['a change, of two rows', 'change(operations.keys.get, operations.keys.change, {});', ['keys.get', 'keys.change']],
    ['a choice', 'stream(b ? operations.keys.get : operations.keys.list, {});', ['keys.get', 'keys.list']],
    [
      'a table',
      'const t = { a: { row: operations.keys.list }, b: { row: operations.vaults.list } }; const f = (k) => call(t[k].row);',
      ['keys.list', 'vaults.list'],
    ],
    ['a name that only looks like a call of the client', 'const call = 1; operations.keys.get;', []],
    ['a row that is handed over', 'const f = (row) => call(row);', []],
  ])('%s', (_, text, expected) => {
    expect(read(text)).toEqual(expected);
  });
});
