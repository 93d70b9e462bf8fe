// A database that is older than the checkpoint next to its root key, before the real server: shown,
// neither used nor changed, until an operator of its host confirms.
import { copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { type ConsoleApi, openConsoleApi } from '../support/console-api.ts';
import { builtServer } from '../support/killed-server.ts';
import { quarantineCodeOf, startServerProcess } from '../support/server-process.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

/** An export ends with a checkpoint that covers everything. */
const seal = (api: ConsoleApi) => api.send('GET', '/api/audit/export');

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
    expect((await api.send('GET', '/health/live')).status).toBe(200);
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
    // The command shows both values, and the file of one of them with its time.
    const compared = /number of audit records +\d+ +its audit log +\d+ +\S+root\.key\.checkpoint \(written 20\S+Z\)/m;
    expect(shown.stdout).toMatch(compared);
    expect(server.output()).toMatch(/^quarantine, compared: number of audit records: \d+ in its audit log, \d+ in /m);
    expect(server.log()).toMatch(/number of audit records: \d+ in its audit log/);
    const guess = await command('confirm', '--code', '0123456789abcdef');
    expect([guess.code, guess.stderr]).toEqual([9, expect.stringMatching(/the confirmation code is wrong/)]);

    const code = await quarantineCodeOf(server);
    // Not in the log, which many may read.
    expect(server.log()).not.toContain(code);
    const confirmed = await command('confirm', '--code', code);
    expect([confirmed.code, confirmed.stderr]).toEqual([0, '']);
    // The health in quarantine is cached for two seconds.
    await expect.poll(async () => (await api.send('GET', '/health')).text).toBe('{"status":"healthy"}');
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
});

test('a log that is rewritten while the service runs is not signed: quarantine, until an operator of the host confirms', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-quarantine-'));
  const server = await startServerProcess({ folder, program: [builtServer] });
  try {
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, server.adminToken, { mode: 0o600 });
    const api = openConsoleApi(server, server.adminToken);
    const xks = await createXksEndpoint({ server, api }, 'cloud');
    const sealed = await xks.encrypt(Buffer.alloc(32, 1));
    await seal(api);
    const anchor = () => readFileSync(join(server.dataDirectory, 'root.key.checkpoint'), 'utf8');
    const signed = anchor();

    // Another actor with matching hashes, as written by an attacker who knows the format of the
    // log.
    const database = new DatabaseSync(join(server.dataDirectory, 'dke.db'), { timeout: 300_000 });
    const { changes } = database
      .prepare("UPDATE audit_events SET actor_name = 'somebody else', leaf_hash = randomblob(32) WHERE sequence = 2")
      .run();
    database.close();
    expect(changes).toBe(1);
    expect((await xks.decrypt(sealed.body)).status).toBe(200);
    await api.call('POST', '/api/vaults', { name: 'after the change' });
    const refused = await seal(api);
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([409, { code: 'key-tampered' }]);

    expect(anchor()).toBe(signed);
    const health = await api.send('GET', '/health');
    expect([health.status, health.text]).toEqual([503, '{"status":"quarantine"}']);
    expect((await xks.decrypt(sealed.body)).status).toBe(503);
    expect((await api.send('POST', '/api/vaults', { name: 'now' })).status).toBe(503);
    expect(await api.call('GET', '/api/quarantine')).toMatchObject({ quarantined: true, finding: 'changed' });

    const code = await quarantineCodeOf(server);
    const connection = ['--server', server.url, '--ca-file', server.caFile, '--token-file', tokenFile];
    const confirmed = await runCommand([...connection, 'quarantine', 'confirm', '--code', code]);
    expect([confirmed.code, confirmed.stderr]).toEqual([0, '']);
    // The health in quarantine is cached for two seconds.
    await expect.poll(async () => (await api.send('GET', '/health')).text).toBe('{"status":"healthy"}');
    expect((await xks.decrypt(sealed.body)).status).toBe(200);
    const [record] = await api.audit('kind=audit-log.accepted');
    expect(record).toMatchObject({ details: { state: 'changed' } });
    await api.call('POST', '/api/vaults', { name: 'now' });
    await seal(api);
    expect(anchor()).not.toBe(signed);
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a service that ends in quarantine writes nothing, and is in quarantine at the next start', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-quarantine-'));
  let server = await startServerProcess({ folder, program: [builtServer] });
  try {
    const token = server.adminToken;
    const api = openConsoleApi(server, token);
    await seal(api);
    const database = new DatabaseSync(join(server.dataDirectory, 'dke.db'), { timeout: 300_000 });
    database.exec('UPDATE audit_events SET leaf_hash = randomblob(32) WHERE sequence = 1');
    database.close();
    await api.call('POST', '/api/vaults', { name: 'after the change' });
    expect((await seal(api)).status).toBe(409);
    expect(await server.stop()).toBe(0);
    server = await startServerProcess({ folder, program: [builtServer] });
    expect(await openConsoleApi(server, token).call('GET', '/api/quarantine')).toMatchObject({ finding: 'changed' });
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('an old row that is put back is refused at once, and the next start is in quarantine', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-quarantine-'));
  const begin = () => startServerProcess({ folder, program: [builtServer] });
  let server = await begin();
  try {
    const token = server.adminToken;
    const api = openConsoleApi(server, token);
    const grants = [{ role: 'administrator', scope: null, tenantId: null }];
    const made = await api.call<{ readonly record: { readonly id: string }; readonly token: string }>(
      'POST',
      '/api/tokens',
      { name: 'of someone who left', grants },
    );
    const old = openConsoleApi(server, made.token);
    expect((await old.send('GET', '/api/vaults')).status).toBe(200);
    const ask = <T>(work: (database: DatabaseSync) => T): T => {
      const database = new DatabaseSync(join(server.dataDirectory, 'dke.db'), { timeout: 300_000 });
      try {
        return work(database);
      } finally {
        database.close();
      }
    };
    const row = ask((database) =>
      database
        .prepare('select grants, revoked_at, row_mac, row_version from api_tokens where id = ?')
        .get(made.record.id),
    );
    await api.send('DELETE', `/api/tokens/${made.record.id}`);
    expect((await old.send('GET', '/api/vaults')).status).toBe(401);
    ask((database) =>
      database
        .prepare('update api_tokens set grants = ?, revoked_at = ?, row_mac = ?, row_version = ? where id = ?')
        .run(...Object.values(row ?? {}), made.record.id),
    );
    expect((await old.send('GET', '/api/vaults')).status).toBe(401);
    const listed = await api.call<{ items: readonly { id: string; integrity: string }[] }>('GET', '/api/tokens');
    expect(listed.items.find(({ id }) => id === made.record.id)).toMatchObject({ integrity: 'tampered' });

    expect(await server.stop()).toBe(0);
    server = await begin();
    const again = openConsoleApi(server, token);
    expect(await again.call('GET', '/api/quarantine')).toMatchObject({ quarantined: true, finding: 'rows-changed' });
    expect(server.output()).toMatch(/^quarantine: .*rows that differ from those that the service wrote last/m);
    const code = await quarantineCodeOf(server);
    await again.call('POST', '/api/quarantine/confirm', { code });
    expect((await again.send('GET', '/health')).text).toBe('{"status":"healthy"}');
    const [record] = await again.audit('kind=audit-log.accepted');
    expect(record).toMatchObject({ details: { state: 'rows-changed' } });
    await again.call('POST', '/api/vaults', { name: 'now' });
    await server.stop();
    server = await begin();
    expect((await openConsoleApi(server, token).send('GET', '/health')).text).toBe('{"status":"healthy"}');
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
