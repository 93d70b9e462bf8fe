// Verifies inclusion proofs, as who has a record, its proof and a checkpoint does.

import { nodeHash } from '../../server/base/merkle-tree.ts';

/** RFC 9162 section 2.1.3.2. */
export const verifyInclusion = (
  {
    index,
    size,
    leaf,
    root,
  }: { readonly index: number; readonly size: number; readonly leaf: Uint8Array; readonly root: Uint8Array },
  proof: readonly Uint8Array[],
): boolean => {
  if (!Number.isSafeInteger(index) || index < 0 || index >= size) return false;
  let fn = index;
  let sn = size - 1;
  let hash: Buffer = Buffer.from(leaf);
  for (const step of proof) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      hash = nodeHash(step, hash);
      while (fn % 2 === 0 && fn !== 0) {
        fn /= 2;
        sn = Math.floor(sn / 2);
      }
    } else hash = nodeHash(hash, step);
    fn = Math.floor(fn / 2);
    sn = Math.floor(sn / 2);
  }
  return sn === 0 && hash.equals(root);
};
