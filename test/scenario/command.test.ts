// The `dke` command against the real service over HTTPS: every noun, every exit code, and where
// secrets go.
import { createPublicKey } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openHttpService } from '../../provider/agent/service/service-http.ts';
import { loadConfig } from '../../provider/agent/settings/config.ts';
import { openClient } from '../../server/cli/service/api-client.ts';
import { exitCodes } from '../../server/cli/terminal/exit-codes.ts';
import { operations } from '../../server/clients/typescript/gen/operations.ts';
import { type CreateObject, instanceText } from '../../server/contract/tde.ts';
import { type CommandRun, runCommand } from '../support/command.ts';
import { instance } from '../support/open-service.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';

let server: ServerProcess;
let folder: string;
let environment: Record<string, string>;
/** Everything that any command printed. */
let printed = '';

const dke = async (...args: string[]): Promise<CommandRun> => {
  const run = await runCommand(args, { environment, cwd: folder });
  printed += run.stdout + run.stderr;
  return run;
};
/** The answer of a command that must succeed. */
const json = async <T = Record<string, unknown>>(...args: string[]): Promise<T> => {
  const run = await dke(...args, '-o', 'json');
  expect(run.stderr).toBe('');
  expect(run.code).toBe(0);
  return JSON.parse(run.stdout) as T;
};
interface Named {
  readonly id: string;
  readonly name: string;
  readonly state: string;
}
interface Page {
  readonly items: readonly Named[];
  readonly next: string | null;
}

beforeAll(async () => {
  server = await startServerProcess();
  folder = mkdtempSync(join(tmpdir(), 'dke-command-'));
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, `${server.adminToken}\n`, { mode: 0o600 });
  environment = { DKE_SERVER: server.url, DKE_CA_FILE: server.caFile, DKE_TOKEN_FILE: tokenFile };
});
afterAll(async () => {
  await server?.remove();
  rmSync(folder, { recursive: true, force: true });
});

describe('what is read, edited and written', () => {
  const open = () =>
    openClient({
      url: server.url,
      ca: readFileSync(server.caFile),
      credential: () => ({ authorization: `Bearer ${server.adminToken}` }),
      tenant: undefined,
      timeoutMs: 60_000,
    });
  const { get, change: write } = operations.keys;

  test('keeps what someone else changed in between', async () => {
    await json('vault', 'create', 'shared');
    const { id } = await json<Named>('key', 'create', 'contested', '--vault', 'shared', '--tag', 'env=prod');
    const client = open();
    let asked = 0;
    const changed = await client.change(get, write, { id }, async ({ tags }) => {
      asked += 1;
      if (asked === 1) await json('key', 'set', id, '--tag', 'env=test', 'team=a');
      return { name: 'renamed', tags: [...tags] };
    });
    expect(asked).toBe(2);
    expect(changed).toMatchObject({ name: 'renamed', tags: ['env=test', 'team=a'] });
  });

  test('is given up when others are always faster, and says what to do', async () => {
    const { id } = await json<Named>('key', 'create', 'busy', '--vault', 'shared');
    const client = open();
    let asked = 0;
    const change = client.change(get, write, { id }, async ({ name, tags }) => {
      asked += 1;
      await json('key', 'set', id, '--tag', `turn=${asked}`);
      return { name, tags: [...tags, 'mine'] };
    });
    await expect(change).rejects.toMatchObject({
      exitClass: 'refused',
      code: 'precondition-failed',
      hint: expect.stringContaining('read it again'),
    });
    expect(asked).toBe(5);
    expect(await json('key', 'show', id)).toMatchObject({ tags: ['turn=5'] });
  });
});

describe('vaults and keys', () => {
  test('live their whole life by name', async () => {
    const vault = await json<Named>('vault', 'create', 'payments');
    expect((await json<Page>('vault', 'list')).items.map(({ name }) => name)).toContain('payments');
    expect((await json<Named>('vault', 'show', 'payments')).id).toBe(vault.id);
    const key = await json<Named>('key', 'create', 'orders', '--vault', 'payments');
    expect((await json<Named>('key', 'show', 'orders')).id).toBe(key.id);
    expect((await json<Named>('key', 'disable', 'orders')).state).toBe('disabled');
    expect((await json<Named>('key', 'enable', 'orders')).state).toBe('active');
    expect(await json('key', 'rotate', 'orders')).toMatchObject({ version: 2 });
    expect((await json<Page>('key', 'versions', key.id)).items).toHaveLength(2);
    expect((await json<Page>('key', 'list', '--vault', 'payments', '--state', 'active')).items).toHaveLength(1);
    expect((await json<Named>('vault', 'disable', 'payments')).state).toBe('disabled');
    expect((await json<Named>('vault', 'enable', 'payments')).state).toBe('enabled');
    const deleted = await json<{ key: Named; vaultCopyCleared: boolean }>(
      'key',
      'delete',
      'orders',
      '--confirm',
      'orders',
    );
    expect(deleted).toMatchObject({ key: { state: 'soft-deleted' }, vaultCopyCleared: true });
    expect((await json<Named>('vault', 'delete', 'payments', '--confirm', 'payments')).state).toBe('deleted');
  });

  test('of keys are found by tag, age and last use, and a key says who uses it', async () => {
    await json('vault', 'create', 'tagged');
    const { id } = await json<Named>('key', 'create', 'first', '--vault', 'tagged', '--tag', 'pci', 'env=prod');
    await json('key', 'create', 'second', '--vault', 'tagged', '--tag', 'env=prod');
    const listed = async (...options: readonly string[]) =>
      (await json<Page>('key', 'list', '--vault', 'tagged', ...options)).items.map(({ name }) => name);
    expect(await listed('--tag', 'env=prod')).toEqual(['second', 'first']);
    expect(await listed('--tag', 'pci', '--never-used')).toEqual(['first']);
    expect(await listed('--used-after', '2026-01-01T00:00:00Z')).toEqual([]);
    expect(await listed('--used-before', '2026-01-01T00:00:00+02:00')).toEqual([]);
    expect(await listed('--created-before', '2026-01-01T00:00:00Z')).toEqual([]);
    expect(await listed('--created-after', '2026-01-01T00:00:00Z')).toEqual(['second', 'first']);
    expect(await json('key', 'set', 'first', '--name', 'other')).toMatchObject({
      name: 'other',
      tags: ['env=prod', 'pci'],
    });
    expect(await json('key', 'set', id, '--tag', 'a', 'b')).toMatchObject({ name: 'other', tags: ['a', 'b'] });
    expect(await json('key', 'set', id, '--no-tags')).toMatchObject({ name: 'other', tags: [] });
    expect(await json('key', 'use', id)).toEqual({
      ...{
        keyId: id,
        firstUsedAt: null,
        lastUsedAt: null,
        copies: { count: 0, items: [] },
        endpoints: [],
        application: null,
      },
    });
  });

  test('are tables for people, and a list says how to continue', async () => {
    await json('vault', 'create', 'a table');
    await json('vault', 'create', 'b table');
    const { stdout, code } = await dke('vault', 'list', '--limit', '1');
    expect(code).toBe(0);
    const [heading, row, more] = stdout.trimEnd().split('\n');
    expect(heading).toMatch(/^ID +NAME +KIND +STATE +CREATED$/);
    expect(row).toMatch(/ (general|tde) +(enabled|deleted) +\d{4}-/);
    expect(more).toMatch(/^more: --after \S+$/);
    const after = more?.split(' ').at(-1) ?? '';
    expect((await json<Page>('vault', 'list', '--after', after)).items.length).toBeGreaterThan(0);
  });

  test('are not deleted without their name', async () => {
    await json('vault', 'create', 'careful');
    const unconfirmed = await dke('vault', 'delete', 'careful');
    expect(unconfirmed.code).toBe(exitCodes.config);
    expect(unconfirmed.stderr).toContain("--confirm 'careful'");
    expect((await dke('vault', 'delete', 'careful', '--confirm', 'Careful')).code).toBe(exitCodes.config);
    expect((await json<Named>('vault', 'show', 'careful')).state).toBe('enabled');
  });
});

describe('settings of an endpoint', () => {
  afterAll(async () => {
    await dke('endpoint', 'delete', 'aws-set', '--confirm', 'aws-set');
  });

  test('change one by one, and what no option names stays', async () => {
    await json('vault', 'create', 'settings');
    await json('key', 'create', 'settings-key', '--vault', 'settings');
    await json('endpoint', 'create', 'aws-set', '--vault', 'settings', '--key', 'settings-key', '--no-operator-probes');
    const defaults = { operatorProbes: false, rate: null, clientCertificate: null, rules: [] };
    expect(await json('endpoint', 'show', 'aws-set')).toMatchObject({ settings: defaults });
    const rules = [{ name: 'not lambda', effect: 'deny', when: { viaService: ['lambda.*'] } }];
    writeFileSync(join(folder, 'rules.json'), JSON.stringify(rules));
    expect(await json('endpoint', 'set', 'aws-set', '--rules', 'rules.json')).toEqual({ ...defaults, rules });
    const limited = { ...defaults, rules, rate: { perSecond: 1800, burst: 1800 } };
    expect(await json('endpoint', 'set', 'aws-set', '--rate', '1800')).toEqual(limited);
    expect(await json('endpoint', 'set', 'aws-set', '--burst', '3600', '--operator-probes')).toEqual({
      ...limited,
      operatorProbes: true,
      rate: { perSecond: 1800, burst: 3600 },
    });
    expect(await json('endpoint', 'set', 'aws-set', '--no-rate', '--no-rules', '--no-operator-probes')).toEqual(
      defaults,
    );
  });

  test.each([
    ['a rate that is not a number', ['--rate', 'many'], 'rate'],
    ['a file that is not there', ['--rules', 'none.json'], 'none.json cannot be read (ENOENT)'],
    ['a bundle without certificates', ['--client-ca', 'token', '--client-name', 'x'], 'certificates in PEM'],
  ])('%s is refused by name', async (_what, options, message) => {
    const run = await dke('endpoint', 'set', 'aws-set', ...options);
    expect(run.code).not.toBe(0);
    expect(run.stderr).toContain(message);
  });
});

describe('databases', () => {
  test('an application is registered into a file with mode 600, and its secret is nowhere else', async () => {
    await json('tde', 'group', 'create', 'finance');
    const file = join(folder, 'pkcs11.toml');
    const before = printed.length;
    const run = await dke(
      'tde',
      'app',
      'register',
      'erp',
      '--group',
      'finance',
      '--out',
      file,
      '--database-ca-file',
      server.caFile,
    );
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const toml = readFileSync(file, 'utf8');
    const guid = /^access_token = "([^"]+)"$/m.exec(toml)?.[1] ?? '';
    expect(guid).not.toBe('');
    expect(toml).toContain(`ca_file = ${JSON.stringify(server.caFile)}`);
    expect(printed.slice(before)).not.toContain(guid);

    const again = await dke('tde', 'app', 'rotate-guid', 'erp', '--out', file);
    expect(again.code).toBe(exitCodes.permission);
    expect(again.stderr).toContain('--force');
    expect(readFileSync(file, 'utf8')).toBe(toml);
    expect((await json<Page>('tde', 'app', 'guids', 'erp')).items).toHaveLength(1);

    const second = join(folder, 'second.toml');
    expect((await dke('tde', 'app', 'rotate-guid', 'erp', '--out', second)).code).toBe(0);
    const guids = (await json<{ items: { id: string; removedAt: string | null }[] }>('tde', 'app', 'guids', 'erp'))
      .items;
    expect(guids).toHaveLength(2);
    expect(
      (await json<{ removedAt: string | null }>('tde', 'app', 'remove-guid', 'erp', guids[1]?.id ?? '')).removedAt,
    ).not.toBeNull();
    expect((await json<Page>('tde', 'app', 'list', '--group', 'finance')).items).toHaveLength(1);
    expect((await json<Named>('tde', 'app', 'disable', 'erp')).state).toBe('disabled');
    expect((await json<Named>('tde', 'app', 'enable', 'erp')).state).toBe('enabled');
    expect((await json<Page>('tde', 'app', 'instances', 'erp')).items).toEqual([]);
    expect((await json<Page>('tde', 'key', 'list', 'erp')).items).toEqual([]);
    expect((await json<Page>('tde', 'group', 'list')).items.map(({ name }) => name)).toEqual(['finance']);
    expect((await json<Named>('tde', 'group', 'show', 'finance')).name).toBe('finance');
  });

  test('a private key is shown with its public half, which is also printed as PEM', async () => {
    const file = join(folder, 'signer.toml');
    const registered = ['tde', 'app', 'register', 'signer', '--group', 'finance', '--out', file];
    expect((await dke(...registered, '--database-ca-file', server.caFile)).code).toBe(0);
    const door = openHttpService(await loadConfig(file));
    const half: CreateObject = {
      ...{ class: 'private-key', label: Buffer.from('signing key').toString('base64'), algorithm: 'ec', bits: 384 },
      ...{ usages: ['sign'], sensitive: true, extractable: false, modifiable: false, destroyable: true, private: true },
      attributes: '',
    };
    const head = { privateKey: half, publicKey: null };
    const { answer } = await door.call(
      { route: 'generateKeyPair', handle: null, head, raw: null },
      { requestId: 'a-pair', instance: instanceText(instance) },
    );
    await door.close();
    const shown = await json<Record<string, unknown>>('tde', 'key', 'show', 'signing key');
    expect(shown).toMatchObject({
      ...{ class: 'private-key', type: 'P-384', algorithm: 'ec', bits: 384, origin: 'generated', extractable: false },
      ...{ sensitive: true, neverDecrypts: false, checkValue: null },
    });
    expect((await dke('tde', 'key', 'list', 'signer')).stdout).toContain('P-384 private');
    const run = await dke('tde', 'key', 'public-key', 'signing key');
    expect(run).toMatchObject({ code: 0, stderr: '', stdout: shown.publicKey });
    const key = createPublicKey(run.stdout);
    expect(key.export({ format: 'der', type: 'spki' }).toString('base64')).toBe(answer.privateKey.publicKey);
    expect(key.asymmetricKeyDetails).toEqual({ namedCurve: 'secp384r1' });
    expect((await json<Named>('tde', 'key', 'destroy', 'signing key', '--confirm', 'signing key')).id).toBeUndefined();
  });

  test('an application moves to another group after its consequences are shown; its history is read page by page', async () => {
    const file = join(folder, 'mover.toml');
    for (const name of ['mover', 'stays'])
      await dke(
        ...['tde', 'app', 'register', name, '--group', 'finance', '--out', join(folder, `${name}.toml`)],
        ...['--database-ca-file', server.caFile],
      );
    await json('tde', 'group', 'create', 'closed books');
    const door = openHttpService(await loadConfig(file));
    const key: CreateObject = {
      ...{
        class: 'secret-key',
        label: '',
        algorithm: 'aes',
        bits: 256,
        usages: ['encrypt', 'decrypt'],
        attributes: '',
      },
      ...{ sensitive: true, extractable: false, modifiable: false, destroyable: true, private: true },
    };
    for (const label of ['MK.1', 'MK.2', 'MK.3']) {
      const head = { ...key, label: Buffer.from(label).toString('base64') };
      await door.call(
        { route: 'generateKey', handle: null, head, raw: null },
        { requestId: label, instance: instanceText(instance) },
      );
    }
    await door.close();

    const first = await json<Page & { next: string }>('tde', 'key', 'list', 'mover', '--limit', '2');
    expect(first.items.map(({ name }) => name)).toEqual(['MK.3', 'MK.2']);
    expect(first.items[0]).toMatchObject({ newest: true, firstUsedAt: null });
    const rest = await json<Page>('tde', 'key', 'list', 'mover', '--limit', '2', '--after', first.next);
    expect(rest.items.map(({ name }) => name)).toEqual(['MK.1']);

    const members = async (group: string) =>
      (await json<Page>('tde', 'group', 'members', group)).items.map(({ name }) => name);
    const before = await members('finance');
    expect(before).toContain('mover');
    const planned = await dke('tde', 'app', 'move', 'mover', '--to', 'closed books', '--dry-run');
    expect(planned).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^dry run: nothing was changed\. mover moves from finance to closed books with 3 keys /,
      ),
    });
    expect(planned.stdout).toMatch(/keys of .*stays/);
    expect(await members('finance')).toEqual(before);
    expect((await dke('tde', 'app', 'move', 'mover', '--to', 'closed books', '--confirm', 'Mover')).code).not.toBe(0);
    expect((await dke('tde', 'app', 'move', 'mover', '--to', 'closed books', '--confirm', 'mover')).code).toBe(0);
    expect(await members('closed books')).toEqual(['mover']);
    expect(await members('finance')).toEqual(before.filter((name) => name !== 'mover'));
  });

  test('a file that cannot be written costs no secret', async () => {
    const run = await dke(
      'tde',
      'app',
      'register',
      'lost',
      '--group',
      'finance',
      '--out',
      join(folder, 'no/such/folder'),
    );
    expect(run.code).toBe(exitCodes.permission);
    expect((await json<Page>('tde', 'app', 'list')).items.map(({ name }) => name)).not.toContain('lost');
  });

  test('a refused registration leaves no file behind', async () => {
    const file = join(folder, 'refused.toml');
    expect((await dke('tde', 'app', 'register', 'x', '--group', 'nobody', '--out', file)).code).toBe(
      exitCodes['not-found'],
    );
    expect((await dke('tde', 'app', 'register', ' ', '--group', 'finance', '--out', file)).code).toBe(exitCodes.config);
    expect(existsSync(file)).toBe(false);
  });

  test('a general-purpose key is not a master key', async () => {
    await json('vault', 'create', 'mixed');
    await json('key', 'create', 'no master', '--vault', 'mixed');
    const run = await dke('tde', 'key', 'destroy', 'no master', '--confirm', 'no master');
    expect(run.code).toBe(exitCodes['not-found']);
    expect((await json<Named>('key', 'show', 'no master')).state).toBe('active');
  });
});

describe('endpoints', () => {
  test('live with their credentials; the file is the one that AWS KMS takes', async () => {
    await json('vault', 'create', 'cloud');
    await json('key', 'create', 'cloud key', '--vault', 'cloud');
    const made = await json<Named & { prefix: string }>(
      'endpoint',
      'create',
      'aws',
      '--vault',
      'cloud',
      '--key',
      'cloud key',
      '--prefix',
      'eu1',
    );
    expect(made.prefix).toBe('eu1');
    const file = join(folder, 'proxy.json');
    const before = printed.length;
    expect((await dke('endpoint', 'credential', 'add', 'aws', '--out', file)).code).toBe(0);
    const { XksProxyAuthenticationCredential: credential } = JSON.parse(readFileSync(file, 'utf8')) as {
      XksProxyAuthenticationCredential: { AccessKeyId: string; RawSecretAccessKey: string };
    };
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(printed.slice(before)).not.toContain(credential.RawSecretAccessKey);
    const shown = await json<{ XksProxyAuthenticationCredential: { AccessKeyId: string } }>(
      'endpoint',
      'credential',
      'add',
      'aws',
    );
    expect(shown.XksProxyAuthenticationCredential.AccessKeyId).not.toBe(credential.AccessKeyId);
    expect((await dke('endpoint', 'credential', 'add', 'aws')).code).toBe(exitCodes.refused);
    const { items } = await json<{ items: { id: string; accessKeyId: string }[] }>(
      'endpoint',
      'credential',
      'list',
      'aws',
    );
    const old = items.find(({ accessKeyId }) => accessKeyId === credential.AccessKeyId);
    const remove = ['endpoint', 'credential', 'remove', 'aws'] as const;
    const asked = await dke(...remove, old?.id ?? '');
    expect(asked.code).toBe(exitCodes.config);
    expect(asked.stderr).toContain(`signed with ${old?.accessKeyId} are refused immediately; it was never used`);
    const left = await json<{ credentials: { id: string }[] }>(...remove, old?.id ?? '', '--confirm', 'aws');
    expect(left.credentials).toHaveLength(1);
    const last = [...remove, left.credentials[0]?.id ?? '', '--confirm', 'aws'];
    const kept = await dke(...last);
    expect(kept.code).toBe(exitCodes.refused);
    expect(kept.stderr).toContain('this is the last credential of the endpoint aws: nothing was changed');
    expect((await json<{ credentials: unknown[] }>(...last, '--force')).credentials).toEqual([]);
    expect((await json<Page>('endpoint', 'requests', 'aws')).items).toEqual([]);
    expect((await json<Page>('endpoint', 'list')).items.map(({ name }) => name)).toEqual(['aws']);
    expect((await json<Named>('endpoint', 'disable', 'aws')).state).toBe('disabled');
    expect((await json<Named>('endpoint', 'enable', 'aws')).state).toBe('enabled');
    expect((await json<Named>('endpoint', 'show', 'aws')).state).toBe('enabled');
    expect((await json<Named>('endpoint', 'delete', 'aws', '--confirm', 'aws')).state).toBe('deleted');
  });
});

describe('tokens, audit, status', () => {
  test('a new token works until it is revoked', async () => {
    const file = join(folder, 'second-token');
    expect((await dke('token', 'create', 'night shift', '--role', 'key-manager', '--out', file)).code).toBe(0);
    const token = readFileSync(file, 'utf8').trim();
    expect((await dke('vault', 'list', '--token-file', file)).code).toBe(0);
    const revoked = await json<{ revokedAt: string | null }>('token', 'revoke', 'night shift');
    expect(revoked.revokedAt).not.toBeNull();
    expect((await dke('vault', 'list', '--token-file', file)).code).toBe(exitCodes.denied);
    expect(printed).not.toContain(token);
    expect((await json<Page>('token', 'list')).items).toHaveLength(2);
  });

  test('the audit log is exported, and checked without the service', async () => {
    const file = join(folder, 'audit.ndjson');
    const { verifierKey } = await json<{ verifierKey: string }>('audit', 'log');
    const keyFile = join(folder, 'audit.key');
    writeFileSync(keyFile, `${verifierKey}\n`);
    expect(await dke('audit', 'export', '--out', file)).toMatchObject({ code: 0, stderr: '' });
    const alone = (args: readonly string[]): Promise<CommandRun> =>
      runCommand(['audit', 'verify', ...args], { environment: {}, cwd: folder });
    const anchor = `${join(server.dataDirectory, 'root.key')}.checkpoint`;
    const sound = await alone([file, '--key', keyFile, '--checkpoint', anchor]);
    expect(sound).toMatchObject({ code: 0, stderr: '' });
    expect(sound.stdout).toMatch(/^valid +true$/m);

    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    writeFileSync(file, `${lines.toSpliced(1, 1).join('\n')}\n`);
    const changed = await alone([file, '--key', verifierKey]);
    expect(changed.code).toBe(exitCodes['checks-failed']);
    expect(changed.stderr).toContain('record 3 is in the place of record 2');
    expect((await alone([file, '--key', 'not-a-key+'])).code).toBe(exitCodes.config);
    expect((await alone([join(folder, 'nowhere'), '--key', verifierKey])).code).toBe(exitCodes.permission);

    const proof = await json<{ entry: string }>('audit', 'prove', '1');
    expect(proof.entry).toBe(lines[0]);
    expect((await dke('audit', 'prove', '999999')).code).toBe(exitCodes['not-found']);
    expect((await json<{ items: unknown[] }>('audit', 'checkpoints')).items.length).toBeGreaterThan(0);
  });

  test('the audit log is filtered and says what a command did', async () => {
    const { items } = await json<{ items: { kind: string }[] }>('audit', 'list', '--kind', 'token.revoked');
    expect(items.map(({ kind }) => kind)).toEqual(['token.revoked']);
    expect((await dke('audit', 'list', '--kind', 'no.such')).code).toBe(exitCodes.config);
  });

  test('the default tenant is there on its own', async () => {
    const { items } = await json<Page>('tenant', 'list');
    expect(items).toHaveLength(1);
    expect(await json('tenant', 'show', items[0]?.id ?? '')).toEqual(items[0]);
  });

  test('the status is one record', async () => {
    expect(await json('status')).toMatchObject({ health: { healthy: true } });
    expect((await dke('status')).stdout).toMatch(/^health\.healthy +true$/m);
  });

  test('a token comes through standard input as well', async () => {
    const run = await runCommand(['vault', 'list', '--token-file', '-'], {
      environment,
      input: `${server.adminToken}\n`,
    });
    expect(run).toMatchObject({ code: 0, stderr: '' });
  });

  test('keys of tokens and sessions are not ended without a word, after it was said how many stop working', async () => {
    const refused = async (words: RegExp, ...args: string[]): Promise<void> => {
      const run = await dke(...args);
      expect([args, run.code, run.stdout]).toEqual([args, exitCodes.config, '']);
      expect(run.stderr).toMatch(words);
    };
    const file = join(folder, 'unused-token');
    expect((await dke('token', 'create', 'unused', '--role', 'auditor', '--out', file)).code).toBe(0);
    expect(await json('token', 'rotate-key')).toMatchObject({ tokensEnded: 0 });
    await refused(
      /^dke: All API tokens stop working immediately: 2, including yours[\s\S]*--confirm 'end'/,
      'token',
      'rotate-key',
      '--compromised',
    );
    const force = ['token', 'end-former-key', '--force'];
    await refused(
      /^dke: API tokens that have not been used since the rotation: 1 \(unused\)[\s\S]*--confirm 'end'/,
      ...force,
    );
    await refused(/^dke: that is not end: nothing was changed/, ...force, '--confirm', 'yes');
    expect(await json(...force, '--confirm', 'end')).toMatchObject({ tokensEnded: 1 });
    expect((await dke('vault', 'list', '--token-file', file)).code).toBe(exitCodes.denied);
    await refused(/^dke: All sessions end immediately: 0/, 'session', 'rotate-key');
    await json('session', 'rotate-key', '--confirm', 'end');
  });
});

describe('what goes wrong', () => {
  const failure = async (
    args: readonly string[],
    changed: Record<string, string | undefined> = {},
  ): Promise<CommandRun> => {
    const run = await runCommand(args, { environment: { ...environment, ...changed }, cwd: folder });
    printed += run.stdout + run.stderr;
    expect(run.stdout).toBe('');
    return run;
  };

  test.each<[string, readonly string[], Record<string, string | undefined>, keyof typeof exitCodes, RegExp]>([
    ['an unknown command', ['vlt'], {}, 'config', /Did you mean vault/],
    [
      'an unknown option',
      ['vault', 'list', '--al'],
      {},
      'config',
      /unknown option[\s\S]*Run dke vault list --help for its arguments/,
    ],
    [
      'an argument too many',
      ['provider', 'check', 'a'],
      {},
      'config',
      /Expected 0[\s\S]*Run dke provider check --help for its arguments/,
    ],
    ['a missing argument', ['vault', 'show'], {}, 'config', /missing required argument/],
    ['an unknown resource', ['vault', 'show', 'nowhere'], {}, 'not-found', /no vault named nowhere/],
    ['an unknown id', ['key', 'show', '01981d2c-7c1f-7b35-9a04-52a1be40c0de'], {}, 'not-found', /request /],
    ['a field out of range', ['key', 'list', '--limit', '0'], {}, 'config', /limit: must be/],
    [
      'no token',
      ['vault', 'list'],
      { DKE_TOKEN_FILE: undefined },
      'denied',
      /not signed in\n[\s\S]*dke login[\s\S]*--token-file/,
    ],
    [
      'a service that is not there',
      ['vault', 'list'],
      { DKE_SERVER: 'https://127.0.0.1:9' },
      'unreachable',
      /ECONNREFUSED/,
    ],
    ['an address without TLS', ['vault', 'list'], { DKE_SERVER: 'http://127.0.0.1' }, 'config', /https:\/\/HOST/],
    ['a certificate of another authority', ['vault', 'list'], { DKE_CA_FILE: undefined }, 'unreachable', /--ca-file/],
    [
      'a certificate file that is not there',
      ['vault', 'list'],
      { DKE_CA_FILE: '/nowhere.pem' },
      'permission',
      /ENOENT/,
    ],
  ])('%s', async (_, args, changed, exitClass, words) => {
    const run = await failure(args, changed);
    expect(run.stderr).toMatch(words);
    expect(run.code).toBe(exitCodes[exitClass]);
  });

  test('a token file that others can read', async () => {
    const file = join(folder, 'open-token');
    writeFileSync(file, server.adminToken);
    chmodSync(file, 0o644);
    const run = await failure(['vault', 'list', '--token-file', file]);
    expect(run.code).toBe(exitCodes.permission);
    expect(run.stderr).toContain(`chmod 600 ${file}`);
  });

  test('a token that is not valid', async () => {
    const file = join(folder, 'wrong-token');
    writeFileSync(file, 'dket_wrong', { mode: 0o600 });
    const run = await failure(['vault', 'list', '--token-file', file]);
    expect(run.code).toBe(exitCodes.denied);
    expect(run.stderr).toMatch(
      /the token is invalid, expired or revoked[\s\S]*dke login[\s\S]*dke token create NAME --role ROLE/,
    );
    expect(run.stderr).not.toContain('dket_wrong');
  });

  test('an error is JSON when JSON was asked for', async () => {
    const run = await failure(['vault', 'show', 'nowhere', '-o', 'json']);
    expect(JSON.parse(run.stderr)).toMatchObject({ error: 'not-found', message: 'there is no vault named nowhere' });
  });
});

test('an older Node is told which one is needed, and prints no stack trace', async () => {
  const older = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`;
  const url = `data:text/javascript;base64,${Buffer.from(older).toString('base64')}`;
  const run = await runCommand(['server'], { environment: { NODE_OPTIONS: `--import=${url}` } });
  expect(run).toMatchObject({ code: exitCodes.config, stdout: '' });
  expect(run.stderr).toMatch(/^error: dke needs Node 24 or later, and .* is Node 20\.20\.2\nhint: .*\n$/);
});

test('no command ever printed the administrator token', () => {
  expect(printed.length).toBeGreaterThan(10_000);
  expect(printed).not.toContain(server.adminToken);
});
