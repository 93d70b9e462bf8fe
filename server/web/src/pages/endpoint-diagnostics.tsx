// Diagnostics of one endpoint: a run now, with what the cloud is configured with when that is to be compared, and earlier runs.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { type ApiCall, send } from '../api/client.ts';
import type { Diagnosis, Endpoint } from '../api/types.ts';
import { useAnnounce } from '../components/announce.tsx';
import { ApiCallView } from '../components/api-call.tsx';
import { Button } from '../components/button.tsx';
import { DiagnosisView, firstOf, nameLayer, VerdictBadge } from '../components/diagnosis.tsx';
import { EndpointTabs } from '../components/endpoint-tabs.tsx';
import { endpointPath, endpointsPath } from '../components/endpoints.ts';
import { TextField } from '../components/field.tsx';
import { Icon } from '../components/icon.tsx';
import { ListView, useList } from '../components/list-view.tsx';
import { Page, Panel } from '../components/page.tsx';
import { EmptyState, ProblemView } from '../components/problem-view.tsx';
import { StateBadge } from '../components/state-badge.tsx';
import { Time } from '../components/time.tsx';

const route = getRouteApi('/endpoints/$id/diagnostics');

const cloudFields = [
  ['uriEndpoint', 'XksProxyUriEndpoint', 'https://keys.example.com'],
  ['uriPath', 'XksProxyUriPath', '/xks/…/kms/xks/v1'],
  ['accessKeyId', 'AccessKeyId', ''],
  ['externalKeyId', 'XksKeyId', ''],
] as const;
type Cloud = { readonly [field in (typeof cloudFields)[number][0]]?: string };

const layers = ['connection', 'key', 'network', 'dns', 'tls', 'health', 'sigv4', 'activity'];

const Running = () => (
  <div role="status" className="space-y-3">
    <p className="font-medium">Running: every layer from here to the cloud's side, a few seconds at most…</p>
    <ul className="flex flex-wrap gap-2">
      {layers.map((layer) => (
        <li key={layer} className="flex items-center gap-1.5 rounded-full bg-quiet-soft px-2.5 py-1 text-xs text-muted">
          <Icon name="clock" className="size-3.5 motion-safe:animate-pulse" />
          {nameLayer(layer)}
        </li>
      ))}
    </ul>
  </div>
);

export const EndpointDiagnosticsPage = () => {
  const { id } = route.useParams();
  const client = useQueryClient();
  const announce = useAnnounce();
  const [cloud, setCloud] = useState<Cloud>({});
  const [shown, setShown] = useState<Diagnosis | null>(null);
  const path = `${endpointPath(id)}/diagnostics`;
  const endpoint = useQuery({
    queryKey: [endpointsPath, id],
    queryFn: ({ signal }) => send<Endpoint>({ method: 'GET', path: endpointPath(id) }, { signal }),
  });
  const list = useList<Diagnosis>(path);
  const newest = list.data?.pages[0]?.items[0];
  useEffect(() => {
    if (shown === null && newest !== undefined) setShown(newest);
  }, [shown, newest]);
  const given = Object.fromEntries(Object.entries(cloud).filter(([, value]) => value !== ''));
  const call = (callerTime?: string): ApiCall => ({
    method: 'POST',
    path,
    body: {
      ...(callerTime === undefined ? {} : { callerTime }),
      ...(Object.keys(given).length === 0 ? {} : { cloud: given }),
    },
  });
  const run = useMutation({
    // The clock of this browser is compared with the service's.
    mutationFn: () => send<Diagnosis>(call(new Date().toISOString()), { idempotencyKey: crypto.randomUUID() }),
    onSuccess: async (made) => {
      setShown(made);
      const first = firstOf(made);
      announce(first === undefined ? 'Every layer is well' : `Begin with ${nameLayer(first.layer)}: ${first.title}`);
      await client.invalidateQueries({ queryKey: [path] });
    },
  });
  const name = endpoint.data?.name ?? 'Endpoint';
  return (
    <Page
      title={`Diagnostics of ${endpoint.data?.name ?? 'the endpoint'}`}
      crumbs={[{ text: 'Key store endpoints', to: '/endpoints' }]}
      badge={
        endpoint.data !== undefined && <StateBadge state={endpoint.data.state} integrity={endpoint.data.integrity} />
      }
      actions={
        <Button tone="primary" icon="refresh" busy={run.isPending} onClick={() => run.mutate()}>
          Run now
        </Button>
      }
    >
      <EndpointTabs id={id} />
      {run.error !== null && <ProblemView error={run.error} onRetry={() => run.mutate()} />}
      <Panel
        title={run.isPending ? 'Running' : shown === null ? 'Not run yet' : 'What was found'}
        description={
          !run.isPending && shown !== null ? (
            <>
              <Time value={shown.at} seconds />
              {newest !== undefined && shown.id !== newest.id && ', an earlier run'}
            </>
          ) : undefined
        }
        actions={!run.isPending && shown !== null && <VerdictBadge diagnosis={shown} />}
      >
        {run.isPending ? (
          <Running />
        ) : shown === null ? (
          list.error !== null ? (
            <ProblemView error={list.error} onRetry={() => void list.refetch()} />
          ) : (
            <EmptyState title="Where does it break?">
              A run tries every layer between the cloud and its key, in the order in which one rests on another, and
              names the first that fails with what helps.
            </EmptyState>
          )
        ) : (
          <DiagnosisView name={name} diagnosis={shown} />
        )}
      </Panel>
      <Panel
        title="Compare with the cloud"
        description="What the external key store is configured with there. A difference in one letter is named. Nothing of it is kept."
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
                onValue={(value) => setCloud({ ...cloud, [field]: value })}
              />
            ))}
          </div>
          <ApiCallView call={call()} />
        </div>
      </Panel>
      <Panel title="Earlier runs" description="Kept for 90 days." flush>
        <ListView
          list={list}
          endless
          caption="Earlier runs"
          rowKey={(diagnosis) => diagnosis.id}
          columns={[
            { key: 'at', header: 'Time', names: true, cell: (diagnosis) => <Time value={diagnosis.at} seconds /> },
            { key: 'verdict', header: 'Verdict', cell: (diagnosis) => <VerdictBadge diagnosis={diagnosis} /> },
            {
              key: 'first',
              header: 'First',
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
                <Button
                  aria-label={`Show the run of ${diagnosis.at}`}
                  onClick={() => {
                    setShown(diagnosis);
                    document.querySelector('#main h1')?.scrollIntoView();
                  }}
                >
                  Show
                </Button>
              ),
            },
          ]}
          empty={<EmptyState title="No run yet">Each run is kept here, to compare with the next one.</EmptyState>}
        />
      </Panel>
    </Page>
  );
};
