// nginx with the key of its certificate on the token, by OpenSSL's engine: the master process loads
// the library and the key, its workers are forked and sign, and a reload starts others. Through the
// built library to the real service, and through SoftHSM2.
import { readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Daemon, freePort, startDaemon } from '../support/daemon.ts';
import { engine, engineEnvironment } from '../support/openssl.ts';
import { presentTokens, startTokens, type Token } from '../support/token.ts';
import { installed, run } from '../support/tools.ts';

const present =
  installed('nginx-light', 'nginx') &&
  installed('libengine-pkcs11-openssl', engine) &&
  installed('opensc', 'pkcs11-tool');

describe.runIf(present).each(presentTokens)('nginx with %s', (name) => {
  let token: Token;
  let server: Daemon;
  let port: number;
  const path = (file: string): string => join(token.folder, file);

  beforeAll(async () => {
    token = await startTokens[name]();
    const access = ['--module', token.module, '--token-label', 'tool', '--login', '--pin', token.pin];
    const pair = ['--keypairgen', '--key-type', 'EC:prime256v1', '--label', 'server', '--id', '01'];
    expect((await run('pkcs11-tool', [...access, ...pair], token)).code).toBe(0);
    const environment = engineEnvironment(token);
    const key = 'pkcs11:token=tool;object=server;type=private';
    const own = ['-key', key, '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-days', '2'];
    const request = ['req', '-new', '-x509', '-engine', 'pkcs11', '-keyform', 'engine', ...own, '-out', path('crt')];
    expect((await run('openssl', request, { environment })).code).toBe(0);
    port = await freePort();
    const kept = Object.keys(environment).map((variable) => `env ${variable};\n`);
    writeFileSync(
      path('nginx.conf'),
      `${process.getuid?.() === 0 ? 'user root;\n' : ''}worker_processes 2;\ndaemon off;\npid ${path('pid')};\nerror_log stderr notice;\n` +
        `${kept.join('')}ssl_engine pkcs11;\nevents { worker_connections 64; }\n` +
        `http { access_log off; client_body_temp_path ${path('body')}; proxy_temp_path ${path('proxy')};\n` +
        `fastcgi_temp_path ${path('fastcgi')}; uwsgi_temp_path ${path('uwsgi')}; scgi_temp_path ${path('scgi')};\n` +
        `server { listen 127.0.0.1:${port} ssl; ssl_session_cache off; ssl_session_tickets off;\n` +
        `ssl_certificate ${path('crt')}; ssl_certificate_key "engine:pkcs11:${key}";\n` +
        `location / { return 200 "$pid"; } } }\n`,
    );
    const args = ['-e', 'stderr', '-c', path('nginx.conf')];
    server = await startDaemon('nginx', args, {
      environment,
      ready: /start worker process \d+[\s\S]*start worker process \d+/,
    });
  });
  afterAll(async () => {
    await server.stop('SIGQUIT');
    await token.end();
  });

  /** One handshake; answers the worker's process id. */
  const ask = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const options = {
        port,
        host: '127.0.0.1',
        servername: 'localhost',
        ca: readFileSync(path('crt')),
        agent: false,
      } as const;
      get(options, (response) => {
        let body = '';
        response.on('data', (part: Buffer) => {
          body += part.toString();
        });
        response.on('end', () => resolve(body));
      }).on('error', reject);
    });

  test('its workers sign', async () => {
    const workers = await Promise.all(Array.from({ length: 12 }, ask));
    expect(workers.every((pid) => /^\d+$/.test(pid))).toBe(true);
  });
  test('workers of a new configuration sign, too', async () => {
    const before = new Set(server.printed().match(/start worker process \d+/g));
    process.kill(Number(readFileSync(path('pid'), 'utf8')), 'SIGHUP');
    await expect
      .poll(() => new Set(server.printed().match(/start worker process \d+/g)).size)
      .toBeGreaterThanOrEqual(before.size + 2);
    await expect.poll(async () => before.has(`start worker process ${await ask()}`)).toBe(false);
  });
});
