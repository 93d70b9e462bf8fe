// The part of the inbox that needs attention today: what does harm now or soon, and what is severe
// enough to be planned for. The bell counts it, the overview shows it.

import { queryOptions } from '@tanstack/react-query';
import { send } from '../api/client.ts';
import { notificationsPath } from '../api/paths.ts';
import type { Notification } from '../api/types.ts';

/** The server's limit for one answer. */
const most = 1000;
const soonMs = 14 * 86_400_000;

export const needsToday = ({ severity, harmAt }: Pick<Notification, 'severity' | 'harmAt'>, now: number): boolean =>
  (severity !== 'info' && severity !== 'low') || Date.parse(harmAt) - now < soonMs;

/** Notifications that are not acknowledged, most urgent first. */
export const waitingQuery = queryOptions({
  queryKey: [notificationsPath, 'waiting'],
  queryFn: ({ signal }) =>
    send<{ readonly items: readonly Notification[] }>(
      { method: 'GET', path: notificationsPath, query: { acknowledged: false, limit: most } },
      { signal },
    ),
  refetchInterval: 30_000,
  retry: false,
});
