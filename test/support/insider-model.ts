// What insiders may gain: every operation of the API by its effects, and for each role the most
// that it may do. The permission tables define what the service allows; this model defines,
// independently of them, what it may ever allow.

import type { ApiRoutes } from '../../server/contract/api/index.ts';
import type { Role } from '../../server/domain/access.ts';

/** What an operation does or shows. */
export const effects = {
  'see-resources': 'vaults and keys',
  'see-tenants': 'tenants',
  'see-applications': 'groups, applications, instances and master keys',
  'see-endpoints': 'endpoints, external key stores and diagnoses',
  'see-requests': 'the request log',
  'export-requests': 'a copy of the request log',
  'see-audit': 'the audit log',
  'export-audit': 'a copy of the audit log',
  'see-approvals': 'approval requests',
  'see-snapshots': 'snapshots and recovery keys',
  'see-people': 'tokens, users and sessions',
  'see-notifications': 'notifications',
  'see-platform': 'state of the service and its settings',
  'see-nodes': 'nodes',
  'see-root': 'root key providers',
  key: 'creates or reactivates a key or a vault',
  'end-key': 'disables or soft-deletes a key or a vault',
  destroy: 'destroys a key permanently',
  purge: 'destroys a tenant permanently',
  connect: 'gives an application or an endpoint the use of keys, or takes it away',
  credential: 'creates or removes an access_guid or a credential of an endpoint',
  'use-as-database': 'uses keys by an access_guid',
  'destroy-as-database': 'destroys master keys permanently by an access_guid (C_DestroyObject)',
  runbook: 'records the steps of a runbook',
  diagnose: 'runs a diagnosis or a probe',
  give: 'gives or takes roles of tokens, and ends what users may do',
  enrol: 'gives users, who do not expire, roles or ways to sign in',
  rule: 'changes dual control',
  decide: 'approves or refuses a request',
  tenant: 'creates, suspends, deletes or restores a tenant',
  snapshot: 'creates, deletes or undeletes a snapshot',
  export: 'a copy of a snapshot',
  restore: 'restores a snapshot',
  'recovery-key': 'decides which recovery keys open snapshots',
  inbox: 'hides or shows a notification',
  setup: 'hides or shows a step of the setup',
  root: 'rotates the root key',
  quarantine: 'ends a quarantine',
  node: 'takes a node out of service, or back',
  own: "changes only the caller's own account, or answers everyone the same",
} as const;
export type Effect = keyof typeof effects;
const all = Object.keys(effects) as Effect[];

const seeResources = ['see-resources', 'see-tenants', 'see-applications'] as const;

/** The most that a role alone may do. */
export const most: Readonly<Record<Role, readonly Effect[]>> = {
  administrator: all,
  // A user would outlast the emergency.
  'break-glass': all.filter((effect) => effect !== 'enrol'),
  'platform-operator': [
    ...['see-platform', 'see-tenants', 'see-nodes', 'see-root', 'see-endpoints', 'see-requests'],
    ...['see-snapshots', 'see-notifications', 'tenant', 'node', 'root', 'quarantine', 'setup', 'diagnose'],
    ...['snapshot', 'export', 'inbox'],
  ] as Effect[],
  'tenant-administrator': [
    ...seeResources,
    ...['see-endpoints', 'see-audit', 'see-people', 'see-approvals', 'see-snapshots', 'see-notifications'],
    ...['give', 'enrol', 'rule', 'snapshot', 'inbox'],
  ] as Effect[],
  'key-manager': [
    ...seeResources,
    ...['see-platform', 'see-endpoints', 'see-approvals', 'see-notifications', 'key', 'end-key', 'inbox'],
  ] as Effect[],
  'key-destroyer': [
    ...seeResources,
    ...['see-platform', 'see-approvals', 'see-notifications', 'destroy', 'purge'],
  ] as Effect[],
  'key-approver': [...seeResources, ...['see-platform', 'see-approvals', 'see-notifications', 'decide']] as Effect[],
  'recovery-officer': [
    ...seeResources,
    ...['see-platform', 'see-endpoints', 'see-snapshots', 'see-notifications', 'restore', 'recovery-key'],
  ] as Effect[],
  'connection-manager': [
    ...seeResources,
    ...['see-platform', 'see-endpoints', 'see-requests', 'see-approvals', 'see-notifications'],
    ...['connect', 'credential', 'runbook', 'diagnose', 'inbox'],
    // Who can create an access_guid can be the database.
    ...['use-as-database', 'destroy-as-database'],
  ] as Effect[],
  'application-owner': [
    ...['see-applications', 'see-endpoints', 'see-requests', 'credential', 'runbook', 'diagnose'],
    ...['use-as-database', 'destroy-as-database'],
  ] as Effect[],
  auditor: all.filter((effect) => /^(see|export)-/.test(effect)),
};

/**
 * Roles that another role can be used to give, to oneself or to accomplices. `tenant`: within the
 * tenant only.
 */
export const gives: Readonly<Partial<Record<Role, 'everything' | 'tenant' | 'emergency'>>> = {
  administrator: 'everything',
  // All but those that can give roles themselves: these would outlast the emergency.
  'break-glass': 'emergency',
  'tenant-administrator': 'tenant',
};
const supreme: readonly Role[] = ['administrator', 'break-glass'];
const platformRoles: readonly Role[] = ['platform-operator', 'recovery-officer'];
/** Whether a role can be used to give another one. `within`: it is one in a tenant. */
export const canGive = (role: Role, other: Role, within: boolean): boolean => {
  const given = gives[role];
  if (given === undefined || (within && platformRoles.includes(other))) return false;
  if (given === 'tenant') return !supreme.includes(other) && !platformRoles.includes(other);
  return given === 'everything' || other === 'break-glass' || gives[other] === undefined;
};
/** Effects that concern the platform: no role within one tenant may have them. */
export const ofPlatform: ReadonlySet<Effect> = new Set<Effect>([
  ...(['see-platform', 'see-nodes', 'see-root', 'purge', 'tenant', 'export', 'restore', 'recovery-key'] as const),
  ...(['setup', 'root', 'quarantine', 'node'] as const),
]);

/**
 * Everything that a person can reach with roles by giving themselves others; without an accomplice.
 */
export const reachOf = (roles: readonly Role[], withinTenant: boolean): ReadonlySet<Effect> => {
  const all = Object.keys(most) as Role[];
  const own = new Set<Role>([
    ...roles,
    ...all.filter((other) => roles.some((role) => canGive(role, other, withinTenant))),
  ]);
  return new Set([...own].flatMap((role) => most[role]).filter((effect) => !withinTenant || !ofPlatform.has(effect)));
};

type Row = { readonly effect: Effect; readonly waits?: 'rule' | 'second' };
const sees = (effect: Effect): Row => ({ effect });
const does = (effect: Effect): Row => ({ effect });
/** A change that waits for a second person, as soon as a second one exists who can approve. */
const seconds = (effect: Effect): Row => ({ effect, waits: 'second' });
/** Under dual control it waits for others. */
const waits = (effect: Effect): Row => ({ effect, waits: 'rule' });

const own = does('own');

/**
 * Every operation by the most that it may do. An operation that is not here fails the matrix by its
 * name.
 */
export const operations: { readonly [G in keyof ApiRoutes]: { readonly [N in keyof ApiRoutes[G]]: Row } } = {
  tenants: {
    create: does('tenant'),
    list: sees('see-tenants'),
    get: sees('see-tenants'),
    rename: does('tenant'),
    suspend: does('tenant'),
    resume: does('tenant'),
    delete: waits('tenant'),
    restore: does('tenant'),
    purge: waits('purge'),
  },
  vaults: {
    create: does('key'),
    list: sees('see-resources'),
    get: sees('see-resources'),
    enable: does('key'),
    disable: does('end-key'),
    delete: waits('end-key'),
    rename: waits('key'),
    setProfile: does('key'),
    dualControl: sees('see-resources'),
    setDualControl: waits('rule'),
    removeDualControl: waits('rule'),
  },
  keys: {
    create: does('key'),
    list: sees('see-resources'),
    export: sees('see-resources'),
    get: sees('see-resources'),
    change: does('key'),
    versions: sees('see-resources'),
    use: sees('see-resources'),
    enable: does('key'),
    disable: does('end-key'),
    rotate: does('key'),
    delete: waits('end-key'),
  },
  tdeGroups: {
    create: does('connect'),
    rename: waits('connect'),
    list: sees('see-applications'),
    get: sees('see-applications'),
  },
  applications: {
    register: does('connect'),
    list: sees('see-applications'),
    get: sees('see-applications'),
    enable: does('connect'),
    disable: does('connect'),
    rename: does('connect'),
    setCompatibility: does('connect'),
    setCallers: does('connect'),
    move: waits('connect'),
    rotateAccessGuid: does('credential'),
    accessGuids: sees('see-applications'),
    removeAccessGuid: does('credential'),
    instances: sees('see-applications'),
  },
  masterKeys: {
    list: sees('see-applications'),
    get: sees('see-applications'),
    blastRadius: sees('see-applications'),
    allowDecryption: does('key'),
    destroy: waits('destroy'),
  },
  endpoints: {
    create: does('connect'),
    list: sees('see-endpoints'),
    get: sees('see-endpoints'),
    enable: does('connect'),
    disable: does('connect'),
    rename: does('connect'),
    changeSettings: does('connect'),
    simulateRules: sees('see-endpoints'),
    delete: does('connect'),
    addCredential: does('credential'),
    removeCredential: does('credential'),
  },
  diagnostics: {
    run: does('diagnose'),
    follow: does('diagnose'),
    list: sees('see-endpoints'),
    get: sees('see-endpoints'),
  },
  requests: {
    search: sees('see-requests'),
    export: does('export-requests'),
    correlate: sees('see-requests'),
    verify: sees('see-audit'),
    searchOne: sees('see-requests'),
    exportOne: does('export-requests'),
  },
  runbooks: {
    list: own,
    fill: sees('see-applications'),
    runs: sees('see-applications'),
    start: does('runbook'),
    get: sees('see-applications'),
    completeStep: does('runbook'),
    reopenStep: does('runbook'),
    finish: does('runbook'),
  },
  externalKeyStores: {
    register: does('connect'),
    list: sees('see-endpoints'),
    get: sees('see-endpoints'),
    probe: does('diagnose'),
    remove: does('connect'),
  },
  notifications: {
    list: sees('see-notifications'),
    acknowledge: does('inbox'),
    release: does('inbox'),
    targets: sees('see-notifications'),
    test: does('inbox'),
  },
  approvals: {
    list: sees('see-approvals'),
    get: sees('see-approvals'),
    approve: does('decide'),
    reject: does('decide'),
    withdraw: own,
  },
  snapshots: {
    create: does('snapshot'),
    list: sees('see-snapshots'),
    schedule: sees('see-snapshots'),
    get: sees('see-snapshots'),
    exports: sees('see-snapshots'),
    delete: does('snapshot'),
    undelete: does('snapshot'),
    export: waits('export'),
    import: does('restore'),
    open: does('restore'),
    verify: does('snapshot'),
    verifyOpened: does('restore'),
    restore: waits('restore'),
    ofKey: sees('see-resources'),
  },
  copies: { list: sees('see-snapshots'), get: sees('see-snapshots'), confirmDestroyed: does('snapshot') },
  recoveryKeys: { register: seconds('recovery-key'), list: sees('see-snapshots'), remove: does('recovery-key') },
  audit: {
    log: sees('see-audit'),
    rotateKey: does('root'),
    checkpoints: sees('see-audit'),
    sinks: sees('see-audit'),
    export: does('export-audit'),
    exportTenant: does('export-audit'),
    prove: sees('see-audit'),
    migrations: sees('see-audit'),
    list: sees('see-audit'),
  },
  tokens: {
    create: does('give'),
    list: sees('see-people'),
    roles: own,
    revoke: does('give'),
    rotateKey: does('give'),
    endFormerKey: does('give'),
  },
  users: {
    create: does('enrol'),
    list: sees('see-people'),
    get: sees('see-people'),
    update: does('enrol'),
    enable: does('enrol'),
    disable: does('give'),
    unlock: does('give'),
    resetPassword: does('enrol'),
    removeFactors: does('enrol'),
    permissions: sees('see-people'),
    endSessions: does('give'),
    delete: does('give'),
  },
  sessions: { list: sees('see-people'), end: does('give'), rotateKey: does('root') },
  profile: {
    get: own,
    changePassword: own,
    beginTotp: own,
    confirmTotp: own,
    beginPasskey: own,
    addPasskey: own,
    makeRecoveryCodes: own,
    removeFactor: own,
    createToken: own,
    tokens: own,
    revokeToken: own,
    sessions: own,
    endSession: own,
    endOtherSessions: own,
  },
  session: {
    start: own,
    methods: own,
    beginPasskey: own,
    passkey: own,
    beginOpenId: own,
    finishOpenId: own,
    beginSecondFactor: own,
    secondFactor: own,
    redeem: own,
    get: own,
    end: own,
  },
  deviceSignIn: { start: own, poll: own, end: own, find: own, approve: own, refuse: own },
  packages: { list: sees('see-applications'), download: sees('see-applications') },
  search: { find: own },
  overview: { latency: sees('see-endpoints') },
  setup: { get: sees('see-platform'), confirm: does('setup') },
  settings: { get: sees('see-platform') },
  nodes: {
    list: sees('see-nodes'),
    get: sees('see-nodes'),
    drain: does('node'),
    resume: does('node'),
    remove: does('node'),
  },
  status: { get: sees('see-platform'), jobs: sees('see-platform') },
  root: { get: sees('see-root'), rotate: does('root'), releaseCopy: does('root') },
  quarantine: { get: sees('see-platform'), confirm: does('quarantine') },
  clock: { get: sees('see-platform'), confirm: does('quarantine') },
};

/** The row of the operation "group.operation"; undefined: the model does not have it. */
export const effectOf = (name: string): Row | undefined => {
  const [group = '', operation = ''] = name.split('.');
  return (operations as Readonly<Record<string, Readonly<Record<string, Row>> | undefined>>)[group]?.[operation];
};
