// What search finds things by (search-table.ts). `scope`: the tenant, or * for users and tokens of
// every tenant and of the platform.

import { besideThings, plainTable, text } from './table.ts';

export const searchTables = {
  /** Derived from the other tables: search-table.ts. */
  search_terms: plainTable({
    ...besideThings,
    columns: {
      scope: text(),
      kind: text(),
      term: text(),
      subject_id: text({ to: 'a thing of any kind' }),
      field: text(),
    },
    primaryKey: { name: 'search_terms_pk', columns: ['scope', 'kind', 'term', 'subject_id'] },
    indexes: [{ name: 'search_terms_by_subject', columns: ['subject_id', 'term'] }],
    unauthenticated: 'where a search looks: made of what stands in other rows',
    snapshots: { without: 'made from other rows, and again with them' },
    purge: { kept: 'made from other rows, and changed with them' },
    pruned: { by: 'a change of its row' },
  }),
};
