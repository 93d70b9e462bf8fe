// Notifications as the overview and the page of notifications show them.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Notification } from '../api/types.ts';
import { buttonClass } from '../ui/page/button.tsx';
import { Icon, type IconName } from '../ui/page/icon.tsx';
import { Panel } from '../ui/page/page.tsx';
import { ProblemView } from '../ui/page/problem-view.tsx';
import { capital } from '../ui/page/sentence.ts';
import { Badge, type StateTone } from '../ui/page/state-badge.tsx';
import { Time, withOwnTime } from '../ui/page/time.tsx';
import { needsToday, waitingQuery } from './today.ts';

const shownHere = 8;

const looks: Readonly<Record<Notification['severity'], readonly [StateTone, IconName, string]>> = {
  critical: ['danger', 'warning', 'Critical'],
  high: ['danger', 'warning', 'High'],
  medium: ['warn', 'warning', 'Medium'],
  low: ['quiet', 'info', 'Low'],
  info: ['quiet', 'info', 'Notice'],
};

export const SeverityBadge = ({ severity }: { severity: Notification['severity'] }) => {
  const [tone, icon, word] = looks[severity];
  return (
    <Badge tone={tone} icon={icon}>
      {word}
    </Badge>
  );
};

/** When it starts to cause harm. */
export const Harm = ({ harmAt }: Pick<Notification, 'harmAt'>) =>
  Date.parse(harmAt) <= Date.now() ? <span className="font-medium">now</span> : <Time value={harmAt} distance />;

/** A link to the page where the user can act. */
export const ActionLink = ({ page, action }: Pick<Notification, 'page' | 'action'>) => {
  const [to = '/', search = ''] = page.split('?');
  return (
    <Link to={to} search={Object.fromEntries(new URLSearchParams(search))} className={buttonClass()}>
      {action}
    </Link>
  );
};

/** Shows a command exactly as it is typed. */
const shown = (text: string): string => (text.startsWith('dke ') ? text : capital(text));

export const NotificationText = ({ notification: { text, fix } }: { notification: Notification }) => (
  <div className="min-w-0">
    <p className="font-medium wrap-anywhere">{withOwnTime(shown(text))}</p>
    <p className="font-normal wrap-anywhere text-muted">{shown(fix)}</p>
  </div>
);

const Row = ({ item }: { item: Notification }) => (
  <li className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3">
    <span className="w-24 shrink-0">
      <SeverityBadge severity={item.severity} />
    </span>
    <div className="min-w-0 flex-1 basis-64">
      <NotificationText notification={item} />
    </div>
    <span className="text-muted">
      <Harm harmAt={item.harmAt} />
    </span>
    <ActionLink page={item.page} action={item.action} />
  </li>
);

export const TodayPanel = () => {
  const query = useQuery(waitingQuery);
  const items = query.data?.items.filter((item) => needsToday(item, Date.now()));
  return (
    <Panel
      title="Needs attention today"
      description="Most urgent first. Acknowledged items are hidden."
      actions={
        <Link to="/notifications" className="link">
          All notifications
        </Link>
      }
      flush
    >
      {items === undefined ? (
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
      ) : items.length === 0 ? (
        <p className="flex items-center gap-3 px-4 py-5">
          <Icon name="active" className="size-5 text-ok" />
          <span>
            <span className="font-medium">No notifications.</span>{' '}
            <span className="text-muted">
              Certificates, rotations, endpoints, key stores, sinks and tokens are checked every minute.
            </span>
          </span>
        </p>
      ) : (
        <>
          <ul className="divide-y divide-line">
            {items.slice(0, shownHere).map((item) => (
              <Row key={item.id} item={item} />
            ))}
          </ul>
          {items.length > shownHere && (
            <p className="border-t border-line px-4 py-2.5">
              <Link to="/notifications" search={{ acknowledged: 'false' }} className="link">
                {items.length - shownHere} more
              </Link>
            </p>
          )}
        </>
      )}
    </Panel>
  );
};
