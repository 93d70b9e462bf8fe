// Checks an export of the audit log offline: with the verifier key alone, no service, no store, in
// the memory of one line. Leaves out who the verifier key belongs to: the person who runs this has
// kept it.

import { canonicalJson } from '../../base/bytes.ts';
import {
  type Checkpoint,
  parseCheckpoint,
  parseVerifierKey,
  publicKeyOf,
  type Verifier,
  verifierKey,
  verifyNote,
} from '../../base/checkpoint.ts';
import { growTree, leafHash } from '../../base/merkle-tree.ts';

export interface AuditVerdict {
  readonly records: number;
  /**
   * Records of which the file has hashes alone: those of other tenants, where it is one tenant's
   * part.
   */
  readonly hidden: number;
  /**
   * The tenant whose part the file says that it is, by the record of its export; null: the whole
   * log.
   */
  readonly part: string | null;
  /**
   * Hidden records behind the record of the export: those of the moment until the checkpoint. Many:
   * ask for a newer export.
   */
  readonly hiddenAfter: number;
  readonly checkpoints: number;
  /** Records that the newest good checkpoint covers. */
  readonly signed: number;
  /** What is wrong, in the order of the file; empty: nothing is. */
  readonly findings: readonly string[];
}
export interface CheckedAuditLog extends AuditVerdict {
  /**
   * Public halves of the keys that signed it: that of the verifier key, and those that a rotation
   * has named.
   */
  readonly keys: readonly Buffer[];
}

const largestList = 20;

/**
 * The key id of the first signature of a note, in hexadecimal digits; empty when it is not signed.
 */
const firstSigner = (note: string): string => {
  const [, encoded = ''] = /\n\n\u2014 \S+ (\S+)\n/.exec(note) ?? [];
  return Buffer.from(encoded, 'base64').subarray(0, 4).toString('hex');
};
const named = (name: string, key: Buffer): Verifier | null => parseVerifierKey(verifierKey(name, key));

/**
 * Which keys may have signed the checkpoints of a file. The verifier key is one of them. A
 * checkpoint that ends the use of a key names the next one and is signed with both: so a reader
 * that has either key accepts the other one, each for its own part of the log.
 */
const followKeys = (expected: Verifier) => {
  let current = expected;
  /** Whether a checkpoint was signed with it: before that, the file may come from a former key. */
  let seen = false;
  /** Keys that no rotation has explained yet, by key id: the first line that each has signed. */
  const former = new Map<string, number>();
  const rotations: string[] = [];
  const trusted: Buffer[] = [publicKeyOf(expected)];

  /** The key before `next`, and those before it. */
  const explain = (name: string, next: Buffer, key: Buffer): void => {
    const verifier = named(name, key);
    if (verifier === null || trusted.some((each) => each.equals(key))) return;
    trusted.push(key);
    former.delete(verifier.keyId.toString('hex'));
    for (const note of rotations) {
      const rotation = verifyNote(note, verifier)?.rotation;
      if (rotation?.next.equals(key) === true && !rotation.former.equals(next)) explain(name, key, rotation.former);
    }
  };
  return {
    trusted: (): readonly Buffer[] => trusted,
    /**
     * Its checkpoint; 'former' when another key may have signed it that a later checkpoint has to
     * name; null when it is not signed.
     */
    check: (note: string, name: string, line: number): Checkpoint | 'former' | null => {
      const verifier = name === current.name ? current : named(name, publicKeyOf(current));
      const checkpoint = verifier === null ? null : verifyNote(note, verifier);
      if (checkpoint === null) {
        const signer = firstSigner(note);
        if (seen || verifier === null || signer === verifier.keyId.toString('hex')) return null;
        if (!former.has(signer)) former.set(signer, line);
        if (parseCheckpoint(note)?.rotation !== undefined) rotations.push(note);
        return 'former';
      }
      seen = true;
      const { rotation } = checkpoint;
      if (rotation === undefined) return checkpoint;
      const own = publicKeyOf(current);
      if (rotation.next.equals(own)) explain(name, own, rotation.former);
      else if (rotation.former.equals(own)) {
        const next = named(name, rotation.next);
        // The next key signs too: it is not named by a signer that does not have it.
        if (next === null || verifyNote(note, next) === null) return null;
        current = next;
        trusted.push(rotation.next);
      }
      return checkpoint;
    },
    unexplained: (): readonly number[] => [...former.values()],
  };
};

/**
 * Notices that a file is of another log than the one of the verifier key: each name has records of
 * its own.
 */
const watchName = (expected: Verifier) => {
  let other: string | undefined;
  let isSameKey = true;
  let accepted: { readonly at: string; readonly by: string } | undefined;
  return {
    isOther: () => other !== undefined,
    /** A service that accepts another database continues with its key under a new name. */
    name: (name: string): void => {
      if (name !== expected.name) other = name;
    },
    unsigned: () => {
      isSameKey = false;
    },
    read: ({ kind, at, actorName }: Readonly<Record<string, unknown>>) => {
      if (kind === 'audit-log.accepted') accepted = { at: String(at), by: String(actorName) };
    },
    finding: (): readonly string[] => {
      if (other === undefined) return [];
      const when = accepted === undefined ? '' : `, accepted at ${accepted.at} by ${accepted.by}`;
      const key = isSameKey ? 'the same key' : 'another key';
      return [`another log, ${other}${when}, with ${key}: give --key the verifierKey that dke audit log shows`];
    },
  };
};

const parse = (line: string): Readonly<Record<string, unknown>> | null => {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value) && canonicalJson(value) === line
      ? (value as Readonly<Record<string, unknown>>)
      : null;
  } catch {
    return null;
  }
};

/**
 * Whether the file says itself that it has one tenant's part: in the record of its export, by the
 * number of the tenant's records until then. Without that, hidden records are records that were
 * left out.
 */
const watchPart = () => {
  const tenants = new Set<unknown>();
  let shown = 0;
  let declared: { readonly tenantId: string; readonly hidden: number } | undefined;
  return {
    /** Answers what is wrong with it. */
    read: (record: Readonly<Record<string, unknown>>, hidden: number): string | undefined => {
      const { kind, tenantId, details } = record;
      shown += 1;
      tenants.add(tenantId);
      // The export's own record counts what it is part of.
      const counted = (details as { readonly records?: unknown } | undefined)?.records;
      if (kind !== 'audit-log.exported' || typeof counted !== 'number' || hidden === 0) return undefined;
      declared = { tenantId: String(tenantId), hidden };
      return counted === shown
        ? undefined
        : `the tenant had ${counted} records when this was exported, but the file has ${shown}`;
    },
    end: (hidden: number) => {
      const part = tenants.size === 1 ? declared : undefined;
      return {
        part: part?.tenantId ?? null,
        hiddenAfter: part === undefined ? 0 : hidden - part.hidden,
        finding:
          hidden === 0 || part !== undefined
            ? undefined
            : `${hidden} of the records are hidden, and the file does not say that it is one tenant's part: ask for the whole export`,
      };
    },
  };
};

/**
 * `lines` are those of `GET /api/audit/export`. `known` are checkpoints that were kept elsewhere:
 * they show what was cut off at the end, which a log alone cannot.
 */
export const verifyAuditLog = async (
  lines: AsyncIterable<string>,
  verifier: Verifier,
  known: readonly Checkpoint[] = [],
  /** Given each record, in the order of the file. */
  read: (record: Readonly<Record<string, unknown>>) => void = () => undefined,
): Promise<CheckedAuditLog> => {
  const tree = growTree();
  const names = watchName(verifier);
  const keys = followKeys(verifier);
  const parts = watchPart();
  const findings: string[] = [];
  let more = 0;
  const find = (text: string): void => {
    if (findings.length < largestList) findings.push(text);
    else more += 1;
  };
  const due = [...known].sort((a, b) => a.size - b.size);
  let checkpoints = 0;
  let signed = 0;
  let sound = true;
  let sequence = 0;
  let hidden = 0;
  let number = 0;

  const compare = (checkpoint: Checkpoint, whose: string): void => {
    if (!sound) return;
    if (tree.root().equals(checkpoint.root)) signed = Math.max(signed, checkpoint.size);
    else {
      // Everything after a difference differs: one finding tells it.
      sound = false;
      find(`records ${signed + 1} to ${checkpoint.size} are not those that ${whose} signed`);
    }
  };
  const compareKnown = (): void => {
    while (due[0] !== undefined && due[0].size <= tree.size) {
      const checkpoint = due.shift();
      if (checkpoint?.size === tree.size) compare(checkpoint, 'the stored checkpoint');
    }
  };

  compareKnown();
  for await (const line of lines) {
    number += 1;
    const value = parse(line);
    const { checkpoint: note, sequence: given, hidden: subtrees, log } = value ?? {};
    if (value === null) {
      find(`line ${number} is not a line of an export: it was changed or truncated`);
      // A line that cannot be read represents a record all the same: the next ones keep their
      // places.
      sequence += 1;
      tree.append(leafHash(Buffer.from(line, 'utf8')));
    } else if (typeof log === 'string' && given === undefined) {
      // The first line of a sink's file.
      names.name(log);
    } else if (Array.isArray(subtrees)) {
      try {
        for (const [level, hash] of subtrees as readonly (readonly [number, string])[])
          tree.appendSubtree(level, Buffer.from(hash, 'base64'));
      } catch {
        find(`line ${number}: the hashes do not fit the records here: the line was changed or moved`);
      }
      hidden += tree.size - sequence;
      sequence = tree.size;
    } else if (typeof note === 'string') {
      checkpoints += 1;
      const read = parseCheckpoint(note);
      const origin = read?.origin ?? verifier.name;
      names.name(origin);
      const signed = keys.check(note, origin, number);
      const checkpoint = signed === 'former' ? read : signed;
      if (checkpoint === null && origin !== verifier.name) names.unsigned();
      else if (checkpoint === null) find(`line ${number}: the checkpoint is not signed with this key`);
      else if (checkpoint.size !== tree.size)
        find(`line ${number}: a checkpoint of ${checkpoint.size} records follows record ${tree.size}`);
      else compare(checkpoint, 'the checkpoint after them');
    } else {
      if (given !== sequence + 1)
        find(`line ${number}: record ${String(given)} is in the place of record ${sequence + 1}`);
      read(value);
      names.read(value);
      const miscounted = parts.read(value, hidden);
      if (miscounted !== undefined) find(`line ${number}: ${miscounted}`);
      sequence = typeof given === 'number' && Number.isSafeInteger(given) ? given : sequence + 1;
      tree.append(leafHash(Buffer.from(line, 'utf8')));
      compareKnown();
    }
  }
  for (const line of keys.unexplained())
    if (names.isOther()) names.unsigned();
    else find(`line ${line}: the checkpoint is not signed with this key, nor with one that a rotation names`);
  const missing = due.at(-1);
  if (missing !== undefined)
    find(`the end is missing: the file has ${tree.size} records, but the stored checkpoint covers ${missing.size}`);
  if (tree.size === 0 && checkpoints === 0) find('the file is empty');
  else if (sound && signed < tree.size && !names.isOther())
    find(`records ${signed + 1} to ${tree.size} are not covered by a checkpoint: an export ends with one`);
  const { finding: undeclared, ...part } = parts.end(hidden);
  if (undeclared !== undefined) find(undeclared);
  if (more > 0) findings.push(`and ${more} more`);
  findings.unshift(...names.finding());
  return { records: tree.size - hidden, hidden, ...part, checkpoints, signed, findings, keys: keys.trusted() };
};
