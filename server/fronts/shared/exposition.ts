// Prometheus' text format, version 0.0.4.

import type { MetricFamily, MetricSample } from '../../domain/metrics.ts';

export const expositionType = 'text/plain; version=0.0.4; charset=utf-8';

const escapeHelp = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
const escapeLabel = (text: string): string => escapeHelp(text).replaceAll('"', '\\"');
const writeLabels = (labels: Readonly<Record<string, string>>): string => {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
};

const writeSample = (name: string, { labels, value }: MetricSample): string => {
  const plain = writeLabels(labels);
  if (typeof value === 'number') return `${name}${plain} ${value}\n`;
  const { buckets, sum, count } = value;
  const lines = [...buckets.map((bucket) => [String(bucket.bound), bucket.count]), ['+Inf', count]].map(
    ([le, most]) => `${name}_bucket${writeLabels({ ...labels, le: String(le) })} ${most}\n`,
  );
  return `${lines.join('')}${name}_sum${plain} ${sum}\n${name}_count${plain} ${count}\n`;
};

export const formatMetrics = (families: readonly MetricFamily[]): string =>
  families
    .map(({ name, type, help, samples }) => {
      const lines = samples.map((sample) => writeSample(name, sample));
      return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join('')}`;
    })
    .join('');
