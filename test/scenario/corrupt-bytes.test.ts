// One byte of one file is another: of every file that a service has, some bytes. The service
// refuses and names the file, or answers as before, or reports the damage; it gives no other answer
// and does not end without a message. npm run faults checks many more bytes.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ByteOutcome, corruptBytes, type DamagedSite, openDamagedSite } from '../support/corrupt-bytes.ts';
import { builtServer } from '../support/killed-server.ts';
import { isLong, sizeOf } from '../support/tiers.ts';

const seed = Number(process.env.DKE_SEED ?? (isLong ? Date.now() % 1_000_000 : 1));
let site: DamagedSite;
beforeAll(async () => {
  site = await openDamagedSite(builtServer);
});
afterAll(() => site?.end());

test('the files of a service are the known ones; any other file is also checked and reported', () => {
  expect(site.files.map((name) => name.replace(/[0-9a-f-]{36}/, 'ID'))).toEqual([
    'dke-data/audit.jsonl',
    'dke-data/dke.db',
    'dke-data/dke.db-shm',
    'dke-data/dke.db-wal',
    'dke-data/dke.db.committed',
    'dke-data/instance',
    'dke-data/node',
    'dke-data/root.key',
    'dke-data/root.key.checkpoint',
    'dke-data/snapshots/ID.dkesnap',
    'dke-data/snapshots/folder',
    'dke-data/tls.crt',
    'dke-data/tls.key',
    'dke.toml',
    'provider/provider.key',
    'words',
  ]);
});

test('a changed byte is refused with the name of its file, reported, or has no effect', async () => {
  const { wrong, tried } = await corruptBytes(site, { each: sizeOf('changed bytes of each file'), seed });
  expect(wrong, `DKE_SEED=${seed}`).toEqual([]);
  expect(Object.keys(tried)).toEqual(site.files);
});

test.each([
  [
    "one of the service's own keys is damaged",
    "UPDATE key_records SET record = zeroblob(length(record)) WHERE class = 'token-hash'",
  ],
  ["one of the service's own keys is gone", "DELETE FROM key_records WHERE class = 'token-hash'"],
  ["one of the service's own keys names another epoch", "UPDATE key_records SET epoch = 77 WHERE class = 'token-hash'"],
  ['a key encryption key is damaged', 'UPDATE tenant_keks SET record = zeroblob(length(record))'],
  ['a key encryption key names another root epoch', 'UPDATE tenant_keks SET root_epoch = 9'],
  ['the default tenant is not named', "UPDATE decisions SET value = null WHERE id = 'default-tenant'"],
])('when %s, the service refuses to start and names the database', async (_, sql) => {
  expect(await site.tryStatement(sql)).toEqual({
    kind: 'refused',
    message: expect.stringMatching(
      /\/dke\.db(?:: | and the root key ).+: (?:restore (?:the database|both) from|restore the newest copy,) /,
    ),
  });
});

test('a changed byte anywhere in the log of the database is noticed: what was confirmed is not silently taken back', async () => {
  const expectTold = (offset: number, outcome: ByteOutcome): void => {
    expect([offset, outcome]).toEqual([offset, { kind: 'reported', what: expect.anything() }]);
    expect(outcome.kind === 'reported' ? outcome.what.join() : '').toContain('/api/quarantine');
  };
  const tryAt = (offset: number): Promise<ByteOutcome> => site.tryByte('dke-data/dke.db-wal', offset, 0x10);
  const size = site.sizeOf('dke-data/dke.db-wal');
  // Its head, and a page in the middle.
  for (const offset of [0, 20, size >> 1]) expectTold(offset, await tryAt(offset));
  // The end of the newest commit, which could be a write that a power failure cut off. Commits that
  // confirm nothing (times of last use) may follow the last change: without them everything is as
  // before.
  for (const offset of site.commitEnds()) {
    const outcome = await tryAt(offset);
    if (outcome.kind === 'as before') continue;
    expectTold(offset, outcome);
    return;
  }
  throw new Error('no commit of the log was missed');
});
