// The request log by the minute, as the audit log keeps it: for every minute that had requests, how many, and one hash over their
// records. What a record's line is, in which order lines are hashed, and how a log is compared with what was hashed. Knows no store.

import { createHash, hash as digest } from 'node:crypto';

export const minuteMs = 60_000;
/** Minutes since the epoch. */
export const minuteOf = (at: number): number => Math.floor(at / minuteMs);

/** A record as the API gives it: the members of a line of an export. */
export interface RequestEntry {
  readonly at: string;
  readonly credentialId: string | null;
  readonly durationMs: number;
  readonly endpointId: string | null;
  readonly errorName: string | null;
  readonly externalKeyId: string | null;
  readonly kmsKeyArn: string | null;
  readonly kmsOperation: string | null;
  readonly kmsRequestId: string | null;
  readonly operation: string;
  readonly peer: string | null;
  readonly phases: { readonly authMs: number; readonly cryptoMs: number; readonly readMs: number };
  readonly principal: string | null;
  readonly reason: string | null;
  readonly requestId: string;
  readonly sequence: number;
  readonly status: number;
}

/** SHA-256 of the record's line: JSON in the canonical form of RFC 8785. The members stand here in that order, so nothing is sorted. */
export const hashEntry = (entry: RequestEntry): Buffer =>
  digest(
    'sha256',
    JSON.stringify({
      at: entry.at,
      credentialId: entry.credentialId,
      durationMs: entry.durationMs,
      endpointId: entry.endpointId,
      errorName: entry.errorName,
      externalKeyId: entry.externalKeyId,
      kmsKeyArn: entry.kmsKeyArn,
      kmsOperation: entry.kmsOperation,
      kmsRequestId: entry.kmsRequestId,
      operation: entry.operation,
      peer: entry.peer,
      phases: {
        authMs: entry.phases.authMs,
        cryptoMs: entry.phases.cryptoMs,
        readMs: entry.phases.readMs,
      },
      principal: entry.principal,
      reason: entry.reason,
      requestId: entry.requestId,
      sequence: entry.sequence,
      status: entry.status,
    }),
    'buffer',
  );

/** The hash of a record, and the record's place in the log. */
export interface RequestHash {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly sequence: number;
  /** 32 bytes, of `hashEntry`. */
  readonly hash: Uint8Array;
}

/** Records of one minute that were hashed together. A minute has more than one part when records came late. */
export interface MinutePart {
  readonly minute: number;
  readonly count: number;
  /** Sequences: no other record of the minute lies between. */
  readonly first: number;
  readonly last: number;
  /** Lower-case hexadecimal. */
  readonly hash: string;
  /** They came when the minute had been hashed. */
  readonly late: boolean;
}

/** Makes one part. Entries are given in their order: by time, then by sequence. */
export const growPart = (
  minute: number,
  late: boolean,
): { add(record: Pick<RequestHash, 'sequence' | 'hash'>): void; end(): MinutePart } => {
  const whole = createHash('sha256');
  let count = 0;
  let first = Number.POSITIVE_INFINITY;
  let last = 0;
  return {
    add: ({ sequence, hash }) => {
      whole.update(hash);
      count += 1;
      first = Math.min(first, sequence);
      last = Math.max(last, sequence);
    },
    end: () => ({ minute, count, first, last, hash: whole.digest('hex'), late }),
  };
};

export interface RequestLogVerdict {
  /** Records that were looked at. */
  readonly requests: number;
  /** Minutes that were hashed, with those that retention has dropped. */
  readonly minutes: number;
  /** Records that came after their minute had been hashed, and were hashed by themselves. */
  readonly late: number;
  /** Records that retention has dropped: what is kept of them is their hash. */
  readonly dropped: number;
  /** Records that no hash covers yet. */
  readonly open: number;
  /** What is wrong, by the minute; empty: nothing is. */
  readonly findings: readonly string[];
}

/** What a log is compared with. */
export interface HashedMinutes {
  readonly parts: readonly MinutePart[];
  /** Retention has dropped records up to this sequence; 0: none. */
  readonly droppedThrough: number;
  /** Of these parts it is not known whether the log that is looked at had their records yet. */
  readonly mayLack?: (part: MinutePart) => boolean;
  /** Only these minutes are looked at, both included; all when absent. */
  readonly minutes?: { readonly first: number; readonly last: number };
}

interface Filling {
  readonly part: MinutePart;
  seen: number;
  rows: RequestHash[];
  /** Once as many were seen as were hashed. */
  same: boolean | null;
}

const largestList = 20;
const nameOf = (minute: number): string => `${new Date(minute * minuteMs).toISOString().slice(0, 16)}Z`;

/** Compares records, given in any order, with what was hashed. Keeps 32 bytes and two numbers of each record of unfinished minutes. */
export const compareRequests = (
  hashed: HashedMinutes,
): { add(record: RequestHash): void; end(): RequestLogVerdict } => {
  const byMinute = new Map<number, Filling[]>();
  let newestMinute = Number.NEGATIVE_INFINITY;
  let newestSequence = 0;
  for (const part of hashed.parts) {
    newestMinute = Math.max(newestMinute, part.minute);
    newestSequence = Math.max(newestSequence, part.last);
    const { first, last } = hashed.minutes ?? { first: part.minute, last: part.minute };
    if (part.minute < first || part.minute > last) continue;
    const others = byMinute.get(part.minute);
    const filling: Filling = { part, seen: 0, rows: [], same: null };
    if (others === undefined) byMinute.set(part.minute, [filling]);
    else others.push(filling);
  }
  const findings: string[] = [];
  let more = 0;
  const find = (text: string): void => {
    if (findings.length < largestList) findings.push(text);
    else more += 1;
  };
  let requests = 0;
  let open = 0;
  const finish = (filling: Filling): void => {
    filling.rows.sort((a, b) => a.at - b.at || a.sequence - b.sequence);
    const whole = createHash('sha256');
    for (const { hash } of filling.rows) whole.update(hash);
    filling.same = whole.digest('hex') === filling.part.hash;
    filling.rows = [];
  };

  return {
    add: (record) => {
      const { at, sequence } = record;
      requests += 1;
      const minute = minuteOf(at);
      const own = byMinute.get(minute)?.find(({ part }) => part.first <= sequence && sequence <= part.last);
      if (own !== undefined) {
        own.seen += 1;
        if (own.seen > own.part.count) return;
        own.rows.push(record);
        if (own.seen === own.part.count) finish(own);
      } else if (minute > newestMinute || sequence > newestSequence) open += 1;
      else find(`${nameOf(minute)}: record ${sequence} is not one of those that were hashed: it was added, or moved`);
    },
    end: () => {
      let late = 0;
      let dropped = 0;
      for (const { part, seen, same } of [...byMinute.values()].flat()) {
        if (part.late) late += part.count;
        const { count } = part;
        const range = `records ${part.first} to ${part.last}`;
        // What retention leaves of a minute cannot be compared with the hash of the whole.
        if (seen < count && part.first <= hashed.droppedThrough) dropped += count - seen;
        else if (seen < count && hashed.mayLack?.(part) !== true)
          find(`${nameOf(part.minute)}: of ${range}, ${count} were hashed and ${seen} are there: some were removed`);
        else if (seen > count)
          find(`${nameOf(part.minute)}: of ${range}, ${count} were hashed and ${seen} are there: some were added`);
        else if (same === false) find(`${nameOf(part.minute)}: ${range} are not as they were hashed: one was changed`);
      }
      if (more > 0) findings.push(`and ${more} more`);
      return { requests, minutes: byMinute.size, late, dropped, open, findings };
    },
  };
};
