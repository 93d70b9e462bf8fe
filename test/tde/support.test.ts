// What `dke support provider` collects on the host of a database: the debug trace of the first SET
// KEY and of a heartbeat, which a person who helps reads to learn the calls of a release; and none
// of the secrets that passed through the library or lie on the host.
import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { leaksIn } from '../support/encodings.ts';
import type { Instance } from './instance.ts';
import { readProfile } from './profile.ts';
import { encrypted, insertRow, type Stage, setStage, walletPassword } from './scenarios.ts';
import { canary, pin, startWorld, type World } from './world.ts';

const profile = readProfile('12c-19c');
let world: World;
let stage: Stage;
let database: Instance;
/** Secrets that no support file may contain, each by its description. */
const secrets = new Map([
  ['the PIN of the statements', pin],
  ['the password of the wallet', walletPassword],
  ['a row', canary],
]);
const at = (name: string): string => join(world.folder, name);
const config = (): string => stage.host.environment.DKE_PKCS11_CONF ?? '';
const log = (): string => world.site?.logDirectory ?? '';

interface Line {
  readonly msg: string;
  readonly call?: string;
  readonly arguments?: string;
}
type Bundle = Readonly<Record<string, readonly Line[] & { readonly omitted?: string } & Record<string, unknown>>>;
const collect = async (name: string, ...args: string[]): Promise<Bundle> => {
  const made = await runCommand([
    ...['support', 'provider', '--conf', config(), '--out', at(name), '--show', '--confirm', 'write'],
    ...args,
  ]);
  expect([made.code, made.stdout]).toEqual([0, `${at(name)}\n`]);
  const text = readFileSync(at(name), 'utf8');
  expect(made.stderr).toBe(text);
  expect(leaksIn(text, secrets)).toEqual([]);
  return JSON.parse(text) as Bundle;
};
const callsIn = (lines: readonly Line[] = []): readonly string[] =>
  lines.filter(({ msg }) => msg === 'called').map((line) => `${line.call} ${line.arguments}`);

beforeAll(async () => {
  world = await startWorld.DKE();
  stage = await setStage(world, profile);
  database = await encrypted(stage, 'ERP');
  await insertRow(database, 7);
  for (let beat = 0; beat < 3; beat++) await database.advance(3);
  const [, guid = ''] = /^access_token = "(.+)"$/m.exec(readFileSync(config(), 'utf8')) ?? [];
  expect(guid.length).toBeGreaterThan(16);
  secrets.set('the access_guid', guid);
});
afterAll(async () => {
  await stage.end();
  await world.end();
});

test('it is shown before it is written, and nothing is written without a yes', async () => {
  const asked = await runCommand(['support', 'provider', '--conf', config(), '--out', at('never.json')]);
  expect([asked.code, existsSync(at('never.json'))]).toEqual([2, false]);
  for (const part of ['versions', 'configuration', 'firstKey', 'heartbeat', 'log'])
    expect(asked.stderr).toMatch(new RegExp(`^${part} +\\d+ `, 'm'));
  expect(leaksIn(asked.stderr, secrets)).toEqual([]);
});

test('it has each attribute of the first key and of its metadata, in the order of the database, and no value of bytes', async () => {
  const parts = await collect('support.json');
  expect((statSync(at('support.json')).mode & 0o777).toString(8)).toBe('600');
  expect(Object.entries(parts).filter(([, { omitted }]) => omitted !== undefined)).toEqual([]);
  expect(parts.configuration).toMatchObject({ log_level: 'debug', server_url: expect.stringMatching(/\*\*\*/) });
  const calls = callsIn(parts.firstKey);
  const [created] = calls.filter((each) => each.startsWith('C_GenerateKey'));
  expect(created).toMatch(
    /^C_GenerateKey session \d+, mechanism AES_KEY_GEN, template \[.*LABEL \d+ bytes.*VALUE_LEN 32.*SENSITIVE true.*\]$/,
  );
  expect(calls.some((each) => /^C_CreateObject .*CLASS 0.*VALUE \d+ bytes/.test(each))).toBe(true);
  expect(calls.some((each) => each.startsWith('C_Login session'))).toBe(true);
  expect(calls.filter((each) => /pin/i.test(each))).toEqual([]);
});

test('it has the calls of the heartbeat', async () => {
  const { heartbeat } = await collect('heartbeat.json');
  const calls = callsIn(heartbeat);
  expect(
    calls.filter((each) => /^C_EncryptInit session \d+, mechanism AES_CBC \(bytes 16 bytes\), key \d+$/.test(each))
      .length,
  ).toBeGreaterThan(1);
});

test('what another program has written into a log is left out or hidden', async () => {
  const [guid = '', password = ''] = [secrets.get('the access_guid'), 'hunter2-canary-in-a-line'];
  secrets.set('a member of a line', password);
  const time = new Date().toISOString();
  const lines = [
    `a line that is not JSON with ${password}`,
    JSON.stringify({ time, msg: 'failed', password }),
    JSON.stringify({ time, msg: `hex ${Buffer.from(guid).toString('hex')}` }),
    JSON.stringify({ msg: `without a time ${password}` }),
  ];
  appendFileSync(join(log(), 'agent-other.log'), `${lines.join('\n')}\n`);
  // A link does not lead the reader elsewhere.
  writeFileSync(at('elsewhere'), `${JSON.stringify({ time, msg: 'of another file' })}\n`);
  symlinkSync(at('elsewhere'), join(log(), 'agent-link.log'));
  const text = JSON.stringify(await collect('other.json'));
  expect(text).not.toContain('of another file');
  expect(text).not.toContain('without a time');
});

test('without a debug trace it says how to get one', async () => {
  mkdirSync(at('empty'));
  const parts = await collect('empty.json', '--log-directory', at('empty'));
  expect(parts.firstKey?.omitted).toContain('set log_level to debug in pkcs11.toml');
  expect(parts.heartbeat?.omitted).toContain('no debug trace of a heartbeat');
});
