// The disk fills up under a running server, a file may no longer grow, and the database is changed
// by hand. What was confirmed stays, reading continues, nothing is half done, and one damaged
// record does not affect others.
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { createGroup, openConsoleApi, registerApplication } from '../support/console-api.ts';
import type { Database } from '../support/database.ts';
import { until } from '../support/host.ts';
import { startServerProcess } from '../support/server-process.ts';
import { type Site, startSite } from '../support/site.ts';
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

const zeroIv = '00'.repeat(16);
const plain = '5a'.repeat(32);
const newLabel = (): string => `MASTER.${randomBytes(8).toString('hex')}`;

const disk = mountSmallDisk('12m');
if (typeof disk === 'string') console.log(`skipped: ${disk}`);

describe.runIf(typeof disk !== 'string')('a disk that is full (ENOSPC on a tmpfs)', () => {
  const small = disk as SmallDisk;
  let site: Site;
  let database: Database;
  let handle: number;
  let wrapped: string;
  let endpoint: XksEndpoint;
  let sealed: Awaited<ReturnType<XksEndpoint['encrypt']>>['body'];
  const names: string[] = [];

  beforeAll(async () => {
    site = await startSite({ folder: small.folder });
    endpoint = await createXksEndpoint(site, 'cloud');
    sealed = (await endpoint.encrypt(Buffer.from(plain, 'hex'))).body;
    const application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
    database = site.database(site.config('pkcs11', application));
    expect((await database.call('open', { pin: '' })).rv).toBe('CKR_OK');
    handle = (await database.call('generate', { label: 'MASTER' })).handle ?? 0;
    wrapped = (await database.call('encrypt', { handle, iv: zeroIv, data: plain })).data ?? '';
  });
  afterAll(async () => {
    small.free();
    await site?.end();
    small.end();
  });

  test('refuses changes with a clear error', async () => {
    small.fill();
    // The log that was already allocated takes a few changes more.
    const refused = await until('the refusal', async () => {
      const name = `vault ${names.length}`;
      const answer = await site.api.send('POST', '/api/vaults', { name });
      if (answer.status === 201) names.push(name);
      return answer.status === 201 ? undefined : answer;
    });
    expect(refused.status).toBe(503);
    expect(JSON.parse(refused.text)).toMatchObject({
      code: 'unavailable',
      detail: expect.stringMatching(/disk is full/),
      hint: expect.stringMatching(/free space/),
    });
    expect(await database.call('generate', { label: newLabel() })).toEqual({ rv: 'CKR_DEVICE_ERROR' });
  });

  test('continues to decrypt and to encrypt, for a database and for the cloud', async () => {
    expect(await database.call('decrypt', { handle, iv: zeroIv, data: wrapped })).toEqual({
      rv: 'CKR_OK',
      data: plain,
    });
    expect(await database.call('encrypt', { handle, iv: zeroIv, data: plain })).toEqual({
      rv: 'CKR_OK',
      data: wrapped,
    });
    const opened = await endpoint.decrypt(sealed);
    expect(opened).toMatchObject({ status: 200, body: { plaintext: Buffer.from(plain, 'hex').toString('base64') } });
  });

  test('lets a process that was not seen before decrypt too', async () => {
    const other = site.database(join(site.folder, 'pkcs11.toml'));
    expect((await other.call('open', { pin: '' })).rv).toBe('CKR_OK');
    expect(await other.call('decrypt', { handle, iv: zeroIv, data: wrapped })).toEqual({ rv: 'CKR_OK', data: plain });
    await other.stop();
  });

  test('does not destroy by half: the refused key is whole', async () => {
    expect(await database.call('destroy', { handle })).toEqual({ rv: 'CKR_DEVICE_ERROR' });
    expect(await database.call('decrypt', { handle, iv: zeroIv, data: wrapped })).toEqual({
      rv: 'CKR_OK',
      data: plain,
    });
  });

  test('answers reads and health', async () => {
    expect((await site.api.send('GET', '/api/vaults')).status).toBe(200);
    // The readable part stays in use: a load balancer must not remove the node.
    await expect
      .poll(() => site.api.send('GET', '/health'))
      .toMatchObject({ status: 200, text: '{"status":"degraded"}' });
    expect(site.server.child.exitCode).toBe(null);
  });

  test('is over when there is room again, and every confirmed change is there, also after a restart', async () => {
    small.free();
    expect((await site.api.send('POST', '/api/vaults', { name: 'afterwards' })).status).toBe(201);
    await until('good health', async () =>
      (await site.api.send('GET', '/health')).text === '{"status":"healthy"}' ? true : undefined,
    );
    for (const restarted of [false, true]) {
      if (restarted) {
        expect(await site.stopServer()).toBe(0);
        await site.startServer();
      }
      const { items } = await site.api.call<{ items: { name: string }[] }>('GET', '/api/vaults?limit=1000');
      expect(items.map(({ name }) => name)).toEqual(expect.arrayContaining([...names, 'afterwards']));
      expect(await database.call('decrypt', { handle, iv: zeroIv, data: wrapped })).toEqual({
        rv: 'CKR_OK',
        data: plain,
      });
    }
    expect(await database.call('destroy', { handle })).toEqual({ rv: 'CKR_OK' });
  });
});

describe('a file that may not grow (EFBIG by RLIMIT_FSIZE, an I/O error to the store)', () => {
  test('ends the server with 5, and what was confirmed is there afterwards', async () => {
    const first = await startServerProcess();
    const { folder, adminToken } = first;
    await first.stop();
    const server = await startServerProcess({ folder, through: ['prlimit', '--fsize=300000:300000'] });
    const confirmed: string[] = [];
    try {
      const api = openConsoleApi(server, adminToken);
      for (let index = 0; index < 2000; index++) {
        const name = `vault ${index}`;
        const answer = await api.send('POST', '/api/vaults', { name }).catch(() => undefined);
        if (answer?.status !== 201) break;
        confirmed.push(name);
      }
      expect(confirmed.length).toBeGreaterThan(0);
      await until('its end', async () => server.child.exitCode ?? undefined);
      expect(server.child.exitCode, server.log()).toBe(5);
      expect(server.log()).toMatch(/writing .*dke\.db failed: what was not confirmed is lost/);
    } finally {
      await server.stop();
    }
    const again = await startServerProcess({ folder });
    try {
      const api = openConsoleApi(again, adminToken);
      const found: string[] = [];
      for (let next: string | null = ''; next !== null; ) {
        const after: string = next === '' ? '' : `&after=${encodeURIComponent(next)}`;
        const page: { items: { name: string }[]; next: string | null } = await api.call(
          'GET',
          `/api/vaults?limit=1000${after}`,
        );
        found.push(...page.items.map(({ name }) => name));
        next = page.next;
      }
      expect(found).toEqual(expect.arrayContaining(confirmed));
      expect((await api.send('GET', '/health')).status).toBe(200);
    } finally {
      await again.remove();
    }
  });
});

describe('a database that was changed by hand', () => {
  let site: Site;
  let database: Database;
  let application: RegisteredApplication;
  let endpoint: XksEndpoint;
  let sealed: Awaited<ReturnType<XksEndpoint['encrypt']>>['body'];

  beforeAll(async () => {
    site = await startSite();
    application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
    database = site.database(site.config('pkcs11', application));
    expect((await database.call('open', { pin: '' })).rv).toBe('CKR_OK');
    endpoint = await createXksEndpoint(site, 'cloud');
    sealed = (await endpoint.encrypt(Buffer.from(plain, 'hex'))).body;
  });
  afterAll(() => site.end());

  interface MadeKey {
    readonly handle: number;
    readonly id: string;
    readonly wrapped: string;
  }
  const make = async (): Promise<MadeKey> => {
    const label = newLabel();
    const { handle = 0 } = await database.call('generate', { label });
    const { data = '' } = await database.call('encrypt', { handle, iv: zeroIv, data: plain });
    return { handle, id: (await site.api.masterKey(application.application.id, label)).id, wrapped: data };
  };
  const use = ({ handle, wrapped }: MadeKey) => database.call('decrypt', { handle, iv: zeroIv, data: wrapped });
  /** Changes the database of the stopped server, and starts the server again. */
  const tamper = async (change: (db: DatabaseSync) => void): Promise<void> => {
    expect(await site.stopServer()).toBe(0);
    const db = new DatabaseSync(join(site.server.dataDirectory, 'dke.db'));
    try {
      change(db);
    } finally {
      db.close();
    }
    await site.startServer();
  };
  const record = (db: DatabaseSync, id: string, copy: string): Buffer => {
    const row = db.prepare('select record from key_records where object_id = ? and class = ?').get(id, copy);
    return Buffer.from(row?.record as Uint8Array);
  };
  const put = (db: DatabaseSync, id: string, copy: string, value: SQLInputValue): void => {
    db.prepare('update key_records set record = ? where object_id = ? and class = ?').run(value, id, copy);
  };
  const flipped = (bytes: Buffer, at: number): Buffer => {
    const out = Buffer.from(bytes);
    out.writeUInt8(out.readUInt8(at) ^ 1, at);
    return out;
  };
  const alarms = async (id: string): Promise<number> =>
    (await site.api.audit(`kind=row.tampered&subjectId=${id}`)).length;
  /** A key for each row of a table, so that one start of the server shows what becomes of all. */
  const makeEach = async <R extends readonly [what: string, ...rest: readonly unknown[]]>(rows: readonly R[]) => {
    const made: { readonly row: R; readonly key: MadeKey }[] = [];
    for (const row of rows) made.push({ row, key: await make() });
    return made;
  };
  const untilAlarms = async (
    damaged: readonly { readonly row: readonly [what: string, ...rest: readonly unknown[]]; readonly key: MadeKey }[],
  ): Promise<void> => {
    for (const { row, key } of damaged)
      await until(`the alarm: ${row[0]}`, async () => ((await alarms(key.id)) > 0 ? true : undefined));
  };

  test('a key whose copies are both damaged holds back the erasure run until it is repaired, and is not lost by it', async () => {
    const [damaged, doomed, sound] = [await make(), await make(), await make()];
    const copies = ['sealed-copy', 'vault-copy'] as const;
    const originals = new Map<string, Buffer>();
    await tamper((db) => {
      for (const copy of copies) {
        const original = record(db, damaged.id, copy);
        originals.set(copy, original);
        put(db, damaged.id, copy, flipped(original, 125));
      }
    });
    const unrecoverable = async () =>
      (await site.api.audit(`kind=key.unrecoverable&subjectId=${doomed.id}`)).length > 0 ? true : undefined;
    expect(await database.call('destroy', { handle: doomed.handle })).toEqual({ rv: 'CKR_OK' });
    await until('the run that is held back', async () =>
      site.server.log().includes('erasure run is blocked') ? true : undefined,
    );
    expect(await unrecoverable()).toBe(undefined);
    expect(await use(doomed)).toEqual({ rv: 'CKR_KEY_HANDLE_INVALID' });
    expect(await use(sound)).toEqual({ rv: 'CKR_OK', data: plain });

    await tamper((db) => {
      for (const [copy, original] of originals) put(db, damaged.id, copy, original);
    });
    await until('the run', unrecoverable);
    expect(await use(damaged)).toEqual({ rv: 'CKR_OK', data: plain });
    expect(await use(sound)).toEqual({ rv: 'CKR_OK', data: plain });
  });

  test('a key with one damaged copy is made whole by the erasure run', async () => {
    const [damaged, doomed] = [await make(), await make()];
    await tamper((db) => put(db, damaged.id, 'sealed-copy', flipped(record(db, damaged.id, 'sealed-copy'), 125)));
    expect(await use(damaged)).toEqual({ rv: 'CKR_DEVICE_ERROR' });
    expect(await database.call('destroy', { handle: doomed.handle })).toEqual({ rv: 'CKR_OK' });
    await until('the run', async () =>
      (await site.api.audit(`kind=key.unrecoverable&subjectId=${doomed.id}`)).length > 0 ? true : undefined,
    );
    expect(await use(damaged)).toEqual({ rv: 'CKR_OK', data: plain });
    expect(await site.api.audit(`kind=key.repaired&subjectId=${damaged.id}`)).toHaveLength(1);
  });

  test('a sealed key with one flipped bit, or another record in its place, is closed with an alarm, and no other', async () => {
    const sound = await make();
    const flip =
      (at: number) =>
      (db: DatabaseSync, id: string): void => {
        const bytes = record(db, id, 'sealed-copy');
        put(db, id, 'sealed-copy', flipped(bytes, at < 0 ? bytes.length + at : at));
      };
    const spoils: readonly (readonly [what: string, spoil: (db: DatabaseSync, id: string) => void])[] = [
      ['its layout', flip(0)],
      ['its salt', flip(50)],
      ['its ciphertext', flip(125)],
      ['its tag', flip(-1)],
      ['the copy of another key', (db, id) => put(db, id, 'sealed-copy', record(db, sound.id, 'sealed-copy'))],
      ['its own vault copy', (db, id) => put(db, id, 'sealed-copy', record(db, id, 'vault-copy'))],
    ];
    const damaged = await makeEach(spoils);
    await tamper((db) => {
      for (const { key, row } of damaged) row[1](db, key.id);
    });
    for (const { key, row } of damaged) expect([row[0], await use(key)]).toEqual([row[0], { rv: 'CKR_DEVICE_ERROR' }]);
    expect(await use(sound)).toEqual({ rv: 'CKR_OK', data: plain });
    await untilAlarms(damaged);
    expect(await alarms(sound.id)).toBe(0);
    expect((await site.api.send('GET', '/health')).status).toBe(200);
    // A key that cannot be opened can be destroyed.
    for (const { key, row } of damaged)
      expect([row[0], await database.call('destroy', { handle: key.handle })]).toEqual([row[0], { rv: 'CKR_OK' }]);
    // The erasure run repairs damaged records from their other copy: the next test must not meet
    // it.
    for (const { key, row } of damaged)
      await until(`the run: ${row[0]}`, async () =>
        (await site.api.audit(`kind=key.unrecoverable&subjectId=${key.id}`)).length > 0 ? true : undefined,
      );
  });

  test('the record of a destroyed key put back opens nothing', async () => {
    const key = await make();
    let before: Buffer = Buffer.alloc(0);
    await tamper((db) => {
      before = record(db, key.id, 'sealed-copy');
    });
    expect(await database.call('destroy', { handle: key.handle })).toEqual({ rv: 'CKR_OK' });
    await tamper((db) => {
      put(db, key.id, 'sealed-copy', before);
      db.prepare("update keys set state = 'active', destroyed_at = null where id = ?").run(key.id);
      db.prepare('update tde_objects set destroyed_at = null where handle = ?').run(key.handle);
    });
    expect((await use(key)).rv).toMatch(/^CKR_(DEVICE_ERROR|KEY_HANDLE_INVALID)$/);
    // Rows that an intruder has put in would cause alarms forever, so this one is removed again.
    await tamper((db) => put(db, key.id, 'sealed-copy', null));
  });

  test('what was changed in the row of a key closes the key and raises an alarm', async () => {
    const sound = await make();
    const damaged = await makeEach([
      ['a permission', 'update tde_objects set usages = \'["encrypt","decrypt","sign"]\' where id = ?'],
      ['the sensitivity', 'update tde_objects set sensitive = 0, extractable = 1 where id = ?'],
      ['its past', 'update tde_objects set always_sensitive = 0, never_extractable = 0 where id = ?'],
      ['the owner', "update tde_objects set application_id = 'somebody' where id = ?"],
      ['the state of a disabled key', "update keys set state = 'active', disabled_at = null where id = ?"],
      ['the vault of a key', "update keys set vault_id = 'elsewhere' where id = ?"],
    ] as const);
    for (const { key, row } of damaged)
      if (row[0].includes('disabled')) await site.api.call('POST', `/api/keys/${key.id}/disable`);
    await tamper((db) => {
      db.exec('pragma foreign_keys = off');
      for (const { key, row } of damaged) expect([row[0], db.prepare(row[1]).run(key.id).changes]).toEqual([row[0], 1]);
    });
    for (const { key, row } of damaged) expect([row[0], await use(key)]).toEqual([row[0], { rv: 'CKR_DEVICE_ERROR' }]);
    expect(await use(sound)).toEqual({ rv: 'CKR_OK', data: plain });
    await untilAlarms(damaged);
  });

  test('an endpoint whose secret was damaged refuses signatures; its key’s record closes the key alone', async () => {
    const other = await createXksEndpoint(site, 'other');
    const otherSealed = (await other.encrypt(Buffer.from(plain, 'hex'))).body;
    const keyId = other.endpoint.keyId;
    await tamper((db) => put(db, keyId, 'vault-copy', flipped(record(db, keyId, 'vault-copy'), 125)));
    expect(await other.decrypt(otherSealed)).toMatchObject({
      status: 404,
      body: { errorName: 'KeyNotFoundException' },
    });
    expect((await endpoint.decrypt(sealed)).status).toBe(200);
    await until('the alarm', async () => ((await alarms(keyId)) > 0 ? true : undefined));

    await tamper((db) => {
      for (const { object_id, record: bytes } of db
        .prepare("select object_id, record from key_records where class = 'endpoint-secret'")
        .all())
        put(db, String(object_id), 'endpoint-secret', flipped(Buffer.from(bytes as Uint8Array), 125));
    });
    expect(await endpoint.decrypt(sealed)).toMatchObject({
      status: 401,
      body: { errorName: 'AuthenticationFailedException' },
    });
    expect((await site.api.send('GET', '/health')).status).toBe(200);
  });

  test.each([
    [
      'a tenant’s key encryption key',
      'update tenant_keks set record = ? where rowid = (select max(rowid) from tenant_keks)',
      6,
    ],
    ['the service’s own key', "update key_records set record = ? where class = 'row-authentication'", 5],
  ])('%s damaged: refused at start, in one line', async (_what, statement, code) => {
    const server = await startServerProcess();
    await server.stop();
    const db = new DatabaseSync(join(server.dataDirectory, 'dke.db'));
    db.prepare(statement).run(randomBytes(186));
    db.close();
    try {
      const refused = startServerProcess({ folder: server.folder });
      await expect(refused).rejects.toMatchObject({ exitCode: code, message: expect.not.stringMatching(/\n\s+at /) });
    } finally {
      await server.remove();
    }
  });
});
