// Runbooks with an application's own values, and runs of them: started, completed step by step,
// finished. Every completed step is audited under the application, in one transaction with itself.

import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { TenantActor } from '../../domain/actor.ts';
import { openSteps, type RunbookRun } from '../../domain/runbook-run.ts';
import {
  faultOfRunbook,
  fillRunbook,
  type RunbookName,
  type Runbooks,
  type RunbookValues,
  runbookNames,
  summarizeRunbook,
} from '../../domain/runbooks.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { showApplication, showGroup } from '../shared/find.ts';
import { byId, pageOf } from '../shared/paging.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { RunbookOperations, RunbookVariant } from './runbooks-operations.ts';

type Reads = Pick<Repositories, 'runbookRuns' | 'applications'>;

const mostHosts = 5;

/** Where `dke provider install` and the documentation put things. */
const places = {
  library: '/opt/oracle/extapi/64/hsm/dke/1.0/libdke_pkcs11.so',
  config: '/etc/dke/pkcs11.toml',
  logs: '/var/log/dke-pkcs11',
  owner: 'oracle:oinstall',
} as const;

const valuesOf = async (from: Repositories, tenantId: string, applicationId: string): Promise<RunbookValues> => {
  const application = await showApplication(from, tenantId, applicationId);
  const group = await showGroup(from, tenantId, application.groupId);
  const instances = await from.instances.list(applicationId);
  const newestId = await from.objects.newestMasterKey(applicationId);
  const newest = newestId === undefined ? undefined : await from.keys.stored(tenantId, newestId);
  const hosts = [...new Set(instances.map(({ host }) => host))];
  return {
    ...places,
    application: application.name,
    applicationId,
    appId: application.appId,
    group: group.name,
    hosts:
      hosts.length === 0
        ? 'none yet'
        : `${hosts.slice(0, mostHosts).join(', ')}${hosts.length > mostHosts ? ` and ${hosts.length - mostHosts} more` : ''}`,
    masterKey: newest?.name ?? '<master_key>',
  };
};

const check = (runbooks: Runbooks, { runbook, release, containers }: RunbookVariant): RunbookName => {
  const name = runbookNames.find((each) => each === runbook);
  if (name === undefined) throw new ServiceError('not-found', 'runbook not found', { hint: 'run dke runbook list' });
  const fault = faultOfRunbook(runbooks, name, release, containers);
  if (fault !== undefined) throw new ServiceError('conflict', fault);
  return name;
};

const findRun = async (
  from: Reads,
  { tenantId }: TenantActor,
  applicationId: string,
  id: string,
): Promise<RunbookRun> => {
  await showApplication(from, tenantId, applicationId);
  const run = await from.runbookRuns.get(id);
  if (run === undefined || run.applicationId !== applicationId) throw new ServiceError('not-found', 'run not found');
  return run;
};
/** 'conflict' for one that is finished. */
const ofApplication = ({ applicationId: id, tenantId }: RunbookRun) => about('application', { id, tenantId });

const findOpen = async (from: Reads, actor: TenantActor, applicationId: string, id: string): Promise<RunbookRun> => {
  const run = await findRun(from, actor, applicationId, id);
  if (run.outcome !== null)
    throw new ServiceError('conflict', 'the run is finished', { hint: 'start a new run of the runbook' });
  return run;
};
const titleOf = (run: RunbookRun, step: string): string => {
  const found = run.steps.find(({ id }) => id === step);
  if (found === undefined) throw new ServiceError('not-found', 'the runbook does not have this step');
  return found.title;
};

export const followRunbook = (
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  runbooks: Runbooks,
): RunbookOperations => {
  return {
    all: async () => runbookNames.map((name) => summarizeRunbook(runbooks, name)),
    fill: async ({ tenantId }, applicationId, variant) =>
      fillRunbook(
        runbooks,
        check(runbooks, variant),
        variant.release,
        variant.containers,
        await valuesOf(store.read, tenantId, applicationId),
      ),
    list: async ({ tenantId }, applicationId, query) => {
      await showApplication(store.read, tenantId, applicationId);
      return pageOf(query, (window) => store.read.runbookRuns.list(applicationId, window), byId);
    },
    get: async (actor, applicationId, id) => findRun(store.read, actor, applicationId, id),
    start: async (actor, applicationId, variant) => {
      const { release, containers } = variant;
      const runbook = check(runbooks, variant);
      const { tenantId } = actor;
      return store.write(async (tx) => {
        const { name } = await showApplication(tx, tenantId, applicationId);
        const filled = fillRunbook(runbooks, runbook, release, containers, await valuesOf(tx, tenantId, applicationId));
        const at = clock.now();
        const run: RunbookRun = {
          id: newId(at),
          tenantId,
          applicationId,
          runbook,
          title: filled.title,
          release,
          containers: filled.containers,
          warnings: filled.warnings,
          steps: filled.steps,
          startedAt: at,
          startedBy: { id: actor.id, name: actor.name },
          finishedAt: null,
          finishedBy: null,
          outcome: null,
          completedSteps: [],
        };
        await tx.runbookRuns.insert(run);
        await recordEvent(tx, 'runbook.started', actor, ofApplication(run), {
          name,
          runbook,
          release,
          containers: filled.containers,
          runId: run.id,
          steps: run.steps.length,
        });
        return run;
      });
    },
    completeStep: (actor, applicationId, id, step, { outcome, note }) =>
      store.write(async (tx) => {
        const run = await findOpen(tx, actor, applicationId, id);
        const title = titleOf(run, step);
        const completed = { step, outcome, at: clock.now(), actorId: actor.id, actorName: actor.name, note };
        await tx.runbookRuns.completeStep(id, completed);
        await recordEvent(tx, 'runbook.step-completed', actor, ofApplication(run), {
          runbook: run.runbook,
          runId: id,
          step,
          title,
          outcome,
          note,
        });
        return findRun(tx, actor, applicationId, id);
      }),
    reopenStep: (actor, applicationId, id, step) =>
      store.write(async (tx) => {
        const run = await findOpen(tx, actor, applicationId, id);
        const title = titleOf(run, step);
        if (!run.completedSteps.some((each) => each.step === step)) return run;
        await tx.runbookRuns.reopenStep(id, step);
        await recordEvent(tx, 'runbook.step-reopened', actor, ofApplication(run), {
          runbook: run.runbook,
          runId: id,
          step,
          title,
        });
        return findRun(tx, actor, applicationId, id);
      }),
    finish: (actor, applicationId, id, { outcome, note }) =>
      store.write(async (tx) => {
        const run = await findOpen(tx, actor, applicationId, id);
        const open = openSteps(run);
        if (outcome === 'done' && open.length > 0)
          throw new ServiceError('conflict', `${open.length} of ${run.steps.length} steps are not complete`, {
            hint: 'mark each as done or not needed, or abandon the run',
          });
        const finished: RunbookRun = {
          ...run,
          outcome,
          finishedAt: clock.now(),
          finishedBy: { id: actor.id, name: actor.name },
        };
        await tx.runbookRuns.finish(finished);
        await recordEvent(tx, 'runbook.finished', actor, ofApplication(run), {
          runbook: run.runbook,
          runId: id,
          outcome,
          completed: run.completedSteps.length,
          open: open.length,
          note,
        });
        return finished;
      }),
  };
};
