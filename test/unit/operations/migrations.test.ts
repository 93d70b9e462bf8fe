// Key migration as one entry: the master key that a database created, with its later uses. In the
// order of calls of a migration from a local wallet: a key is generated, then the keys of columns
// and tablespaces are encrypted under it.
import { randomBytes } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { inTenant } from '../../../server/domain/actor.ts';
import {
  administrator,
  instance,
  masterKey,
  type OpenedService,
  openTestService,
  registerCaller,
} from '../../support/open-service.ts';

let opened: OpenedService;
afterEach(() => opened.remove());

const cipher = (iv: Uint8Array) => ({ algorithm: 'aes-cbc', iv }) as const;

test('a key that was generated and the uses that followed by the same application are one entry', async () => {
  opened = await openTestService();
  const { caller, accessGuid } = await registerCaller(opened, 'erp');
  const { caller: other } = await registerCaller(opened, 'crm');
  const encrypt = async (by: typeof caller, handle: number, times: number): Promise<void> => {
    for (let at = 0; at < times; at++)
      await opened.operations.tde.encrypt(by, handle, cipher(randomBytes(16)), randomBytes(32));
  };
  const first = await opened.operations.tde.generateKey(caller, masterKey('MK.FIRST'));
  await encrypt(caller, first.handle, 3);
  const foreign = await opened.operations.tde.generateKey(other, masterKey('MK.OTHER'));
  await encrypt(other, foreign.handle, 7);
  // Uses are recorded by the minute, and when the service stops.
  await opened.stop();
  opened = await openTestService({ folder: opened.folder });
  const list = (query: object = {}) => opened.operations.audit.migrations(administrator, query);
  expect((await list()).items.map(({ label, what, uses }) => [label, what, uses])).toEqual([
    [expect.anything(), 'first-key', { encrypt: 7 }],
    [expect.anything(), 'first-key', { encrypt: 3 }],
  ]);
  const own = await list({ applicationId: caller.application.id });
  expect(own.next).toBeNull();
  expect(own.items).toEqual([
    expect.objectContaining({
      keyId: first.id,
      keyName: 'MK.FIRST',
      applicationName: 'erp',
      host: 'db1.example',
      process: 'ora_gen0_cdb1',
      origin: 'generated',
      failures: 0,
      records: [expect.any(Number), expect.any(Number)],
    }),
  ]);
  // What the entry is from is in the log.
  const [made, used] = own.items[0]?.records ?? [];
  const kinds = await Promise.all(
    [made, used].map(
      async (sequence) => JSON.parse((await opened.operations.audit.prove(administrator, sequence ?? 0)).entry).kind,
    ),
  );
  expect(kinds).toEqual(['key.created', 'application.used']);

  const again = await opened.operations.tde.authenticate({
    accessGuid,
    appId: caller.appId,
    instance,
    requestId: 'call-2',
    peer: null,
  });
  await opened.operations.tde.generateKey(again, masterKey('MK.SECOND'));
  expect(
    (await list({ applicationId: caller.application.id })).items.map(({ keyName, what }) => [keyName, what]),
  ).toEqual([
    ['MK.SECOND', 'further-key'],
    ['MK.FIRST', 'first-key'],
  ]);
  expect((await list({ limit: 1 })).items.map(({ keyName }) => keyName)).toEqual(['MK.SECOND']);
  const page = await list({ limit: 1 });
  expect((await list({ limit: 9, after: page.next ?? '' })).items.map(({ keyName }) => keyName)).toEqual([
    'MK.OTHER',
    'MK.FIRST',
  ]);
  const elsewhere = inTenant(
    administrator,
    (await opened.operations.tenants.create(administrator, { name: 'acme' })).id,
  );
  expect((await opened.operations.audit.migrations(elsewhere, {})).items).toEqual([]);
});
