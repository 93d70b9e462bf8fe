// Runs of runbooks and their completed steps.

import type { Kysely } from 'kysely';
import type { CompletedStep, RunbookRun } from '../../../domain/runbook-run.ts';
import type { Repositories } from '../../../ports/store.ts';
import { readDocument } from '../schema/documents.ts';
import type { Schema } from '../schema/schema.ts';
import { membersOf } from '../schema/tables/members.ts';
import { runbooksTables } from '../schema/tables/runbooks-table.ts';

type RunbookRunRow = Schema['runbook_runs'];
type RunbookTickRow = Schema['runbook_ticks'];

const runMembers = membersOf<RunbookRun>()(runbooksTables.runbook_runs, 'content', 'started_by', 'finished_by');
const stepMembers = membersOf<CompletedStep>()(runbooksTables.runbook_ticks, 'run_id');

const runRow = (run: RunbookRun): RunbookRunRow => ({
  ...runMembers.toRow(run),
  content: JSON.stringify({
    title: run.title,
    release: run.release,
    containers: run.containers,
    warnings: run.warnings,
    steps: run.steps,
  }),
  started_by: JSON.stringify(run.startedBy),
  finished_by: run.finishedBy === null ? null : JSON.stringify(run.finishedBy),
});

type Content = Pick<RunbookRun, 'title' | 'release' | 'containers' | 'warnings' | 'steps'>;
/** Stands for the content of a run whose row was changed from outside: it has no steps. */
const noContent: Content = { title: '', release: '19c', containers: null, warnings: [], steps: [] };
const contentExample = {
  title: '',
  release: '',
  containers: null,
  warnings: [''],
  steps: [{ id: '', title: '', place: '' }],
};
const readPerson = (text: string): RunbookRun['startedBy'] =>
  readDocument(text, { id: '', name: '' }, { id: '', name: '' });

const toRun = (row: RunbookRunRow, completedSteps: readonly CompletedStep[]): RunbookRun => ({
  ...runMembers.fromRow(row),
  ...readDocument<Content>(row.content, contentExample, noContent),
  startedBy: readPerson(row.started_by),
  finishedBy: row.finished_by === null ? null : readPerson(row.finished_by),
  completedSteps,
});

export const createRunbookRuns = (db: Kysely<Schema>): Repositories['runbookRuns'] => {
  const rowsOf = async (ids: readonly string[]): Promise<readonly RunbookTickRow[]> =>
    ids.length === 0
      ? []
      : db
          .selectFrom('runbook_ticks')
          .selectAll()
          .where('run_id', 'in', [...ids])
          .orderBy('at')
          .orderBy('step')
          .execute();
  const withTicks = async (rows: readonly RunbookRunRow[]): Promise<readonly RunbookRun[]> => {
    const completed = await rowsOf(rows.map(({ id }) => id));
    return rows.map((row) => toRun(row, completed.filter(({ run_id }) => run_id === row.id).map(stepMembers.fromRow)));
  };
  return {
    insert: async (run) => {
      await db.insertInto('runbook_runs').values(runRow(run)).execute();
    },
    finish: async (run) => {
      const { finished_at, finished_by, outcome } = runRow(run);
      await db
        .updateTable('runbook_runs')
        .set({ finished_at, finished_by, outcome })
        .where('id', '=', run.id)
        .execute();
    },
    get: async (id) => {
      const row = await db.selectFrom('runbook_runs').selectAll().where('id', '=', id).executeTakeFirst();
      return row === undefined ? undefined : (await withTicks([row]))[0];
    },
    list: async (applicationId, { after, limit }) => {
      let query = db
        .selectFrom('runbook_runs')
        .selectAll()
        .where('application_id', '=', applicationId)
        .orderBy('id', 'desc')
        .limit(limit);
      if (after !== undefined) query = query.where('id', '<', after);
      return withTicks(await query.execute());
    },
    completeStep: async (runId, completed) => {
      await db.deleteFrom('runbook_ticks').where('run_id', '=', runId).where('step', '=', completed.step).execute();
      await db
        .insertInto('runbook_ticks')
        .values({ run_id: runId, ...stepMembers.toRow(completed) })
        .execute();
    },
    reopenStep: async (runId, step) => {
      await db.deleteFrom('runbook_ticks').where('run_id', '=', runId).where('step', '=', step).execute();
    },
  };
};
