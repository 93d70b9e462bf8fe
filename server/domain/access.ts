// Who may do what: permissions, the roles that bundle them, and the question whether a caller may. The table is the only place where
// a role gets a right; every route of the console's API names the one permission that it needs.
//
// Duties are apart: who makes keys does not destroy them, who gives people their roles uses no key, and an auditor changes nothing.

export const permissions = {
  'status:read': "See the service's state and its tenants",
  'vaults:read': 'See vaults',
  'vaults:manage': 'Make, enable, disable and delete vaults',
  'keys:read': 'See keys and their versions',
  'keys:manage': 'Make, rotate, enable and disable keys',
  'keys:delete': 'Soft-delete keys',
  'master-keys:read': 'See master keys of databases and their blast radius',
  'master-keys:destroy': 'Destroy master keys, for good',
  'applications:read': 'See groups, applications and instances of databases',
  'applications:manage': 'Make groups, register, enable, disable and move applications',
  'applications:credentials': 'Issue and remove access_guids',
  'endpoints:read': 'See key store endpoints, external key stores and diagnostics',
  'endpoints:manage': 'Make, change, enable, disable and delete key store endpoints and external key stores',
  'endpoints:credentials': 'Add and remove credentials of key store endpoints',
  'diagnostics:run': 'Run diagnostics and probes',
  'requests:read': 'Search the request log',
  'requests:export': 'Export the request log',
  'audit:read': 'Read and prove the audit log',
  'audit:export': 'Export the audit log',
  'tokens:read': 'See API tokens',
  'tokens:manage': 'Make and revoke API tokens, and so give roles',
} as const;
export type Permission = keyof typeof permissions;
export const permissionNames = Object.keys(permissions) as Permission[];

const reads = permissionNames.filter((name) => name.endsWith(':read'));
const resources = ['status:read', 'vaults:read', 'keys:read', 'master-keys:read', 'applications:read'] as const;

export interface RoleRow {
  readonly description: string;
  readonly permissions: readonly Permission[];
  /** It is given for one application or one endpoint, and counts there alone. */
  readonly scoped?: true;
  /** Given only by those who have it. */
  readonly supreme?: true;
}

export const roles = {
  administrator: {
    description: 'Everything. The first token has it; give people roles of their own, then revoke it.',
    permissions: permissionNames,
    supreme: true,
  },
  'platform-operator': {
    description: 'Keeps the service running: state, health, diagnostics. No keys, no credentials.',
    permissions: ['status:read', 'endpoints:read', 'diagnostics:run', 'requests:read'],
  },
  'tenant-administrator': {
    description: 'Gives people and programs their roles. Uses and changes nothing else.',
    permissions: [...resources, 'endpoints:read', 'audit:read', 'tokens:read', 'tokens:manage'],
  },
  'key-manager': {
    description: 'Makes, rotates, disables and soft-deletes keys and vaults. Destroys none.',
    permissions: [...resources, 'endpoints:read', 'vaults:manage', 'keys:manage', 'keys:delete'],
  },
  'key-destroyer': {
    description: 'Destroys master keys of databases, for good. Makes none.',
    permissions: [...resources, 'master-keys:destroy'],
  },
  'connection-manager': {
    description: 'Connects databases and clouds: applications, endpoints, their credentials. Changes no key.',
    permissions: [
      ...resources,
      'endpoints:read',
      'requests:read',
      'applications:manage',
      'applications:credentials',
      'endpoints:manage',
      'endpoints:credentials',
      'diagnostics:run',
    ],
  },
  'application-owner': {
    description: 'One application or one endpoint: its state, credentials, diagnostics and log.',
    permissions: [
      'applications:read',
      'applications:credentials',
      'master-keys:read',
      'endpoints:read',
      'endpoints:credentials',
      'diagnostics:run',
      'requests:read',
    ],
    scoped: true,
  },
  auditor: {
    description: 'Reads everything, verifies and exports the logs; exports are audited. Changes nothing.',
    permissions: [...reads, 'requests:export', 'audit:export'],
  },
  'break-glass': {
    description: 'Everything, for eight hours at most, with an alarm in the audit log when it is given.',
    permissions: permissionNames,
    supreme: true,
  },
} as const satisfies Record<string, RoleRow>;
export type Role = keyof typeof roles;
export const roleNames = Object.keys(roles) as Role[];

/** How long a break-glass token may hold. */
export const longestBreakGlassMs = 8 * 3_600_000;

/** One resource, with everything below it. */
export interface Scope {
  readonly kind: 'application' | 'endpoint';
  readonly id: string;
}

export interface Grant {
  readonly role: Role;
  /** Null: everywhere. Set exactly for roles that are given for one resource. */
  readonly scope: Scope | null;
}

export const rowOf = (role: Role): RoleRow => roles[role];

const covers = (granted: Scope | null, asked: Scope | null): boolean =>
  granted === null || (asked !== null && granted.kind === asked.kind && granted.id === asked.id);

/** `asked`: the resource that the request is about, when it is one that roles are given for. */
export const isAllowed = (grants: readonly Grant[], permission: Permission, asked: Scope | null): boolean =>
  grants.some(({ role, scope }) => covers(scope, asked) && rowOf(role).permissions.includes(permission));

/** Roles that have a permission: what a refusal names. */
export const rolesWith = (permission: Permission): readonly Role[] =>
  roleNames.filter((role) => rowOf(role).permissions.includes(permission));

/** Every right that somebody has, once each: those that hold everywhere first. */
export const effectivePermissions = (
  grants: readonly Grant[],
): readonly { readonly permission: Permission; readonly scope: Scope | null }[] => {
  const everywhere = grants.filter(({ scope }) => scope === null);
  const scopes = new Map(grants.flatMap(({ scope }) => (scope === null ? [] : [[`${scope.kind} ${scope.id}`, scope]])));
  return [
    ...permissionNames
      .filter((name) => isAllowed(everywhere, name, null))
      .map((permission) => ({ permission, scope: null })),
    ...[...scopes.values()].flatMap((scope) =>
      permissionNames
        .filter((name) => isAllowed(grants, name, scope) && !isAllowed(everywhere, name, null))
        .map((permission) => ({ permission, scope })),
    ),
  ];
};

/** Why these cannot be given together, or by somebody who has `own`; undefined: they can. */
export const faultOfGrants = (grants: readonly Grant[], own: readonly Grant[] | 'the service'): string | undefined => {
  if (grants.length === 0) return 'at least one role is needed';
  for (const { role, scope } of grants) {
    const { scoped = false, supreme = false } = rowOf(role);
    if (scoped !== (scope !== null))
      return scoped ? `${role} is given for one application or one endpoint` : `${role} is not given for one resource`;
    if (supreme && own !== 'the service' && !own.some((grant) => rowOf(grant.role).supreme === true))
      return `${role} is given only by those who may do everything`;
  }
  return undefined;
};
