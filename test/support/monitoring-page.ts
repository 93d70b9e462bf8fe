// The table of metrics in docs/monitoring.md, from the table that the service has. Run on its own
// it prints it.

import { type Metric, metrics } from '../../server/domain/metrics.ts';

export const metricsTable = (): string =>
  [
    '| metric | type | labels | what it says |',
    '|---|---|---|---|',
    ...Object.entries<Metric>(metrics).map(
      ([name, { type, labels, help }]) =>
        `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help.replaceAll('|', '\\|')} |`,
    ),
  ].join('\n');

if (import.meta.main) console.log(metricsTable());
