// Every operation that changes something, with what it changes and what it reads: the table of the
// test of concurrent operations (test/contract/concurrency.test.ts). An operation of the API or of
// the TDE front without a row here does not compile, and fails by name.
import { randomUUID } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ApiRoutes } from '../../server/contract/api/index.ts';
import type { RouteRow } from '../../server/contract/api/row.ts';
import type { TdeRoutes } from '../../server/contract/tde.ts';
import type { TdeCaller } from '../../server/operations/index.ts';
import type { StartedSession } from '../../server/operations/people/people-operations.ts';
import { type Adversaries, type ForeignFile, type Prepared, piecesOf } from './adversaries.ts';
import { callerOn, idOf, makers, rule, send, type TestNode, type Thing, type World } from './concurrent-worlds.ts';
import { withFreshIds } from './forged-snapshots.ts';
import { dataObject, masterKey, type OpenedService, toLabel } from './open-service.ts';
import { bytesOf, goodPassword, originOf } from './people.ts';
import { handWith } from './snapshots.ts';
import { codeOf } from './totp.ts';

/** What several operations change. */
export type Aggregate =
  | 'tenant'
  | 'names'
  | 'vault'
  | 'key'
  | 'group'
  | 'application'
  | 'object'
  | 'run'
  | 'endpoint'
  | 'keyStore'
  | 'approval'
  | 'notification'
  | 'token'
  | 'user'
  | 'snapshot'
  | 'recoveryKey'
  | 'setup'
  | 'root';

export type Call = (node: TestNode, world: World) => Promise<unknown>;
/** What one operation changes, reads and needs, and how it is called. */
export interface Row {
  readonly changes: readonly Aggregate[];
  /** What it reads to decide, and does not change. */
  readonly reads?: readonly Aggregate[];
  readonly needs?: readonly Thing[];
  /** What each parameter of the path names. */
  readonly path?: Readonly<Record<string, Thing | { readonly kept: 'step' }>>;
  readonly body?: (world: World) => object;
  readonly query?: string;
  /** Instead of one request to the API. */
  readonly call?: Call;
}
/** Changes nothing that other operations change, or nothing at all. */
export interface LeftOut {
  readonly leftOut: string;
}
const changes = (row: Omit<Row, 'changes'>, ...aggregates: readonly Aggregate[]): Row => ({
  ...row,
  changes: aggregates,
});
const on = (thing: Thing, ...aggregates: readonly Aggregate[]): Row => changes({ path: { id: thing } }, ...aggregates);
const leftOut = (why: string): LeftOut => ({ leftOut: why });
const app = (row: Omit<Row, 'changes'>, ...aggregates: readonly Aggregate[]): Row =>
  changes({ ...row, path: { applicationId: 'application', ...row.path } }, ...aggregates);
const step = { step: { kept: 'step' } } as const;

type Changing<G> = {
  readonly [N in keyof G as G[N] extends { readonly method: 'get' } ? never : N]: Row | LeftOut;
};
/**
 * Calls the operations themselves with the user's session, because the cookie is only sent over
 * TLS.
 */
const asUser =
  (work: (node: TestNode, session: StartedSession, world: World) => Promise<unknown>): Call =>
  async (node, world) => {
    if (world.kept.session === undefined) throw new Error('no user is signed in');
    const caller = await node.opened.operations.sessions.authenticate(world.kept.session.value, 'call-2', null);
    return work(node, { ...world.kept.session, ...caller }, world);
  };
const own = (work: Parameters<typeof asUser>[0], ...needs: readonly Thing[]): Row =>
  changes({ needs: ['session', ...needs], call: asUser(work) }, 'user');

export const apiOperations: { readonly [G in keyof ApiRoutes]: Changing<ApiRoutes[G]> } = {
  tenants: {
    create: changes({ body: ({ mark }) => ({ name: `made-${mark}` }) }, 'names'),
    rename: changes({ path: {}, body: ({ mark }) => ({ name: `renamed-${mark}` }) }, 'tenant', 'names'),
    suspend: changes({ path: {} }, 'tenant'),
    resume: changes({ path: {} }, 'tenant'),
    delete: changes({ path: {} }, 'tenant'),
    restore: changes({ path: {} }, 'tenant'),
    purge: changes(
      {
        call: async ({ opened: { operations } }, { actor, tenantId }) => {
          await operations.tenants.delete(actor, tenantId);
          await operations.tenants.purge(actor, tenantId);
        },
      },
      'tenant',
    ),
  },
  vaults: {
    create: changes({ body: () => ({ name: 'made' }), reads: ['tenant'] }, 'names'),
    enable: on('vault', 'vault'),
    disable: on('vault', 'vault'),
    delete: on('vault', 'vault'),
    rename: changes({ path: { id: 'vault' }, body: ({ mark }) => ({ name: `renamed-${mark}` }) }, 'vault', 'names'),
    setProfile: changes({ path: { id: 'vault' }, body: () => ({ profile: 'high-security' }) }, 'vault'),
    setDualControl: changes({ path: { id: 'vault' }, body: () => rule }, 'vault'),
    removeDualControl: changes({ path: { id: 'governedVault' }, needs: ['approval'] }, 'vault', 'approval'),
  },
  keys: {
    create: changes(
      { needs: ['vault'], body: (w) => ({ name: 'made', vaultId: idOf(w, 'vault') }), reads: ['tenant', 'vault'] },
      'names',
    ),
    change: changes({ path: { id: 'key' }, body: () => ({ name: 'other', tags: ['env=prod'] }) }, 'key'),
    enable: on('key', 'key'),
    disable: on('key', 'key'),
    rotate: changes({ path: { id: 'key' }, reads: ['vault', 'tenant'] }, 'key'),
    delete: changes({ path: { id: 'key' }, reads: ['vault'] }, 'key'),
  },
  tdeGroups: {
    create: changes({ body: () => ({ name: 'made' }), reads: ['tenant'] }, 'names'),
    rename: changes({ path: { id: 'group' }, body: ({ mark }) => ({ name: `renamed-${mark}` }) }, 'group', 'names'),
  },
  applications: {
    register: changes(
      { needs: ['group'], body: (w) => ({ name: 'made', groupId: idOf(w, 'group') }), reads: ['tenant'] },
      'group',
    ),
    enable: on('application', 'application'),
    disable: on('application', 'application'),
    rename: changes(
      { path: { id: 'application' }, body: ({ mark }) => ({ name: `renamed-${mark}` }) },
      'application',
      'names',
    ),
    setCompatibility: changes(
      { path: { id: 'application' }, body: () => ({ switches: ['sha1-signatures'] }) },
      'application',
    ),
    setCallers: changes(
      { path: { id: 'application' }, body: () => ({ networks: ['192.0.2.0/24'], certificates: [] }) },
      'application',
    ),
    move: changes(
      {
        path: { id: 'application' },
        needs: ['otherGroup', 'masterKey'],
        body: (w) => ({ groupId: idOf(w, 'otherGroup'), confirm: 'db' }),
      },
      'application',
      'object',
    ),
    rotateAccessGuid: on('application', 'application'),
    removeAccessGuid: changes({ path: { id: 'application', accessGuidId: 'accessGuid' } }, 'application'),
  },
  masterKeys: {
    allowDecryption: app({ path: { keyId: 'masterKey' } }, 'key', 'object'),
    destroy: app({ path: { keyId: 'masterKey' }, body: () => ({ confirm: 'MK' }) }, 'key', 'object'),
  },
  endpoints: {
    create: changes(
      {
        needs: ['key'],
        body: (w) => ({ name: 'made', vaultId: idOf(w, 'vault'), keyId: idOf(w, 'key') }),
        reads: ['tenant', 'vault', 'key'],
      },
      'names',
    ),
    enable: on('endpoint', 'endpoint'),
    disable: on('endpoint', 'endpoint'),
    rename: changes({ path: { id: 'endpoint' }, body: ({ mark }) => ({ name: `renamed-${mark}` }) }, 'endpoint'),
    changeSettings: changes(
      {
        path: { id: 'endpoint' },
        body: () => ({ operatorProbes: false, rate: null, clientCertificate: null, rules: [] }),
      },
      'endpoint',
    ),
    simulateRules: leftOut('changes nothing'),
    delete: on('endpoint', 'endpoint'),
    addCredential: on('endpoint', 'endpoint'),
    removeCredential: changes({ path: { id: 'endpoint', credentialId: 'credential' } }, 'endpoint'),
  },
  diagnostics: {
    run: leftOut('adds a record; runs at an endpoint are one after the other'),
    follow: leftOut('adds a record; runs at an endpoint are one after the other'),
  },
  requests: { correlate: leftOut('changes nothing') },
  runbooks: {
    start: app({ body: () => ({ runbook: 'rotate' }), reads: ['application'] }, 'run'),
    completeStep: app({ path: { runId: 'runbookRun', ...step }, body: () => ({}) }, 'run'),
    reopenStep: app({ path: { runId: 'runbookRun', ...step } }, 'run'),
    finish: app({ path: { runId: 'runbookRun' }, body: () => ({ outcome: 'abandoned' }) }, 'run'),
  },
  externalKeyStores: {
    register: changes(
      {
        needs: ['endpoint'],
        body: (w) => ({
          name: 'made',
          customKeyStoreId: 'cks-0123456789abcdef8',
          region: 'eu-central-1',
          endpointId: idOf(w, 'endpoint'),
        }),
        reads: ['endpoint', 'tenant'],
      },
      'keyStore',
    ),
    probe: leftOut('writes what is seen, and when'),
    remove: on('keyStore', 'keyStore'),
  },
  notifications: {
    acknowledge: on('notification', 'notification'),
    release: on('notification', 'notification'),
    test: leftOut('changes nothing'),
  },
  approvals: {
    approve: changes(
      {
        needs: ['approval'],
        call: (n, w) => send(n, w.other, 'post', `/api/approvals/${idOf(w, 'approval')}/approve`, {}),
      },
      'approval',
    ),
    reject: changes(
      {
        needs: ['approval'],
        call: (n, w) => send(n, w.other, 'post', `/api/approvals/${idOf(w, 'approval')}/reject`, {}),
      },
      'approval',
    ),
    withdraw: on('approval', 'approval'),
  },
  snapshots: {
    create: leftOut('adds a snapshot, one after the other; the reads of a tenant are in one state'),
    delete: on('snapshot', 'snapshot'),
    undelete: on('deletedSnapshot', 'snapshot'),
    import: leftOut('of files of TS, OF and BW: below'),
    open: changes({ path: { id: 'snapshot' }, body: () => ({}) }, 'snapshot'),
    verify: changes({ path: { id: 'snapshot' }, body: () => ({}) }, 'snapshot'),
    verifyOpened: leftOut('as verify, with a key that opens once'),
    restore: leftOut('one unit of work, which reads all that it changes; with a key that opens once'),
  },
  copies: { confirmDestroyed: leftOut('sets the time of destruction, in the unit of work that reads it') },
  recoveryKeys: {
    register: leftOut('adds one; of two alike the store takes one'),
    remove: leftOut('sets the time of removal, in the unit of work that reads it'),
  },
  audit: { rotateKey: leftOut('one rotation at a time: audit-key.test.ts') },
  tokens: {
    create: changes(
      { body: () => ({ name: 'made', grants: [{ role: 'auditor', scope: null }] }), reads: ['tenant'] },
      'names',
    ),
    revoke: on('token', 'token'),
    rotateKey: leftOut('one rotation at a time: token-key.test.ts'),
    endFormerKey: leftOut('it would end the tokens of other rows: token-key.test.ts'),
  },
  users: {
    create: changes(
      { body: ({ mark }) => ({ name: `made-${mark}`, grants: [{ role: 'auditor', scope: null }] }), reads: ['tenant'] },
      'names',
    ),
    update: changes(
      {
        path: { id: 'user' },
        body: (w) => ({
          displayName: 'Changed',
          email: null,
          grants: [{ role: 'auditor', scope: null, tenantId: w.tenantId }],
          subject: null,
          mustChangePassword: false,
        }),
      },
      'user',
    ),
    enable: on('user', 'user'),
    disable: on('user', 'user'),
    unlock: on('user', 'user'),
    resetPassword: changes({ path: { id: 'user' }, body: () => ({ revokeTokens: true }) }, 'user'),
    removeFactors: on('user', 'user'),
    endSessions: on('user', 'user'),
    delete: on('user', 'user'),
  },
  sessions: {
    end: changes({ path: { id: 'session' } }, 'user'),
    rotateKey: leftOut('it would end the session of every other row: session-key.test.ts'),
  },
  profile: {
    changePassword: own(({ opened: { operations } }, session) =>
      operations.profile.changePassword(
        session,
        bytesOf(goodPassword),
        bytesOf('another long sentence as a passphrase'),
        originOf(),
      ),
    ),
    beginTotp: own(({ opened: { operations } }, session) => operations.factors.begin(session, 'other phone')),
    confirmTotp: leftOut('proves the session as secondFactor does'),
    beginPasskey: leftOut('adds a question'),
    addPasskey: leftOut('needs an authenticator: passkeys.test.ts'),
    makeRecoveryCodes: leftOut(
      'replaces the codes in the unit of work that reads them; needs a session with two factors',
    ),
    removeFactor: leftOut('needs a session with two factors: second-factors.test.ts'),
    createToken: own(({ opened: { operations } }, session) =>
      operations.profile.createToken(session, {
        name: 'mine',
        expiresAt: Date.now() + 3_600_000,
        grants: undefined,
      }),
    ),
    revokeToken: leftOut('revokes in the unit of work of tokens.revoke'),
    endSession: own(({ opened: { operations } }, session) => operations.profile.endSession(session, session.sessionId)),
    endOtherSessions: own(({ opened: { operations } }, session) => operations.profile.endOtherSessions(session)),
  },
  deviceSignIn: {
    start: leftOut('adds a question'),
    poll: leftOut('takes its own row once, also in parallel: device-sign-in.test.ts'),
    end: leftOut('revokes as tokens.revoke does'),
    find: leftOut('reads'),
    approve: leftOut('takes its own row once, also in parallel: device-sign-in.test.ts'),
    refuse: leftOut('takes its own row once, also in parallel: device-sign-in.test.ts'),
  },
  session: {
    start: changes(
      {
        needs: ['user'],
        call: ({ opened: { operations } }, { mark }) =>
          operations.signIn.byPassword(`person-${mark}`, bytesOf(goodPassword), originOf()),
      },
      'user',
    ),
    beginPasskey: leftOut('adds a question'),
    passkey: leftOut('needs an authenticator: passkeys.test.ts'),
    beginOpenId: leftOut('adds a question'),
    beginSecondFactor: leftOut('adds a question'),
    secondFactor: own(
      ({ opened: { operations } }, session, { kept }) =>
        operations.signIn.secondFactor(session, { code: bytesOf(codeOf(kept.secret ?? '', 0)) }, originOf()),
      'factor',
    ),
    redeem: changes(
      {
        needs: ['invited'],
        call: ({ opened: { operations } }, { kept }) =>
          operations.signIn.redeem(kept.invitation ?? '', bytesOf(goodPassword), originOf()),
      },
      'user',
    ),
    end: changes(
      {
        needs: ['session'],
        // A second sign-out is answered as the first one.
        call: ({ opened: { operations } }, { kept }) =>
          operations.sessions.signOut(kept.session?.value ?? '', { requestId: 'call-3', peer: null }),
      },
      'user',
    ),
  },
  packages: {},
  search: {},
  overview: {},
  setup: { confirm: leftOut('one setting, written in the unit of work that reads it; of the whole service') },
  settings: {},
  nodes: {
    drain: leftOut('one column, written in the unit of work that reads it; it would stop this test'),
    resume: leftOut('as drain'),
    remove: leftOut('as drain'),
  },
  status: {},
  root: {
    rotate: leftOut('one setting, written in the unit of work that reads it: nodes-erasure.test.ts'),
    releaseCopy: leftOut('as rotate; of a database with standbys: nodes-connections.test.ts'),
  },
  clock: { confirm: leftOut('one setting, written in the unit of work that reads it; of the whole service') },
  quarantine: { confirm: leftOut('of a service that writes nothing') },
};

/** Requests that read, and write a record of it. */
export const readingOperations: Readonly<Record<string, Row>> = {
  'snapshots.export': changes(
    {
      needs: ['snapshot'],
      call: (n, w) => send(n, platformToken(n), 'get', `/api/snapshots/${idOf(w, 'snapshot')}/file`),
    },
    'snapshot',
  ),
};

/** Another name of a vault under a rule: it is requested, and approved. */
export const governedOperations: Readonly<Record<string, Row>> = {
  'vaults.rename of a governed vault': changes(
    {
      needs: ['approval'],
      reads: ['vault'],
      call: (n, w) => send(n, w.token, 'put', `/api/vaults/${idOf(w, 'governedVault')}/name`, { name: `to-${w.mark}` }),
    },
    'approval',
  ),
  'approvals.approve of the name of a vault': changes(
    {
      needs: ['renaming'],
      call: (n, w) => send(n, w.other, 'post', `/api/approvals/${idOf(w, 'renaming')}/approve`, {}),
    },
    'vault',
    'names',
    'approval',
  ),
};

/** The files of adversaries (adversaries.ts), which the test keeps here. */
let adversaries: Adversaries | undefined;
let prepared: Prepared | undefined;
export const keepFiles = (made: Adversaries, files: Prepared): void => {
  adversaries = made;
  prepared = files;
};
const fileOf = async (name: 'OF' | 'BW'): Promise<ForeignFile> => {
  const file = (await prepared?.files())?.find((each) => each.name.startsWith(name));
  if (file === undefined) throw new Error(`the test has no file of ${name}`);
  return file;
};
const bring = async ({ opened: { operations } }: TestNode, { actor }: World, file: ForeignFile): Promise<void> => {
  await operations.snapshots.import(actor, piecesOf(file.file), file.signer);
};

/** What adversaries do with files while others work: TS, OF and BW as adversaries.ts says. */
export const fileOperations: Readonly<Record<string, Row>> = {
  // A file that the service did not make goes into a tenant without keys and groups only.
  'TS: restores into the tenant': changes(
    {
      reads: ['tenant', 'vault', 'key', 'group'],
      call: async ({ opened }, { tenantId, actor }) => {
        if (adversaries === undefined || prepared === undefined) throw new Error('the test has no files');
        const { trusted, recovery } = adversaries;
        const { id, file } = await trusted.write(withFreshIds(prepared.items), tenantId);
        await opened.operations.snapshots.import(actor, piecesOf(file), trusted.verifier);
        await handWith(opened, recovery).restore(id);
      },
    },
    'names',
    'snapshot',
  ),
  'OF: imports a file': changes({ call: async (n, w) => bring(n, w, await fileOf('OF')) }, 'snapshot'),
  'BW: imports a file': changes({ call: async (n, w) => bring(n, w, await fileOf('BW')) }, 'snapshot'),
  'BW: puts another file in the place of a snapshot': changes(
    {
      needs: ['snapshot'],
      call: async ({ opened: { config } }, w) => {
        const { file } = await fileOf('BW');
        const place = join(config.snapshots.directory, `${idOf(w, 'snapshot')}.dkesnap`);
        const brought = `${place}.${randomUUID()}`;
        await writeFile(brought, file);
        await rename(brought, place);
      },
    },
    'snapshot',
  ),
};

const tde = (
  work: (node: TestNode, caller: TdeCaller, world: World) => Promise<unknown>,
  ...needs: readonly Thing[]
): Row =>
  changes(
    {
      needs: ['application', ...needs],
      reads: ['tenant', 'application'],
      call: async (node, world) => work(node, await callerOn(node, world), world),
    },
    'object',
  );
const only = leftOut('uses a key; what is written is that it was used');

export const tdeOperations: { readonly [R in keyof TdeRoutes]: Row | LeftOut } = {
  info: leftOut('changes nothing'),
  generateKey: tde(({ opened: { operations } }, caller) => operations.tde.generateKey(caller, masterKey('MADE'))),
  generateKeyPair: tde(({ opened: { operations } }, caller) =>
    operations.tde.generateKeyPair(caller, {
      privateKey: { ...masterKey('MADE'), class: 'private-key', algorithm: 'ec', usages: ['sign'] },
      publicKey: null,
    }),
  ),
  createObject: tde(({ opened: { operations } }, caller) =>
    operations.tde.createObject(caller, dataObject('more'), Buffer.from('y')),
  ),
  findObjects: leftOut('changes nothing'),
  getObject: leftOut('changes nothing'),
  readValue: only,
  refresh: leftOut('changes nothing'),
  readValues: leftOut('changes nothing'),
  updateObject: tde(
    ({ opened: { operations } }, caller, { kept }) =>
      operations.tde.updateObject(caller, kept.handle ?? 0, { label: toLabel('RENAMED') }),
    'masterKey',
  ),
  destroyObject: tde(
    ({ opened: { operations } }, caller, { kept }) => operations.tde.destroyObject(caller, kept.dataHandle ?? 0),
    'dataObject',
  ),
  withdraw: leftOut('tde-once.test.ts, with the request that it withdraws'),
  checkUse: only,
  encrypt: only,
  decrypt: only,
  cipherPart: only,
  sign: only,
  verify: only,
  macPart: only,
  wrap: leftOut('marks the wrapping key in the unit of work that reads it: token-keys.test.ts'),
  unwrap: leftOut('creates as generateKey does'),
  derive: leftOut('creates as generateKey does'),
};

/** The request of a row of the API. */
export const requestOf =
  (route: RouteRow, row: Row): Call =>
  (node, world) => {
    const isTenant = row.path !== undefined && row.path.id === undefined && route.tenancy === 'itself';
    const path = route.path.replace(/\{(\w+)\}/g, (_, parameter: string) => {
      if (isTenant) return world.tenantId;
      const named = row.path?.[parameter];
      if (named === undefined) throw new Error(`${route.path}: no ${parameter}`);
      return typeof named === 'string' ? idOf(world, named) : (world.kept[named.kept] ?? '');
    });
    const token = route.tenancy === 'platform' || route.tenancy === 'itself' ? platformToken(node) : world.token;
    return send(node, token, route.method, `${path}${row.query ?? ''}`, row.body?.(world));
  };

const platformTokens = new WeakMap<OpenedService, string>();
export const keepPlatformToken = (opened: OpenedService, token: string): void => {
  platformTokens.set(opened, token);
};
const platformToken = ({ opened }: TestNode): string => platformTokens.get(opened) ?? '';

/** The resources that rows need, in the order of their creation. */
export const thingsOf = (...rows: readonly Row[]): readonly Thing[] => {
  const found: Thing[] = [];
  const add = (thing: Thing): void => {
    if (found.includes(thing)) return;
    for (const before of makers[thing].needs ?? []) add(before);
    found.push(thing);
  };
  for (const { needs = [], path = {} } of rows) {
    for (const thing of needs) add(thing);
    for (const named of Object.values(path)) if (typeof named === 'string') add(named);
  }
  return found;
};
