// Plays the cloud's part for an external key store: what ConnectCustomKeyStore and a use of a KMS
// key would meet, through the public name of the endpoint, in the cloud's time. The outcome is told
// in the cloud's words (ConnectionErrorCode of AWS KMS).

import { type CloudFault, cloudCauses, cloudFaults, faultOfAnswer } from '../../base/cloud-causes.ts';
import { complaintOfHealth, complaintOfMetadata, hasNoKeyManager } from '../../base/xks-answers.ts';
import { xksProxyUriPath } from '../../domain/endpoint.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { ConnectionReport, KeyStoreConnection } from '../../ports/key-store-connection.ts';
import type { Ports } from '../../ports/ports.ts';
import { causeOfError } from './context.ts';
import { diagnosticMetadata, openProber, type ProbeAnswer, type ProberOptions } from './probe.ts';

/** What AWS KMS gives a proxy for one call, connection and handshake included. */
const budgetMs = 250;

const ofKeys: ReadonlySet<CloudFault> = new Set(['key-not-found', 'key-configuration', 'ciphertext']);
/** Paths below the store's. */
const pathOf = {
  GetHealthStatus: '/health',
  GetKeyMetadata: '/keys/id/metadata',
  Encrypt: '/keys/id/encrypt',
  Decrypt: '/keys/id/decrypt',
} as const;

const complaintOf = (operation: keyof typeof pathOf, members: ProbeAnswer['members']): string | undefined => {
  if (operation === 'GetHealthStatus') return complaintOfHealth(members);
  if (operation === 'GetKeyMetadata') return complaintOfMetadata(members);
  return members === undefined ? 'it is not a JSON object' : undefined;
};

/** A pause of this host's own is not a fault of the connection: the cloud tries again too. */
const attempts = 2;

/**
 * The cloud connects by GetHealthStatus. What a key or a ciphertext has is met by its users,
 * and has no ConnectionErrorCode.
 */
const failed = (fault: CloudFault, detail: string, ofKey = false): ConnectionReport => ({
  state: 'FAILED',
  errorCode: ofKey ? null : cloudFaults[fault].connect,
  detail: ofKey ? `${detail}: the cloud can connect, and reports ${cloudFaults[fault].use} when a key is used` : detail,
});
const disconnected = (detail: string): ConnectionReport => ({ state: 'DISCONNECTED', errorCode: null, detail });

export const createKeyStoreProbe = (
  { store, directory, clock, identity }: Pick<Ports, 'store' | 'directory' | 'clock' | 'identity'>,
  options: Pick<ProberOptions, 'crypto' | 'trust' | 'marks'> & { readonly node: () => ProberOptions['node'] },
): KeyStoreConnection => {
  const once = async (endpointId: string): Promise<ConnectionReport> => {
    const endpoint = await store.read.endpoints.stored(everyTenant, endpointId);
    if (endpoint === undefined || endpoint.state === 'deleted') return disconnected('its endpoint is deleted');
    if (endpoint.state === 'disabled') return disconnected('its endpoint is disabled');
    const stopped = directory.stopOf(endpoint.tenantId);
    if (stopped !== null) return disconnected(`its tenant is ${stopped}`);
    const [credential] = directory.endpoint(endpoint.prefix)?.credentials ?? [];
    if (credential === undefined) return disconnected('its endpoint has no credential');
    if (endpoint.settings.clientCertificate !== null)
      return disconnected('its endpoint requires a client certificate, which only the cloud has: it cannot be probed');
    const prober = openProber({
      crypto: options.crypto,
      publicUrl: new URL(identity.publicUrl()),
      node: options.node(),
      uriPath: xksProxyUriPath(endpoint.prefix),
      trust: options.trust,
      marks: options.marks,
      now: () => clock.now(),
    });
    const key = `/keys/${endpoint.keyId}`;
    const cipher = { encryptionAlgorithm: 'AES_GCM' };
    const post = async (target: string, members: object): Promise<ProbeAnswer> =>
      prober.post('public', target, { requestMetadata: diagnosticMetadata(), ...members }, credential);
    try {
      let sealed: ProbeAnswer['members'] = {};
      const steps: readonly (readonly [keyof typeof pathOf, () => Promise<ProbeAnswer>])[] = [
        ['GetHealthStatus', () => post('/health', {})],
        ['GetKeyMetadata', () => post(`${key}/metadata`, {})],
        ['Encrypt', () => post(`${key}/encrypt`, { ...cipher, plaintext: 'AAAA' })],
        ['Decrypt', () => post(`${key}/decrypt`, { ...cipher, ...sealed })],
      ];
      for (const [operation, run] of steps) {
        const answer = await run();
        const name = String(answer.members?.errorName ?? 'without errorName');
        // The endpoint's own rules say no to this probe; what they say to the cloud is theirs.
        if (name === 'AccessDeniedException') break;
        if (answer.status !== 200) {
          const fault = faultOfAnswer(answer.members?.errorName, answer.status, pathOf[operation]);
          return failed(fault, `${operation} answers ${answer.status} ${name}`, ofKeys.has(fault));
        }
        const complaint = complaintOf(operation, answer.members);
        if (complaint !== undefined) return failed('response', `the answer to ${operation} is malformed: ${complaint}`);
        if (operation === 'GetHealthStatus' && hasNoKeyManager(answer.members ?? {}))
          return failed('no-key-manager', 'GetHealthStatus says that the key cannot be used');
        if (answer.durationMs > budgetMs)
          return failed('timed-out', `${operation} took ${answer.durationMs.toFixed(0)} ms`);
        if (operation === 'Encrypt') sealed = answer.members;
      }
      return { state: 'CONNECTED', errorCode: null, detail: null };
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return failed(cloudCauses[causeOfError(error)].fault, code ?? message);
    } finally {
      prober.close();
    }
  };
  return {
    probe: async (endpointId) => {
      let report = await once(endpointId);
      for (let attempt = 1; attempt < attempts && report.errorCode === 'XKS_PROXY_TIMED_OUT'; attempt += 1)
        report = await once(endpointId);
      return report;
    },
  };
};
