// Registers a TDE application: one per database is the recommendation. Its first access_guid is
// shown in the answer.

import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { anyCaller, appIdPattern, type TdeApplication } from '../../domain/tde.ts';
import type { Ports } from '../../ports/ports.ts';
import { findGroup } from '../shared/find.ts';
import { checkName } from '../shared/names.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { ApplicationOperations } from './applications-operations.ts';
import { issueAccessGuid } from './issue-access-guid.ts';

export const registerApplication =
  (
    ports: Pick<Ports, 'store' | 'core' | 'ring' | 'directory' | 'clock' | 'identity'>,
  ): ApplicationOperations['register'] =>
  async (actor, { name, groupId, appId }) => {
    checkName(name);
    const chosen = appId ?? (appIdPattern.test(name) ? name : 'default');
    if (!appIdPattern.test(chosen))
      throw new ServiceError('validation', 'an app_id has 1 to 64 letters, digits, dots, hyphens and underscores');
    const { store, directory, clock } = ports;
    const answer = await store.write(async (tx) => {
      const group = await findGroup(tx, actor.tenantId, groupId);
      if ((await tx.applications.findByName(group.tenantId, name)) !== undefined)
        throw new ServiceError('conflict', 'an application with this name already exists');
      const labelled = await tx.applications.findByTokenLabel(group.tenantId, name);
      if (labelled !== undefined)
        throw new ServiceError('conflict', `the token of the application ${labelled.name} has this label`, {
          hint: 'choose another name: the first name of an application stays the label of its token',
        });
      const now = clock.now();
      const application: TdeApplication = {
        id: newId(now),
        tenantId: group.tenantId,
        groupId,
        name,
        appId: chosen,
        tokenLabel: name,
        state: 'enabled',
        compatibility: [],
        callers: anyCaller,
        createdAt: now,
        integrity: 'ok',
      };
      await tx.applications.insert(application);
      await recordEvent(tx, 'application.registered', actor, about('application', application), {
        name,
        groupId,
        appId: chosen,
      });
      return { application, ...(await issueAccessGuid(ports, tx, actor, application)) };
    });
    await directory.renew({ applications: [answer.application.id] });
    return answer;
  };
