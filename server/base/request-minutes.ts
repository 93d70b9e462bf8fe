// The request log by the minute, as the audit log keeps it: for every minute that had requests, how
// many, how many could not be recorded, and hashes over the records. What a record's line is, in
// which order lines are hashed, and how a log is compared with what was hashed. Knows no store.
//
// Each endpoint has a space of its own for signed requests, and all unsigned requests share one:
// retention removes the oldest of one space (operations/requests/request-retention.ts), and each
// space of a minute has a hash of its own, so that what is left can still be verified.

import { createHash, hash as digest } from 'node:crypto';

export const minuteMs = 60_000;
/** Minutes since the epoch. */
export const minuteOf = (at: number): number => Math.floor(at / minuteMs);

/** A record as the API gives it: the members of a line of an export. */
export interface RequestEntry {
  readonly at: string;
  readonly awsSourceVpc?: string | null | undefined;
  readonly awsSourceVpce?: string | null | undefined;
  readonly credentialId: string | null;
  readonly durationMs: number;
  readonly endpointId: string | null;
  readonly errorName: string | null;
  readonly externalKeyId: string | null;
  readonly kmsKeyArn: string | null;
  readonly kmsOperation: string | null;
  readonly kmsRequestId: string | null;
  readonly kmsViaService?: string | null | undefined;
  readonly operation: string;
  readonly peer: string | null;
  readonly phases: { readonly authMs: number; readonly cryptoMs: number; readonly readMs: number };
  readonly principal: string | null;
  readonly reason: string | null;
  readonly requestId: string;
  readonly sequence: number;
  readonly status: number;
}

/**
 * The record's line: JSON in the canonical form of RFC 8785. The members stand here in that order,
 * so nothing is sorted. What came later than the first release is left out where a record has none:
 * the lines of older records, and their hashes, stay what they were.
 */
export const entryLine = (entry: RequestEntry): string =>
  JSON.stringify({
    at: entry.at,
    awsSourceVpc: entry.awsSourceVpc ?? undefined,
    awsSourceVpce: entry.awsSourceVpce ?? undefined,
    credentialId: entry.credentialId,
    durationMs: entry.durationMs,
    endpointId: entry.endpointId,
    errorName: entry.errorName,
    externalKeyId: entry.externalKeyId,
    kmsKeyArn: entry.kmsKeyArn,
    kmsOperation: entry.kmsOperation,
    kmsRequestId: entry.kmsRequestId,
    kmsViaService: entry.kmsViaService ?? undefined,
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
  });

/** SHA-256 of the record's line. */
export const hashEntry = (entry: RequestEntry): Buffer => digest('sha256', entryLine(entry), 'buffer');

/** The space of requests without a valid signature; other spaces have the id of their endpoint. */
export const unsignedSpace = 'unsigned';
export const spaceOf = ({ credentialId, endpointId }: Pick<RequestEntry, 'credentialId' | 'endpointId'>): string =>
  credentialId === null || endpointId === null ? unsignedSpace : endpointId;

/** The hash of a record, and the record's place in the log. */
export interface RequestHash {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly sequence: number;
  readonly space: string;
  /** 32 bytes, of `hashEntry`. */
  readonly hash: Uint8Array;
}

/**
 * Records of one space and minute that were hashed together. There is more than one of a minute
 * when records came late.
 */
export interface MinutePart {
  readonly minute: number;
  /** Null: of all spaces, as earlier versions hashed them. */
  readonly space: string | null;
  readonly count: number;
  /** Sequences: no other record of the minute and space is between. */
  readonly first: number;
  readonly last: number;
  /** Lower-case hexadecimal. */
  readonly hash: string;
  /** Whether the records came after the minute had been hashed. */
  readonly late: boolean;
}

/**
 * Requests of a minute that were not recorded, because the log could not keep up or the store
 * failed.
 */
export interface DroppedRequests {
  readonly minute: number;
  readonly signed: number;
  readonly unsigned: number;
}

/** Makes the parts of one minute. Entries are given in their order: by time, then by sequence. */
export const growMinute = (
  minute: number,
  late: boolean,
): { add(record: Pick<RequestHash, 'sequence' | 'space' | 'hash'>): void; end(): readonly MinutePart[] } => {
  const spaces = new Map<
    string,
    { whole: ReturnType<typeof createHash>; count: number; first: number; last: number }
  >();
  return {
    add: ({ sequence, space, hash }) => {
      let own = spaces.get(space);
      if (own === undefined) {
        own = { whole: createHash('sha256'), count: 0, first: sequence, last: sequence };
        spaces.set(space, own);
      }
      own.whole.update(hash);
      own.count += 1;
      own.first = Math.min(own.first, sequence);
      own.last = Math.max(own.last, sequence);
    },
    end: () =>
      [...spaces]
        .toSorted(([one], [other]) => (one < other ? -1 : 1))
        .map(([space, { whole, ...range }]) => ({ minute, space, ...range, hash: whole.digest('hex'), late })),
  };
};

export interface RequestLogVerdict {
  /** Records that were checked. */
  readonly requests: number;
  /** Minutes that were hashed, with those that retention has dropped. */
  readonly minutes: number;
  /** Records that came after their minute had been hashed, and were hashed on their own. */
  readonly late: number;
  /** Records that retention has removed: what is kept of them is their hash. */
  readonly pruned: number;
  /**
   * Signed requests that were not recorded. Each minute with some has a finding: the log is not
   * complete.
   */
  readonly dropped: number;
  /** Unsigned requests that were not recorded: anyone can cause that. */
  readonly droppedUnsigned: number;
  /** Records that no hash covers yet. */
  readonly open: number;
  /** What is wrong, by the minute; empty: nothing is. */
  readonly findings: readonly string[];
}

/** What a log is compared with. */
export interface HashedMinutes {
  readonly parts: readonly MinutePart[];
  readonly dropped: readonly DroppedRequests[];
  /** Retention has removed records of a space up to this sequence; '' is every space. */
  readonly prunedThrough: ReadonlyMap<string, number>;
  /**
   * Whether the log that is checked may be older than the records of this part, and lack some;
   * absent: every part must be complete.
   */
  readonly mayLack?: (part: MinutePart) => boolean;
  /**
   * The newest minute and sequence that were hashed, where `parts` does not have all; what is newer
   * is open.
   */
  readonly newest?: { readonly minute: number; readonly sequence: number };
  /** Only these minutes are checked, both included; all when absent. */
  readonly minutes?: { readonly first: number; readonly last: number };
}

type Details = Readonly<Record<string, unknown>>;
const isDetails = (value: unknown): value is Details => typeof value === 'object' && value !== null;
const countOf = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0);

const readPart = (minute: number, late: boolean, given: unknown): readonly MinutePart[] => {
  if (!isDetails(given)) return [];
  const { space = null, count, first, last, hash } = given;
  return typeof count === 'number' &&
    typeof first === 'number' &&
    typeof last === 'number' &&
    typeof hash === 'string' &&
    (space === null || typeof space === 'string')
    ? [{ minute, space, count, first, last, hash, late }]
    : [];
};

/**
 * Takes what a comparison needs from records of the audit log, in any order. `parts` is how many
 * there are so far.
 */
export const gatherMinutes = (): {
  add(record: { readonly kind: unknown; readonly details: unknown }): void;
  parts(): number;
  end(): HashedMinutes;
} => {
  const parts: MinutePart[] = [];
  const dropped: DroppedRequests[] = [];
  const prunedThrough = new Map<string, number>();
  return {
    add: ({ kind, details }) => {
      if (!isDetails(details)) return;
      if (kind === 'request-log.pruned') {
        const space = typeof details.space === 'string' ? details.space : '';
        prunedThrough.set(space, Math.max(prunedThrough.get(space) ?? 0, countOf(details.through)));
      }
      const at = kind === 'request-log.minute' ? Date.parse(String(details.minute)) : Number.NaN;
      if (!Number.isFinite(at)) return;
      const minute = minuteOf(at);
      const late = details.late === true;
      const given: readonly unknown[] = Array.isArray(details.parts) ? details.parts : [details];
      for (const part of given) parts.push(...readPart(minute, late, part));
      const lost = { minute, signed: countOf(details.dropped), unsigned: countOf(details.droppedUnsigned) };
      if (lost.signed + lost.unsigned > 0) dropped.push(lost);
    },
    parts: () => parts.length,
    end: () => ({ parts, dropped, prunedThrough }),
  };
};

interface Filling {
  readonly part: MinutePart;
  seen: number;
  rows: RequestHash[];
  /** Once as many were seen as were hashed. */
  same: boolean | null;
}

const largestList = 20;
const nameOf = (minute: number): string => `${new Date(minute * minuteMs).toISOString().slice(0, 16)}Z`;

export interface Findings {
  add(text: string): void;
  /** The first of them, and how many more there are. */
  list(): readonly string[];
}
export const createFindings = (): Findings => {
  const first: string[] = [];
  let more = 0;
  return {
    add: (text) => {
      if (first.length < largestList) first.push(text);
      else more += 1;
    },
    list: () => (more > 0 ? [...first, `and ${more} more`] : first),
  };
};

/**
 * Compares records, given in any order, with what was hashed. Keeps 32 bytes and two numbers of
 * each record of unfinished minutes.
 */
export const compareRequests = (
  hashed: HashedMinutes,
  findings: Findings = createFindings(),
): { add(record: RequestHash): void; end(): RequestLogVerdict } => {
  /** Parts that are compared, by minute, then by space. */
  const byMinute = new Map<number, Map<string | null, Filling[]>>();
  let newestMinute = hashed.newest?.minute ?? Number.NEGATIVE_INFINITY;
  let newestSequence = hashed.newest?.sequence ?? 0;
  for (const part of hashed.parts) {
    newestMinute = Math.max(newestMinute, part.minute);
    newestSequence = Math.max(newestSequence, part.last);
    const { first, last } = hashed.minutes ?? { first: part.minute, last: part.minute };
    if (part.minute < first || part.minute > last) continue;
    const spaces = byMinute.get(part.minute) ?? new Map<string | null, Filling[]>();
    byMinute.set(part.minute, spaces);
    spaces.set(part.space, [...(spaces.get(part.space) ?? []), { part, seen: 0, rows: [], same: null }]);
  }
  const ofAll = hashed.prunedThrough.get('') ?? 0;
  const ofAny = Math.max(0, ...hashed.prunedThrough.values());
  const prunedThrough = ({ space }: MinutePart): number =>
    space === null ? ofAny : Math.max(ofAll, hashed.prunedThrough.get(space) ?? 0);
  const find = findings.add;
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
      const { at, sequence, space } = record;
      requests += 1;
      const minute = minuteOf(at);
      const isIn = ({ part }: Filling): boolean => part.first <= sequence && sequence <= part.last;
      const spaces = byMinute.get(minute);
      const own = spaces?.get(space)?.find(isIn) ?? spaces?.get(null)?.find(isIn);
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
      let pruned = 0;
      let dropped = 0;
      let droppedUnsigned = 0;
      const lost = new Map<number, number>();
      for (const { minute, signed, unsigned } of hashed.dropped) {
        if (hashed.minutes !== undefined && (minute < hashed.minutes.first || minute > hashed.minutes.last)) continue;
        dropped += signed;
        droppedUnsigned += unsigned;
        if (signed > 0) lost.set(minute, (lost.get(minute) ?? 0) + signed);
      }
      for (const [minute, signed] of [...lost].sort(([one], [other]) => one - other))
        find(`${nameOf(minute)}: ${signed} signed requests were not recorded: the log could not keep up`);
      for (const { part, seen, same } of [...byMinute.values()].flatMap((spaces) => [...spaces.values()].flat())) {
        if (part.late) late += part.count;
        const { count } = part;
        const range = `records ${part.first} to ${part.last}`;
        // What retention leaves of a minute cannot be compared with the hash of the whole.
        if (seen < count && part.first <= prunedThrough(part)) pruned += count - seen;
        else if (seen < count && hashed.mayLack?.(part) !== true)
          find(`${nameOf(part.minute)}: of ${range}, ${count} were hashed and ${seen} are there: some were removed`);
        else if (seen > count)
          find(`${nameOf(part.minute)}: of ${range}, ${count} were hashed and ${seen} are there: some were added`);
        else if (same === false) find(`${nameOf(part.minute)}: ${range} are not as they were hashed: one was changed`);
      }
      const minutes = byMinute.size;
      return { requests, minutes, late, pruned, dropped, droppedUnsigned, open, findings: findings.list() };
    },
  };
};
