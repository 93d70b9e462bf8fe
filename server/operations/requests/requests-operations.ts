// What can be done with the request log of the key store endpoints.

import type { RequestLogVerdict } from '../../base/request-minutes.ts';
import type { TenantActor } from '../../domain/actor.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { RequestFilter } from '../../domain/request-log.ts';
import type { XksRequestRecord } from '../../ports/xks-directory.ts';

export type LoggedRequest = XksRequestRecord & { readonly sequence: number };

/** Page by page, newest first. */
export type RequestPages = AsyncIterable<readonly LoggedRequest[]>;

/** The request log of the key store endpoints. */
export interface RequestOperations {
  /**
   * Newest first. A page may be short before the end, even empty: `next` tells. Endpoints that were
   * deleted have theirs too.
   */
  search(actor: TenantActor, filter: RequestFilter & PageRequest): Promise<Page<LoggedRequest>>;
  /** Audited. Records are read as the caller takes them: at most one page is in memory. */
  export(actor: TenantActor, filter: RequestFilter, format: 'ndjson' | 'csv'): Promise<RequestPages>;
  /**
   * The records of the calls that a CloudTrail event tells of: its text as it was copied, whatever
   * stands around it, or a bare request id. 'validation' when there is no request id in it.
   */
  correlate(actor: TenantActor, text: string): Promise<CorrelatedRequests>;
  /**
   * Compares the log with the hashes of its minutes in the audit log; the last hour when no time is
   * given. Of every tenant.
   */
  verify(
    actor: TenantActor,
    span: { readonly from?: number | undefined; readonly to?: number | undefined },
  ): Promise<RequestLogVerdict>;
}

export interface CorrelatedRequests {
  /** What was looked for. */
  readonly kmsRequestIds: readonly string[];
  /** Newest first; at most 1000. */
  readonly items: readonly LoggedRequest[];
  /** The time of the oldest record that the log still has; null: it has none. */
  readonly oldest: number | null;
}
