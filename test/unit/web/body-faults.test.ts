// What forms of the console ask before they send: the schema of the route that the call goes to.

import { readdirSync, readFileSync } from 'node:fs';
import { isIPv4, isIPv6 } from 'node:net';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { bodyFaults, rowOf } from '../../../server/clients/web/src/api/body-faults.ts';
import type { Method } from '../../../server/clients/web/src/api/client.ts';
import * as inBrowser from '../../../server/clients/web/src/api/net.ts';
import { apiRoutes } from '../../../server/contract/api/index.ts';
import type { RouteGroup, RouteRow } from '../../../server/contract/api/row.ts';
import fc from '../../support/property.ts';

const rows: readonly RouteRow[] = Object.values<RouteGroup>(apiRoutes).flatMap((group) => Object.values(group));
const methodOf = ({ method }: RouteRow): Method => method.toUpperCase() as Method;

test('each route of the contract is found by a call of it', () => {
  for (const row of rows) {
    const path = row.path.replaceAll(/\{\w+\}/g, '01981d2c-7c1f-7b35-9a04-52a1be40c0de');
    expect(rowOf({ method: methodOf(row), path })?.path).toBe(row.path);
  }
  expect(rowOf({ method: 'POST', path: '/api/nothing' })).toBeUndefined();
});

describe('the faults of a body', () => {
  test('are none of one that the service takes', () => {
    const body = { name: 'billing', vaultId: '01981d2c-7c1f-7b35-9a04-52a1be40c0de', tags: ['env=prod'] };
    expect(bodyFaults({ method: 'POST', path: '/api/keys', body })).toEqual([]);
    expect(bodyFaults({ method: 'GET', path: '/api/keys' })).toEqual([]);
    expect(bodyFaults({ method: 'POST', path: '/api/keys/1/disable' })).toEqual([]);
  });

  test('name each field, in the words of the service', () => {
    const body = { name: ' x', tags: ['ok', 'No'], more: 1 };
    expect(bodyFaults({ method: 'POST', path: '/api/keys', body })).toEqual([
      { path: 'name', message: 'must have no control characters, and no spaces at the beginning or end' },
      { path: 'vaultId', message: 'is missing' },
      { path: 'tags.1', message: 'must be 1 to 64 of a-z, 0-9 and - . _ : = /' },
      { path: 'more', message: 'is unknown' },
    ]);
  });

  test('say nothing of secrets, which the service judges', () => {
    const call = { method: 'POST' as const, path: '/api/profile/password', body: { current: 'a', password: 'b' } };
    const row = rowOf(call);
    if (row !== undefined) expect(bodyFaults(call).map(({ path }) => path)).not.toContain('password');
  });
});

test('an address is one in the browser when it is one in the service', () => {
  const part = fc.constantFrom('0', '1', '255', '256', '01', 'ffff', '::', ':', '.', '10.0.0.1', '%eth0', 'g', '');
  fc.assert(
    fc.property(
      fc.oneof(
        fc.ipV4(),
        fc.ipV6(),
        fc.array(part, { maxLength: 9 }).map((parts) => parts.join('')),
      ),
      (text) => {
        expect([text, inBrowser.isIPv4(text), inBrowser.isIPv6(text)]).toEqual([text, isIPv4(text), isIPv6(text)]);
      },
    ),
    { numRuns: 2_000 },
  );
});

test('every form of a resource is the one that asks', () => {
  const root = resolve(import.meta.dirname, '../../../server/clients/web/src');
  const others = new Set([
    // Prove who a person is: the service alone may answer.
    'shell/sign-in.tsx',
    'people/other-ways.tsx',
    'people/totp.tsx',
    // Work with files in the browser.
    'snapshots/new-recovery-key.tsx',
    'snapshots/snapshot-import.tsx',
    'snapshots/snapshot-restore.tsx',
    // Several calls in turn, each of which uses what the one before has made.
    'service/connect.tsx',
    // Tries rules, and changes nothing.
    'endpoints/endpoint-rules.tsx',
    'ui/forms/form.tsx',
  ]);
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.tsx'));
  const own = files.filter((file) => readFileSync(join(root, file), 'utf8').includes('<form'));
  expect(own.filter((file) => !others.has(file))).toEqual([]);
});
