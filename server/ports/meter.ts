// Counts what the data paths do. Every call is a few additions in memory: nothing is allocated for what was seen before.

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

export interface Meter {
  xksRequest(entry: XksRequestRecord): void;
  /** `operation`: a route of the TDE API, or `unknown`. */
  tdeRequest(operation: string, status: number, durationMs: number): void;
  readonly xks: () => readonly XksSeries[];
  readonly tde: () => readonly TdeSeries[];
  /** When a credential last signed a request here. */
  credentialUse(credentialId: string): number | undefined;
  readonly eventLoopDelay: Histogram;
  /** Begins to look at the event loop. */
  start(): void;
  stop(): void;
}

/** What the operating system says of this process. */
export interface ProcessFacts {
  readonly openFiles: number;
  readonly mostFiles: number;
}

/** A certificate that the listener serves. */
export interface ServedCertificate {
  readonly names: readonly string[];
  /** Of the server's own certificate. */
  readonly beginsAt: number;
  /** The earliest end of its chain. */
  readonly endsAt: number;
}
