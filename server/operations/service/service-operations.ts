// What the service says about itself, and what an operator decides for it.

import type { Actor, TenantActor } from '../../domain/actor.ts';
import type { Difference } from '../../domain/difference.ts';
import type { LatencySummary } from '../../domain/latency.ts';
import type { ConfirmedStep, Setup } from '../../domain/setup.ts';
import type { DeadlineState } from '../../ports/deadlines.ts';
import type { ErasureState } from '../../ports/erasure.ts';

export interface ServiceSettings {
  /** The file; null: there is none. */
  readonly source: string | null;
  readonly items: readonly {
    readonly name: string;
    readonly value: string | null;
    readonly origin: 'file' | 'default';
  }[];
}

export interface SetupOperations {
  get(): Promise<Setup>;
  /** Records that a person accepts the risk of a step that is not done, or withdraws it. */
  confirm(actor: Actor, step: ConfirmedStep, confirmed: boolean): Promise<Setup>;
}

export interface OverviewOperations {
  /** Oldest first; of all endpoints when none is named. */
  latency(
    actor: TenantActor,
    query: { readonly endpointId?: string | undefined; readonly span: 'hour' | 'day' },
  ): Promise<readonly (LatencySummary & { readonly at: number })[]>;
}

/**
 * `clock`: of this host, compared with those of the other nodes and of the database. `disk`: of the
 * data directory. `database`: settings of its server with which it may lose what it confirms.
 */
export const healthChecks = ['store', 'root-key', 'round-trip', 'clock', 'disk', 'database'] as const;
export type HealthCheckName = (typeof healthChecks)[number];

export interface HealthCheck {
  readonly name: HealthCheckName;
  readonly healthy: boolean;
  readonly detail: string;
  readonly durationMs: number;
}

export interface Health {
  readonly healthy: boolean;
  /** Keys can be used, though perhaps nothing can be changed. */
  readonly usable: boolean;
  readonly at: number;
  readonly checks: readonly HealthCheck[];
}

/** The state of the service. */
export interface ServiceStatus {
  readonly version: string;
  readonly nodeVersion: string;
  readonly libcryptoVersion: string;
  readonly startedAt: number;
  readonly rootEpoch: number;
  readonly erasure: ErasureState & {
    readonly fileSystem: string;
    readonly overwritesInPlace: boolean;
    /**
     * Destroyed keys that no run has covered, and those that wait for copies (domain/copies.ts).
     */
    readonly pendingKeys: number;
    readonly waitingKeys: number;
    /** Token objects with values that were replaced or destroyed and that no run has covered. */
    readonly pendingObjects: number;
  };
  readonly clock: DeadlineState;
  readonly store: { readonly dialect: string; readonly path: string | null };
  readonly memory: {
    readonly capacity: number;
    readonly used: number;
    readonly keys: number;
    readonly locked: boolean;
  };
  readonly requestLog: { readonly queued: number; readonly dropped: number; readonly droppedUnsigned: number };
}

export interface QuarantineState {
  readonly quarantined: boolean;
  readonly reason: string | null;
  /**
   * `older`, `incomplete`: audit records are missing. `changed`: they are not the ones that were
   * signed. `rows-changed`: policy rows were restored, removed or added in the database.
   * `lost-changes`: confirmed changes are missing, as after a failover. `restored`: a backup of the
   * service was restored. `copied`: the data directory was used on another host, where it may still
   * be in use.
   */
  readonly finding: 'older' | 'incomplete' | 'changed' | 'rows-changed' | 'lost-changes' | 'restored' | 'copied' | null;
  /** Records of the audit log that the database has, and had at the checkpoint. */
  readonly size: number | null;
  readonly expected: number | null;
  /** When it was found. */
  readonly since: string | null;
  /** What was compared with what. */
  readonly differences: readonly Difference[];
  /** What the sinks of the audit log know of the time since; null: that cannot be told. */
  readonly missing: MissingRecords | null;
}

/** An audit record that a sink has and the database has not. */
export interface MissingRecord {
  readonly sequence: number;
  readonly at: string;
  readonly kind: string;
  readonly actorName: string;
  readonly subjectKind: string;
  readonly subjectId: string;
}

export interface MissingRecords {
  /** How many a sink that can be read here has. */
  readonly count: number;
  /** The last of them that a checkpoint of this service covers; 0: none. */
  readonly signed: number;
  /** The first ones, in order. */
  readonly records: readonly MissingRecord[];
  readonly sinks: readonly {
    readonly name: string;
    readonly type: string;
    readonly target: string;
    /** Null: it cannot be read from here. */
    readonly records: number | null;
  }[];
}

export interface ClockOperations {
  get(actor: Actor): Promise<DeadlineState>;
  /** Follows the clocks from now on. 'conflict' when they do not say what the operator says. */
  confirm(actor: Actor, time: number): Promise<DeadlineState>;
}

export interface QuarantineOperations {
  get(actor: Actor): Promise<QuarantineState>;
  /**
   * Accepts the database as it is; the service serves when this resolves. 'forbidden' for a wrong
   * code.
   */
  confirm(actor: Actor, code: string): Promise<QuarantineState>;
}

export interface StatusOperations {
  /** Deep: store, root key, round trip on the service's own test key; at most 60 s old. */
  health(): Promise<Health>;
  status(actor: TenantActor): Promise<ServiceStatus>;
}
