// What the store keeps of external key stores: endpoints, their requests and what was found out
// about them. See store.ts.

import type { DroppedRequests, RequestHash } from '../base/request-minutes.ts';
import type { Endpoint, EndpointCredential, EndpointDiagnosisRecord } from '../domain/endpoint.ts';
import type { Connection, ExternalKeyStore } from '../domain/external-key-store.ts';
import type { LatencyCounts } from '../domain/latency.ts';
import type { RequestFilter } from '../domain/request-log.ts';
import type { TenantScope } from '../domain/tenant.ts';
import type { Sound } from '../domain/vault.ts';
import type { Window } from './window.ts';
import type { XksRequestRecord } from './xks-directory.ts';

/** What the diagnostics of an endpoint found, and the ids of the requests that they made for it. */
export interface StoredDiagnosis extends EndpointDiagnosisRecord {
  readonly requestIds: readonly string[];
}

/** What an endpoint did in a minute (since the epoch) in one process. */
export interface LatencyMinute {
  readonly endpointId: string;
  readonly minute: number;
  readonly counts: LatencyCounts;
}

export interface XksRepositories {
  readonly endpoints: {
    /** For decisions: throws 'key-tampered' where the row was changed from outside. */
    get(tenant: TenantScope, id: string): Promise<Sound<Endpoint> | undefined>;
    /**
     * The endpoint as it is stored, for display, memory, repair and purge: a row that was changed
     * from outside is returned, not refused.
     */
    stored(tenant: TenantScope, id: string): Promise<Endpoint | undefined>;
    /** Live or deleted: a prefix is never given twice. */
    findByPrefix(prefix: string): Promise<Endpoint | undefined>;
    /** Not deleted, by id. */
    list(tenant: TenantScope, window: Window): Promise<readonly Endpoint[]>;
    /** How many the list has, up to `most`. */
    count(tenant: TenantScope, most: number): Promise<number>;
    /**
     * Whose key this is, deleted ones too, by id, with the time when it was last used through each.
     */
    listByKey(
      tenantId: string,
      keyId: string,
      limit: number,
    ): Promise<readonly (Endpoint & { readonly lastUsedAt: number | null })[]>;
    /** A use of its key, where it is later than the known one. */
    touch(id: string, at: number): Promise<void>;
    insert(endpoint: Endpoint): Promise<void>;
    /** Without its credentials. */
    update(endpoint: Endpoint): Promise<void>;
    insertCredential(tenantId: string, credential: EndpointCredential): Promise<void>;
    removeCredential(id: string): Promise<void>;
    touchCredential(id: string, at: number): Promise<void>;
  };
  readonly externalKeyStores: {
    get(tenant: TenantScope, id: string): Promise<ExternalKeyStore | undefined>;
    findByCloudId(tenantId: string, customKeyStoreId: string, region: string): Promise<ExternalKeyStore | undefined>;
    /** External key stores of the scope, ordered by id. */
    list(tenant: TenantScope, window: Window): Promise<readonly ExternalKeyStore[]>;
    /** External key stores of the endpoint, ordered by id. */
    listByEndpoint(endpointId: string): Promise<readonly ExternalKeyStore[]>;
    insert(store: ExternalKeyStore): Promise<void>;
    /**
     * External key stores that were never checked, or last at `at` or before; the one that has
     * waited longest first.
     */
    listUnseenSince(at: number, limit: number): Promise<readonly ExternalKeyStore[]>;
    /** What was seen, not policy. */
    setConnection(id: string, connection: Connection): Promise<void>;
    /** Records the time of a check that had no result: the previous result stays. */
    setLookedAt(id: string, at: number): Promise<void>;
    remove(id: string): Promise<void>;
  };
  readonly diagnoses: {
    insert(diagnosis: StoredDiagnosis): Promise<void>;
    get(id: string): Promise<StoredDiagnosis | undefined>;
    /** Newest first. */
    list(endpointId: string, window: Window): Promise<readonly StoredDiagnosis[]>;
  };
  readonly latency: {
    /** Adds to what the process has written of these minutes before. */
    add(node: string, minutes: readonly LatencyMinute[]): Promise<void>;
    /** Minutes of all processes, from this one on, in no order. */
    list(endpointIds: readonly string[], from: number): Promise<readonly LatencyMinute[]>;
  };
  readonly requests: {
    append(entries: readonly XksRequestRecord[]): Promise<void>;
    /**
     * Newest first. A page before the end may be short or even empty: only `next` shows the end,
     * where it is null.
     */
    search(
      tenant: TenantScope,
      filter: RequestFilter,
      window: Window,
    ): Promise<{
      readonly items: readonly (XksRequestRecord & { readonly sequence: number })[];
      readonly next: string | null;
    }>;
    /**
     * Oldest first, after this sequence. A sequence is written after every smaller one: nothing
     * comes in between later.
     */
    list(after: number, limit: number): Promise<readonly (XksRequestRecord & { readonly sequence: number })[]>;
    /** The time of the oldest record. */
    oldest(): Promise<number | undefined>;
    /** The newest sequence; 0: there is none. */
    newest(): Promise<number>;
    /**
     * Hashes of the records of a span of time, with sequences up to `through`, ordered by time,
     * then sequence. `after`: the last record of the page before.
     */
    hashesInTime(
      span: { readonly from: number; readonly to: number; readonly through: number },
      after: { readonly at: number; readonly sequence: number } | undefined,
      limit: number,
    ): Promise<readonly RequestHash[]>;
    /**
     * Hashes of the records of a span of sequences (without `after`) whose time is before `before`.
     * In no order.
     */
    hashesOfLate(span: {
      readonly after: number;
      readonly through: number;
      readonly before: number;
    }): Promise<readonly RequestHash[]>;
    /**
     * How many records each space has, of the `limit` records after this sequence; `through` is the
     * last of them.
     */
    countBySpace(
      after: number,
      limit: number,
    ): Promise<{ readonly counts: ReadonlyMap<string, number>; readonly through: number; readonly isEnd: boolean }>;
    /**
     * Deletes, among the `limit` oldest, those of before this time. Answers how many of each space,
     * and the last.
     */
    pruneOld(
      before: number,
      limit: number,
    ): Promise<{
      readonly removed: ReadonlyMap<string, number>;
      readonly through: number;
      readonly gone: readonly { readonly sequence: number; readonly endpointId: string | null }[];
    }>;
    /**
     * Reads `limit` records after this sequence, and deletes the oldest of this space, at most
     * `most`. `through` is the last that was deleted, 0 when there is none; `seen` the last that
     * was read, null at the end.
     */
    pruneSpace(
      space: string,
      after: number,
      most: number,
      limit: number,
    ): Promise<{
      readonly removed: number;
      readonly through: number;
      readonly seen: number | null;
      readonly gone: readonly { readonly sequence: number; readonly endpointId: string | null }[];
    }>;
    /** Adds to what could not be recorded. */
    addDropped(dropped: readonly DroppedRequests[]): Promise<void>;
    /** What could not be recorded up to this minute, and is not in the audit log yet. */
    dropped(throughMinute: number): Promise<readonly DroppedRequests[]>;
    /** Like `dropped`, and removes what it returns. */
    takeDropped(throughMinute: number): Promise<readonly DroppedRequests[]>;
  };
}
