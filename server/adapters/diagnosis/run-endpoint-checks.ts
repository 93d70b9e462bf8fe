// Runs the checks of one key store endpoint, from this node and through its public name, in the
// order in which one thing rests on another: the first line that fails is where to begin. Each
// check is a file of its own.

import { rootCertificates } from 'node:tls';
import { runChecks } from '../../base/diagnostic-checks.ts';
import { diagnosticsOperation, type ProbeMarks } from '../../base/probe-mark.ts';
import { refusalReasons } from '../../base/refusal-reasons.ts';
import type { SignerCrypto } from '../../base/sigv4-signer.ts';
import { type Endpoint, xksProxyUriPath } from '../../domain/endpoint.ts';
import type { RequestFilter } from '../../domain/request-log.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import type { EndpointDiagnosis } from '../../ports/endpoint-diagnosis.ts';
import type { CloudReader } from '../../ports/key-store-connection.ts';
import type { Ports } from '../../ports/ports.ts';
import { callerSignatures } from './checks/caller-signatures.ts';
import { clock as clockCheck } from './checks/clock-skew.ts';
import { cloudConfiguration } from './checks/cloud-configuration.ts';
import { cloudLatency } from './checks/cloud-latency.ts';
import { cloudRanges } from './checks/cloud-ranges.ts';
import { credentialAge } from './checks/credential-age.ts';
import { credentialsSign } from './checks/credentials-sign.ts';
import { dnsResolves } from './checks/dns-resolves.ts';
import { endpointEnabled } from './checks/endpoint-enabled.ts';
import { healthStatus } from './checks/health-status.ts';
import { keepAlive } from './checks/keep-alive.ts';
import { keyAskedFor } from './checks/key-asked-for.ts';
import { keyEnabled } from './checks/key-enabled.ts';
import { keyFound } from './checks/key-found.ts';
import { keyKind } from './checks/key-kind.ts';
import { lastCalls } from './checks/last-calls.ts';
import { latency } from './checks/latency.ts';
import { nodeListens } from './checks/node-listens.ts';
import { portOpen } from './checks/port-open.ts';
import { publicHealth } from './checks/public-health.ts';
import { recentErrors } from './checks/recent-errors.ts';
import { recentLatency } from './checks/recent-latency.ts';
import { roundTrip } from './checks/round-trip.ts';
import { storeStatus } from './checks/store-status.ts';
import { tlsChain } from './checks/tls-chain.ts';
import { tlsExpiry } from './checks/tls-expiry.ts';
import { tlsHandshake } from './checks/tls-handshake.ts';
import { tlsName } from './checks/tls-name.ts';
import { tlsServed } from './checks/tls-served.ts';
import { vaultEnabled } from './checks/vault-enabled.ts';
import { wrongCredential } from './checks/wrong-credential.ts';
import { causeOfError, type EndpointCheck, type EndpointContext, foretold } from './context.ts';
import { openProber } from './probe.ts';

const hour = 3_600_000;
const mostRecent = 1000;
/** Credentials that were removed lately. */
const mostRemoved = 100;

/** `trust`: PEM certificates of authorities that the cloud key service trusts. */
const checksOf = (trust: readonly string[], cloud: CloudReader | undefined): readonly EndpointCheck[] => [
  endpointEnabled,
  cloudConfiguration,
  vaultEnabled,
  keyFound,
  keyKind,
  keyEnabled,
  keyAskedFor,
  clockCheck,
  nodeListens,
  dnsResolves,
  portOpen,
  tlsHandshake(trust),
  tlsExpiry,
  tlsName,
  tlsChain,
  tlsServed,
  publicHealth,
  keepAlive,
  healthStatus('node'),
  healthStatus('public'),
  credentialsSign,
  wrongCredential,
  callerSignatures,
  credentialAge,
  roundTrip('node'),
  roundTrip('public'),
  latency,
  cloudRanges,
  storeStatus,
  cloudLatency(cloud),
  lastCalls,
  recentLatency,
  recentErrors,
];

export interface EndpointDiagnosisOptions {
  readonly crypto: SignerCrypto<KeyRef>;
  readonly marks: ProbeMarks;
  /** Where this node listens. */
  readonly node: () => { readonly host: string; readonly port: number };
  /** PEM chain that it serves. */
  readonly servedCertificate: () => Promise<string>;
  /** More authorities than the public ones. */
  readonly trustedAuthorities: readonly string[];
  readonly cloudNetworks: readonly string[];
}

export const createEndpointDiagnosis = (
  { store, directory, clock, identity, cloud }: Pick<Ports, 'store' | 'directory' | 'clock' | 'identity' | 'cloud'>,
  options: EndpointDiagnosisOptions,
): EndpointDiagnosis => {
  const trust = [...rootCertificates, ...options.trustedAuthorities];
  // What a check did not expect is what the cloud will meet.
  const checks = checksOf(trust, cloud).map((check) => ({
    ...check,
    run: async (context: EndpointContext) => {
      try {
        return await check.run(context);
      } catch (error) {
        return foretold(causeOfError(error), error instanceof Error ? error.message : String(error));
      }
    },
  }));
  const removedAccessKeyIds = async ({ id, tenantId }: Endpoint): Promise<ReadonlySet<string>> => {
    const filter = { kind: 'endpoint.credential-removed', subjectId: id, order: 'newest' } as const;
    const removals = await store.read.audit.list(tenantId, filter, { limit: mostRemoved });
    return new Set(removals.map(({ details }) => String(details.accessKeyId)));
  };
  return {
    run: async (endpointId, request, ownRequests, watch) => {
      const endpoint = await store.read.endpoints.stored(everyTenant, endpointId);
      if (endpoint === undefined) throw new Error('there is no such endpoint');
      const { tenantId } = endpoint;
      const now = clock.now();
      /** What one search finds: that is enough, and takes a bounded time. */
      const requestsOf = async (filter: RequestFilter) =>
        (await store.read.requests.search(tenantId, { endpointId, ...filter }, { limit: mostRecent })).items.filter(
          (entry) => entry.kmsOperation !== diagnosticsOperation && !ownRequests.has(entry.requestId),
        );
      const from = now - hour;
      const removed = await removedAccessKeyIds(endpoint);
      const credentials = directory.endpoint(endpoint.prefix)?.credentials ?? [];
      const issued = new Set([...removed, ...credentials.map(({ accessKeyId }) => accessKeyId)]);
      const strays = await store.read.requests.search(everyTenant, { endpointId: null, from }, { limit: mostRecent });
      const [lastHealth] = await requestsOf({ signed: true, operation: 'health' });
      const keyStores = await store.read.externalKeyStores.listByEndpoint(endpointId);
      const [keyStore] = keyStores;
      const uriPath = xksProxyUriPath(endpoint.prefix);
      const told = keyStore === undefined ? undefined : await cloud?.describe({ ...keyStore, uriPath });
      const publicUrl = new URL(identity.publicUrl());
      const prober = openProber({
        crypto: options.crypto,
        publicUrl,
        node: options.node(),
        uriPath,
        trust,
        marks: options.marks,
        now: () => clock.now(),
      });
      const context: EndpointContext = {
        endpoint,
        key: await store.read.keys.stored(tenantId, endpoint.keyId),
        vault: await store.read.vaults.stored(tenantId, endpoint.vaultId),
        credentials,
        publicUrl,
        servedCertificate: await options.servedCertificate(),
        cloudRanges: options.cloudNetworks,
        recent: await requestsOf({ signed: true, from }),
        unsigned: await requestsOf({ signed: false, from }),
        astray: strays.items.filter(({ reason, requestId }) => {
          const named = reason?.startsWith(refusalReasons.unknownPath) === true && reason.split(' ').at(-1);
          return named !== false && issued.has(named ?? '') && !ownRequests.has(requestId);
        }),
        removedAccessKeyIds: removed,
        lastHealthAt: lastHealth?.at ?? null,
        now: () => clock.now(),
        callerAheadMs: request.callerTime === null ? null : request.callerTime - now,
        cloud: { ...told?.configuration, ...request.cloud },
        cloudDetail: told?.detail ?? null,
        keyStores,
        prober,
      };
      try {
        return { results: await runChecks(checks, context, watch), requestIds: prober.requestIds() };
      } finally {
        prober.close();
      }
    },
  };
};
