// What people write on a key: its name and its tags. A master key's name is its label, which
// belongs to its database; it has tags all the same.

import { ServiceError } from '../../base/service-error.ts';
import { checkTags } from '../../base/tags.ts';
import type { Key, ShownKey } from '../../domain/key.ts';
import type { Ports } from '../../ports/ports.ts';
import { findKey } from '../shared/find.ts';
import { checkName } from '../shared/names.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { KeyOperations } from './keys-operations.ts';
import { asShown } from './shown-keys.ts';

export const changeKey =
  ({ store, directory }: Pick<Ports, 'store' | 'directory'>): KeyOperations['change'] =>
  async (actor, id, input) => {
    const tags = checkTags(input.tags);
    const key = await store.write(async (tx): Promise<ShownKey> => {
      const before = await findKey(tx, actor.tenantId, id);
      const isRenamed = input.name !== before.name;
      if (!isRenamed && tags.join() === before.tags.join()) return asShown(tx, before);
      if (before.state === 'destroyed') throw new ServiceError('conflict', 'the key is destroyed');
      if (isRenamed && before.kind === 'master')
        throw new ServiceError('conflict', 'the name of a master key is its label, which its database sets');
      const after: Key = { ...before, name: isRenamed ? checkName(input.name) : before.name, tags };
      await tx.keys.update(after);
      await recordEvent(tx, 'key.changed', actor, about('key', after), {
        name: after.name,
        ...(isRenamed ? { from: before.name } : {}),
        tags: after.tags,
        tagsBefore: before.tags,
      });
      return asShown(tx, after);
    });
    await directory.renew({ keys: [id] });
    return key;
  };
