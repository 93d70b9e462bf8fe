// Diagnostics of one endpoint: a run now, on request compared with the cloud's configuration, and
// earlier runs.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { type ApiCall, ApiProblem, send, sendForLines } from '../api/client.ts';
import { endpointPath, endpointsPath } from '../api/paths.ts';
import type { Diagnosis, DiagnosisEvent, Endpoint } from '../api/types.ts';
import { TextField } from '../ui/fields/field.tsx';
import { ApiCallView } from '../ui/forms/api-call.tsx';
import { useAnnounce } from '../ui/page/announce.tsx';
import { Button } from '../ui/page/button.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState, ProblemView } from '../ui/page/problem-view.tsx';
import { StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import type { Column } from '../ui/table/data-table.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import {
  DiagnosisView,
  firstOf,
  type LiveDiagnosis,
  LiveDiagnosisView,
  nameLayer,
  VerdictBadge,
} from './diagnosis.tsx';
import { EndpointTabs } from './endpoint-tabs.tsx';

const route = getRouteApi('/endpoints/$id/diagnostics');

const cloudFields = [
  ['uriEndpoint', 'XksProxyUriEndpoint', 'https://keys.example.com'],
  ['uriPath', 'XksProxyUriPath', '/xks/…/kms/xks/v1'],
  ['accessKeyId', 'AccessKeyId', ''],
  ['externalKeyId', 'XksKeyId', ''],
] as const;
const diagnosticsPath = (id: string): string => `${endpointPath(id)}/diagnostics`;
type DiagnosisList = ReturnType<typeof useList<Diagnosis>>;
type Cloud = { readonly [field in (typeof cloudFields)[number][0]]?: string };

const notBegun: LiveDiagnosis = { checks: [], results: [] };

/** Runs the checks now and reports each finished one. Rejects when the run could not finish. */
const follow = async (call: ApiCall, tell: (live: LiveDiagnosis) => void): Promise<Diagnosis> => {
  let live = notBegun;
  let last: DiagnosisEvent | undefined;
  await sendForLines<DiagnosisEvent>(call, (event) => {
    last = event;
    if (event.kind === 'started') live = { ...live, checks: event.checks };
    if (event.kind === 'ended') live = { ...live, results: [...live.results, event.result] };
    tell(live);
  });
  if (last?.kind === 'kept') return last.diagnosis;
  throw new ApiProblem({
    status: 0,
    code: 'run-stopped',
    title: 'The run was interrupted',
    detail: last?.kind === 'stopped' ? last.detail : 'The response of the service was incomplete.',
    hint: 'Run it again. The completed checks are below.',
  });
};

/** The results of a run, or the results so far of a running one. */
const ResultsPanel = ({
  name,
  live,
  shown,
  newest,
  isRunning,
  list,
}: {
  name: string;
  live: LiveDiagnosis | null;
  shown: Diagnosis | null;
  newest: Diagnosis | undefined;
  isRunning: boolean;
  list: DiagnosisList;
}) => {
  if (live !== null)
    return (
      <Panel title={isRunning ? 'Running' : 'Completed checks'}>
        <LiveDiagnosisView live={live} />
      </Panel>
    );
  if (shown === null)
    return (
      <Panel title="Not run yet">
        {list.error !== null ? (
          <ProblemView error={list.error} onRetry={() => void list.refetch()} />
        ) : (
          <EmptyState title="Find the first failure">
            A run checks every layer between the cloud and its key, in order. It shows the first failure and how to fix
            it.
          </EmptyState>
        )}
      </Panel>
    );
  return (
    <Panel
      title="Results"
      description={
        <>
          <Time value={shown.at} seconds />
          {newest !== undefined && shown.id !== newest.id && ', an earlier run'}
        </>
      }
      actions={<VerdictBadge diagnosis={shown} />}
    >
      <DiagnosisView name={name} diagnosis={shown} />
    </Panel>
  );
};

const ComparePanel = ({ cloud, onCloud, call }: { cloud: Cloud; onCloud: (cloud: Cloud) => void; call: ApiCall }) => (
  <Panel
    title="Compare with the cloud"
    description="The configuration of the external key store in the cloud. Each difference is reported. These values are not stored."
  >
    <div className="space-y-4">
      <div className="grid gap-4 sm:grid-cols-2">
        {cloudFields.map(([field, label, placeholder]) => (
          <TextField
            key={field}
            label={label}
            optional
            mono
            placeholder={placeholder}
            value={cloud[field] ?? ''}
            onValue={(value) => onCloud({ ...cloud, [field]: value })}
          />
        ))}
      </div>
      <ApiCallView call={call} />
    </div>
  </Panel>
);

const runColumns = (show: (diagnosis: Diagnosis) => void): readonly Column<Diagnosis>[] => [
  { key: 'at', header: 'Time', names: true, cell: (diagnosis) => <Time value={diagnosis.at} seconds /> },
  { key: 'verdict', header: 'Result', cell: (diagnosis) => <VerdictBadge diagnosis={diagnosis} /> },
  {
    key: 'first',
    header: 'Start with',
    cell: (diagnosis) => {
      const first = firstOf(diagnosis);
      return first === undefined ? '–' : `${nameLayer(first.layer)}: ${first.title}`;
    },
  },
  {
    key: 'actions',
    header: 'Actions',
    end: true,
    actions: true,
    cell: (diagnosis) => (
      <Button aria-label={`Show the run of ${diagnosis.at}`} onClick={() => show(diagnosis)}>
        Show
      </Button>
    ),
  },
];

const bodyOf = (cloud: Cloud, callerTime?: string): object => {
  const given = Object.fromEntries(Object.entries(cloud).filter(([, value]) => value !== ''));
  return {
    ...(callerTime === undefined ? {} : { callerTime }),
    ...(Object.keys(given).length === 0 ? {} : { cloud: given }),
  };
};

/** A run of the checks, and the one that the page shows. */
const useRuns = (id: string, cloud: Cloud) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const path = diagnosticsPath(id);
  const [shown, setShown] = useState<Diagnosis | null>(null);
  const [live, setLive] = useState<LiveDiagnosis | null>(null);
  const list = useList<Diagnosis>(path);
  const newest = list.data?.pages[0]?.items[0];
  useEffect(() => {
    if (shown === null && newest !== undefined) setShown(newest);
  }, [shown, newest]);
  const run = useMutation({
    // The clock of this browser is compared with the service's.
    mutationFn: () => {
      setLive(notBegun);
      return follow({ method: 'POST', path: `${path}/follow`, body: bodyOf(cloud, new Date().toISOString()) }, setLive);
    },
    onSuccess: async (made) => {
      setShown(made);
      setLive(null);
      const first = firstOf(made);
      announce(first === undefined ? 'All checks passed' : `Start with ${nameLayer(first.layer)}: ${first.title}`);
      await client.invalidateQueries({ queryKey: [path] });
    },
  });
  const show = (diagnosis: Diagnosis): void => {
    setLive(null);
    setShown(diagnosis);
    document.querySelector('#main h1')?.scrollIntoView();
  };
  return { list, newest, live, shown, run, show };
};

export const EndpointDiagnosticsPage = () => {
  const { id } = route.useParams();
  const [cloud, setCloud] = useState<Cloud>({});
  const endpoint = useQuery({
    queryKey: [endpointsPath, id],
    queryFn: ({ signal }) => send<Endpoint>({ method: 'GET', path: endpointPath(id) }, { signal }),
  });
  const { list, newest, live, shown, run, show } = useRuns(id, cloud);
  return (
    <Page
      title={`Diagnostics of ${endpoint.data?.name ?? 'the endpoint'}`}
      crumbs={[{ text: 'Key store endpoints', to: '/endpoints' }]}
      badge={
        endpoint.data !== undefined && <StateBadge state={endpoint.data.state} integrity={endpoint.data.integrity} />
      }
      actions={
        <Button needs="diagnostics:run" tone="primary" icon="refresh" busy={run.isPending} onClick={() => run.mutate()}>
          Run now
        </Button>
      }
    >
      <EndpointTabs id={id} />
      {run.error !== null && <ProblemView error={run.error} onRetry={() => run.mutate()} />}
      <ResultsPanel
        name={endpoint.data?.name ?? 'Endpoint'}
        {...{ live, shown, newest, list }}
        isRunning={run.isPending}
      />
      <ComparePanel
        cloud={cloud}
        onCloud={setCloud}
        call={{ method: 'POST', path: diagnosticsPath(id), body: bodyOf(cloud) }}
      />
      <Panel title="Earlier runs" description="Kept for 90 days." flush>
        <ListView
          list={list}
          endless
          caption="Earlier runs"
          rowKey={(diagnosis) => diagnosis.id}
          columns={runColumns(show)}
          empty={<EmptyState title="No runs yet">Each run is kept here for comparison.</EmptyState>}
        />
      </Panel>
    </Page>
  );
};
