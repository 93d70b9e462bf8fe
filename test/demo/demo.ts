// The demonstration: starts the built server, lets a database process load the built library,
// drives both main jobs on real input and prints what happens. Exits with 0 if everything was as
// expected, with 1 at the first difference.
//
//   npm run demo              proves it, then stops everything and removes its folder
//   npm run demo -- --keep    leaves server and agent running and prints how to try them by hand

import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import {
  type ConsoleApi,
  createGroup,
  openConsoleApi,
  registerApplication,
  writeProviderConfig,
} from '../support/console-api.ts';
import { endProcess, filesWith, processesWith, recordsOf, until } from '../support/host.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { type CurlRequest, curlLine, curlXks } from './curl.ts';
import { type Database, startDatabase } from './database.ts';
import { chapter, check, DemonstrationFailure, say, show } from './transcript.ts';

const root = resolve(import.meta.dirname, '../..');
const library = join(root, 'build/provider/1.0/libdke_pkcs11.so');
const program = join(root, 'dist/server/cli/main.js');
const command = [program, 'server'];
const settings = '[log]\ndestination = "server.log"\n';

interface Run {
  readonly folder: string;
  readonly socket: string;
  readonly databases: Database[];
  /** What no process list and no log may hold. */
  readonly secrets: Buffer[];
  server: ServerProcess;
  api: ConsoleApi;
  adminToken: string;
}

const octal = (path: string): string => (statSync(path).mode & 0o777).toString(8);
const agentsOf = (run: Run): readonly (readonly [number, string])[] => processesWith(run.socket);
const oneAgent = (run: Run): number => {
  const agents = agentsOf(run);
  const [first] = agents;
  if (first === undefined || agents.length > 1)
    throw new DemonstrationFailure(`one agent serves the socket (seen: ${agents.length})`);
  return first[0];
};

// 1 ----------------------------------------------------------------------------------------------
const startServer = async (folder: string): Promise<Run> => {
  chapter('A server on its defaults');
  show('dke server');
  const server = await startServerProcess({ folder, program: command, toml: settings });
  say(`listens on ${server.url}`);
  const { adminToken } = server;
  const api = openConsoleApi(server, adminToken);
  const secrets = [Buffer.from(adminToken)];
  return { folder, socket: join(folder, 'agent.sock'), databases: [], secrets, server, api, adminToken };
};

const checkFirstStart = async ({ server, api }: Run): Promise<void> => {
  check(server.adminToken.startsWith('dket_'), 'shows one administrator token, once');
  const rootKey = join(server.dataDirectory, 'root.key');
  check(octal(server.dataDirectory) === '700', 'made a data directory with mode 700, an SQLite database in it');
  check(octal(rootKey) === '400', 'made a root key file with mode 400');
  check(readFileSync(server.caFile, 'utf8').startsWith('-----BEGIN CERTIFICATE'), 'made a self-signed certificate');
  const { health } = await api.call<{ health: { healthy: boolean } }>('GET', '/api/status');
  check(health.healthy, 'is healthy: store, root key and a round trip through a key', health);
};

// 2 ----------------------------------------------------------------------------------------------
const register = async (run: Run): Promise<{ readonly applicationId: string; readonly configuration: string }> => {
  chapter('A database is registered');
  const { api, folder, server } = run;
  const groupId = await createGroup(api, 'finance');
  say('POST /api/tde/groups        finance');
  const registered = await registerApplication(api, 'erp', groupId);
  say('POST /api/tde/applications  erp');
  const { application, accessGuid, config } = registered;
  check(config.server_url.includes(accessGuid), 'the answer shows access_guid once, and server_url with it');
  check(config.access_token.length > 0, 'the answer offers access_token and a whole pkcs11.toml');
  run.secrets.push(Buffer.from(accessGuid), Buffer.from(config.access_token));
  const again = await api.call<object>('GET', `/api/tde/applications/${application.id}`);
  check(!JSON.stringify(again).includes(accessGuid), 'the application, asked for again, does not show it');
  const configuration = writeProviderConfig(join(folder, 'pkcs11.toml'), registered, {
    caFile: server.caFile,
    logDir: join(folder, 'log'),
  });
  check(octal(configuration) === '600', 'pkcs11.toml is written with mode 600');
  return { applicationId: application.id, configuration };
};

const openDatabase = (run: Run, configuration: string): Database => {
  const database = startDatabase({
    library,
    environment: { DKE_PKCS11_CONF: configuration, DKE_PKCS11_SOCKET: run.socket },
  });
  run.databases.push(database);
  return database;
};

/** Gives a command that must succeed. */
const ask = async (database: Database, what: Parameters<Database['ask']>[0]) => {
  const answer = await database.ask(what);
  if (!answer.ok) throw new DemonstrationFailure(`the database's ${what.do} succeeds (seen: ${answer.error})`);
  return answer;
};

const newLabel = (): string => `ORACLE.TDE.HSM.MK.06${randomBytes(16).toString('hex').toUpperCase()}`;

// 3 ----------------------------------------------------------------------------------------------
const makeMasterKey = async (run: Run, configuration: string): Promise<{ database: Database; label: string }> => {
  chapter('A database process loads libdke_pkcs11.so');
  check(agentsOf(run).length === 0, 'no agent is running');
  const database = openDatabase(run, configuration);
  show('DKE_PKCS11_CONF=pkcs11.toml node test/demo/database-process.ts');
  const opened = await ask(database, { do: 'open', pin: `any text at all ${randomUUID()}` });
  check(opened.token !== '', `${String(opened.library)}: C_Login took an arbitrary PIN`, opened);
  say(`the library started the agent: process ${oneAgent(run)}, log in ${join(run.folder, 'log')}`);
  const label = newLabel();
  await ask(database, { do: 'generate', label });
  say(`C_GenerateKey  ${label}`);
  const found = await ask(database, { do: 'find', label });
  check(found.count === 1, 'C_FindObjects finds the master key by its label', found);
  const wrapped = await ask(database, { do: 'wrap', count: 8 });
  check(wrapped.wrapped === 8 && wrapped.differs === true, '8 data keys wrapped with raw AES-CBC', wrapped);
  const unwrapped = await ask(database, { do: 'unwrap' });
  check(unwrapped.equal === 8, '8 data keys unwrapped, equal to what was wrapped', unwrapped);
  const attributes = await ask(database, { do: 'attributes' });
  check(
    attributes.sensitive === true && attributes.extractable === false && attributes.valueLen === 32,
    'the key is sensitive, not extractable, 32 bytes, made here',
    attributes,
  );
  check(String(attributes.value).includes('CKR_ATTRIBUTE_SENSITIVE'), 'CKA_VALUE is refused: sensitive', attributes);
  return { database, label };
};

// 4 ----------------------------------------------------------------------------------------------
const softDelete = async (run: Run, database: Database, key: { readonly id: string }): Promise<void> => {
  chapter('The master key is soft-deleted');
  const path = `/api/keys/${key.id}`;
  const kinds = await recordsOf(run.folder, key.id);
  check(kinds.has('vault-copy') && kinds.has('sealed-copy'), 'the store holds a vault copy and a sealed copy', [
    ...kinds.keys(),
  ]);
  const deleted = await run.api.call<{ key: { state: string }; vaultCopyCleared: boolean }>('DELETE', path);
  show(`curl -X DELETE ${run.server.url}${path}`);
  check(deleted.key.state === 'soft-deleted', 'its state is soft-deleted', deleted);
  const after = await recordsOf(run.folder, key.id);
  check(deleted.vaultCopyCleared && !after.has('vault-copy'), 'the vault copy is gone', [...after.keys()]);
  check(after.has('sealed-copy'), 'the sealed copy is untouched');
  const unwrapped = await ask(database, { do: 'unwrap' });
  check(unwrapped.equal === 8, 'the same open session still decrypts', unwrapped);
  const wrapped = await ask(database, { do: 'wrap', count: 1 });
  check(wrapped.wrapped === 9, 'and still encrypts: the key went back into its vault from the sealed copy', wrapped);
  const changes = (await run.api.audit(`subjectId=${key.id}`)).map(({ kind }) => kind);
  const [from, to] = [changes.indexOf('key.deleted'), changes.indexOf('key.reimported')];
  check(from >= 0 && to > from, 'the audit log shows key.deleted, then key.reimported', changes);
};

// 5 ----------------------------------------------------------------------------------------------
const serveCloud = async (run: Run): Promise<void> => {
  chapter('A cloud key service calls the XKS proxy');
  const { api, server } = run;
  const vault = await api.call<{ id: string }>('POST', '/api/vaults', { name: 'cloud' });
  const key = await api.call<{ id: string }>('POST', '/api/keys', { name: 'orders', vaultId: vault.id });
  const made = { name: 'aws-eu', vaultId: vault.id, keyId: key.id };
  const endpoint = await api.call<{ id: string; uriPath: string }>('POST', '/api/endpoints', made);
  const file = await api.call<{
    XksProxyUriPath: string;
    XksProxyAuthenticationCredential: { AccessKeyId: string; RawSecretAccessKey: string };
  }>('POST', `/api/endpoints/${endpoint.id}/credentials`);
  say(`vault, key ${key.id} and key store endpoint ${endpoint.uriPath}`);

  const { AccessKeyId: accessKeyId, RawSecretAccessKey } = file.XksProxyAuthenticationCredential;
  const secretAccessKey = Buffer.from(RawSecretAccessKey);
  const plaintext = randomBytes(32).toString('base64');
  const associated = Buffer.from('project=orders').toString('base64');
  const metadata = (kmsOperation: string) => ({
    awsPrincipalArn: 'arn:aws:iam::111122223333:user/alice',
    kmsKeyArn: 'arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
    kmsOperation,
    kmsRequestId: randomUUID(),
  });
  const requestTo = (path: string, body: object): CurlRequest => ({
    url: `${server.url}${file.XksProxyUriPath}${path}`,
    caFile: server.caFile,
    body: JSON.stringify(body),
    accessKeyId,
    secretAccessKey,
  });
  const health = requestTo('/health', {
    requestMetadata: { kmsRequestId: randomUUID(), kmsOperation: 'KmsHealthCheck' },
  });
  show(curlLine(health));
  const healthy = await curlXks(health);
  check(healthy.status === 200 && healthy.body.xksProxyVendor !== undefined, 'GetHealthStatus: 200', healthy);
  const described = await curlXks(requestTo(`/keys/${key.id}/metadata`, { requestMetadata: metadata('DescribeKey') }));
  check(
    described.status === 200 && described.body.keySpec === 'AES_256' && described.body.keyStatus === 'ENABLED',
    'GetKeyMetadata: AES_256, ENABLED, ENCRYPT and DECRYPT',
    described,
  );
  const encryption = requestTo(`/keys/${key.id}/encrypt`, {
    requestMetadata: metadata('Encrypt'),
    additionalAuthenticatedData: associated,
    plaintext,
    encryptionAlgorithm: 'AES_GCM',
    ciphertextDataIntegrityValueAlgorithm: 'SHA_256',
  });
  const sealed = await curlXks(encryption);
  check(
    sealed.status === 200 && typeof sealed.body.ciphertext === 'string' && sealed.body.ciphertext !== plaintext,
    'Encrypt: 200, with ciphertext, initialization vector, tag and integrity value',
    { status: sealed.status, errorName: sealed.body.errorName, errorMessage: sealed.body.errorMessage },
  );
  const { ciphertextDataIntegrityValue: _, ...parts } = sealed.body;
  const decryption = (id: string) =>
    requestTo(`/keys/${id}/decrypt`, {
      requestMetadata: metadata('Decrypt'),
      additionalAuthenticatedData: associated,
      encryptionAlgorithm: 'AES_GCM',
      ...parts,
    });
  const opened = await curlXks(decryption(key.id));
  check(opened.status === 200 && opened.body.plaintext === plaintext, 'Decrypt: 200, the plaintext is back', {
    status: opened.status,
  });

  const wrongSecret = Buffer.from(randomBytes(32).toString('base64'));
  const refusals: readonly (readonly [string, CurlRequest, number, string])[] = [
    ['a wrong secret', { ...health, secretAccessKey: wrongSecret }, 401, 'AuthenticationFailedException'],
    ['the key id in another case', decryption(key.id.toUpperCase()), 404, 'KeyNotFoundException'],
    ['an expired date', { ...health, date: '20200101T000000Z' }, 401, 'AuthenticationFailedException'],
  ];
  for (const [what, request, status, errorName] of refusals) {
    const answer = await curlXks(request);
    check(answer.status === status && answer.body.errorName === errorName, `${what}: ${status} ${errorName}`, answer);
  }
  run.secrets.push(secretAccessKey);
};

// 6 ----------------------------------------------------------------------------------------------
const destroy = async (
  run: Run,
  database: Database,
  names: { readonly applicationId: string; readonly configuration: string; readonly label: string },
): Promise<void> => {
  chapter('The master key is destroyed permanently');
  const { applicationId, configuration, label } = names;
  const second = openDatabase(run, configuration);
  await ask(second, { do: 'open', pin: 'another PIN' });
  await ask(second, { do: 'find', label });
  const before = await ask(second, { do: 'wrap', count: 1 });
  check(before.wrapped === 1, 'a second database process uses the same key', before);
  const key = await run.api.masterKey(applicationId, label);
  const records = await recordsOf(run.folder, key.id);
  const sealed = records.get('sealed-copy');
  if (sealed === undefined) throw new DemonstrationFailure('the store holds the sealed copy');
  check(filesWith(run.server.dataDirectory, sealed).length > 0, "the sealed copy's bytes are in the store's files");

  await ask(database, { do: 'destroy' });
  say('C_DestroyObject');
  for (const [who, process] of [
    ['its own session', database],
    ['the other process', second],
  ] as const) {
    const refused = await process.ask({ do: 'unwrap' });
    check(!refused.ok, `${who} stops at once: ${String(refused.error)}`, refused);
    const found = await ask(process, { do: 'find', label });
    check(found.count === 0, `${who} no longer finds it`, found);
  }
  const erased = await until('the erasure run', async () => {
    const now = await run.api.masterKey(applicationId, label);
    return now.unrecoverableAt === null ? undefined : now;
  });
  check(erased.state === 'destroyed' && !erased.sealedCopy && !erased.vaultCopy, 'both copies are wiped', erased);
  check(
    [...records.values()].every((record) => filesWith(run.server.dataDirectory, record).length === 0),
    "their bytes are in none of the store's files",
  );
  say(`destroyed ${erased.destroyedAt}; the service knows no copy that opens it from ${erased.unrecoverableAt}`);

  const agent = oneAgent(run);
  await endProcess(agent);
  await run.server.stop();
  const { port } = run.server;
  run.server = await startServerProcess({ folder: run.folder, program: command, toml: settings, port });
  say(`server restarted on port ${port}; agent ${agent} ended`);
  const found = await ask(second, { do: 'find', label });
  check(found.count === 0, `a new agent (process ${oneAgent(run)}) does not find it either`, found);
  const reread = await run.api.masterKey(applicationId, label);
  check(reread.state === 'destroyed' && !reread.sealedCopy, 'the restarted server keeps it destroyed', reread);
  const event = (await run.api.audit(`subjectId=${key.id}`)).find(({ kind }) => kind === 'key.destroyed');
  if (event === undefined) throw new DemonstrationFailure('the audit log shows key.destroyed');
  check(
    event.actorKind === 'application' && event.actorName === 'erp' && event.at >= String(erased.destroyedAt),
    `the audit log tells who (${event.actorKind} ${event.actorName}), what (${event.kind} ${key.id}) and when (${event.at})`,
    event,
  );

  const next = newLabel();
  await ask(second, { do: 'generate', label: next });
  const used = await ask(second, { do: 'wrap', count: 1 });
  check(used.wrapped === 2, 'the database sets a new master key and continues', used);
};

// ------------------------------------------------------------------------------------------------
const checkSecrecy = (run: Run): void => {
  chapter('What is to be seen from outside');
  const processes = [run.server.child.pid ?? 0, oneAgent(run), ...run.databases.map(({ pid }) => pid)];
  const lines = processes.map((pid) => readFileSync(`/proc/${pid}/cmdline`));
  check(
    lines.every((line) => !run.secrets.some((secret) => line.includes(secret))),
    'no process list holds a token, an access_guid or a secret access key',
  );
  const places = [run.folder, join(run.folder, 'log'), run.server.dataDirectory];
  const holders = run.secrets.flatMap((secret) => places.flatMap((place) => filesWith(place, secret)));
  check(
    holders.length > 0 && holders.every((name) => name === 'pkcs11.toml'),
    'of all files only pkcs11.toml does: no log, no database',
    holders,
  );
};

const tell = (run: Run, configuration: string): void => {
  const tokenFile = join(run.folder, 'token');
  writeFileSync(tokenFile, `${run.adminToken}\n`, { mode: 0o600 });
  process.stdout.write(`
Left running. The console, with the token to sign in:

  ${run.server.url}/
  ${run.adminToken}

The dke command:

  export DKE_SERVER=${run.server.url} DKE_CA_FILE=${run.server.caFile}
  export DKE_TOKEN_FILE=${tokenFile}
  ${process.execPath} ${program} audit list

pkcs11-tool (Debian's package opensc) as a database would:

  export DKE_PKCS11_CONF=${configuration}
  export DKE_PKCS11_SOCKET=${run.socket}
  pkcs11-tool --module ${library} --login --pin any --list-objects
  pkcs11-tool --module ${library} --login --pin any --keygen --key-type AES:32 --label MY.KEY --sensitive

To end it (an agent that you started later ends on its own after ten minutes):

  kill ${[run.server.child.pid, ...agentsOf(run).map(([pid]) => pid)].join(' ')}; rm -r ${run.folder}
`);
};

const main = async (): Promise<number> => {
  const { values } = parseArgs({ options: { keep: { type: 'boolean', default: false } } });
  const folder = mkdtempSync(join(tmpdir(), 'dke-demo-'));
  let run: Run | undefined;
  let code = 1;
  try {
    run = await startServer(folder);
    await checkFirstStart(run);
    const { applicationId, configuration } = await register(run);
    const { database, label } = await makeMasterKey(run, configuration);
    await softDelete(run, database, await run.api.masterKey(applicationId, label));
    await serveCloud(run);
    await destroy(run, database, { applicationId, configuration, label });
    checkSecrecy(run);
    code = 0;
    process.stdout.write('\nEverything was as it should be.\n');
    for (const each of run.databases) await each.stop();
    if (values.keep) {
      run.server.leave();
      tell(run, configuration);
      return code;
    }
  } catch (error) {
    const reason = error instanceof DemonstrationFailure ? `this is not as expected: ${error.message}` : String(error);
    process.stderr.write(`\nThe demonstration ends here: ${reason}\n`);
    process.stderr.write(`Logs and data are in ${folder}\n`);
  }
  for (const each of run?.databases ?? []) await each.stop();
  for (const [pid] of run === undefined ? [] : agentsOf(run)) await endProcess(pid);
  await run?.server.stop();
  if (code === 0) rmSync(folder, { recursive: true, force: true });
  return code;
};

process.exit(await main());
