// What the questions of the link have in common.

import type { RootRun } from '../../../../domain/root-run.ts';

export type Row = Readonly<Record<string, unknown>>;
/** Asks on the connection of the link. */
export type Query = (text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

/** Classes of advisory locks: 'DKE' and what they are for. */
export const nodeLocks = 0x444b_4502;
/** On which nodes tell one another something. */
export const channel = 'dke';
export const nowSql = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

/**
 * Whether a change that a node shows is one of this database's, and still known. Its number alone
 * may be that of another one.
 */
export const isInHistory = (epoch: string, history: string): string =>
  `(exists (select from node_head where epoch = ${epoch} and history = ${history})
    or exists (select from node_changes where epoch = ${epoch} and history = ${history}))`;

/** The root key's run that a row names; undefined: none. */
export const toRootRun = (row: Row): RootRun | undefined =>
  typeof row.phase === 'string'
    ? { epoch: Number(row.run), nodeId: String(row.node_id), phase: row.phase as RootRun['phase'] }
    : undefined;
