// What the log of uses keeps when the database cannot take a batch: everything is in the next one,
// added to what came in the meantime.
import { beforeEach, expect, test } from 'vitest';
import { newId } from '../../../server/base/ids.ts';
import type { TdeApplication } from '../../../server/domain/tde.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import { createUsageLog } from '../../../server/operations/data-path/usage-log.ts';
import type { Store } from '../../../server/ports/store.ts';
import { oneEndpoint } from '../../support/one-endpoint.ts';
import { storeOfTest } from '../../support/open-store.ts';
import { quietLog } from '../../support/quiet-log.ts';

let now = 1_000_000;
const clock = { now: () => now, monotonic: () => now };
const complaints: string[] = [];
const quiet = () => undefined;
const log = { ...quietLog, error: (message: string) => void complaints.push(message) };
const { tenant, insert, key } = oneEndpoint();
const application: TdeApplication = {
  ...{ id: newId(7), tenantId: tenant.id, groupId: newId(8), name: 'erp', appId: 'erp', state: 'enabled' },
  ...{
    tokenLabel: 'erp',
    compatibility: [],
    callers: { networks: [], certificates: [] },
    createdAt: 1,
    integrity: 'ok',
  },
};
const tokenId = newId(9);

let store: Store;
let failing: boolean;
/** Happens while a batch is being written that will fail. */
let meanwhile: () => void;
let usage: ReturnType<typeof createUsageLog>;
beforeEach(async () => {
  now = 1_000_000;
  complaints.length = 0;
  failing = false;
  meanwhile = quiet;
  store = await storeOfTest(clock);
  await store.write(insert);
  await store.write((tx) =>
    tx.tokens.insert({
      ...{ id: tokenId, tenantId: null, kind: 'api', name: 'token', grants: [], hash: 'api-token any', createdAt: 1 },
      ...{ expiresAt: null, revokedAt: null, lastUsedAt: null, ownerId: null, personId: null, integrity: 'ok' },
    }),
  );
  const failingStore: Store = {
    ...store,
    write: async (work, options) => {
      if (!failing) return store.write(work, options);
      meanwhile();
      throw new Error('no room');
    },
  };
  usage = createUsageLog({ store: failingStore, clock, log }, 1_000);
});

const recorded = async (kind: 'authentication.failed' | 'application.used') =>
  (await store.read.audit.list(everyTenant, { kind, order: 'oldest' }, { limit: 10 })).map(({ details }) => details);

test('refused credentials of a batch that failed are in the next one, each counted once', async () => {
  usage.refused('api', 'unknown');
  usage.refused('tde', 'access-token', { application, requestId: 'one' });
  failing = true;
  await usage.flush(true);
  expect(complaints).toHaveLength(1);
  failing = false;
  usage.refused('tde', 'access-token', { application, requestId: 'two' });
  now += 60_000;
  await usage.flush(false);
  expect(await recorded('authentication.failed')).toEqual([
    { channel: 'api', reason: 'unknown', count: 1 },
    expect.objectContaining({ channel: 'tde', count: 2, lastRequestId: 'two' }),
  ]);
  await usage.flush(true);
  expect(await recorded('authentication.failed')).toHaveLength(2);
});

test('the last use of a token that could not be written is written later, unless it was used again', async () => {
  const lastUsed = async () => (await store.read.tokens.get(everyTenant, tokenId))?.lastUsedAt;
  usage.tokenUsed(tokenId);
  failing = true;
  await usage.flush(false);
  failing = false;
  await usage.flush(false);
  expect(await lastUsed()).toBe(1_000_000);
  now = 2_000_000;
  usage.tokenUsed(tokenId);
  failing = true;
  await usage.flush(false);
  now = 3_000_000;
  usage.tokenUsed(tokenId);
  failing = false;
  await usage.flush(false);
  expect(await lastUsed()).toBe(3_000_000);
});

test('a summary that could not be written takes in what was counted meanwhile', async () => {
  usage.used(application, key.id, 'encrypt', true);
  meanwhile = () => {
    usage.used(application, key.id, 'encrypt', true);
    usage.used(application, key.id, 'decrypt', false);
  };
  failing = true;
  await usage.flush(true);
  failing = false;
  await usage.flush(true);
  expect(await recorded('application.used')).toEqual([
    expect.objectContaining({ operations: { encrypt: 2, decrypt: 1 }, failures: 1 }),
  ]);
});
