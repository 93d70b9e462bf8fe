// pkcs11.toml: who may read it, and what it may say.
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ConfigError, loadConfig, parseConfig } from '../../../provider/client/config.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

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
    expect(parseConfig('/p', good)).toMatchObject({
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
    expect(problemOf(() => parseConfig('/etc/dke/pkcs11.toml', text))).toMatch(message);
  });
  test('no message quotes the token', () => {
    for (const text of [`${good}x`, `${good}nonsense = [`, good.replace('/db01', '/a/b/c?d')]) {
      expect(problemOf(() => parseConfig('/p', text))).not.toContain(guid);
    }
  });
});

describe('the file', () => {
  test("is read when it is the owner's alone", () => {
    expect(loadConfig(file(good), uid).accessToken).toBe(guid);
  });
  test.each([0o640, 0o604, 0o620, 0o602, 0o660, 0o644])('mode %o is refused, naming the wanted mode', (mode) => {
    const path = file(good, mode);
    expect(problemOf(() => loadConfig(path, uid))).toContain(
      `${path}: mode ${mode.toString(8)} lets others at it; chmod 600 it`,
    );
  });
  test('another owner than the peer or root is refused', () => {
    const path = file(good);
    // As root the file belongs to root, whom everybody trusts.
    if (uid === 0) expect(loadConfig(path, 12_345).path).toBe(path);
    else expect(problemOf(() => loadConfig(path, uid + 1))).toMatch(/owned by uid \d+; chown it to uid/);
  });
  test('a missing file names the variable to set', () => {
    expect(problemOf(() => loadConfig(join(folder, 'none.toml'), uid))).toMatch(/DKE_PKCS11_CONF/);
  });
  test('a directory is refused', () => {
    expect(problemOf(() => loadConfig(folder, uid))).toMatch(/not a regular file/);
  });
  test("the owner's own symbolic link is followed", () => {
    const link = join(folder, 'link.toml');
    symlinkSync(file(good), link);
    expect(loadConfig(link, uid).applicationId).toBe('db01');
  });
  test('an oversize file is refused', () => {
    expect(problemOf(() => loadConfig(file(`${good}# ${'x'.repeat(70_000)}`), uid))).toMatch(/longer than/);
  });
  test('a relative path is refused', () => {
    expect(problemOf(() => loadConfig('pkcs11.toml', uid))).toMatch(/must be absolute/);
  });
});
