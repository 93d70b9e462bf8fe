// How the service learns whether an external key store is connected.

import type { CloudSide } from './endpoint-diagnosis.ts';

export interface ConnectionReport {
  readonly state: 'DISCONNECTED' | 'CONNECTING' | 'CONNECTED' | 'FAILED' | 'DISCONNECTING';
  /** ConnectionErrorCode of AWS KMS. */
  readonly errorCode: string | null;
  readonly detail: string | null;
}

export interface KeyStoreConnection {
  /** Plays the cloud's part through the endpoint's public name: health, metadata, encrypt, decrypt, 250 ms for each. */
  probe(endpointId: string): Promise<ConnectionReport>;
}

/** How long the cloud waited for the proxy, in milliseconds, over the last quarter of an hour. */
export interface CloudLatency {
  readonly average: number;
  readonly maximum: number;
}

/** Read access to the cloud itself, where it is configured. */
export interface CloudReader {
  /** What the cloud reports about a custom key store; undefined when it cannot be asked now. */
  describe(store: {
    readonly customKeyStoreId: string;
    readonly region: string;
  }): Promise<(ConnectionReport & { readonly configuration: CloudSide }) | undefined>;
  /** XksProxyLatency of a custom key store; undefined when there were no calls, or the cloud cannot be asked. */
  latency(store: { readonly customKeyStoreId: string; readonly region: string }): Promise<CloudLatency | undefined>;
}
