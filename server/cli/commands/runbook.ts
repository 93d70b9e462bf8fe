// `dke runbook`: what is done at the database for each operation that moves key material, with an
// application's own values, and runs of it that are completed step by step.

import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { FilledRunbook, RunbookRun } from '../../contract/api/runbooks-routes.ts';
import { addNoun, type Given } from '../service/command-rows.ts';

const routes = operations.runbooks;

const variant = {
  '--release <release>': { help: 'of the database', choices: ['11g', '12c-18c', '19c'], default: '19c' },
  '--containers <kind>': { help: 'whether it is a container database', choices: ['non-cdb', 'cdb'] },
} as const;
const containersOf = ({ release, containers }: Given<typeof variant>) =>
  containers ?? (release === '11g' ? ('non-cdb' as const) : ('cdb' as const));

const indent = (text: string): string => text.replaceAll(/^/gm, '     ');

/** The runbook as a page of text, which can be printed and kept next to the keyboard. */
const format = (
  { title, summary, warnings, steps }: Pick<FilledRunbook, 'title' | 'warnings' | 'steps'> & { summary?: string },
  completedSteps: RunbookRun['completedSteps'] = [],
): string =>
  [
    title,
    ...(summary === undefined ? [] : [summary]),
    ...warnings.map((warning) => `! ${warning}`),
    '',
    ...steps.flatMap((step, index) => {
      const done = completedSteps.find((each) => each.step === step.id);
      const mark = done === undefined ? ' ' : done.outcome === 'done' ? 'x' : '-';
      return [
        `${String(index + 1).padStart(2)}. [${mark}] ${step.title}   (${step.id}, at: ${step.place})`,
        ...(step.warning === undefined ? [] : [indent(`! ${step.warning}`)]),
        ...(step.text === undefined ? [] : [indent(step.text)]),
        ...(step.sql === undefined ? [] : [indent(step.sql)]),
        ...(step.shell === undefined ? [] : [indent(step.shell)]),
        ...(step.setting === undefined ? [] : [indent(step.setting)]),
        ...(step.command === undefined || step.command === step.shell ? [] : [indent(step.command)]),
        ...(step.expect === undefined ? [] : [indent(`expect: ${step.expect}`)]),
        ...(done === undefined
          ? []
          : [indent(`${done.at} ${done.by.name}${done.note === null ? '' : `: ${done.note}`}`)]),
      ];
    }),
    '',
  ].join('\n');

const progressOf = ({ id, completedSteps, steps }: RunbookRun) => ({
  id,
  completed: completedSteps.length,
  steps: steps.length,
});
const note = { '--note <text>': 'note for the audit log; never enter a secret' } as const;

export const addRunbook = (program: Command): void => {
  const noun = addNoun(program, 'runbook');
  noun.row(routes.list, 'list', 'Lists the runbooks.', {
    columns: {
      RUNBOOK: 'name',
      WHAT: 'title',
      DOWNTIME: (row) => (row.downtime ? 'yes' : 'no'),
      RELEASES: (row) => row.releases.join(' '),
    },
  });
  noun.row(routes.fill, 'show <runbook> <application>', "Shows a runbook with the application's own values.", {
    options: variant,
    also: (_, options) => ({ query: { containers: containersOf(options) } }),
    text: (output, filled) => output.bytes(Buffer.from(format(filled))),
  });
  noun.row(
    routes.start,
    'start <runbook> <application>',
    'Starts a run. Complete its steps one by one; each is audited.',
    {
      options: variant,
      also: (_, options) => ({ body: { containers: containersOf(options) } }),
      text: (output, run) => output.bytes(Buffer.from(`run ${run.id}\n${format(run)}`)),
    },
  );
  noun.row(routes.runs, 'runs <application>', 'Lists the runs of an application, newest first.', {
    columns: {
      ID: 'id',
      RUNBOOK: 'runbook',
      STARTED: 'startedAt',
      BY: (row) => row.startedBy.name,
      COMPLETED: (row) => `${row.completedSteps.length}/${row.steps.length}`,
      OUTCOME: (row) => row.outcome ?? 'running',
    },
  });
  noun.row(routes.get, 'show-run <application> <run-id>', 'Shows a run with its completed steps.', {
    text: (output, run) => output.bytes(Buffer.from(format(run, run.completedSteps))),
  });
  noun.row(routes.completeStep, 'complete-step <application> <run-id> <step>', 'Marks a step as complete.', {
    options: { '--not-needed': 'the step was not needed', ...note },
    also: (_, { notNeeded }) => ({
      body: { outcome: notNeeded === true ? ('not-needed' as const) : ('done' as const) },
    }),
    value: progressOf,
  });
  noun.row(routes.reopenStep, 'reopen-step <application> <run-id> <step>', 'Reopens a step.', { value: progressOf });
  noun.row(routes.finish, 'finish <application> <run-id>', 'Finishes a run whose steps are all complete.', {
    options: { '--abandon': 'end the run early, with open steps', ...note },
    also: (_, { abandon }) => ({ body: { outcome: abandon === true ? ('abandoned' as const) : ('done' as const) } }),
    value: ({ id, outcome, finishedAt }) => ({ id, outcome, finishedAt }),
  });
};
