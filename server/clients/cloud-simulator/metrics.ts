// What the cloud measures of proxies: XksProxyLatency of Amazon CloudWatch (namespace AWS/KMS,
// dimension CustomKeyStoreId), as GetMetricStatistics answers it. The latest calls of each store
// are kept.

import { type Input, invalid, member, text } from './input.ts';

interface Sample {
  readonly at: number;
  readonly ms: number;
}

export interface LatencyMetric {
  record(storeId: string, ms: number): void;
  /** GetMetricStatistics: Average, Maximum, Minimum, Sum, SampleCount for each period. */
  statistics(input: Input): object;
}

const mostSamples = 10_000;
const statisticNames = ['Average', 'Maximum', 'Minimum', 'Sum', 'SampleCount'] as const;

const seconds = (input: Input, name: string): number => {
  const value = input[name];
  if (typeof value !== 'number' || !Number.isFinite(value)) throw invalid(`${name} must be a number`);
  return value;
};

const summarize = (samples: readonly Sample[]): Readonly<Record<(typeof statisticNames)[number], number>> => {
  const values = samples.map(({ ms }) => ms);
  const sum = values.reduce((total, value) => total + value, 0);
  return {
    Average: sum / values.length,
    Maximum: Math.max(...values),
    Minimum: Math.min(...values),
    Sum: sum,
    SampleCount: values.length,
  };
};

/** `clock`: milliseconds since 1970. */
export const createLatencyMetric = (clock: () => number): LatencyMetric => {
  const samples = new Map<string, Sample[]>();
  return {
    record: (storeId, ms) => {
      const own = samples.get(storeId) ?? [];
      own.push({ at: clock(), ms });
      if (own.length > mostSamples) own.shift();
      samples.set(storeId, own);
    },
    statistics: (input) => {
      if (text(input, 'Namespace') !== 'AWS/KMS' || text(input, 'MetricName') !== 'XksProxyLatency')
        throw invalid('this simulation has only the metric AWS/KMS XksProxyLatency');
      const [dimension] = Array.isArray(input.Dimensions) ? (input.Dimensions as readonly Input[]) : [];
      if (dimension === undefined || text(dimension, 'Name') !== 'CustomKeyStoreId')
        throw invalid('Dimensions must be CustomKeyStoreId');
      const wanted = Array.isArray(input.Statistics) ? (input.Statistics as readonly unknown[]) : [];
      if (member(input, 'ExtendedStatistics') !== undefined || wanted.length === 0)
        throw invalid('Statistics are missing');
      const period = seconds(input, 'Period') * 1000;
      const from = seconds(input, 'StartTime') * 1000;
      const to = seconds(input, 'EndTime') * 1000;
      if (period < 60_000 || period % 60_000 !== 0) throw invalid('Period must be a multiple of 60');
      const inTime = (samples.get(text(dimension, 'Value')) ?? []).filter(({ at }) => at >= from && at < to);
      const periods = Map.groupBy(inTime, ({ at }) => Math.floor(at / period) * period);
      return {
        Label: 'XksProxyLatency',
        Datapoints: [...periods].map(([at, own]) => {
          const summary = summarize(own);
          const shown = statisticNames.filter((name) => wanted.includes(name));
          return {
            Timestamp: at / 1000,
            Unit: 'Milliseconds',
            ...Object.fromEntries(shown.map((name) => [name, summary[name]])),
          };
        }),
      };
    },
  };
};
