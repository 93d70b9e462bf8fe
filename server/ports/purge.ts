// What a purge and the clock remove, as the declarations of the tables say
// (adapters/store/schema/tables/table.ts).

import type { TablesBy } from './tables.ts';

/** The tables whose rows a step of the purge changes or ends. */
export type PurgeStep = TablesBy['stepped'];

export interface PurgeRepository {
  /** Tables whose rows are removed. */
  tables(): readonly string[];
  /** Removes some rows of the tenant; answers how many. */
  remove(table: string, tenantId: string): Promise<number>;
}

export interface PruningRepository {
  /**
   * Removes the rows of every table that are too old at this time, with the key records that they
   * own.
   */
  run(now: number, sessionIdleMs: number): Promise<void>;
}
