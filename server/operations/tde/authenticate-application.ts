// Who calls: the access_guid as bearer, the app_id from the URL, the instance from its header. One answer for every reason
// to refuse; look-ups go by the keyed hash.

import { ServiceError } from '../../base/errors.ts';
import { appIdPattern } from '../../domain/tde.ts';
import type { Ports } from '../../ports/ports.ts';
import { looksLikeBearer } from '../bearer.ts';
import type { TdeOperations } from '../index.ts';

export const authenticateApplication =
  ({ ring, directory, usage }: Pick<Ports, 'ring' | 'directory' | 'usage'>): TdeOperations['authenticate'] =>
  async ({ accessGuid, appId, instance, requestId, peer }) => {
    const found =
      looksLikeBearer('access-guid', accessGuid) && appIdPattern.test(appId)
        ? directory.application(ring.hashToken('access-guid', accessGuid))
        : undefined;
    if (found === undefined || found.application.state !== 'enabled') {
      usage.refused('tde', found === undefined ? 'unknown' : 'disabled');
      throw new ServiceError('unauthenticated', 'the access token does not hold', {
        hint: 'check access_token and server_url in pkcs11.toml, and that the application is enabled',
      });
    }
    const { application, accessGuidId } = found;
    await usage.seen(
      {
        application,
        accessGuidId,
        appId,
        host: instance.host,
        process: instance.process,
        osUser: instance.osUser,
        library: instance.library,
        agent: instance.agent,
        pid: instance.pid,
      },
      requestId,
      peer,
    );
    return {
      actor: { kind: 'application', id: application.id, name: application.name, requestId, peer },
      application,
      accessGuidId,
      appId,
      instance,
    };
  };
