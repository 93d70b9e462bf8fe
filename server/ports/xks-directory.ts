// What the XKS front asks of the service on its hot path: synchronous look-ups in an in-memory
// snapshot, no database.

import type { KeyRef } from '../../addon/core.ts';
import type { RequestOrigin } from '../domain/authorization-rule.ts';
import type { EndpointSettings } from '../domain/endpoint.ts';
import type { ExternalKeyRefusal } from '../domain/key-policy.ts';

export interface XksCredentialView {
  readonly id: string;
  readonly accessKeyId: string;
  /** Generic key in the addon that contains the secret access key's characters. */
  readonly secret: KeyRef;
}

/**
 * When the key of an endpoint was last used through it, in milliseconds; 0: not since the service
 * started.
 */
export interface XksUse {
  at: number;
}

export interface XksEndpointView {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly tenantId: string;
  readonly enabled: boolean;
  /** Whether its tenant is: then nothing is answered, whatever the endpoint's own state is. */
  readonly suspended: boolean;
  readonly settings: EndpointSettings;
  /** The name of the rule that denies a request of this origin; undefined when it is allowed. */
  denyingRule(origin: RequestOrigin): string | undefined;
  /** The only external key id this endpoint answers for; case-sensitive. */
  readonly externalKeyId: string;
  readonly credentials: readonly XksCredentialView[];
  /** The front sets it; the same one for as long as the endpoint is there. */
  readonly use: XksUse;
}

export interface XksKeyView {
  readonly id: string;
  readonly enabled: boolean;
  readonly algorithm: string;
  readonly bits: number;
  readonly usages: readonly string[];
  /** Why the key is not used so, now; null when it is. */
  readonly refusals: { readonly [Use in 'encrypt' | 'decrypt']: ExternalKeyRefusal | null };
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
  readonly awsSourceVpc: string | null;
  readonly awsSourceVpce: string | null;
  readonly kmsViaService: string | null;
  readonly externalKeyId: string | null;
  readonly credentialId: string | null;
  readonly status: number;
  readonly errorName: string | null;
  readonly durationMs: number;
  readonly phases: { readonly readMs: number; readonly authMs: number; readonly cryptoMs: number };
  /**
   * For readers of the log: why a signature was refused, which rule refused. The answer does not
   * say it.
   */
  readonly reason: string | null;
  readonly peer: string | null;
}

/** `gone`: the key is unknown. */
export interface FleetMember {
  readonly name: string;
  readonly version: string;
  readonly state: 'active' | 'draining' | 'gone';
}

export interface XksDirectory {
  /** Exact match; undefined when there is no such prefix, or its tenant is deleted. */
  endpoint(prefix: string): XksEndpointView | undefined;
  /**
   * Undefined when the key does not exist for this endpoint, is deleted or destroyed, or its vault
   * is deleted or disabled.
   */
  key(endpoint: XksEndpointView, externalKeyId: string): XksKeyView | undefined;
  /** Live server nodes, at least 1. */
  fleetSize(): number;
  /**
   * The others of the fleet: those that run, and those that ended without a word, as long as they
   * might still use keys.
   */
  otherNodes(): readonly FleetMember[];
  healthy(): boolean;
  /**
   * Never blocks and never throws: a bounded queue; drops are counted. A probe of the service's own
   * is recorded and is not a use.
   */
  record(entry: XksRequestRecord, isOwnProbe?: boolean): void;
}
