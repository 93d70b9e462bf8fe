// The root of the audit log's tree as the database has it, to be compared with what is known of it
// elsewhere.

import { rootHash } from '../../base/merkle-tree.ts';
import type { Repositories } from '../../ports/store.ts';

/** Null: hashes of the tree are missing. */
export const rootOf = ({ subtree }: Repositories['audit'], size: number): Promise<Buffer | null> =>
  rootHash(subtree, size).catch((error: unknown) => {
    if (error instanceof RangeError) return null;
    throw error;
  });

/** What a finding calls it. */
export const rootHashOf = (size: number): string => `root hash of the first ${size} audit records`;
