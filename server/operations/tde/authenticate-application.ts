// Who calls: the access_guid as bearer, the app_id from the URL, the instance from its header; and
// whether the caller may use the application's credentials from its address, with the client
// certificate that its connection has shown. Look-ups go by the hash. A caller whose text never was
// an access_guid learns nothing. One that has a removed access_guid, or one of a disabled
// application, or calls from another network than it may, is told so: this is what the database's
// administrator has to know.

import { createHash } from 'node:crypto';
import { command } from '../../base/command-line.ts';
import { createNetworks, type Networks } from '../../base/networks.ts';
import { ServiceError } from '../../base/service-error.ts';
import { appIdPattern, type TdeApplication } from '../../domain/tde.ts';
import type { Ports } from '../../ports/ports.ts';
import { looksLikeBearer } from '../access/bearer.ts';
import type { CallerFacts, TdeOperations } from './tde-operations.ts';

const body = /-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----/;
/** SHA-256 fingerprint of a PEM certificate, written like X509Certificate.fingerprint256. */
const fingerprintOf = (pem: string): string =>
  (
    createHash('sha256')
      .update(Buffer.from(body.exec(pem)?.[1] ?? '', 'base64'))
      .digest('hex')
      .toUpperCase()
      .match(/../g) ?? []
  ).join(':');

interface Allowed {
  readonly networks: Networks | undefined;
  readonly certificates: ReadonlySet<string> | undefined;
}
const read = ({ callers: { networks, certificates } }: TdeApplication): Allowed => ({
  networks: networks.length === 0 ? undefined : createNetworks(networks),
  certificates: certificates.length === 0 ? undefined : new Set(certificates.map(fingerprintOf)),
});
/** The directory keeps one object for each state of an application. */
const known = new WeakMap<TdeApplication, Allowed>();
const allowedOf = (application: TdeApplication): Allowed => {
  let allowed = known.get(application);
  if (allowed === undefined) {
    allowed = read(application);
    known.set(application, allowed);
  }
  return allowed;
};

/** Throws 'unauthenticated' with the reason 'network' or 'certificate'. */
export const checkCaller = (application: TdeApplication, { peer, certificate }: CallerFacts, now: number): void => {
  const { networks, certificates } = allowedOf(application);
  if (networks !== undefined && !networks.has(peer))
    throw new ServiceError(
      'unauthenticated',
      `the address ${peer ?? '(unknown)'} is not in the allowed networks of the application`,
      {
        hint: `if this host may use it: ${command`dke tde app callers --add-network=${peer ?? 'ADDRESS'} ${application.name}`}`,
        reason: 'network',
      },
    );
  if (certificates === undefined) return;
  const shown = certificate?.() ?? null;
  const refusal = (what: string, hint: string): ServiceError =>
    new ServiceError('unauthenticated', what, { hint, reason: 'certificate' });
  if (shown === null)
    throw refusal(
      'the application requires a client certificate, and the connection has none',
      'set client_certificate and client_key in pkcs11.toml; the service needs tls.client_certificates = true in dke.toml',
    );
  if (!certificates.has(shown.fingerprint))
    throw refusal(
      `the client certificate ${shown.fingerprint} is not one of the application's`,
      `if this host may use it: ${command`dke tde app callers --add-certificate=FILE ${application.name}`}`,
    );
  if (now < shown.beginsAt || now >= shown.endsAt)
    throw refusal(
      'the client certificate is not valid at this time',
      `replace it: ${command`dke tde app callers --add-certificate=FILE ${application.name}`}, then client_certificate and client_key in pkcs11.toml`,
    );
};

type AuthenticatePorts = Pick<Ports, 'store' | 'ring' | 'directory' | 'usage' | 'clock' | 'log' | 'meter'>;

/** A node tries one again after so long, and says once in that time that it failed. */
const renewEveryMs = 60_000;

/**
 * An access_guid that an earlier version issued is checked with a key of the service. The first use
 * proves its value: its row then gets the hash that needs no key, so that it is good on another
 * service, too. No caller waits for it; what fails is done by a use of a minute later.
 */
const renewHashes = ({ store, ring, directory, clock, log, meter }: AuthenticatePorts) => {
  const underWay = new Set<string>();
  /** When each failed last, and when this node last said so. */
  const failedAt = new Map<string, number>();
  let saidAt = Number.NEGATIVE_INFINITY;
  const isRecent = (at: number | undefined): boolean => at !== undefined && clock.monotonic() - at < renewEveryMs;
  const renew = async (accessGuidId: string, former: string, hash: string): Promise<void> => {
    const applicationId = await store.write(async (tx) => {
      const row = await tx.accessGuids.findByHash(former);
      if (row?.id !== accessGuidId || row.integrity !== 'ok') return undefined;
      await tx.accessGuids.update({ ...row, hash });
      return row.applicationId;
    });
    if (applicationId !== undefined) await directory.renew({ applications: [applicationId] });
  };
  return (accessGuidId: string, found: string, accessGuid: string): void => {
    const hash = ring.hashToken('access-guid', accessGuid);
    if (found === hash || underWay.has(accessGuidId)) return;
    if (isRecent(failedAt.get(accessGuidId))) return;
    underWay.add(accessGuidId);
    renew(accessGuidId, found, hash)
      .then(
        () => void failedAt.delete(accessGuidId),
        (error: unknown) => {
          failedAt.set(accessGuidId, clock.monotonic());
          meter.hashNotRenewed();
          if (isRecent(saidAt)) return;
          saidAt = clock.monotonic();
          log.warn('the hash of an access_guid of an earlier version was not renewed: DKE tries again in a minute', {
            error,
          });
        },
      )
      .finally(() => underWay.delete(accessGuidId));
  };
};

export const authenticateApplication = (ports: AuthenticatePorts): TdeOperations['authenticate'] => {
  const { ring, directory, usage, clock } = ports;
  const renewHash = renewHashes(ports);
  return async ({ accessGuid, appId, instance, requestId, peer, certificate }) => {
    const isOne = looksLikeBearer('access-guid', accessGuid) && appIdPattern.test(appId);
    const first = <T>(
      look: (hash: string) => T | undefined,
    ): { readonly at: string; readonly value: T } | undefined => {
      if (!isOne) return undefined;
      const own = ring.hashToken('access-guid', accessGuid);
      const found = look(own);
      if (found !== undefined) return { at: own, value: found };
      // One of an earlier version; or it came here with a snapshot of one, under the key of the
      // service that issued it.
      for (const hash of ring.formerHashes('access-guid', accessGuid)) {
        const answer = look(hash);
        if (answer !== undefined) return { at: hash, value: answer };
      }
      return undefined;
    };
    const found = first((hash) => directory.application(hash));
    if (found === undefined) {
      const former = first((hash) => directory.formerApplication(hash));
      if (former !== undefined) {
        usage.refused('tde', 'removed', { application: former.value, requestId });
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
    const { application, accessGuidId } = found.value;
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
    renewHash(accessGuidId, found.at, accessGuid);
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
};
