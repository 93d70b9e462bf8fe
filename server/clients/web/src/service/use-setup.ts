// The setup of the service as the overview and its own page read it.

import { queryOptions } from '@tanstack/react-query';
import { send } from '../api/client.ts';
import { setupPath } from '../api/paths.ts';
import type { Setup } from '../api/types.ts';

export const setupQuery = queryOptions({
  queryKey: [setupPath],
  queryFn: ({ signal }) => send<Setup>({ method: 'GET', path: setupPath }, { signal }),
});

export const stepTitles = {
  'root-protection': 'Encrypt the root key',
  'root-key': 'Back up the root key',
  administrator: 'Create an administrator',
  'recovery-codes': 'Create recovery codes',
  'first-token': 'Revoke lasting tokens',
  'audit-sinks': 'Forward the audit log',
  'recovery-key': 'Create a recovery key',
  'snapshot-schedule': 'Schedule snapshots',
  snapshot: 'Create and open the first snapshot',
} as const satisfies Record<Setup['steps'][number]['step'], string>;
