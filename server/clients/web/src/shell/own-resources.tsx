// The way to single resources for those whose role is for these only: they cannot open the lists.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import { applicationPath, endpointPath } from '../api/paths.ts';
import { sessionQuery } from '../session/current-session.ts';
import { Icon } from '../ui/page/icon.tsx';

const kinds = {
  application: { to: '/tde/applications/$id', path: applicationPath, icon: 'application' },
  endpoint: { to: '/endpoints/$id', path: endpointPath, icon: 'endpoint' },
} as const;

const Own = ({
  kind,
  id,
  onNavigate,
}: {
  kind: keyof typeof kinds;
  id: string;
  onNavigate?: (() => void) | undefined;
}) => {
  const { to, path, icon } = kinds[kind];
  const named = useQuery({
    queryKey: [path(id)],
    queryFn: ({ signal }) => send<{ readonly name: string }>({ method: 'GET', path: path(id) }, { signal }),
  }).data;
  return (
    <li>
      <Link
        to={to}
        params={{ id }}
        {...(onNavigate === undefined ? {} : { onClick: onNavigate })}
        className="flex min-h-9 items-center gap-2.5 rounded-md px-2.5 py-1.5 wrap-anywhere transition-colors"
        activeProps={{ className: 'bg-accent-soft text-accent font-semibold' }}
        inactiveProps={{ className: 'text-ink hover:bg-hover' }}
      >
        <Icon name={icon} className="size-5" />
        {named?.name ?? id}
      </Link>
    </li>
  );
};

export const OwnResources = ({ onNavigate }: { onNavigate?: (() => void) | undefined }) => {
  const rights = useQuery({ ...sessionQuery, enabled: false }).data?.permissions ?? [];
  const own = new Map(rights.flatMap(({ scope }) => (scope === null ? [] : [[`${scope.kind} ${scope.id}`, scope]])));
  if (own.size === 0) return null;
  return (
    <div>
      <p className="mb-1 px-2.5 text-xs font-medium text-muted">Your resources</p>
      <ul className="space-y-0.5">
        {[...own].map(([key, { kind, id }]) => (
          <Own key={key} kind={kind} id={id} onNavigate={onNavigate} />
        ))}
      </ul>
    </div>
  );
};
