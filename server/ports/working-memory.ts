// The service's working memory: what the data planes ask on every request, without touching the
// store. It extends what the XKS front sees by what the TDE path needs. Changes are made in the
// store first and then shown here by `renew`.

import type { DroppedRequests } from '../base/request-minutes.ts';
import type { Changes } from '../domain/changes.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { Key } from '../domain/key.ts';
import type { ObjectClass, TdeApplication } from '../domain/tde.ts';
import type { Tenant } from '../domain/tenant.ts';
import type { Vault } from '../domain/vault.ts';
import type { KeyRef } from './crypto-core.ts';
import type { StoredObject } from './tde-repositories.ts';
import type { XksDirectory, XksRequestRecord } from './xks-directory.ts';

/**
 * A token object with what decides about its use. `key` and `vault` are undefined for objects that
 * are not secret keys.
 */
export interface LoadedObject {
  readonly object: StoredObject;
  readonly key: Key | undefined;
  readonly vault: Vault | undefined;
}

/** The last use of a key through an endpoint. */
export interface EndpointUse {
  readonly endpointId: string;
  readonly keyId: string;
  readonly at: number;
}

/** A token object's key, open in the addon for the length of one step. */
export interface OpenedObject {
  readonly reference: KeyRef;
  readonly loaded: LoadedObject;
}

export interface Directory extends XksDirectory {
  /** Reads only the tenants: enough for people to sign in while no request is served. */
  loadTenants(): Promise<void>;
  /** Reads everything that is kept in memory. Called once, before the listener opens. */
  load(): Promise<void>;
  /** Reads everything again: what has changed is not known. */
  reload(): Promise<void>;
  /**
   * Releases references to what was changed, at once; what is shown otherwise follows with `renew`.
   */
  forget(changes: Changes): void;
  /**
   * Shows a committed change: resolves when no look-up sees the state before it. Key references are
   * released at once.
   */
  renew(changes: Changes): Promise<void>;
  /**
   * Reads again what was refused because its row was changed from outside: with the genuine row, it
   * is used again.
   */
  renewRefused(): Promise<void>;
  /**
   * Increases with every change: what a caller remembers about token objects is valid while this
   * number stays the same.
   */
  epoch(): number;
  /** Undefined when no live access_guid has this hash. */
  application(
    accessGuidHash: string,
  ): { readonly application: TdeApplication; readonly accessGuidId: string } | undefined;
  /** For the hash of a removed access_guid. */
  formerApplication(accessGuidHash: string): TdeApplication | undefined;
  applicationById(id: string): TdeApplication | undefined;
  /** A live key of this label in another group of the tenant (ports/store.ts). */
  findElsewhere(tenantId: string, groupId: string, label: string): Promise<StoredObject | undefined>;
  /**
   * Live objects by handle (ports/store.ts, `objects.find`), without their content. Fewer than
   * `limit` where they are large: `more` counts.
   */
  findObjects(
    filter: {
      readonly groupId: string;
      readonly label?: string | undefined;
      readonly class?: ObjectClass | undefined;
      readonly after: number;
    },
    limit: number,
  ): Promise<{ readonly objects: readonly StoredObject[]; readonly more: boolean }>;
  /** Live objects only. */
  object(handle: number): Promise<LoadedObject | undefined>;
  /**
   * Runs `use` with the keys of these objects, in their order, opened from the application's sealed
   * copies; synchronously, so that no destruction can happen in between. Undefined when one of the
   * keys does not exist. At most two.
   */
  withObjectKeys<T>(
    handles: readonly number[],
    use: (opened: readonly OpenedObject[]) => T,
  ): Promise<{ readonly value: T } | undefined>;
  /** Finds a tenant by id, or by name where the id is unknown; a purged tenant by id only. */
  tenant(idOrName: string): Tenant | undefined;
  defaultTenantId(): string;
  /** Why nothing of the tenant is served now; null: it is. */
  stopOf(tenantId: string): 'suspended' | 'deleted' | null;
  vault(id: string): Vault | undefined;
  /** The endpoints that are not deleted. */
  endpoints(): readonly Endpoint[];
  endpointById(id: string): Endpoint | undefined;
  /** The CA bundles (PEM) of all endpoints that require a client certificate. */
  clientAuthorities(): readonly string[];
  /** Tells, from now on, when that has changed. */
  onClientAuthorities(tell: () => void): void;
  setHealthy(healthy: boolean): void;
  /** Takes the queued request records, at most `limit`. */
  drainRequests(limit: number): readonly XksRequestRecord[];
  /** Puts back what was drained and is certainly not written. */
  putBackRequests(records: readonly XksRequestRecord[]): void;
  /** These could not be recorded. */
  countDropped(records: readonly XksRequestRecord[]): void;
  /** How many could not be recorded, by the minute, and are not written yet. */
  dropped(): readonly DroppedRequests[];
  droppedWritten(dropped: readonly DroppedRequests[]): void;
  /** Takes the last uses of endpoint credentials since the last call. */
  drainCredentialUses(): ReadonlyMap<string, number>;
  /**
   * Uses of keys that were not written yet: `all`, or those of endpoints of which none was for some
   * seconds.
   */
  keyUses(all: boolean): readonly EndpointUse[];
  keyUsesWritten(uses: readonly EndpointUse[]): void;
  /** `dropped`: signed requests that could not be recorded, since the start. */
  requestLog(): { readonly queued: number; readonly dropped: number; readonly droppedUnsigned: number };
  /** The queued records would soon find no place. */
  requestsAreFilling(): boolean;
  /** Releases every key reference. */
  close(): void;
}
