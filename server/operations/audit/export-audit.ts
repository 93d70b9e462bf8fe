// The lines of an export of the audit log, a page at a time.

import { canonicalJson, toBase64 } from '../../base/bytes.ts';
import { coverRange } from '../../base/merkle-tree.ts';
import { ServiceError } from '../../base/service-error.ts';
import { auditEntry } from '../../domain/audit-event.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import { auditOrigin } from './audit-origin.ts';

/** Few enough that no request waits long behind one. */
const exportPage = 200;

/** The whole log up to `size`, each checkpoint behind the record that it ends with. */
export async function* exportLines({ store }: Pick<Ports, 'store'>, size: number): AsyncGenerator<readonly string[]> {
  // Checkpoints come in the order of the records: one page of them is at hand.
  let notes: { readonly size: number; readonly note: string }[] = [];
  let notesAfter = '0';
  const nextNote = async (): Promise<{ readonly size: number; readonly note: string } | undefined> => {
    if (notes.length === 0) {
      notes = [...(await store.read.audit.checkpoints('oldest', { after: notesAfter, limit: exportPage }))];
      notesAfter = String(notes.at(-1)?.size ?? notesAfter);
    }
    return notes[0];
  };
  for (let read = 0; read < size; ) {
    const limit = Math.min(exportPage, size - read);
    const page: string[] = [];
    for (const event of await store.read.audit.list(everyTenant, { order: 'oldest' }, { after: String(read), limit })) {
      page.push(auditEntry(event));
      read = event.sequence;
      const note = await nextNote();
      if (note?.size !== read) continue;
      notes.shift();
      page.push(canonicalJson({ checkpoint: note.note }));
    }
    if (page.length === 0) throw new ServiceError('key-tampered', 'records of the audit log are missing');
    yield page;
  }
}

/**
 * The records of one tenant; those of others are told by the hashes of whole subtrees. `size`
 * records are covered by `note`.
 */
export async function* exportTenantLines(
  { store, ring }: Pick<Ports, 'store' | 'ring'>,
  tenantId: string,
  size: number,
  note: string,
): AsyncGenerator<readonly string[]> {
  let told = 0;
  const origin = await auditOrigin(store.read);
  /** Where the key was rotated, oldest first: who has a former key learns the next one there. */
  const rotations = ring.auditKeys().flatMap(({ until }) => (until?.origin === origin ? [until.size] : []));
  rotations.reverse();
  const hide = async (through: number): Promise<readonly string[]> => {
    const hidden: (readonly [number, string])[] = [];
    for (const { level, position } of coverRange(told, through))
      hidden.push([level, toBase64(await store.read.audit.subtree(level, position))]);
    told = through;
    return hidden.length === 0 ? [] : [canonicalJson({ hidden })];
  };
  const rotateUpTo = async (before: number): Promise<readonly string[]> => {
    const found: string[] = [];
    while (rotations[0] !== undefined && rotations[0] < before) {
      const at = rotations.shift() as number;
      const [rotation] = await store.read.audit.checkpoints('oldest', { after: String(at - 1), limit: 1 });
      if (rotation?.size === at) found.push(...(await hide(at)), canonicalJson({ checkpoint: rotation.note }));
    }
    return found;
  };
  for (let after = '0'; ; ) {
    const events = await store.read.audit.list(tenantId, { order: 'oldest' }, { after, limit: exportPage });
    const page: string[] = [];
    for (const event of events) {
      if (event.sequence > size) break;
      page.push(...(await rotateUpTo(event.sequence)));
      page.push(...(await hide(event.sequence - 1)), auditEntry(event));
      told = event.sequence;
    }
    const last = events.at(-1);
    if (page.length > 0) yield page;
    if (last === undefined || events.length < exportPage || last.sequence >= size) break;
    after = String(last.sequence);
  }
  yield [...(await rotateUpTo(size)), ...(await hide(size)), canonicalJson({ checkpoint: note })];
}
