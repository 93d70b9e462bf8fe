// What the configuration says about snapshots.

export interface SnapshotSettings {
  readonly directory: string;
  /** Cron expression, UTC; null: none is made by the clock. */
  readonly schedule: string | null;
  /** Scheduled ones that are kept of each tenant, and for how long; null: no limit. */
  readonly keepCount: number | null;
  readonly keepDays: number | null;
  /** How long a deletion can be undone. */
  readonly undeleteDays: number;
  /** Verifier keys of other services whose snapshots may be imported. */
  readonly trustedSigners: readonly string[];
  /**
   * Whether a restore that creates credentials, brings back into use what was disabled or removed,
   * or sets attributes back waits for a second person.
   */
  readonly restoreSecondPerson: boolean;
  /** Whether an export, and a new recovery key, wait for a second person where there is one. */
  readonly exportSecondPerson: boolean;
}
