// What the checks of one key store endpoint work on, and what they leave for each other.

import type { X509Certificate } from 'node:crypto';
import {
  type CloudCause,
  type CloudFault,
  cloudCauses,
  exceptionOf,
  faultOfAnswer,
  faultOfConnection,
  wordsOf,
} from '../../base/cloud-causes.ts';
import { type Check, type Finding, failed, warning } from '../../base/diagnostic-checks.ts';
import { LateAnswer } from '../../base/outside.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
import type { ExternalKeyStore } from '../../domain/external-key-store.ts';
import type { Key } from '../../domain/key.ts';
import type { Vault } from '../../domain/vault.ts';
import type { CloudSide } from '../../ports/endpoint-diagnosis.ts';
import type { XksCredentialView, XksRequestRecord } from '../../ports/xks-directory.ts';
import type { ProbeAnswer, Prober } from './probe.ts';

/** What the public name showed at its handshake. */
export interface Handshake {
  readonly protocol: string;
  readonly cipher: string;
  readonly certificate: X509Certificate;
  /** OpenSSL's word for what is wrong with the chain; null when it verifies. */
  readonly fault: string | null;
  /** Issuer of the last certificate that was sent. */
  readonly top: X509Certificate;
}

export interface EndpointContext {
  readonly endpoint: Endpoint;
  readonly key: Key | undefined;
  readonly vault: Vault | undefined;
  /** With their secrets, which stay in the addon. */
  readonly credentials: readonly XksCredentialView[];
  readonly publicUrl: URL;
  /** PEM chain that this node serves. */
  readonly servedCertificate: string;
  /** Networks of the cloud key service, where they are known. */
  readonly cloudRanges: readonly string[];
  /**
   * Signed requests of others in the last hour, newest first, at most 1000: these alone are
   * evidence of what the cloud does.
   */
  readonly recent: readonly XksRequestRecord[];
  /**
   * Requests of others in the last hour without a valid signature, newest first. Anyone can send
   * them: a check fails because of one only where it names an access key id that this endpoint has
   * issued, which the cloud knows and a stranger does not.
   */
  readonly unsigned: readonly XksRequestRecord[];
  /**
   * Requests of the last hour to paths that no endpoint has, newest first, with an access key id
   * that this endpoint has issued.
   */
  readonly astray: readonly XksRequestRecord[];
  /** Access key ids of the credentials of this endpoint that were removed last. */
  readonly removedAccessKeyIds: ReadonlySet<string>;
  readonly lastHealthAt: number | null;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** How far the caller's clock is ahead of this one, in milliseconds; null when it is unknown. */
  readonly callerAheadMs: number | null;
  /** What the cloud side is configured with, as far as it was told. */
  readonly cloud: CloudSide;
  /**
   * Why the cloud tells nothing of the key store that is registered; null: it does, or was not
   * asked.
   */
  readonly cloudDetail: string | null;
  /** External key stores that are registered for the endpoint. */
  readonly keyStores: readonly ExternalKeyStore[];
  readonly prober: Prober;
  addresses?: readonly string[];
  handshake?: Handshake;
  /** Durations of the calls of the round trip through the public name, in milliseconds. */
  latencies?: readonly number[];
}

/** Each says what is so when it fails: people read it in the cloud's worst hour. */
export type EndpointCheck = Check<EndpointContext> & { readonly fault: string };

/** A finding that the cloud key service will meet, with what it then reports. */
export const foretold = (cause: CloudCause, evidence: string, fix: string = cloudCauses[cause].fix): Finding => ({
  ...failed(evidence, fix),
  ...reported(cause),
});

/**
 * What `foretold` predicts, as a warning where the evidence is not authenticated: it may be the
 * cloud's, and hides no other fault.
 */
export const suspected = (cause: CloudCause, evidence: string, fix: string = cloudCauses[cause].fix): Finding => ({
  ...warning(evidence, fix),
  ...reported(cause),
});

/**
 * The cause of an answer that is not 200 to this operation of a request that this service has
 * signed.
 */
export const causeOfAnswer = ({ status, members }: ProbeAnswer, operation: string): CloudCause => {
  const causes = {
    authentication: 'requests-changed',
    path: 'path-changed',
    denied: 'denied',
    'key-not-found': 'wrong-key-id',
    'key-configuration': 'key-disabled',
  } as const satisfies Partial<Record<CloudFault, CloudCause>>;
  const fault = faultOfAnswer(members?.errorName, status, operation);
  if (fault === 'timed-out' || fault === 'dependency-timeout') return 'slow';
  return fault in causes ? causes[fault as keyof typeof causes] : 'another-answers';
};

/**
 * The cause where a check met an error: of the connection, of TLS, or of what an answer contains.
 */
export const causeOfError = (error: unknown): CloudCause => {
  if (error instanceof LateAnswer) return 'slow';
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) return 'answers-changed';
  const fault = faultOfConnection(code);
  return fault === 'tls' ? 'tls-version' : fault === 'response' ? 'another-answers' : 'no-connection';
};

/** What the cloud reports, by operation. */
const reported = (cause: CloudCause): Pick<Finding, 'predicts' | 'reports'> => ({
  predicts: exceptionOf(cause),
  reports: wordsOf(cause),
});

/** Signed requests of the doctor come without a certificate. */
export const wantsCertificate = ({ endpoint }: EndpointContext): boolean =>
  endpoint.settings.clientCertificate !== null;
