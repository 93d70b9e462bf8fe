// A writer of the database has no time before the first checkpoint: what this process has written
// since the last one is compared before anything is signed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { leafHash } from '../../../server/base/merkle-tree.ts';
import { auditEntry } from '../../../server/domain/audit-event.ts';
import { folderOfTest } from '../../support/folders.ts';
import { administrator } from '../../support/open-service.ts';
import { errorOf } from '../../support/people.ts';
import { openSealers, type Sealers } from '../../support/sealers.ts';
import { freshService } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = freshService();
const newest = async () => {
  const { items } = await opened.operations.audit.list(administrator, { order: 'newest', limit: 1 });
  const [event] = items;
  if (event === undefined) throw new Error('the log is empty');
  return event;
};

test.each([
  ['and its hash', true],
  ['under its hash', false],
])('a record that was rewritten %s before its first checkpoint is not signed', async (_, alsoHash) => {
  await opened.operations.audit.checkpoint();
  await opened.operations.vaults.create(administrator, { name: 'payments' });
  const event = await newest();
  const forged = { ...event, actorName: 'somebody else' };
  await queryStored(
    opened.folder,
    'update audit_events set actor_name = ?, leaf_hash = ? where sequence = ?',
    ...[forged.actorName, leafHash(Buffer.from(auditEntry(alsoHash ? forged : event), 'utf8')), event.sequence],
  );
  expect(await errorOf(opened.operations.audit.checkpoint())).toBe('key-tampered');
});

test('an unchanged log is signed, also after many records', async () => {
  await opened.operations.audit.checkpoint();
  for (let at = 0; at < 600; at += 1) await opened.operations.vaults.create(administrator, { name: `vault ${at}` });
  const { size } = (await opened.operations.audit.checkpoint()) ?? { size: 0 };
  expect(size).toBeGreaterThanOrEqual((await newest()).sequence);
});

describe('what is kept beside the database', () => {
  const actor = { kind: 'service', id: 'test', name: 'test', requestId: 'r', peer: null } as const;
  const append = ({ store }: Sealers) =>
    store.write((tx) =>
      tx.audit.append({
        ...{ kind: 'key.disabled', actor, tenantId: 't', subject: { kind: 'key', id: 'k' }, details: {} },
      }),
    );
  let path: string;
  let sealers: Sealers;
  const rewrite = (sequence: number, byte = 9): void => {
    const database = new DatabaseSync(path);
    database.prepare('update audit_events set leaf_hash = ? where sequence = ?').run(Buffer.alloc(32, byte), sequence);
    database.close();
  };
  beforeEach(async () => {
    path = join(folderOfTest(), 'dke.db');
    sealers = await openSealers(path);
    expect(await sealers.node(true).sealer.inspect()).toEqual({ state: 'intact' });
    for (let record = 0; record < 3; record += 1) await append(sealers);
  });
  afterEach(() => sealers.store.close());

  test.each([1, 2, 3])('a record that was rewritten while the service was stopped is found: %i', async (sequence) => {
    await sealers.store.close();
    rewrite(sequence);
    sealers = await openSealers(path);
    const { sealer } = sealers.node(true);
    const finding = await sealer.inspect();
    expect(finding).toMatchObject({
      ...{ state: 'changed', size: 3 },
      differences: [
        { what: 'root hash of the first 3 audit records', expectedIn: expect.stringContaining('.committed') },
      ],
    });
    // An operator takes it as it is: from then on, the log is what the node knows.
    await sealer.accept(finding);
    await append(sealers);
    expect(await sealer.checkpoint()).toMatchObject({ size: 5 });
    rewrite(1, 8);
    await append(sealers);
    expect(await errorOf(sealer.checkpoint())).toBe('key-tampered');
  });

  test('a unit of work with an audit record is durable, whatever its caller asks for', async () => {
    await sealers.store.write((tx) => tx.settings.set('a', 'b'), { durable: false });
    const size = () => readFileSync(`${path}.committed`, 'latin1').slice(0, 16);
    expect(Number(size())).toBe(3);
    await sealers.store.write(
      (tx) =>
        tx.audit.append({
          ...{ kind: 'key.disabled', actor, tenantId: 't', subject: { kind: 'key', id: 'k' }, details: {} },
        }),
      { durable: false },
    );
    expect(Number(size())).toBe(4);
  });
});
