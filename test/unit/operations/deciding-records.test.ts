// Records of the audit log that decide something at a start: whether there was a first token, which
// copies earlier versions knew, on which host the database was used last. A writer of the database
// who changes the row of one makes the service conclude nothing from it.
import { expect, test } from 'vitest';
import { systemClock } from '../../../server/base/time.ts';
import { serviceActor } from '../../../server/domain/actor.ts';
import type { AuditKind } from '../../../server/domain/audit-event.ts';
import { adoptCopies } from '../../../server/operations/copies/adopt-copies.ts';
import { setUp } from '../../../server/operations/service/first-start.ts';
import { aboutService, recordEvent } from '../../../server/operations/shared/record-event.ts';
import { decidingRecord, hasRecord } from '../../../server/operations/shared/tree-of-log.ts';
import { newTenant } from '../../../server/operations/tenants/create-tenant.ts';
import type { Store } from '../../../server/ports/store.ts';
import { storeOfTest } from '../../support/open-store.ts';

/**
 * The store as a writer of the database leaves it: one column of each record of a kind is another
 * one.
 */
const changed = (store: Store, kind: AuditKind, change: object): Store['read']['audit'] => ({
  ...store.read.audit,
  list: async (...asked) => {
    const [tenant, filter, window] = asked;
    const found = await store.read.audit.list(tenant, { ...filter, kind: undefined }, { ...window, limit: 1000 });
    return found
      .map((event) => (event.kind === kind ? { ...event, ...change } : event))
      .filter((event) => filter.kind === undefined || event.kind === filter.kind)
      .slice(0, window.limit);
  },
});
const record = (store: Store, kind: AuditKind, details: Record<string, unknown>) =>
  store.write((tx) => recordEvent(tx, kind, serviceActor('host'), aboutService(), details));

test('a record decides where it is under the root of the log; one whose row was changed does not', async () => {
  const store = await storeOfTest(systemClock);
  const { audit } = store.read;
  expect(await decidingRecord(audit, { kind: 'service.started', order: 'newest' })).toBeUndefined();
  await record(store, 'service.stopped', {});
  await record(store, 'service.started', { host: 'one' });
  await record(store, 'service.stopped', {});
  const asked = { kind: 'service.started', order: 'newest' } as const;
  expect(await decidingRecord(audit, asked)).toMatchObject({ details: { host: 'one' }, sequence: 2 });
  expect(await decidingRecord(changed(store, 'service.started', { details: { host: 'two' } }), asked)).toBeNull();
  expect(await decidingRecord(changed(store, 'service.started', { sequence: 1 }), asked)).toBeNull();
});

test('that the log has no record of a kind is said only where no row was changed', async () => {
  const store = await storeOfTest(systemClock);
  await record(store, 'service.started', { host: 'one' });
  expect(await hasRecord(store.read.audit, 'token.created')).toBe(false);
  await record(store, 'token.created', { name: 'first' });
  expect(await hasRecord(store.read.audit, 'token.created')).toBe(true);
  const hidden = changed(store, 'token.created', { kind: 'token.revoked' });
  expect(await hasRecord(hidden, 'token.created')).toBeUndefined();
  const invented = changed(store, 'service.started', { kind: 'token.created' });
  expect(await hasRecord(invented, 'token.created')).toBeUndefined();
  // The last one, and one before others, whose row is gone.
  const { audit } = store.read;
  const removed: typeof audit = {
    ...audit,
    list: async (...asked) => (await audit.list(...asked)).filter(({ kind }) => kind !== 'token.created'),
  };
  expect(await hasRecord(removed, 'token.created')).toBeUndefined();
  await record(store, 'service.stopped', {});
  expect(await hasRecord(removed, 'token.created')).toBeUndefined();
});

test('no first token is made where the log that shows one was changed, and none where it was shown', async () => {
  const store = await storeOfTest(systemClock);
  await store.write((tx) => tx.tenants.insert(newTenant('default', 1)));
  await record(store, 'token.created', { name: 'first' });
  const shown: string[] = [];
  const start = (read: Partial<Store['read']>): Promise<unknown> =>
    setUp({ store: { ...store, read: { ...store.read, ...read } }, clock: systemClock } as never)((token) =>
      shown.push(token),
    );
  const audit = changed(store, 'token.created', { kind: 'token.revoked' });
  await expect(start({ audit })).rejects.toMatchObject({ code: 'key-tampered' });
  expect(await start({})).toEqual({ adminToken: undefined });
  await store.write((tx) => tx.decisions.set('first-token', 'shown'));
  expect(await start({ audit })).toEqual({ adminToken: undefined });
  expect(shown).toEqual([]);
});

test('of a changed record, a copy of everything is assumed that every root key opens', async () => {
  const store = await storeOfTest(systemClock);
  const at = '2026-01-01T00:00:00.000Z';
  await record(store, 'service.backed-up', { backupId: '00000000-0000-7000-8000-000000000001', at });
  await record(store, 'root.backed-up', { rootEpoch: 1, at });
  const adopted = async (kind?: AuditKind) => {
    let found: readonly object[] = [];
    await store
      .write(async (tx) => {
        const audit =
          kind === undefined ? tx.audit : { ...tx.audit, list: changed(store, kind, { actorName: 'x' }).list };
        await adoptCopies({ ...tx, audit }, 5_000);
        found = await tx.outsideCopies.left();
        throw new Error('undone');
      })
      .catch(() => undefined);
    return found;
  };
  const time = Date.parse(at);
  const known = await adopted();
  expect(known).toHaveLength(2);
  expect(known).toContainEqual(
    expect.objectContaining({ kind: 'service-backup', stateUntil: time, stateSize: 0, rootEpoch: null }),
  );
  expect(known).toContainEqual(expect.objectContaining({ kind: 'root-backup', rootEpoch: 1 }));
  expect(await adopted('service.backed-up')).toContainEqual(
    expect.objectContaining({ kind: 'service-backup', stateFrom: 0, stateUntil: 5_000, stateSize: null }),
  );
  expect(await adopted('root.backed-up')).toContainEqual(
    expect.objectContaining({ kind: 'root-backup', stateUntil: 5_000, rootEpoch: null }),
  );
});
