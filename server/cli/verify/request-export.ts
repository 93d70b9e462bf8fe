// Checks an exported request log offline, with the hashes of its minutes that an export of the
// audit log has. Leaves out whether the audit log is whole: that is checked first
// (audit-export.ts).

import {
  compareRequests,
  gatherMinutes as gather,
  type HashedMinutes,
  hashEntry,
  type RequestLogVerdict,
  spaceOf,
} from '../../base/request-minutes.ts';
import { requestLineSchema } from '../../contract/api/requests-routes.ts';

/** Takes what a check needs out of the records of an audit log, in their order. */
export const gatherMinutes = (): {
  add(record: Readonly<Record<string, unknown>>): void;
  end(): HashedMinutes;
} => {
  const minutes = gather();
  /** How many parts there were when the whole request log was exported. */
  let exportedAt: number | undefined;
  return {
    add: ({ kind, subjectKind, details }) => {
      minutes.add({ kind, details });
      const { format, filter } = (details ?? {}) as Readonly<Record<string, unknown>>;
      if (kind === 'request-log.exported' && subjectKind === 'service' && format === 'ndjson')
        if (Object.keys((filter ?? {}) as object).length === 0) exportedAt = minutes.parts();
    },
    end: () => {
      const hashed = minutes.end();
      // Minutes that were hashed after the export may not be in it.
      const later = new Set(exportedAt === undefined ? [] : hashed.parts.slice(exportedAt));
      return { ...hashed, mayLack: (part) => later.has(part) };
    },
  };
};

const requestMembers = new Set(Object.keys(requestLineSchema.shape));
/** Whether a line is a record with more than this version knows. */
const isOfNewerVersion = (value: unknown): boolean => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const known = Object.entries(value).filter(([name]) => requestMembers.has(name));
  return known.length < Object.keys(value).length && requestLineSchema.safeParse(Object.fromEntries(known)).success;
};

/**
 * `lines` are those of `GET /api/requests/export`, without a filter, or those that a sink received,
 * of this version or an older one.
 */
export const verifyRequestLog = async (
  lines: AsyncIterable<string>,
  hashed: HashedMinutes,
): Promise<RequestLogVerdict> => {
  const comparison = compareRequests(hashed);
  const strange: string[] = [];
  let number = 0;
  for await (const line of lines) {
    number += 1;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      value = null;
    }
    const entry = requestLineSchema.safeParse(value);
    if (entry.success) {
      const { at, sequence } = entry.data;
      comparison.add({ at: Date.parse(at), sequence, space: spaceOf(entry.data), hash: hashEntry(entry.data) });
    } else if (strange.length < 20)
      strange.push(
        isOfNewerVersion(value)
          ? `line ${number} has members that this command does not know: a newer service has written it (compare the log with the command of that version), or it was changed`
          : `line ${number} is not a line of an export of the request log as ndjson: it was changed or truncated`,
      );
  }
  const verdict = comparison.end();
  return { ...verdict, findings: [...strange, ...verdict.findings] };
};
