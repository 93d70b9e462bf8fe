// PostgreSQL 15 over TLS, with psql as the client whose key is on the token: libpq takes it by
// OpenSSL's engine (`sslkey=pkcs11:…`), and the server asks for the certificate
// (clientcert=verify-full). Through the built library to the real service, and through SoftHSM2.
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Daemon, freePort, startDaemon } from '../support/daemon.ts';
import { sharedFolder } from '../support/folders.ts';
import { engine, engineEnvironment, plainEnvironment } from '../support/openssl.ts';
import { postgresqlPrograms, postgresqlUser } from '../support/postgresql.ts';
import { presentTokens, startTokens, type Token } from '../support/token.ts';
import { installed, run } from '../support/tools.ts';

const programs = postgresqlPrograms;
const present =
  installed('postgresql-15', join(programs, 'initdb'), join(programs, 'postgres'), 'psql') &&
  installed('libengine-pkcs11-openssl', engine) &&
  installed('opensc', 'pkcs11-tool');

describe.runIf(present)('psql', () => {
  const folder = sharedFolder();
  let port: number;
  let server: Daemon;
  const path = (file: string): string => join(folder, file);
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, {
      cwd: folder,
      stdio: 'ignore',
      env: { ...process.env, ...plainEnvironment(folder) },
    });
  };
  const authority = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2'];

  beforeAll(async () => {
    port = await freePort();
    const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    openssl(
      'req',
      '-x509',
      ...newKey,
      '-keyout',
      'ca.key',
      '-out',
      'ca.crt',
      '-subj',
      '/CN=authority',
      '-days',
      '2',
      '-addext',
      'basicConstraints=critical,CA:TRUE',
    );
    openssl('req', '-new', ...newKey, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost');
    writeFileSync(path('names'), 'subjectAltName = DNS:localhost\n');
    openssl('x509', '-req', '-in', 'server.csr', ...authority, '-extfile', 'names', '-out', 'server.crt');
    writeFileSync(path('hba'), 'hostssl all dba 127.0.0.1/32 cert clientcert=verify-full\nlocal all postgres trust\n');
    mkdirSync(path('data'));
    const own = postgresqlUser();
    if (own !== undefined) {
      for (const file of ['.', 'data', 'server.key', 'server.crt', 'ca.crt', 'hba'])
        chownSync(path(file), own.uid, own.gid);
    }
    chmodSync(path('server.key'), 0o600);
    const make = ['-D', path('data'), '-U', 'postgres', '-A', 'trust', '--no-sync', '--no-instructions', '--locale=C'];
    execFileSync(join(programs, 'initdb'), make, { ...own, cwd: folder, stdio: 'ignore' });
    const settings = {
      ssl: 'on',
      ssl_cert_file: path('server.crt'),
      ssl_key_file: path('server.key'),
      ssl_ca_file: path('ca.crt'),
      hba_file: path('hba'),
      listen_addresses: '127.0.0.1',
      fsync: 'off',
    };
    const set = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const args = ['-D', path('data'), '-k', folder, '-p', String(port), ...set];
    const ready = /ready to accept connections/;
    server = await startDaemon(join(programs, 'postgres'), args, { ...own, folder, ready });
    const role = await psql(`host=${folder} user=postgres`, 'create role dba login');
    expect(role.code, role.complaints).toBe(0);
  });
  afterAll(async () => {
    // An immediate stop: its data are not needed.
    await server.stop('SIGQUIT');
  });

  const psql = (connection: string, statement: string, environment: NodeJS.ProcessEnv = {}) =>
    run('psql', ['-XAt', '-v', 'ON_ERROR_STOP=1', '-c', statement, `${connection} port=${port} dbname=postgres`], {
      environment,
    });
  const overTls = (): string =>
    `host=localhost hostaddr=127.0.0.1 user=dba sslmode=verify-full sslrootcert=${path('ca.crt')}`;

  test('without a certificate the server lets no one in', async () => {
    const { code, complaints } = await psql(overTls(), 'select 1');
    expect(code).toBe(2);
    expect(complaints).toContain('connection requires a valid client certificate');
  });

  describe.each(presentTokens)('with its key in %s', (name) => {
    let token: Token;
    let environment: NodeJS.ProcessEnv;
    beforeAll(async () => {
      token = await startTokens[name]();
      environment = engineEnvironment(token);
      const access = ['--module', token.module, '--token-label', 'tool', '--login', '--pin', token.pin];
      for (const [type, label, id] of [
        ['EC:prime256v1', 'ec', '01'],
        ['rsa:2048', 'rsa', '02'],
      ] as const) {
        const pair = ['--keypairgen', '--key-type', type, '--label', label, '--id', id];
        const made = await run('pkcs11-tool', [...access, ...pair], token);
        expect(made.code, made.complaints).toBe(0);
      }
    });
    afterAll(() => token.end());

    test.each(['ec', 'rsa'])('logs in with the certificate of the %s key', async (label) => {
      const key = `pkcs11:token=tool;object=${label};type=private`;
      const request = ['-subj', '/CN=dba', '-out', path(`${name}.csr`)];
      const asked = await run(
        'openssl',
        ['req', '-new', '-engine', 'pkcs11', '-keyform', 'engine', '-key', key, ...request],
        {
          environment,
        },
      );
      expect(asked.code, asked.complaints).toBe(0);
      openssl('x509', '-req', '-in', `${name}.csr`, ...authority, '-out', `${name}.crt`);
      const { code, out, complaints } = await psql(
        `${overTls()} sslcert=${path(`${name}.crt`)} sslkey=pkcs11:${key}`,
        'select current_user, client_dn, version from pg_stat_ssl where pid = pg_backend_pid()',
        environment,
      );
      expect(code, complaints).toBe(0);
      expect(out).toBe('dba|/CN=dba|TLSv1.3\n');
    });
  });
});
