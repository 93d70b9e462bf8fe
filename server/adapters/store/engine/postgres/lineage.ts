// Which database the connections of this process lead to. After a failover the name of the host
// leads to the new primary, while the old one, if it was not fenced, still answers on connections
// that are open. What is read from it is old, and what is written to it is lost. So every
// connection asks who answers when it is opened. PostgreSQL numbers its timelines: a promotion
// begins the next one.

import { NotPrimary } from './error-kinds.ts';

/** A primary: its cluster, and the timeline that it writes. */
export interface Primary {
  /**
   * Empty where the role may not read it: then only the history of changes tells a lost failover.
   */
  readonly system: string;
  readonly timeline: number;
}

export interface Lineage {
  /**
   * Counts up when a connection has lost its server without a word. Those that were opened before
   * are used for nothing new.
   */
  era(): number;
  suspect(): void;
  /**
   * A connection has found this primary, and the tables in this schema. Throws NotPrimary when a
   * newer one is known.
   */
  enter(found: Primary, schema: string): void;
  /**
   * The schema that the first connection found: the others use it too, whatever the search_path of
   * the role has become. Undefined: there was no connection yet.
   */
  schema(): string | undefined;
  isNewest(found: Primary | undefined): boolean;
  /** Name of the primary that was met last: a failover changes it. */
  name(): string;
}

export const createLineage = (): Lineage => {
  let era = 0;
  let newest: Primary | undefined;
  let tables: string | undefined;
  return {
    era: () => era,
    suspect: () => {
      era += 1;
    },
    schema: () => tables,
    enter: (found, schema) => {
      if (newest !== undefined && found.system === newest.system && found.timeline < newest.timeline)
        throw new NotPrimary(
          `this server was the primary before the last failover (timeline ${found.timeline}; now ${newest.timeline}): stop it, or let the name of the ` +
            'host lead to the new primary',
        );
      newest = found;
      tables ??= schema;
    },
    name: () => `${newest?.system} ${newest?.timeline}`,
    isNewest: (found) => found !== undefined && found.system === newest?.system && found.timeline === newest.timeline,
  };
};

/** One statement: who answers. A standby has no timeline of its own. */
export const primarySql = `
  select pg_is_in_recovery() as standby, (select system_identifier::text from pg_control_system()) as system,
         case when pg_is_in_recovery() then 0
              else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int end as timeline`;
