// A database over the real service: the built library, an agent that the library starts, the server
// over HTTPS. The first job of the specification from registration to destruction, with the exact
// code that a database prints at each step.
import { randomBytes } from 'node:crypto';
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import type { Database } from '../support/database.ts';
import { endProcess, filesWith, recordsOf, until } from '../support/host.ts';
import { startServerProcess } from '../support/server-process.ts';
import { type Site, startSite } from '../support/site.ts';
import { onSqlite } from '../support/test-store.ts';

const newLabel = (): string => `ORACLE.TDE.HSM.MK.06${randomBytes(16).toString('hex').toUpperCase()}`;
const zeroIv = '00'.repeat(16);
const hex = (length: number): string => randomBytes(length).toString('hex');
const xor = (a: string, b: string): string => {
  const right = Buffer.from(b, 'hex');
  return Buffer.from(Buffer.from(a, 'hex').map((byte, at) => byte ^ (right[at] ?? 0))).toString('hex');
};

let site: Site;
beforeAll(async () => {
  site = await startSite();
});
afterAll(() => site.end());

/** Opens a database process that must open. */
const opened = async (config: string): Promise<Database> => {
  const database = site.database(config);
  expect(await database.call('open', { pin: 'any' })).toEqual({ rv: 'CKR_OK' });
  return database;
};
const made = async (database: Database, label: string): Promise<number> => {
  const { rv, handle } = await database.call('generate', { label });
  expect(rv).toBe('CKR_OK');
  return handle ?? 0;
};
const found = async (database: Database, label: string): Promise<number> => {
  const { rv, handles } = await database.call('find', { label });
  expect(rv).toBe('CKR_OK');
  expect(handles).toHaveLength(1);
  return handles?.[0] ?? 0;
};
/** The record of a key from its salt on, in pieces: no two records share any of them by chance. */
const pieces = (record: Buffer): readonly Buffer[] => {
  const body = record.subarray(46);
  return Array.from({ length: Math.floor(body.length / 16) }, (_, at) => body.subarray(at * 16, at * 16 + 16));
};
const filesWithAny = (folder: string, needles: readonly Buffer[]): readonly string[] => [
  ...new Set(needles.flatMap((needle) => filesWith(folder, needle))),
];

describe('the master key of one database', () => {
  const label = newLabel();
  const dataKeys = [16, 32, 48, 64].map((length) => ({ iv: hex(16), plain: hex(length), wrapped: '' }));
  let application: RegisteredApplication;
  let config: string;
  let database: Database;
  let handle: number;
  let keyId: string;

  const unwrapped = async (from: Database): Promise<void> => {
    for (const { iv, plain, wrapped } of dataKeys)
      expect(await from.call('decrypt', { handle, iv, data: wrapped })).toEqual({ rv: 'CKR_OK', data: plain });
  };

  beforeAll(async () => {
    application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
    config = site.config('pkcs11', application, 'log_level = "debug"\n');
  });

  test('needs a configuration that is its owner’s alone, and an agent that was not started before', () => {
    expect((statSync(config).mode & 0o777).toString(8)).toBe('600');
    expect(site.agents()).toEqual([]);
  });

  test.each([
    ['none', ''],
    ['one character', 'x'],
    ['user and password', 'sys:password'],
    ['2000 characters', 'p'.repeat(2000)],
    ['bytes that are not ASCII', 'pässwörd'],
  ])('is reached with any PIN: %s', async (_what, pin) => {
    const any = site.database(config);
    expect(await any.call('open', { pin })).toEqual({ rv: 'CKR_OK' });
    expect(await any.call('login', { pin })).toEqual({ rv: 'CKR_USER_ALREADY_LOGGED_IN' });
    expect(await any.call('finalize', {})).toEqual({ rv: 'CKR_OK' });
    await any.stop();
    expect(site.agents()).toHaveLength(1);
  });

  test('is made on the token and found by its label', async () => {
    database = await opened(config);
    handle = await made(database, label);
    expect(await found(database, label)).toBe(handle);
    keyId = (await site.api.masterKey(application.application.id, label)).id;
  });

  test('is not made twice under one label, and is not there under another case of it', async () => {
    expect(await database.call('generate', { label })).toEqual({ rv: 'CKR_TEMPLATE_INCONSISTENT' });
    expect(await database.call('find', { label: label.toLowerCase() })).toEqual({ rv: 'CKR_OK', handles: [] });
    expect(await found(database, label)).toBe(handle);
  });

  test('wraps data keys as raw CBC: no header, no padding, the caller’s IV', async () => {
    for (const dataKey of dataKeys) {
      const { rv, data = '' } = await database.call('encrypt', { handle, iv: dataKey.iv, data: dataKey.plain });
      expect(rv).toBe('CKR_OK');
      expect(data).toHaveLength(dataKey.plain.length);
      dataKey.wrapped = data;
      // CBC chains: the first block under an IV is the block XOR IV under none, and each next block
      // has the one before as IV.
      const first = { handle, iv: zeroIv, data: xor(dataKey.plain.slice(0, 32), dataKey.iv) };
      expect((await database.call('encrypt', first)).data).toBe(data.slice(0, 32));
      if (data.length === 32) continue;
      const rest = { handle, iv: data.slice(0, 32), data: dataKey.plain.slice(32) };
      expect((await database.call('encrypt', rest)).data).toBe(data.slice(32));
    }
    await unwrapped(database);
    expect(await database.call('encrypt', { handle, iv: zeroIv, data: hex(17) })).toEqual({
      rv: 'CKR_DATA_LEN_RANGE',
    });
    expect(await database.call('decrypt', { handle, iv: zeroIv, data: hex(15) })).toEqual({
      rv: 'CKR_ENCRYPTED_DATA_LEN_RANGE',
    });
  });

  test('never shows its value', async () => {
    expect(await database.call('attribute', { handle, name: 'VALUE' })).toEqual({ rv: 'CKR_ATTRIBUTE_SENSITIVE' });
    for (const [name, value] of [
      ['SENSITIVE', '01'],
      ['ALWAYS_SENSITIVE', '01'],
      ['EXTRACTABLE', '00'],
      ['NEVER_EXTRACTABLE', '01'],
      ['LOCAL', '01'],
      ['VALUE_LEN', '2000000000000000'],
    ] as const)
      expect(await database.call('attribute', { handle, name }), name).toEqual({ rv: 'CKR_OK', value });
  });

  test('that is soft-deleted loses its vault copy, and the same session continues', async () => {
    const before = await recordsOf(site.folder, keyId);
    expect([...before.keys()].sort()).toEqual(['sealed-copy', 'vault-copy']);
    const deleted = await site.api.call<object>('DELETE', `/api/keys/${keyId}`);
    expect(deleted).toMatchObject({ key: { state: 'soft-deleted' }, vaultCopyCleared: true });
    const after = await recordsOf(site.folder, keyId);
    expect([...after.keys()]).toEqual(['sealed-copy']);
    expect(after.get('sealed-copy')).toEqual(before.get('sealed-copy'));

    await unwrapped(database);
    expect((await database.call('encrypt', { handle, iv: zeroIv, data: hex(32) })).rv).toBe('CKR_OK');
    const kinds = (await site.api.audit(`subjectId=${keyId}`)).map(({ kind }) => kind);
    expect(kinds).toEqual(['key.created', 'key.deleted', 'key.reimported']);
    expect([...(await recordsOf(site.folder, keyId)).keys()].sort()).toEqual(['sealed-copy', 'vault-copy']);
  });

  test('is found by a second process, which opens what the first one wrapped', async () => {
    const second = await opened(config);
    expect(await found(second, label)).toBe(handle);
    await unwrapped(second);
    await second.stop();
  });

  test('survives a restart of the server and the death of the agent under an open session', async () => {
    const [agent = 0] = site.agents();
    process.kill(agent, 'SIGKILL');
    expect(await site.stopServer()).toBe(0);
    await site.startServer();
    await unwrapped(database);
    expect(site.agents()).toHaveLength(1);
    expect(site.agents()).not.toEqual([agent]);
  });

  test('bears one id in the agent’s log and in the audit log', async () => {
    const [created] = await site.api.audit(`subjectId=${keyId}&kind=key.created`);
    const log = readdirSync(site.logDirectory).map((name) => readFileSync(join(site.logDirectory, name), 'utf8'));
    expect(created?.requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect(log.join('')).toContain(created?.requestId);
  });

  describe('destroyed by C_DestroyObject', () => {
    let second: Database;
    let records: ReadonlyMap<string, Buffer>;
    let backup: string;

    beforeAll(async () => {
      second = await opened(config);
      expect(await found(second, label)).toBe(handle);
      records = await recordsOf(site.folder, keyId);
      backup = mkdtempSync(join(tmpdir(), 'dke-backup-'));
      cpSync(site.server.dataDirectory, join(backup, 'dke-data'), { recursive: true });
    });
    afterAll(() => rmSync(backup, { recursive: true, force: true }));

    test('stops every session of every process at once, also an operation that had begun', async () => {
      expect(await second.call('openSession', {})).toMatchObject({ rv: 'CKR_OK', session: 1 });
      expect((await second.call('encryptInit', { handle, iv: zeroIv })).rv).toBe('CKR_OK');
      expect(await database.call('destroy', { handle })).toEqual({ rv: 'CKR_OK' });

      expect(await second.call('encryptFinish', { data: hex(32) })).toEqual({ rv: 'CKR_KEY_HANDLE_INVALID' });
      const use = { handle, iv: zeroIv, data: hex(32) };
      for (const [process_, session] of [
        [database, 0],
        [second, 0],
        [second, 1],
      ] as const) {
        expect(await process_.call('encrypt', { session, ...use })).toEqual({ rv: 'CKR_KEY_HANDLE_INVALID' });
        expect(await process_.call('decrypt', { session, ...use })).toEqual({ rv: 'CKR_KEY_HANDLE_INVALID' });
        expect(await process_.call('attribute', { session, handle, name: 'LABEL' })).toEqual({
          rv: 'CKR_OBJECT_HANDLE_INVALID',
        });
        expect(await process_.call('destroy', { session, handle })).toEqual({ rv: 'CKR_OBJECT_HANDLE_INVALID' });
        expect(await process_.call('find', { session, label })).toEqual({ rv: 'CKR_OK', handles: [] });
      }
    });

    const files = onSqlite('what is in the files of the data directory, and an old one among them');
    test.runIf(files)('has two time stamps, and its records are in no file of the data directory', async () => {
      const applicationId = application.application.id;
      const key = await until('the erasure run', async () => {
        const now = await site.api.masterKey(applicationId, label);
        return now.unrecoverableAt === null ? undefined : now;
      });
      expect(key).toMatchObject({ state: 'destroyed', sealedCopy: false, vaultCopy: false });
      expect(Date.parse(key.destroyedAt ?? '')).toBeLessThanOrEqual(Date.parse(key.unrecoverableAt ?? ''));

      const needles = [...records.values()].flatMap(pieces);
      expect(needles.length).toBeGreaterThan(10);
      // The records were there before: the older copy of the directory has them.
      expect(filesWithAny(join(backup, 'dke-data'), needles)).not.toEqual([]);
      expect(filesWithAny(site.server.dataDirectory, needles)).toEqual([]);
      expect((await recordsOf(site.folder, keyId)).size).toBe(0);
    });

    test('stays destroyed when server and agent start again', async () => {
      for (const agent of site.agents()) await endProcess(agent);
      expect(await site.stopServer()).toBe(0);
      await site.startServer();
      for (const process_ of [database, second, await opened(config)]) {
        expect(await process_.call('find', { label })).toEqual({ rv: 'CKR_OK', handles: [] });
        expect(await process_.call('decrypt', { handle, iv: zeroIv, data: hex(32) })).toEqual({
          rv: 'CKR_KEY_HANDLE_INVALID',
        });
      }
      expect(await site.api.masterKey(application.application.id, label)).toMatchObject({ state: 'destroyed' });
    });

    test('is told by the audit log: who, what, when, and when it became unrecoverable', async () => {
      const key = await site.api.masterKey(application.application.id, label);
      const records_ = await site.api.audit(`subjectId=${keyId}`);
      const destroyed = records_.find(({ kind }) => kind === 'key.destroyed');
      expect(destroyed).toMatchObject({
        actorKind: 'application',
        actorId: application.application.id,
        actorName: 'erp',
        subjectKind: 'key',
        details: {
          name: label,
          kind: 'master',
          appId: application.application.appId,
          process: expect.any(String),
          destroyedAt: key.destroyedAt,
        },
      });
      const gone = records_.find(({ kind }) => kind === 'key.unrecoverable');
      const { destroyedAt, unrecoverableAt } = key;
      expect(gone).toMatchObject({ actorKind: 'service', details: { name: label, destroyedAt, unrecoverableAt } });
      const turns = (await site.api.audit('')).filter(({ kind }) => kind.startsWith('erasure.'));
      expect(turns.map(({ kind }) => kind)).toEqual(['erasure.started', 'erasure.finished']);
    });

    test.runIf(files)('does not come back with an old database file beside today’s root key', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'dke-old-'));
      try {
        const data = join(folder, 'dke-data');
        cpSync(join(backup, 'dke-data'), data, { recursive: true });
        chmodSync(data, 0o700);
        cpSync(join(site.server.dataDirectory, 'root.key'), join(data, 'root.key'), { force: true });
        // Without this file, a copy beside the original counts as one on another host, and may
        // start.
        rmSync(join(data, 'instance'), { force: true });
        await expect(startServerProcess({ folder })).rejects.toMatchObject({
          exitCode: 6,
          message: expect.stringMatching(/root key/),
        });
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });

    test('leaves its label free, and the database continues with a new master key', async () => {
      const next = await made(database, newLabel());
      const { data = '' } = await database.call('encrypt', { handle: next, iv: zeroIv, data: '11'.repeat(32) });
      expect(await second.call('decrypt', { handle: next, iv: zeroIv, data })).toEqual({
        rv: 'CKR_OK',
        data: '11'.repeat(32),
      });
      const again = await made(database, label);
      expect(again).not.toBe(handle);
    });
  });
});

describe('the key management of an application', () => {
  const label = newLabel();
  let applicationId: string;
  let database: Database;
  let handle: number;
  let path: string;

  beforeAll(async () => {
    const application = await registerApplication(site.api, 'crm', await createGroup(site.api, 'sales'));
    applicationId = application.application.id;
    database = await opened(site.config('crm', application));
    handle = await made(database, label);
    expect((await database.call('encrypt', { handle, iv: zeroIv, data: hex(16) })).rv).toBe('CKR_OK');
    path = `/api/tde/applications/${applicationId}/master-keys/${(await site.api.masterKey(applicationId, label)).id}`;
  });

  test('shows the blast radius: which instances used the credential, on which host, and when', async () => {
    const radius = await site.api.call<object>('GET', `${path}/blast-radius`);
    expect(radius).toMatchObject({
      applicationName: 'crm',
      appIds: [expect.any(String)],
      hosts: [expect.any(String)],
      instances: [{ pid: database.pid, uses: expect.any(Number) }],
      groupApplications: [],
      lastUsedAt: expect.any(String),
    });
  });

  test('tries a destruction without doing it', async () => {
    const tried = await site.api.call<object>('POST', `${path}/destroy?dryRun=true`, {});
    expect(tried).toMatchObject({ dryRun: true, key: { state: 'active' }, blastRadius: { applicationName: 'crm' } });
    expect((await database.call('encrypt', { handle, iv: zeroIv, data: hex(16) })).rv).toBe('CKR_OK');
  });

  test.each([
    ['nothing', {}],
    ['another name', { confirm: 'yes' }],
    ['another case of the name', { confirm: label.toLowerCase() }],
  ])('destroys nothing when the confirmation is %s', async (_what, body) => {
    const { status, text } = await site.api.send('POST', `${path}/destroy`, body);
    expect(status, text).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
    expect(await site.api.masterKey(applicationId, label)).toMatchObject({ state: 'active' });
    expect((await database.call('encrypt', { handle, iv: zeroIv, data: hex(16) })).rv).toBe('CKR_OK');
  });

  test('destroys when the name is confirmed: the open session stops, the record names the administrator', async () => {
    const done = await site.api.call<{ key: { id: string } }>('POST', `${path}/destroy`, { confirm: label });
    expect(done).toMatchObject({ dryRun: false, key: { state: 'destroyed', sealedCopy: false, vaultCopy: false } });
    expect(await database.call('encrypt', { handle, iv: zeroIv, data: hex(16) })).toEqual({
      rv: 'CKR_KEY_HANDLE_INVALID',
    });
    expect(await database.call('find', { label })).toEqual({ rv: 'CKR_OK', handles: [] });
    const [record] = await site.api.audit(`subjectId=${done.key.id}&kind=key.destroyed`);
    expect(record).toMatchObject({ actorKind: 'administrator', details: { blastRadius: expect.anything() } });
    expect((await site.api.send('POST', `${path}/destroy`, { confirm: label })).status).toBe(409);
    // A destroyed key cannot be restored.
    for (const action of ['enable', 'disable', 'rotate'])
      expect((await site.api.send('POST', `/api/keys/${done.key.id}/${action}`)).status, action).toBe(409);
    expect((await site.api.send('DELETE', `/api/keys/${done.key.id}`)).status).toBe(409);
  });

  test('a disabled key answers CKR_KEY_FUNCTION_NOT_PERMITTED until it is enabled again', async () => {
    const other = newLabel();
    const key = await made(database, other);
    const { id } = await site.api.masterKey(applicationId, other);
    const use = { handle: key, iv: zeroIv, data: hex(16) };
    await site.api.call('POST', `/api/keys/${id}/disable`);
    expect(await database.call('encrypt', use)).toEqual({ rv: 'CKR_KEY_FUNCTION_NOT_PERMITTED' });
    expect(await found(database, other)).toBe(key);
    await site.api.call('POST', `/api/keys/${id}/enable`);
    expect((await database.call('encrypt', use)).rv).toBe('CKR_OK');
  });
});

describe('the credential of an application', () => {
  const label = newLabel();
  let application: RegisteredApplication;
  let old: Database;
  let handle: number;
  const use = () => ({ handle, iv: zeroIv, data: '22'.repeat(32) });

  beforeAll(async () => {
    application = await registerApplication(site.api, 'hr', await createGroup(site.api, 'people'));
    old = await opened(site.config('hr-old', application));
    handle = await made(old, label);
  });

  test('is rotated with overlap: both hold until the old one is removed', async () => {
    const path = `/api/tde/applications/${application.application.id}/access-guids`;
    const issued = await site.api.call<RegisteredApplication>('POST', path);
    expect(issued.accessGuid).not.toBe(application.accessGuid);
    const renewed = await opened(site.config('hr-new', issued));
    expect(await found(renewed, label)).toBe(handle);
    expect(await renewed.call('encrypt', use())).toEqual(await old.call('encrypt', use()));
    expect((await site.api.send('POST', path)).status).toBe(409);

    await site.api.call('DELETE', `${path}/${application.record.id}`);
    expect(await old.call('encrypt', use())).toEqual({ rv: 'CKR_ACTION_PROHIBITED' });
    expect(await old.call('find', { label })).toEqual({ rv: 'CKR_ACTION_PROHIBITED' });
    expect((await renewed.call('encrypt', use())).rv).toBe('CKR_OK');
    expect((await site.api.send('DELETE', `${path}/${issued.record.id}`)).status).toBe(409);

    // The old process takes the new credential when it starts again.
    site.config('hr-old', issued);
    expect(await old.call('finalize', {})).toEqual({ rv: 'CKR_OK' });
    expect(await old.call('open', { pin: 'any' })).toEqual({ rv: 'CKR_OK' });
    expect((await old.call('encrypt', use())).rv).toBe('CKR_OK');
  });

  test('that a host makes up is CKR_ACTION_PROHIBITED, and session keys need none', async () => {
    const forged = application.accessGuid.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    const text = JSON.stringify(application.config).replaceAll(application.accessGuid, forged);
    const stranger = site.database(site.config('forged', { config: JSON.parse(text) }));
    expect(await stranger.call('open', { pin: 'any' })).toEqual({ rv: 'CKR_OK' });
    expect(await stranger.call('find', { label })).toEqual({ rv: 'CKR_ACTION_PROHIBITED' });
    expect(await stranger.call('encrypt', use())).toEqual({ rv: 'CKR_ACTION_PROHIBITED' });
  });

  test('of a disabled application answers CKR_ACTION_PROHIBITED at the next call; its session keys continue', async () => {
    const path = `/api/tde/applications/${application.application.id}`;
    const session = await old.call('generate', { label: 'redo', token: false });
    await site.api.call('POST', `${path}/disable`);
    expect(await old.call('encrypt', use())).toEqual({ rv: 'CKR_ACTION_PROHIBITED' });
    expect(await old.call('find', { label })).toEqual({ rv: 'CKR_ACTION_PROHIBITED' });
    expect(await old.call('generate', { label: newLabel() })).toEqual({ rv: 'CKR_ACTION_PROHIBITED' });
    expect(await old.call('destroy', { handle })).toEqual({ rv: 'CKR_ACTION_PROHIBITED' });
    expect((await old.call('encrypt', { ...use(), handle: session.handle ?? 0 })).rv).toBe('CKR_OK');
    await site.api.call('POST', `${path}/enable`);
    expect((await old.call('encrypt', use())).rv).toBe('CKR_OK');
  });
});

describe('two applications', () => {
  const label = newLabel();
  const use = (handle: number) => ({ handle, iv: zeroIv, data: '33'.repeat(32) });
  let owner: Database;
  let handle: number;
  let groupId: string;
  let keyId: string;

  beforeAll(async () => {
    groupId = await createGroup(site.api, 'shared');
    const application = await registerApplication(site.api, 'source', groupId);
    owner = await opened(site.config('source', application));
    handle = await made(owner, label);
    keyId = (await site.api.masterKey(application.application.id, label)).id;
  });

  test('of two groups do not see each other’s keys, and the attempt is recorded', async () => {
    const application = await registerApplication(site.api, 'stranger', await createGroup(site.api, 'apart'));
    const stranger = await opened(site.config('stranger', application));
    expect(await stranger.call('find', { label })).toEqual({ rv: 'CKR_OK', handles: [] });
    expect(await stranger.call('encrypt', use(handle))).toEqual({ rv: 'CKR_KEY_HANDLE_INVALID' });
    expect(await stranger.call('attribute', { handle, name: 'LABEL' })).toEqual({ rv: 'CKR_OBJECT_HANDLE_INVALID' });
    expect(await stranger.call('destroy', { handle })).toEqual({ rv: 'CKR_OBJECT_HANDLE_INVALID' });
    const denials = await site.api.audit(`subjectId=${keyId}&kind=key.denied`);
    expect(denials.length).toBeGreaterThan(0);
    for (const { actorName, details } of denials) {
      expect(actorName).toBe('stranger');
      expect(details.reason).toBe('another group');
    }

    // A label of another group is free, and stays a key of its own.
    const own = await made(stranger, label);
    const [theirs, ours] = [await stranger.call('encrypt', use(own)), await owner.call('encrypt', use(handle))];
    expect(theirs.rv).toBe('CKR_OK');
    expect(theirs.data).not.toBe(ours.data);
    expect(await stranger.call('destroy', { handle: own })).toEqual({ rv: 'CKR_OK' });
    expect((await owner.call('encrypt', use(handle))).rv).toBe('CKR_OK');
  });

  test('of one group use each other’s keys, and neither change nor destroy them', async () => {
    const target = await opened(site.config('target', await registerApplication(site.api, 'target', groupId)));
    expect(await found(target, label)).toBe(handle);
    const { data = '' } = await owner.call('encrypt', use(handle));
    expect(await target.call('decrypt', { ...use(handle), data })).toEqual({ rv: 'CKR_OK', data: use(handle).data });
    expect(await target.call('generate', { label })).toEqual({ rv: 'CKR_TEMPLATE_INCONSISTENT' });
    expect(await target.call('setLabel', { handle, label: newLabel() })).toEqual({ rv: 'CKR_ACTION_PROHIBITED' });
    expect(await target.call('destroy', { handle })).toEqual({ rv: 'CKR_ACTION_PROHIBITED' });
    expect((await owner.call('encrypt', use(handle))).rv).toBe('CKR_OK');
    expect(await owner.call('destroy', { handle })).toEqual({ rv: 'CKR_OK' });
    expect(await target.call('encrypt', use(handle))).toEqual({ rv: 'CKR_KEY_HANDLE_INVALID' });
    expect(await target.call('find', { label })).toEqual({ rv: 'CKR_OK', handles: [] });
  });
});
