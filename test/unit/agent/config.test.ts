// pkcs11.toml: its permissions and its valid content.
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { TlsContexts, TlsFiles } from '../../../provider/agent/service/tls.ts';
import { ConfigError, loadConfig, parseConfig, readConfig } from '../../../provider/agent/settings/config.ts';
import { type FileUser, ownUser, UnsuitableFile, UserFiles } from '../../../provider/agent/settings/user-files.ts';
import { sharedFolder } from '../../support/folders.ts';
import { chance } from '../../support/property.ts';

const folder = sharedFolder();

const guid = '3f0a7c52-aaaa-4bbb-8ccc-1234567890ab';
const good = `server_url = "https://kms.example:8443/tde/v1/${guid}/db01"\naccess_token = "${guid}"\n`;
const me = ownUser();
const isRoot = me.uid === 0;
const stranger: FileUser = { uid: 12_345, gid: 12_345, groups: [] };
if (!isRoot) console.log('left out: only root can read with the rights of another user');

let count = 0;
const file = (text: string, mode = 0o600): string => {
  const path = join(folder, `pkcs11-${++count}.toml`);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
};
const problemOf = async (work: () => unknown): Promise<string> => {
  try {
    await work();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
  return 'no error';
};

describe('the fields', () => {
  test('defaults are filled in and the address is taken apart', () => {
    expect(parseConfig('/p', good, me)).toMatchObject({
      origin: 'https://kms.example:8443',
      basePath: `/tde/v1/${guid}/db01`,
      redactedUrl: expect.stringMatching(/^https:\/\/kms\.example:8443\/tde\/v1\/\*{3}[0-9a-f]{8}\/db01$/),
      applicationId: 'db01',
      connectTimeoutMs: 1000,
      callTimeoutMs: 3000,
      logLevel: 'info',
      logDir: null,
      spinUs: 20,
      keyCheckMs: 500,
    });
  });
  test.each([
    ['an unknown field', `${good}pin = "1234"\n`, /pin is unknown/],
    ['a missing server_url', `access_token = "${guid}"`, /server_url is missing/],
    ['a missing access_token', good.split('\n')[0] ?? '', /access_token is missing/],
    ['plain http', good.replace('https', 'http'), /server_url must be https/],
    ['an address without app_id', good.replace('/db01', ''), /server_url must be https/],
    [
      'a token that is not the one in the address',
      `${good.replace(/access_token.*/, 'access_token = "other"')}`,
      /another access_guid/,
    ],
    ['a number out of range', `${good}call_timeout_ms = 1\n`, /call_timeout_ms must be an integer from/],
    ['text for a number', `${good}spin_us = "20"\n`, /spin_us must be an integer/],
    ['an unknown level', `${good}log_level = "loud"\n`, /log_level must be one of/],
    ['a relative path', `${good}ca_file = "ca.pem"\n`, /ca_file must be an absolute path/],
    ['malformed TOML', `${good}access_token\n`, /not valid TOML \(line 3/],
  ])('%s is refused', async (_name, text, message) => {
    expect(await problemOf(() => parseConfig('/etc/dke/pkcs11.toml', text, me))).toMatch(message);
  });
  test('no message quotes the token', async () => {
    for (const text of [`${good}x`, `${good}nonsense = [`, good.replace('/db01', '/a/b/c?d')]) {
      expect(await problemOf(() => parseConfig('/p', text, me))).not.toContain(guid);
    }
  });
});

describe('the file', () => {
  const files = new UserFiles();
  const read = (path: string, user: FileUser = me) => readConfig(files, user, path, { follow: true });

  test("is read when it is the owner's alone", async () => {
    expect((await loadConfig(file(good))).accessToken).toBe(guid);
  });
  test.each([0o640, 0o604, 0o620, 0o602, 0o660, 0o644])(
    'mode %o is refused, and the error names the required mode',
    async (mode) => {
      const path = file(good, mode);
      expect(await problemOf(() => read(path))).toContain(
        `${path}: mode ${mode.toString(8)} gives other users access; chmod 600 `,
      );
    },
  );
  test.runIf(isRoot)('is opened with the rights of the user who names it, and with no others', async () => {
    const path = file(good);
    chmodSync(folder, 0o755);
    expect(await problemOf(() => read(path, stranger))).toMatch(/cannot be read \(EACCES\)/);
    chownSync(path, stranger.uid, stranger.gid);
    expect((await read(path, stranger)).config?.accessToken).toBe(guid);
    // Readable, but of someone else.
    chownSync(path, 12_346, stranger.gid);
    chmodSync(path, 0o640);
    expect(await problemOf(() => read(path, stranger))).toMatch(
      /owned by uid 12346, but the process runs as uid 12345/,
    );
    // For files in a folder that only its owner may enter, a stranger learns nothing: whether a
    // file exists does not change the error.
    const closed = mkdtempSync(join(folder, 'closed-'));
    const [there, missing] = [join(closed, 'there.toml'), join(closed, 'missing.toml')];
    writeFileSync(there, good, { mode: 0o600 });
    const [one, other] = [await problemOf(() => read(there, stranger)), await problemOf(() => read(missing, stranger))];
    expect(one.replace('there', '')).toBe(other.replace('missing', ''));
  });
  test.runIf(isRoot)('counts the other groups of the user, and not those of this process', async () => {
    const folderOfGroup = mkdtempSync(join(folder, 'group-'));
    chownSync(folderOfGroup, 0, 12_400);
    chmodSync(folderOfGroup, 0o750);
    const path = join(folderOfGroup, 'pkcs11.toml');
    writeFileSync(path, good, { mode: 0o600 });
    chownSync(path, stranger.uid, stranger.gid);
    expect(await problemOf(() => read(path, stranger))).toMatch(/EACCES/);
    expect((await read(path, { ...stranger, groups: [1, 12_400] })).config?.accessToken).toBe(guid);
  });
  test.runIf(isRoot)('of another user is read by root on behalf of its owner', async () => {
    const path = file(good);
    chownSync(path, stranger.uid, stranger.gid);
    const { user } = await read(path);
    expect(user).toMatchObject({ uid: stranger.uid, groups: [] });
  });
  test('a missing file names the variable to set', async () => {
    expect(await problemOf(() => read(join(folder, 'none.toml')))).toMatch(/DKE_PKCS11_CONF/);
  });
  test('a directory, a FIFO, a device and an oversize file are refused', async () => {
    const fifo = join(mkdtempSync(join(folder, 'fifo-')), 'fifo');
    execFileSync('mkfifo', ['-m', '600', fifo]);
    for (const path of [folder, fifo, '/dev/zero'])
      expect(await problemOf(() => read(path))).toMatch(/not a regular file/);
    expect(await problemOf(() => read(file(`${good}# ${'x'.repeat(70_000)}`)))).toMatch(/longer than/);
  });
  test('a relative path is refused', async () => {
    expect(await problemOf(() => read('pkcs11.toml'))).toMatch(/must be absolute/);
  });
  test('is not found through a link, unless the path is the own one, and never through what this process has open', async () => {
    const path = file(good);
    const links = mkdtempSync(join(folder, 'links-'));
    symlinkSync(path, join(links, 'link.toml'));
    symlinkSync(folder, join(links, 'folder'));
    for (const each of [join(links, 'link.toml'), join(links, 'folder', basename(path))]) {
      expect(await problemOf(() => readConfig(files, me, each, { follow: false }))).toMatch(/ELOOP/);
      expect((await read(each)).config?.accessToken).toBe(guid);
    }
    const open = openSync(path, 'r');
    expect(await problemOf(() => read(`/proc/self/fd/${open}`))).toMatch(/ELOOP/);
    closeSync(open);
  });
  test('is not read again while nothing about it changes', async () => {
    const path = file(good);
    const { state } = await read(path);
    expect(await readConfig(files, me, path, { follow: false, known: state })).toMatchObject({ state, config: null });
  });
  test.each<[string, (path: string) => void]>([
    ['written', (path) => writeFileSync(path, good.replace('db01', 'db02'))],
    ['replaced', (path) => renameSync(file(good), path)],
    ['given another mode', (path) => chmodSync(path, 0o400)],
    ['given another time', (path) => utimesSync(path, 1, 1)],
  ])('is another one when it was %s', async (_name, change) => {
    const path = file(good);
    utimesSync(path, 2, 2);
    const before = await read(path);
    change(path);
    const after = await readConfig(files, me, path, { follow: false, known: before.state });
    expect(after.state).not.toBe(before.state);
    expect(after.config).not.toBeNull();
  });
});

describe('the files of users', () => {
  const of = (uid: number): FileUser => ({ uid, gid: uid, groups: [] });
  const found = { error: 0, regular: true, uid: 1, mode: 0o600, size: 0, state: 's' } as const;

  test('a file that never answers delays only its user, who has four threads and hears of the deadline', async () => {
    const asked: string[] = [];
    const never = new Promise<never>(() => undefined);
    const files = new UserFiles(({ path }) => {
      asked.push(path);
      return path.startsWith('/hung') ? never : Promise.resolve(found);
    }, 50);
    const hung = Array.from({ length: 300 }, (_, n) =>
      files.read(of(1), `/hung/${n}`, { most: 1, follow: false }).catch((error: Error) => error.message),
    );
    expect(await files.read(of(2), '/there', { most: 1, follow: false })).toBe(found);
    const messages = await Promise.all(hung);
    expect(messages.filter((each) => each === 'no answer within 50 ms')).toHaveLength(260);
    expect(messages.filter((each) => each === '256 files of uid 1 wait already')).toHaveLength(40);
    expect(await files.read(of(2), '/there', { most: 1, follow: false })).toBe(found);
    expect(asked.filter((path) => path.startsWith('/hung'))).toHaveLength(4);
  });
  // Configuration files are parsed on the thread that serves every user: the longest takes 20 ms.
  test('a user whose pkcs11.toml changes before each use waits, and others continue', async () => {
    let now = 0;
    let state = 0;
    const long = `${good}# ${'x'.repeat(60_000)}\n`;
    const texts = new Map([
      [1, long],
      [2, good],
      [3, '[['.repeat(30_000)],
    ]);
    const files = new UserFiles(
      ({ uid }) => {
        const bytes = Buffer.from(texts.get(uid) ?? '');
        return Promise.resolve({ ...found, uid, size: bytes.length, state: String(++state), bytes });
      },
      60_000,
      () => now,
    );
    const outcome = (uid: number): Promise<string> =>
      problemOf(() => readConfig(files, of(uid), '/pkcs11.toml', { follow: false }));
    const times = async (uid: number, n: number): Promise<string[]> => {
      const outcomes: string[] = [];
      while (outcomes.length < n) outcomes.push(await outcome(uid));
      return outcomes;
    };
    // An invalid file counts against its user as well.
    for (const [uid, first] of [
      [1, /no error/],
      [3, /not valid TOML/],
    ] as const) {
      const outcomes = await times(uid, 40);
      expect(outcomes.filter((each) => first.test(each)).length).toBeLessThan(20);
      expect(outcomes[0]).toMatch(first);
      expect(outcomes.at(-1)).toMatch(new RegExp(`the files of uid ${uid} change too often`));
    }
    expect(new Set(await times(2, 100))).toEqual(new Set(['no error']));
    now += 5000;
    expect(await outcome(1)).toBe('no error');
  });
  test('random paths and identities never end the process, and give an error of the system or a file', async () => {
    const pieces = [
      '/',
      '..',
      '.',
      'proc',
      'self',
      'fd',
      '0',
      'etc',
      'passwd',
      '\u0000',
      'x'.repeat(300),
      '\ud800',
      'dev',
      'null',
      '',
    ];
    const random = chance(20_261_129);
    const pick = (n: number): number => Math.floor(random() * n);
    const user = isRoot ? stranger : me;
    const files = new UserFiles(undefined, 60_000);
    await Promise.all(
      Array.from({ length: 200 }, async () => {
        const path = `/${Array.from({ length: pick(6) }, () => pieces[pick(pieces.length)]).join('/')}`;
        const outcome = await files.read(user, path, { most: 4096, follow: pick(2) === 0 }).then(
          ({ size }) => size,
          (error: unknown) => error,
        );
        if (typeof outcome !== 'number') expect(outcome).toBeInstanceOf(UnsuitableFile);
      }),
    );
  });
});

describe('the files of TLS', () => {
  const none = { caFile: null, clientCertificate: null, user: me };
  const open = (given: Partial<ConstructorParameters<typeof TlsFiles>[0]>) =>
    new TlsFiles({ ...none, ...given }).current();
  const reasonOf = (caFile: string): Promise<string> => problemOf(() => open({ caFile }));
  const keyPath = (): string => join(folder, 'client.key');
  const makeClient = (): { readonly certificate: string; readonly key: string } => {
    const key = keyPath();
    rmSync(key, { force: true });
    const pem = core.createSelfSignedCertificate({ keyPath: key, names: ['db1.example'], days: 30 });
    return { certificate: file(pem), key };
  };

  test('are read when they are PEM files', async () => {
    const clientCertificate = makeClient();
    expect(await open({})).toBeDefined();
    expect(await open({ caFile: clientCertificate.certificate, clientCertificate })).toBeDefined();
  });

  // A caller's configuration names these paths: their content must not stop the agent for the
  // others.
  test('are refused when there is a FIFO, a device, a folder, too much, nothing, or no PEM', async () => {
    const fifo = join(folder, 'fifo');
    execFileSync('mkfifo', [fifo]);
    const long = file('');
    truncateSync(long, 5 << 20);
    expect(await reasonOf(fifo)).toMatch(/not a regular file/);
    expect(await reasonOf('/dev/zero')).toMatch(/not a regular file/);
    expect(await reasonOf(folder)).toMatch(/not a regular file/);
    expect(await reasonOf(long)).toMatch(/longer than/);
    expect(await reasonOf(join(folder, 'missing'))).toMatch(/ENOENT/);
    expect(await reasonOf(file('no PEM'))).toMatch(/no PEM/);
  });

  test.runIf(isRoot)('are read with the rights of the user, whose key must be his own', async () => {
    const made = makeClient();
    chmodSync(folder, 0o755);
    chmodSync(made.certificate, 0o644);
    const refusal = (): Promise<string> => problemOf(() => open({ clientCertificate: made, user: stranger }));
    expect(await refusal()).toMatch(/client_key.*EACCES/);
    chmodSync(made.key, 0o644);
    expect(await refusal()).toMatch(/owned by uid 0, not by uid 12345/);
    chmodSync(made.certificate, 0o600);
    expect(await refusal()).toMatch(/EACCES/);
  });

  test('a client key is refused when others can read it, or when it is of another certificate', async () => {
    const made = makeClient();
    const refusal = (clientCertificate: typeof made): Promise<string> => problemOf(() => open({ clientCertificate }));
    chmodSync(made.key, 0o640);
    expect(await refusal(made)).toMatch(/mode 640 lets other users read it/);
    chmodSync(made.key, 0o600);
    const before = readFileSync(made.key);
    const other = makeClient();
    expect(await refusal({ certificate: made.certificate, key: other.key })).toMatch(/KEY_VALUES_MISMATCH/);
    expect(await refusal({ ...made, certificate: file('-----BEGIN CERTIFICATE-----') })).toMatch(/client_certificate/);
    expect(before.equals(readFileSync(other.key))).toBe(false);
  });

  // OpenSSL computes the public half of such a key on the thread that serves every user: half a
  // minute for this one.
  test('a client key that takes long to read is refused before it is read, wherever it is in the file', async () => {
    const made = makeClient();
    const own = readFileSync(made.key, 'latin1');
    const tlv = (tag: number, ...parts: Buffer[]): Buffer => {
      const content = Buffer.concat(parts);
      return Buffer.concat([Buffer.from([tag, 0x82, content.length >> 8, content.length & 0xff]), content]);
    };
    const number = tlv(2, Buffer.alloc(2048, 0x7f));
    const two = tlv(2, Buffer.from([2]));
    const version = Buffer.from([2, 1, 0]);
    const pkcs8 = (oid: string, ...parameters: Buffer[]): string => {
      const algorithm = tlv(0x30, Buffer.from(oid, 'hex'), tlv(0x30, ...parameters));
      return tlv(0x30, version, algorithm, tlv(4, number)).toString('base64').replace(/.{64}/g, '$&\n');
    };
    const dsa = pkcs8('06072a8648ce380401', number, number, two);
    const dh = pkcs8('06092a864886f70d010301', number, two);
    const block = (label: string, body: string): string =>
      `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----\n`;
    const refusal = (text: string): Promise<string> =>
      problemOf(() => open({ clientCertificate: { ...made, key: file(text) } }));
    const found = /not an RSA, ECDSA or EdDSA key/;
    for (const each of [
      block('PRIVATE KEY', dsa),
      block('PRIVATE KEY', dh),
      block('DSA PRIVATE KEY', dsa),
      block('PRIVATE KEY', dsa).replaceAll('\n', '\r\n'),
      block('PRIVATE KEY', `x: y\n\n${dsa}`),
      // One line with many beginnings.
      `-----BEGIN CERTIFICATE-----${' '.repeat(80)}`.repeat(4000),
      block('PRIVATE KEY', `\n${dsa}`),
      `${readFileSync(made.certificate, 'latin1')}${block('PRIVATE KEY', dsa)}`,
      `${block('CERTIFICATE', 'AAAA')}${'x'.repeat(254)}${block('PRIVATE KEY', dsa)}`,
    ])
      expect(await refusal(each)).toMatch(found);
    expect(await refusal(own)).toBe('no error');
    expect(await refusal(`${readFileSync(made.certificate, 'latin1')}${own}`)).toBe('no error');
    for (const [type, options] of [
      ['rsa', { modulusLength: 2048 }],
      ['rsa-pss', { modulusLength: 2048 }],
      ['ec', { namedCurve: 'prime256v1' }],
      ['ed25519', {}],
      ['ed448', {}],
    ] as const) {
      const { privateKey } = generateKeyPairSync(type as 'rsa', options as { modulusLength: number });
      // The key does not fit the certificate, which only OpenSSL detects.
      expect(await refusal(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())).not.toMatch(found);
    }
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    expect(await refusal(privateKey.export({ type: 'pkcs1', format: 'pem' }).toString())).not.toMatch(found);
  });

  test('are taken apart again only when they have changed, and a user whose files change all the time waits', async () => {
    const { certificate } = makeClient();
    const pem = readFileSync(certificate);
    const contexts = new TlsContexts();
    const [one, other] = [file(pem.toString()), file(pem.toString())].map(
      (caFile) => new TlsFiles({ ...none, caFile }, undefined, contexts),
    ) as [TlsFiles, TlsFiles];
    const first = await one.current();
    expect(await one.current()).toBe(first);
    // Files with the same content share one context.
    expect(await other.current()).toBe(first);
    const changing = file('');
    const files = new TlsFiles({ ...none, caFile: changing }, undefined, contexts);
    const refusals: string[] = [];
    for (let n = 0; n < 20; n++) {
      writeFileSync(changing, `${pem}${`# ${n}\n`.repeat(60_000)}`);
      refusals.push(await problemOf(() => files.current()));
    }
    expect(refusals.at(0)).toBe('no error');
    expect(refusals.at(-1)).toMatch(/change too often/);
    // Half of what is read may be wrong: what there is stays.
    expect(await files.currentOrLast()).toBeDefined();
    expect(await one.current()).toBe(first);
  });

  test('client_certificate and client_key must be set together, with absolute paths', async () => {
    const parse = (more: string): Promise<string> => problemOf(() => parseConfig('/p', `${good}${more}`, me));
    expect(await parse('\nclient_key = "/k"\n')).toMatch(/client_certificate is missing/);
    expect(await parse('\nclient_certificate = "/c"\n')).toMatch(/client_key is missing/);
    expect(await parse('\nclient_certificate = "c"\nclient_key = "/k"\n')).toMatch(/absolute path/);
  });
});
