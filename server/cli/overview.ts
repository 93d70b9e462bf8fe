// `dke latency`, `dke settings`: what the first page of the console shows, and what the service is set to.

import { type Command, Option } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action } from './caller.ts';

const ms = (value: number | null): string | null => (value === null ? null : value.toFixed(1));

export const addOverview = (program: Command): void => {
  program
    .command('latency [endpoint]')
    .summary('how long requests of key store endpoints took')
    .description('Shows the latency of an endpoint, or of all of them together.')
    .addOption(new Option('--span <span>', 'how far back').choices(['hour', 'day']).default('hour'))
    .action(
      action<{ readonly span: 'hour' | 'day' }>(async ({ call, output, resolve }, { span }, endpoint) => {
        const endpointId = endpoint === undefined ? undefined : await resolve('endpoint', endpoint);
        const query = { span, ...(endpointId === undefined ? {} : { endpointId }) };
        output.list(await call(apiRoutes.overview.latency, { query }), [
          ['AT', (row) => row.at],
          ['REQUESTS', (row) => row.requests],
          ['ERRORS', (row) => row.errors],
          ['P50 MS', (row) => ms(row.p50Ms)],
          ['P99 MS', (row) => ms(row.p99Ms)],
          ['OVER 100', (row) => row.overSlow],
          ['OVER 250', (row) => row.overLost],
        ]);
      }),
    );

  program
    .command('settings')
    .summary('the settings of the service')
    .description('Shows each setting of the service and where it comes from.')
    .action(
      action(async ({ call, output }) => {
        output.list(await call(apiRoutes.settings.get), [
          ['NAME', (row) => row.name],
          ['VALUE', (row) => row.value],
          ['FROM', (row) => row.origin],
        ]);
      }),
    );
};
