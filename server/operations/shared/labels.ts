// Labels of keys. A database selects its master key by the label and nothing else, so a master key
// shares its label with no other key of the group. Other keys may share one: the halves of a pair
// do, and programs keep the old and the new key under one label when they rotate.

import { isMasterKeyLabel, isUnreadableMasterKey } from '../../base/master-keys.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { ObjectClass, TdeApplication } from '../../domain/tde.ts';
import type { Repositories } from '../../ports/store.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';
import { nameFromLabel } from './names.ts';

type Labelled = Pick<StoredObject, 'groupId' | 'label' | 'class' | 'modifiable'>;

const keyClasses: readonly ObjectClass[] = ['secret-key', 'public-key', 'private-key'];
const hasMasterKeyLabel = (label: string): boolean => isMasterKeyLabel(Buffer.from(label, 'base64'));

/**
 * Databases make their master keys so that nothing about them can be changed; Oracle's have labels
 * of a form of their own.
 */
const isMasterKey = (object: Labelled): boolean =>
  object.class === 'secret-key' && (!object.modifiable || hasMasterKeyLabel(object.label));

/**
 * The handle of the key because of which an object may not have its label. An absent label is not a
 * name: any number of keys have none.
 */
export const takerOfLabel = async (
  tx: Repositories,
  object: Labelled,
  handle?: number,
): Promise<number | undefined> => {
  const { groupId, label } = object;
  if (!keyClasses.includes(object.class) || label === '') return undefined;
  if (isMasterKey(object))
    return tx.objects.keyWithLabel(groupId, label, { classes: keyClasses, fixed: false }, handle);
  const fixed = !hasMasterKeyLabel(label);
  return tx.objects.keyWithLabel(groupId, label, { classes: ['secret-key'], fixed }, handle);
};

/**
 * Throws 'label-exists', which says what has the label, when the object may not have it. `handle`:
 * of the object, if it has one.
 */
export const requireFreeLabel = async (
  tx: Repositories,
  { application }: { readonly application: Pick<TdeApplication, 'id'> },
  object: Labelled,
  handle?: number,
): Promise<void> => {
  const taker = await takerOfLabel(tx, object, handle);
  if (taker === undefined) return;
  const other = await tx.objects.get(taker);
  const whose = other?.applicationId === application.id ? 'this application' : 'another application of the group';
  const what = `the ${other?.class.replace('-', ' ') ?? 'key'} with handle ${taker} of ${whose}`;
  throw new ServiceError('label-exists', `the label ${nameFromLabel(object.label)} is already used by ${what}`, {
    hint: 'the label of a master key must be unique in its group; it becomes free when its key is destroyed',
  });
};

/**
 * Throws 'validation' for a master key under which nothing could be read, however it came to be.
 */
export const requireReadable = (object: Parameters<typeof isUnreadableMasterKey>[0]): void => {
  if (isUnreadableMasterKey(object))
    throw new ServiceError('validation', `the master key ${nameFromLabel(object.label)} must be able to decrypt`, {
      hint: 'what it encrypts could never be read: its usages must contain decrypt',
    });
};
