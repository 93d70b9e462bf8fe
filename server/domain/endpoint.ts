// Key store endpoints: what a cloud key service calls under /xks/<prefix>.

import type { CheckResult } from '../base/diagnostic-checks.ts';
import type { AuthorizationRule } from './authorization-rule.ts';
import type { Integrity } from './vault.ts';

export type EndpointState = 'enabled' | 'disabled' | 'deleted';

export interface EndpointCredential {
  readonly id: string;
  readonly endpointId: string;
  /** 20 characters of A-Z2-7. */
  readonly accessKeyId: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
}

export interface EndpointSettings {
  /** Whether operators may request health without a signature. */
  readonly operatorProbes: boolean;
  /**
   * What an endpoint takes at most: so many requests a second, and so many at once after a pause.
   * Null: no limit.
   */
  readonly rate: { readonly perSecond: number; readonly burst: number } | null;
  /**
   * Mutual TLS: who calls shows a certificate of one of these authorities (PEM) with this common
   * name. Null: not asked for.
   */
  readonly clientCertificate: { readonly authorities: string; readonly commonName: string } | null;
  readonly rules: readonly AuthorizationRule[];
}

export const defaultSettings: EndpointSettings = {
  operatorProbes: true,
  rate: null,
  clientCertificate: null,
  rules: [],
};

export interface Endpoint {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  readonly prefix: string;
  readonly vaultId: string;
  readonly keyId: string;
  readonly state: EndpointState;
  readonly settings: EndpointSettings;
  readonly createdAt: number;
  /** At most two: the old and the new one of a rotation. */
  readonly credentials: readonly EndpointCredential[];
  readonly integrity: Integrity;
}

/** One run of the diagnostics of an endpoint. */
export interface EndpointDiagnosisRecord {
  readonly id: string;
  readonly endpointId: string;
  readonly at: number;
  /** In the order in which one thing rests on another: the first that failed is where to begin. */
  readonly results: readonly CheckResult[];
}

/** One path segment; the whole path /xks/<prefix>/kms/xks/v1 stays below 128 characters. */
export const prefixPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** The path that the cloud key service is given. */
export const xksProxyUriPath = (prefix: string): string => `/xks/${prefix}/kms/xks/v1`;
