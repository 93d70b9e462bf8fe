// Versions that work together (docs/upgrade.md): the agent and `dke` beside a later service, beside
// an earlier one, and a library beside an agent of another release. The later one of two says more
// than the other knows (test/support/version-front.ts); the programs are the real ones.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { exitCodes } from '../../server/cli/terminal/exit-codes.ts';
import { startAgent } from '../support/agent-process.ts';
import { runCommand } from '../support/command.ts';
import { createGroup, openConsoleApi, registerApplication, writeProviderConfig } from '../support/console-api.ts';
import { type Database, startDatabase } from '../support/database.ts';
import { endProcess, processesWith } from '../support/host.ts';
import { library } from '../support/pkcs11-host.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { openVersionFront, type VersionFront } from '../support/version-front.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-versions-'));
const socket = join(folder, 'agent.sock');
let front: VersionFront;
let server: ServerProcess;
let conf: string;

beforeAll(async () => {
  front = await openVersionFront(folder);
  server = await startServerProcess({ publicUrl: front.url });
  front.leadTo(server.port);
  const api = openConsoleApi(server, server.adminToken);
  writeFileSync(join(folder, 'token'), server.adminToken, { mode: 0o600 });
  const issued = await registerApplication(api, 'erp', await createGroup(api, 'finance'));
  conf = writeProviderConfig(join(folder, 'pkcs11.toml'), issued, {
    caFile: front.caFile,
    logDir: join(folder, 'log'),
  });
});
beforeEach(() => front.later('neither'));
afterAll(async () => {
  for (const [pid] of processesWith(socket)) await endProcess(pid);
  await front?.close();
  await server?.remove();
  rmSync(folder, { recursive: true, force: true });
});

const dke = (...args: readonly string[]) =>
  runCommand(args, {
    environment: { DKE_SERVER: front.url, DKE_CA_FILE: front.caFile, DKE_TOKEN_FILE: join(folder, 'token') },
  });
const iv = '00'.repeat(16);
const data = '11'.repeat(32);
const withDatabase = async <T>(work: (database: Database) => Promise<T>, more: NodeJS.ProcessEnv = {}): Promise<T> => {
  const environment = { DKE_AGENT_LOG_DIR: join(folder, 'log'), ...more };
  const database = startDatabase({ config: conf, socket: more.DKE_PKCS11_SOCKET ?? socket, environment });
  try {
    return await work(database);
  } finally {
    await database.stop();
  }
};
/** What a database does with a key, from its first call to the key's end. */
const life = async (database: Database, label: string): Promise<void> => {
  const must = async <T extends { readonly rv: string }>(answer: Promise<T>): Promise<T> => {
    const given = await answer;
    expect(given.rv, database.complaints()).toBe('CKR_OK');
    return given;
  };
  await must(database.call('open', { pin: 'x' }));
  const { handle = 0 } = await must(database.call('generate', { label }));
  const { data: sealed = '' } = await must(database.call('encrypt', { handle, iv, data }));
  expect(await must(database.call('decrypt', { handle, iv, data: sealed }))).toMatchObject({ data });
  const { data: wrapped = '' } = await must(database.call('wrap', { handle }));
  await must(database.call('unwrap', { handle, data: wrapped }));
  await must(database.call('import', { label: `${label}-of-others`, value: data }));
  await must(database.call('createData', { label: `${label}-note`, value: '01' }));
  expect((await must(database.call('find', { label }))).handles).toEqual([handle]);
  await must(database.call('setLabel', { handle, label: `${label}-renamed` }));
  await must(database.call('destroy', { handle }));
  await must(database.call('finalize', {}));
};

describe('beside a later service', () => {
  beforeEach(() => front.later('service'));

  test('the agent does all that it knows', () => withDatabase((database) => life(database, 'later')));

  test('dke does all that it knows', async () => {
    for (const args of [
      ['status'],
      ['vault', 'create', 'pages'],
      ['key', 'create', 'page', '--vault', 'pages'],
      ['key', 'rotate', 'page'],
      ['key', 'list'],
      ['tde', 'key', 'list', 'erp'],
      ['tde', 'app', 'show', 'erp'],
      ['audit', 'list'],
    ]) {
      const { code, stderr } = await dke(...args);
      expect([args.join(' '), code, stderr]).toEqual([args.join(' '), 0, '']);
    }
  });

  test('a refusal keeps its code', async () => {
    const { code, stderr } = await dke('key', 'show', 'no-such-key');
    expect(code).toBe(exitCodes['not-found']);
    expect(stderr).toContain('no-such-key');
  });
});

describe('beside an earlier service', () => {
  beforeEach(() => front.later('caller'));

  test('what the agent says more is refused, and its log has the reason; nothing was done', async () => {
    await withDatabase(async (database) => {
      front.later('neither');
      expect((await database.call('open', { pin: 'x' })).rv).toBe('CKR_OK');
      front.later('caller');
      expect((await database.call('generate', { label: 'refused' })).rv).not.toBe('CKR_OK');
      front.later('neither');
      expect((await database.call('find', { label: 'refused' })).handles).toEqual([]);
    });
    const log = readdirSync(join(folder, 'log'))
      .map((name) => readFileSync(join(folder, 'log', name), 'utf8'))
      .join('');
    expect(log).toContain('has an unknown member');
  });

  test('what dke says more is refused by name', async () => {
    const { code, stderr } = await dke('vault', 'create', 'refused');
    expect(code).not.toBe(0);
    expect(stderr).toContain('ofLaterVersion');
    front.later('neither');
    expect((await dke('vault', 'list')).stdout).not.toContain('refused');
  });
});

test('a library of a later release of the same major version works with this agent', async () => {
  const own = mkdtempSync(join(folder, 'library-'));
  const module = resolve(import.meta.dirname, '../../provider/module');
  const sources = readdirSync(module, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.c'))
    .map((name) => join(module, name));
  const next = join(own, 'libdke_pkcs11.so');
  copyFileSync(library, next);
  execFileSync('cc', [
    ...['-shared', '-fPIC', '-D_GNU_SOURCE', '-DDKE_VERSION_MAJOR=1', '-DDKE_VERSION_MINOR=7', '-I', module],
    ...['-I', resolve(module, '../../node_modules/pkcs11js/includes/pkcs11'), '-o', next, ...sources],
    ...['-lpthread', '-ldl'],
  ]);
  const agent = await startAgent(own);
  try {
    await withDatabase((database) => life(database, 'library'), {
      DKE_TEST_LIBRARY: next,
      DKE_PKCS11_SOCKET: agent.socket,
    });
  } finally {
    await agent.stop();
  }
});
