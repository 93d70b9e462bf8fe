// OpenSSL with the pkcs11 engine, through the built library to the real service, and through
// SoftHSM2: signatures with keys of the token, a request for a certificate and a certificate, and a
// TLS server and client whose keys are there.
import { constants, createPublicKey, verify, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort, startDaemon } from '../support/daemon.ts';
import { engine, engineEnvironment } from '../support/openssl.ts';
import { presentTokens, startTokens, type Token } from '../support/token.ts';
import { installed, run } from '../support/tools.ts';

const present = installed('libengine-pkcs11-openssl', engine) && installed('opensc', 'pkcs11-tool');
const message = Buffer.from('a message');

describe.runIf(present).each(presentTokens)('the OpenSSL engine with %s', (name) => {
  let token: Token;
  let environment: NodeJS.ProcessEnv;
  beforeAll(async () => {
    token = await startTokens[name]();
    environment = engineEnvironment(token);
    for (const [type, label, id] of [
      ['rsa:2048', 'rsa', '01'],
      ['EC:prime256v1', 'ec', '02'],
    ] as const) {
      const access = ['--module', token.module, '--token-label', 'tool', '--login', '--pin', token.pin];
      const made = await run(
        'pkcs11-tool',
        [...access, '--keypairgen', '--key-type', type, '--label', label, '--id', id],
        token,
      );
      expect(made.code, made.complaints).toBe(0);
      const read = ['--read-object', '--type', 'pubkey', '--id', id, '--output-file', path(`${label}.der`)];
      await run('pkcs11-tool', [...access, ...read], token);
    }
    writeFileSync(path('message'), message);
  });
  afterAll(() => token.end());

  const path = (file: string): string => join(token.folder, file);
  const key = (label: string, type = 'private'): string => `pkcs11:token=tool;object=${label};type=${type}`;
  const publicKey = (label: string) =>
    createPublicKey({ key: readFileSync(path(`${label}.der`)), format: 'der', type: 'spki' });
  const openssl = async (command: string, ...args: string[]): Promise<string> => {
    const { code, out, complaints } = await run('openssl', [command, '-engine', 'pkcs11', ...args], { environment });
    expect(code, complaints).toBe(0);
    return out + complaints;
  };

  test.each([
    ['RSA PKCS#1', 'rsa', 'sha256', [], {}],
    ['RSA PKCS#1', 'rsa', 'sha512', [], {}],
    [
      'RSA-PSS',
      'rsa',
      'sha256',
      ['rsa_padding_mode:pss', 'rsa_pss_saltlen:32'],
      { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 },
    ],
    ['ECDSA', 'ec', 'sha256', [], {}],
  ] as const)('signs: %s with %s and %s', async (_, label, hash, options, padding) => {
    const more = options.flatMap((option) => ['-sigopt', option]);
    const out = ['-out', path('signature')];
    await openssl('dgst', '-keyform', 'engine', `-${hash}`, ...more, '-sign', key(label), ...out, path('message'));
    const signature = readFileSync(path('signature'));
    expect(verify(hash, message, { key: publicKey(label), ...padding }, signature)).toBe(true);
  });
  test('verifies with the public key of the token', async () => {
    await openssl(
      'dgst',
      '-keyform',
      'engine',
      '-sha256',
      '-sign',
      key('rsa'),
      '-out',
      path('signature'),
      path('message'),
    );
    const args = ['-sha256', '-verify', key('rsa', 'public'), '-signature', path('signature'), path('message')];
    expect(await openssl('dgst', '-keyform', 'engine', ...args)).toContain('Verified OK');
  });
  test('asks for a certificate', async () => {
    const to = ['-subj', '/CN=asks', '-out', path('request.pem')];
    await openssl('req', '-new', '-keyform', 'engine', '-key', key('rsa'), ...to);
    const { out, complaints } = await run(
      'openssl',
      ['req', '-in', path('request.pem'), '-noout', '-verify', '-subject'],
      {
        environment,
      },
    );
    expect(out + complaints).toContain('self-signature verify OK');
    // Versions before 3.2 have spaces there.
    expect(out).toMatch(/CN ?= ?asks/);
  });
  test.each(['rsa', 'ec'])('makes a certificate for the %s key, and s_server serves with it', async (label) => {
    const certificate = path(`${label}.crt`);
    const to = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-days', '2', '-out', certificate];
    await openssl('req', '-new', '-x509', '-keyform', 'engine', '-key', key(label), ...to);
    expect(new X509Certificate(readFileSync(certificate)).verify(publicKey(label))).toBe(true);

    const port = await freePort();
    const keys = ['-engine', 'pkcs11', '-keyform', 'engine', '-key', key(label), '-cert', certificate];
    const listen = [
      's_server',
      ...keys,
      '-accept',
      `127.0.0.1:${port}`,
      '-Verify',
      '1',
      '-CAfile',
      certificate,
      '-www',
    ];
    const server = await startDaemon('openssl', listen, { environment, ready: /ACCEPT/ });
    try {
      // s_client proves the same key to it.
      const client = [
        's_client',
        ...keys,
        '-connect',
        `127.0.0.1:${port}`,
        '-servername',
        'localhost',
        '-CAfile',
        certificate,
      ];
      const args = [...client, '-verify_return_error', '-verify_hostname', 'localhost', '-ign_eof'];
      const { out, complaints } = await run('openssl', args, { environment, input: 'GET / HTTP/1.0\r\n\r\n' });
      expect(out, complaints).toContain('Verify return code: 0 (ok)');
      expect(out).toContain('HTTP/1.0 200 ok');
      // Who has no key does not get in.
      const without = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: readFileSync(certificate) });
      const refusal = await new Promise<Error>((resolve, reject) => {
        without.once('error', resolve);
        without.once('end', () => reject(new Error('no refusal')));
      });
      expect(refusal.message).toMatch(/alert|certificate required/i);
    } finally {
      await server.stop();
    }
  });
});
