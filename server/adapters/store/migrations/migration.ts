// One step from the schema of a released version to the next.

import type { Kysely } from 'kysely';
import type { ColumnKinds } from '../schema/create-tables.ts';

export interface SchemaMigration {
  /** `0002-topic`: its place in the order of names is its place in time. */
  readonly name: string;
  // biome-ignore lint/suspicious/noExplicitAny: a migration knows the schema of its own time, not today's types
  up(db: Kysely<any>, kinds: ColumnKinds): Promise<void>;
}
