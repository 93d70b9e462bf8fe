// A run of a runbook: step by step, each completed as done or not needed, with a note; then
// finished.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { type ApiCall, send } from '../api/client.ts';
import { applicationPath } from '../api/paths.ts';
import type { RunbookRun, RunbookStep } from '../api/types.ts';
import { TextField } from '../ui/fields/field.tsx';
import { ApiCallView } from '../ui/forms/api-call.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { useAnnounce } from '../ui/page/announce.tsx';
import { Async } from '../ui/page/async.tsx';
import { Button } from '../ui/page/button.tsx';
import { Icon } from '../ui/page/icon.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { ProblemView } from '../ui/page/problem-view.tsx';
import { Time } from '../ui/page/time.tsx';
import { RunState } from './application-runbooks.tsx';
import { RunbookSteps, releaseNames, Warnings } from './runbook-steps.tsx';

const route = getRouteApi('/tde/applications/$id/runbook-runs/$runId');

const Tick = ({ run, step, path }: { run: RunbookRun; step: RunbookStep; path: string }) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const [note, setNote] = useState('');
  const stepPath = `${path}/steps/${encodeURIComponent(step.id)}`;
  const completed = run.completedSteps.find((each) => each.step === step.id);
  const change = useMutation({
    mutationFn: (call: ApiCall) => send<RunbookRun>(call),
    onSuccess: (next) => {
      client.setQueryData([path], next);
      announce(`${next.completedSteps.length} of ${next.steps.length} steps complete`);
      setNote('');
    },
  });
  const completeCall = (outcome: 'done' | 'not-needed'): ApiCall => ({
    method: 'PUT',
    path: stepPath,
    body: { outcome, ...(note.trim() === '' ? {} : { note: note.trim() }) },
  });
  if (completed !== undefined)
    return (
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1 rounded-md bg-ok-soft px-3 py-1.5">
        <span className="flex items-center gap-2 font-medium text-ok">
          <Icon name={completed.outcome === 'done' ? 'check' : 'pause'} />
          {completed.outcome === 'done' ? 'Done' : 'Not needed'}
        </span>
        <span className="min-w-0 text-xs wrap-anywhere">
          {completed.by.name}, <Time value={completed.at} />
          {completed.note !== null && `: ${completed.note}`}
        </span>
        {run.outcome === null && (
          <Button
            tone="quiet"
            busy={change.isPending}
            className="ml-auto"
            aria-label={`Reopen: ${step.title}`}
            onClick={() => change.mutate({ method: 'DELETE', path: stepPath })}
          >
            {' '}
            Reopen
          </Button>
        )}
      </div>
    );
  if (run.outcome !== null) return <p className="text-xs text-muted">Not complete</p>;
  return (
    <div className="space-y-2">
      <div className="flex flex-wrap items-end gap-2">
        <div className="min-w-48 flex-1">
          <TextField
            label="Note"
            optional
            placeholder="note for the audit log; never enter a secret"
            maxLength={500}
            value={note}
            onValue={setNote}
          />
        </div>
        <Button
          icon="check"
          busy={change.isPending}
          aria-label={`Done: ${step.title}`}
          onClick={() => change.mutate(completeCall('done'))}
        >
          Done
        </Button>
        <Button
          tone="quiet"
          aria-label={`Not needed: ${step.title}`}
          onClick={() => change.mutate(completeCall('not-needed'))}
        >
          Not needed
        </Button>
      </div>
      {change.error !== null && <ProblemView error={change.error} compact />}
    </div>
  );
};

export const RunbookRunPage = () => {
  const { id, runId } = route.useParams();
  const client = useQueryClient();
  const announce = useAnnounce();
  const [ending, setEnding] = useState<'done' | 'abandoned' | null>(null);
  const path = `${applicationPath(id)}/runbook-runs/${encodeURIComponent(runId)}`;
  const query = useQuery({
    queryKey: [path],
    queryFn: ({ signal }) => send<RunbookRun>({ method: 'GET', path }, { signal }),
    refetchInterval: 15_000,
  });
  const run = query.data;
  const open = run === undefined ? 0 : run.steps.length - run.completedSteps.length;
  const nextStep = run?.steps.find((step) => !run.completedSteps.some((completed) => completed.step === step.id));
  return (
    <Page
      title={run?.title ?? 'Runbook'}
      crumbs={[
        { text: 'TDE applications', to: '/tde/applications' },
        { text: 'Runbooks', to: '/runbooks' },
      ]}
      badge={run !== undefined && <RunState run={run} />}
      description={
        run !== undefined && (
          <>
            {releaseNames[run.release]}
            {run.containers !== null &&
              `, ${run.containers === 'cdb' ? 'container database' : 'no container database'}`}
            . Started by {run.startedBy.name}, <Time value={run.startedAt} />
            {run.finishedBy !== null && (
              <>
                ; finished by {run.finishedBy.name}, <Time value={run.finishedAt} />
              </>
            )}
            .{' '}
            <Link to="/tde/applications/$id/runbooks" params={{ id }} className="link">
              All runs of this application
            </Link>
          </>
        )
      }
      actions={
        run?.outcome === null && (
          <>
            <Button needs="runbooks:run" opens onClick={() => setEnding('abandoned')}>
              Abandon
            </Button>
            <Button
              needs="runbooks:run"
              tone="primary"
              icon="check"
              disabled={open > 0}
              title={open > 0 ? `${open} steps are not complete` : undefined}
              opens
              onClick={() => setEnding('done')}
            >
              Finish
            </Button>
          </>
        )
      }
    >
      <Async query={query} lines={10}>
        {(value) => (
          <>
            <Warnings warnings={value.warnings} />
            <Panel flush title="Steps">
              <RunbookSteps steps={value.steps} aside={(step) => <Tick run={value} step={step} path={path} />} />
            </Panel>
            {nextStep !== undefined && value.outcome === null && (
              <ApiCallView call={{ method: 'PUT', path: `${path}/steps/${nextStep.id}`, body: { outcome: 'done' } }} />
            )}
          </>
        )}
      </Async>
      {ending !== null && (
        <FormDialog<RunbookRun>
          title={ending === 'done' ? 'Finish this run?' : 'Abandon this run?'}
          call={{ method: 'POST', path: `${path}/finish`, body: { outcome: ending } }}
          submitLabel={ending === 'done' ? 'Finish' : 'Abandon'}
          submitTone={ending === 'done' ? 'primary' : 'danger'}
          onCancel={() => setEnding(null)}
          onDone={async (next) => {
            client.setQueryData([path], next);
            await client.invalidateQueries({ queryKey: [`${applicationPath(id)}/runbook-runs`] });
            announce(ending === 'done' ? 'Run finished' : 'Run abandoned');
            setEnding(null);
          }}
        >
          {() =>
            ending === 'done' ? (
              <p>Every step is complete. You cannot change the run after this.</p>
            ) : (
              <p>{open} steps stay open. You cannot change the run after this. The database does not change.</p>
            )
          }
        </FormDialog>
      )}
    </Page>
  );
};
