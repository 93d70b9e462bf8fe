// Diagnostics of all endpoints: the latest result of each, with a link to its runs.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import { endpointPath, endpointsPath } from '../api/paths.ts';
import type { Diagnosis, Endpoint } from '../api/types.ts';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { type ListPage, ListView, useList } from '../ui/table/list-view.tsx';
import { firstOf, nameLayer, VerdictBadge } from './diagnosis.tsx';

const useLatest = (id: string): Diagnosis | null | undefined => {
  const path = `${endpointPath(id)}/diagnostics`;
  return useQuery({
    queryKey: [path, 'latest'],
    queryFn: ({ signal }) =>
      send<ListPage<Diagnosis>>({ method: 'GET', path, query: { limit: 1 } }, { signal }).then(
        ({ items }) => items[0] ?? null,
      ),
  }).data;
};

const Verdict = ({ id }: { id: string }) => {
  const latest = useLatest(id);
  if (latest === undefined) return null;
  return latest === null ? <span className="text-muted">not run yet</span> : <VerdictBadge diagnosis={latest} />;
};

const First = ({ id }: { id: string }) => {
  const latest = useLatest(id);
  const first = latest === undefined || latest === null ? undefined : firstOf(latest);
  return first === undefined ? <span className="text-muted">–</span> : `${nameLayer(first.layer)}: ${first.title}`;
};

const When = ({ id }: { id: string }) => <Time value={useLatest(id)?.at ?? null} distance absent="–" />;

export const DiagnosticsPage = () => {
  const list = useList<Endpoint>(endpointsPath);
  return (
    <Page
      title="Diagnostics"
      description="Every layer between a cloud and its key, in order. Start with the first failure."
    >
      <Panel flush>
        <ListView
          list={list}
          caption="Endpoints and their latest results"
          rowKey={({ id }) => id}
          columns={[
            {
              key: 'name',
              header: 'Endpoint',
              names: true,
              cell: ({ id, name }) => (
                <Link to="/endpoints/$id/diagnostics" params={{ id }} className="link">
                  {name}
                </Link>
              ),
            },
            {
              key: 'state',
              header: 'State',
              cell: ({ state, integrity }) => <StateBadge state={state} integrity={integrity} />,
            },
            { key: 'verdict', header: 'Result', cell: ({ id }) => <Verdict id={id} /> },
            { key: 'first', header: 'Start with', cell: ({ id }) => <First id={id} /> },
            { key: 'at', header: 'Last run', cell: ({ id }) => <When id={id} /> },
          ]}
          empty={
            <EmptyState title="No endpoints to check">
              Create a key store endpoint. Its diagnostics then show why a cloud could not reach it.
            </EmptyState>
          }
        />
      </Panel>
    </Page>
  );
};
