// The stores that are measured: the embedded one, and a PostgreSQL of its own for each that is
// opened.

import { type PostgresPlace, type PostgresServer, startPostgres } from '../support/postgresql.ts';

export const stores = ['SQLite', 'PostgreSQL'] as const;
export type StoreName = (typeof stores)[number];

export interface Place {
  readonly toml: string;
  readonly postgres: PostgresServer | undefined;
  readonly database: PostgresPlace | undefined;
  remove(): Promise<void>;
}

export const openPlace = async (store: StoreName): Promise<Place> => {
  if (store === 'SQLite') return { toml: '', postgres: undefined, database: undefined, remove: async () => undefined };
  const postgres = await startPostgres();
  const database = postgres.createDatabase('bench');
  return {
    toml: `[store]\ntype = "postgresql"\nhost = "${database.host}"\ndatabase = "${database.database}"\nreplica_lag_seconds = 0\nuser = "${database.user}"\n`,
    postgres,
    database,
    remove: () => postgres.remove(),
  };
};
