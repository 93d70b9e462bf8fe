// Access control: permissions, the roles that bundle them, and the decision whether a caller may do
// something. Only this table gives a role its rights; every route of the console's API names the
// one permission that it needs.
//
// Separation of duties: a role that creates keys does not destroy them, a role that grants roles
// uses no key, and an auditor changes nothing.
//
// A role is granted for the whole platform or within one tenant. Operations on the platform itself
// require a role for the whole platform.

export const permissions = {
  'status:read': 'See the state of the service',
  'tenants:read': 'See tenants',
  'tenants:manage': 'Create, rename, suspend, resume, delete and restore tenants',
  'tenants:purge': 'Purge deleted tenants (cannot be undone)',
  'vaults:read': 'See vaults',
  'vaults:manage': 'Create, rename, enable, disable and delete vaults',
  'dual-control:manage': 'Set and change the dual control of vaults',
  'keys:read': 'See keys and their versions',
  'keys:manage': 'Create, rotate, enable and disable keys',
  'keys:delete': 'Soft-delete keys',
  'master-keys:read': 'See master keys of databases and their blast radius',
  'master-keys:destroy': 'Destroy master keys (cannot be undone)',
  'applications:read': 'See groups, applications and instances of databases',
  'applications:manage': 'Create and rename groups; register, rename, enable, disable and move applications',
  'applications:credentials': 'Issue and remove access_guids',
  'runbooks:run': 'Run runbooks for databases and complete their steps',
  'endpoints:read': 'See key store endpoints, external key stores and diagnostics',
  'endpoints:manage': 'Create, rename, change, enable, disable and delete key store endpoints and external key stores',
  'endpoints:credentials': 'Add and remove credentials of key store endpoints',
  'diagnostics:run': 'Run diagnostics and probes',
  'requests:read': 'Search the request log',
  'requests:export': 'Export the request log',
  'audit:read': 'Read and verify the audit log',
  'audit:export': 'Export the audit log',
  'approvals:read': 'See approval requests',
  'approvals:decide': 'Approve or reject approval requests',
  'setup:confirm': 'Mark manual setup steps as complete',
  'root:read': 'See the epoch and providers of the root key',
  'root:rotate': 'Rotate the root key and the keys of tenants',
  'clock:confirm': 'Confirm the time after the clock has jumped',
  'quarantine:confirm': 'Accept a database that failed its rollback check',
  'snapshots:read': 'See snapshots, recovery keys and the schedule',
  'snapshots:manage': 'Create, verify, delete and undelete snapshots',
  'snapshots:export': 'Export snapshots',
  'snapshots:restore': 'Import and restore snapshots (with the recovery key)',
  'recovery-keys:manage': 'Register and remove the recovery keys for snapshots',
  'notifications:read': 'See alerts that need action',
  'notifications:acknowledge': 'Acknowledge and release notifications, and test their targets',
  'nodes:read': 'See the nodes of the service',
  'nodes:manage': 'Drain and remove nodes',
  'tokens:read': 'See API tokens',
  'tokens:manage': 'Create and revoke API tokens, which gives roles',
  'users:read': 'See users, their permissions and their sessions',
  'users:manage': 'Create, change, disable, unlock and delete users, which gives roles; end sessions',
} as const;
export type Permission = keyof typeof permissions;
export const permissionNames = Object.keys(permissions) as Permission[];

/**
 * What no role within one tenant gives, whatever its row says: it concerns the platform, or the
 * tenant as a whole.
 */
const platformOnly: ReadonlySet<Permission> = new Set([
  'status:read',
  'tenants:manage',
  'tenants:purge',
  'nodes:read',
  'nodes:manage',
  'setup:confirm',
  'root:read',
  'root:rotate',
  'clock:confirm',
  'quarantine:confirm',
]);
export const isPlatformOnly = (permission: Permission): boolean => platformOnly.has(permission);

const reads = permissionNames.filter((name) => name.endsWith(':read'));
const resources = [
  'status:read',
  'tenants:read',
  'vaults:read',
  'keys:read',
  'master-keys:read',
  'applications:read',
] as const;

/** Permissions of roles that act on notifications. */
const inbox = ['notifications:read', 'notifications:acknowledge'] as const;

export interface RoleRow {
  readonly description: string;
  readonly permissions: readonly Permission[];
  /** The role is granted for one application or one endpoint and is valid only there. */
  readonly scoped?: true;
  /** Given only by those who have it. */
  readonly supreme?: true;
  /**
   * Where it can be granted: only for the whole platform, or only within one tenant. Absent: both.
   */
  readonly reach?: 'platform' | 'tenant';
}

export const roles = {
  administrator: {
    description: 'Everything. The first token has it: give people their own roles, then revoke that token.',
    permissions: permissionNames,
    supreme: true,
  },
  'platform-operator': {
    description:
      'Keeps the service running: state, health, diagnostics, snapshots, rotation of the root key, tenants. No access to keys or credentials.',
    permissions: [
      'status:read',
      'tenants:read',
      'nodes:read',
      'nodes:manage',
      'tenants:manage',
      'setup:confirm',
      'root:read',
      'root:rotate',
      'clock:confirm',
      'quarantine:confirm',
      'endpoints:read',
      'diagnostics:run',
      'requests:read',
      'snapshots:read',
      'snapshots:manage',
      'snapshots:export',
      ...inbox,
    ],
    reach: 'platform',
  },
  'tenant-administrator': {
    description:
      'Gives roles to people and programs, sets the dual control of vaults, and creates, verifies and deletes snapshots of the tenant. Cannot use or change anything else.',
    permissions: [
      ...resources,
      'endpoints:read',
      'audit:read',
      'tokens:read',
      'tokens:manage',
      'dual-control:manage',
      'approvals:read',
      'users:read',
      'users:manage',
      'snapshots:read',
      'snapshots:manage',
      ...inbox,
    ],
    reach: 'tenant',
  },
  'key-manager': {
    description: 'Creates, rotates, disables and soft-deletes keys and vaults. Cannot destroy keys.',
    permissions: [
      ...resources,
      'endpoints:read',
      'vaults:manage',
      'keys:manage',
      'keys:delete',
      'approvals:read',
      ...inbox,
    ],
  },
  'key-destroyer': {
    description:
      'Destroys master keys of databases and purges deleted tenants, which cannot be undone. Cannot create keys.',
    permissions: [...resources, 'master-keys:destroy', 'tenants:purge', 'approvals:read', 'notifications:read'],
  },
  'key-approver': {
    description: 'Approves or rejects requests under dual control, except their own. Cannot do anything else.',
    permissions: [...resources, 'approvals:read', 'approvals:decide', 'notifications:read'],
  },
  'recovery-officer': {
    description: 'Registers recovery keys and restores snapshots. Cannot create or export snapshots.',
    permissions: [
      ...resources,
      'endpoints:read',
      'snapshots:read',
      'snapshots:restore',
      'recovery-keys:manage',
      'notifications:read',
    ],
    reach: 'platform',
  },
  'connection-manager': {
    description: 'Connects databases and clouds: applications, endpoints, their credentials. Cannot change keys.',
    permissions: [
      ...resources,
      'endpoints:read',
      'requests:read',
      'applications:manage',
      'applications:credentials',
      'runbooks:run',
      'endpoints:manage',
      'endpoints:credentials',
      'diagnostics:run',
      'approvals:read',
      ...inbox,
    ],
  },
  'application-owner': {
    description: 'Manages one application or one endpoint: its state, credentials, diagnostics and log.',
    permissions: [
      'applications:read',
      'applications:credentials',
      'runbooks:run',
      'master-keys:read',
      'endpoints:read',
      'endpoints:credentials',
      'diagnostics:run',
      'requests:read',
    ],
    scoped: true,
  },
  auditor: {
    description: 'Reads everything; verifies and exports the logs (audited). Cannot change anything.',
    permissions: [...reads, 'requests:export', 'audit:export'],
  },
  'break-glass': {
    description: 'Everything, for at most eight hours. Giving it writes an audit record of the highest severity.',
    permissions: permissionNames,
    supreme: true,
  },
} as const satisfies Record<string, RoleRow>;
export type Role = keyof typeof roles;
export const roleNames = Object.keys(roles) as Role[];

/** How long a break-glass token may work. */
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
  /** The tenant within which it counts. Null: the whole platform, and every tenant. */
  readonly tenantId: string | null;
}

export const rowOf = (role: Role): RoleRow => roles[role];

const coversScope = (granted: Scope | null, asked: Scope | null): boolean =>
  granted === null || (asked !== null && granted.kind === asked.kind && granted.id === asked.id);

/** Whether a grant is valid in a tenant; null means the whole platform. */
export const countsIn = ({ tenantId }: Pick<Grant, 'tenantId'>, asked: string | null): boolean =>
  tenantId === null || tenantId === asked;

/**
 * `tenantId`: the tenant that the request is about; null when it is about the platform. `asked`:
 * the resource that it is about, when it is one that roles are given for.
 */
export const isAllowed = (
  grants: readonly Grant[],
  permission: Permission,
  tenantId: string | null,
  asked: Scope | null,
): boolean =>
  grants.some(
    (grant) =>
      countsIn(grant, tenantId) &&
      (grant.tenantId === null || !platformOnly.has(permission)) &&
      coversScope(grant.scope, asked) &&
      rowOf(grant.role).permissions.includes(permission),
  );

/** Roles that have a permission: what a refusal names. */
export const rolesWith = (permission: Permission): readonly Role[] =>
  roleNames.filter((role) => rowOf(role).permissions.includes(permission));

/** One right, and where it is valid. */
export interface Right {
  readonly permission: Permission;
  readonly scope: Scope | null;
  readonly tenantId: string | null;
}

/**
 * Every right that a caller has, once each: those of the whole platform first, then those of
 * tenants, then those of single resources.
 */
export const effectivePermissions = (grants: readonly Grant[]): readonly Right[] => {
  const places = new Map<string, Pick<Right, 'scope' | 'tenantId'>>();
  const breadth = ({ scope, tenantId }: Pick<Right, 'scope' | 'tenantId'>): number =>
    (scope === null ? 0 : 2) + (tenantId === null ? 0 : 1);
  for (const { scope, tenantId } of [...grants].sort((a, b) => breadth(a) - breadth(b)))
    places.set(`${tenantId} ${scope?.kind} ${scope?.id}`, { scope, tenantId });
  const told: Right[] = [];
  const isTold = (permission: Permission, { scope, tenantId }: Pick<Right, 'scope' | 'tenantId'>): boolean =>
    told.some(
      (right) => right.permission === permission && countsIn(right, tenantId) && coversScope(right.scope, scope),
    );
  for (const place of places.values())
    for (const permission of permissionNames)
      if (isAllowed(grants, permission, place.tenantId, place.scope) && !isTold(permission, place))
        told.push({ permission, ...place });
  return told;
};

/** What a user has passed on, reduced to the grants that the user still has (`own`). */
export const effectiveGrants = (passedOn: readonly Grant[], own: readonly Grant[]): readonly Grant[] =>
  passedOn.filter((grant) =>
    own.some(
      (each) => each.role === grant.role && countsIn(each, grant.tenantId) && coversScope(each.scope, grant.scope),
    ),
  );

/**
 * Grants that do not end with an emergency: what can be given for longer than a break-glass token
 * works.
 */
export const lastingGrants = (own: readonly Grant[]): readonly Grant[] =>
  own.filter(({ role }) => role !== 'break-glass');

/** Whether a role can be used to give roles. */
export const givesRoles = (role: Role): boolean =>
  rowOf(role).permissions.some((permission) => permission === 'tokens:manage' || permission === 'users:manage');

/** The permission that is required within a tenant (or everywhere) to give roles there. */
export type GivingPermission = Extract<Permission, `${string}:manage`>;

/** Why these cannot be given together, or not by a caller who has `own`; undefined: they can. */
export const faultOfGrants = (
  grants: readonly Grant[],
  own: readonly Grant[] | 'the service',
  giving: GivingPermission = 'tokens:manage',
): string | undefined => {
  if (grants.length === 0) return 'at least one role is required';
  for (const { role, scope, tenantId } of grants) {
    const { scoped = false, supreme = false, reach } = rowOf(role);
    if (scoped !== (scope !== null))
      return scoped ? `${role} requires one application or one endpoint` : `${role} cannot be limited to one resource`;
    if (reach === 'platform' && tenantId !== null)
      return `${role} can only be given for the whole platform, not within one tenant`;
    if (reach === 'tenant' && tenantId === null) return `${role} can only be given within one tenant`;
    if (own === 'the service') continue;
    if (!isAllowed(own, giving, tenantId, null))
      return tenantId === null
        ? `to give roles for the whole platform, you need ${giving} for the whole platform`
        : `to give roles within this tenant, you need ${giving} in it`;
    if (supreme && !own.some((grant) => countsIn(grant, tenantId) && rowOf(grant.role).supreme === true))
      return `only an administrator or break-glass can give ${role}`;
  }
  return undefined;
};
