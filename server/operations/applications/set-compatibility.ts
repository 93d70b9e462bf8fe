// Sets the compatibility switches of a TDE application. The service enforces them from the next
// request on; a running process keeps the session keys that it already has.

import { compatibilitySwitches } from '../../base/compatibility-switches.ts';
import type { TdeApplication } from '../../domain/tde.ts';
import type { Ports } from '../../ports/ports.ts';
import { findApplication } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { ApplicationOperations } from './applications-operations.ts';

export const setCompatibility =
  ({ store, directory }: Pick<Ports, 'store' | 'directory'>): ApplicationOperations['setCompatibility'] =>
  async (actor, id, wanted) => {
    const application = await store.write(async (tx): Promise<TdeApplication> => {
      const before = await findApplication(tx, actor.tenantId, id);
      const compatibility = compatibilitySwitches.filter((name) => wanted.includes(name));
      const on = compatibility.filter((name) => !before.compatibility.includes(name));
      const off = before.compatibility.filter((name) => !compatibility.includes(name));
      if (on.length === 0 && off.length === 0) return before;
      const after: TdeApplication = { ...before, compatibility };
      await tx.applications.update(after);
      await recordEvent(tx, 'application.compatibility-changed', actor, about('application', after), {
        name: after.name,
        on,
        off,
      });
      return after;
    });
    await directory.renew({ applications: [id] });
    return application;
  };
