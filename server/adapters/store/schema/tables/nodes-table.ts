// Servers that share one database (ports/node-link.ts).

import { bytes, integer, long, ofNoTenant, plainTable, text } from './table.ts';

export const nodesTables = {
  nodes: plainTable({
    ...ofNoTenant,
    columns: {
      id: text({ key: true }),
      name: text(),
      version: text(),
      state: text(),
      started_at: long(),
      heartbeat_at: long(),
      /** How long it continues without the store, in milliseconds; 0: without limit. */
      contact_ms: long(),
      epoch: long(),
      root_epoch: integer(),
      oldest_root_epoch: integer(),
      public_key: bytes(),
      proof: bytes(),
      clock_ahead_ms: long({ default: 0 }),
      /** Identifies the node's data directory; empty: not known. */
      directory: text({ default: '' }),
    },
    unauthenticated: 'a node proves by a record that it has the root key',
    pruned: { never: 'tells which servers there were' },
  }),
  /** One row: the number of the last change, its id, and how often the set of KEKs has changed. */
  node_head: plainTable({
    ...ofNoTenant,
    columns: {
      id: integer({ key: true }),
      epoch: long(),
      keks: long(),
      history: text({ default: '' }),
    },
    // Agents have seen epochs of other stores: those of this one are later.
    rows: () => [{ id: 1, epoch: Date.now(), keks: 0 }],
    unauthenticated: 'what is read again',
    pruned: { never: 'changed in place' },
    copied: { not: 'of the servers that share one database' },
  }),
  /** What other nodes must read again, by the number of the change. */
  node_changes: plainTable({
    ...ofNoTenant,
    columns: {
      epoch: long({ key: true }),
      previous: long(),
      at: long(),
      changes: text(),
      history: text({ default: '' }),
      previous_history: text({ default: '' }),
      /** See change-codes.ts. */
      code: text({ default: '' }),
    },
    unauthenticated: 'each row has a code of its own: what it says, and where it is in the order',
    pruned: { by: 'a heartbeat, by the clock of the database' },
    copied: { not: 'of the servers that share one database' },
  }),
  /** See operations/nodes/node-duties.ts. */
  node_duties: plainTable({
    ...ofNoTenant,
    columns: {
      duty: text({ key: true }),
      /** Null: it was given up. */
      node_id: text({ null: true, to: 'a node that may be gone' }),
      fence: long(),
      renewals: long(),
    },
    unauthenticated: 'changed in place, once a second: which node does the work',
    pruned: { never: 'changed in place' },
    copied: { not: 'of the servers that share one database' },
  }),
  /** At most one row: the root key that is on its way to all nodes. */
  root_runs: plainTable({
    ...ofNoTenant,
    columns: {
      id: integer({ key: true }),
      epoch: integer(),
      node_id: text({ to: 'a node that may be gone' }),
      phase: text(),
    },
    unauthenticated: 'nodes prove what they have by records',
    pruned: { never: 'changed in place' },
    copied: { not: 'of the servers that share one database' },
  }),
  root_parcels: plainTable({
    ...ofNoTenant,
    columns: {
      node_id: text({ key: true, to: 'a node that may be gone' }),
      epoch: integer(),
      public_key: bytes(),
      sealed: bytes(),
    },
    unauthenticated: 'sealed, and bound to the old root key',
    pruned: { never: 'changed in place' },
    copied: { not: 'of the servers that share one database' },
  }),
};
