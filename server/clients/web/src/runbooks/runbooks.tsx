// All runbooks, and the application to follow one for.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { send } from '../api/client.ts';
import { applicationsPath } from '../api/paths.ts';
import type { Application, Runbook } from '../api/types.ts';
import { useEvery } from '../session/every.ts';
import { PickField } from '../ui/fields/pick-field.tsx';
import { Async } from '../ui/page/async.tsx';
import { Icon } from '../ui/page/icon.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { releaseNames } from './runbook-steps.tsx';

const Runbooks = ({ items, applicationId }: { items: readonly Runbook[]; applicationId: string }) => (
  <ul className="grid gap-3 md:grid-cols-2">
    {items.map((runbook) => (
      <li key={runbook.name} className="relative rounded-lg border border-line p-4 hover:bg-hover">
        <h2 className="flex flex-wrap items-center gap-2 font-semibold">
          {applicationId === '' ? (
            runbook.title
          ) : (
            <Link
              to="/tde/applications/$id/runbooks"
              params={{ id: applicationId }}
              search={{ runbook: runbook.name }}
              className="after:absolute after:inset-0 after:rounded-lg"
            >
              {runbook.title}
            </Link>
          )}
          {runbook.downtime && (
            <Badge tone="warn" icon="clock">
              Downtime
            </Badge>
          )}
        </h2>
        <p className="mt-1 text-muted">{runbook.summary}</p>
        <p className="mt-2 text-xs text-muted">
          {runbook.releases.map((release) => releaseNames[release]).join(' · ')}
          {runbook.byContainers && ' · with and without containers'}
        </p>
      </li>
    ))}
  </ul>
);

export const RunbooksPage = () => {
  const [chosen, setChosen] = useState('');
  const applications = useEvery<Application>(applicationsPath, 'applications:read');
  const query = useQuery({
    queryKey: ['/api/runbooks'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly Runbook[] }>({ method: 'GET', path: '/api/runbooks' }, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const items = applications ?? [];
  const applicationId = chosen === '' ? (items[0]?.id ?? '') : chosen;
  return (
    <Page
      title="Runbooks"
      description="Steps at the database for each operation that moves key material, with the values of your application. Each completed step is audited."
    >
      <Panel>
        <div className="space-y-5">
          {applications !== undefined && items.length === 0 ? (
            <EmptyState title="No applications yet">
              <Link to="/tde/applications" className="link">
                Register a TDE application
              </Link>{' '}
              first. Runbooks contain its values.
            </EmptyState>
          ) : (
            <div className="flex flex-wrap items-end gap-4">
              <div className="w-full max-w-sm">
                <PickField
                  label="Application"
                  value={applicationId}
                  onValue={setChosen}
                  choices={items.map(({ id, name }) => ({ value: id, text: name }))}
                />
              </div>
              <p className="flex items-center gap-2 pb-2 text-muted">
                <Icon name="info" /> Releases 11g R2, 12c to 18c, 19c and later
              </p>
            </div>
          )}
          <Async query={query}>{(data) => <Runbooks items={data.items} applicationId={applicationId} />}</Async>
        </div>
      </Panel>
    </Page>
  );
};
