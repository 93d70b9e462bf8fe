// The package @dke/client as a program has it: packed, installed without a network into an empty
// folder, type-checked, and run against a real service. The program is the one of its README. Then
// its behaviour at a real service when answers are lost.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Client,
  ConnectionError,
  openClient,
  operations,
  ProblemError,
} from '../../server/clients/typescript/index.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { openTcpGate, type TcpGate } from '../support/tcp-gate.ts';
import { run } from '../support/tools.ts';

const root = resolve(import.meta.dirname, '../..');
const blocksOf = (page: string): readonly string[] =>
  [...readFileSync(join(root, page), 'utf8').matchAll(/^```(?:ts|text)\n(.*?)^```$/gms)].map(([, text = '']) => text);
const [program = '', prints = '', ...snippets] = blocksOf('server/clients/typescript/README.md');

let server: ServerProcess;
let folder: string;
beforeAll(async () => {
  server = await startServerProcess();
  folder = mkdtempSync(join(tmpdir(), 'dke-client-package-'));
});
afterAll(async () => {
  await server.remove();
  rmSync(folder, { recursive: true, force: true });
});

const succeed = async (command: string, args: readonly string[], more: Parameters<typeof run>[2] = {}) => {
  // Old versions of npm use what newer versions of Node warn of.
  const environment = { ...process.env, ...(command === 'npm' ? { NODE_OPTIONS: '--no-deprecation' } : {}) };
  const { code, out, complaints } = await run(command, args, { folder, environment, ...more });
  expect(complaints + (code === 0 ? '' : out)).toBe('');
  return out;
};

test('is packed, installed, type-checked and run', async () => {
  expect(prints).toContain('audit log');
  expect(snippets.length).toBeGreaterThan(2);
  await succeed('npm', ['run', '--silent', 'build:client'], { folder: root });
  const packed = await succeed('npm', ['pack', '--silent', '--pack-destination', folder], {
    folder: join(root, 'dist/client'),
  });
  writeFileSync(join(folder, 'package.json'), '{ "type": "module", "private": true }');
  await succeed('npm', ['install', '--silent', '--offline', '--no-audit', '--no-fund', join(folder, packed.trim())]);
  const installed = join(folder, 'node_modules/@dke/client');
  expect(existsSync(join(installed, 'generate.js'))).toBe(false);
  const read = (folder: string) =>
    JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string };
  expect(read(installed)).not.toHaveProperty('dependencies');
  expect(read(installed).version).toBe(read(root).version);

  writeFileSync(join(folder, 'program.ts'), program);
  // What the pages show next to the program: each block on its own.
  writeFileSync(
    join(folder, 'snippets.ts'),
    [
      "import { openClient, operations } from '@dke/client';",
      "const [id, body, signal] = ['', { name: '', grants: [] }, AbortSignal.abort()];",
      "const dke = openClient({ url: 'https://localhost' });",
      ...snippets.map((text) => `{\n${text}}`),
    ].join('\n'),
  );
  writeFileSync(join(folder, 'page.ts'), blocksOf('docs/api.md').find((text) => text.includes('@dke/client')) ?? '');
  const check = join(root, 'node_modules/.bin/tsc');
  const compilerOptions = {
    target: 'es2022',
    module: 'nodenext',
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    types: ['node'],
    typeRoots: [join(root, 'node_modules/@types')],
  };
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: ['program.ts', 'snippets.ts', 'page.ts'] }),
  );
  await succeed(check, ['-p', '.']);
  mkdirSync(join(folder, 'wrong'));
  writeFileSync(join(folder, 'wrong/program.ts'), program.replace("name: 'cloud-1'", "title: 'cloud-1'"));
  const wrong = JSON.stringify({ extends: '../tsconfig.json', files: ['program.ts'] });
  writeFileSync(join(folder, 'wrong/tsconfig.json'), wrong);
  const refused = await run(check, ['-p', 'wrong'], { folder });
  expect(refused.out).toContain("'title' does not exist");

  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, `${server.adminToken}\n`, { mode: 0o600 });
  const environment = { ...process.env, DKE_SERVER: server.url, DKE_CA_FILE: server.caFile, DKE_TOKEN_FILE: tokenFile };
  expect(await succeed(process.execPath, ['program.ts'], { environment })).toBe(prints);
});

describe('an answer that is lost on its way', () => {
  let gate: TcpGate;
  let dke: Client;
  beforeAll(async () => {
    gate = await openTcpGate('127.0.0.1', server.port);
    const ca = readFileSync(server.caFile);
    const token = Buffer.from(server.adminToken);
    // No judgement of speed: a machine that is ten times slower passes.
    dke = openClient({ url: `https://127.0.0.1:${gate.port}`, ca, token, timeoutMs: 600_000 });
  });
  afterAll(async () => {
    dke.close();
    await gate.close();
  });

  /**
   * The service carries the call out, and the connection ends before its answer arrives. Later
   * answers arrive.
   */
  const losing = async <T>(call: () => Promise<T>): Promise<T> => {
    // The connection is open, so that only the answer is held back.
    await dke.status.get();
    gate.holdAnswers();
    const running = call();
    await expect.poll(() => gate.held).toBeGreaterThan(0);
    gate.cut();
    gate.open();
    return running;
  };
  const named = async (list: AsyncIterable<{ readonly name: string }>, name: string): Promise<number> => {
    let count = 0;
    for await (const item of list) if (item.name === name) count += 1;
    return count;
  };

  test('what is created exists once, and the repeat has the first answer', async () => {
    const { body, replayed, status } = await losing(() => dke.vaults.create({ body: { name: 'lost' } }));
    expect([body.name, replayed, status]).toEqual(['lost', true, 201]);
    expect(await named(dke.vaults.list.items({ query: { limit: 1 } }), 'lost')).toBe(1);
  });

  test('a secret is not shown again: the error names what was created', async () => {
    const body = { name: 'lost', grants: [{ role: 'auditor', scope: null }] } as const;
    const error = await losing(() => dke.tokens.create({ body })).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ProblemError);
    const { code, headers } = error as ProblemError;
    expect(code).toBe('conflict');
    const { id } = (await dke.tokens.list()).body.items.find(({ name }) => name === 'lost') ?? {};
    expect(headers.get('location')).toBe(`/api/tokens/${id}`);
    expect(await named(dke.tokens.list.items(), 'lost')).toBe(1);
  });

  test('an action without a key is not repeated', async () => {
    const { body: vault } = await dke.vaults.create({ body: { name: 'rotating' } });
    const { body: key } = await dke.keys.create({ body: { name: 'rotating', vaultId: vault.id } });
    const path = { id: key.id };
    const error = await losing(() => dke.keys.rotate({ path })).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({ sent: true });
    expect((await dke.keys.get({ path })).body.currentVersion).toBe(2);
  });

  test('two programs that change the same thing lose nothing', async () => {
    const { body: vault } = await dke.vaults.create({ body: { name: 'shared' } });
    const { body: key } = await dke.keys.create({ body: { name: 'shared', vaultId: vault.id } });
    const add = (tag: string) =>
      dke.calls.change(operations.keys.get, operations.keys.change, { id: key.id }, ({ name, tags }) => ({
        name,
        tags: [...tags, tag],
      }));
    await Promise.all([add('one'), add('two'), add('three')]);
    expect((await dke.keys.get({ path: { id: key.id } })).body.tags.toSorted()).toEqual(['one', 'three', 'two']);
  });
});
