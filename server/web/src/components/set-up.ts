// The set-up of the service as the overview and its own page read it.

import { queryOptions } from '@tanstack/react-query';
import { send } from '../api/client.ts';
import type { Setup } from '../api/types.ts';

export const setupPath = '/api/setup';
export const setupQuery = queryOptions({
  queryKey: [setupPath],
  queryFn: ({ signal }) => send<Setup>({ method: 'GET', path: setupPath }, { signal }),
});

export const stepTitles = {
  'root-key': 'Keep the root key safe',
  administrator: 'Make yourself an administrator',
  'audit-sinks': 'Send the audit log elsewhere too',
  'recovery-key': 'Make a recovery key',
  snapshot: 'Make the first snapshot and open it',
} as const satisfies Record<Setup['steps'][number]['step'], string>;
