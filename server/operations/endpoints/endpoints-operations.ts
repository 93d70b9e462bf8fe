// What can be done with key store endpoints: their settings and credentials, the external key
// stores behind them, their diagnosis.

import type { CheckResult, PlannedCheck } from '../../base/diagnostic-checks.ts';
import type { TenantActor } from '../../domain/actor.ts';
import type { AuthorizationRule, RequestOrigin, RuleDecision } from '../../domain/authorization-rule.ts';
import type { Endpoint, EndpointCredential, EndpointDiagnosisRecord, EndpointSettings } from '../../domain/endpoint.ts';
import type { ExternalKeyStore } from '../../domain/external-key-store.ts';
import type { EffectiveState } from '../../domain/lifecycle.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { DiagnosisRequest } from '../../ports/endpoint-diagnosis.ts';

/**
 * A credential whose secret is shown this once. The caller wipes `secretAccessKey` after it was
 * sent.
 */
export interface IssuedEndpointCredential {
  readonly credential: EndpointCredential;
  /** 64 ASCII characters. */
  readonly secretAccessKey: Buffer;
}

/** What the given rules decide, and what the current rules decide. */
export interface SimulatedDecision extends RuleDecision {
  readonly current: Pick<RuleDecision, 'effect' | 'rule'>;
}

/** An endpoint for people: with what its key can do now. */
export interface ShownEndpoint extends Endpoint {
  readonly keyState: EffectiveState;
}

export interface EndpointOperations {
  /**
   * XksProxyUriEndpoint: where the cloud reaches the service, `https://HOST` or
   * `https://HOST:PORT`.
   */
  uriEndpoint(): string;
  /**
   * `prefix` is made at random when absent; a taken one is 'conflict'. The key must be a live
   * AES-256 key of the vault.
   */
  create(
    actor: TenantActor,
    input: {
      readonly name: string;
      readonly prefix?: string | undefined;
      readonly vaultId: string;
      readonly keyId: string;
      /** Settings that are absent have their defaults. */
      readonly settings?: { readonly [S in keyof EndpointSettings]?: EndpointSettings[S] | undefined } | undefined;
    },
  ): Promise<ShownEndpoint>;
  list(actor: TenantActor, query: PageRequest): Promise<Page<ShownEndpoint>>;
  get(actor: TenantActor, id: string): Promise<ShownEndpoint>;
  enable(actor: TenantActor, id: string): Promise<ShownEndpoint>;
  disable(actor: TenantActor, id: string): Promise<ShownEndpoint>;
  delete(actor: TenantActor, id: string): Promise<ShownEndpoint>;
  /** What rules say to requests: these ones, or the endpoint's own when absent. Changes nothing. */
  simulateRules(
    actor: TenantActor,
    id: string,
    input: { readonly rules?: readonly AuthorizationRule[] | undefined; readonly requests: readonly RequestOrigin[] },
  ): Promise<readonly SimulatedDecision[]>;
  /** Its prefix stays: the cloud notices nothing. */
  rename(actor: TenantActor, id: string, input: { readonly name: string }): Promise<ShownEndpoint>;
  /** Replaces the settings as a whole. Rules or certificates that cannot hold: 'validation'. */
  changeSettings(actor: TenantActor, id: string, settings: EndpointSettings): Promise<ShownEndpoint>;
  /** At most two live: 'conflict'. */
  addCredential(actor: TenantActor, id: string): Promise<IssuedEndpointCredential>;
  removeCredential(actor: TenantActor, id: string, credentialId: string): Promise<ShownEndpoint>;
}

/** What a call does before its answer is shown. */
export type EndpointCall<Name extends 'create' | 'rename' | 'changeSettings' | 'removeCredential'> = (
  ...given: Parameters<EndpointOperations[Name]>
) => Promise<Endpoint>;

export interface ExternalKeyStoreOperations {
  /** One of the cloud's custom key stores, once in each region: 'conflict'. */
  register(
    actor: TenantActor,
    input: {
      readonly name: string;
      readonly customKeyStoreId: string;
      readonly region: string;
      readonly endpointId: string;
    },
  ): Promise<ExternalKeyStore>;
  list(actor: TenantActor, query: PageRequest): Promise<Page<ExternalKeyStore>>;
  get(actor: TenantActor, id: string): Promise<ExternalKeyStore>;
  /** Checks the external key store now. */
  probe(actor: TenantActor, id: string): Promise<ExternalKeyStore>;
  /** Forgets it; nothing changes in the cloud or at the endpoint. */
  remove(actor: TenantActor, id: string): Promise<ExternalKeyStore>;
}

/**
 * What happens in a run: which checks there are, each as it ends, and at last the run as it is
 * kept.
 */
export type DiagnosisEvent =
  | { readonly kind: 'started'; readonly checks: readonly PlannedCheck[] }
  | { readonly kind: 'ended'; readonly result: CheckResult }
  | { readonly kind: 'kept'; readonly diagnosis: EndpointDiagnosisRecord };

export interface DiagnosticsOperations {
  /**
   * Runs every check of the endpoint, from this node and through its public name; takes seconds
   * when something hangs.
   */
  run(actor: TenantActor, endpointId: string, request: DiagnosisRequest): Promise<EndpointDiagnosisRecord>;
  /**
   * Runs the checks as `run` does, and passes each result as it arrives. When the listener has
   * gone, the run still continues and is stored.
   */
  follow(actor: TenantActor, endpointId: string, request: DiagnosisRequest): Promise<AsyncIterable<DiagnosisEvent>>;
  /** Newest first. */
  list(actor: TenantActor, endpointId: string, query: PageRequest): Promise<Page<EndpointDiagnosisRecord>>;
  get(actor: TenantActor, endpointId: string, diagnosisId: string): Promise<EndpointDiagnosisRecord>;
}
