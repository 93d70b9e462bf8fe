// A writer of the database swaps what the rows of one tenant say: ids, owners, versions, classes,
// references and nulls. Each use and each change of that tenant is tried meanwhile: it answers as
// before, from what was verified, or it is refused. What the writer has left is not written again
// with a code that is right, nothing outside the tenant is another thing, and with the genuine rows
// everything is as it was.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { tables } from '../../../server/adapters/store/schema/schema.ts';
import type { TableDeclaration } from '../../../server/adapters/store/schema/tables/table.ts';
import { verifyOffline } from '../../../server/app/host/offline.ts';
import { ServiceError } from '../../../server/base/service-error.ts';
import { StartError } from '../../../server/base/start-error.ts';
import { uriPathOf } from '../../../server/fronts/api/represent.ts';
import {
  administrator,
  dataObject,
  instance,
  masterKey,
  type OpenedService,
  toLabel,
} from '../../support/open-service.ts';
import fc from '../../support/property.ts';
import { listenFor, restart, sharedService } from '../../support/shared.ts';
import { signXksRequest } from '../../support/sign.ts';
import { actorIn, dumpTenant, handOf, rowsOfTenant } from '../../support/snapshots.ts';
import { chooseSpoilt, putSpoilt, rowsNow, type Spoilt, undoSpoilt } from '../../support/spoil.ts';
import { type StoredRows, withStored } from '../../support/test-store.ts';
import { sizeOf } from '../../support/tiers.ts';
import { wholeMetadata } from '../../support/xks-caller.ts';

// No erasure run and no comparison of rows comes in between.
const toml =
  '[erasure]\ngather_ms = 3600000\n[memory]\nallow_unlocked = true\n[snapshots]\nrestore_second_person = false\n';
const opened = sharedService({ toml });
let api: Awaited<ReturnType<typeof listenFor>>;
const cbc = { algorithm: 'aes-cbc-pad', iv: Buffer.alloc(16, 3) } as const;
const choices = fc.array(fc.nat(), { minLength: 6, maxLength: 6 });
let otherId = '';
let uses: Readonly<Record<string, () => Promise<unknown>>> = {};
let changes: readonly (readonly [string, () => Promise<unknown>])[] = [];

/** A tenant of its own with everything in it; what its programs and people do with it. */
beforeAll(async () => {
  // Operations of the service that runs at the time of the call: a test may have started it again.
  const operations = new Proxy({} as OpenedService['operations'], {
    get: (_, name) => opened.operations[name as keyof OpenedService['operations']],
  });
  api = await listenFor({
    service: { ...opened.service, handle: (incoming, outgoing) => opened.service.handle(incoming, outgoing) },
  });
  await handOf(opened);
  const other = await operations.tenants.create(administrator, { name: 'other' });
  otherId = other.id;
  for (const actor of [actorIn(other.id), administrator]) {
    const vault = await operations.vaults.create(actor, { name: 'cloud' });
    const key = await operations.keys.create(actor, { name: 'cloud', vaultId: vault.id });
    await operations.keys.rotate(actor, key.id);
    const endpoint = await operations.endpoints.create(actor, { name: 'cloud', vaultId: vault.id, keyId: key.id });
    const { credential, secretAccessKey } = await operations.endpoints.addCredential(actor, endpoint.id);
    const secret = secretAccessKey.toString();
    const group = await operations.tdeGroups.create(actor, { name: 'erp' });
    const issued = await operations.applications.register(actor, { name: 'erp', groupId: group.id });
    const authenticate = () =>
      operations.tde.authenticate({
        ...{ accessGuid: issued.accessGuid, appId: issued.application.appId, instance },
        ...{ requestId: 'call', peer: null },
      });
    const caller = await authenticate();
    const pages = await operations.tde.generateKey(caller, masterKey('pages'));
    const note = await operations.tde.createObject(caller, dataObject('note'), Buffer.from('kept'));
    const token = await operations.tokens.create(actor, 'the service', {
      ...{ name: `auditor of ${actor.tenantId}` },
      grants: [{ role: 'auditor', scope: null, tenantId: actor.tenantId }],
    });
    const sealed = await operations.tde.encrypt(caller, pages.handle, cbc, Buffer.from('a page'));
    const callXks = async (target: string, body: object): Promise<{ status: number; body: Record<string, string> }> => {
      const path = `${uriPathOf(endpoint.prefix)}/keys/${key.id}/${target}`;
      const text = JSON.stringify({ requestMetadata: wholeMetadata(), encryptionAlgorithm: 'AES_GCM', ...body });
      const headers = await signXksRequest({
        ...{ host: api.base.slice('http://'.length), path, body: text },
        ...{ accessKeyId: credential.accessKeyId, secretAccessKey: secret },
      });
      const answer = await fetch(`${api.base}${path}`, { method: 'POST', headers, body: text });
      return { status: answer.status, body: (await answer.json()) as Record<string, string> };
    };
    const cipher = (await callXks('encrypt', { plaintext: 'a2VwdA==' })).body;
    if (actor !== administrator) continue;
    uses = {
      'a database authenticates': async () => {
        const { application } = await authenticate();
        return [application.id, application.tenantId, application.groupId];
      },
      'a database decrypts': async () =>
        (await operations.tde.decrypt(await authenticate(), pages.handle, cbc, sealed)).toString(),
      'a database reads': async () => (await operations.tde.readValue(await authenticate(), note.handle)).toString(),
      'a database searches': async () =>
        (
          await operations.tde.findObjects(await authenticate(), { label: toLabel('pages'), after: 0, limit: 10 })
        ).objects.map(({ id }) => id),
      'a cloud decrypts': () =>
        callXks('decrypt', {
          ...{ ciphertext: cipher.ciphertext, initializationVector: cipher.initializationVector },
          ...{ authenticationTag: cipher.authenticationTag, ciphertextMetadata: cipher.ciphertextMetadata },
        }),
      'a token is used': async () => (await operations.authenticateAdmin(token.token, 'r', null)).grants,
    };
    let count = 0;
    const name = (): string => {
      count += 1;
      return `made ${count}`;
    };
    changes = [
      ['a key is rotated', () => operations.keys.rotate(actor, key.id)],
      ['a key is disabled', () => operations.keys.disable(actor, key.id)],
      ['a key is enabled', () => operations.keys.enable(actor, key.id)],
      ['a key is created', () => operations.keys.create(actor, { name: name(), vaultId: vault.id })],
      ['a vault is disabled', () => operations.vaults.disable(actor, vault.id)],
      ['a vault is enabled', () => operations.vaults.enable(actor, vault.id)],
      ['an endpoint is disabled', () => operations.endpoints.disable(actor, endpoint.id)],
      ['an endpoint is enabled', () => operations.endpoints.enable(actor, endpoint.id)],
      ['an application is disabled', () => operations.applications.disable(actor, issued.application.id)],
      ['an application is enabled', () => operations.applications.enable(actor, issued.application.id)],
      [
        'an application is registered',
        () => operations.applications.register(actor, { name: name(), groupId: group.id }),
      ],
      [
        'a database creates and destroys',
        async () => {
          const now = await authenticate();
          const made = await operations.tde.createObject(now, dataObject(name()), Buffer.from('short'));
          await operations.tde.destroyObject(now, made.handle);
        },
      ],
      [
        'a database changes a value',
        async () => operations.tde.updateObject(await authenticate(), note.handle, {}, Buffer.from('kept')),
      ],
      ['a tenant is renamed', () => operations.tenants.rename(actor, actor.tenantId, { name: name() })],
      ['a snapshot is created', () => operations.snapshots.create(actor, actor.tenantId)],
    ];
  }
});

afterAll(() => api?.close());

/** What it answers, or by which code it is refused. */
const outcomeOf = (use: () => Promise<unknown>): Promise<unknown> =>
  use().catch((error: unknown) => {
    if (error instanceof ServiceError && error.code !== 'internal') return { refused: error.code };
    throw error;
  });
const isRefused = (outcome: unknown): boolean => {
  // A search that does not find what was moved away.
  if (Array.isArray(outcome) && outcome.length === 0) return true;
  const { refused, status } = outcome as { readonly refused?: string; readonly status?: number };
  return refused !== undefined || (status !== undefined && status > 299 && status !== 500);
};

const withRows = <T>(work: Parameters<typeof withStored<T>>[1]): Promise<T> => withStored(opened.folder, work);
/** The predicate for rows of the target tenant: rows that name it, or that one of its rows owns. */
const target = async (): Promise<(table: string, row: Readonly<Record<string, unknown>>) => boolean> => {
  const owned = await rowsOfTenant(opened, administrator.tenantId);
  return (table, row) =>
    table in owned
      ? owned[table]?.has(String(row.id ?? row.object_id)) === true && row.tenant_id !== otherId
      : row.tenant_id === administrator.tenantId || (table === 'tenants' && row.id === administrator.tenantId);
};
/** What is not the target's: the other tenant, and rows of the service. */
const outside = async (): Promise<unknown> => [
  await dumpTenant(opened, otherId),
  await withRows(async ({ query }) => [
    await query('select * from key_records where tenant_id <> ? order by 1, 2, 3, 4', administrator.tenantId),
    await query('select * from recovery_keys order by id'),
    await query("select * from decisions where id not in ('deadline-clock', 'newest-restore') order by id"),
    await query('select id, state, name, row_mac from tenants where id <> ? order by id', administrator.tenantId),
    await query('select id, grants, revoked_at, row_mac from api_tokens where tenant_id is null order by id'),
  ]),
];
/** Columns whose change is not a change of the row. */
const marksOf = (table: string): readonly string[] => {
  const { beside } = (tables as { readonly [name: string]: TableDeclaration & { beside?: object } })[table] ?? {};
  return Object.keys(beside ?? {});
};
const withoutMarks = (table: string, rows: readonly object[]) =>
  rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !marksOf(table).includes(name))));

const spoilOne = async (
  given: readonly number[],
  isTarget: Awaited<ReturnType<typeof target>>,
): Promise<Spoilt | undefined> => {
  const change = async (stored: StoredRows): Promise<Spoilt | undefined> => {
    const spoilt = await chooseSpoilt(stored, given, isTarget);
    return spoilt !== undefined && (await putSpoilt(stored, spoilt)) ? spoilt : undefined;
  };
  return withRows(change);
};

test('while a row of a tenant is changed, its uses are as before or refused, and nothing outside the tenant changes', async () => {
  const genuine: Record<string, unknown> = {};
  for (const [what, use] of Object.entries(uses)) genuine[what] = await outcomeOf(use);
  expect(Object.values(genuine).filter(isRefused)).toEqual([]);
  for (const [what, change] of changes)
    expect([what, await outcomeOf(change)]).not.toEqual([what, { refused: expect.anything() }]);
  const before = await outside();
  const tried = new Set<string>();
  await fc.assert(
    fc.asyncProperty(choices, async (given) => {
      const spoilt = await spoilOne(given, await target());
      if (spoilt === undefined) return;
      tried.add(spoilt.what);
      try {
        // A row that was moved is there already.
        const moved = await outside();
        const left = withoutMarks(spoilt.table, await withRows((stored) => rowsNow(stored, spoilt)));
        for (const [what, use] of Object.entries(uses)) {
          const outcome = await outcomeOf(use);
          if (!isRefused(outcome)) expect([spoilt.what, what, outcome]).toEqual([spoilt.what, what, genuine[what]]);
        }
        for (const [, change] of changes) await outcomeOf(change);
        const now = await withRows((stored) => rowsNow(stored, spoilt));
        expect([spoilt.what, withoutMarks(spoilt.table, now)]).toEqual([spoilt.what, left]);
        expect([spoilt.what, await outside()]).toEqual([spoilt.what, moved]);
      } finally {
        expect([spoilt.what, await withRows((stored) => undoSpoilt(stored, spoilt))]).toEqual([spoilt.what, true]);
      }
      // With the genuine row everything is as it was. A comparison of the rows, once a minute, may
      // have come in between.
      for (;;) {
        // What was loaded meanwhile is loaded again with the next change of it.
        for (const end of ['disabled', 'enabled'])
          for (const [what, change] of changes) if (what.endsWith(` is ${end}`)) await outcomeOf(change);
        const again: Record<string, unknown> = {};
        for (const [what, use] of Object.entries(uses)) again[what] = await outcomeOf(use);
        if ((await opened.operations.quarantine.get(administrator)).quarantined) {
          await restart(opened, { toml, acceptDatabase: true });
          continue;
        }
        expect([spoilt.what, again, await outside()]).toEqual([spoilt.what, genuine, before]);
        return;
      }
    }),
    { numRuns: sizeOf('spoilt rows'), endOnFailure: true },
  );
  expect(tried.size).toBeGreaterThan(5);
});

test('while no node runs, a changed row of any owner is named by the check of everything; with the genuine one it says what it said before', async () => {
  const ask = () => Promise.resolve(Buffer.alloc(0));
  await opened.stop();
  const before = await verifyOffline(opened.config, ask);
  // One without a key of the service is refused by name before anything is checked.
  const findingsNow = (): Promise<readonly string[]> =>
    verifyOffline(opened.config, ask).then(
      ({ findings }) => findings,
      (error: unknown) => {
        if (error instanceof StartError) return [error.message];
        throw error;
      },
    );
  expect(before.findings).toEqual([]);
  await fc.assert(
    fc.asyncProperty(choices, async (given) => {
      // A record that was wiped has nothing that could be changed.
      const spoilt = await spoilOne(given, (table, row) => table !== 'key_records' || row.record !== null);
      if (spoilt === undefined) return;
      const found = await findingsNow();
      expect([spoilt.what, await withRows((stored) => undoSpoilt(stored, spoilt))]).toEqual([spoilt.what, true]);
      expect([spoilt.what, found]).not.toEqual([spoilt.what, []]);
      // No check ended early: what it has not reached would not be named. A log whose name was
      // removed cannot be checked.
      if (spoilt.table !== 'decisions') expect([spoilt.what, ...found].join('\n')).not.toMatch(/the check failed/);
      expect(await verifyOffline(opened.config, ask)).toEqual(before);
    }),
    { numRuns: sizeOf('spoilt rows'), endOnFailure: true },
  );
  // Each record alone: of every class that these tenants have.
  const records = await withRows(({ query }) => query('select * from key_records where record is not null'));
  const unnamed: string[] = [];
  for (const row of records) {
    const spoilt = { what: 'remove', table: 'key_records', before: [row], after: [] };
    await withRows((stored) => putSpoilt(stored, spoilt));
    if ((await findingsNow()).length === 0) unnamed.push(`${row.class} ${row.version} of ${row.object_id}`);
    await withRows((stored) => undoSpoilt(stored, spoilt));
  }
  expect(unnamed).toEqual([]);
  await restart(opened, { toml });
  expect((await opened.operations.quarantine.get(administrator)).quarantined).toBe(false);
});
