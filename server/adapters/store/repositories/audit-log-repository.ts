// The audit records and the Merkle tree over them (RFC 9162 section 2.1). A record's number is its
// place: the first is 1 and none is left out, because the counter is part of the transaction. Of
// the tree the leaves are kept, in the records' rows, and every eighth level above them; what is
// between is at most 256 hashes away.

import type { Kysely } from 'kysely';
import { canonicalJson } from '../../../base/bytes.ts';
import { foldHashes, leafHash } from '../../../base/merkle-tree.ts';
import { otherWork } from '../../../base/next-turn.ts';
import { ServiceError } from '../../../base/service-error.ts';
import type { Clock } from '../../../base/time.ts';
import { type AuditEvent, auditEntry, auditKinds, kindsFrom } from '../../../domain/audit-event.ts';
import { everyTenant, type TenantScope } from '../../../domain/tenant.ts';
import type { Repositories } from '../../../ports/store.ts';
import type { Schema } from '../schema/schema.ts';
import { auditEventMembers, toAuditEvent } from '../schema/tables/audit-table.ts';
import { toBuffer } from '../schema/tables/values.ts';
import { alsoInScope, inScope } from './tenants-repository.ts';

/** Levels of a tile, and how many hashes its lowest one has. */
const tileLevels = 8;
const tileWidth = 2 ** tileLevels;

/**
 * Hears of each record that is appended, before it is committed: its number, and the hash of its
 * content.
 */
export type OnAppend = (sequence: number, leaf: Buffer) => void;

/**
 * Records that a step of a search by time covers; the next ones are as long as makes them take
 * about this time.
 */
const firstStep = 1000;
const shortestStep = 250;
const stepMs = 2;

type AuditFilter = Parameters<Repositories['audit']['list']>[1];
type AuditRepository = Omit<Repositories['audit'], 'append'> & {
  append(event: Omit<AuditEvent, 'sequence'>): Promise<number>;
};

/** Whether an index has the records of one actor, subject or request. */
const isNarrow = ({ actorId, subjectId, requestId }: Pick<AuditFilter, 'actorId' | 'subjectId' | 'requestId'>) =>
  actorId !== undefined || subjectId !== undefined || requestId !== undefined;

const createList = (db: Kysely<Schema>): AuditRepository['list'] => {
  /**
   * Query for the records after `beyond` in the order that is asked for, up to and including
   * `through`.
   */
  const pageOf = (
    tenant: TenantScope,
    { kind, severity, actorId, subjectId, requestId, from, to, order }: AuditFilter,
    {
      beyond,
      through,
      limit,
    }: { readonly beyond?: number | undefined; readonly through?: number; readonly limit: number },
  ) => {
    let query = (isNarrow({ actorId, subjectId, requestId }) ? alsoInScope : inScope)(
      db.selectFrom('audit_events').selectAll(),
      tenant,
    )
      .orderBy('sequence', order === 'newest' ? 'desc' : 'asc')
      .limit(limit);
    if (kind !== undefined) query = query.where('kind', '=', kind);
    if (severity !== undefined) query = query.where('kind', 'in', kindsFrom(severity));
    if (actorId !== undefined) query = query.where('actor_id', '=', actorId);
    if (subjectId !== undefined) query = query.where('subject_id', '=', subjectId);
    if (requestId !== undefined) query = query.where('request_id', '=', requestId);
    if (from !== undefined) query = query.where('at', '>=', from);
    if (to !== undefined) query = query.where('at', '<', to);
    if (beyond !== undefined) query = query.where('sequence', order === 'newest' ? '<' : '>', beyond);
    if (through !== undefined) query = query.where('sequence', order === 'newest' ? '>=' : '<=', through);
    return query;
  };
  /**
   * The newest (or oldest) of each kind, of which the newest are those of all: an index has the
   * records of a kind in their order, and none has those of several.
   */
  const ofKinds = async (
    tenant: TenantScope,
    { severity = 'info', kind: only, ...filter }: AuditFilter,
    window: { readonly beyond: number | undefined; readonly limit: number },
  ) => {
    const kinds = kindsFrom(severity).filter((kind) => only === undefined || kind === only);
    const [first, ...others] = kinds.map((kind) =>
      db
        .selectFrom(
          pageOf(tenant, { ...filter, kind }, window)
            .clearSelect()
            .select('sequence')
            .as('one'),
        )
        .selectAll(),
    );
    if (first === undefined) return [];
    const found = await others.reduce((union, next) => union.unionAll(next), first).execute();
    const newest = filter.order === 'newest';
    const sequences = found.map(({ sequence }) => Number(sequence)).sort((a, b) => (newest ? b - a : a - b));
    if (sequences.length === 0) return [];
    return db
      .selectFrom('audit_events')
      .selectAll()
      .where('sequence', 'in', sequences.slice(0, window.limit))
      .orderBy('sequence', newest ? 'desc' : 'asc')
      .execute();
  };
  return async (tenant, { severity, ...asked }, { after, limit }) => {
    const found: AuditEvent[] = [];
    // Every kind is of the lowest severity or above it.
    const filter: AuditFilter = severity === undefined || severity === 'info' ? asked : { ...asked, severity };
    const { from, to, order } = filter;
    // An actor may have most of the records: for each kind alone, they would be read again.
    const isInSteps = filter.severity !== undefined && isNarrow(filter);
    if (from === undefined && to === undefined && !isInSteps) {
      const beyond = after === undefined ? undefined : Number(after);
      if (filter.severity !== undefined) return (await ofKinds(tenant, filter, { beyond, limit })).map(toAuditEvent);
      return (await pageOf(tenant, filter, { beyond, limit }).execute()).map(toAuditEvent);
    }
    // No index has the time, and the database would read every record before it answers: steps by
    // number, between which other work is done, find the same. Clocks can be set back, so that
    // times say nothing about where to begin.
    const size = (await pageOf(everyTenant, { order: 'newest' }, { limit: 1 }).executeTakeFirst())?.sequence ?? 0;
    const newest = order === 'newest';
    let beyond = after === undefined ? (newest ? size + 1 : 0) : Math.min(Number(after), size + 1);
    for (let step = firstStep; newest ? beyond > 1 : beyond < size; ) {
      const startedAt = performance.now();
      const through = newest ? Math.max(1, beyond - step) : Math.min(size, beyond + step);
      const window = { beyond, through, limit: limit - found.length };
      found.push(...(await pageOf(tenant, filter, window).execute()).map(toAuditEvent));
      if (found.length === limit) break;
      beyond = through;
      const took = performance.now() - startedAt;
      step = Math.max(shortestStep, Math.round(step * Math.min(4, stepMs / Math.max(took, 0.1))));
      await otherWork();
    }
    return found;
  };
};

const createAuditLog = (db: Kysely<Schema>, onAppend: OnAppend): AuditRepository => {
  /** The hashes of a kept level, from `first` on. */
  const hashes = async (level: number, first: number, count: number): Promise<readonly Buffer[]> => {
    const found =
      level === 0
        ? await db
            .selectFrom('audit_events')
            .select('leaf_hash as hash')
            .where('sequence', '>', first)
            .where('sequence', '<=', first + count)
            .orderBy('sequence')
            .execute()
        : await db
            .selectFrom('audit_nodes')
            .select('hash')
            .where('level', '=', level)
            .where('position', '>=', first)
            .where('position', '<', first + count)
            .orderBy('position')
            .execute();
    if (found.length !== count) throw new RangeError('hashes of the audit log are missing');
    return found.map(({ hash }) => toBuffer(hash));
  };

  return {
    append: async (event) => {
      const { size: sequence } = await db
        .updateTable('audit_head')
        .set((row) => ({ size: row('size', '+', 1) }))
        .returning('size')
        .executeTakeFirstOrThrow();
      const record = { sequence, ...event };
      const leaf = leafHash(Buffer.from(auditEntry(record), 'utf8'));
      onAppend(sequence, leaf);
      await db
        .insertInto('audit_events')
        .values({
          ...auditEventMembers.toRow(record),
          details: canonicalJson(event.details),
          leaf_hash: leaf,
        })
        .execute();
      // Tiles that this record has filled, from the lowest up.
      for (let level = 0, filled = sequence; filled % tileWidth === 0; level += tileLevels) {
        const hash = foldHashes(await hashes(level, filled - tileWidth, tileWidth));
        filled /= tileWidth;
        await db
          .insertInto('audit_nodes')
          .values({ level: level + tileLevels, position: filled - 1, hash })
          .execute();
      }
      return sequence;
    },

    list: createList(db),

    size: async () => (await db.selectFrom('audit_head').select('size').executeTakeFirstOrThrow()).size,

    count: async (tenantId) => {
      const row = await db
        .selectFrom('audit_events')
        .select((e) => e.fn.countAll<number | string>().as('count'))
        .where('tenant_id', '=', tenantId)
        .executeTakeFirstOrThrow();
      return Number(row.count);
    },

    subtree: async (level, position) => {
      const inTile = level % tileLevels;
      const count = 2 ** inTile;
      return foldHashes(await hashes(level - inTile, position * count, count));
    },

    insertCheckpoint: async (checkpoint) => {
      await db.insertInto('audit_checkpoints').values(checkpoint).execute();
    },
    dropCheckpoints: async () => {
      await db.deleteFrom('audit_checkpoints').execute();
    },
    latestCheckpoint: () =>
      db.selectFrom('audit_checkpoints').selectAll().orderBy('size', 'desc').limit(1).executeTakeFirst(),
    checkpoints: async (order, { after, limit }) => {
      let query = db
        .selectFrom('audit_checkpoints')
        .selectAll()
        .orderBy('size', order === 'newest' ? 'desc' : 'asc')
        .limit(limit);
      if (after !== undefined) query = query.where('size', order === 'newest' ? '<' : '>', Number(after));
      return query.execute();
    },
  };
};

/** With the fields of each kind checked, and the time. */
export const createAuditRepository = (db: Kysely<Schema>, clock: Clock, onAppend: OnAppend): Repositories['audit'] => {
  const auditLog = createAuditLog(db, onAppend);
  return {
    ...auditLog,
    append: async ({ kind, actor, tenantId, subject, details }) => {
      const allowed: readonly string[] = auditKinds[kind].fields;
      const unknown = Object.keys(details).find((name) => !allowed.includes(name));
      if (unknown !== undefined) throw new ServiceError('internal', `audit record ${kind} has no field ${unknown}`);
      return auditLog.append({
        at: clock.now(),
        kind,
        actorKind: actor.kind,
        actorId: actor.id,
        actorName: actor.name,
        peer: actor.peer,
        tenantId,
        subjectKind: subject.kind,
        subjectId: subject.id,
        requestId: actor.requestId,
        details: JSON.parse(canonicalJson(details)) as AuditEvent['details'],
      });
    },
  };
};
