// The messages for a database administrator when a key is unavailable: every cause of the
// provider's log, really triggered, with the line that names the failure and its fix, the return
// value that the database prints, and the request id of the refusal in the service. The record
// below does not compile without a way to trigger each cause.
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openLogs } from '../../provider/agent/settings/log.ts';
import { type CauseName, type CauseRow, causeNames, causes, returnValuesOf } from '../../provider/schema/causes.ts';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { type AgentProcess, main as agentMain, startAgent } from '../support/agent-process.ts';
import { type Authority, makeAuthority } from '../support/authority.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { type Answer, type Database, startDatabase } from '../support/database.ts';
import { endProcess, processesWith, until } from '../support/host.ts';
import { library } from '../support/pkcs11-host.ts';
import { type Site, startSite } from '../support/site.ts';
import { queryStored } from '../support/test-store.ts';

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log('skipped: causes that need another user');
const nobody = 65_534;
/** A user whose directory below /tmp is private. */
const somebody = 54_321;

const pin = `pin-${randomBytes(16).toString('hex')}`;
const zeroIv = '00'.repeat(16);
const data = '42'.repeat(32);

let site: Site;
let authority: Authority;
let erp: RegisteredApplication;
let groupId: string;
let working: Database;
const secrets = new Set<string>([pin]);
const ends: (() => unknown)[] = [];
let cases = 0;

beforeAll(async () => {
  site = await startSite({ toml: '[tls]\nclient_certificates = true\n' });
  chmodSync(site.folder, 0o755);
  authority = makeAuthority(site.folder, 'authority');
  groupId = await createGroup(site.api, 'finance');
  erp = await registerApplication(site.api, 'erp', groupId);
  secrets.add(erp.accessGuid);
  working = site.database(site.config('erp', erp));
  expect((await working.call('open', { pin })).rv).toBe('CKR_OK');
});
afterAll(async () => {
  for (const end of ends.reverse()) await end();
  await site.end();
});

interface Host {
  readonly folder: string;
  readonly config: string;
  readonly logs: string;
}
/** pkcs11.toml of a host with a log directory of its own. */
const host = (change: (toml: string) => string = (toml) => toml, issued: RegisteredApplication = erp): Host => {
  const folder = join(site.folder, `host-${++cases}`);
  const logs = join(folder, 'log');
  mkdirSync(logs, { recursive: true });
  const config = join(folder, 'pkcs11.toml');
  const toml =
    `${issued.config.pkcs11_toml.trimEnd()}\nca_file = "${site.server.caFile}"\nlog_dir = "${logs}"\n` +
    'connect_timeout_ms = 20000\ncall_timeout_ms = 20000\n';
  writeFileSync(config, change(toml), { mode: 0o600 });
  return { folder, config, logs };
};
/** A host whose database runs as another user: configuration and log directory are that user's. */
const hostOf = (user: number): Host => {
  const made = host();
  for (const path of [made.config, made.logs]) chownSync(path, user, user);
  return made;
};
const setting = (name: string, value: string | number) => (toml: string) =>
  toml.replace(new RegExp(`^${name} = .*$`, 'm'), `${name} = ${JSON.stringify(value)}`);
const at = (origin: string) => (toml: string) => toml.replace(/https:\/\/127\.0\.0\.1:\d+/, origin);

/** An application of its own that encrypts under AES-GCM, with one IV each time. */
const sealing = async (name: string) => {
  const issued = await registerApplication(site.api, name, groupId);
  secrets.add(issued.accessGuid);
  const on = host(undefined, issued);
  const process_ = await opened(on.config);
  const { handle = 0 } = await process_.call('generate', { label: `SEALING-${name}` });
  const seal = () => process_.call('seal', { handle, iv: '00'.repeat(12), data });
  return { on, seal, application: issued.application };
};

interface Options {
  readonly socket?: string;
  readonly user?: number;
  readonly library?: string;
  readonly environment?: NodeJS.ProcessEnv;
}
const database = (config: string, options: Options = {}): Database => {
  const environment = {
    ...(options.library === undefined ? {} : { DKE_TEST_LIBRARY: options.library }),
    DKE_AGENT_LOG_DIR: site.logDirectory,
    ...options.environment,
  };
  const { user } = options;
  const made = startDatabase({
    config,
    socket: options.socket ?? site.socket,
    environment,
    ...(user === undefined ? {} : { user }),
  });
  ends.push(() => made.stop());
  return made;
};
/** C_Initialize to C_Login, the first calls of a database. */
const opening = (config: string, options?: Options): Promise<Answer> => database(config, options).call('open', { pin });
const opened = async (config: string, options?: Options): Promise<Database> => {
  const made = database(config, options);
  expect((await made.call('open', { pin })).rv).toBe('CKR_OK');
  return made;
};
/** Opens, which calls no service, and searches for a key. */
const looking = async (config: string): Promise<Answer> => (await opened(config)).call('find', { label: 'ANY' });
const key = async (label: string): Promise<number> => {
  const { rv, handle = 0 } = await working.call('generate', { label });
  expect(rv).toBe('CKR_OK');
  return handle;
};
const keyId = async (label: string): Promise<string> => (await site.api.masterKey(erp.application.id, label)).id;

/** A service of a test's own making, with a certificate; answers its origin. */
const standIn = async (
  answer: RequestListener,
  certificate: Partial<Parameters<Authority['issue']>[0]> = {},
): Promise<string> => {
  const issued = authority.issue({
    commonName: 'stand-in',
    names: ['IP:127.0.0.1'],
    usage: 'serverAuth',
    ...certificate,
  });
  const server = createServer({ cert: readFileSync(issued.certificate), key: readFileSync(issued.key) });
  server.on('request', answer).on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
};
const trusting = (origin: string) => (toml: string) => setting('ca_file', authority.certificate)(at(origin)(toml));
const answering =
  (status: number, type: string, body: string): RequestListener =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': type });
    response.end(body);
  };

const ownAgent = async (options: Parameters<typeof startAgent>[1] = {}): Promise<AgentProcess & { folder: string }> => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-log-'));
  chmodSync(folder, 0o755);
  const agent = await startAgent(folder, options);
  ends.push(async () => {
    await agent.stop();
    for (const [pid] of processesWith(agent.socket)) await endProcess(pid);
    rmSync(folder, { recursive: true, force: true });
  });
  return { ...agent, folder };
};
/** The library in its own folder, with the given files next to it. */
const installed = (agent?: string): { readonly library: string; readonly socket: string } => {
  const folder = mkdtempSync(join(site.folder, 'install-'));
  copyFileSync(library, join(folder, 'libdke_pkcs11.so'));
  if (agent !== undefined) writeFileSync(join(folder, 'dke-agent'), agent, { mode: 0o755 });
  return { library: join(folder, 'libdke_pkcs11.so'), socket: join(folder, 'agent.sock') };
};

interface Made {
  readonly answer: Answer;
  /** Folders whose logs may have the line. */
  readonly logs: readonly string[];
  /** Something that the line must say next to the words of its cause. */
  readonly says: RegExp;
  /** The kind of the service's record that has the same id. */
  readonly audited?: string;
}
const made = (answer: Answer, { logs }: Pick<Host, 'logs'>, says: RegExp, audited?: string): Made => ({
  answer,
  logs: [logs, site.logDirectory],
  says,
  ...(audited === undefined ? {} : { audited }),
});

/** A stand-in that the configuration trusts. */
const withOrigin = async (origin: string, says: RegExp): Promise<Made> => {
  const on = host(trusting(origin));
  return made(await looking(on.config), on, says);
};

const needsRoot: ReadonlySet<CauseName> = new Set([
  'socket-directory',
  'socket-rights',
  'agent-stranger',
  'peer-refused',
  'config-owner',
]);

const ways = {
  'agent-missing': async () => {
    const on = host();
    const at_ = installed();
    return made(await opening(on.config, at_), on, /dke-agent: No such file/);
  },
  'agent-start': async () => {
    const on = host();
    return made(await opening(on.config, installed('#!/bin/sh\nexit 3\n')), on, /\(exit code 3\)/);
  },
  'agent-lost': async () => {
    const on = host();
    const answer = await opening(on.config, { socket: join(site.folder, 'nowhere/agent.sock') });
    return made(answer, on, /nowhere.*No such file or directory/);
  },
  'agent-slow': async () => {
    const on = host(setting('call_timeout_ms', 1500));
    const agent = await ownAgent();
    const process_ = await opened(on.config, { socket: agent.socket });
    agent.child.kill('SIGSTOP');
    // The signal takes effect a little later, thread by thread.
    const { pid = 0 } = agent.child;
    const threads = `/proc/${pid}/task`;
    await until('every thread of the agent to stop', async () =>
      readdirSync(threads).every((thread) => / T /.test(readFileSync(`${threads}/${thread}/stat`, 'utf8')))
        ? true
        : undefined,
    );
    const answers = [];
    for (let n = 0; n < 3; n += 1) answers.push(await process_.call('random', { length: 8 }));
    agent.child.kill('SIGCONT');
    expect((await process_.call('finalize', {})).rv).toBe('CKR_OK');
    // The first one is logged, the others are counted.
    const text = readFileSync(join(on.logs, 'library.log'), 'utf8');
    expect(text.match(/ agent-slow /g)).toHaveLength(2);
    expect(text).toMatch(/agent-slow CKR_DEVICE_ERROR: 2 more since the last line about it/);
    return made(answers[0] ?? { rv: '' }, on, /call C_GenerateRandom within 1500 ms/);
  },
  'agent-interrupted': async () => {
    const asked = Promise.withResolvers<void>();
    const origin = await standIn(() => asked.resolve());
    const on = host(trusting(origin));
    const agent = await ownAgent();
    const process_ = await opened(on.config, { socket: agent.socket });
    const answer = process_.call('generate', { label: 'INTERRUPTED' });
    await asked.promise;
    agent.child.kill('SIGKILL');
    return made(await answer, on, /call C_GenerateKey/);
  },
  'socket-directory': async () => {
    const on = hostOf(somebody);
    const folder = `/tmp/dke-pkcs11-${somebody}`;
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    chownSync(folder, somebody, somebody);
    ends.push(() => rmSync(folder, { recursive: true, force: true }));
    const environment = { XDG_RUNTIME_DIR: '' };
    return made(await opening(on.config, { socket: '', user: somebody, environment }), on, new RegExp(folder));
  },
  'socket-rights': async () => {
    const on = hostOf(nobody);
    return made(await opening(on.config, { user: nobody }), on, /agent\.sock: Permission denied/);
  },
  'agent-stranger': async () => {
    const on = host();
    const folder = mkdtempSync(join(tmpdir(), 'dke-stranger-'));
    chmodSync(folder, 0o777);
    const socket = join(folder, 'agent.sock');
    const script =
      `process.setgroups([]); process.setgid(${nobody}); process.setuid(${nobody});` +
      "require('net').createServer((s) => s.on('data', () => s.write(Buffer.from([0xd1])))).listen(process.argv[1], () => console.log('up'))";
    const listener = spawn(process.execPath, ['-e', script, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(listener.stdout, 'data');
    ends.push(() => {
      listener.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    });
    return made(await opening(on.config, { socket }), on, /runs as uid 65534/);
  },
  'agent-refuses': async () => {
    const on = host((toml) => toml.replace('server_url', 'servers_url'));
    return made(await opening(on.config), on, /pkcs11\.toml \(0x00000030\)/);
  },
  'peer-refused': async () => {
    const on = hostOf(nobody);
    const agent = await ownAgent();
    chmodSync(agent.socket, 0o666);
    const answer = await opening(on.config, { socket: agent.socket, user: nobody });
    return { ...made(answer, on, /uid 65534.*uid 0 and root/), logs: [join(agent.folder, 'log')] };
  },
  'user-limit': async () => {
    const on = host();
    const agent = await ownAgent({ environment: { DKE_AGENT_USER_LIMITS: 'connections=1' } });
    await opened(on.config, { socket: agent.socket });
    const answer = await opening(on.config, { socket: agent.socket });
    return {
      ...made(answer, on, /uid \d+ have reached the limit of 1 connections/),
      logs: [join(agent.folder, 'log')],
    };
  },
  'version-mismatch': async () => {
    const on = host();
    const { library: next } = installed();
    const module = resolve(import.meta.dirname, '../../provider/module');
    const sources = readdirSync(module, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.c'))
      .map((name) => join(module, name));
    execFileSync('cc', [
      ...['-shared', '-fPIC', '-D_GNU_SOURCE', '-DDKE_VERSION_MAJOR=2', '-DDKE_VERSION_MINOR=7', '-I', module],
      ...['-I', resolve(module, '../../node_modules/pkcs11js/includes/pkcs11'), '-o', next, ...sources],
      ...['-lpthread', '-ldl'],
    ]);
    return made(await opening(on.config, { library: next }), on, /version 2\.7, the agent is 1\.0/);
  },
  'config-missing': async () => {
    const on = host();
    rmSync(on.config);
    return made(await opening(on.config), on, new RegExp(on.config));
  },
  'config-unreadable': async () => {
    const on = host();
    rmSync(on.config);
    mkdirSync(on.config, { mode: 0o700 });
    return made(await opening(on.config), on, /not a regular file/);
  },
  'config-owner': async () => {
    const folder = mkdtempSync(join(tmpdir(), 'dke-log-'));
    chownSync(folder, nobody, nobody);
    const on = { config: join(folder, 'pkcs11.toml'), logs: folder };
    copyFileSync(host().config, on.config);
    chownSync(on.config, 1, 1);
    // The owner is checked before the mode. The library, as another user, reads its time limits
    // from the file.
    chmodSync(on.config, 0o644);
    // One agent for all users of a host, as systemd starts it: root would act for the owner, and an
    // agent of its own cannot be started by a user who may not enter the folder of this checkout.
    const socket = join(folder, 'agent.sock');
    const agent = spawn(
      'systemd-socket-activate',
      ['--listen', socket, '--setenv', `DKE_AGENT_LOG_DIR=${folder}`, process.execPath, agentMain],
      { stdio: 'ignore' },
    );
    ends.push(async () => {
      agent.kill();
      await once(agent, 'exit');
      rmSync(folder, { recursive: true, force: true });
    });
    await expect.poll(() => existsSync(socket)).toBe(true);
    chmodSync(socket, 0o666);
    const answer = await opening(on.config, { socket, user: nobody });
    return made(answer, on, /owned by uid 1, but the process runs as uid 65534/);
  },
  'config-mode': async () => {
    const on = host();
    chmodSync(on.config, 0o640);
    return made(await opening(on.config), on, /mode 640/);
  },
  'config-malformed': async () => {
    const on = host((toml) => `${toml}access_token = [`);
    return made(await opening(on.config), on, /not valid TOML \(line \d+, column \d+\)/);
  },
  'client-certificate': async () => {
    const { certificate, key } = authority.issue({ commonName: 'db1' });
    chmodSync(key, 0o640);
    const on = host((toml) => `${toml}client_certificate = "${certificate}"\nclient_key = "${key}"\n`);
    return made(await opening(on.config), on, /mode 640/);
  },
  'ca-file': async () => {
    const on = host(setting('ca_file', '/nowhere/ca.pem'));
    return made(await opening(on.config), on, /\/nowhere\/ca\.pem.*ENOENT/);
  },
  'log-directory': async () => {
    const on = host();
    const blocked = join(on.config, 'log');
    writeFileSync(on.config, setting('log_dir', blocked)(readFileSync(on.config, 'utf8')), { mode: 0o600 });
    const XDG_STATE_HOME = join(on.folder, 'state');
    const agent = await ownAgent({ environment: { XDG_STATE_HOME } });
    const answer = await opening(on.config, { socket: agent.socket });
    return { ...made(answer, on, /pkcs11\.toml\/log cannot be written/), logs: [join(XDG_STATE_HOME, 'dke-pkcs11')] };
  },
  'service-down': async () => {
    const on = host(at('https://127.0.0.1:1'));
    return made(await looking(on.config), on, /127\.0\.0\.1:1 .*ECONNREFUSED/);
  },
  'service-name': async () => {
    const on = host(at('https://nowhere.invalid'));
    return made(await looking(on.config), on, /nowhere\.invalid.*(?:ENOTFOUND|EAI_AGAIN)/);
  },
  'service-slow': async () => {
    const origin = await standIn(() => undefined);
    const on = host((toml) => setting('call_timeout_ms', 1500)(trusting(origin)(toml)));
    return made(await looking(on.config), on, /TimeoutError|UND_ERR_HEADERS_TIMEOUT/);
  },
  'tls-untrusted': async () => {
    const on = host((toml) => toml.replace(/^ca_file.*\n/m, ''));
    return made(await looking(on.config), on, /SELF_SIGNED_CERT/);
  },
  'tls-expired': async () => {
    const origin = await standIn(() => undefined, { notBefore: '20260101000000Z', notAfter: '20260102000000Z' });
    return withOrigin(origin, /CERT_HAS_EXPIRED/);
  },
  'tls-name': async () => {
    const origin = await standIn(() => undefined, { names: ['DNS:other.example'] });
    return withOrigin(origin, /ERR_TLS_CERT_ALTNAME_INVALID/);
  },
  'tls-failed': async () => {
    const server = createTcpServer((socket) => socket.on('error', () => undefined).end('HTTP/1.0 400 Bad\r\n\r\n'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ends.push(() => server.close());
    return withOrigin(`https://127.0.0.1:${(server.address() as AddressInfo).port}`, /ERR_SSL|EPROTO/);
  },
  'service-busy': async () => {
    const problem = { code: 'unavailable', title: 'the service is starting', status: 503 };
    const origin = await standIn(answering(503, 'application/problem+json', JSON.stringify(problem)));
    return withOrigin(origin, /the service is starting/);
  },
  'service-failed': async () => {
    const origin = await standIn(answering(404, 'text/html', '<h1>Not Found</h1>'));
    return withOrigin(origin, /status 404/);
  },
  'token-unknown': async () => {
    const wrong = erp.accessGuid.replace(/.$/, (c) => (c === 'A' ? 'B' : 'A'));
    secrets.add(wrong);
    const on = host((toml) => toml.replaceAll(erp.accessGuid, wrong));
    return made(await looking(on.config), on, /does not know/);
  },
  'token-removed': async () => {
    const rotated = await registerApplication(site.api, 'rotated', groupId);
    secrets.add(rotated.accessGuid);
    const path = `/api/tde/applications/${rotated.application.id}/access-guids`;
    const second = await site.api.call<RegisteredApplication>('POST', path);
    secrets.add(second.accessGuid);
    await site.api.call('DELETE', `${path}/${rotated.record.id}`);
    const on = host(undefined, rotated);
    return made(await looking(on.config), on, /rotate-guid/);
  },
  'application-disabled': async () => {
    const suspended = await registerApplication(site.api, 'suspended', groupId);
    secrets.add(suspended.accessGuid);
    const on = host(undefined, suspended);
    const process_ = await opened(on.config);
    expect((await process_.call('find', { label: 'ANY' })).rv).toBe('CKR_OK');
    await site.api.call('POST', `/api/tde/applications/${suspended.application.id}/disable`);
    return made(await process_.call('find', { label: 'ANY' }), on, /dke tde app enable/);
  },
  'network-refused': async () => {
    const elsewhere = await registerApplication(site.api, 'elsewhere', groupId);
    secrets.add(elsewhere.accessGuid);
    const path = `/api/tde/applications/${elsewhere.application.id}/callers`;
    await site.api.call('PUT', path, { networks: ['10.0.0.0/8'], certificates: [] });
    const on = host(undefined, elsewhere);
    return made(await looking(on.config), on, /127\.0\.0\.1.*--add-network=127\.0\.0\.1/);
  },
  'certificate-refused': async () => {
    const pinned = await registerApplication(site.api, 'pinned', groupId);
    secrets.add(pinned.accessGuid);
    const { certificate } = authority.issue({ commonName: 'another host' });
    const path = `/api/tde/applications/${pinned.application.id}/callers`;
    await site.api.call('PUT', path, { networks: [], certificates: [readFileSync(certificate, 'utf8')] });
    const on = host(undefined, pinned);
    return made(await looking(on.config), on, /requires a client certificate/);
  },
  'not-allowed': async () => {
    const handle = await key('NOT-ALLOWED');
    const member = await registerApplication(site.api, 'member', groupId);
    secrets.add(member.accessGuid);
    const on = host(undefined, member);
    const answer = await (await opened(on.config)).call('destroy', { handle });
    return made(answer, on, /another application of the group/, 'key.denied');
  },
  'label-missing': async () => {
    const on = host();
    const answer = await looking(on.config);
    expect(answer.handles).toEqual([]);
    return made(answer, on, /no object has the label ANY/);
  },
  'label-taken': async () => {
    const on = host();
    const label = 'ORACLE.TDE.HSM.MK.TAKEN';
    await key(label);
    return made(
      await (await opened(on.config)).call('generate', { label }),
      on,
      /the label ORACLE\.TDE\.HSM\.MK\.TAKEN is already used by the secret key with handle \d+ of this application.*use another label/,
    );
  },
  'master-key-attribute': async () => {
    const on = host();
    return made(
      await (await opened(on.config)).call('generate', { label: 'ORACLE.TDE.HSM.MK.CLOSED', decrypt: false }),
      on,
      /a master key or its metadata cannot have CKA_DECRYPT false.*have the program set it to true/,
    );
  },
  'key-disabled': async () => {
    const on = host();
    const handle = await key('DISABLED');
    await site.api.call('POST', `/api/keys/${await keyId('DISABLED')}/disable`);
    const answer = await (await opened(on.config)).call('encrypt', { handle, iv: zeroIv, data });
    return made(answer, on, /"label":"DISABLED".*dke key enable|dke key enable.*"label":"DISABLED"/, 'key.denied');
  },
  'key-use': async () => {
    const on = host();
    const handle = await key('USE');
    const process_ = await opened(on.config);
    expect((await process_.call('encrypt', { handle, iv: zeroIv, data })).rv).toBe('CKR_OK');
    expect((await working.call('setFlag', { handle, name: 'ENCRYPT', value: false })).rv).toBe('CKR_OK');
    return made(await process_.call('encrypt', { handle, iv: zeroIv, data }), on, /not for encrypt/);
  },
  'key-destroyed': async () => {
    const on = host();
    const handle = await key('DESTROYED');
    const process_ = await opened(on.config);
    expect((await process_.call('encrypt', { handle, iv: zeroIv, data })).rv).toBe('CKR_OK');
    expect((await working.call('destroy', { handle })).rv).toBe('CKR_OK');
    return made(
      await process_.call('encrypt', { handle, iv: zeroIv, data }),
      on,
      wording('key-destroyed'),
      'key.denied',
    );
  },
  'key-missing': async () => {
    const handle = await key('ELSEWHERE');
    const outsider = await registerApplication(site.api, 'outsider', await createGroup(site.api, 'apart'));
    secrets.add(outsider.accessGuid);
    const on = host(undefined, outsider);
    const answer = await (await opened(on.config)).call('encrypt', { handle, iv: zeroIv, data });
    return made(answer, on, new RegExp(`handle ${handle} `), 'key.denied');
  },
  'switch-off': async () => {
    const { on, seal } = await sealing('strict');
    expect((await seal()).rv).toBe('CKR_OK');
    return made(await seal(), on, /repeated-ivs.*--permit repeated-ivs/);
  },
  'switch-used': async () => {
    const { on, seal, application } = await sealing('lenient');
    const path = `/api/tde/applications/${application.id}/compatibility`;
    await site.api.call('PUT', path, { switches: ['repeated-ivs'] });
    expect((await seal()).rv).toBe('CKR_OK');
    return made(await seal(), on, /repeated-ivs.*--withdraw repeated-ivs/);
  },
  'key-tampered': async () => {
    const on = host();
    const handle = await key('TAMPERED');
    await site.stopServer();
    await queryStored(site.folder, 'update tde_objects set extractable = 1 where handle = ?', handle);
    await site.startServer();
    return made(
      await (await opened(on.config)).call('encrypt', { handle, iv: zeroIv, data }),
      on,
      /changed outside of DKE/,
    );
  },
} satisfies Record<CauseName, () => Promise<Made>>;

const files = (folder: string): readonly string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .map((name) => join(folder, name))
        .filter((path) => statSync(path).isFile() && /\.log(\.\d+)?$/.test(path))
    : [];
const linesWith = (folders: readonly string[], cause: CauseName): readonly string[] =>
  folders
    .flatMap(files)
    .flatMap((path) => readFileSync(path, 'utf8').split('\n'))
    .filter((line) =>
      causes[cause].told === 'agent' ? line.includes(`"cause":"${cause}"`) : line.includes(` ${cause} `),
    );
/** The text of a cause, with any facts. */
const wording = (cause: CauseName): RegExp => {
  const { what, todo }: CauseRow = causes[cause];
  const escaped = `${what}; ${todo}`.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{\w+\}/g, '.+');
  return new RegExp(escaped);
};

describe('the provider’s log', () => {
  const able = causeNames.filter((name) => isRoot || !needsRoot.has(name));
  test.each(able)(
    '%s: one line with what happened and what to do, and the code that the database prints',
    async (cause) => {
      const { answer, logs, says, audited } = await ways[cause]();
      const values = returnValuesOf(cause).map((name) => `CKR_${name}`);
      if (values.length === 0) expect(answer.rv).toBe('CKR_OK');
      else expect(values).toContain(answer.rv);

      const line = await until(`a line of ${cause}`, async () =>
        linesWith(logs, cause).find((each) => says.test(each)),
      );
      expect(line).toMatch(wording(cause));
      if (values.length > 0 && cause !== 'peer-refused') expect(line).toContain(answer.rv);
      if (audited === undefined) return;
      const { id } = JSON.parse(line) as { readonly id: string };
      expect((await site.api.audit(`requestId=${id}`)).map(({ kind }) => kind)).toContain(audited);
    },
  );

  test('tells a failure that repeats once, then how often: no heartbeat fills it', async () => {
    const on = host(at('https://127.0.0.1:1'));
    const agent = await ownAgent();
    const process_ = await opened(on.config, { socket: agent.socket });
    for (let n = 0; n < 40; n += 1) expect((await process_.call('find', { label: 'ANY' })).rv).toBe('CKR_DEVICE_ERROR');
    await agent.stop();
    const lines = linesWith([on.logs], 'service-down').map(
      (line) => JSON.parse(line) as { count?: number; msg: string },
    );
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatchObject({ count: 39, msg: expect.stringMatching(/^39 more in \d+ s, this is the last: /) });
  });

  test('of the library turns over at 1 MiB and keeps one file', async () => {
    const on = host();
    const path = join(on.logs, 'library.log');
    for (const turn of [1, 2]) {
      writeFileSync(path, `${turn}`.repeat((1 << 20) + 1));
      expect((await opening(on.config, installed())).rv).toBe('CKR_DEVICE_REMOVED');
      expect(statSync(path).size).toBeLessThan(2000);
      expect(readFileSync(`${path}.1`, 'utf8').startsWith(`${turn}`)).toBe(true);
    }
    expect(readdirSync(on.logs).sort()).toEqual(['library.log', 'library.log.1']);
  });

  test('of the agent turns over at 10 MB and keeps ten files more', async () => {
    const folder = mkdtempSync(join(site.folder, 'rotation-'));
    const logs = openLogs({});
    const log = await logs.of(process.geteuid?.() ?? 0, folder, 'info');
    const filler = 'x'.repeat(64_000);
    for (let megabytes = 0; megabytes < 140; megabytes += 1) {
      for (let n = 0; n < 16; n += 1) log.write('info', {}, filler);
      await new Promise((done) => setImmediate(done));
    }
    await logs.close();
    const sizes = readdirSync(folder)
      .filter((name) => name.includes('agent-') && !name.endsWith('.txt'))
      .map((name) => statSync(join(folder, name)).size);
    expect(sizes.length).toBeLessThanOrEqual(11);
    expect(Math.max(...sizes)).toBeLessThan(12_000_000);
  });

  test('never goes to the standard streams of the database', () => {
    expect(working.complaints()).toBe('');
  });

  test('has no secret: no access_guid, no PIN', () => {
    const everything = files(site.folder);
    expect(everything.length).toBeGreaterThan(10);
    for (const path of everything) {
      const text = readFileSync(path, 'utf8');
      for (const secret of secrets) expect(text.includes(secret), path).toBe(false);
    }
  });
});
