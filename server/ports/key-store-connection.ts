// How the service learns whether an external key store is connected.

import type { CloudSide } from './endpoint-diagnosis.ts';

export interface ConnectionReport {
  readonly state: 'DISCONNECTED' | 'CONNECTING' | 'CONNECTED' | 'FAILED' | 'DISCONNECTING';
  /** ConnectionErrorCode of AWS KMS. */
  readonly errorCode: string | null;
  readonly detail: string | null;
}

export interface KeyStoreConnection {
  /**
   * Plays the cloud's part through the endpoint's public name: health, metadata, encrypt, decrypt,
   * 250 ms for each.
   */
  probe(endpointId: string): Promise<ConnectionReport>;
}

/** How long the cloud waited for the proxy, in milliseconds, over the last quarter of an hour. */
export interface CloudLatency {
  readonly average: number;
  readonly maximum: number;
}

/**
 * An external key store as a tenant has registered it. The cloud answers the service's own identity
 * for any id of the account, and the tenant has chosen the id: what the cloud says counts only if
 * the key store there has the path of the tenant's endpoint, which is random and which the tenant
 * knows.
 */
export interface RegisteredKeyStore {
  readonly customKeyStoreId: string;
  readonly region: string;
  readonly uriPath: string;
}

/**
 * Read access to the cloud itself, where it is configured. A key store with another path is like
 * none.
 */
export interface CloudReader {
  /** What the cloud reports about a custom key store; undefined when it cannot be asked now. */
  describe(store: RegisteredKeyStore): Promise<(ConnectionReport & { readonly configuration: CloudSide }) | undefined>;
  /**
   * XksProxyLatency of a custom key store; undefined when there were no calls, or the cloud cannot
   * be asked.
   */
  latency(store: RegisteredKeyStore): Promise<CloudLatency | undefined>;
}
