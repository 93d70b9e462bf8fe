// What needs somebody today: the soonest harm first, each row with one thing to do.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import type { Attention } from '../api/types.ts';
import { buttonClass } from './button.tsx';
import { Icon, type IconName } from './icon.tsx';
import { Panel } from './page.tsx';
import { ProblemView } from './problem-view.tsx';
import { Badge, type StateTone } from './state-badge.tsx';
import { Time } from './time.tsx';

const looks: Readonly<Record<Attention['severity'], readonly [StateTone, IconName, string]>> = {
  critical: ['danger', 'warning', 'Critical'],
  warning: ['warn', 'warning', 'Warning'],
  notice: ['quiet', 'info', 'Notice'],
};

const Row = ({ item }: { item: Attention }) => {
  const [tone, icon, word] = looks[item.severity];
  const [to = '/', search = ''] = item.page.split('?');
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3">
      <span className="w-24 shrink-0">
        <Badge tone={tone} icon={icon}>
          {word}
        </Badge>
      </span>
      <div className="min-w-0 flex-1 basis-64">
        <p className="font-medium wrap-anywhere">{item.title}</p>
        <p className="wrap-anywhere text-muted">{item.detail}</p>
      </div>
      <span className="text-muted">
        {item.dueAt === null ? <span className="font-medium text-ink">now</span> : <Time value={item.dueAt} distance />}
      </span>
      <Link to={to} search={Object.fromEntries(new URLSearchParams(search))} className={buttonClass()}>
        {item.action}
      </Link>
    </li>
  );
};

export const AttentionPanel = () => {
  const query = useQuery({
    queryKey: ['/api/attention'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly Attention[] }>({ method: 'GET', path: '/api/attention' }, { signal }),
    refetchInterval: 30_000,
  });
  return (
    <Panel title="What needs you today" description="The soonest harm first." flush>
      {query.data === undefined ? (
        query.error === null ? (
          <div role="status" aria-label="Loading" className="space-y-3 p-4">
            <div className="skeleton h-4 w-2/3" />
            <div className="skeleton h-4 w-1/2" />
          </div>
        ) : (
          <div className="p-4">
            <ProblemView error={query.error} onRetry={() => void query.refetch()} />
          </div>
        )
      ) : query.data.items.length === 0 ? (
        <p className="flex items-center gap-3 px-4 py-5">
          <Icon name="active" className="size-5 text-ok" />
          <span>
            <span className="font-medium">Nothing.</span>{' '}
            <span className="text-muted">
              Certificates, rotations, endpoints, key stores, sinks and tokens are looked at every half minute.
            </span>
          </span>
        </p>
      ) : (
        <ul className="divide-y divide-line">
          {query.data.items.map((item) => (
            <Row key={`${item.kind} ${item.subject?.id ?? item.title} ${item.dueAt ?? ''}`} item={item} />
          ))}
        </ul>
      )}
    </Panel>
  );
};
