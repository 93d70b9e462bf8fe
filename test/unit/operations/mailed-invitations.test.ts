// Invitations by mail, over the real store and a mail server of this process: the link goes to the
// person only.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { parseConfig } from '../../../server/app/config/config.ts';
import { makeAuthority } from '../../support/authority.ts';
import { administrator, type OpenedService, openTestService } from '../../support/open-service.ts';
import { bytesOf, errorOf, everything, goodPassword, originOf } from '../../support/people.ts';

let folder: string;
let opened: OpenedService;
let server: SMTPServer;
let mails: { readonly text: string; readonly to: readonly string[]; readonly secure: boolean }[] = [];
let refuses = false;
/** Answers refusals with the text of the mail. */
let echoes = false;
let echoed = 550;
const target = (port: number, caFile: string): string =>
  [
    '[[notifications.targets]]\nname = "mail"\ntype = "email"\nhost = "localhost"',
    `port = ${port}\nfrom = "dke@example.com"\nto = ["operators@example.com"]\nca = "${caFile}"\n`,
  ].join('\n');

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-invitations-'));
  const authority = makeAuthority(folder, 'mail');
  const certificate = authority.issue({ usage: 'serverAuth', commonName: 'localhost', names: ['DNS:localhost'] });
  server = new SMTPServer({
    cert: readFileSync(certificate.certificate),
    key: readFileSync(certificate.key),
    authOptional: true,
    onData: (stream, session, done) => {
      let text = '';
      stream.on('data', (part: Buffer) => {
        text += part.toString('utf8');
      });
      stream.on('end', () => {
        if (echoes) {
          mails.push({ text, to: [], secure: session.secure });
          return done(Object.assign(new Error(`refused: ${linkOf(readable(text))}`), { responseCode: echoed }));
        }
        if (refuses) return done(new Error('not now'));
        mails.push({ text, to: session.envelope.rcptTo.map(({ address }) => address), secure: session.secure });
        done();
      });
    },
  });
  server.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const caFile = join(folder, 'ca.pem');
  writeFileSync(caFile, readFileSync(authority.certificate));
  const { port } = server.server.address() as AddressInfo;
  const toml = `[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n[people]\ninvitation_target = "mail"\n`;
  opened = await openTestService({ toml: `${toml}${target(port, caFile)}` });
});
afterAll(async () => {
  await opened?.remove();
  await new Promise<void>((resolve) => {
    server.close(resolve);
  });
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  mails = [];
  refuses = false;
  echoes = false;
});

const create = (name: string, more: object = {}) =>
  opened.operations.users.create(administrator, everything, {
    ...{ name, email: `${name}@example.com`, grants: [{ role: 'auditor', scope: null }] },
    ...more,
  });
/** The mail as its reader sees it: lines that were too long for the wire are whole again. */
const readable = (text = ''): string => text.replaceAll(/=\r?\n/g, '').replaceAll('=3D', '=');
const linkOf = (text: string): string => /https:\/\/keys\.example\/invitation#(dkei_[\w-]{43})/.exec(text)?.[1] ?? '';

test('the person gets the link, in plain text over TLS, and the administrator does not', async () => {
  const made = await create('ada', { deliver: 'mail' });
  expect([made.invitation, made.mailed]).toEqual([null, { to: 'ada@example.com', failure: null }]);
  const text = readable(mails[0]?.text);
  expect(mails.map(({ to, secure }) => [to, secure])).toEqual([[['ada@example.com'], true]]);
  expect(text).toContain('Content-Type: text/plain');
  expect(text).toContain('https://keys.example.');
  expect(text).toContain('Your user name is ada.');
  const token = linkOf(text);
  expect(JSON.stringify(made)).not.toContain(token);
  expect(JSON.stringify(opened.complaints)).not.toContain(token);
  const session = await opened.operations.signIn.redeem(token, bytesOf(goodPassword), originOf());
  expect(session.actor.name).toBe('ada');
  // Single use.
  expect(await errorOf(opened.operations.signIn.redeem(token, bytesOf(goodPassword), originOf()))).toBe(
    'unauthenticated',
  );
  const { items } = await opened.operations.audit.list(administrator, { subjectId: made.user.id, limit: 50 });
  expect(items.find(({ kind }) => kind === 'invitation.issued')?.details).toMatchObject({ delivery: 'mail' });
  expect(JSON.stringify(items)).not.toContain(token);
});

test('with the link where that was asked for, and without a mail where it was not', async () => {
  const both = await create('bert', { deliver: 'mail-and-show' });
  expect(linkOf(readable(mails[0]?.text))).toBe(both.invitation?.token);
  const shown = await create('carla');
  expect([shown.mailed, shown.invitation?.token, mails.length]).toEqual([null, expect.stringMatching(/^dkei_/), 1]);
});

test('a new invitation after a reset goes the same way', async () => {
  const { user } = await create('dora');
  const reset = await opened.operations.users.resetPassword(administrator, everything, user.id, { deliver: 'mail' });
  expect([reset.invitation, reset.mailed?.failure]).toEqual([null, null]);
  const session = await opened.operations.signIn.redeem(
    linkOf(readable(mails[0]?.text)),
    bytesOf(goodPassword),
    originOf(),
  );
  expect(session.actor.name).toBe('dora');
});

test('a mail that the server refuses is told, and the user can be invited again', async () => {
  refuses = true;
  const made = await create('emil', { deliver: 'mail' });
  expect([made.invitation, made.mailed]).toEqual([
    null,
    { to: 'emil@example.com', failure: 'the mail server did not accept the mail' },
  ]);
  refuses = false;
  const again = await opened.operations.users.resetPassword(administrator, everything, made.user.id, {
    deliver: 'mail',
  });
  expect([again.mailed?.failure, mails.length]).toEqual([null, 1]);
});

test.each([550, 451])(
  'the link is not in the log where the server refuses the mail with its text: %i',
  async (status) => {
    [echoes, echoed] = [true, status];
    const before = opened.complaints.length;
    const made = await create(`fritz-${status}`, { deliver: 'mail' });
    expect(made.mailed?.failure).toBe('the mail server did not accept the mail');
    const token = linkOf(readable(mails[0]?.text));
    expect(token).toMatch(/^dkei_/);
    const said = opened.complaints.slice(before).map(({ message, fields }) => `${message} ${inspect(fields)}`);
    expect(said).toHaveLength(1);
    expect(said.join()).not.toContain(token);
  },
);

test.each(['ada@example.com,eve@example.net', 'eve@example.net;a', 'Eve<eve@example.net>', '"a"@example.com'])(
  'an address that a mailer could read as another one is refused, and no user is made: %s',
  async (email) => {
    expect(await errorOf(create('frida', { email, deliver: 'mail' }))).toBe('validation');
    expect(mails).toEqual([]);
    const { items } = await opened.operations.users.list(administrator, { limit: 1000 });
    expect(items.map(({ name }) => name)).not.toContain('frida');
  },
);

test('without an address nothing is done', async () => {
  expect(await errorOf(create('gerd', { email: null, deliver: 'mail' }))).toBe('validation');
});

test('the configuration names a mail target that there is', () => {
  const people = '[people]\ninvitation_target = "mail"\n';
  expect(() => parseConfig(people, null, folder)).toThrow(/people\.invitation_target: must be the name/);
  expect(parseConfig(`${people}${target(25, '/ca.pem')}`, null, folder).people.invitationTarget).toBe('mail');
});
