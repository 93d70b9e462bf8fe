// Endpoints in memory, with their credentials open in the addon.

import { denyingRule } from '../../domain/authorization-rule.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import type { OwnedRecord } from '../../ports/key-record.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Directory } from '../../ports/working-memory.ts';
import type { XksCredentialView, XksEndpointView, XksUse } from '../../ports/xks-directory.ts';
import { credentialOwner } from '../keys/key-records.ts';
import { createHeldKeys, type HeldKeys } from './held-keys.ts';
import type { ReadChecks } from './read-checks.ts';

interface HeldEndpoint {
  readonly endpoint: Endpoint;
  readonly view: XksEndpointView;
}

interface HeldEndpoints extends Pick<Directory, 'clientAuthorities' | 'onClientAuthorities'> {
  readonly held: ReadonlyMap<string, HeldEndpoint>;
  readonly byPrefix: ReadonlyMap<string, HeldEndpoint>;
  /** The keys of the endpoints that are held. */
  readonly keys: HeldKeys;
  /** The id of the endpoint that has this credential. */
  withCredential(id: string): string | undefined;
  /** With its key, unless that is open. */
  renew(id: string): Promise<void>;
  release(id: string): void;
}

const authoritiesOf = (held: HeldEndpoint | undefined): string | undefined =>
  held?.endpoint.settings.clientCertificate?.authorities;

const viewOf = (
  endpoint: Endpoint,
  credentials: readonly XksCredentialView[],
  use: XksUse,
  stopOf: Directory['stopOf'],
): XksEndpointView => ({
  id: endpoint.id,
  name: endpoint.name,
  prefix: endpoint.prefix,
  tenantId: endpoint.tenantId,
  enabled: endpoint.state === 'enabled',
  get suspended() {
    return stopOf(endpoint.tenantId) !== null;
  },
  settings: endpoint.settings,
  denyingRule: (origin) => denyingRule(endpoint.settings.rules, origin),
  externalKeyId: endpoint.keyId,
  credentials,
  use,
});

export const createHeldEndpoints = (
  ports: Pick<Ports, 'store' | 'core' | 'ring' | 'log'>,
  checks: ReadChecks,
  stopOf: Directory['stopOf'],
  markOf: (endpoint: Endpoint) => XksUse,
): HeldEndpoints => {
  const { store, core, ring, log } = ports;
  const endpoints = new Map<string, HeldEndpoint>();
  const byPrefix = new Map<string, HeldEndpoint>();
  const keys = createHeldKeys(ports, checks, (id) =>
    [...endpoints.values()].some(({ endpoint }) => endpoint.keyId === id),
  );
  let tellAuthorities: () => void = () => undefined;

  const release = (id: string, keep: ReadonlySet<string> = new Set()): void => {
    const held = endpoints.get(id);
    if (held === undefined) return;
    endpoints.delete(id);
    byPrefix.delete(held.endpoint.prefix);
    for (const credential of held.view.credentials) if (!keep.has(credential.id)) core.release(credential.secret);
  };

  /** Undefined, and an alarm, when it cannot be opened. */
  const openSecret = (record: OwnedRecord, endpointId: string): KeyRef | undefined => {
    try {
      return ring.open(record);
    } catch (error) {
      checks.alarm('key_records', record.objectId, record.tenantId);
      log.error('a credential cannot be opened', { endpointId, credentialId: record.objectId, error });
      return undefined;
    }
  };

  /**
   * Opens the secrets of the endpoint's credentials. Secrets that are already open stay open; a
   * credential whose secret cannot be opened is left out.
   */
  const openCredentials = async (
    endpoint: Endpoint,
    before: readonly XksCredentialView[],
  ): Promise<readonly XksCredentialView[]> => {
    const views: XksCredentialView[] = [];
    const opened: KeyRef[] = [];
    try {
      for (const { id, accessKeyId } of endpoint.credentials) {
        const known = before.find((other) => other.id === id);
        if (known !== undefined) {
          views.push(known);
          continue;
        }
        const record = await store.read.records
          .of(credentialOwner(endpoint, { id, accessKeyId }))
          .get(1, 'endpoint-secret');
        if (record === undefined) continue;
        await checks.knowKeks([record]);
        const secret = openSecret(record, endpoint.id);
        if (secret === undefined) continue;
        opened.push(secret);
        views.push({ id, accessKeyId, secret });
      }
      return views;
    } catch (error) {
      for (const secret of opened) core.release(secret);
      throw error;
    }
  };

  const renew = async (id: string): Promise<void> => {
    const endpoint = await store.read.endpoints.stored(everyTenant, id);
    const before = endpoints.get(id);
    const gone = endpoint === undefined || endpoint.state === 'deleted' || stopOf(endpoint.tenantId) === 'deleted';
    if (gone || !checks.sound('endpoints', endpoint)) {
      release(id);
    } else {
      const credentials = await openCredentials(endpoint, before?.view.credentials ?? []);
      release(id, new Set(credentials.map((credential) => credential.id)));
      const held: HeldEndpoint = { endpoint, view: viewOf(endpoint, credentials, markOf(endpoint), stopOf) };
      endpoints.set(id, held);
      byPrefix.set(endpoint.prefix, held);
    }
    if (authoritiesOf(before) !== authoritiesOf(endpoints.get(id))) tellAuthorities();
    const keyId = endpoint?.keyId ?? before?.endpoint.keyId;
    // A key that is open is read again when it changes itself.
    const isOpen = !gone && before?.endpoint.keyId === keyId && keys.held.has(keyId ?? '');
    if (keyId !== undefined && !isOpen) await keys.renew(keyId);
  };

  return {
    held: endpoints,
    byPrefix,
    keys,
    withCredential: (id) =>
      [...endpoints.values()].find(({ view }) => view.credentials.some((credential) => credential.id === id))?.endpoint
        .id,
    renew,
    release: (id) => {
      const before = endpoints.get(id);
      release(id);
      if (authoritiesOf(before) !== undefined) tellAuthorities();
    },
    clientAuthorities: () => [...new Set([...endpoints.values()].flatMap((held) => authoritiesOf(held) ?? []))],
    onClientAuthorities: (tell) => {
      tellAuthorities = tell;
    },
  };
};
