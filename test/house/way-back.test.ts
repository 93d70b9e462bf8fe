// What brings a key back is said in one set of words (server/base/way-back.ts): the page has all of
// them, each state of a key has one, and no other text of the programs says something of its own.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type Happened, wayBack, waysBack } from '../../server/base/way-back.ts';
import { effectiveState, keyStates } from '../../server/domain/lifecycle.ts';
import { files, read } from '../support/sources.ts';

test('the page lists what brings a key back, in the words of the declaration', () => {
  const page = readFileSync('docs/snapshots.md', 'utf8');
  for (const { what, way } of Object.values(waysBack)) expect(page).toContain(`| ${what} | ${way} |`);
});

describe('every state of a key', () => {
  const said = new Map<string, string | null>();
  for (const kind of ['general', 'master'] as const)
    for (const state of keyStates)
      for (const vault of ['enabled', 'disabled', 'deleted'] as const)
        for (const unrecoverableAt of state === 'destroyed' ? [null, 1] : [null])
          said.set(
            [kind, state, vault, unrecoverableAt ?? '-'].join(' '),
            wayBack({ kind, effectiveState: effectiveState(state, vault), unrecoverableAt }),
          );
  const way = (happened: Happened): string => waysBack[happened].way;
  test.each([
    ['general active enabled -', null],
    ['general active disabled -', way('vault-disabled')],
    ['master active deleted -', way('vault-deleted')],
    ['general disabled enabled -', way('disabled')],
    ['general disabled deleted -', way('vault-deleted')],
    ['general soft-deleted enabled -', way('deleted')],
    ['master soft-deleted enabled -', way('deleted-master')],
    ['general destroyed enabled -', way('destroyed')],
    ['master destroyed deleted 1', way('unrecoverable')],
  ] as const)('%s', (state, expected) => {
    expect(said.get(state)).toBe(expected);
  });
  test('a key that can be used needs nothing, and every other one has its words', () => {
    const without = [...said].filter(([, text]) => text === null).map(([state]) => state);
    expect(without).toEqual(['general active enabled -', 'master active enabled -']);
    expect(new Set(said.values())).toEqual(new Set([null, ...Object.values(waysBack).map((row) => row.way)]));
  });
});

/**
 * Texts about a way back that are not about a key, or stand beside the words of the declaration.
 */
const others: Readonly<Record<string, RegExp>> = {
  'server/cli/commands/copy.ts': /Confirms that you destroyed the file/,
  'server/cli/commands/user.ts': /Deletes a user/,
  'server/cli/commands/tenant.ts': /It can be restored for a limited time/,
  'server/cli/service/command-rows.ts': /Asks before something is changed/,
  'server/contract/api/keys-routes.ts': /waits, a destroyed key/,
  'server/contract/api/snapshots-routes.ts': /Until when a deletion/,
  'server/contract/tde.ts': /What replaces a whole/,
  'server/domain/access.ts': /Purge deleted tenants|Destroy(s)? master keys/,
  'server/domain/notification.ts': /the service knows copies that open them/,
  'server/domain/tenant.ts': /a deleted tenant can be restored/,
  'server/contract/api/copies-routes.ts': /Cannot be undone/,
  'server/contract/api/tenants-routes.ts':
    /tenant can be restored|It can be restored until|none of its data can be read/,
  'server/contract/api/users-routes.ts': /The audit log keeps the name/,
  'server/clients/web/src/ui/forms/action-dialog.tsx': /can be undone; ConfirmDialog/,
  'server/clients/web/src/ui/page/button.tsx': /^\/\/ cannot be undone\.$/,
  'server/clients/web/src/ui/forms/confirm-dialog.tsx': /Confirmation by typing/,
  'server/clients/web/src/applications/master-keys.tsx': /title="This cannot be undone"/,
  'server/clients/web/src/snapshots/snapshot-restore.tsx': /except/,
  'server/clients/web/src/vaults/tenants.tsx': /title="This cannot be undone"|a deleted one can be restored/,
  'server/clients/web/src/people/user-actions.tsx': /Their sessions end at once/,
};
test('no other text of the programs says what brings a key back', () => {
  const claim =
    /(?:cannot|can|can still|can no longer) be (?:undone|restored|recovered)|bring(?:s|ing)? (?:it|them|a key) back\b/i;
  const own = files(
    ['server/cli', 'server/clients/web/src', 'server/contract', 'server/domain'],
    '.ts',
    '.tsx',
  ).flatMap((path) =>
    read(path)
      .split('\n')
      .filter((line) => claim.test(line) && others[path]?.test(line) !== true)
      .map((line) => `${path}: ${line.trim()}`),
  );
  expect(own).toEqual([]);
});
