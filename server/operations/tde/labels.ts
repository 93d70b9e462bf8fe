// A label names one key of a group: databases select by nothing else. Which objects rival for a label, and whether one is free.

import { ServiceError } from '../../base/errors.ts';
import type { ObjectClass } from '../../domain/tde.ts';
import type { Repositories, StoredObject } from '../../ports/store.ts';

/**
 * The classes whose labels a new label must not repeat. A secret key's is its alone, because databases select by nothing
 * else; the halves of a pair share theirs.
 */
const rivals = {
  'secret-key': ['secret-key', 'public-key', 'private-key'],
  'public-key': ['secret-key', 'public-key'],
  'private-key': ['secret-key', 'private-key'],
  certificate: [],
  data: [],
} as const satisfies Record<ObjectClass, readonly ObjectClass[]>;

/** Whether an object may have this label. No label is no name: any number of keys have none. */
export const isFreeLabel = async (
  tx: Repositories,
  object: Pick<StoredObject, 'groupId' | 'label' | 'class'>,
  handle?: number,
): Promise<boolean> => {
  const classes = rivals[object.class];
  if (classes.length === 0 || object.label === '') return true;
  return !(await tx.objects.keyLabelExists(object.groupId, object.label, classes, handle));
};

export const requireFreeLabel = async (
  tx: Repositories,
  object: Pick<StoredObject, 'groupId' | 'label' | 'class'>,
): Promise<void> => {
  if (!(await isFreeLabel(tx, object)))
    throw new ServiceError('label-exists', 'a key of the group has this label', {
      hint: 'a label is unique among the keys of a group; it is free again when its key is destroyed',
    });
};
