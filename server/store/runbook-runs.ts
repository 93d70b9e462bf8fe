// Runs of runbooks and their completed steps.

import type { Kysely } from 'kysely';
import type { CompletedStep, RunbookRun } from '../domain/runbook-run.ts';
import type { Repositories } from '../ports/store.ts';
import { readDocument } from './documents.ts';
import type { Schema } from './schema.ts';

type RunbookRunRow = Schema['runbook_runs'];
type RunbookTickRow = Schema['runbook_ticks'];

const runRow = (run: RunbookRun): RunbookRunRow => ({
  id: run.id,
  tenant_id: run.tenantId,
  application_id: run.applicationId,
  runbook: run.runbook,
  content: JSON.stringify({
    title: run.title,
    release: run.release,
    containers: run.containers,
    warnings: run.warnings,
    steps: run.steps,
  }),
  started_at: run.startedAt,
  started_by: JSON.stringify(run.startedBy),
  finished_at: run.finishedAt,
  finished_by: run.finishedBy === null ? null : JSON.stringify(run.finishedBy),
  outcome: run.outcome,
});

type Content = Pick<RunbookRun, 'title' | 'release' | 'containers' | 'warnings' | 'steps'>;
/** Of a run whose row was changed from outside: it no longer has steps. */
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

const toRun = (row: RunbookRunRow, completedSteps: readonly CompletedStep[]): RunbookRun => {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    applicationId: row.application_id,
    runbook: row.runbook as RunbookRun['runbook'],
    ...readDocument<Content>(row.content, contentExample, noContent),
    startedAt: row.started_at,
    startedBy: readPerson(row.started_by),
    finishedAt: row.finished_at,
    finishedBy: row.finished_by === null ? null : readPerson(row.finished_by),
    outcome: row.outcome as RunbookRun['outcome'],
    completedSteps,
  };
};

const toCompletedStep = (row: RunbookTickRow): CompletedStep => ({
  step: row.step,
  outcome: row.outcome as CompletedStep['outcome'],
  at: row.at,
  actorId: row.actor_id,
  actorName: row.actor_name,
  note: row.note,
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
    return rows.map((row) => toRun(row, completed.filter(({ run_id }) => run_id === row.id).map(toCompletedStep)));
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
        .values({
          run_id: runId,
          step: completed.step,
          outcome: completed.outcome,
          at: completed.at,
          actor_id: completed.actorId,
          actor_name: completed.actorName,
          note: completed.note,
        })
        .execute();
    },
    reopenStep: async (runId, step) => {
      await db.deleteFrom('runbook_ticks').where('run_id', '=', runId).where('step', '=', step).execute();
    },
  };
};
