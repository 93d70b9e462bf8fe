// Names of tables, by what operations do with their rows. No name is written here: the store
// declares the tables, and completes this interface with those that its declarations tell
// (adapters/store/schema/schema.ts). So an operation that is written for tables by name does not
// compile while one is missing, and is not reached by a name that no table has.

// biome-ignore lint/suspicious/noEmptyInterface: the store completes it
export interface TablesBy {}
