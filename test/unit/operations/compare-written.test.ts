// A writer of the database has no time before the first checkpoint: what this process has written since the last one is compared before anything is signed.
import { expect, test } from 'vitest';
import { leafHash } from '../../../server/base/merkle-tree.ts';
import { auditEntry } from '../../../server/domain/audit-event.ts';
import { administrator } from '../../support/open-service.ts';
import { errorOf } from '../../support/people.ts';
import { freshService } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = freshService();
const newest = async () => {
  const { items } = await opened.operations.audit.list(administrator, { order: 'newest', limit: 1 });
  const [event] = items;
  if (event === undefined) throw new Error('the log is empty');
  return event;
};

test('a record that was rewritten before its first checkpoint is not signed', async () => {
  await opened.operations.audit.checkpoint();
  await opened.operations.vaults.create(administrator, { name: 'payments' });
  const event = await newest();
  const forged = { ...event, actorName: 'somebody else' };
  await queryStored(
    opened.folder,
    'update audit_events set actor_name = ?, leaf_hash = ? where sequence = ?',
    ...[forged.actorName, leafHash(Buffer.from(auditEntry(forged), 'utf8')), event.sequence],
  );
  expect(await errorOf(opened.operations.audit.checkpoint())).toBe('key-tampered');
});

test('an unchanged log is signed, also after many records', async () => {
  await opened.operations.audit.checkpoint();
  for (let at = 0; at < 600; at += 1) await opened.operations.vaults.create(administrator, { name: `vault ${at}` });
  const { size } = (await opened.operations.audit.checkpoint()) ?? { size: 0 };
  expect(size).toBeGreaterThanOrEqual((await newest()).sequence);
});
