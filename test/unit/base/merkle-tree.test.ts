// The tree of the audit log: known roots, and every proof of small trees with everything that must
// not pass by it.

import { describe, expect, test } from 'vitest';
import {
  emptyRoot,
  foldHashes,
  growTree,
  inclusionProof,
  leafHash,
  rootHash,
  type SubtreeHash,
} from '../../../server/base/merkle-tree.ts';
import { verifyInclusion } from '../../support/inclusion.ts';
import fc from '../../support/property.ts';

// The entries that the logs of Certificate Transparency are tested with, and the roots of the first
// n of them.
const entries = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'];
const roots = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];

const treeOf = (leaves: readonly Buffer[]): SubtreeHash => {
  return async (level, position) => {
    const width = 2 ** level;
    const part = leaves.slice(position * width, (position + 1) * width);
    if (part.length !== width) throw new RangeError('not all of these leaves are there');
    return foldHashes(part);
  };
};
const numbered = (count: number): readonly Buffer[] =>
  Array.from({ length: count }, (_, i) => leafHash(Buffer.from(`entry ${i}`)));
const flip = (hash: Buffer): Buffer => {
  const other = Buffer.from(hash);
  other[0] = (other[0] ?? 0) ^ 1;
  return other;
};

describe('roots', () => {
  const leaves = entries.map((hex) => leafHash(Buffer.from(hex, 'hex')));
  test.each(roots.map((root, size) => [size, root] as const))('of %i entries', async (size, root) => {
    expect((await rootHash(treeOf(leaves), size)).toString('hex')).toBe(root);
    const grown = growTree();
    for (const leaf of leaves.slice(0, size)) grown.append(leaf);
    expect(grown.root().toString('hex')).toBe(root);
    expect(grown.size).toBe(size);
  });
  test('a leaf is not the hash of two others', () => {
    const [a, b] = [leafHash(Buffer.of(1)), leafHash(Buffer.of(2))];
    expect(leafHash(Buffer.concat([a, b]))).not.toEqual(foldHashes([a, b]));
    expect(emptyRoot).toHaveLength(32);
  });
});

describe('proofs', () => {
  test('each leaf of each tree up to 40 is proved, and nothing else is by the same proof', async () => {
    for (let size = 1; size <= 40; size++) {
      const leaves = numbered(size);
      const tree = treeOf(leaves);
      const root = await rootHash(tree, size);
      for (let index = 0; index < size; index++) {
        const leaf = leaves[index] as Buffer;
        const proof = await inclusionProof(tree, index, size);
        const claim = { index, size, leaf, root };
        expect(verifyInclusion(claim, proof)).toBe(true);
        expect(verifyInclusion({ ...claim, leaf: flip(leaf) }, proof)).toBe(false);
        expect(verifyInclusion({ ...claim, root: flip(root) }, proof)).toBe(false);
        expect(verifyInclusion({ ...claim, index: size }, proof)).toBe(false);
        if (size > 1) expect(verifyInclusion({ ...claim, index: (index + 1) % size }, proof)).toBe(false);
        for (let at = 0; at < proof.length; at++)
          expect(verifyInclusion(claim, proof.with(at, flip(proof[at] as Buffer)))).toBe(false);
        expect(verifyInclusion(claim, [...proof, root])).toBe(false);
        if (proof.length > 0) expect(verifyInclusion(claim, proof.slice(0, -1))).toBe(false);
      }
    }
  });

  test('trees of any size, grown and asked for, agree', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 3000 }), fc.nat(), async (size, one) => {
        const leaves = numbered(size);
        const tree = treeOf(leaves);
        const grown = growTree();
        for (const leaf of leaves) grown.append(leaf);
        const root = await rootHash(tree, size);
        expect(grown.root()).toEqual(root);
        const index = one % size;
        const leaf = leaves[index] as Buffer;
        expect(verifyInclusion({ index, size, leaf, root }, await inclusionProof(tree, index, size))).toBe(true);
      }),
      { numRuns: 100 },
    );
  });
});
