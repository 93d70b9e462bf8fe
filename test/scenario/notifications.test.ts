// Notifications on their way out: signed webhooks and e-mail, to servers that are really there.
// What a target did not take is sent again, what points inside is not called.

import { createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openEmail } from '../../server/adapters/sinks/email.ts';
import { isPublicAddress, openWebhook, signatureHeader } from '../../server/adapters/sinks/webhook.ts';
import { type Authority, type IssuedCertificate, makeAuthority } from '../support/authority.ts';
import { freePort } from '../support/daemon.ts';
import { until } from '../support/host.ts';
import { administrator, type OpenedService, openTestService } from '../support/open-service.ts';

let folder: string;
let authority: Authority;
let certificate: IssuedCertificate;
const secret = 'a secret that both sides know';
let secretFile: string;

interface Call {
  readonly body: string;
  readonly signature: string;
}
const calls: Call[] = [];
let answer = 200;
/** What has this in its body is answered with 422. */
let refuses: string | undefined;
let hook: ReturnType<typeof createServer>;
let hookUrl: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-notify-'));
  authority = makeAuthority(folder, 'receivers');
  certificate = authority.issue({
    usage: 'serverAuth',
    commonName: 'localhost',
    names: ['DNS:localhost', 'IP:127.0.0.1'],
  });
  secretFile = join(folder, 'hook.secret');
  writeFileSync(secretFile, `${secret}\n`, { mode: 0o600 });
  hook = createServer(
    { cert: readFileSync(certificate.certificate), key: readFileSync(certificate.key) },
    (request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      request.on('end', () => {
        if (refuses !== undefined && body.includes(refuses)) {
          response.writeHead(422).end();
          return;
        }
        if (answer === 200) calls.push({ body, signature: String(request.headers[signatureHeader]) });
        response.writeHead(answer, answer === 302 ? { location: 'https://localhost/elsewhere' } : {}).end();
      });
    },
  );
  await new Promise<void>((resolve) => {
    hook.listen(0, '127.0.0.1', resolve);
  });
  hookUrl = `https://localhost:${(hook.address() as AddressInfo).port}/dke`;
});
afterAll(() => {
  hook?.closeAllConnections();
  hook?.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  calls.length = 0;
  answer = 200;
});

const message = { id: 'm-1', event: 'test', at: 0, text: 'a test', fix: '', notification: null } as const;
const webhook = (more: object = {}) =>
  openWebhook({
    ...{ name: 'hook', url: hookUrl, secretFile, ca: authority.certificate, allowPrivate: true },
    ...{ minSeverity: 'low', version: '0', now: () => 1_700_000_000_000, read: readFile, ...more },
  } as const);

describe('a webhook', () => {
  test('is signed over its time and its body', async () => {
    await webhook().send(message);
    const [call] = calls;
    const [, seconds, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(call?.signature ?? '') ?? [];
    expect(seconds).toBe('1700000000');
    expect(mac).toBe(createHmac('sha256', secret).update(`${seconds}.${call?.body}`).digest('hex'));
    expect(JSON.parse(call?.body ?? '')).toMatchObject({ id: 'm-1', event: 'test', text: 'a test' });
  });

  test('that points inside is not called, by name or by address', async () => {
    await expect(webhook({ allowPrivate: false }).send(message)).rejects.toThrow('not a public address');
    const byAddress = hookUrl.replace('localhost', '127.0.0.1');
    await expect(webhook({ allowPrivate: false, url: byAddress }).send(message)).rejects.toThrow(
      'not a public address',
    );
    await expect(webhook({ allowPrivate: false, url: 'https://[::1]/' }).send(message)).rejects.toThrow('not a public');
    expect(calls).toEqual([]);
  });

  test('that sends elsewhere is not followed', async () => {
    answer = 302;
    await expect(webhook().send(message)).rejects.toThrow('status 302');
  });

  test('with a certificate of no known authority is not called', async () => {
    await expect(webhook({ ca: undefined }).send(message)).rejects.toThrow();
    expect(calls).toEqual([]);
  });

  test.each([
    ...['127.0.0.1', '10.1.2.3', '172.31.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1', '0.0.0.0', '224.0.0.1'],
    ...['255.255.255.255', '::1', '::', 'fe80::1', 'fc00::1', '::ffff:10.0.0.1', '2002:a00:1::', '64:ff9b::a00:1'],
    ...['2001:db8::1', 'ff02::1', 'localhost', ''],
  ])('%s is not a public address', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
  test.each(['93.184.216.34', '172.32.0.1', '2606:2800:220:1::1'])('%s is one', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });
});

interface Mail {
  readonly text: string;
  readonly secure: boolean;
  readonly user: string;
}
const startMail = async (tls: boolean) => {
  const mails: Mail[] = [];
  const server = new SMTPServer({
    cert: readFileSync(certificate.certificate),
    key: readFileSync(certificate.key),
    ...(tls ? {} : { hideSTARTTLS: true, allowInsecureAuth: true, disabledCommands: ['STARTTLS'] }),
    onAuth: ({ username = '', password }, _session, done) =>
      password === 'mail password' ? done(null, { user: username }) : done(new Error('no')),
    onData: (stream, session, done) => {
      let text = '';
      stream.on('data', (part: Buffer) => {
        text += part.toString('utf8');
      });
      stream.on('end', () => {
        mails.push({ text, secure: session.secure, user: String(session.user) });
        done();
      });
    },
  });
  server.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.server.address() as AddressInfo;
  return { mails, port, close: () => new Promise<void>((resolve) => server.close(resolve)) };
};
const passwordFile = (): string => {
  const path = join(folder, 'mail.password');
  writeFileSync(path, 'mail password\n', { mode: 0o600 });
  return path;
};
const email = (port: number, more: object = {}) =>
  openEmail({
    ...{
      name: 'operators',
      host: 'localhost',
      port,
      tls: 'starttls',
      from: 'dke@example.com',
      to: ['keys@example.com'],
    },
    ...{
      user: 'dke',
      passwordFile: passwordFile(),
      ca: authority.certificate,
      minSeverity: 'low',
      read: readFile,
      ...more,
    },
  } as const);

describe('an e-mail', () => {
  test('goes over STARTTLS, with the password of its file', async () => {
    const mail = await startMail(true);
    await email(mail.port).send(message);
    expect(mail.mails).toMatchObject([{ secure: true, user: 'dke' }]);
    expect(mail.mails[0]?.text).toMatch(/Subject: DKE test: a test/);
    expect(mail.mails[0]?.text).toMatch(/To: keys@example.com/);
    await mail.close();
  });

  test('does not go where there is no TLS, or a certificate of no known authority', async () => {
    const plain = await startMail(false);
    await expect(email(plain.port).send(message)).rejects.toThrow();
    expect(plain.mails).toEqual([]);
    await plain.close();
    const mail = await startMail(true);
    await expect(email(mail.port, { ca: undefined }).send(message)).rejects.toThrow();
    expect(mail.mails).toEqual([]);
    await mail.close();
  });
});

describe('the service', () => {
  const toml = (): string =>
    `[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n[[notifications.targets]]\nname = "hook"\ntype = "webhook"\nurl = "${hookUrl}"\n` +
    `secret_file = "${secretFile}"\nca = "${authority.certificate}"\nallow_private = true\n`;
  const events = () => calls.map(({ body }) => JSON.parse(body) as { event: string; notification: { kind: string } });
  const inbox = async ({ operations }: OpenedService) => (await operations.notifications.list(administrator, {})).items;

  test('tells a target what waits, once; one that was away misses nothing, also over a restart', async () => {
    answer = 503;
    const opened = await openTestService({ toml: toml() });
    const vault = await opened.operations.vaults.create(administrator, { name: 'ruled' });
    const grants = [{ role: 'key-approver', scope: null }] as const;
    const { record } = await opened.operations.tokens.create(administrator, 'the service', { name: 'anna', grants });
    await opened.operations.dualControl.change(administrator, vault.id, {
      ...{ required: 1, approvers: [record.id], actions: ['destroy'], databases: 'allowed' },
    });
    await opened.operations.tokens.revoke(administrator, 'the service', record.id);
    const raised = await until('a notification', async () =>
      (await inbox(opened)).find(({ kind }) => kind === 'dual-control.unsatisfiable'),
    );
    expect(raised).toMatchObject({ severity: 'high', subject: { name: 'ruled' } });
    expect(raised.fix).toContain('key-approver');
    await until(
      'a failure of the target',
      async () => (await opened.operations.notifications.targets())[0]?.failure?.message,
    );
    const taken = await opened.operations.notifications.acknowledge(administrator, raised.id);
    expect(taken.acknowledgedBy).toBe('test');
    await opened.stop();

    answer = 200;
    const again = await openTestService({ toml: toml(), folder: opened.folder });
    await until('the delivery', () => Promise.resolve(calls.length > 0 || undefined));
    expect(events().filter(({ event }) => event === 'raised')).toHaveLength(1);
    expect(events()[0]).toMatchObject({ event: 'raised', notification: { kind: 'dual-control.unsatisfiable' } });
    const results = await again.operations.notifications.test(administrator);
    expect(results).toEqual([{ name: 'hook', failure: null }]);
    await again.remove();
  });

  test('what is over before a target takes it is sent as over, and no longer as new', async () => {
    answer = 503;
    const opened = await openTestService({ toml: toml() });
    const { operations } = opened;
    const grants = [{ role: 'key-approver', scope: null }] as const;
    const makeUnsatisfiable = async (name: string): Promise<string> => {
      const vault = await operations.vaults.create(administrator, { name });
      const { record } = await operations.tokens.create(administrator, 'the service', { name, grants });
      await operations.dualControl.change(administrator, vault.id, {
        ...{ required: 1, approvers: [record.id], actions: ['export'], databases: 'allowed' },
      });
      await operations.tokens.revoke(administrator, 'the service', record.id);
      return vault.id;
    };
    const over = await makeUnsatisfiable('over');
    await makeUnsatisfiable('still so');
    await until('both notifications', async () => {
      const names = (await inbox(opened)).map(({ subject }) => subject.name);
      return (names.includes('over') && names.includes('still so')) || undefined;
    });
    await operations.vaults.delete(administrator, over);
    await until('the end of the first one', async () => {
      const { items } = await operations.notifications.list(administrator, { state: 'resolved' });
      return items.find(({ subject }) => subject.name === 'over');
    });
    answer = 200;
    const sent = await until('both', () => {
      const found = calls.map(({ body }) => JSON.parse(body) as { event: string; notification: { subject: object } });
      const told = found.map(({ event, notification: { subject } }) => [event, (subject as { name: string }).name]);
      return Promise.resolve(told.some(([event]) => event === 'resolved') ? told : undefined);
    });
    expect(sent).toContainEqual(['raised', 'still so']);
    expect(sent).toContainEqual(['resolved', 'over']);
    expect(sent).not.toContainEqual(['raised', 'over']);
    await opened.remove();
  });

  test('a target that refuses one notification gets the next ones', async () => {
    const opened = await openTestService({ toml: toml() });
    const { operations } = opened;
    const makeUnsatisfiable = async (name: string): Promise<void> => {
      const vault = await operations.vaults.create(administrator, { name });
      const grants = [{ role: 'key-approver', scope: null }] as const;
      const { record } = await operations.tokens.create(administrator, 'the service', { name, grants });
      await operations.dualControl.change(administrator, vault.id, {
        ...{ required: 1, approvers: [record.id], actions: ['destroy'], databases: 'allowed' },
      });
      await operations.tokens.revoke(administrator, 'the service', record.id);
    };
    refuses = 'poisoned';
    await makeUnsatisfiable('poisoned');
    await until('the refusal', async () => (await operations.notifications.targets())[0]?.failure?.message);
    await makeUnsatisfiable('next');
    const found = await until('the next one', () => Promise.resolve(calls.find(({ body }) => body.includes('next'))));
    expect(found.body).not.toContain('poisoned');
    refuses = undefined;
    await until('the end of the failure', async () => {
      const [target] = await operations.notifications.targets();
      return (target?.failure === null && target.waiting === 0) || undefined;
    });
    expect(opened.complaints).toContainEqual(
      expect.objectContaining({
        message: 'a notification target refuses a notification; it is set aside, and the next ones are delivered',
      }),
    );
    expect(calls.some(({ body }) => body.includes('"name":"poisoned"'))).toBe(false);
    await opened.remove();
  });

  test('shows the failure of a target at a closed port, until it takes a test', async () => {
    const port = await freePort();
    const closed = `https://localhost:${port}/T0/a-token-in-a-path?key=another`;
    const opened = await openTestService({ toml: toml().replace(hookUrl, closed) });
    const { notifications, settings } = opened.operations;
    try {
      const [result] = await notifications.test(administrator);
      expect(result?.failure).toMatch(/ECONNREFUSED/);
      const [shown] = await notifications.targets();
      expect(shown).toMatchObject({ target: `https://localhost:${port}/***`, failure: { message: result?.failure } });
      const { value } = (await settings()).items.find(({ name }) => name === 'notifications.targets') ?? {};
      expect(value).toContain(`https://localhost:${port}/***`);
      expect(value).not.toMatch(/token-in-a-path|another/);
      const late = createServer(
        { cert: readFileSync(certificate.certificate), key: readFileSync(certificate.key) },
        (_, response) => response.end(),
      );
      await new Promise<void>((resolve) => {
        late.listen(port, 'localhost', resolve);
      });
      try {
        expect(await notifications.test(administrator)).toEqual([{ name: 'hook', failure: null }]);
        expect((await notifications.targets())[0]).toMatchObject({ failure: null, deliveredAt: expect.any(Number) });
      } finally {
        late.close();
      }
    } finally {
      await opened.remove();
    }
  });

  test('ends a call whose answer drips, whatever part of it: the target and the sink have failed, and a test says so', async () => {
    const timers = new Set<NodeJS.Timeout>();
    const dripping = createServer(
      { cert: readFileSync(certificate.certificate), key: readFileSync(certificate.key) },
      (request, response) => {
        request.resume();
        const { socket } = response;
        socket?.on('error', () => undefined);
        if (request.url === '/body') response.writeHead(200).flushHeaders();
        else socket?.write('HTTP/1.1 200 OK\r\nx-drips: ');
        const timer = setInterval(() => (request.url === '/body' ? response : socket)?.write('a'), 100);
        timers.add(timer);
        socket?.once('close', () => clearInterval(timer));
      },
    );
    await new Promise<void>((resolve) => {
      dripping.listen(0, '127.0.0.1', resolve);
    });
    const origin = `https://localhost:${(dripping.address() as AddressInfo).port}`;
    const parts = ['head', 'body'];
    const opened = await openTestService({
      toml:
        '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n' +
        parts
          .map(
            (part) =>
              `[[notifications.targets]]\nname = "${part}"\ntype = "webhook"\nurl = "${origin}/${part}"\n` +
              `secret_file = "${secretFile}"\nca = "${authority.certificate}"\nallow_private = true\n` +
              `[[audit.sinks]]\nname = "${part}"\ntype = "https"\nurl = "${origin}/${part}"\nca = "${authority.certificate}"\n`,
          )
          .join(''),
    });
    try {
      const { notifications, audit } = opened.operations;
      const failure = expect.stringMatching(/^localhost:\d+ did not answer completely within \d+ s$/) as string;
      expect(await notifications.test(administrator)).toEqual(parts.map((name) => ({ name, failure })));
      for (const target of await notifications.targets())
        expect(target).toMatchObject({ failure: { message: failure }, deliveredAt: null });
      for (const sink of await until('both sinks', async () => {
        const sinks = await audit.sinks(administrator);
        return sinks.every((each) => each.failure !== null) ? sinks : undefined;
      }))
        expect(sink).toMatchObject({ forwarded: 0, failure: { message: failure } });
    } finally {
      await opened.remove();
      for (const timer of timers) clearInterval(timer);
      dripping.closeAllConnections();
      dripping.close();
    }
  });
});
