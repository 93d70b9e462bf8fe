// External key stores: the cloud's side of an endpoint, known here by its custom key store id, with
// what is known of its connection.

import type { Integrity } from './vault.ts';

/** In the words of AWS KMS. */
export type ConnectionState = 'DISCONNECTED' | 'CONNECTING' | 'CONNECTED' | 'FAILED' | 'DISCONNECTING';

export interface Connection {
  readonly state: ConnectionState;
  /** ConnectionErrorCode of AWS KMS; null unless the state is FAILED. */
  readonly errorCode: string | null;
  /** What was seen, for people. */
  readonly detail: string | null;
  /**
   * Who said so: a probe of this service that plays the cloud's part, or the cloud itself. Null
   * before the first look.
   */
  readonly source: 'probe' | 'cloud' | null;
  /** Since when the state is what it is. */
  readonly since: number | null;
  readonly checkedAt: number | null;
}

export interface ExternalKeyStore {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  /** `cks-...`, given by the cloud. */
  readonly customKeyStoreId: string;
  /** The cloud's region, for example eu-central-1. */
  readonly region: string;
  readonly endpointId: string;
  readonly createdAt: number;
  readonly connection: Connection;
  readonly integrity: Integrity;
}

export const neverLooked: Connection = {
  state: 'DISCONNECTED',
  errorCode: null,
  detail: null,
  source: null,
  since: null,
  checkedAt: null,
};
