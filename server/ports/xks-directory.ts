// What the XKS front asks of the service on its hot path: synchronous look-ups in an in-memory snapshot, no database.

import type { KeyRef } from '../../addon/core.ts';

export interface XksCredentialView {
  readonly id: string;
  readonly accessKeyId: string;
  /** Generic key in the addon that holds the secret access key's characters. */
  readonly secret: KeyRef;
}

export interface XksEndpointView {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly tenantId: string;
  readonly enabled: boolean;
  readonly operatorProbes: boolean;
  /** The only external key id this endpoint answers for; case-sensitive. */
  readonly externalKeyId: string;
  readonly credentials: readonly XksCredentialView[];
}

export interface XksKeyView {
  readonly id: string;
  readonly enabled: boolean;
  readonly algorithm: string;
  readonly bits: number;
  readonly usages: readonly string[];
  readonly currentVersion: number;
  readonly versions: ReadonlyMap<number, KeyRef>;
  /** Tenant id and key id as bytes: bound into every ciphertext's derivation. */
  readonly binding: Uint8Array;
}

export interface XksRequestRecord {
  readonly at: number;
  readonly requestId: string;
  readonly endpointId: string | null;
  readonly operation: string;
  readonly kmsOperation: string | null;
  readonly kmsRequestId: string | null;
  readonly principal: string | null;
  readonly kmsKeyArn: string | null;
  readonly externalKeyId: string | null;
  readonly credentialId: string | null;
  readonly status: number;
  readonly errorName: string | null;
  readonly durationMs: number;
  readonly phases: { readonly readMs: number; readonly authMs: number; readonly cryptoMs: number };
  readonly peer: string | null;
}

export interface XksDirectory {
  /** Exact match; undefined when there is no such prefix. */
  endpoint(prefix: string): XksEndpointView | undefined;
  /** Undefined when the key does not exist for this endpoint, is deleted or destroyed, or its vault is deleted or disabled. */
  key(endpoint: XksEndpointView, externalKeyId: string): XksKeyView | undefined;
  /** Live server nodes, at least 1. */
  fleetSize(): number;
  healthy(): boolean;
  /** Never blocks and never throws: a bounded queue; drops are counted. */
  record(entry: XksRequestRecord): void;
}
