// Permissions for each route: the roles' table, checked through the front for every role and every
// route, and the duties that must stay separate with any table.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rolesOf } from '../../../server/app/open/identity.ts';
import { apiRoutes } from '../../../server/contract/api/index.ts';
import type { RouteGroup, RouteRow } from '../../../server/contract/api/row.ts';
import {
  effectivePermissions,
  faultOfGrants,
  type Grant,
  isAllowed,
  isPlatformOnly,
  permissionNames,
  type Role,
  roleNames,
  rowOf,
} from '../../../server/domain/access.ts';
import { rolesTable } from '../../support/roles-page.ts';
import { adminToken, openFront } from './operations.ts';

const resourceId = 'some-id';
const rows = Object.values(apiRoutes).flatMap((group: RouteGroup) => Object.values(group));
const target = (row: RouteRow, id = resourceId): string => row.path.replace(/\{\w+\}/g, id);
const everywhere = (role: Role): readonly Grant[] => [{ role, scope: null, tenantId: null }];

/**
 * The front's status for a caller with these permissions: 403, or any other, which means that
 * access was granted.
 */
const isRefused = async (row: RouteRow, grants: readonly Grant[], id?: string): Promise<boolean> => {
  const { request } = openFront({}, grants);
  const response = await request(target(row, id), {
    method: row.method.toUpperCase(),
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    ...(row.method === 'get' ? {} : { body: '{}' }),
  });
  if (response.status !== 403) return false;
  const problem = (await response.json()) as { readonly code: string; readonly detail: string; readonly hint: string };
  expect(problem.code).toBe('forbidden');
  expect(problem.detail).toBe(`this requires the permission ${row.needs}`);
  expect(problem.hint).toContain('administrator');
  return true;
};

describe('every role at every route', () => {
  test.each(roleNames.filter((role) => rowOf(role).scoped !== true))('%s', async (role) => {
    for (const row of rows) {
      const may = row.needs === 'signed-in' || row.needs === 'sign-in' || rowOf(role).permissions.includes(row.needs);
      expect([row.method, row.path, await isRefused(row, everywhere(role))]).toEqual([row.method, row.path, !may]);
    }
  });

  test.each(['application', 'endpoint'] as const)('an owner of one %s: that one, and no other', async (kind) => {
    const grants: readonly Grant[] = [{ role: 'application-owner', scope: { kind, id: resourceId }, tenantId: null }];
    const allowed: string[] = [];
    for (const row of rows) {
      if (row.needs === 'signed-in' || row.needs === 'sign-in') continue;
      const own = !(await isRefused(row, grants));
      if (own) allowed.push(`${row.method} ${row.path}`);
      expect(own).toBe(row.scope?.kind === kind && rowOf('application-owner').permissions.includes(row.needs));
      expect([row.path, await isRefused(row, grants, 'another-id')]).toEqual([row.path, true]);
      expect([row.path, await isRefused(row, grants, resourceId.toUpperCase())]).toEqual([row.path, true]);
    }
    expect(allowed).toContain(kind === 'application' ? 'get /api/tde/applications/{id}' : 'get /api/endpoints/{id}');
    expect(allowed.length).toBeGreaterThan(4);
  });

  test('no one without a role takes any', async () => {
    for (const row of rows)
      if (row.needs !== 'signed-in' && row.needs !== 'sign-in')
        expect([row.path, await isRefused(row, [])]).toEqual([row.path, true]);
  });

  test('a route about an application or an endpoint is one that roles are given for', () => {
    for (const row of rows) {
      const [, kind, parameter] = /^\/api\/(tde\/applications|endpoints)\/\{(\w+)\}/.exec(row.path) ?? [];
      expect([row.path, row.scope]).toEqual([
        row.path,
        kind === undefined ? undefined : { kind: kind === 'endpoints' ? 'endpoint' : 'application', parameter },
      ]);
    }
  });

  test('docs/roles.md shows the table (node test/support/roles-page.ts)', () => {
    const page = readFileSync(join(resolve(import.meta.dirname, '../../..'), 'docs/roles.md'), 'utf8');
    expect(page).toContain(rolesTable());
  });
});

describe('duties that stay apart', () => {
  const ordinary = roleNames.filter((role) => rowOf(role).supreme !== true);
  const haveBoth = (one: (typeof permissionNames)[number], other: (typeof permissionNames)[number]): readonly Role[] =>
    ordinary.filter((role) => [one, other].every((each) => rowOf(role).permissions.includes(each)));

  test('who makes keys destroys none, who gives roles manages nothing, who connects changes no key', () => {
    expect(haveBoth('keys:manage', 'master-keys:destroy')).toEqual([]);
    expect(haveBoth('tokens:manage', 'keys:manage')).toEqual([]);
    expect(haveBoth('tokens:manage', 'master-keys:destroy')).toEqual([]);
    expect(haveBoth('tokens:manage', 'applications:credentials')).toEqual([]);
    expect(haveBoth('endpoints:credentials', 'keys:manage')).toEqual([]);
  });
  test('an auditor reads everything and changes nothing', () => {
    const { permissions } = rowOf('auditor');
    expect(permissionNames.filter((name) => name.endsWith(':read') && !permissions.includes(name))).toEqual([]);
    expect(permissions.filter((name) => !/:(read|export)$/.test(name))).toEqual([]);
  });
  test('every permission is needed by a route, and given by a role that is not supreme', () => {
    const needed = new Set(rows.map(({ needs }) => needs));
    expect(permissionNames.filter((name) => !needed.has(name))).toEqual([]);
    expect(permissionNames.filter((name) => !ordinary.some((role) => rowOf(role).permissions.includes(name)))).toEqual(
      [],
    );
  });
});

describe('giving roles', () => {
  const scope = { kind: 'endpoint', id: resourceId } as const;
  const within = (role: Role, tenantId: string): readonly Grant[] => [{ role, scope: null, tenantId }];

  test('what does not go together is refused', () => {
    const tenantId = null;
    expect(faultOfGrants([], 'the service')).toContain('at least one');
    expect(faultOfGrants([{ role: 'application-owner', scope: null, tenantId }], 'the service')).toContain(
      'one application',
    );
    expect(faultOfGrants([{ role: 'auditor', scope, tenantId }], 'the service')).toContain(
      'cannot be limited to one resource',
    );
    expect(faultOfGrants(within('platform-operator', 'a'), 'the service')).toContain('whole platform');
    expect(
      faultOfGrants([{ role: 'application-owner', scope, tenantId }], everywhere('tenant-administrator')),
    ).toBeUndefined();
  });
  test('a person who may not do everything gives no one a role that may', () => {
    for (const role of ['administrator', 'break-glass'] as const) {
      expect(faultOfGrants(everywhere(role), everywhere('tenant-administrator'))).toContain('only an administrator');
      expect(faultOfGrants(everywhere(role), everywhere('administrator'))).toBeUndefined();
    }
  });
  test('who gives roles within one tenant gives none elsewhere, however much they may there', () => {
    const own = [...within('tenant-administrator', 'a'), ...within('auditor', 'b'), ...everywhere('key-manager')];
    expect(faultOfGrants(within('auditor', 'a'), own)).toBeUndefined();
    expect(faultOfGrants(within('auditor', 'b'), own)).toContain('within this tenant');
    expect(faultOfGrants(everywhere('auditor'), own)).toContain('whole platform');
  });
  test('an administrator of one tenant makes none of another, and none of the platform', () => {
    const own = [...within('administrator', 'a'), ...within('tenant-administrator', 'b')];
    expect(faultOfGrants(within('administrator', 'a'), own)).toBeUndefined();
    expect(faultOfGrants(within('administrator', 'b'), own)).toContain('only an administrator');
    expect(faultOfGrants(everywhere('administrator'), own)).toContain('whole platform');
  });
  test('a role within one tenant counts there alone, and gives nothing that concerns the platform', () => {
    for (const role of roleNames.filter((name) => rowOf(name).scoped !== true))
      for (const permission of permissionNames) {
        const grants = within(role, 'a');
        expect(isAllowed(grants, permission, 'b', null)).toBe(false);
        expect(isAllowed(grants, permission, null, null)).toBe(false);
        expect([role, permission, isAllowed(grants, permission, 'a', null)]).toEqual([
          role,
          permission,
          !isPlatformOnly(permission) && rowOf(role).permissions.includes(permission),
        ]);
      }
  });
  test('the rights of several grants are listed once each, broader scopes first', () => {
    const rights = effectivePermissions([
      { role: 'application-owner', scope: { kind: 'application', id: resourceId }, tenantId: 'a' },
      ...within('key-destroyer', 'a'),
      ...everywhere('platform-operator'),
      ...everywhere('auditor'),
    ]);
    const names = rights.map(({ permission }) => permission);
    expect(new Set(names).size).toBe(names.length);
    expect(rights.filter((right) => right.tenantId === 'a' && right.scope === null)).toEqual([
      { permission: 'master-keys:destroy', scope: null, tenantId: 'a' },
    ]);
    expect(rights.filter((right) => right.scope !== null).map(({ permission }) => permission)).toEqual([
      'applications:credentials',
      'runbooks:run',
      'endpoints:credentials',
    ]);
  });
});

test('a claim of an identity provider gives no role that only a token or an object has', () => {
  expect(rolesOf({ 'key managers': 'key-manager', admins: 'administrator' }).get('admins')).toBe('administrator');
  const refused = roleNames.filter((role) => {
    try {
      rolesOf({ group: role });
      return false;
    } catch {
      return true;
    }
  });
  expect(refused).toEqual(roleNames.filter((role) => role === 'break-glass' || rowOf(role).scoped === true));
  expect(refused).toContain('break-glass');
  expect(() => rolesOf({ group: 'no role' })).toThrow('no role is not a role that a claim can give');
});
