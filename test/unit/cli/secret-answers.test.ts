// Every operation of the contract that shows a secret once: an answer without it is reported as one
// whose creation may have happened, and never as a failure after which a repeat is safe.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { makeProgramFor } from '../../../server/cli/program.ts';
import { parseSecretAnswer } from '../../../server/cli/service/secret-answer.ts';
import { sessionFile } from '../../../server/cli/service/session-file.ts';
import { exitCodes } from '../../../server/cli/terminal/exit-codes.ts';
import { operations } from '../../../server/clients/typescript/gen/operations.ts';
import type { Operation } from '../../../server/clients/typescript/operation.ts';
import { apiRoutes } from '../../../server/contract/api/index.ts';
import { describeApi } from '../../../server/contract/api/openapi.ts';
import type { RouteRow } from '../../../server/contract/api/row.ts';
import { runCommand } from '../../support/command.ts';
import { sharedFolder } from '../../support/folders.ts';
import { openScriptedService, type Script, type ScriptedService } from '../../support/scripted-service.ts';

const id = '01981d2c-7c1f-7b35-9a04-52a1be40c0de';
/** The command of each such operation; null: only the console has it. */
const commands: Readonly<Record<string, readonly string[] | null>> = {
  'tokens.create': ['token', 'create', 'batch', '--role', 'auditor'],
  'users.create': ['user', 'create', 'ada', '--role', 'auditor'],
  'users.resetPassword': ['user', 'reset-password', id],
  'endpoints.addCredential': ['endpoint', 'credential', 'add', id],
  'applications.register': ['tde', 'app', 'register', 'erp', '--group', id],
  'applications.rotateAccessGuid': ['tde', 'app', 'rotate-guid', id],
  'profile.beginTotp': null,
  'profile.makeRecoveryCodes': null,
  'profile.createToken': null,
};

interface Document {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<Record<string, { responses: Record<string, { content: Record<string, { example: object }> }> }>>
    >
  >;
}
const { paths } = describeApi('1') as Document;
const rows = Object.entries(apiRoutes).flatMap(([group, routes]) =>
  Object.entries(routes as Readonly<Record<string, RouteRow>>)
    .filter(([, row]) => row.showsSecret !== undefined)
    .map(([name, row]) => {
      const operation = (operations as Readonly<Record<string, Readonly<Record<string, Operation>>>>)[group]?.[name];
      const answer = paths[row.path]?.[row.method]?.responses['201']?.content['application/json']?.example;
      if (operation === undefined || answer === undefined) throw new Error(`${group}.${name} has no example`);
      return { name: `${group}.${name}`, row, operation, answer };
    }),
);
/** The answer with another value at a member; undefined: without it. */
const withMember = (answer: unknown, [name = '', ...rest]: readonly string[], value: unknown): unknown => {
  const { [name]: before, ...others } = answer as Readonly<Record<string, unknown>>;
  const next = rest.length === 0 ? value : withMember(before, rest, value);
  return next === undefined ? others : { ...others, [name]: next };
};
const noSecrets = [undefined, null, '', 7, [], [''], [null], {}];

test('every operation that shows a secret has its command here, or none', () => {
  expect(rows.map(({ name }) => name).toSorted()).toEqual(Object.keys(commands).toSorted());
});

describe.each(rows)('$name', ({ row, operation, answer }) => {
  test('its example has the secret, and the client knows its members', () => {
    expect(operation.showsOnce).toEqual(row.showsSecret);
    expect(row.answer?.safeParse(answer).error).toBeUndefined();
    expect(parseSecretAnswer(operation, answer)).toBe(answer);
    for (const path of row.showsSecret ?? []) {
      const whole = Buffer.from(JSON.stringify(answer));
      // The one answer that stays bytes has no list of secrets.
      if (!path.endsWith('codes')) expect(parseSecretAnswer(operation, whole)).toBe(whole);
      expect(whole.toString()).toBe(JSON.stringify(answer));
    }
  });

  test.each((row.showsSecret ?? []).flatMap((path) => noSecrets.map((value) => [path, value] as const)))(
    'is refused without %s: %j',
    (path, value) => {
      const spoilt = withMember(answer, path.split('.'), value);
      const lost = expect.objectContaining({ exitClass: 'may-exist', message: expect.stringContaining(path) });
      expect(() => parseSecretAnswer(operation, spoilt)).toThrow(lost);
      expect(() => parseSecretAnswer(operation, Buffer.from(JSON.stringify(spoilt)))).toThrow(lost);
    },
  );

  test.each([undefined, null, 7, 'text', [], [null], {}])('is refused when it is %j', (spoilt) => {
    const lost = expect.objectContaining({ exitClass: 'may-exist' });
    expect(() => parseSecretAnswer(operation, spoilt)).toThrow(lost);
    expect(() => parseSecretAnswer(operation, spoilt, true)).toThrow(lost);
    expect(() => parseSecretAnswer(operation, Buffer.from(JSON.stringify(spoilt) ?? ''))).toThrow(lost);
  });
});

let service: ScriptedService;
const folder = sharedFolder();
let printed = '';
beforeAll(async () => {
  service = await openScriptedService();
  writeFileSync(join(folder, 'ca.pem'), service.ca);
  writeFileSync(join(folder, 'token'), 'dket_token\n', { mode: 0o600 });
});
afterAll(() => service.close());
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const options = () => [
  ...['--server', service.url, '--ca-file', join(folder, 'ca.pem'), '--token-file', join(folder, 'token')],
];
const run = async (given: readonly string[], words: readonly string[]): Promise<void> => {
  printed = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  const all = [...given, ...words];
  await (await makeProgramFor('1', all)).parseAsync(['node', 'dke', ...all]);
};

const dke = (...words: readonly string[]): Promise<void> => run(options(), words);

const offered = rows.flatMap((each) => {
  const words = commands[each.name];
  return words == null ? [] : [{ ...each, words }];
});

describe.each(offered)('the command of $name', ({ row, answer, words }) => {
  const without = (path: string, value: unknown): Script => ({
    status: 201,
    body: withMember(answer, path.split('.'), value),
  });
  const [path = ''] = row.showsSecret ?? [];
  const lost: readonly (readonly [string, Script])[] = [
    ...(row.showsSecret ?? []).flatMap((each) => [
      [`no ${each}`, without(each, undefined)] as const,
      [`null for ${each}`, without(each, null)] as const,
    ]),
    [`an empty ${path}`, without(path, '')],
    ['an empty object', { status: 201, body: {} }],
    ['null', { status: 201, body: 'null' }],
    ['a list', { status: 201, body: [null] }],
    ['nothing', { status: 201 }],
    ['a page of a proxy', { status: 200, body: '<html>' }],
    ['a failure of a proxy', { status: 502, body: '<html>' }],
    ['a lost connection', 'lost'],
    ['half an answer', 'cut'],
    [
      'a change that is not confirmed',
      { status: 503, body: { code: 'unavailable', detail: 'not confirmed', requestId: 'r', reason: 'unconfirmed' } },
    ],
  ];

  test.each(lost)('may have created what it does not show: %s', async (_, script) => {
    const out = join(folder, 'out');
    for (const more of [[], ['--out', out]]) {
      service.script(script);
      await expect(dke(...words, ...more)).rejects.toMatchObject({
        exitClass: 'may-exist',
        hint: expect.stringContaining('what was to be created may exist'),
      });
      expect([printed, existsSync(out)]).toEqual(['', false]);
    }
  });

  const refusals = [
    { status: 409, body: { code: 'conflict', detail: 'the name is taken', requestId: 'r' } },
    { status: 403, body: { code: 'forbidden', detail: 'needs a right', requestId: 'r' } },
    { status: 503, body: { code: 'unavailable', detail: 'it stops', requestId: 'r' } },
  ];
  test.each(refusals)('may have been created before the answer $status to its repetition', async (refusal) => {
    service.script('lost', refusal);
    await expect(dke(...words)).rejects.toMatchObject({ exitClass: 'may-exist' });
  });

  /** What the repetition meets when the first answer was lost; the second request is answered. */
  const repetitions: Readonly<Record<string, () => void>> = {
    'a certificate of another authority': () => service.present('untrusted'),
    'a certificate for another name': () => service.present('other-name'),
    'a certificate that has expired': () => service.present('expired'),
    'a credential that others can read': () => chmodSync(sessionFile(), 0o644),
    'a credential that is not one': () => writeFileSync(sessionFile(), '['),
    'no credential': () => rmSync(sessionFile()),
  };
  test.each(Object.entries(repetitions))('may have been created before its repetition meets %s', async (_, meet) => {
    vi.stubEnv('XDG_CONFIG_HOME', folder);
    mkdirSync(join(folder, 'dke'), { recursive: true, mode: 0o700 });
    writeFileSync(sessionFile(), JSON.stringify({ [service.url]: { user: 'ada', token: 'dket_token' } }), {
      mode: 0o600,
    });
    const lost: Script = () => {
      meet();
      return 'lost';
    };
    service.script(lost, { status: 201, body: answer });
    try {
      await expect(run(options().slice(0, 4), words)).rejects.toMatchObject({
        exitClass: 'may-exist',
        hint: expect.stringContaining('what was to be created may exist'),
      });
      expect(service.requests).toHaveLength(1);
    } finally {
      service.present('own');
      rmSync(sessionFile(), { force: true });
    }
  });

  test('has created nothing when the service refuses it', async () => {
    service.script({ status: 403, body: { code: 'forbidden', detail: 'needs a right', requestId: 'r' } });
    await expect(dke(...words)).rejects.toMatchObject({ exitClass: 'denied', message: 'needs a right' });
  });

  test('is asked for nothing when standard output is closed, or takes nothing', () => {
    service.script({ status: 201, body: answer });
    const main = resolve(import.meta.dirname, '../../../server/cli/main.ts');
    const line = [process.execPath, main, ...options(), ...words].map((each) => `'${each}'`).join(' ');
    for (const end of ['>&-', '>/dev/null']) {
      const { status, stderr } = spawnSync('sh', ['-c', `exec ${line} ${end}`], { encoding: 'utf8' });
      expect([status, stderr]).toEqual([exitCodes.permission, expect.stringContaining('nothing was created')]);
    }
    expect(service.requests).toEqual([]);
  });

  test('writes it, or shows it', async () => {
    const out = join(folder, 'whole');
    service.script({ status: 201, body: answer });
    await dke(...words, '--out', out, '--force');
    expect(readFileSync(out, 'utf8').length).toBeGreaterThan(1);
    service.script({ status: 201, body: answer });
    await dke(...words);
    const secret = path.split('.').reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], answer);
    if (path !== 'invitation.token') expect(printed).toContain(secret);
  });
});

test('an invitation that is sent by mail does not count as a missing secret, whatever takes the output', async () => {
  const { answer } = offered.find(({ name }) => name === 'users.create') ?? {};
  const body = { ...answer, invitation: null, mailed: { to: 'ada@dke.example', failure: null } };
  service.script({ status: 201, body });
  const words = ['user', 'create', 'ada', '--role', 'auditor', '--email', 'ada@dke.example', '--deliver', 'mail'];
  await dke(...words);
  expect(printed).toContain('ada@dke.example');
  service.script({ status: 201, body });
  await expect(dke(...words.slice(0, -2))).rejects.toMatchObject({ exitClass: 'may-exist' });
});

test('a fault of the command is not one of an answer that is as the contract says', async () => {
  const example = (path: string, method: string) =>
    paths[path]?.[method]?.responses['200']?.content['application/json']?.example;
  const body = example('/api/vaults/{id}', 'get');
  const runWith = (environment: object) =>
    runCommand([...options(), 'vault', 'show', id], { environment: { ...environment } as Record<string, string> });
  // The table of the answer fails in the command itself.
  const spoilt = 'String.prototype.padEnd = () => { throw new TypeError("a fault of ours"); };';
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(spoilt)}`;
  service.script({ body });
  const ours = await runWith({ NODE_OPTIONS });
  expect([ours.code, ours.stderr]).toEqual([exitCodes.internal, expect.stringContaining('a fault of ours')]);
  service.script({ body: null });
  const theirs = await runWith({});
  expect([theirs.code, theirs.stderr]).toEqual([
    exitCodes.unreachable,
    expect.stringMatching(/is not the one that this version expects[\s\S]*GET \/api\/vaults\/\{id\}: the answer/),
  ]);
  service.script({ body });
  expect((await runWith({})).code).toBe(0);
});
