// Runbooks: what is done at the database for each operation that moves key material, filled with an
// application's own values; and runs of them, completed step by step.

import { z } from '@hono/zod-openapi';
import type { RunOutcome, StepOutcome } from '../../domain/runbook-run.ts';
import type { Containers, Place, Release, RunbookName } from '../../domain/runbooks.ts';
import { identifier, listOf, moment, pageOf, pageQuery, type RouteGroup } from './row.ts';

const nameTable = {
  rotate: 0,
  check: 0,
  'restart-after-rotation': 0,
  migrate: 0,
  'reverse-migrate': 0,
  standby: 0,
  restore: 0,
  'clone-pdb': 0,
  'upgrade-library': 0,
  destroy: 0,
} as const satisfies Record<RunbookName, 0>;
const name = z.enum(Object.keys(nameTable) as [RunbookName, ...RunbookName[]]);
const release = z
  .enum(['11g', '12c-18c', '19c'] satisfies Release[])
  .openapi({ description: '11g R2; 12c to 18c; 19c and later' });
const containers = z.enum(['non-cdb', 'cdb'] satisfies Containers[]);
const place = z.enum(['host', 'database', 'console', 'target-host', 'target'] satisfies Place[]);

const stepSchema = z
  .strictObject({
    id: z.string(),
    title: z.string(),
    place,
    text: z.string().optional(),
    warning: z.string().optional(),
    sql: z.string().optional(),
    shell: z.string().optional(),
    setting: z.string().optional().openapi({ description: 'A line of the configuration file named in the title.' }),
    expect: z.string().optional().openapi({ description: 'How to check that the step worked.' }),
    command: z.string().optional().openapi({ description: 'The equivalent dke command.' }),
    onlyAfter: z
      .string()
      .optional()
      .openapi({ description: 'Only if the step before was answered with this Oracle error.' }),
  })
  .openapi('RunbookStep');
export type RunbookStep = z.output<typeof stepSchema>;

export const runbookSchema = z
  .strictObject({
    name,
    title: z.string(),
    summary: z.string(),
    downtime: z.boolean(),
    releases: z.array(release).readonly(),
    byContainers: z.boolean().openapi({ description: 'true: the steps differ for container databases.' }),
  })
  .openapi('Runbook');
export type Runbook = z.output<typeof runbookSchema>;

export const filledRunbookSchema = z
  .strictObject({
    name,
    title: z.string(),
    summary: z.string(),
    downtime: z.boolean(),
    release,
    containers: containers.nullable(),
    warnings: z.array(z.string()).readonly(),
    steps: z.array(stepSchema).readonly(),
  })
  .openapi('FilledRunbook');
export type FilledRunbook = z.output<typeof filledRunbookSchema>;

const person = z.strictObject({ id: z.string(), name: z.string() });
const stepOutcome = z.enum(['done', 'not-needed'] satisfies StepOutcome[]);
const runOutcome = z.enum(['done', 'abandoned'] satisfies RunOutcome[]);

export const runbookRunSchema = z
  .strictObject({
    id: identifier,
    applicationId: identifier,
    runbook: name,
    title: z.string(),
    release,
    containers: containers.nullable(),
    warnings: z.array(z.string()).readonly(),
    steps: z.array(stepSchema).readonly().openapi({ description: 'As shown when the run was started.' }),
    startedAt: moment,
    startedBy: person,
    finishedAt: moment.nullable(),
    finishedBy: person.nullable(),
    outcome: runOutcome.nullable().openapi({ description: 'null: still in progress' }),
    completedSteps: z
      .array(
        z.strictObject({
          step: z.string(),
          outcome: stepOutcome,
          at: moment,
          by: person,
          note: z.string().nullable(),
        }),
      )
      .readonly(),
  })
  .openapi('RunbookRun');
export type RunbookRun = z.output<typeof runbookRunSchema>;

const note = z
  .string()
  .trim()
  .max(500, 'must be at most 500 characters')
  .regex(/^\P{Cc}*$/u, 'must have no control characters')
  .optional()
  .openapi({ description: 'For the audit log. Do not enter secrets.' });
const variant = { release: release.default('19c'), containers: containers.default('cdb') };
const path = '/api/tde/applications/{applicationId}/runbook-runs';
const scope = { kind: 'application', parameter: 'applicationId' } as const;

export const runbookRoutes = {
  list: {
    method: 'get',
    path: '/api/runbooks',
    needs: 'signed-in',
    summary: 'List the runbooks',
    answer: listOf(runbookSchema),
  },
  fill: {
    method: 'get',
    path: '/api/tde/applications/{applicationId}/runbooks/{name}',
    needs: 'applications:read',
    scope,
    summary: "Get a runbook with an application's own values",
    query: z.strictObject({ release: release.optional(), containers: containers.optional() }),
    answer: filledRunbookSchema,
  },
  runs: {
    method: 'get',
    path,
    needs: 'applications:read',
    scope,
    summary: 'List runbook runs of an application',
    description: 'Newest first.',
    query: pageQuery,
    answer: pageOf(runbookRunSchema),
  },
  start: {
    method: 'post',
    path,
    needs: 'runbooks:run',
    scope,
    summary: 'Start a runbook run',
    body: z.strictObject({ runbook: name, ...variant }).openapi('NewRunbookRun'),
    answer: runbookRunSchema,
    creates: true,
  },
  get: {
    method: 'get',
    path: `${path}/{runId}`,
    needs: 'applications:read',
    scope,
    summary: 'Get a runbook run',
    answer: runbookRunSchema,
  },
  completeStep: {
    method: 'put',
    path: `${path}/{runId}/steps/{step}`,
    needs: 'runbooks:run',
    scope,
    summary: 'Complete a step',
    body: z.strictObject({ outcome: stepOutcome.default('done'), note }).openapi('StepCompletion'),
    answer: runbookRunSchema,
  },
  reopenStep: {
    method: 'delete',
    path: `${path}/{runId}/steps/{step}`,
    needs: 'runbooks:run',
    scope,
    summary: 'Reopen a step',
    answer: runbookRunSchema,
  },
  finish: {
    method: 'post',
    path: `${path}/{runId}/finish`,
    needs: 'runbooks:run',
    scope,
    summary: 'Finish a run',
    description: '`done` requires that every step is complete or not needed; `abandoned` does not.',
    body: z.strictObject({ outcome: runOutcome.default('done'), note }).openapi('FinishRunbookRun'),
    answer: runbookRunSchema,
  },
} as const satisfies RouteGroup;
