// pkcs11.toml: its permissions and its valid content.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  lchownSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { ConfigError, checkConfig, loadConfig, parseConfig } from '../../../provider/client/config.ts';
import { openTls } from '../../../provider/client/tls.ts';
import { sharedFolder } from '../../support/folders.ts';

const folder = sharedFolder();

const guid = '3f0a7c52-aaaa-4bbb-8ccc-1234567890ab';
const good = `server_url = "https://kms.example:8443/tde/v1/${guid}/db01"\naccess_token = "${guid}"\n`;
const uid = process.getuid?.() ?? 0;

let count = 0;
const file = (text: string, mode = 0o600): string => {
  const path = join(folder, `pkcs11-${++count}.toml`);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
};
const problemOf = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
  return 'no error';
};

describe('the fields', () => {
  test('defaults are filled in and the address is taken apart', () => {
    expect(parseConfig('/p', good, uid)).toMatchObject({
      origin: 'https://kms.example:8443',
      basePath: `/tde/v1/${guid}/db01`,
      redactedUrl: 'https://kms.example:8443/tde/v1/***/db01',
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
  ])('%s is refused', (_name, text, message) => {
    expect(problemOf(() => parseConfig('/etc/dke/pkcs11.toml', text, uid))).toMatch(message);
  });
  test('no message quotes the token', () => {
    for (const text of [`${good}x`, `${good}nonsense = [`, good.replace('/db01', '/a/b/c?d')]) {
      expect(problemOf(() => parseConfig('/p', text, uid))).not.toContain(guid);
    }
  });
});

describe('the file', () => {
  test("is read when it is the owner's alone", () => {
    expect(loadConfig(file(good), uid).accessToken).toBe(guid);
  });
  // Whether it is read, or was read before and is only checked.
  describe.each([
    ['read', loadConfig],
    ['checked', checkConfig],
  ])('%s', (_name, use) => {
    test.each([0o640, 0o604, 0o620, 0o602, 0o660, 0o644])(
      'mode %o is refused, and the error names the required mode',
      (mode) => {
        const path = file(good, mode);
        expect(problemOf(() => use(path, uid))).toContain(
          `${path}: mode ${mode.toString(8)} gives other users access; chmod 600 `,
        );
      },
    );
    test('another owner than the peer or root is refused', () => {
      const path = file(good);
      // As root the file belongs to root, whom everybody trusts.
      if (uid === 0) expect(() => use(path, 12_345)).not.toThrow();
      else expect(problemOf(() => use(path, uid + 1))).toMatch(/owned by uid \d+; chown it to uid/);
    });
    test('a missing file names the variable to set', () => {
      expect(problemOf(() => use(join(folder, 'none.toml'), uid))).toMatch(/DKE_PKCS11_CONF/);
    });
    test('a directory is refused', () => {
      expect(problemOf(() => use(folder, uid))).toMatch(/not a regular file/);
    });
    test("the owner's own symbolic link is followed, and no other user's", () => {
      const link = join(mkdtempSync(join(folder, 'links-')), 'link.toml');
      symlinkSync(file(good), link);
      expect(() => use(link, uid)).not.toThrow();
      if (uid !== 0) return console.log('left out: a link of another owner can be made by root alone');
      lchownSync(link, 12_345, 12_345);
      expect(problemOf(() => use(link, uid))).toMatch(/a symbolic link owned by uid 12345/);
    });
    test('an oversize file is refused', () => {
      expect(problemOf(() => use(file(`${good}# ${'x'.repeat(70_000)}`), uid))).toMatch(/longer than/);
    });
    test('a relative path is refused', () => {
      expect(problemOf(() => use('pkcs11.toml', uid))).toMatch(/must be absolute/);
    });
  });
  test('is the same as long as nothing about it changes, whatever it is called', () => {
    const path = file(good);
    const before = checkConfig(path, uid);
    const link = join(mkdtempSync(join(folder, 'links-')), 'link.toml');
    symlinkSync(path, link);
    expect(checkConfig(path, uid)).toBe(before);
    expect(checkConfig(link, uid)).toBe(before);
  });
  test.each<[string, (path: string) => void]>([
    ['written', (path) => writeFileSync(path, good.replace('db01', 'db02'))],
    ['replaced', (path) => renameSync(file(good), path)],
    ['given another mode', (path) => chmodSync(path, 0o400)],
    ['given another time', (path) => utimesSync(path, 1, 1)],
  ])('is another one when it was %s', (_name, change) => {
    const path = file(good);
    utimesSync(path, 2, 2);
    const before = checkConfig(path, uid);
    change(path);
    expect(checkConfig(path, uid)).not.toBe(before);
  });
});

describe('the files of TLS', () => {
  const none = { caFile: null, clientCertificate: null, uid };
  const reasonOf = (path: string): string => problemOf(() => openTls({ ...none, caFile: path }));
  const keyPath = (): string => join(folder, 'client.key');
  const makeClient = (): { readonly certificate: string; readonly key: string } => {
    const key = keyPath();
    rmSync(key, { force: true });
    const pem = core.createSelfSignedCertificate({ keyPath: key, names: ['db1.example'], days: 30 });
    return { certificate: file(pem), key };
  };

  test('are read when they are PEM files', () => {
    const clientCertificate = makeClient();
    expect(openTls(none)).toBeDefined();
    expect(openTls({ ...none, caFile: clientCertificate.certificate, clientCertificate })).toBeDefined();
  });

  // A caller's configuration names these paths: their content must not stop the agent for the others.
  test('are refused when there is a FIFO, a device, a folder, too much, nothing, or no PEM', () => {
    const fifo = join(folder, 'fifo');
    execFileSync('mkfifo', [fifo]);
    const long = file('');
    truncateSync(long, 5 << 20);
    expect(reasonOf(fifo)).toMatch(/not a regular file/);
    expect(reasonOf('/dev/zero')).toMatch(/not a regular file/);
    expect(reasonOf(folder)).toMatch(/not a regular file/);
    expect(reasonOf(long)).toMatch(/longer than/);
    expect(reasonOf(join(folder, 'missing'))).toMatch(/ENOENT/);
    expect(reasonOf(file('no PEM'))).toMatch(/no PEM/);
  });

  test('a client key is refused when others can read it, when it is of another user, or of another certificate', () => {
    const made = makeClient();
    const refusal = (clientCertificate: typeof made, of = uid): string =>
      problemOf(() => openTls({ ...none, clientCertificate, uid: of }));
    expect(refusal(made, uid + 1)).toMatch(/owned by uid/);
    chmodSync(made.key, 0o640);
    expect(refusal(made)).toMatch(/mode 640 lets other users read it/);
    chmodSync(made.key, 0o600);
    const before = readFileSync(made.key);
    const other = makeClient();
    expect(refusal({ certificate: made.certificate, key: other.key })).toMatch(/KEY_VALUES_MISMATCH/);
    expect(refusal({ ...made, certificate: file('-----BEGIN CERTIFICATE-----') })).toMatch(/client_certificate/);
    expect(before.equals(readFileSync(other.key))).toBe(false);
  });

  test('client_certificate and client_key must be set together, with absolute paths', () => {
    const parse = (more: string): string => problemOf(() => parseConfig('/p', `${good}${more}`, uid));
    expect(parse('\nclient_key = "/k"\n')).toMatch(/client_certificate is missing/);
    expect(parse('\nclient_certificate = "/c"\n')).toMatch(/client_key is missing/);
    expect(parse('\nclient_certificate = "c"\nclient_key = "/k"\n')).toMatch(/absolute path/);
  });
});
