// Where the credentials of an application may be used from, on the real server: a database on
// another host that has stolen them is refused, by its network and by the client certificate that
// it does not have.
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { Client } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Application, RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { envelopeType, instanceText, packEnvelope } from '../../server/contract/tde.ts';
import { type Authority, type IssuedCertificate, makeAuthority } from '../support/authority.ts';
import { runCommand } from '../support/command.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { instance } from '../support/open-service.ts';
import { proxyHeader } from '../support/proxy-header.ts';
import { type Site, startSite } from '../support/site.ts';

let site: Site;
let authority: Authority;
let groupId: string;
beforeAll(async () => {
  site = await startSite({ toml: 'trusted_proxies = ["127.0.0.2"]\n[tls]\nclient_certificates = true\n' });
  authority = makeAuthority(site.folder, 'database hosts');
  groupId = await createGroup(site.api, 'finance');
});
afterAll(() => site?.end());

const setCallers = (
  { application }: RegisteredApplication,
  callers: { readonly networks?: readonly string[]; readonly certificates?: readonly string[] },
): Promise<Application> =>
  site.api.call('PUT', `/api/tde/applications/${application.id}/callers`, {
    networks: [],
    certificates: [],
    ...callers,
  });
const own = ({ certificate }: IssuedCertificate): string => readFileSync(certificate, 'utf8');

/**
 * One call of the application, from an address of this host, perhaps in the name of a client behind
 * a balancer.
 */
const info = async (
  issued: RegisteredApplication,
  from: { readonly proxied?: readonly number[]; readonly client?: IssuedCertificate } = {},
): Promise<{ readonly status: number; readonly text: string }> => {
  const { proxied, client: shown } = from;
  const socket = connect({
    port: site.server.port,
    host: '127.0.0.1',
    localAddress: proxied === undefined ? '127.0.0.1' : '127.0.0.2',
  });
  await once(socket, 'connect');
  if (proxied !== undefined) socket.write(proxyHeader(proxied.join('.')));
  const { pathname } = new URL(issued.serverUrl);
  const client = new Client(site.server.url, {
    connect: (_options, done) => {
      const secured = connectTls({
        socket,
        ca: readFileSync(site.server.caFile),
        ALPNProtocols: ['http/1.1'],
        ...(shown === undefined ? {} : { cert: readFileSync(shown.certificate), key: readFileSync(shown.key) }),
      });
      secured.once('secureConnect', () => done(null, secured)).once('error', (error) => done(error, null));
    },
  });
  try {
    const { statusCode, body } = await client.request({
      method: 'POST',
      path: `${pathname}/info`,
      headers: {
        authorization: `Bearer ${issued.accessGuid}`,
        'content-type': envelopeType,
        'x-dke-instance': instanceText(instance),
      },
      body: packEnvelope({}),
    });
    return { status: statusCode, text: await body.text() };
  } finally {
    await client.close();
  }
};

describe('allowed networks', () => {
  test('a caller from another address is refused at once, also on an open connection, and accepted again', async () => {
    const issued = await registerApplication(site.api, 'by network', groupId);
    const database = site.database(site.config('by-network', issued));
    expect((await database.call('open', { pin: 'x' })).rv).toBe('CKR_OK');
    const find = async () => (await database.call('find', { label: 'ANY' })).rv;
    expect(await find()).toBe('CKR_OK');
    await setCallers(issued, { networks: ['10.0.0.0/8', '2001:db8::/48'] });
    expect(await find()).toBe('CKR_ACTION_PROHIBITED');
    await setCallers(issued, { networks: ['10.0.0.0/8', '127.0.0.1'] });
    expect(await find()).toBe('CKR_OK');
  });

  test('behind a balancer, the address that its PROXY header names counts', async () => {
    const issued = await registerApplication(site.api, 'proxied', groupId);
    await setCallers(issued, { networks: ['10.1.0.0/16'] });
    expect(await info(issued, { proxied: [10, 1, 2, 3] })).toMatchObject({ status: 200 });
    const refused = await info(issued, { proxied: [192, 0, 2, 7] });
    expect(refused).toMatchObject({ status: 401 });
    expect(JSON.parse(refused.text)).toMatchObject({
      reason: 'network',
      title: expect.stringContaining('192.0.2.7'),
      detail: expect.stringContaining('dke tde app callers --add-network=192.0.2.7 proxied'),
    });
    expect(await info(issued)).toMatchObject({ status: 401 });
  });

  test.each([
    ['no network', { networks: ['10.0.0.0/33'] }, 'is not an address or a network'],
    ['a name', { networks: ['db1.example'] }, 'is not an address or a network'],
    ['no certificate', { certificates: ['x'] }, 'not exactly one certificate'],
  ])('%s is refused with what to send instead', async (_what, callers, message) => {
    const issued = await registerApplication(site.api, `bad ${message} ${_what}`, groupId);
    const body = { networks: [], certificates: [], ...callers };
    const answer = await site.api.send('PUT', `/api/tde/applications/${issued.application.id}/callers`, body, {
      'if-match': '*',
    });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain(message);
  });
});

describe('client certificates', () => {
  test('only a caller with one of the certificates of the application is served', async () => {
    const issued = await registerApplication(site.api, 'by certificate', groupId);
    const client = authority.issue({ commonName: 'db1' });
    const sibling = authority.issue({ commonName: 'db1' });
    const expired = authority.issue({ commonName: 'db1', notBefore: '20250101000000Z', notAfter: '20250201000000Z' });
    await setCallers(issued, { certificates: [own(client)] });
    const { callers } = await site.api.call<Application>('GET', `/api/tde/applications/${issued.application.id}`);
    expect(callers.certificates).toMatchObject([{ subject: 'CN=db1', expiresAt: expect.stringMatching(/^20/) }]);

    expect(await info(issued, { client })).toMatchObject({ status: 200 });
    for (const other of [sibling, undefined]) {
      const refused = await info(issued, other === undefined ? {} : { client: other });
      expect(refused).toMatchObject({ status: 401 });
      expect(JSON.parse(refused.text)).toMatchObject({ reason: 'certificate' });
    }
    await expect(setCallers(issued, { certificates: [own(expired)] })).rejects.toThrow('expired on');
    const audited = (await site.api.audit('kind=application.callers-changed')).at(-1);
    expect(audited?.details).toMatchObject({ name: 'by certificate', networks: [] });
    expect(JSON.stringify(audited?.details)).not.toContain('BEGIN');
  });

  test('pkcs11.toml names it, a new one is used by the next process, and dke tde app callers changes what is allowed', async () => {
    const issued = await registerApplication(site.api, 'host', groupId);
    const [first, second] = [authority.issue({ commonName: 'db1' }), authority.issue({ commonName: 'db1' })];
    const tokenFile = join(site.folder, 'token');
    writeFileSync(tokenFile, `${site.token}\n`, { mode: 0o600 });
    const environment = { DKE_SERVER: site.server.url, DKE_CA_FILE: site.server.caFile, DKE_TOKEN_FILE: tokenFile };
    const dke = async (...args: string[]): Promise<Application> => {
      const run = await runCommand(['tde', 'app', 'callers', 'host', ...args, '-o', 'json'], { environment });
      expect(run.stderr).toBe('');
      return JSON.parse(run.stdout) as Application;
    };
    const [certificate, key] = [join(site.folder, 'client.crt'), join(site.folder, 'client.key')];
    const install = (made: IssuedCertificate): void => {
      writeFileSync(certificate, readFileSync(made.certificate));
      writeFileSync(key, readFileSync(made.key), { mode: 0o600 });
    };
    install(first);
    const { callers } = await dke('--add-certificate', first.certificate, '--add-network', '127.0.0.0/8');
    expect(callers).toMatchObject({ networks: ['127.0.0.0/8'], certificates: [{ subject: 'CN=db1' }] });

    const config = site.config('host', issued, `client_certificate = "${certificate}"\nclient_key = "${key}"\n`);
    const finds = async (): Promise<string> => {
      const database = site.database(config);
      expect((await database.call('open', { pin: 'x' })).rv).toBe('CKR_OK');
      const { rv } = await database.call('find', { label: 'ANY' });
      await database.stop();
      return rv;
    };
    expect(await finds()).toBe('CKR_OK');
    const both = await dke('--add-certificate', second.certificate);
    expect(both.callers.certificates).toHaveLength(2);
    await dke('--remove-certificate', callers.certificates[0]?.fingerprint ?? '');
    expect(await finds()).toBe('CKR_ACTION_PROHIBITED');
    install(second);
    expect(await finds()).toBe('CKR_OK');
    const check = await runCommand(['provider', 'check', '--conf', config], { environment });
    expect(check.stdout).toContain('application host');
    expect((await dke('--remove-certificate', 'all', '--remove-network', '127.0.0.0/8')).callers).toEqual({
      networks: [],
      certificates: [],
    });
    expect(await info(issued)).toMatchObject({ status: 200 });
  });
});
