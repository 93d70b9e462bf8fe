// The runbooks of one application: a selected runbook for a release, with the application's values;
// and its runs.

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { send } from '../api/client.ts';
import { applicationPath, applicationsPath } from '../api/paths.ts';
import type { Application, FilledRunbook, Runbook, RunbookRun } from '../api/types.ts';
import { ApplicationTabs } from '../applications/application-tabs.tsx';
import { SelectField } from '../ui/fields/field.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { Async } from '../ui/page/async.tsx';
import { Button } from '../ui/page/button.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { containerNames, RunbookSteps, releaseNames, Warnings } from './runbook-steps.tsx';

const route = getRouteApi('/tde/applications/$id/runbooks');

export const RunState = ({ run }: { run: RunbookRun }) =>
  run.outcome === null ? (
    <Badge tone="warn" icon="clock">
      {`${run.completedSteps.length} of ${run.steps.length} steps`}
    </Badge>
  ) : run.outcome === 'done' ? (
    <Badge tone="ok" icon="active">
      Finished
    </Badge>
  ) : (
    <Badge tone="quiet" icon="blocked">
      Abandoned
    </Badge>
  );

const Runs = ({ id }: { id: string }) => {
  const path = `${applicationPath(id)}/runbook-runs`;
  const list = useList<RunbookRun>(path);
  return (
    <Panel title="Runs" description="Who followed which runbook, and which steps they completed." flush>
      <ListView
        list={list}
        endless
        caption="Runs of runbooks"
        rowKey={(run) => run.id}
        columns={[
          {
            key: 'title',
            header: 'Runbook',
            names: true,
            cell: (run) => (
              <Link to="/tde/applications/$id/runbook-runs/$runId" params={{ id, runId: run.id }} className="link">
                {run.title}
              </Link>
            ),
          },
          { key: 'state', header: 'State', cell: (run) => <RunState run={run} /> },
          { key: 'release', header: 'Release', cell: (run) => releaseNames[run.release] },
          { key: 'started', header: 'Started', cell: (run) => <Time value={run.startedAt} /> },
          { key: 'by', header: 'Started by', cell: (run) => run.startedBy.name },
        ]}
        empty={
          <EmptyState title="No runs yet">
            Choose a runbook above and start it. Each step that you complete is saved, and audited with your name.
          </EmptyState>
        }
      />
    </Panel>
  );
};

export const ApplicationRunbooksPage = () => {
  const { id } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const open = useNavigate();
  const [starting, setStarting] = useState(false);
  const application = useQuery({
    queryKey: [applicationsPath, id],
    queryFn: ({ signal }) => send<Application>({ method: 'GET', path: applicationPath(id) }, { signal }),
  });
  const all = useQuery({
    queryKey: ['/api/runbooks'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly Runbook[] }>({ method: 'GET', path: '/api/runbooks' }, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  }).data?.items;
  const chosen = all?.find(({ name }) => name === search.runbook) ?? all?.[0];
  const release =
    chosen?.releases.find((each) => each === search.release) ?? chosen?.releases.at(-1) ?? ('19c' as const);
  const containers = release === '11g' || search.containers === 'non-cdb' ? 'non-cdb' : 'cdb';
  const path = `${applicationPath(id)}/runbooks/${chosen?.name ?? ''}`;
  const filled = useQuery({
    queryKey: [path, release, containers],
    queryFn: ({ signal }) => send<FilledRunbook>({ method: 'GET', path, query: { release, containers } }, { signal }),
    enabled: chosen !== undefined,
  });
  const change = (next: Partial<typeof search>) =>
    void navigate({ search: (previous) => ({ ...previous, ...next }), replace: true, resetScroll: false });
  return (
    <Page
      title={`Runbooks of ${application.data?.name ?? 'the application'}`}
      crumbs={[{ text: 'TDE applications', to: '/tde/applications' }]}
      actions={
        <Button
          needs="runbooks:run"
          tone="primary"
          disabled={filled.data === undefined}
          opens
          onClick={() => setStarting(true)}
        >
          Start runbook
        </Button>
      }
    >
      <ApplicationTabs id={id} />
      <Panel>
        <div className="grid gap-4 sm:grid-cols-2 lg:grid-cols-[2fr_1fr_1.2fr]">
          <SelectField
            label="Runbook"
            value={chosen?.name ?? ''}
            onValue={(runbook) => change({ runbook })}
            choices={(all ?? []).map(({ name, title }) => ({ value: name, text: title }))}
          />
          <SelectField
            label="Release of the database"
            value={release}
            onValue={(next) => change({ release: next })}
            choices={(['11g', '12c-18c', '19c'] as const).map((value) => ({
              value,
              text: releaseNames[value],
              disabled: chosen?.releases.includes(value) !== true,
            }))}
          />
          {chosen?.byContainers === true && release !== '11g' && (
            <SelectField
              label="Containers"
              value={containers}
              onValue={(next) => change({ containers: next })}
              choices={(['cdb', 'non-cdb'] as const).map((value) => ({ value, text: containerNames[value] }))}
            />
          )}
        </div>
      </Panel>
      <Async query={filled}>
        {(runbook) => (
          <>
            <Warnings warnings={runbook.warnings} />
            <Panel
              title={runbook.title}
              description={runbook.summary}
              actions={
                runbook.downtime && (
                  <Badge tone="warn" icon="clock">
                    Downtime
                  </Badge>
                )
              }
              flush
            >
              <RunbookSteps steps={runbook.steps} />
            </Panel>
          </>
        )}
      </Async>
      <Runs id={id} />
      {starting && chosen !== undefined && (
        <FormDialog<RunbookRun>
          title={`Start “${chosen.title}”?`}
          call={{
            method: 'POST',
            path: `${applicationPath(id)}/runbook-runs`,
            body: { runbook: chosen.name, release, containers },
          }}
          creates
          submitLabel="Start run"
          onCancel={() => setStarting(false)}
          onDone={(run) => open({ to: '/tde/applications/$id/runbook-runs/$runId', params: { id, runId: run.id } })}
        >
          {() => (
            <p>
              The run keeps the steps as they are shown now. Each completed step is recorded in the audit log of “
              {application.data?.name}” with your name. DKE changes nothing in the database: you carry out the steps.
            </p>
          )}
        </FormDialog>
      )}
    </Page>
  );
};
