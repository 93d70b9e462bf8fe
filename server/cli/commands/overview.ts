// `dke latency`, `dke settings`, `dke status`: what the first page of the console shows, and what
// the service is set to.

import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import { nounOf } from '../service/command-rows.ts';

const ms = (value: number | null): string | null => (value === null ? null : value.toFixed(1));

export const addStatus = (program: Command): void => {
  nounOf(program).row(operations.status.get, 'status', 'Shows version, health, storage, erasure and locked memory.');
};

export const addJobs = (program: Command): void => {
  nounOf(program).row(
    operations.status.jobs,
    'jobs',
    'Lists the scheduled jobs: the last run, its failure, the next run.',
    {
      columns: {
        NAME: 'name',
        NODE: 'node',
        'LAST RUN': 'startedAt',
        MS: 'durationMs',
        SUCCEEDED: 'succeededAt',
        NEXT: 'nextAt',
        FAILURE: (row) => row.failure?.message ?? '',
      },
    },
  );
};

export const addLatency = (program: Command): void => {
  nounOf(program).row(
    operations.overview.latency,
    'latency [endpoint]',
    'Shows the latency of one endpoint, or of all endpoints together.',
    {
      options: { '--span <span>': { help: 'time range', choices: ['hour', 'day'], default: 'hour' } },
      columns: {
        AT: 'at',
        REQUESTS: 'requests',
        ERRORS: 'errors',
        'P50 MS': (row) => ms(row.p50Ms),
        'P99 MS': (row) => ms(row.p99Ms),
        'OVER 100': 'over100Ms',
        'OVER 250': 'over250Ms',
      },
    },
  );
};

export const addSettings = (program: Command): void => {
  nounOf(program).row(
    operations.settings.get,
    'settings',
    'Shows each setting of the service and where it comes from.',
    {
      columns: { NAME: 'name', VALUE: 'value', FROM: 'origin' },
    },
  );
};
