// Runs of runbooks and their steps.

import { besideThings, long, plainTable, text } from './table.ts';

export const runbooksTables = {
  /** Evidence, which outlives the application. */
  runbook_runs: plainTable({
    ...besideThings,
    columns: {
      id: text({ key: true }),
      tenant_id: text({ to: 'a tenant that may be gone' }),
      application_id: text({ to: 'an application that may be gone' }),
      runbook: text(),
      /** JSON: what was shown. */
      content: text(),
      started_at: long(),
      started_by: text(),
      finished_at: long({ null: true }),
      finished_by: text({ null: true }),
      outcome: text({ null: true }),
    },
    indexes: [{ name: 'runbook_runs_by_application', columns: ['application_id', 'id'] }],
    unauthenticated: 'for people',
    snapshots: { without: 'notes of their day' },
    purge: { kept: 'evidence, as the audit log is' },
    pruned: { never: 'evidence' },
  }),
  runbook_ticks: plainTable({
    ...besideThings,
    columns: {
      run_id: text({ of: 'runbook_runs' }),
      step: text(),
      outcome: text(),
      at: long(),
      actor_id: text({ to: 'who acted' }),
      actor_name: text(),
      note: text({ null: true }),
    },
    primaryKey: { name: 'runbook_ticks_key', columns: ['run_id', 'step'] },
    unauthenticated: 'for people',
    snapshots: { without: 'notes of their day' },
    purge: { kept: 'evidence, as the audit log is' },
    pruned: { never: 'evidence' },
  }),
};
