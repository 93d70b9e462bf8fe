// Enables or disables a key. A soft-deleted master key keeps its state: only the refusal of its use
// changes.

import { ServiceError } from '../../base/service-error.ts';
import type { TenantActor } from '../../domain/actor.ts';
import type { Key, ShownKey } from '../../domain/key.ts';
import { nextState } from '../../domain/lifecycle.ts';
import type { Ports } from '../../ports/ports.ts';
import { findKey } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { asShown } from './shown-keys.ts';

const kinds = { enable: 'key.enabled', disable: 'key.disabled' } as const;

export const switchKey =
  ({ store, directory, clock }: Pick<Ports, 'store' | 'directory' | 'clock'>, event: 'enable' | 'disable') =>
  async (actor: TenantActor, id: string): Promise<ShownKey> => {
    const key = await store.write(async (tx): Promise<ShownKey> => {
      const before = await findKey(tx, actor.tenantId, id);
      const state = nextState(before.state, event);
      if (state === null || (before.state === 'soft-deleted' && before.kind === 'general'))
        throw new ServiceError('conflict', `the key is ${before.state}`);
      if ((before.disabledAt !== null) === (event === 'disable')) return asShown(tx, before);
      const after: Key = { ...before, state, disabledAt: event === 'disable' ? clock.now() : null };
      await tx.keys.update(after);
      await recordEvent(tx, kinds[event], actor, about('key', after), { name: after.name });
      return asShown(tx, after);
    });
    await directory.renew({ keys: [id] });
    return key;
  };
