// Former names of what an approval request is about: an approver decides about a thing that they
// know by a name, which someone may have changed since. The audit log has each name; its records of
// a thing are read by an index. They are for people: no decision rests on them.

import type { AuditKind, SubjectKind } from '../../domain/audit-event.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Repositories } from '../../ports/store.ts';
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

/** Records that are read for one thing. */
const mostRecords = 1_000;
/** Names of one thing. */
const mostOfOne = 20;
/** Things of one request, and names of all of them. */
const mostThings = 200;
const mostInAll = 200;

const namesOf = async (
  { audit }: Pick<Repositories, 'audit'>,
  { kind, id, name }: Named,
  since: number,
): Promise<readonly FormerName[]> => {
  const recorded = renamed[kind];
  if (recorded === undefined) return [];
  // The oldest first: what was changed since, however often, hides no name that came before. Each
  // name once, by when it ended last.
  const names = new Map<string, FormerName>();
  const records = each(
    (window) => audit.list(everyTenant, { kind: recorded, subjectId: id, from: since, order: 'oldest' }, window),
    ({ sequence }) => String(sequence),
    fewAtOnce,
  );
  let read = 0;
  for await (const { at, actorId, actorName, details } of records) {
    const { from } = details;
    read += 1;
    if (read > mostRecords) break;
    if (typeof from !== 'string' || from === name || (!names.has(from) && names.size === mostOfOne)) continue;
    names.delete(from);
    names.set(from, { kind, id, name, formerName: from, until: at, by: { id: actorId, name: actorName } });
  }
  return [...names.values()].reverse();
};

export const formerNamesOf = async (
  from: Pick<Repositories, 'audit'>,
  things: readonly Named[],
  now: number,
): Promise<readonly FormerName[]> => {
  const found: FormerName[] = [];
  const once = new Map(things.map((each) => [each.id, each]));
  for (const thing of [...once.values()].slice(0, mostThings)) {
    if (found.length >= mostInAll) break;
    found.push(...(await namesOf(from, thing, now - formerNamesMs)));
  }
  return found.slice(0, mostInAll);
};
