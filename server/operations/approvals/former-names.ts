// Former names of what an approval request is about: an approver decides about a thing that they
// know by a name, which someone may have changed since. The audit log has each name; its records of
// a thing are read by an index. They are for people: no decision rests on them.

import { otherWork } from '../../base/next-turn.ts';
import type { AuditEvent, AuditKind, SubjectKind } from '../../domain/audit-event.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Window } from '../../ports/window.ts';
import { each } from '../shared/paging.ts';
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

/** Records of one thing, and of all things of one request, that are read one after the other. */
const mostRecords = 2_500;
const mostRecordsInAll = 10_000;
const atOnce = 100;
/** Records of a thing that was renamed more often: its last names. */
const lastRecords = 20;
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
 * The records by which a thing lost its names, the oldest first. Of one that was renamed more often
 * than `most`, the first ones, a gap, and the last ones.
 */
async function* renamesOf(
  { audit }: Pick<Repositories, 'audit'>,
  filter: { readonly kind: AuditKind; readonly subjectId: string; readonly from: number },
  most: number,
): AsyncGenerator<AuditEvent | 'gap'> {
  const list = (window: Window) => audit.list(everyTenant, { ...filter, order: 'oldest' }, window);
  let read = 0;
  let last = 0;
  for await (const record of each(list, ({ sequence }) => String(sequence), atOnce)) {
    if (read === most) break;
    yield record;
    last = record.sequence;
    read += 1;
  }
  if (read < most) return;
  const newest = await audit.list(
    everyTenant,
    { ...filter, order: 'newest' },
    { after: undefined, limit: lastRecords },
  );
  const unread = newest.filter(({ sequence }) => sequence > last).reverse();
  if (unread.length === 0) return;
  yield 'gap';
  yield* unread;
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
  most: number,
): Promise<NamesOfOne & { readonly read: number }> => {
  const recorded = renamed[kind];
  if (recorded === undefined) return { names: [], isPart: false, read: 0 };
  // Each name once, by when it ended last, and with all the time that it was there.
  const names = new Map<string, Ended>();
  let isPart = false;
  let read = 0;
  /** When the name began that the next record ends; undefined: behind a gap, it is not known. */
  let last: number | undefined = since;
  for await (const record of renamesOf(from, { kind: recorded, subjectId: id, from: since }, most)) {
    if (record === 'gap') {
      isPart = true;
      last = undefined;
      continue;
    }
    const { at, actorId, actorName, details } = record;
    const heldMs: number = last === undefined ? 0 : Math.max(0, at - last);
    last = at;
    read += 1;
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
  return { names: newest === undefined ? [] : [newest, ...longest], isPart, read };
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
  let left = mostRecordsInAll;
  for (const thing of once.slice(0, mostThings)) {
    const names = await namesOf(from, thing, now - formerNamesMs, Math.min(mostRecords, left));
    left = Math.max(lastRecords, left - names.read);
    found.push(names);
    await otherWork();
  }
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
