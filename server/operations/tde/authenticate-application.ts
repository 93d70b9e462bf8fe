// Who calls: the access_guid as bearer, the app_id from the URL, the instance from its header. Look-ups go by the keyed hash. A caller
// whose text never was an access_guid learns nothing. One that has a removed access_guid, or one of a disabled application, or calls from
// another network than it may, is told so: this is what the database's administrator has to know.

import { ServiceError } from '../../base/errors.ts';
import { appIdPattern } from '../../domain/tde.ts';
import type { Ports } from '../../ports/ports.ts';
import { looksLikeBearer } from '../access/bearer.ts';
import { checkCaller } from './check-caller.ts';
import type { TdeOperations } from './interface.ts';

export const authenticateApplication =
  ({
    ring,
    directory,
    usage,
    clock,
  }: Pick<Ports, 'ring' | 'directory' | 'usage' | 'clock'>): TdeOperations['authenticate'] =>
  async ({ accessGuid, appId, instance, requestId, peer, certificate }) => {
    // One that came here with a snapshot is kept under the key of the service that issued it.
    const hashes =
      looksLikeBearer('access-guid', accessGuid) && appIdPattern.test(appId)
        ? [ring.hashToken('access-guid', accessGuid), ...ring.formerHashes('access-guid', accessGuid)]
        : [];
    const first = <T>(look: (hash: string) => T | undefined): T | undefined => {
      for (const hash of hashes) {
        const answer = look(hash);
        if (answer !== undefined) return answer;
      }
      return undefined;
    };
    const found = first((hash) => directory.application(hash));
    if (found === undefined) {
      const former = first((hash) => directory.formerApplication(hash));
      if (former !== undefined) {
        usage.refused('tde', 'removed', { application: former, requestId });
        throw new ServiceError('unauthenticated', 'the access token was removed', {
          hint: 'put the new access_guid into server_url and access_token of pkcs11.toml',
          reason: 'removed',
        });
      }
      usage.refused('tde', 'unknown');
      throw new ServiceError('unauthenticated', 'the access token is not valid', {
        hint: 'check access_token and server_url in pkcs11.toml; dke tde app rotate-guid APP issues another access_guid',
        reason: 'unknown',
      });
    }
    const { application, accessGuidId } = found;
    const stopped = directory.stopOf(application.tenantId);
    if (stopped !== null) {
      usage.refused('tde', `tenant ${stopped}`, { application, requestId });
      throw new ServiceError('unauthenticated', `the tenant of the application is ${stopped}`, {
        hint:
          stopped === 'suspended'
            ? 'ask a platform operator to resume the tenant'
            : 'ask a platform operator to restore the tenant',
        reason: 'disabled',
      });
    }
    if (application.state !== 'enabled') {
      usage.refused('tde', 'disabled', { application, requestId });
      throw new ServiceError('unauthenticated', 'the application is disabled', {
        hint: 'enable the application: dke tde app enable',
        reason: 'disabled',
      });
    }
    try {
      checkCaller(application, { peer, certificate }, clock.now());
    } catch (error) {
      if (error instanceof ServiceError) usage.refused('tde', error.reason ?? error.code, { application, requestId });
      throw error;
    }
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
