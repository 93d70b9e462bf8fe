// Checks an exported request log offline, with the hashes of its minutes that an export of the audit log has. Leaves out whether the
// audit log is whole: that is checked first (audit-verify.ts).

import {
  compareRequests,
  type HashedMinutes,
  hashEntry,
  type MinutePart,
  minuteOf,
  type RequestLogVerdict,
} from '../base/request-minutes.ts';
import { endpointRequestSchema } from '../fronts/contract/api/requests.ts';

const isText = (value: unknown): value is string => typeof value === 'string';
const isNumber = (value: unknown): value is number => typeof value === 'number';

/** Takes what a check needs out of the records of an audit log, in their order. */
export const gatherMinutes = (): {
  add(record: Readonly<Record<string, unknown>>): void;
  end(): HashedMinutes;
} => {
  const parts: MinutePart[] = [];
  let droppedThrough = 0;
  /** How many parts there were when the whole request log was exported. */
  let exportedAt: number | undefined;
  return {
    add: ({ kind, subjectKind, details }) => {
      const given = (details ?? {}) as Readonly<Record<string, unknown>>;
      if (kind === 'request-log.minute') {
        const { minute, count, first, last, hash, late } = given;
        if (isText(minute) && isNumber(count) && isNumber(first) && isNumber(last) && isText(hash))
          parts.push({ minute: minuteOf(Date.parse(minute)), count, first, last, hash, late: late === true });
      } else if (kind === 'request-log.pruned' && isNumber(given.through))
        droppedThrough = Math.max(droppedThrough, given.through);
      else if (kind === 'request-log.exported' && subjectKind === 'service' && given.format === 'ndjson') {
        if (Object.keys((given.filter ?? {}) as object).length === 0) exportedAt = parts.length;
      }
    },
    end: () => {
      // Minutes that were hashed after the export may not be in it.
      const later = new Set(exportedAt === undefined ? [] : parts.slice(exportedAt));
      return { parts, droppedThrough, mayLack: (part) => later.has(part) };
    },
  };
};

/** `lines` are those of `GET /api/requests/export`, without a filter. */
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
    const entry = endpointRequestSchema.safeParse(value);
    if (entry.success) {
      const { at, sequence } = entry.data;
      comparison.add({ at: Date.parse(at), sequence, hash: hashEntry(entry.data) });
    } else if (strange.length < 20)
      strange.push(
        `line ${number} is not a line of an export of the request log as ndjson: it was changed, or cut off`,
      );
  }
  const verdict = comparison.end();
  return { ...verdict, findings: [...strange, ...verdict.findings] };
};
