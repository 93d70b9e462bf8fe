// Enables or disables a TDE application. Disabled, none of its access_guids is accepted; its keys
// stay.

import type { TenantActor } from '../../domain/actor.ts';
import type { ApplicationState, TdeApplication } from '../../domain/tde.ts';
import type { Ports } from '../../ports/ports.ts';
import { findApplication } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';

const kinds = { enabled: 'application.enabled', disabled: 'application.disabled' } as const;

export const switchApplication =
  ({ store, directory }: Pick<Ports, 'store' | 'directory'>, state: ApplicationState) =>
  async (actor: TenantActor, id: string): Promise<TdeApplication> => {
    const application = await store.write(async (tx): Promise<TdeApplication> => {
      const before = await findApplication(tx, actor.tenantId, id);
      if (before.state === state) return before;
      const after: TdeApplication = { ...before, state };
      await tx.applications.update(after);
      await recordEvent(tx, kinds[state], actor, about('application', after), { name: after.name });
      return after;
    });
    await directory.renew({ applications: [id] });
    return application;
  };
