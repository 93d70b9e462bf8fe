// What a sink gets next, read from the store: records of its log, and the checkpoints of the audit
// log.

import { canonicalJson } from '../../base/bytes.ts';
import { entryLine } from '../../base/request-minutes.ts';
import { toRfc3339 } from '../../base/time.ts';
import { auditEntry } from '../../domain/audit-event.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Forwarded, LogItem } from '../../ports/log-sink.ts';
import type { Repositories } from '../../ports/store.ts';
import { type Cursor, takes } from './sink-cursor.ts';

const batch = 200;
const mostPages = 20;

const requestItem = (request: Awaited<ReturnType<Repositories['requests']['list']>>[number]): LogItem => {
  const text = entryLine({ ...request, at: toRfc3339(request.at) });
  return { kind: 'request', sequence: request.sequence, request, text };
};
interface Part {
  readonly items: readonly LogItem[];
  readonly next: Cursor;
}
const readRequests = async (
  read: Repositories,
  target: Forwarded,
  { log, record, checkpoint }: Cursor,
): Promise<Part> => {
  const items: LogItem[] = [];
  let last = record;
  // Further where a sink takes few: next to another record, one that it refuses can be told from a
  // sink that refuses all.
  for (let pages = 0; pages < mostPages && items.length < 2; pages += 1) {
    const found = await read.requests.list(last, batch);
    items.push(...found.filter(({ endpointId }) => takes(target, endpointId)).map(requestItem));
    last = found.at(-1)?.sequence ?? last;
    if (found.length < batch) break;
  }
  return { items, next: { log, record: last, checkpoint } };
};
const readAudit = async (read: Repositories, { log, record, checkpoint }: Cursor): Promise<Part> => {
  const events = await read.audit.list(everyTenant, { order: 'oldest' }, { after: String(record), limit: batch });
  const last = events.at(-1)?.sequence ?? record;
  // Read after the records: the checkpoint that ends with one of them, or with an earlier one, is
  // there by now.
  const notes = (await read.audit.checkpoints('oldest', { after: String(checkpoint), limit: batch })).filter(
    ({ size }) => size <= last,
  );
  const items: LogItem[] = events.map((event) => ({
    kind: 'record',
    sequence: event.sequence,
    event,
    text: auditEntry(event),
  }));
  for (const { size, at, note } of notes)
    items.push({ kind: 'checkpoint', sequence: size, at, text: canonicalJson({ checkpoint: note }) });
  items.sort((a, b) => a.sequence - b.sequence || (a.kind === 'record' ? -1 : 1));
  return { items, next: { log, record: last, checkpoint: notes.at(-1)?.size ?? checkpoint } };
};

export const readNext = (read: Repositories, target: Forwarded, from: Cursor): Promise<Part> =>
  target.log === 'audit' ? readAudit(read, from) : readRequests(read, target, from);
