// The shipped alert rules, evaluated over scrapes of a real /metrics: as much of PromQL as
// docs/monitoring/alerts.yaml uses. What it does not know is an error. It differs from Prometheus
// in two points: it ignores `for`, and rate and increase do not extrapolate.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ExpositionSample } from './exposition.ts';

const file = resolve(import.meta.dirname, '../../docs/monitoring/alerts.yaml');

export interface AlertRule {
  readonly name: string;
  readonly severity: string;
  readonly expression: string;
  /** How long the expression must be true (`for`). */
  readonly minutes: number;
  /** The text of the rule in the file. */
  readonly text: string;
}

const minutesOf = (rule: string): number => {
  const [, count = '0', unit = 'm'] = /^ {8}for: (\d+)([mhd])$/m.exec(rule) ?? [];
  return Number(count) * { m: 1, h: 60, d: 1440 }[unit as 'm' | 'h' | 'd'];
};

export const readAlertRules = (): readonly AlertRule[] =>
  readFileSync(file, 'utf8')
    .split(/\n {6}- /)
    .slice(1)
    .map((rule) => ({
      minutes: minutesOf(rule),
      name: /^alert: (\w+)$/m.exec(rule)?.[1] ?? '',
      severity: /severity: (\w+)/.exec(rule)?.[1] ?? '',
      expression: (/^ {8}expr: (?:\|\n)?((?:.*\n)(?: {10,}.*\n)*)/m.exec(rule)?.[1] ?? '').trim(),
      text: rule,
    }));

/** One check of the service. A scrape that failed has the sample `up` alone. */
export interface Scrape {
  /** Seconds since 1970. */
  readonly at: number;
  readonly samples: readonly ExpositionSample[];
}

type Labels = Readonly<Record<string, string>>;
interface Sample {
  readonly labels: Labels;
  readonly value: number;
}
type Value = number | readonly Sample[];
/** The scrapes up to the moment of the evaluation, oldest first. */
type Evaluate = (scrapes: readonly Scrape[]) => Value;

const token =
  /\s*(?:\d+[smhdw]|\d+(?:\.\d+)?(?:e[+-]?\d+)?|[a-zA-Z_:][\w:]*|"(?:[^"\\]|\\.)*"|(?:==|!=|<=|>=|=~|!~|[-+*/<>=(){}[\],]))/y;
const secondsOf: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

const tokensOf = (expression: string): readonly string[] => {
  const found: string[] = [];
  token.lastIndex = 0;
  while (expression.slice(token.lastIndex).trim() !== '') {
    const at = token.lastIndex;
    const match = token.exec(expression);
    if (match === null) throw new Error(`not understood: ${expression.slice(at)}`);
    found.push(match[0].trim());
  }
  return found;
};

const keyOf = (labels: Labels): string => JSON.stringify(Object.entries(labels).sort());
const only = (labels: Labels, names: readonly string[]): Labels =>
  Object.fromEntries(Object.entries(labels).filter(([name]) => names.includes(name)));
const without = (labels: Labels, names: readonly string[]): Labels =>
  Object.fromEntries(Object.entries(labels).filter(([name]) => !names.includes(name)));

const arithmetic: Readonly<Record<string, (a: number, b: number) => number>> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
};
const comparison: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '<': (a, b) => a < b,
  '>': (a, b) => a > b,
  '<=': (a, b) => a <= b,
  '>=': (a, b) => a >= b,
};
/**
 * Functions over the values of one series within the range, oldest first, and the seconds from the
 * first to the last. Undefined: there are too few values.
 */
const overRange: Readonly<Record<string, (values: readonly number[], seconds: number) => number | undefined>> = {
  increase: (values) => (values.length < 2 ? undefined : grown(values)),
  rate: (values, seconds) => (values.length < 2 ? undefined : grown(values) / seconds),
  changes: (values) => values.filter((value, index) => index > 0 && value !== values[index - 1]).length,
  delta: (values) => (values.length < 2 ? undefined : (values.at(-1) ?? 0) - (values[0] ?? 0)),
  max_over_time: (values) => Math.max(...values),
  min_over_time: (values) => Math.min(...values),
};
/** A counter that is lower than before has started again. */
const grown = (values: readonly number[]): number =>
  values.reduce((sum, value, index) => {
    const before = values[index - 1];
    return before === undefined ? 0 : sum + (value < before ? value : value - before);
  }, 0);
const aggregates: Readonly<Record<string, (values: readonly number[]) => number>> = {
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  count: (values) => values.length,
  max: (values) => Math.max(...values),
  min: (values) => Math.min(...values),
};

type Matcher = (labels: Labels) => boolean;
const matcherOf = (name: string, operator: string, quoted: string): Matcher => {
  const wanted = quoted.slice(1, -1);
  if (operator === '=') return (labels) => (labels[name] ?? '') === wanted;
  if (operator === '!=') return (labels) => (labels[name] ?? '') !== wanted;
  const pattern = new RegExp(`^(?:${wanted})$`);
  return (labels) => pattern.test(labels[name] ?? '') === (operator === '=~');
};

const vectorOf = (value: Value): readonly Sample[] => {
  if (typeof value === 'number') throw new Error('a vector is expected, and this is a number');
  return value;
};

/** Reads an expression by recursive descent. */
class Parser {
  readonly #tokens: readonly string[];
  #at = 0;
  constructor(expression: string) {
    this.#tokens = tokensOf(expression);
  }
  parse(): Evaluate {
    const evaluate = this.#sets(['or']);
    if (this.#next() !== undefined) throw new Error(`not understood: ${this.#next()}`);
    return evaluate;
  }
  #next(): string | undefined {
    return this.#tokens[this.#at];
  }
  #take(...expected: readonly string[]): string {
    const found = this.#next() ?? 'the end';
    if (expected.length > 0 && !expected.includes(found)) throw new Error(`${expected.join(' or ')}, not ${found}`);
    this.#at += 1;
    return found;
  }
  #if(...expected: readonly string[]): string | undefined {
    return expected.includes(this.#next() ?? '') ? this.#take() : undefined;
  }
  #labels(): readonly string[] {
    this.#take('(');
    const names: string[] = [];
    while (this.#if(')') === undefined) {
      names.push(this.#take());
      this.#if(',');
    }
    return names;
  }
  /**
   * Reads `on(…)` or `ignoring(…)`, if present; returns the key by which samples of two vectors are
   * matched.
   */
  #matching(): (labels: Labels) => string {
    const how = this.#if('on', 'ignoring');
    const names = how === undefined ? [] : this.#labels();
    return (labels) => keyOf(how === 'on' ? only(labels, names) : without(labels, names));
  }
  #sets(operators: readonly string[]): Evaluate {
    const below = (): Evaluate => (operators.includes('or') ? this.#sets(['and', 'unless']) : this.#compared());
    let left = below();
    for (let operator = this.#if(...operators); operator !== undefined; operator = this.#if(...operators)) {
      const key = this.#matching();
      const [first, second, which] = [left, below(), operator];
      left = (scrapes) => {
        const [one, other] = [vectorOf(first(scrapes)), vectorOf(second(scrapes))];
        const [inOne, inOther] = [one, other].map((vector) => new Set(vector.map(({ labels }) => key(labels))));
        if (which === 'or') return [...one, ...other.filter(({ labels }) => !inOne?.has(key(labels)))];
        return one.filter(({ labels }) => (inOther?.has(key(labels)) ?? false) === (which === 'and'));
      };
    }
    return left;
  }
  #binary(operators: readonly string[], below: () => Evaluate, combine: (operator: string) => Combine): Evaluate {
    let left = below();
    for (let operator = this.#if(...operators); operator !== undefined; operator = this.#if(...operators)) {
      const key = this.#matching();
      const [first, second, of] = [left, below(), combine(operator)];
      left = (scrapes) => {
        const [one, other] = [first(scrapes), second(scrapes)];
        if (typeof one === 'number' && typeof other === 'number') return of(one, other) ?? [];
        if (typeof other === 'number') return kept(vectorOf(one), ({ value }) => of(value, other));
        if (typeof one === 'number') return kept(other, ({ value }) => of(one, value, value));
        const known = new Map(other.map(({ labels, value }) => [key(labels), value]));
        return kept(one, ({ labels, value }) => {
          const right = known.get(key(labels));
          return right === undefined ? undefined : of(value, right);
        });
      };
    }
    return left;
  }
  #compared(): Evaluate {
    return this.#binary(
      Object.keys(comparison),
      () => this.#added(),
      (operator) =>
        (a, b, shown = a) =>
          comparison[operator]?.(a, b) === true ? shown : undefined,
    );
  }
  #added(): Evaluate {
    return this.#binary(
      ['+', '-'],
      () => this.#multiplied(),
      (operator) => (a, b) => arithmetic[operator]?.(a, b),
    );
  }
  #multiplied(): Evaluate {
    return this.#binary(
      ['*', '/'],
      () => this.#single(),
      (operator) => (a, b) => arithmetic[operator]?.(a, b),
    );
  }
  #single(): Evaluate {
    const first = this.#take();
    if (/^\d/.test(first)) return () => Number(first);
    if (first === '(') {
      const inner = this.#sets(['or']);
      this.#take(')');
      return inner;
    }
    if (first === 'time') {
      this.#labels();
      return (scrapes) => scrapes.at(-1)?.at ?? 0;
    }
    const range = overRange[first];
    if (range !== undefined) {
      this.#take('(');
      const select = this.#selector(this.#take());
      this.#take('[');
      const [, count = '', unit = ''] = /^(\d+)([a-z])$/.exec(this.#take()) ?? [];
      this.#take(']');
      this.#take(')');
      return (scrapes) => ranged(scrapes, select, Number(count) * (secondsOf[unit] ?? 0), range);
    }
    const aggregate = aggregates[first];
    if (aggregate !== undefined) return this.#aggregate(aggregate);
    const select = this.#selector(first);
    return (scrapes) => (scrapes.at(-1)?.samples ?? []).filter(select);
  }
  #aggregate(aggregate: (values: readonly number[]) => number): Evaluate {
    const names = this.#if('by') === undefined ? [] : this.#labels();
    this.#take('(');
    const inner = this.#sets(['or']);
    this.#take(')');
    return (scrapes) => {
      const groups = Map.groupBy(vectorOf(inner(scrapes)), ({ labels }) => keyOf(only(labels, names)));
      return [...groups.values()].map((group) => ({
        labels: only(group[0]?.labels ?? {}, names),
        value: aggregate(group.map(({ value }) => value)),
      }));
    };
  }
  #selector(name: string): (sample: ExpositionSample) => boolean {
    if (!/^[a-zA-Z_:]/.test(name)) throw new Error(`a metric, not ${name}`);
    const matchers: Matcher[] = [];
    if (this.#if('{') !== undefined)
      while (this.#if('}') === undefined) {
        matchers.push(matcherOf(this.#take(), this.#take('=', '!=', '=~', '!~'), this.#take()));
        this.#if(',');
      }
    return (sample) => sample.name === name && matchers.every((matches) => matches(sample.labels));
  }
}
/** Undefined: the sample is omitted. `shown` is the value that a comparison keeps. */
type Combine = (a: number, b: number, shown?: number) => number | undefined;

const kept = (vector: readonly Sample[], map: (sample: Sample) => number | undefined): readonly Sample[] =>
  vector.flatMap((sample) => {
    const value = map(sample);
    return value === undefined ? [] : [{ labels: sample.labels, value }];
  });

const ranged = (
  scrapes: readonly Scrape[],
  select: (sample: ExpositionSample) => boolean,
  seconds: number,
  of: (values: readonly number[], seconds: number) => number | undefined,
): readonly Sample[] => {
  const now = scrapes.at(-1)?.at ?? 0;
  const series = new Map<string, { readonly labels: Labels; readonly points: [number, number][] }>();
  for (const { at, samples } of scrapes)
    if (at > now - seconds)
      for (const sample of samples) {
        if (!select(sample)) continue;
        const key = keyOf(sample.labels);
        const points = series.get(key)?.points ?? [];
        points.push([at, sample.value]);
        series.set(key, { labels: sample.labels, points });
      }
  return [...series.values()].flatMap(({ labels, points }) => {
    const values = points.map(([, value]) => value);
    const value = of(values, (points.at(-1)?.[0] ?? 0) - (points[0]?.[0] ?? 0));
    return value === undefined ? [] : [{ labels, value }];
  });
};

/** Whether a rule's expression has a result at the last of these scrapes. */
export const compileRule = ({
  name,
  expression,
}: Pick<AlertRule, 'name' | 'expression'>): ((scrapes: readonly Scrape[]) => boolean) => {
  try {
    const evaluate = new Parser(expression).parse();
    return (scrapes) => vectorOf(evaluate(scrapes)).length > 0;
  } catch (error) {
    throw new Error(`the alert rule ${name} cannot be evaluated: ${String(error)}`);
  }
};
