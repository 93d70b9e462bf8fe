// A database that is older than the checkpoint beside its root key, before the real server: shown, neither used nor changed, until an
// operator of its host confirms.
import { copyFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { openConsoleApi } from '../support/console-api.ts';
import { builtServer } from '../support/killed-server.ts';
import { startServerProcess } from '../support/server-process.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

test('an older database is in quarantine: read, not used, not changed; a confirmation needs the code of its host', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-quarantine-'));
  const begin = () => startServerProcess({ folder, program: [builtServer] });
  let server = await begin();
  try {
    const token = server.adminToken;
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, token, { mode: 0o600 });
    const place = { server, api: openConsoleApi(server, token) };
    const xks = await createXksEndpoint(place, 'cloud');
    const sealed = await xks.encrypt(Buffer.alloc(32, 1));
    await server.stop();
    const older = join(folder, 'older.db');
    copyFileSync(join(server.dataDirectory, 'dke.db'), older);
    server = await begin();
    await openConsoleApi(server, token).call('POST', '/api/vaults', { name: 'later' });
    await server.stop();
    for (const end of ['-wal', '-shm']) rmSync(join(server.dataDirectory, `dke.db${end}`), { force: true });
    cpSync(older, join(server.dataDirectory, 'dke.db'));

    server = await begin();
    Object.assign(place, { server, api: openConsoleApi(server, token) });
    const { api } = place;
    expect(server.output()).toMatch(/^quarantine: .*dke\.db is older than its last checkpoint/m);
    const health = await api.send('GET', '/health');
    expect([health.status, health.text]).toEqual([503, '{"status":"quarantine"}']);
    expect((await xks.decrypt(sealed.body)).status).toBe(503);
    const read = await api.call<{ items: readonly { name: string }[] }>('GET', '/api/vaults');
    expect(read.items.map(({ name }) => name)).toContain('cloud');
    const change = await api.send('POST', '/api/vaults', { name: 'now' });
    expect([change.status, JSON.parse(change.text)]).toMatchObject([503, { code: 'unavailable' }]);

    const command = (...args: readonly string[]) =>
      runCommand([
        '--server',
        server.url,
        '--ca-file',
        server.caFile,
        '--token-file',
        tokenFile,
        'quarantine',
        ...args,
      ]);
    const shown = await command('show');
    expect(shown.stdout).toMatch(/^quarantined +true$/m);
    expect(shown.stdout).toMatch(/^finding +older$/m);
    const guess = await command('confirm', '--code', '0123456789abcdef');
    expect([guess.code, guess.stderr]).toEqual([9, expect.stringMatching(/not the confirmation code/)]);

    const [, code = ''] = /^quarantine confirmation code: (\w+)$/m.exec(server.output()) ?? [];
    // Not in the log, which many may read.
    expect(server.log()).not.toContain(code);
    const confirmed = await command('confirm', '--code', code);
    expect([confirmed.code, confirmed.stderr]).toEqual([0, '']);
    expect((await api.send('GET', '/health')).text).toBe('{"status":"healthy"}');
    const opened = await xks.decrypt(sealed.body);
    expect(opened.status).toBe(200);
    const [record] = await api.audit('kind=audit-log.accepted');
    expect(record).toMatchObject({ actorKind: 'administrator', details: { state: 'older' } });
    await api.call('POST', '/api/vaults', { name: 'now' });
    await server.stop();
    server = await begin();
    expect((await openConsoleApi(server, token).send('GET', '/health')).text).toBe('{"status":"healthy"}');
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}, 240_000);
