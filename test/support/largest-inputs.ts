// The largest permitted input of each operation of the console's API, for the test of the event
// loop (test/scenario/event-loop.test.ts).
import { mostCallers } from '../../server/base/networks.ts';
import { mostTags } from '../../server/base/tags.ts';
import type { ApiRoutes } from '../../server/contract/api/index.ts';
import { samplePackage } from './package-shelf.ts';

/** The ids that the inputs name, after their creation. */
export const ids: Record<string, string> = {};
export const world: { bigTenant: string; certificate: string; answerOpening: () => Promise<object> } = {
  bigTenant: '',
  certificate: '',
  answerOpening: () => Promise.reject(new Error('no snapshot is open')),
};

/** The largest input of one operation. */
export interface Largest {
  /** The parameters of the path; `id` by the group when absent. */
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: () => object | Promise<object>;
  /**
   * The input is refused: what it names does not exist, or it needs a session. 'perhaps': either is
   * right.
   */
  readonly refused?: true | 'perhaps';
}
const plain: Largest = {};
/** Needs a session, or is not possible now. */
const denied: Largest = { refused: true };
const absent: Largest = { path: { id: 'none' }, refused: true };
const listed: Largest = { query: '?limit=1000' };
export const long = (length: number, text = 'a'): string =>
  text.repeat(Math.ceil(length / text.length)).slice(0, length);
const name = long(128);
export const many = <T>(count: number, make: (at: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, at) => make(at));
export const grants = many(20, () => ({ role: 'auditor', scope: null }));
/** Patterns that match nothing after every way has been tried, in the forms that cost most. */
const hardPatterns = [`${long(2040, '*a')}b`, `*${long(2036, 'a?')}b*`, `*${long(2036)}b*`];
export const hardSubject = long(2040);
export const hardRules = (count: number) => [
  ...many(count, (at) => ({ name: `rule ${at}`, effect: 'deny', when: { key: [hardPatterns[at % 3] ?? ''] } })),
  { name: 'short', effect: 'deny', when: { key: many(100 - count, () => '*a?b*') } },
  // Where there is room for more, ARNs of colons only.
  ...many(count < 8 ? 30 : 0, (at) => ({
    ...{ name: `colons ${at}`, effect: 'deny' },
    when: { principal: many(100, () => 'arn:::::') },
  })),
];
export const colonSubject = `arn${':'.repeat(2040)}`;

type Table = { readonly [G in keyof ApiRoutes]: { readonly [N in keyof ApiRoutes[G]]: Largest } };
export const rows: Table = {
  tenants: {
    create: { body: () => ({ name: `t-${name.length}${Math.random()}` }) },
    list: plain,
    get: plain,
    rename: { body: () => ({ name: 'renamed' }) },
    suspend: { query: '?dryRun=true' },
    resume: plain,
    delete: { query: '?dryRun=true' },
    restore: denied,
    purge: { refused: true, query: '?dryRun=true', body: () => ({ confirm: 'other' }) },
  },
  vaults: {
    create: { body: () => ({ name }) },
    list: listed,
    get: plain,
    enable: plain,
    disable: { path: { id: 'spareVault' } },
    delete: absent,
    dualControl: plain,
    setDualControl: {
      refused: true,
      query: '?dryRun=true',
      body: () => ({
        required: 10,
        approvers: many(100, (at) => `id-${at}`),
        actions: ['destroy', 'export', 'restore'],
      }),
    },
    removeDualControl: { query: '?dryRun=true' },
    rename: { body: () => ({ name: long(128, 'v') }) },
    setProfile: { body: () => ({ profile: 'standard' }) },
  },
  keys: {
    create: { body: () => ({ name, vaultId: ids.vault, tags: many(mostTags, (at) => `t${at}=${long(40)}`) }) },
    list: { query: '?limit=1000&tag=env%3Dprod' },
    export: { query: '?format=csv' },
    get: plain,
    change: { body: () => ({ name, tags: many(mostTags, (at) => `t${at}=${long(40)}`) }) },
    versions: plain,
    use: plain,
    enable: plain,
    disable: { path: { id: 'spareKey' } },
    rotate: plain,
    delete: { query: '?dryRun=true' },
  },
  tdeGroups: {
    create: { body: () => ({ name }) },
    list: listed,
    get: plain,
    rename: { body: () => ({ name: long(128, 'g') }) },
  },
  applications: {
    register: { body: () => ({ name, groupId: ids.group }) },
    list: listed,
    get: plain,
    enable: plain,
    disable: { path: { id: 'spareApplication' } },
    rename: { body: () => ({ name: long(128, 'p') }) },
    setCompatibility: { body: () => ({ switches: ['sha1-signatures'] }) },
    setCallers: {
      path: { id: 'spareApplication' },
      body: () => ({
        networks: many(mostCallers, (at) => `2001:db8:${at}::/48`),
        certificates: many(mostCallers, () => world.certificate),
      }),
    },
    move: { query: '?dryRun=true', body: () => ({ groupId: ids.otherGroup, confirm: 'db' }) },
    rotateAccessGuid: plain,
    accessGuids: plain,
    removeAccessGuid: { path: { accessGuidId: 'none' }, refused: true },
    instances: plain,
  },
  masterKeys: {
    list: listed,
    get: { path: { keyId: 'masterKey' } },
    blastRadius: { path: { keyId: 'masterKey' } },
    allowDecryption: { path: { keyId: 'masterKey' } },
    destroy: { path: { keyId: 'masterKey' }, query: '?dryRun=true', body: () => ({ confirm: 'MK' }) },
  },
  endpoints: {
    create: { body: () => ({ name, vaultId: ids.vault, keyId: ids.key }) },
    list: listed,
    get: plain,
    enable: plain,
    disable: { path: { id: 'spareEndpoint' } },
    rename: { body: () => ({ name }) },
    changeSettings: {
      body: () => ({ operatorProbes: true, rate: null, clientCertificate: null, rules: hardRules(28) }),
    },
    simulateRules: {
      body: () => ({
        rules: hardRules(4),
        requests: many(3, () => ({
          ...{ kmsOperation: 'Encrypt', kmsKeyArn: hardSubject, awsPrincipalArn: colonSubject },
        })),
      }),
    },
    delete: absent,
    addCredential: plain,
    removeCredential: { path: { credentialId: 'none' }, refused: true },
  },
  diagnostics: {
    run: { body: () => ({}) },
    follow: { body: () => ({}) },
    list: listed,
    get: { path: { diagnosisId: 'none' }, refused: true },
  },
  requests: {
    search: { query: '?limit=1000&principal=nobody' },
    export: plain,
    correlate: { body: () => ({ text: `${long(59_900, '-requestid')} "requestID": "1234"` }) },
    verify: plain,
    searchOne: { query: '?limit=1000&principal=nobody' },
    exportOne: { query: '?format=csv' },
  },
  runbooks: {
    list: plain,
    fill: { path: { name: 'rotate' } },
    runs: listed,
    start: { body: () => ({ runbook: 'rotate' }) },
    get: plain,
    completeStep: { path: { step: 'step' }, body: () => ({ note: long(500) }) },
    reopenStep: { path: { step: 'step' } },
    finish: { path: { runId: 'none' }, refused: true, body: () => ({ outcome: 'abandoned' }) },
  },
  externalKeyStores: {
    register: {
      body: () => ({
        name,
        customKeyStoreId: 'cks-0123456789abcdef9',
        region: 'eu-central-1',
        endpointId: ids.endpoint,
      }),
    },
    list: listed,
    get: absent,
    probe: absent,
    remove: absent,
  },
  notifications: {
    list: listed,
    acknowledge: absent,
    release: absent,
    targets: plain,
    test: plain,
  },
  approvals: {
    list: listed,
    get: absent,
    approve: { ...absent, body: () => ({ comment: long(500) }) },
    reject: { ...absent, body: () => ({ comment: long(500) }) },
    withdraw: absent,
  },
  snapshots: {
    create: { body: () => ({ tenantId: world.bigTenant }) },
    list: listed,
    schedule: plain,
    get: plain,
    exports: plain,
    delete: absent,
    undelete: absent,
    export: plain,
    import: denied,
    open: { body: () => ({}) },
    verify: { body: () => ({}) },
    verifyOpened: { body: () => world.answerOpening() },
    restore: {
      query: '?dryRun=true',
      body: async () => ({ ...(await world.answerOpening()), newTenant: 'restored' }),
    },
    ofKey: { path: { id: 'key' } },
  },
  copies: { list: listed, get: absent, confirmDestroyed: { ...absent, body: () => ({}) } },
  recoveryKeys: {
    register: { refused: true, body: () => ({ name, publicKey: long(200) }) },
    list: plain,
    remove: absent,
  },
  audit: {
    log: plain,
    rotateKey: plain,
    checkpoints: listed,
    sinks: plain,
    export: plain,
    exportTenant: plain,
    migrations: listed,
    prove: { path: { sequence: '1' } },
    list: listed,
  },
  tokens: {
    create: { body: () => ({ name, grants }) },
    list: listed,
    roles: plain,
    revoke: absent,
    rotateKey: { body: () => ({ compromised: false }) },
    endFormerKey: { refused: true, body: () => ({ force: false }) },
  },
  users: {
    create: { body: () => ({ name: long(64), grants }) },
    list: listed,
    get: plain,
    update: {
      body: () => ({ displayName: name, email: null, grants, subject: null, mustChangePassword: false }),
    },
    enable: plain,
    disable: { path: { id: 'spareUser' } },
    unlock: plain,
    // The vaults of the long tables have no code: whom their dual control names is read, and not
    // known.
    resetPassword: { body: () => ({ revokeTokens: true }), refused: true },
    removeFactors: { ...plain, refused: true },
    permissions: plain,
    endSessions: plain,
    delete: absent,
  },
  sessions: { list: listed, end: absent, rotateKey: plain },
  profile: {
    get: denied,
    changePassword: { refused: true, body: () => ({ current: long(4096), password: long(4096) }) },
    beginTotp: { refused: true, body: () => ({ name }) },
    confirmTotp: { refused: true, path: { id: 'none' }, body: () => ({ code: '000000' }) },
    beginPasskey: denied,
    addPasskey: denied,
    makeRecoveryCodes: denied,
    removeFactor: absent,
    createToken: { refused: true, body: () => ({ name, expiresAt: '2100-01-01T00:00:00Z' }) },
    tokens: { ...listed, refused: true },
    revokeToken: absent,
    sessions: { ...listed, refused: true },
    endSession: absent,
    endOtherSessions: denied,
  },
  session: {
    start: { refused: true, body: () => ({ user: 'nobody', password: long(4096) }) },
    methods: plain,
    beginPasskey: plain,
    passkey: denied,
    beginOpenId: denied,
    finishOpenId: { query: `?state=${long(1000)}` },
    beginSecondFactor: denied,
    secondFactor: { refused: true, body: () => ({ code: '000000' }) },
    redeem: { refused: true, body: () => ({ invitation: long(128), password: long(4096) }) },
    get: plain,
    end: plain,
  },
  deviceSignIn: {
    // From one address, others before it may have used up the attempts.
    start: { refused: 'perhaps', body: () => ({ host: long(64), roles: many(20, () => 'auditor'), hours: 24 }) },
    poll: { body: () => ({ deviceCode: long(43) }) },
    end: { refused: 'perhaps', body: () => ({ token: long(512) }) },
    find: { refused: true, body: () => ({ userCode: long(32) }) },
    approve: { refused: true, body: () => ({ userCode: long(32), hours: 24, grants }) },
    refuse: { refused: true, body: () => ({ userCode: long(32) }) },
  },
  packages: { list: plain, download: { path: { name: samplePackage } } },
  search: { find: { query: `?q=${long(200)}` } },
  overview: { latency: plain },
  setup: { get: plain, confirm: { body: () => ({ step: 'root-key', confirmed: true }) } },
  settings: { get: plain },
  nodes: {
    list: plain,
    get: absent,
    drain: absent,
    resume: absent,
    remove: absent,
  },
  status: { get: plain, jobs: plain },
  root: { get: plain, rotate: { body: () => ({}) }, releaseCopy: { refused: true, body: () => ({ name: long(200) }) } },
  clock: { get: plain, confirm: { body: () => ({ time: new Date().toISOString() }) } },
  quarantine: { get: plain, confirm: { refused: true, body: () => ({ code: long(100) }) } },
};
