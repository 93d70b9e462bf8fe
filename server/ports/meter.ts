// Counts what the data paths do. Every call is a few additions in memory: nothing is allocated for
// what was seen before.

import type { Histogram } from '../domain/metrics.ts';
import type { XksRequestRecord } from './xks-directory.ts';

export interface XksSeries {
  readonly endpointId: string | null;
  readonly operation: string;
  readonly duration: Histogram;
  readonly results: readonly { readonly status: number; readonly errorName: string | null; readonly count: number }[];
  readonly throttled: { readonly rate: number; readonly load: number };
}

export interface TdeSeries {
  readonly operation: string;
  readonly duration: Histogram;
  readonly results: readonly { readonly status: number; readonly count: number }[];
}

/** Requests to the API of one method. */
export interface ApiSeries {
  readonly method: string;
  readonly duration: Histogram;
  readonly results: readonly { readonly route: string; readonly status: number; readonly count: number }[];
}

export const signInResults = ['succeeded', 'failed', 'locked'] as const;
export type SignInResult = (typeof signInResults)[number];

export interface Meter {
  xksRequest(entry: XksRequestRecord): void;
  /** `operation`: a route of the TDE API, or `unknown`. */
  tdeRequest(operation: string, status: number, durationMs: number): void;
  /** `route`: a pattern of the API's paths, or `unknown`. */
  apiRequest(method: string, route: string, status: number, durationMs: number): void;
  signIn(result: SignInResult): void;
  /** The hash of an access_guid of an earlier version could not be written in its new form. */
  hashNotRenewed(): void;
  readonly hashesNotRenewed: () => number;
  readonly xks: () => readonly XksSeries[];
  readonly tde: () => readonly TdeSeries[];
  readonly api: () => readonly ApiSeries[];
  readonly signIns: () => Readonly<Record<SignInResult, number>>;
  /** When a credential last signed a request here. */
  credentialUse(credentialId: string): number | undefined;
  readonly eventLoopDelay: Histogram;
  /** Starts measuring the event loop. */
  start(): void;
  stop(): void;
}

/** A file system that the service writes to; null: it did not answer in time. */
export interface DiskSpace {
  readonly place: 'data' | 'log' | 'access-log' | 'snapshots';
  readonly space: { readonly free: number; readonly size: number } | null;
}

/** The operating system's figures about this process. */
export interface ProcessFacts {
  readonly openFiles: number;
  readonly mostFiles: number;
}

/** A certificate that the listener serves. */
export interface ServedCertificate {
  /** SHA-256 of the certificate; distinguishes it from every other one. */
  readonly fingerprint: string;
  readonly names: readonly string[];
  /** When the server's own certificate becomes valid. */
  readonly beginsAt: number;
  /** The earliest end of its chain. */
  readonly endsAt: number;
}
