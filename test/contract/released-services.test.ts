// Services of released versions, on both databases: their keys still open, nothing in them is found
// damaged, and their snapshots are restored.
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openArchive } from '../../server/adapters/archives/archive.ts';
import { readItems } from '../../server/adapters/archives/inspect-snapshot.ts';
import { newestSchema } from '../../server/adapters/store/migrations/migrate.ts';
import { parseConfig } from '../../server/app/config/config.ts';
import { verifyOffline } from '../../server/app/host/offline.ts';
import { core } from '../support/core-keys.ts';
import { sharedFolder } from '../support/folders.ts';
import { administrator, instance, type OpenedService, openTestService } from '../support/open-service.ts';
import { type PostgresServer, startPostgres } from '../support/postgresql.ts';
import {
  type Dialect,
  layReleased,
  releasedCipher,
  releasedPlain,
  releasedServices,
  releasedToml,
} from '../support/released-services.ts';
import { openSnapshotKey } from '../support/snapshot-files.ts';
import { actorIn, answerOpening, checksOf, handOf } from '../support/snapshots.ts';
import { queryStored } from '../support/test-store.ts';

const folder = sharedFolder();
let postgres: PostgresServer;
let number = 0;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(async () => {
  await postgres?.remove();
});

test('the services of this version are recorded', () => {
  // Otherwise: node test/support/released-services.ts
  expect(releasedServices().at(-1)).toBe(newestSchema);
});

async function* once(file: Buffer): AsyncGenerator<Uint8Array> {
  yield file;
}
/** Whether the snapshot has a key of its service. */
type Recovery = Parameters<typeof openSnapshotKey>[1];
const hasHashKey = async (service: OpenedService, id: string, recovery: Recovery): Promise<boolean> => {
  const { directory } = service.config.snapshots;
  const key = openSnapshotKey(await openArchive(core, directory).preface(id), recovery);
  let found = false;
  for await (const item of readItems(core, join(directory, `${id}.dkesnap`), key)) {
    if (item.kind !== 'material') continue;
    found ||= item.copies.includes('token-hash');
    if (item.key !== null) core.release(item.key);
  }
  core.release(key);
  return found;
};

test.each(releasedServices())(
  'an access_guid of %s is good on another service, and the key that came with it never leaves again',
  async (schema) => {
    const own = mkdtempSync(join(folder, 'released-'));
    const { facts, recovery } = await layReleased(schema, own, null);
    const place = mkdtempSync(join(folder, 'other-'));
    const toml = `${releasedToml(null)}[snapshots]\ntrusted_signers = ["${facts.verifierKey}"]\nrestore_second_person = false\n`;
    const other = await openTestService({ folder: place, toml });
    try {
      const { operations } = other;
      const publicKey = core.hpkePublicKey(recovery.key);
      const hand = await handOf(other, { id: recovery.id, key: recovery.key, publicKey });
      const file = readFileSync(join(own, 'dke-data', 'snapshots', `${facts.snapshotId}.dkesnap`));
      await operations.snapshots.import(administrator, once(file), facts.verifierKey);
      await hand.restore(facts.snapshotId, { tenantId: administrator.tenantId });
      const login = { accessGuid: facts.accessGuid, appId: facts.appId, instance, requestId: 'r', peer: null };
      const caller = await operations.tde.authenticate(login);
      const secret = Buffer.from(facts.ciphertext, 'base64');
      expect(await operations.tde.decrypt(caller, facts.masterKeyHandle, releasedCipher, secret)).toEqual(
        releasedPlain,
      );
      const { tenantId } = administrator;
      expect(await hasHashKey(other, await hand.make(tenantId), recovery)).toBe(false);
      // Its first use has given it the hash that needs no key.
      const hashes = async () =>
        (await queryStored(place, 'select hash from access_guids')).map(({ hash }) => String(hash).slice(0, 2));
      await expect.poll(hashes).toEqual(['2.']);
      await operations.tde.authenticate(login);
      const { accessGuid } = await operations.applications.rotateAccessGuid(administrator, caller.application.id);
      const all = await operations.applications.accessGuids(administrator, caller.application.id);
      const before = all.toSorted((one, next) => one.createdAt - next.createdAt)[0];
      await operations.applications.removeAccessGuid(administrator, caller.application.id, before?.id ?? '');
      expect(await hasHashKey(other, await hand.make(tenantId), recovery)).toBe(false);
      await operations.tde.authenticate({ ...login, accessGuid });
    } finally {
      await other.stop();
    }
  },
);

describe.each(['sqlite', 'postgresql'] as const satisfies Dialect[])('on %s', (dialect) => {
  test.each(releasedServices())('a service of %s continues, and its snapshots are restored', async (schema) => {
    number += 1;
    const own = mkdtempSync(join(folder, 'released-'));
    const place = dialect === 'sqlite' ? null : postgres.createDatabase(`released_${number}`);
    const { facts, recovery } = await layReleased(schema, own, place);
    const toml = `${releasedToml(place)}[snapshots]\nrestore_second_person = false\n`;
    // A check changes nothing: it does not upgrade the database.
    const checked = verifyOffline(parseConfig(toml, null, own), () => Promise.resolve(undefined));
    if (schema === newestSchema) expect((await checked).findings).toEqual([]);
    else await expect(checked).rejects.toThrow(/schema of an earlier version.*start the service.*nothing was changed/);
    const opened = await openTestService({ folder: own, toml });
    try {
      const { operations } = opened;
      expect((await operations.quarantine.get(administrator)).quarantined).toBe(false);
      const login = { accessGuid: facts.accessGuid, appId: facts.appId, instance, requestId: 'r', peer: null };
      const caller = await operations.tde.authenticate(login);
      const opens = async (): Promise<void> => {
        const secret = Buffer.from(facts.ciphertext, 'base64');
        expect(await operations.tde.decrypt(caller, facts.masterKeyHandle, releasedCipher, secret)).toEqual(
          releasedPlain,
        );
        expect((await operations.tde.readValue(caller, facts.dataHandle)).toString()).toBe('kept');
      };
      await opens();
      // How many keys are erased from the files of its snapshots is under the codes of their rows.
      if (dialect === 'sqlite')
        for (const { erased } of await queryStored(own, "select erased from snapshots where state = 'available'"))
          expect(erased).toBe(0);
      // Its hash is another one now: the snapshot of that version, restored, changes nothing of it.
      await operations.tde.authenticate(login);
      const restore = async (id: string, newTenant: string | null) => {
        const opening = await operations.snapshots.beginOpening(administrator, id, recovery.id);
        const answer = answerOpening(opening, recovery.key);
        return operations.snapshots.restore(administrator, id, answer, { tenantId: null, newTenant, dryRun: false });
      };
      const { id } = recovery;
      for (const [snapshotId, tenantId] of [
        [facts.snapshotId, facts.tenantId],
        [facts.secondSnapshotId, facts.secondTenantId],
      ] as const) {
        const outcome = await restore(snapshotId, null);
        expect(outcome.tenantId).toBe(tenantId);
        for (const [table, { created, changed, omitted }] of Object.entries(outcome.counts))
          expect([table, created, changed, omitted]).toEqual([table, 0, 0, 0]);
        const copy = await restore(snapshotId, `copy of ${tenantId}`);
        expect(copy).toMatchObject({ newTenant: true, newIds: true });
        const made = await operations.snapshots.create(administrator, copy.tenantId);
        const values = async (of: string): Promise<readonly string[]> =>
          [...(await checksOf(opened, of, { ...recovery, id, publicKey: Buffer.alloc(0) })).values()].toSorted();
        const credentials = (await operations.endpoints.list(actorIn(tenantId), { limit: 5 })).items.flatMap(
          (endpoint) => endpoint.credentials,
        );
        expect(credentials).toHaveLength(1);
        expect((await values(made.id)).length).toBe((await values(snapshotId)).length - credentials.length);
      }
      await opens();
    } finally {
      await opened.stop();
    }
  });
});
