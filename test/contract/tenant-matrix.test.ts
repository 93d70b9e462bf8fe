// Tenant x tenant x route, from the route table: a person who may do everything in one tenant
// reaches, at every route, nothing of another. Its ids are not found, its lists are not in the
// lists, a name of it in the query is not a tenant, a reference to it in a body leads nowhere; and
// nothing of it has changed in the end. A route without a case here does not compile, and fails.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiRoutes, apiRoutes } from '../../server/contract/api/index.ts';
import type { RouteGroup, RouteRow } from '../../server/contract/api/row.ts';
import { inTenant, serviceActor } from '../../server/domain/actor.ts';
import { makeAdversaries, type Prepared, piecesOf, prepareFiles } from '../support/adversaries.ts';
import { sharedFolder } from '../support/folders.ts';
import type { ForgedItem } from '../support/forged-snapshots.ts';
import { until } from '../support/host.ts';
import { administrator, callTde, instance, masterKey } from '../support/open-service.ts';
import { mustTo, sendTo, sharedApi, sharedService } from '../support/shared.ts';
import { dumpTenant } from '../support/snapshots.ts';

/** The resources of a tenant: their ids, by the words of the paths. */
interface World {
  readonly name: string;
  readonly tenantId: string;
  /** May do everything in the tenant, and nothing elsewhere. */
  readonly token: string;
  /** May do the same, and is another one. */
  readonly approver: string;
  readonly ids: Readonly<Record<Thing, string>>;
}
type Thing =
  | 'tenant'
  | 'vault'
  | 'governedVault'
  | 'key'
  | 'group'
  | 'application'
  | 'accessGuid'
  | 'masterKey'
  | 'runbookRun'
  | 'endpoint'
  | 'credential'
  | 'diagnosis'
  | 'keyStore'
  | 'approval'
  | 'notification'
  | 'token'
  | 'user'
  | 'snapshot'
  | 'copy'
  | 'auditRecord';

/** How the matrix calls one route, and what it expects of the answer. */
interface Case {
  /** What each parameter of the path names. */
  readonly path?: Readonly<Record<string, Thing | { readonly text: string }>>;
  /** A valid body, with its references. */
  readonly body?: (ids: World['ids']) => object;
  /**
   * Ids of the tenant that a list without parameters must show to its own users, so that a leak
   * would be visible.
   */
  readonly shows?: readonly Thing[];
  /** For the whole platform: always refused. */
  readonly platform?: true;
  /** About the caller alone, or the same for everybody. */
  readonly own?: true;
  /** The body refers to something of a tenant: of another one it is not there. */
  readonly refers?: true;
  /** How the tenant's own people reach it, where the same call does not. */
  readonly control?: Control;
}

interface Control {
  readonly by?: 'approver' | 'the platform';
  /** What is there first; answers the ids that differ. */
  readonly prepare?: (ids: World['ids'], call: OwnCall) => Promise<Partial<World['ids']>>;
  readonly body?: () => object;
  /** The test in which it succeeds, where no call of a token does. */
  readonly elsewhere?: string;
}
type OwnCall = <T>(method: string, path: string, body?: object) => Promise<T>;

const platform: Case = { platform: true };
const own: Case = { own: true };
const of = (thing: Thing, body?: Case['body']): Case => ({
  path: { id: thing },
  ...(body === undefined ? {} : { body }),
});
const application = (more: Case['path'] = {}, body?: Case['body']): Case => ({
  path: { applicationId: 'application', ...more },
  ...(body === undefined ? {} : { body }),
});
let ended = 0;
/** A tenant of its own, without rules that ask a second person. */
const byPlatform = (given: Case, isDeleted = false, body?: () => object): Case => ({
  ...given,
  control: {
    by: 'the platform',
    prepare: async (_, call) => {
      ended += 1;
      const { id } = await call<{ id: string }>('post', '/api/tenants', { name: `ends ${ended}` });
      if (isDeleted) await call('delete', `/api/tenants/${id}`);
      return { tenant: id };
    },
    ...(body === undefined ? {} : { body }),
  },
});
const list = (...shows: readonly Thing[]): Case => ({ shows });
/** Whole groups in which everybody meets themselves alone. */
const aboutTheCaller = <R extends RouteGroup>(rows: R): { readonly [N in keyof R]: Case } =>
  Object.fromEntries(Object.keys(rows).map((name) => [name, own])) as { readonly [N in keyof R]: Case };
const rule = { required: 1, actions: ['destroy'] };
const settings = { operatorProbes: true, rate: null, clientCertificate: null, rules: [] };
const step = { step: { text: 'history-before' } } as const;

/** Another request of the same caller that waits for approval. */
const asksAgain: Control['prepare'] = async ({ governedVault }, call) => {
  const key = await call<{ id: string }>('post', '/api/keys', { name: 'asked', vaultId: governedVault });
  const { id } = await call<{ id: string }>('delete', `/api/keys/${key.id}`);
  return { approval: id };
};

const cases: { readonly [G in keyof ApiRoutes]: { readonly [N in keyof ApiRoutes[G]]: Case } } = {
  tenants: {
    create: platform,
    list: list('tenant'),
    get: of('tenant'),
    rename: byPlatform(of('tenant', () => ({ name: 'renamed' }))),
    suspend: byPlatform(of('tenant')),
    resume: byPlatform(of('tenant')),
    delete: byPlatform(of('tenant')),
    restore: byPlatform(of('tenant'), true),
    purge: byPlatform(
      of('tenant', () => ({ confirm: 'acme' })),
      true,
      () => ({ confirm: `ends ${ended}` }),
    ),
  },
  vaults: {
    create: own,
    list: list('vault', 'governedVault'),
    get: of('vault'),
    enable: of('vault'),
    disable: of('vault'),
    delete: of('vault'),
    dualControl: of('vault'),
    setDualControl: of('vault', () => rule),
    removeDualControl: of('governedVault'),
    rename: of('vault', () => ({ name: 'renamed' })),
    setProfile: of('vault', () => ({ profile: 'high-security' })),
  },
  keys: {
    create: { refers: true, body: ({ vault }) => ({ name: 'made', vaultId: vault }) },
    list: list('key', 'masterKey'),
    export: list('key', 'masterKey'),
    get: of('key'),
    change: of('key', () => ({ name: 'other', tags: ['env=prod'] })),
    versions: of('key'),
    use: of('key'),
    enable: of('key'),
    disable: of('key'),
    rotate: of('key'),
    delete: of('key'),
  },
  tdeGroups: {
    create: own,
    list: list('group'),
    get: of('group'),
    rename: of('group', () => ({ name: 'renamed' })),
  },
  applications: {
    register: { refers: true, body: ({ group }) => ({ name: 'made', groupId: group }) },
    list: list('application'),
    get: of('application'),
    enable: of('application'),
    disable: of('application'),
    rename: of('application', () => ({ name: 'renamed' })),
    setCompatibility: of('application', () => ({ switches: ['sha1-signatures'] })),
    setCallers: of('application', () => ({ networks: ['127.0.0.0/8'], certificates: [] })),
    move: {
      ...of('application', ({ group }) => ({ groupId: group, confirm: 'db' })),
      control: {
        prepare: async (_, call) => ({
          group: (await call<{ id: string }>('post', '/api/tde/groups', { name: 'next' })).id,
        }),
      },
    },
    rotateAccessGuid: of('application'),
    accessGuids: of('application'),
    removeAccessGuid: { path: { id: 'application', accessGuidId: 'accessGuid' } },
    instances: of('application'),
  },
  masterKeys: {
    list: application(),
    get: application({ keyId: 'masterKey' }),
    blastRadius: application({ keyId: 'masterKey' }),
    allowDecryption: application({ keyId: 'masterKey' }),
    destroy: application({ keyId: 'masterKey' }, () => ({ confirm: 'MK' })),
  },
  endpoints: {
    create: { refers: true, body: ({ vault, key }) => ({ name: 'made', vaultId: vault, keyId: key }) },
    list: list('endpoint'),
    get: of('endpoint'),
    enable: of('endpoint'),
    disable: of('endpoint'),
    rename: of('endpoint', () => ({ name: 'renamed' })),
    changeSettings: of('endpoint', () => settings),
    simulateRules: of('endpoint', () => ({ requests: [{ kmsOperation: 'Encrypt' }] })),
    delete: of('endpoint'),
    addCredential: of('endpoint'),
    removeCredential: { path: { id: 'endpoint', credentialId: 'credential' } },
  },
  diagnostics: {
    run: of('endpoint', () => ({})),
    follow: of('endpoint', () => ({})),
    list: of('endpoint'),
    get: { path: { id: 'endpoint', diagnosisId: 'diagnosis' } },
  },
  requests: {
    search: list('endpoint'),
    export: list('endpoint'),
    correlate: own,
    verify: platform,
    searchOne: of('endpoint'),
    exportOne: of('endpoint'),
  },
  runbooks: {
    list: own,
    fill: application({ name: { text: 'rotate' } }),
    runs: application(),
    start: application({}, () => ({ runbook: 'rotate' })),
    get: application({ runId: 'runbookRun' }),
    completeStep: application({ runId: 'runbookRun', ...step }, () => ({})),
    reopenStep: application({ runId: 'runbookRun', ...step }),
    finish: application({ runId: 'runbookRun' }, () => ({ outcome: 'abandoned' })),
  },
  externalKeyStores: {
    register: {
      refers: true,
      body: ({ endpoint }) => ({
        name: 'made',
        customKeyStoreId: 'cks-0123456789abcdef9',
        region: 'eu-central-1',
        endpointId: endpoint,
      }),
    },
    list: list('keyStore'),
    get: of('keyStore'),
    probe: of('keyStore'),
    remove: of('keyStore'),
  },
  notifications: {
    list: list('notification'),
    acknowledge: of('notification'),
    release: of('notification'),
    targets: platform,
    test: platform,
  },
  approvals: {
    list: list('approval'),
    get: of('approval'),
    approve: { ...of('approval', () => ({})), control: { by: 'approver', prepare: asksAgain } },
    reject: { ...of('approval', () => ({})), control: { by: 'approver', prepare: asksAgain } },
    withdraw: { ...of('approval'), control: { prepare: asksAgain } },
  },
  snapshots: {
    create: { refers: true, body: ({ tenant }) => ({ tenantId: tenant }) },
    list: list('snapshot'),
    schedule: { shows: [] },
    get: of('snapshot'),
    exports: of('snapshot'),
    delete: of('snapshot'),
    undelete: {
      ...of('snapshot'),
      control: {
        prepare: async ({ snapshot }, call) => {
          await call('delete', `/api/snapshots/${snapshot}`);
          return {};
        },
      },
    },
    export: platform,
    import: platform,
    open: platform,
    verify: of('snapshot'),
    verifyOpened: platform,
    restore: platform,
    ofKey: of('key'),
  },
  packages: { list: own, download: own },
  copies: { list: list('copy'), get: of('copy'), confirmDestroyed: of('copy', () => ({})) },
  recoveryKeys: { register: platform, list: platform, remove: platform },
  audit: {
    log: own,
    rotateKey: platform,
    checkpoints: platform,
    sinks: platform,
    export: platform,
    exportTenant: list('vault', 'key', 'application', 'endpoint', 'token', 'user'),
    migrations: list('masterKey'),
    prove: { path: { sequence: 'auditRecord' } },
    list: list('vault', 'key', 'application', 'endpoint', 'token', 'user'),
  },
  tokens: {
    create: {
      refers: true,
      body: ({ tenant, application: id }) => ({
        name: 'made',
        grants: [{ role: 'application-owner', scope: { kind: 'application', id }, tenantId: tenant }],
      }),
    },
    list: list('token'),
    rotateKey: platform,
    endFormerKey: platform,
    roles: own,
    revoke: of('token'),
  },
  users: {
    create: {
      refers: true,
      body: ({ tenant }) => ({ name: 'made', grants: [{ role: 'auditor', scope: null, tenantId: tenant }] }),
    },
    list: list('user'),
    get: of('user'),
    update: of('user', ({ tenant }) => ({
      displayName: 'Changed',
      email: null,
      grants: [{ role: 'auditor', scope: null, tenantId: tenant }],
      subject: null,
      mustChangePassword: false,
    })),
    enable: of('user'),
    disable: of('user'),
    unlock: of('user'),
    resetPassword: of('user'),
    removeFactors: of('user'),
    permissions: of('user'),
    endSessions: of('user'),
    delete: of('user'),
  },
  sessions: {
    list: own,
    end: {
      path: { id: { text: '01981d2c-7c1f-7b35-9a04-52a1be40c0de' } },
      // Sessions are of people, who sign in.
      control: { elsewhere: 'test/unit/operations/people.test.ts' },
    },
    rotateKey: platform,
  },
  profile: aboutTheCaller(apiRoutes.profile),
  session: aboutTheCaller(apiRoutes.session),
  deviceSignIn: aboutTheCaller(apiRoutes.deviceSignIn),
  // What it finds of others is checked below.
  search: { find: own },
  overview: { latency: own },
  setup: { get: platform, confirm: platform },
  settings: { get: platform },
  nodes: { list: platform, get: platform, drain: platform, resume: platform, remove: platform },
  status: { get: platform, jobs: platform },
  root: { get: platform, rotate: platform, releaseCopy: platform },
  quarantine: { get: platform, confirm: platform },
  clock: { get: platform, confirm: platform },
};

interface Route {
  readonly name: string;
  readonly row: RouteRow;
  readonly given: Case | undefined;
}
const routes: readonly Route[] = Object.entries(apiRoutes).flatMap(([group, rows]) =>
  Object.entries(rows as RouteGroup).map(([name, row]) => ({
    name: `${group}.${name}`,
    row,
    given: (cases as Readonly<Record<string, Readonly<Record<string, Case>> | undefined>>)[group]?.[name],
  })),
);

const adversaries = makeAdversaries();
// Restores do not wait for a second person: what they reach is what is asked.
const toml = `[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n[snapshots]\nrestore_second_person = false\n${adversaries.signers}`;
const opened = sharedService({ toml });
const elsewhere = sharedFolder();
let prepared: Prepared;
beforeAll(async () => {
  prepared = await prepareFiles(opened, adversaries, `${elsewhere}/old`, { toml });
});
afterAll(() => adversaries.end());
const api = sharedApi(opened);
const worlds: World[] = [];

type Request = [token: string, method: string, path: string, body?: object];
const send = (...request: Request) => sendTo(api.base, ...request);
const must = <T>(...request: Request) => mustTo<T>(api.base, ...request);

const inhabit = async (name: string, tenantId: string, at: number): Promise<World> => {
  const { operations, service } = opened;
  const actor = inTenant(serviceActor('test'), tenantId);
  const role = { role: 'administrator', scope: null } as const;
  const { record, token } = await operations.tokens.create(actor, 'the service', { name: 'all', grants: [role] });
  const helper = await operations.tokens.create(actor, 'the service', { name: 'approver', grants: [role] });
  const make = <T = { readonly id: string }>(path: string, body: object = {}, method = 'post') =>
    must<T>(token, method, `/api${path}`, body);
  const vault = await make('/vaults', { name: 'vault' });
  const governed = await make('/vaults', { name: 'governed' });
  const key = await make('/keys', { name: 'key', vaultId: vault.id });
  const held = await make('/keys', { name: 'held', vaultId: governed.id });
  await make(`/vaults/${governed.id}/dual-control`, rule, 'put');
  await send(token, 'delete', `/api/keys/${held.id}`);
  const [approval] = (await must<{ items: { id: string }[] }>(token, 'get', '/api/approvals')).items;
  await service.checkNotifications();
  const [notification] = (await must<{ items: { id: string }[] }>(token, 'get', '/api/notifications')).items;
  const group = await make('/tde/groups', { name: 'group' });
  const registered = await make<{ application: { id: string }; record: { id: string }; accessGuid: string }>(
    '/tde/applications',
    { name: 'db', groupId: group.id },
  );
  const caller = await operations.tde.authenticate({
    accessGuid: registered.accessGuid,
    appId: 'db',
    instance,
    requestId: 'call-1',
    peer: null,
  });
  const master = await operations.tde.generateKey(caller, masterKey('MK'));
  expect((await callTde(service, registered.accessGuid, 'info', {})).status).toBe(200);
  const run = await make(`/tde/applications/${registered.application.id}/runbook-runs`, { runbook: 'rotate' });
  const endpoint = await make<{ id: string; uriPath: string }>('/endpoints', {
    name: 'cloud',
    vaultId: vault.id,
    keyId: key.id,
  });
  const { credential, secretAccessKey } = await operations.endpoints.addCredential(actor, endpoint.id);
  secretAccessKey.fill(0);
  const probed = await fetch(`${api.base}${endpoint.uriPath}/health`, { method: 'POST', body: '{}' });
  expect(probed.status).toBe(200);
  await until('the request is in the log', async () =>
    (await must<{ items: unknown[] }>(token, 'get', `/api/endpoints/${endpoint.id}/requests`)).items.length > 0
      ? true
      : undefined,
  );
  const diagnosis = await make(`/endpoints/${endpoint.id}/diagnostics`);
  const keyStore = await make('/external-key-stores', {
    name: 'store',
    customKeyStoreId: `cks-0123456789abcdef${at}`,
    region: 'eu-central-1',
    endpointId: endpoint.id,
  });
  // This changes its shown state, once for the next minutes.
  await until('the key store has been checked', async () => {
    const path = `/api/external-key-stores/${keyStore.id}`;
    const { connection } = await must<{ connection: { checkedAt: string | null } }>(token, 'get', path);
    return connection.checkedAt ?? undefined;
  });
  const { user } = await make<{ user: { id: string } }>('/users', {
    name: `person-${at}`,
    grants: [{ role: 'auditor', scope: null }],
  });
  const snapshot = await make('/snapshots');
  for await (const _ of await opened.operations.snapshots.export(administrator, snapshot.id));
  const [copy] = (await opened.operations.copies.list(administrator, { tenantId, limit: 1 })).items;
  const events = await must<{ items: { sequence: number }[] }>(token, 'get', '/api/audit?limit=1');
  return {
    name,
    tenantId,
    token,
    approver: helper.token,
    ids: {
      tenant: tenantId,
      vault: vault.id,
      governedVault: governed.id,
      key: key.id,
      group: group.id,
      application: registered.application.id,
      accessGuid: registered.record.id,
      masterKey: master.id,
      runbookRun: run.id,
      endpoint: endpoint.id,
      credential: credential.id,
      diagnosis: diagnosis.id,
      keyStore: keyStore.id,
      approval: approval?.id ?? '',
      notification: notification?.id ?? '',
      token: helper.record.id,
      user: user.id,
      snapshot: snapshot.id,
      copy: copy?.id ?? '',
      auditRecord: String(events.items[0]?.sequence ?? ''),
    },
    ...(record.tenantId === tenantId ? {} : { name: 'a token of another tenant' }),
  };
};

/** Everything of a tenant as its own people see it. */
const stateOf = async ({ token, ids }: World): Promise<readonly string[]> => {
  const texts: string[] = [];
  for (const { row, given } of routes)
    if (row.method === 'get' && row.streams === undefined && (given?.shows ?? given?.path) !== undefined) {
      // Request log, audit log and notifications continue to grow.
      if (/audit|requests|diagnostics|tokens|notifications/.test(row.path)) continue;
      const { text } = await send(token, 'get', targetOf(row, given, ids));
      // The service checks external key stores by the clock, also while these tests run.
      texts.push(`${row.path} ${text.replaceAll(/"checkedAt":"[^"]*"/g, '')}`);
    }
  return texts;
};

const targetOf = (row: RouteRow, given: Case | undefined, ids: World['ids']): string =>
  row.path.replace(/\{(\w+)\}/g, (_, parameter: string) => {
    const named = given?.path?.[parameter];
    if (named === undefined) return 'none';
    return typeof named === 'string' ? ids[named] : named.text;
  });

beforeAll(async () => {
  const { tenants } = opened.operations;
  const ids = [(await tenants.default()).id];
  for (const name of ['acme', 'zeta']) ids.push((await tenants.create(administrator, { name })).id);
  for (const [at, id] of ids.entries()) worlds.push(await inhabit(['default', 'acme', 'zeta'][at] ?? '', id, at));
});

test('every route has a case, and every parameter of its path a thing', () => {
  for (const { name, row, given } of routes) {
    expect([name, given === undefined ? 'no case' : 'a case']).toEqual([name, 'a case']);
    const parameters = [...row.path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter);
    if (given?.platform === true || given?.own === true) continue;
    expect([name, Object.keys(given?.path ?? {}).sort()]).toEqual([name, parameters.toSorted()]);
    if (parameters.length === 0) expect([name, (given?.shows ?? given?.refers) !== undefined]).toEqual([name, true]);
  }
});
test('exactly the routes that the table gives to the platform belong to it here', () => {
  for (const { name, row, given } of routes)
    expect([name, given?.platform === true]).toEqual([name, row.tenancy === 'platform']);
});
test('there is one of everything in each tenant, and its own people find it', async () => {
  for (const { token, ids } of worlds) {
    expect(Object.entries(ids).filter(([, id]) => id === '')).toEqual([]);
    for (const { name, row, given } of routes) {
      if (row.method !== 'get' || given?.platform === true || given?.own === true || name === 'sessions.end') continue;
      const { status, text } = await send(token, 'get', targetOf(row, given, ids));
      expect([name, status]).toEqual([name, 200]);
      for (const thing of given?.shows ?? [])
        expect([name, thing, text.includes(ids[thing])]).toEqual([name, thing, true]);
    }
  }
});

/** What TS signs, and what a restore of it into our tenant, or into a new one, answers. */
const ofKey = (items: readonly ForgedItem[], id: string) =>
  items.filter((item) => (item.kind === 'row' ? item.table === 'vaults' : item.unitId === id));
const trustedFiles: readonly {
  readonly name: string;
  readonly from: (items: readonly ForgedItem[], them: World) => readonly ForgedItem[];
  readonly into: 'ours' | 'new';
  readonly answer: 'restored' | 'conflict';
}[] = [
  { name: 'everything of theirs, into ours', from: (items) => items, into: 'ours', answer: 'conflict' },
  { name: 'everything of theirs, into a new one', from: (items) => items, into: 'new', answer: 'restored' },
  {
    name: 'their key without its row, into a new one: it is left out',
    from: (items, { ids }) => ofKey(items, ids.key),
    ...{ into: 'new', answer: 'restored' },
  },
];

const pairs = [0, 1, 2].flatMap((a) => [0, 1, 2].filter((b) => b !== a).map((b) => [a, b] as const));
describe.each(pairs)('the people of tenant %i before tenant %i', (a, b) => {
  const both = (): { readonly us: World; readonly them: World } => {
    const [us, them] = [worlds[a], worlds[b]];
    if (us === undefined || them === undefined) throw new Error('a tenant is missing');
    return { us, them };
  };
  let before: readonly string[];
  beforeAll(async () => {
    before = await stateOf(both().them);
  });

  test('an id of theirs is not found, at every route', async () => {
    const { us, them } = both();
    for (const { name, row, given } of routes) {
      if (given?.path === undefined) continue;
      const answer = await send(us.token, row.method, targetOf(row, given, them.ids), given.body?.(us.ids));
      expect([name, answer.status, answer.text.includes('not-found')]).toEqual([name, 404, true]);
    }
  });
  test('an id of theirs below one of ours is not found', async () => {
    const { us, them } = both();
    for (const { name, row, given } of routes) {
      const [first, ...rest] = Object.entries(given?.path ?? {});
      if (first === undefined || !rest.some(([, thing]) => typeof thing === 'string')) continue;
      const path = row.path.replace(/\{(\w+)\}/g, (_, parameter: string) => {
        const thing = given?.path?.[parameter];
        if (typeof thing !== 'string') return thing?.text ?? '';
        return (parameter === first[0] ? us : them).ids[thing];
      });
      const answer = await send(us.token, row.method, path, given?.body?.(us.ids));
      expect([name, answer.status]).toEqual([name, 404]);
    }
  });
  test('a list shows nothing of theirs', async () => {
    const { us, them } = both();
    const theirs = Object.entries(them.ids).filter(([thing]) => thing !== 'auditRecord');
    for (const { name, row, given } of routes) {
      if (row.method !== 'get' || (given?.shows === undefined && given?.own !== true)) continue;
      const { text } = await send(us.token, 'get', row.path);
      expect([name, theirs.filter(([, id]) => text.includes(id))]).toEqual([name, []]);
    }
  });
  test('a search for an id of theirs finds nothing', async () => {
    const { us, them } = both();
    for (const path of [
      `/api/audit?subjectId=${them.ids.vault}`,
      `/api/requests?endpointId=${them.ids.endpoint}`,
      `/api/keys?vaultId=${them.ids.vault}`,
      `/api/tde/applications?groupId=${them.ids.group}`,
      `/api/approvals?subjectId=${them.ids.governedVault}`,
    ]) {
      const answer = await send(us.token, 'get', path);
      expect([path, answer.status, answer.text]).toEqual([path, 200, '{"items":[],"next":null}']);
    }
  });
  test('search finds nothing of theirs, by id or by name, and everything of ours', async () => {
    const { us, them } = both();
    const find = async (text: string) => JSON.parse((await send(us.token, 'get', `/api/search?q=${text}`)).text);
    for (const [thing, id] of Object.entries(them.ids))
      if (thing !== 'auditRecord') expect([thing, await find(id)]).toMatchObject([thing, { items: [], more: [] }]);
    const theirs = Object.values(them.ids).filter((id) => id !== them.ids.auditRecord);
    for (const word of [
      'vault',
      'governed',
      'key',
      'group',
      'db',
      'cloud',
      'store',
      'person',
      'approver',
      'mk',
      'test',
      'all',
    ]) {
      const text = JSON.stringify(await find(word));
      expect([word, theirs.filter((id) => text.includes(id))]).toEqual([word, []]);
    }
    for (const thing of [
      'vault',
      'key',
      'group',
      'application',
      'masterKey',
      'endpoint',
      'keyStore',
      'token',
      'user',
      'approval',
      'snapshot',
      'tenant',
    ] as const)
      expect([thing, (await find(us.ids[thing])).items.map(({ id }: { id: string }) => id)]).toMatchObject([
        thing,
        expect.arrayContaining([us.ids[thing]]),
      ]);
  });
  test('their tenant is none that could be named, by id or by name', async () => {
    const { us, them } = both();
    for (const { name, row, given } of routes) {
      if (row.needs === 'sign-in') continue;
      for (const named of [them.tenantId, them.name]) {
        const target = `${targetOf(row, given, us.ids)}?tenant=${named}`;
        const answer = await send(us.token, row.method, target, given?.body?.(us.ids));
        expect([name, named, answer.status]).toEqual([name, named, 404]);
      }
    }
  });
  test('what a body refers to is not there, or not ours to give', async () => {
    const { us, them } = both();
    for (const { name, row, given } of routes) {
      if (given?.refers !== true) continue;
      const answer = await send(us.token, row.method, row.path, given.body?.(them.ids));
      expect([name, [400, 404].includes(answer.status), answer.text.includes(them.tenantId)]).toEqual([
        name,
        true,
        false,
      ]);
    }
    const scope = { kind: 'endpoint', id: them.ids.endpoint };
    const owner = { name: 'made', grants: [{ role: 'application-owner', scope, tenantId: us.tenantId }] };
    expect((await send(us.token, 'post', '/api/tokens', owner)).status).toBe(404);
    const move = `/api/tde/applications/${us.ids.application}/move`;
    expect((await send(us.token, 'post', move, { groupId: them.ids.group, confirm: 'db' })).status).toBe(404);
  });
  test('what is the platform’s is refused', async () => {
    const { us } = both();
    for (const { name, row, given } of routes) {
      if (given?.platform !== true) continue;
      const answer = await send(
        us.token,
        row.method,
        targetOf(row, given, us.ids),
        row.method === 'get' ? undefined : {},
      );
      expect([name, answer.status]).toEqual([name, 403]);
    }
  });
  test('nothing of theirs has changed', async () => {
    expect(await stateOf(both().them)).toEqual(before);
  });
});

describe.each(pairs)('a file of tenant %i that has what is of tenant %i', (a, b) => {
  /** Every row and key of every tenant of before, past the service. */
  const stored = async () => {
    const dumps: unknown[] = [];
    for (const { tenantId } of worlds) dumps.push(await dumpTenant(opened, tenantId));
    return dumps;
  };
  test.each(trustedFiles)('TS: $name', async ({ name, from, into, answer }) => {
    const [us, them] = [worlds[a], worlds[b]];
    if (us === undefined || them === undefined) throw new Error('a tenant is missing');
    const before = await stored();
    const theirs = await adversaries.trusted.read(opened, them.ids.snapshot);
    const { id, file } = await adversaries.trusted.write(from(theirs, them), us.tenantId);
    await opened.operations.snapshots.import(administrator, piecesOf(file), adversaries.trusted.verifier);
    const outcome = await prepared.hand
      .restore(id, into === 'ours' ? { dryRun: true } : { newTenant: `${name} ${a} ${b}` })
      .then(
        ({ newIds }) => (newIds ? 'restored' : 'restored with their ids'),
        ({ code }) => code,
      );
    expect(outcome).toBe(answer);
    // The file is of our tenant, whatever is in it: their people do not see it.
    expect((await send(them.token, 'get', `/api/snapshots/${id}`)).status).toBe(404);
    expect(await stored()).toEqual(before);
  });
});

test('OF and BW: no file of theirs is taken', async () => {
  for (const { name, file, signer, answer } of await prepared.files()) {
    if (answer === 'imported') continue;
    const { snapshots } = opened.operations;
    const outcome = await snapshots.import(administrator, piecesOf(file), signer).catch(({ code }) => code);
    expect([name, outcome]).toEqual([name, answer]);
  }
});

test('only users of the whole platform see where snapshots are on the host', async () => {
  const shown = async (token: string, query = '') =>
    must<{ directory: string | null; undeleteDays: number }>(token, 'get', `/api/snapshot-schedule${query}`);
  const { token: everywhere } = await opened.operations.tokens.create(administrator, 'the service', {
    name: 'operator',
    grants: [{ role: 'platform-operator', scope: null }],
  });
  const own = worlds[1];
  expect(await shown(own?.token ?? '')).toMatchObject({ directory: null, undeleteDays: expect.any(Number) });
  expect(await shown(everywhere)).toMatchObject({ directory: expect.stringContaining('snapshots') });
  expect(await shown(everywhere, `?tenant=${own?.name}`)).toMatchObject({ directory: null });
});

test('users of the whole platform see what users of the named tenant see, and nothing of other tenants', async () => {
  const { token } = await opened.operations.tokens.create(administrator, 'the service', {
    name: 'all',
    grants: [{ role: 'auditor', scope: null }],
  });
  for (const world of worlds)
    for (const { name, row, given } of routes) {
      if (row.method !== 'get' || given?.shows === undefined) continue;
      const { text } = await send(token, 'get', `${row.path}?tenant=${world.name}`);
      for (const other of worlds)
        for (const thing of given.shows)
          expect([name, thing, text.includes(other.ids[thing])]).toEqual([name, thing, other === world]);
    }
});

test('what is refused to others is done for those whose it is: each route, with the same call', async () => {
  const [, , own] = worlds;
  if (own === undefined) throw new Error('a tenant is missing');
  const { token: platformToken } = await opened.operations.tokens.create(administrator, 'the service', {
    name: 'control',
    grants: [{ role: 'administrator', scope: null }],
  });
  /** What ends a thing comes after what needs it. */
  const ends = /^(?:(remove|revoke|finish|end)|(disable)|(delete))/;
  const turn = (name: string): number => {
    const [group, verb = ''] = name.split('.');
    const [found, ...kinds] = ends.exec(verb) ?? [];
    if (group === 'approvals' || verb === 'move') return 0;
    return found === undefined ? 1 : 2 + kinds.findIndex((kind) => kind !== undefined);
  };
  const reached = routes.filter(
    ({ name, given }) =>
      given?.platform !== true &&
      given?.own !== true &&
      given?.control?.elsewhere === undefined &&
      name !== 'tenants.list',
  );
  const refused: string[] = [];
  for (const { name, row, given } of reached.toSorted((one, other) => turn(one.name) - turn(other.name))) {
    const { by, prepare, body } = given?.control ?? {};
    const token = by === 'the platform' ? platformToken : own.token;
    const call: OwnCall = (method, path, sent) => must(token, method, path, sent);
    const ids = { ...own.ids, ...(await prepare?.(own.ids, call)) };
    const sent = body?.() ?? given?.body?.(ids);
    const answer = await send(by === 'approver' ? own.approver : token, row.method, targetOf(row, given, ids), sent);
    if (answer.status > 299) refused.push(`${name} ${answer.status} ${answer.text.slice(0, 300)}`);
  }
  expect(refused).toEqual([]);
  expect(reached.length).toBeGreaterThan(100);
});
