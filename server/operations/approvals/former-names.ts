// Former names of what an approval request is about: an approver decides about a thing that they
// know by a name, which someone may have changed since. The audit log has each name; its records of
// a thing are read by an index. They are for people: no decision rests on them.

import { otherWork } from '../../base/next-turn.ts';
import type { AuditEvent, AuditKind, SubjectKind } from '../../domain/audit-event.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Window } from '../../ports/window.ts';
import { each, fewAtOnce } from '../shared/paging.ts';
import type { FormerName } from './approvals-operations.ts';
import type { Named } from './governed-operation.ts';

const day = 24 * 3_600_000;
/** For so long a former name is shown. */
const formerNamesMs = 90 * day;

/** What has another name since says so by a record of this kind, with the former name. */
const renamed: Readonly<Partial<Record<SubjectKind, AuditKind>>> = {
  tenant: 'tenant.renamed',
  vault: 'vault.renamed',
  key: 'key.changed',
  group: 'group.renamed',
  application: 'application.renamed',
  endpoint: 'endpoint.renamed',
};

/** Records of one thing that are read one after the other. */
const mostRecords = 200;
/** Names of one thing. */
const mostOfOne = 20;
/** Things of one request, and names of all of them. */
const mostThings = 200;
const mostInAll = 200;

/** The record by which a thing lost a name, with how long it had had it. */
interface Ended extends FormerName {
  readonly heldMs: number;
}

/**
 * The records by which a thing lost its names, the oldest first. Behind the first ones, it reads
 * one of a day: the record that ended the name which the thing had at that moment. So a name that
 * was there for a day is found however often the thing was renamed.
 */
async function* renamesOf(
  { audit }: Pick<Repositories, 'audit'>,
  filter: { readonly kind: AuditKind; readonly subjectId: string },
  since: number,
): AsyncGenerator<AuditEvent | 'not all'> {
  const list = (from: number) => (window: Window) =>
    audit.list(everyTenant, { ...filter, from, order: 'oldest' }, window);
  let read = 0;
  let last = { at: since, sequence: 0 };
  for await (const record of each(list(since), ({ sequence }) => String(sequence), fewAtOnce)) {
    yield record;
    last = record;
    read += 1;
    if (read === mostRecords) break;
  }
  if (read < mostRecords) return;
  yield 'not all';
  for (;;) {
    const [next] = await list(last.at + day)({ after: String(last.sequence), limit: 1 });
    if (next === undefined) break;
    yield next;
    last = next;
    await otherWork();
  }
  const [newest] = await audit.list(
    everyTenant,
    { ...filter, from: last.at, order: 'newest' },
    { after: undefined, limit: 1 },
  );
  if (newest !== undefined) yield newest;
}

interface NamesOfOne {
  /** In the order in which they are kept. */
  readonly names: readonly Ended[];
  /** Whether it may have had others. */
  readonly isPart: boolean;
}

/**
 * Names that were there the longest come first: a person knows a thing by them, and to hide one,
 * another must have been there as long. Only the last name comes before them.
 */
const namesOf = async (
  from: Pick<Repositories, 'audit'>,
  { kind, id, name }: Named,
  since: number,
): Promise<NamesOfOne> => {
  const recorded = renamed[kind];
  if (recorded === undefined) return { names: [], isPart: false };
  // Each name once, by when it ended last, and with all the time that it was there.
  const names = new Map<string, Ended>();
  let isPart = false;
  let last = since;
  for await (const record of renamesOf(from, { kind: recorded, subjectId: id }, since)) {
    if (record === 'not all') {
      isPart = true;
      continue;
    }
    const { at, actorId, actorName, details } = record;
    const heldMs = Math.max(0, at - last);
    last = at;
    const formerName = details.from;
    if (typeof formerName !== 'string' || formerName === name) continue;
    const before = names.get(formerName)?.heldMs ?? 0;
    names.delete(formerName);
    const by = { id: actorId, name: actorName };
    names.set(formerName, { kind, id, name, formerName, until: at, by, heldMs: before + heldMs });
  }
  const all = [...names.values()];
  const newest = all.pop();
  const longest = all.reverse().sort((a, b) => b.heldMs - a.heldMs);
  return { names: newest === undefined ? [] : [newest, ...longest], isPart };
};

export interface FormerNames {
  /** Names of one thing after the other, the newest first. */
  readonly formerNames: readonly FormerName[];
  /**
   * How many are left out, at least: names of the things that were read, and one of each thing that
   * was not.
   */
  readonly formerNamesOmitted: number;
}

export const formerNamesOf = async (
  from: Pick<Repositories, 'audit'>,
  things: readonly Named[],
  now: number,
): Promise<FormerNames> => {
  const once = [...new Map(things.map((each) => [each.id, each])).values()];
  const found: NamesOfOne[] = [];
  for (const thing of once.slice(0, mostThings)) found.push(await namesOf(from, thing, now - formerNamesMs));
  // The first ones of each thing before the second ones of any: many names of one hide no other.
  const ranked = found
    .flatMap(({ names }, thing) => names.slice(0, mostOfOne).map((former, rank) => ({ former, rank, thing })))
    .sort((a, b) => a.rank - b.rank || a.thing - b.thing);
  const kept = ranked.slice(0, mostInAll).sort((a, b) => a.thing - b.thing || b.former.until - a.former.until);
  const all = found.reduce((sum, { names }) => sum + names.length, 0);
  const unread = found.filter(({ isPart }) => isPart).length + Math.max(0, once.length - mostThings);
  return {
    formerNames: kept.map(({ former: { heldMs: _heldMs, ...former } }) => former),
    formerNamesOmitted: all - kept.length + unread,
  };
};
