// Plays the cloud's part for an external key store: what ConnectCustomKeyStore and a use of a KMS key would meet, through the public
// name of the endpoint, in the cloud's time. The outcome is told in the cloud's words (ConnectionErrorCode of AWS KMS).

import { xksProxyUriPath } from '../domain/endpoint.ts';
import { everyTenant } from '../domain/tenant.ts';
import type { ConnectionReport, KeyStoreConnection } from '../ports/key-store-connection.ts';
import type { Ports } from '../ports/ports.ts';
import { diagnosticMetadata, openProber, type ProbeAnswer, type ProberOptions } from './endpoint/probe.ts';

/** What AWS KMS gives a proxy for one call, connection and handshake included. */
const budgetMs = 250;
/** A pause of this host's own is not a fault of the connection: the cloud tries again too. */
const attempts = 2;

const tlsCode = /^(CERT_|ERR_TLS|ERR_SSL|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_MISMATCH|INVALID_CA|EPROTO)/;
const errorCodes: Readonly<Record<number, string>> = {
  401: 'INVALID_CREDENTIALS',
  403: 'XKS_PROXY_ACCESS_DENIED',
  404: 'XKS_PROXY_INVALID_CONFIGURATION',
  429: 'XKS_PROXY_NOT_REACHABLE',
  503: 'XKS_PROXY_TIMED_OUT',
};

const failed = (errorCode: string, detail: string): ConnectionReport => ({ state: 'FAILED', errorCode, detail });
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
      const steps: readonly (readonly [string, () => Promise<ProbeAnswer>])[] = [
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
        if (answer.status !== 200)
          return failed(
            errorCodes[answer.status] ?? 'XKS_PROXY_INVALID_RESPONSE',
            `${operation} answers ${answer.status} ${name}`,
          );
        if (answer.members === undefined)
          return failed('XKS_PROXY_INVALID_RESPONSE', `${operation} does not answer with JSON`);
        if (answer.durationMs > budgetMs)
          return failed('XKS_PROXY_TIMED_OUT', `${operation} took ${answer.durationMs.toFixed(0)} ms`);
        if (operation === 'Encrypt') sealed = answer.members;
      }
      return { state: 'CONNECTED', errorCode: null, detail: null };
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException;
      return failed(
        tlsCode.test(code) ? 'XKS_PROXY_INVALID_TLS_CONFIGURATION' : 'XKS_PROXY_NOT_REACHABLE',
        code || message,
      );
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
