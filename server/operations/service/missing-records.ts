// What happened after the last record of a database that was put back, or that has taken over
// without the last changes: the sinks of the audit log still have it. Their records are compared
// with the signed checkpoints among them, as a continuation of the database's own log. A database
// that has taken over may have records of its own since: the log ends where the sink's records
// begin to differ.

import { verifyLogNote } from '../../base/checkpoint.ts';
import { leafHash, nodeHash, rootHash, type SubtreeHash } from '../../base/merkle-tree.ts';
import type { AuditSinkSource } from '../../ports/log-sink.ts';
import type { Ports } from '../../ports/ports.ts';
import { auditOrigin } from '../audit/audit-origin.ts';
import type { MissingRecord, MissingRecords } from './service-operations.ts';

const mostListed = 1_000;
/** Hashes that are kept for the comparison: 32 bytes each. */
const mostCompared = 1_000_000;
/**
 * How many records back a log may differ: those that were written between a failover and the moment
 * when a node finds it.
 */
const mostOwn = 1_000;

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

export const createMissingRecords =
  ({ store, ring }: Pick<Ports, 'store' | 'ring'>, sinks: readonly AuditSinkSource[]) =>
  async (size: number): Promise<MissingRecords> => {
    const log = await auditOrigin(store.read);

    const readSink = async ({ read }: AuditSinkSource) => {
      const records: MissingRecord[] = [];
      const leaves: Buffer[] = [];
      let signed = 0;
      /** Records that the log and the sink have in common. */
      let common = size;
      /** The database's own tree, continued by the records of the sink. */
      const subtree: SubtreeHash = async (level, position) => {
        const width = 2 ** level;
        if ((position + 1) * width <= common) return store.read.audit.subtree(level, position);
        if (level === 0) return leaves[position - common] ?? Buffer.alloc(0);
        return nodeHash(await subtree(level - 1, 2 * position), await subtree(level - 1, 2 * position + 1));
      };
      for await (const line of read?.(log, Math.max(0, size - mostOwn)) ?? []) {
        const value = JSON.parse(line) as Readonly<Record<string, unknown>>;
        const note = textOf(value.checkpoint);
        if (note !== '') {
          const found = verifyLogNote(note, log, ring.auditKeys());
          if (found === null || found.size <= common || found.size > common + leaves.length) continue;
          if ((await rootHash(subtree, found.size)).equals(found.root)) signed = Math.max(signed, found.size);
          continue;
        }
        const leaf = leafHash(Buffer.from(line, 'utf8'));
        if (leaves.length === 0 && typeof value.sequence === 'number' && value.sequence <= size) {
          if (leaf.equals(await store.read.audit.subtree(0, value.sequence - 1))) continue;
          common = value.sequence - 1;
        }
        // One that is left out, doubled or moved ends what can be told.
        if (value.sequence !== common + leaves.length + 1 || leaves.length >= mostCompared) break;
        leaves.push(leaf);
        if (records.length < mostListed)
          records.push({
            sequence: value.sequence,
            at: textOf(value.at),
            kind: textOf(value.kind),
            actorName: textOf(value.actorName),
            subjectKind: textOf(value.subjectKind),
            subjectId: textOf(value.subjectId),
          });
      }
      return { count: leaves.length, signed, records };
    };

    const found = await Promise.all(sinks.map(async (sink) => ({ sink, had: await readSink(sink) })));
    const [most] = found.map(({ had }) => had).sort((a, b) => b.signed - a.signed || b.count - a.count);
    return {
      count: most?.count ?? 0,
      signed: most?.signed ?? 0,
      records: most?.records ?? [],
      sinks: found.map(({ sink: { name, type, target, read }, had }) => ({
        name,
        type,
        target,
        records: read === undefined ? null : had.count,
      })),
    };
  };
