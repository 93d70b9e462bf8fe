// Handlers of runbooks and their runs.

import { toRfc3339 } from '../../../base/time.ts';
import type { RunbookRun as RunbookRunAnswer } from '../../../contract/api/runbooks-routes.ts';
import type { RunbookRun } from '../../../domain/runbook-run.ts';
import type { Operations } from '../../../operations/index.ts';
import { representPage } from '../represent.ts';
import type { Handlers } from './handler.ts';

const representRun = ({
  tenantId: _,
  completedSteps,
  startedAt,
  finishedAt,
  ...run
}: RunbookRun): RunbookRunAnswer => ({
  ...run,
  startedAt: toRfc3339(startedAt),
  finishedAt: finishedAt === null ? null : toRfc3339(finishedAt),
  completedSteps: completedSteps.map(({ step, outcome, at, actorId, actorName, note }) => ({
    step,
    outcome,
    at: toRfc3339(at),
    by: { id: actorId, name: actorName },
    note,
  })),
});

/** An empty note counts as none. */
const noteOf = (text: string | undefined): string | null => (text === undefined || text === '' ? null : text);

export const runbooksHandlers = ({ runbooks }: Operations): Handlers['runbooks'] => ({
  list: async () => ({ items: await runbooks.all() }),
  fill: async ({ actor, path, query }) => {
    const { release = '19c', containers = release === '11g' ? 'non-cdb' : 'cdb' } = query;
    return runbooks.fill(actor, path.applicationId, { runbook: path.name, release, containers });
  },
  runs: async ({ actor, path, query }) =>
    representPage(await runbooks.list(actor, path.applicationId, query), representRun),
  start: async ({ actor, path, body }) => {
    const run = await runbooks.start(actor, path.applicationId, body);
    return { id: run.id, answer: representRun(run) };
  },
  get: async ({ actor, path }) => representRun(await runbooks.get(actor, path.applicationId, path.runId)),
  completeStep: async ({ actor, path, body: { outcome, note } }) =>
    representRun(
      await runbooks.completeStep(actor, path.applicationId, path.runId, path.step, { outcome, note: noteOf(note) }),
    ),
  reopenStep: async ({ actor, path }) =>
    representRun(await runbooks.reopenStep(actor, path.applicationId, path.runId, path.step)),
  finish: async ({ actor, path, body: { outcome, note } }) =>
    representRun(await runbooks.finish(actor, path.applicationId, path.runId, { outcome, note: noteOf(note) })),
});
