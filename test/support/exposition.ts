// Reads and checks Prometheus' text format, version 0.0.4, as strictly as its specification asks.

export interface ExpositionSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}
export interface ExpositionFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly ExpositionSample[];
}
export interface Exposition {
  readonly families: readonly ExpositionFamily[];
  readonly samples: readonly ExpositionSample[];
  /** The value of the one sample with exactly these labels; undefined when it is missing. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
}

const name = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const pair = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"';
const sampleLine = new RegExp(`^(${name})(?:\\{(${pair}(?:,${pair})*)\\})? (\\S+)$`);

const unquote = (text: string): string => text.replace(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c));

const readSample = (line: string): ExpositionSample | undefined => {
  const match = sampleLine.exec(line);
  if (match === null) return undefined;
  const [, called = '', pairs = '', value = ''] = match;
  const labels = Object.fromEntries(
    [...pairs.matchAll(new RegExp(pair, 'g'))].map(([text]) => {
      const at = text.indexOf('=');
      return [text.slice(0, at), unquote(text.slice(at + 2, -1))];
    }),
  );
  return { name: called, labels, value: Number(value) };
};

export const readExposition = (text: string): Exposition => {
  const families: { name: string; type: string; help: string; samples: ExpositionSample[] }[] = [];
  for (const line of text.split('\n')) {
    const [, what, of = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (what === 'HELP') families.push({ name: of, type: '', help: unquote(rest), samples: [] });
    const family = families.at(-1);
    if (family === undefined) continue;
    if (what === 'TYPE') family.type = rest;
    const sample = readSample(line);
    if (sample !== undefined) family.samples.push(sample);
  }
  const samples = families.flatMap((family) => family.samples);
  const key = (labels: Readonly<Record<string, string>>): string => JSON.stringify(Object.entries(labels).sort());
  return {
    families,
    samples,
    value: (wanted, labels = {}) =>
      samples.find((sample) => sample.name === wanted && key(sample.labels) === key(labels))?.value,
  };
};

/** What is wrong with it; nothing when it is well-formed. */
export const checkExposition = (text: string): readonly string[] => {
  const faults: string[] = [];
  if (!text.endsWith('\n')) faults.push('the last line has no end');
  const seen = new Set<string>();
  const families = new Set<string>();
  let family = '';
  let type = '';
  for (const [at, line] of text.split('\n').entries()) {
    if (line === '') continue;
    const fault = (what: string): number => faults.push(`line ${at + 1}: ${what}: ${line}`);
    const [, what, of = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (what === 'HELP') {
      if (families.has(of)) fault('a metric stands in two places');
      families.add(of);
      family = of;
      type = '';
    } else if (what === 'TYPE') {
      if (of !== family) fault('TYPE without HELP');
      if (!/^(counter|gauge|histogram)$/.test(rest)) fault('unknown type');
      type = rest;
      if ((type === 'counter') !== of.endsWith('_total')) fault('a counter ends in _total, and nothing else does');
    } else {
      const sample = readSample(line);
      if (sample === undefined) {
        fault('not a sample');
        continue;
      }
      const suffix = sample.name.slice(family.length);
      const fits = type === 'histogram' ? /^_(bucket|sum|count)$/.test(suffix) : suffix === '';
      if (!sample.name.startsWith(family) || !fits) fault('a sample of another metric');
      const key = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`;
      if (seen.has(key)) fault('the same sample twice');
      seen.add(key);
      if (!Number.isFinite(sample.value)) fault('no number');
      if (type !== 'gauge' && sample.value < 0) fault('a count below zero');
    }
  }
  // A histogram's buckets grow, and the last one has them all.
  const { families: read } = readExposition(text);
  for (const { name: of, samples } of read.filter((one) => one.type === 'histogram')) {
    const last = new Map<string, number>();
    for (const { name: called, labels, value } of samples) {
      const { le, ...own } = labels;
      const key = JSON.stringify(own);
      if (called === `${of}_bucket`) {
        if (value < (last.get(key) ?? 0)) faults.push(`${of}${key}: the bucket ${le} is smaller than the one before`);
        last.set(key, value);
      }
      if (called === `${of}_count` && value !== last.get(key)) faults.push(`${of}${key}: +Inf is not the count`);
    }
  }
  return faults;
};
