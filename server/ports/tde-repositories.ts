// What the store keeps of TDE: groups, applications, their callers and token objects. See store.ts.

import type { CompletedStep, RunbookRun } from '../domain/runbook-run.ts';
import type { AccessGuid, Instance, ObjectClass, TdeApplication, TdeGroup, TokenObject } from '../domain/tde.ts';
import type { TenantScope } from '../domain/tenant.ts';
import type { Sound } from '../domain/vault.ts';
import type { Window } from './window.ts';

/**
 * A token object's value, stored next to its sealed content key: nonce, ciphertext, tag. Null for
 * key objects and after destruction.
 */
export interface StoredObject extends TokenObject {
  readonly content: Buffer | null;
  /** When it had another value for the last time. */
  readonly contentReplacedAt: number | null;
  readonly destroyedAt: number | null;
}

export interface StoredAccessGuid extends AccessGuid {
  readonly hash: string;
}

/** A request that made or changed token objects, whose handles these are. */
export interface CarriedOutRequest {
  readonly id: string;
  /**
   * Identifies what was asked for, so that another request under the same id is noticed; in a
   * withdrawn request, says that it was withdrawn.
   */
  readonly fingerprint: string;
  readonly handles: readonly number[];
  readonly at: number;
}

export interface TdeRepositories {
  readonly groups: {
    /** For decisions: throws 'key-tampered' where the row was changed from outside. */
    get(tenant: TenantScope, id: string): Promise<Sound<TdeGroup> | undefined>;
    /**
     * The group as it is stored, for display, memory, repair and purge: a row that was changed from
     * outside is returned, not refused.
     */
    stored(tenant: TenantScope, id: string): Promise<TdeGroup | undefined>;
    findByName(tenantId: string, name: string): Promise<TdeGroup | undefined>;
    list(tenant: TenantScope, window: Window): Promise<readonly TdeGroup[]>;
    insert(group: TdeGroup): Promise<void>;
    update(group: TdeGroup): Promise<void>;
  };
  readonly applications: {
    /** For decisions: throws 'key-tampered' where the row was changed from outside. */
    get(tenant: TenantScope, id: string): Promise<Sound<TdeApplication> | undefined>;
    /**
     * The application as it is stored, for display, memory, repair and purge: a row that was
     * changed from outside is returned, not refused.
     */
    stored(tenant: TenantScope, id: string): Promise<TdeApplication | undefined>;
    findByName(tenantId: string, name: string): Promise<TdeApplication | undefined>;
    findByTokenLabel(tenantId: string, tokenLabel: string): Promise<TdeApplication | undefined>;
    list(
      tenant: TenantScope,
      filter: { readonly groupId?: string | undefined },
      window: Window,
    ): Promise<readonly TdeApplication[]>;
    /** How many the list has, up to `most`. */
    count(tenant: TenantScope, filter: { readonly groupId?: string | undefined }, most: number): Promise<number>;
    insert(application: TdeApplication): Promise<void>;
    update(application: TdeApplication): Promise<void>;
  };
  readonly accessGuids: {
    findByHash(hash: string): Promise<StoredAccessGuid | undefined>;
    /** Newest first. */
    list(applicationId: string): Promise<readonly StoredAccessGuid[]>;
    insert(accessGuid: StoredAccessGuid): Promise<void>;
    update(accessGuid: StoredAccessGuid): Promise<void>;
    /** A use, not a change of policy. */
    touch(id: string, at: number): Promise<void>;
  };
  readonly instances: {
    /** Latest use first. */
    list(applicationId: string): Promise<readonly Instance[]>;
    find(
      instance: Pick<Instance, 'accessGuidId' | 'appId' | 'host' | 'process' | 'osUser'>,
    ): Promise<Instance | undefined>;
    insert(instance: Instance): Promise<void>;
    /**
     * Adds uses; each node counts those that it saw. What was seen last stays. False when the
     * instance was removed.
     */
    addUses(
      id: string,
      seen: Pick<Instance, 'libraryVersion' | 'agentVersion' | 'pid' | 'lastUsedAt' | 'uses'>,
    ): Promise<boolean>;
    /**
     * Removes all of an application but the `keep` with the latest use; answers the removed ones,
     * at most 1000 at a time.
     */
    trim(applicationId: string, keep: number): Promise<readonly Instance[]>;
  };
  readonly objects: {
    /** Live objects of the group and destroyed ones alike. */
    get(handle: number): Promise<StoredObject | undefined>;
    getById(id: string): Promise<StoredObject | undefined>;
    /** Without their content, in no order. */
    listByIds(ids: readonly string[]): Promise<readonly StoredObject[]>;
    /** The id of the newest master key of an application that is a secret key and not destroyed. */
    newestMasterKey(applicationId: string): Promise<string | undefined>;
    /**
     * Objects of the application, live and destroyed, with a handle greater than `after`, ordered
     * by handle.
     */
    listByApplication(applicationId: string, after: number, limit: number): Promise<readonly StoredObject[]>;
    /**
     * Live secret keys that cannot decrypt, by handle, greater than `after`; without their content.
     */
    listWithoutDecryption(after: number, limit: number): Promise<readonly StoredObject[]>;
    /** Live secret and private keys of an application. */
    countKeys(applicationId: string): Promise<number>;
    /** A live secret or private key of this label in another group of the tenant. */
    findElsewhere(tenantId: string, groupId: string, label: string): Promise<StoredObject | undefined>;
    /**
     * Live objects of a group by handle, greater than `after`; without their content, which is null
     * here.
     */
    find(
      filter: {
        readonly groupId: string;
        readonly label?: string | undefined;
        readonly class?: ObjectClass | undefined;
        readonly publicKey?: string | undefined;
        readonly after: number;
      },
      limit: number,
    ): Promise<readonly StoredObject[]>;
    /**
     * The first handle of a live key object of the group that has this label; with `fixed` of one
     * that is not modifiable.
     */
    keyWithLabel(
      groupId: string,
      label: string,
      which: { readonly classes: readonly ObjectClass[]; readonly fixed: boolean },
      exceptHandle?: number,
    ): Promise<number | undefined>;
    /**
     * Live objects of an application whose label an object of the group has: candidates, of which
     * the rules of labels decide.
     */
    labelledAsIn(applicationId: string, groupId: string): Promise<readonly number[]>;
    /** The next handle: stable, positive, below 2^31, never reused. */
    nextHandle(): Promise<number>;
    /**
     * Objects whose values ended since this time, `replaced` or `destroyed`, by that time and
     * handle, those behind `after`; without their content. A key that is destroyed is none.
     */
    listEnded(
      how: 'replaced' | 'destroyed',
      since: number,
      limit: number,
      after?: StoredObject | undefined,
    ): Promise<readonly StoredObject[]>;
    /** For people: how many have a value that ended since this time. */
    countEnded(since: number): Promise<number>;
    insert(object: StoredObject): Promise<void>;
    update(object: StoredObject): Promise<void>;
    /** Overwrites and removes the content, sets the marker. */
    destroy(handle: number, at: number): Promise<void>;
  };
  readonly runbookRuns: {
    insert(run: RunbookRun): Promise<void>;
    /** Sets how, when and by whom it ended. */
    finish(run: RunbookRun): Promise<void>;
    get(id: string): Promise<RunbookRun | undefined>;
    /** Newest first. */
    list(applicationId: string, window: Window): Promise<readonly RunbookRun[]>;
    /** Inserts, or replaces the row of the same step. */
    completeStep(runId: string, completed: CompletedStep): Promise<void>;
    reopenStep(runId: string, step: string): Promise<void>;
  };
  /**
   * What was carried out for database hosts, by who asked and the key of the request: see
   * operations/tde/carry-out-once.ts.
   */
  readonly tdeRequests: {
    /** Throws 'key-tampered' where the row was changed from outside. */
    get(id: string): Promise<CarriedOutRequest | undefined>;
    /** Inserts, or replaces what this unit of work has read. */
    put(request: CarriedOutRequest): Promise<void>;
  };
}
