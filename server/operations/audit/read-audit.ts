// The audit log: reading, proving, exporting. Order is by sequence, never by time.

import { canonicalJson, toBase64 } from '../../base/bytes.ts';
import { verifierKey } from '../../base/checkpoint.ts';
import { ServiceError } from '../../base/errors.ts';
import { serviceTenantId } from '../../base/ids.ts';
import { coverRange, inclusionProof } from '../../base/merkle-tree.ts';
import { auditEntry } from '../../domain/audit-event.ts';
import { auditKeyDays, dayMs } from '../../domain/notification.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import { checkSequenceCursor, pageOf } from '../shared/paging.ts';
import type { LogForwarding } from './forward-logs.ts';
import type { AuditLog, AuditOperations } from './interface.ts';
import { readMigrations } from './read-key-migrations.ts';
import { type AuditSealer, auditOrigin, keySince } from './seal-audit-log.ts';

export { readableDetails } from '../../domain/audit-event.ts';

/** Few enough that no request waits long behind one. */
const exportPage = 200;

export const readAudit = (
  { store, ring, erasure }: Pick<Ports, 'store' | 'ring' | 'erasure'>,
  sealer: AuditSealer,
  forwarding: LogForwarding,
): AuditOperations => {
  async function* lines(size: number): AsyncGenerator<readonly string[]> {
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
      for (const event of await store.read.audit.list(
        everyTenant,
        { order: 'oldest' },
        { after: String(read), limit },
      )) {
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

  /** Of one tenant; what is of others is told by the hashes of whole subtrees. `size` records are covered by `note`. */
  async function* linesOf(tenantId: string, size: number, note: string): AsyncGenerator<readonly string[]> {
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

  const log = async (): Promise<AuditLog> => {
    await ring.refreshAuditKey(store.read);
    const origin = await auditOrigin(store.read);
    const since = await keySince(store.read, ring.auditKeySince());
    return {
      origin,
      verifierKey: verifierKey(origin, ring.auditPublicKey()),
      formerKeys: ring
        .auditKeys()
        .flatMap(({ publicKey, until }) =>
          until === null ? [] : [{ verifierKey: verifierKey(until.origin, publicKey), through: until.size }],
        ),
      keySince: since,
      rotationDueAt: since === null ? null : since + auditKeyDays * dayMs,
      size: await store.read.audit.size(),
      checkpoint: (await store.read.audit.latestCheckpoint()) ?? null,
    };
  };

  return {
    list: ({ reach }, query) => {
      checkSequenceCursor(query);
      return pageOf(
        query,
        (window) => store.read.audit.list(reach, { ...query, order: query.order ?? 'newest' }, window),
        (event) => String(event.sequence),
      );
    },

    migrations: readMigrations({ store }),

    log,

    rotateKey: async (actor) => {
      await sealer.rotateKey(actor);
      erasure.schedule();
      return log();
    },

    checkpoints: (_actor, query) => {
      checkSequenceCursor(query);
      return pageOf(
        query,
        (window) => store.read.audit.checkpoints('newest', window),
        ({ size }) => String(size),
      );
    },

    sinks: () => forwarding.state(),

    checkpoint: () => sealer.checkpoint(),

    prove: async ({ reach }, sequence) => {
      const [event] = await store.read.audit.list(
        reach,
        { order: 'oldest' },
        { after: String(sequence - 1), limit: 1 },
      );
      const latest = await store.read.audit.latestCheckpoint();
      const checkpoint = latest !== undefined && latest.size >= sequence ? latest : await sealer.checkpoint();
      if (event?.sequence !== sequence || checkpoint === undefined)
        throw new ServiceError('not-found', `audit record ${sequence} not found`);
      const hashes = await inclusionProof(store.read.audit.subtree, sequence - 1, checkpoint.size);
      return { entry: auditEntry(event), checkpoint, hashes };
    },

    exportTenant: async (actor) => {
      const { tenantId } = actor;
      await store.write(async (tx) => {
        await tx.audit.append({
          kind: 'audit-log.exported',
          actor,
          tenantId,
          subject: { kind: 'service', id: 'audit-log' },
          details: { size: (await tx.audit.size()) + 1, records: (await tx.audit.count(tenantId)) + 1 },
        });
      });
      const checkpoint = await sealer.checkpoint();
      if (checkpoint === undefined) throw new ServiceError('unavailable', 'the audit log has no checkpoint yet');
      return linesOf(tenantId, checkpoint.size, checkpoint.note);
    },

    export: async (actor) => {
      await store.write(async (tx) => {
        await tx.audit.append({
          kind: 'audit-log.exported',
          actor,
          tenantId: serviceTenantId,
          subject: { kind: 'service', id: 'audit-log' },
          details: { size: (await tx.audit.size()) + 1 },
        });
      });
      const checkpoint = await sealer.checkpoint();
      return lines(checkpoint?.size ?? 0);
    },
  };
};
