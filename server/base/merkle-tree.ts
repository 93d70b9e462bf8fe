// The Merkle tree of RFC 9162 section 2.1 over SHA-256: roots and inclusion proofs. Who keeps the
// hashes is not known here: a tree is asked for the hash of one of its perfect subtrees at a time.
// Leaves are numbered from 0. Hashes are 32 bytes.

import { hash as digest } from 'node:crypto';

const sha256 = (...parts: readonly Uint8Array[]): Buffer => digest('sha256', Buffer.concat(parts), 'buffer');

const leafPrefix = Buffer.of(0);
const nodePrefix = Buffer.of(1);

/** The hash of a leaf. `entry`: the bytes of one entry. */
export const leafHash = (entry: Uint8Array): Buffer => sha256(leafPrefix, entry);
export const nodeHash = (left: Uint8Array, right: Uint8Array): Buffer => sha256(nodePrefix, left, right);
/** The root of a tree without leaves. */
export const emptyRoot: Buffer = sha256();

/**
 * The root of a perfect subtree: 2^level leaves, the first of which is number `position` * 2^level.
 */
export type SubtreeHash = (level: number, position: number) => Promise<Buffer>;

/**
 * The root of a perfect subtree from the hashes of a level below it. Their number is a power of
 * two.
 */
export const foldHashes = (hashes: readonly Uint8Array[]): Buffer => {
  let level = hashes;
  while (level.length > 1) {
    const above: Buffer[] = [];
    for (let i = 0; i + 1 < level.length; i += 2)
      above.push(nodeHash(level[i] as Uint8Array, level[i + 1] as Uint8Array));
    if (level.length % 2 === 1) throw new RangeError('not the hashes of a perfect subtree');
    level = above;
  }
  const [root] = level;
  if (root === undefined) throw new RangeError('a subtree has leaves');
  return Buffer.from(root);
};

/** The largest power of two below `count`, which is at least 2. Counts may exceed 2^32. */
const split = (count: number): number => {
  let power = 1;
  while (power * 2 < count) power *= 2;
  return power;
};

/**
 * The hash of the leaves from `start` up to `end`; `start` is a multiple of the largest power of
 * two in their number.
 */
const rangeHash = async (subtree: SubtreeHash, start: number, end: number): Promise<Buffer> => {
  const count = end - start;
  if (count === 1) return subtree(0, start);
  const left = split(count);
  if (left * 2 === count) return subtree(Math.log2(count), start / count);
  return nodeHash(await rangeHash(subtree, start, start + left), await rangeHash(subtree, start + left, end));
};

export const rootHash = async (subtree: SubtreeHash, size: number): Promise<Buffer> =>
  size === 0 ? emptyRoot : rangeHash(subtree, 0, size);

/** RFC 9162 section 2.1.3.1: from the leaf's sibling up. */
export const inclusionProof = async (subtree: SubtreeHash, index: number, size: number): Promise<readonly Buffer[]> => {
  if (index < 0 || index >= size) throw new RangeError('the tree has no such leaf');
  const path = async (start: number, end: number): Promise<Buffer[]> => {
    if (end - start === 1) return [];
    const middle = start + split(end - start);
    return index < middle
      ? [...(await path(start, middle)), await rangeHash(subtree, middle, end)]
      : [...(await path(middle, end)), await rangeHash(subtree, start, middle)];
  };
  return path(0, size);
};

/** The root that a leaf and its inclusion proof lead to. */
export const rootOfInclusion = (leaf: Uint8Array, index: number, size: number, path: readonly Buffer[]): Buffer => {
  const climb = (start: number, end: number, above: number): Buffer => {
    if (end - start === 1) return Buffer.from(leaf);
    const middle = start + split(end - start);
    const other = path[above];
    if (other === undefined) throw new RangeError('the proof is too short');
    return index < middle
      ? nodeHash(climb(start, middle, above - 1), other)
      : nodeHash(other, climb(middle, end, above - 1));
  };
  return climb(0, size, path.length - 1);
};

/**
 * The perfect subtrees that together are the leaves from `start` up to `end`, in their order: as
 * few as there can be.
 */
export const coverRange = (
  start: number,
  end: number,
): readonly { readonly level: number; readonly position: number }[] => {
  const found: { level: number; position: number }[] = [];
  for (let at = start; at < end; ) {
    let level = 0;
    while (at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= end) level += 1;
    found.push({ level, position: at / 2 ** level });
    at += 2 ** level;
  }
  return found;
};

/** A tree that only grows, in a few hashes: what a reader of a whole log keeps. */
export interface GrowingTree {
  readonly size: number;
  append(leaf: Uint8Array): void;
  /**
   * The root of a perfect subtree whose leaves are not known: 2^level of them. Throws RangeError
   * where none can begin.
   */
  appendSubtree(level: number, hash: Uint8Array): void;
  root(): Buffer;
}

export const growTree = (): GrowingTree => {
  /** Roots of perfect subtrees, largest first; the sizes are the binary digits of `size`. */
  const edge: { readonly leaves: number; readonly hash: Buffer }[] = [];
  let size = 0;
  const add = (leaves: number, hash: Uint8Array): void => {
    let last: { readonly leaves: number; readonly hash: Buffer } = { leaves, hash: Buffer.from(hash) };
    for (let left = edge.at(-1); left?.leaves === last.leaves; left = edge.at(-1)) {
      edge.pop();
      last = { leaves: last.leaves * 2, hash: nodeHash(left.hash, last.hash) };
    }
    edge.push(last);
    size += leaves;
  };
  return {
    get size() {
      return size;
    },
    append: (leaf) => add(1, leaf),
    appendSubtree: (level, hash) => {
      if (!Number.isInteger(level) || level < 0 || level > 52 || hash.length !== 32 || size % 2 ** level !== 0)
        throw new RangeError('no subtree of this height begins here');
      add(2 ** level, hash);
    },
    root: () => {
      let root: Buffer | undefined;
      for (const { hash } of edge.toReversed()) root = root === undefined ? hash : nodeHash(hash, root);
      return root ?? emptyRoot;
    },
  };
};
