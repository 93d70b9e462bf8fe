// `dke runbook`: what is done at the database for each operation that moves key material, with an application's own values, and
// runs of it that are ticked step by step.

import { type Command, Option } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import type { FilledRunbook, RunbookRun } from '../fronts/contract/api/runbooks.ts';
import { action, type Paging, paged } from './caller.ts';

const routes = apiRoutes.runbooks;

interface Variant {
  readonly release: FilledRunbook['release'];
  readonly containers?: NonNullable<FilledRunbook['containers']>;
}
const variant = (command: Command): Command =>
  command
    .addOption(new Option('--release <release>', 'of the database').choices(['11g', '12c-18c', '19c']).default('19c'))
    .addOption(new Option('--containers <kind>', 'whether it is a container database').choices(['non-cdb', 'cdb']));
const containersOf = ({ release, containers }: Variant) =>
  containers ?? (release === '11g' ? ('non-cdb' as const) : ('cdb' as const));

const indent = (text: string): string => text.replaceAll(/^/gm, '     ');

/** As a page of text: what can be printed and laid beside the keyboard. */
const format = (
  { title, summary, warnings, steps }: Pick<FilledRunbook, 'title' | 'warnings' | 'steps'> & { summary?: string },
  ticks: RunbookRun['ticks'] = [],
): string =>
  [
    title,
    ...(summary === undefined ? [] : [summary]),
    ...warnings.map((warning) => `! ${warning}`),
    '',
    ...steps.flatMap((step, index) => {
      const tick = ticks.find((each) => each.step === step.id);
      const mark = tick === undefined ? ' ' : tick.outcome === 'done' ? 'x' : '-';
      return [
        `${String(index + 1).padStart(2)}. [${mark}] ${step.title}   (${step.id}, at: ${step.place})`,
        ...(step.warning === undefined ? [] : [indent(`! ${step.warning}`)]),
        ...(step.text === undefined ? [] : [indent(step.text)]),
        ...(step.sql === undefined ? [] : [indent(step.sql)]),
        ...(step.shell === undefined ? [] : [indent(step.shell)]),
        ...(step.setting === undefined ? [] : [indent(step.setting)]),
        ...(step.command === undefined || step.command === step.shell ? [] : [indent(step.command)]),
        ...(step.expect === undefined ? [] : [indent(`expect: ${step.expect}`)]),
        ...(tick === undefined
          ? []
          : [indent(`${tick.at} ${tick.by.name}${tick.note === null ? '' : `: ${tick.note}`}`)]),
      ];
    }),
    '',
  ].join('\n');

export const addRunbook = (program: Command): void => {
  const noun = program.command('runbook').summary('what is done at the database: rotate, migrate, restore, upgrade');

  noun
    .command('list')
    .description('Lists the runbooks.')
    .action(
      action(async ({ call, output }) => {
        output.list(await call(routes.list), [
          ['RUNBOOK', (row) => row.name],
          ['WHAT', (row) => row.title],
          ['DOWNTIME', (row) => (row.downtime ? 'yes' : 'no')],
          ['RELEASES', (row) => row.releases.join(' ')],
        ]);
      }),
    );

  variant(noun.command('show <runbook> <application>'))
    .description("Shows a runbook with the application's own values.")
    .action(
      action<Variant>(async ({ call, output, resolve }, options, name, application) => {
        const filled = await call(routes.fill, {
          path: { applicationId: await resolve('TDE application', application), name },
          query: { release: options.release, containers: containersOf(options) },
        });
        if (output.format === 'json') return output.record(filled);
        process.stdout.write(format(filled));
      }),
    );

  variant(noun.command('start <runbook> <application>'))
    .description('Starts a run: its steps are ticked one by one, and audited.')
    .action(
      action<Variant>(async ({ call, output, resolve }, options, name, application) => {
        const run = await call(routes.start, {
          path: { applicationId: await resolve('TDE application', application) },
          body: { runbook: name as RunbookRun['runbook'], release: options.release, containers: containersOf(options) },
        });
        if (output.format === 'json') return output.record(run);
        process.stdout.write(`run ${run.id}\n${format(run)}`);
      }),
    );

  paged(noun.command('runs <application>').description('Lists the runs of an application, newest first.')).action(
    action<Paging>(async ({ call, output, resolve }, query, application) => {
      const path = { applicationId: await resolve('TDE application', application) };
      output.list(await call(routes.runs, { path, query: { ...query } }), [
        ['ID', (row) => row.id],
        ['RUNBOOK', (row) => row.runbook],
        ['STARTED', (row) => row.startedAt],
        ['BY', (row) => row.startedBy.name],
        ['TICKED', (row) => `${row.ticks.length}/${row.steps.length}`],
        ['OUTCOME', (row) => row.outcome ?? 'goes on'],
      ]);
    }),
  );

  noun
    .command('get <application> <run-id>')
    .description('Shows a run with its ticks.')
    .action(
      action(async ({ call, output, resolve }, _, application, runId) => {
        const path = { applicationId: await resolve('TDE application', application), runId };
        const run = await call(routes.get, { path });
        if (output.format === 'json') return output.record(run);
        process.stdout.write(format(run, run.ticks));
      }),
    );

  noun
    .command('tick <application> <run-id> <step>')
    .description('Ticks a step.')
    .option('--not-needed', 'it was not needed')
    .option('--note <text>', 'for the audit log; never a secret')
    .action(
      action<{ readonly notNeeded?: true; readonly note?: string }>(
        async ({ call, output, resolve }, { notNeeded, note }, application, runId, step) => {
          const path = { applicationId: await resolve('TDE application', application), runId, step };
          const body = {
            outcome: notNeeded === true ? ('not-needed' as const) : ('done' as const),
            ...(note === undefined ? {} : { note }),
          };
          const run = await call(routes.tick, { path, body });
          output.record({ id: run.id, ticked: run.ticks.length, steps: run.steps.length });
        },
      ),
    );

  noun
    .command('untick <application> <run-id> <step>')
    .description('Opens a step again.')
    .action(
      action(async ({ call, output, resolve }, _, application, runId, step) => {
        const path = { applicationId: await resolve('TDE application', application), runId, step };
        const run = await call(routes.untick, { path });
        output.record({ id: run.id, ticked: run.ticks.length, steps: run.steps.length });
      }),
    );

  noun
    .command('finish <application> <run-id>')
    .description('Finishes a run whose steps are all ticked.')
    .option('--abandon', 'it was broken off: steps may be open')
    .option('--note <text>', 'for the audit log; never a secret')
    .action(
      action<{ readonly abandon?: true; readonly note?: string }>(
        async ({ call, output, resolve }, { abandon, note }, application, runId) => {
          const path = { applicationId: await resolve('TDE application', application), runId };
          const body = {
            outcome: abandon === true ? ('abandoned' as const) : ('done' as const),
            ...(note === undefined ? {} : { note }),
          };
          const run = await call(routes.finish, { path, body });
          output.record({ id: run.id, outcome: run.outcome, finishedAt: run.finishedAt });
        },
      ),
    );
};
