// What the purge of a tenant does with its rows, beside the steps that change them: see the declarations of the tables
// (store/tables/table.ts).

/** The tables whose rows a step of the purge changes or ends. */
export const purgeSteps = [
  'key_records',
  'tenant_keks',
  'keys',
  'endpoints',
  'endpoint_credentials',
  'external_key_stores',
  'tde_objects',
  'access_guids',
  'tde_applications',
  'vaults',
  'users',
  'user_factors',
  'sessions',
  'api_tokens',
] as const;
export type PurgeStep = (typeof purgeSteps)[number];

export interface PurgeRepository {
  /** Tables whose rows are removed. */
  tables(): readonly string[];
  /** Removes some rows of the tenant; answers how many. */
  remove(table: string, tenantId: string): Promise<number>;
}
