// GnuTLS, by p11tool and certtool, through the built library to the real service, and through
// SoftHSM2: pairs made on the token, signatures that it checks itself, a certificate, and a TLS
// server and a TLS client whose keys are on the token.
import { createPublicKey, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatRecoveryKey } from '../../server/base/recovery-key.ts';
import type { SnapshotOpening } from '../../server/contract/api/snapshots-routes.ts';
import type { Application } from '../../server/contract/api/tde-applications-routes.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { freePort, startDaemon } from '../support/daemon.ts';
import { endProcess } from '../support/host.ts';
import { makeOthersKey } from '../support/others-key.ts';
import { library } from '../support/pkcs11-host.ts';
import { startSite } from '../support/site.ts';
import { makeRecoveryKey } from '../support/snapshot-files.ts';
import { answerOpening } from '../support/snapshots.ts';
import { presentTokens, startTokens, type Token } from '../support/token.ts';
import { installed, run } from '../support/tools.ts';

const present = installed('gnutls-bin', 'p11tool', 'certtool', 'gnutls-serv', 'gnutls-cli');

describe.runIf(present).each(presentTokens)('GnuTLS with %s', (name) => {
  let token: Token;
  let environment: NodeJS.ProcessEnv;
  beforeAll(async () => {
    token = await startTokens[name]('tls');
    environment = { ...token.environment, GNUTLS_PIN: token.pin };
  });
  afterAll(() => token.end());

  const path = (file: string): string => join(token.folder, file);
  const url = (rest = ''): string => `pkcs11:token=tls${rest}`;
  const done = async (program: string, ...args: string[]): Promise<string> => {
    const { code, out, complaints } = await run(program, args, { environment });
    expect(code, complaints).toBe(0);
    return out + complaints;
  };
  const p11tool = (...args: string[]): Promise<string> =>
    done('p11tool', '--batch', '--provider', token.module, '--login', ...args);
  /** A certificate of its own for a pair of the token, kept in a file. */
  const certify = async (pair: string, subject: string, use: string): Promise<string> => {
    const template = `cn = "${subject}"\nca\ncert_signing_key\nsigning_key\n${use}\ndns_name = localhost\nexpiration_days = 2\n`;
    writeFileSync(path('template'), template);
    const keys = [
      '--load-privkey',
      url(`;object=${pair};type=private`),
      '--load-pubkey',
      url(`;object=${pair};type=public`),
    ];
    const to = path(`${pair}.crt`);
    const args = ['--generate-self-signed', '--template', path('template'), '--outfile', to];
    await done('certtool', '--provider', token.module, ...keys, ...args);
    return to;
  };

  test('p11tool finds the token', async () => {
    const out = await done('p11tool', '--provider', token.module, '--list-tokens');
    expect(out).toMatch(/Label: tls\n\s+Type: Generic token\n\s+Flags: RNG, Requires login\n/);
  });
  test('p11tool makes pairs, whose public halves it writes', async () => {
    await p11tool(
      '--generate-rsa',
      '--bits',
      '2048',
      '--label',
      'rsa',
      '--id',
      '01',
      '--outfile',
      path('rsa.pem'),
      url(),
    );
    await p11tool(
      '--generate-ecc',
      '--curve',
      'secp256r1',
      '--label',
      'ec',
      '--id',
      '02',
      '--outfile',
      path('ec.pem'),
      url(),
    );
    expect(createPublicKey(readFileSync(path('rsa.pem'))).asymmetricKeyDetails).toMatchObject({ modulusLength: 2048 });
    expect(createPublicKey(readFileSync(path('ec.pem'))).asymmetricKeyDetails).toMatchObject({
      namedCurve: 'prime256v1',
    });
  });
  test('p11tool lists them, and that they do not leave', async () => {
    const out = await p11tool('--list-all', url());
    expect(out).toMatch(
      /Type: Private key \(RSA-2048\)\n\s+Label: rsa\n\s+Flags: .*CKA_PRIVATE; CKA_NEVER_EXTRACTABLE; CKA_SENSITIVE; \n\s+ID: 01\n/,
    );
    expect(out).toMatch(/Type: Public key \(EC\/ECDSA-SECP256R1\)\n\s+Label: ec\n/);
    const open = await done('p11tool', '--batch', '--provider', token.module, '--list-all', url());
    expect(open).not.toContain('Private key');
  });
  test.each([
    ['rsa', [], 'RSA-SHA256'],
    ['rsa', ['--sign-params', 'rsa-pss'], 'RSA-PSS-SHA256'],
    ['ec', [], 'ECDSA-SHA256'],
  ] as const)('p11tool signs with the %s key %j and holds it against both keys', async (pair, more, algorithm) => {
    expect(await p11tool('--test-sign', ...more, url(`;object=${pair};type=private`))).toBe(
      `Signing using ${algorithm}... ok\nVerifying against private key parameters... ok\nVerifying against public key in the token... ok\n`,
    );
  });
  test('certtool makes a certificate, which p11tool stores, finds and deletes', async () => {
    const certificate = new X509Certificate(readFileSync(await certify('rsa', 'stored', 'tls_www_server')));
    expect(certificate.verify(createPublicKey(readFileSync(path('rsa.pem'))))).toBe(true);
    await p11tool('--write', '--load-certificate', path('rsa.crt'), '--label', 'stored', '--id', '01', url());
    const found = await p11tool('--export', url(';object=stored;type=cert'));
    expect(new X509Certificate(found).fingerprint256).toBe(certificate.fingerprint256);
    await p11tool('--delete', url(';object=stored;type=cert'));
    expect(await p11tool('--list-all', url())).not.toContain('stored');
  });
  test.each(['rsa', 'ec'] as const)(
    'p11tool brings a %s pair of others to the token and signs with it',
    async (kind) => {
      const { key, read } = await makeOthersKey(token.folder, `others-${kind}`, kind);
      writeFileSync(path('public.pem'), read().publicKey.export({ format: 'pem', type: 'spki' }));
      const named = ['--label', `others ${kind}`, '--id', kind === 'rsa' ? '71' : '72', url()];
      await p11tool('--write', '--load-privkey', key, ...named);
      await p11tool('--write', '--load-pubkey', path('public.pem'), ...named);
      const written = url(`;object=others%20${kind};type=private`);
      expect(await p11tool('--test-sign', written)).toMatch(
        /^Signing using .*\.\.\. ok\nVerifying against private key parameters\.\.\. ok\nVerifying against public key in the token\.\.\. ok\n$/,
      );
      await p11tool('--set-label', `ours ${kind}`, written);
      expect(await p11tool('--list-privkeys', url())).toContain(`Label: ours ${kind}\n`);
    },
  );
  test('p11tool gets random bytes', async () => {
    const [one, other] = [
      await p11tool('--generate-random', '16', url()),
      await p11tool('--generate-random', '16', url()),
    ];
    expect(one).not.toBe(other);
  });
  test('a TLS server and its client both have their keys on the token', async () => {
    const serverCertificate = await certify('ec', 'localhost', 'tls_www_server');
    const clientCertificate = await certify('rsa', 'dba', 'tls_www_client');
    const port = await freePort();
    const key = (pair: string, certificate: string): string[] => [
      '--x509keyfile',
      url(`;object=${pair};type=private`),
      '--x509certfile',
      certificate,
    ];
    const server = await startDaemon(
      'gnutls-serv',
      [
        '--echo',
        '--provider',
        token.module,
        ...key('ec', serverCertificate),
        '--require-client-cert',
        '--verify-client-cert',
      ].concat(['--x509cafile', clientCertificate, '--port', String(port)]),
      { environment, ready: /IPv4 .*done/ },
    );
    try {
      const args = ['--provider', token.module, ...key('rsa', clientCertificate), '--x509cafile', serverCertificate];
      const { code, out, complaints } = await run('gnutls-cli', [...args, '--port', String(port), 'localhost'], {
        environment,
        input: 'over the wire\n',
      });
      expect(code, out + complaints).toBe(0);
      expect(out).toContain('- Status: The certificate is trusted.');
      expect(out).toContain('- Successfully sent 1 certificate(s) to server.');
      expect(out).toContain('over the wire');
    } finally {
      await server.stop();
    }
  });
});

test.runIf(present)('p11tool finds the token of a renamed application by its URI, also after a restore', async () => {
  const site = await startSite({ toml: '[snapshots]\nrestore_second_person = false\n' });
  try {
    const { api } = site;
    const registered = await registerApplication(api, 'reports', await createGroup(api, 'reports'));
    const path = `/api/tde/applications/${registered.application.id}`;
    const environment = {
      ...{ GNUTLS_PIN: 'any', DKE_PKCS11_CONF: site.config('reports', registered) },
      ...{ DKE_PKCS11_SOCKET: site.socket, DKE_AGENT_LOG_DIR: site.logDirectory },
    };
    const p11tool = async (...args: string[]): Promise<string> => {
      const all = ['--batch', '--provider', library, '--login', ...args, 'pkcs11:token=reports'];
      const { code, out, complaints } = await run('p11tool', all, { environment });
      expect(code, complaints).toBe(0);
      return out;
    };
    const rename = (name: string): Promise<Application> => api.call('PUT', `${path}/name`, { name });
    const recovery = makeRecoveryKey();
    await api.call('POST', '/api/recovery-keys', { name: 'safe', publicKey: formatRecoveryKey(recovery.publicKey) });
    const pair = ['--curve', 'secp256r1', '--label', 'signing', '--outfile', join(site.folder, 'signing.pem')];
    await p11tool('--generate-ecc', ...pair);
    await rename('figures');
    const { id } = await api.call<{ readonly id: string }>('POST', '/api/snapshots', {});
    expect(await rename('numbers')).toMatchObject({ name: 'numbers', tokenLabel: 'reports' });
    // A new agent asks the service again.
    const isFound = async (): Promise<void> => {
      for (const pid of site.agents()) await endProcess(pid);
      expect(await p11tool('--list-all')).toMatch(/Type: Private key .*\n\s+Label: signing\n/);
    };
    await isFound();
    const opening = await api.call<SnapshotOpening>('POST', `/api/snapshots/${id}/openings`, {
      recoveryKeyId: recovery.id,
    });
    const answer = answerOpening({ ...opening, expiresAt: Date.parse(opening.expiresAt) }, recovery.key);
    await api.call('POST', `/api/snapshots/${id}/restore`, answer);
    expect(await api.call('GET', path)).toMatchObject({ name: 'figures', tokenLabel: 'reports' });
    await isFound();
  } finally {
    await site.end();
  }
});
