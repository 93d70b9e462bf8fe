// What people watch the service by: the page, the dashboard and the alert rules name metrics that
// there are, with labels that they have, and the page lists them all.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Metric, metrics } from '../../server/domain/metrics.ts';
import { withActions } from '../support/alert-actions.ts';
import { readAlertRules } from '../support/alert-rules.ts';
import { metricsTable } from '../support/monitoring-page.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const page = read('docs/monitoring.md');
const dashboard = JSON.parse(read('docs/monitoring/dashboard.json')) as Panel & { templating: { list: Panel[] } };

interface Panel {
  readonly title?: string;
  readonly query?: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
  readonly panels?: readonly Panel[];
}
const rows: Readonly<Record<string, Metric>> = metrics;
/** What Prometheus adds to every sample, and what a histogram's buckets have. */
const added = ['instance', 'job', 'le'];

/** The metric behind the name of a sample: a histogram has three. */
const metricOf = (sample: string): string | undefined => {
  const histogram = sample.replace(/_(bucket|sum|count)$/, '');
  const name = rows[histogram]?.type === 'histogram' && histogram !== sample ? histogram : sample;
  return (rows[name]?.type === 'histogram') === (name !== sample) && rows[name] !== undefined ? name : undefined;
};

/** The wrong statements of an expression. */
const faultsOf = (expression: string): string[] => {
  // What is in quotes are values.
  const text = expression.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
  const samples = text.match(/\b(?:dke|process|nodejs)_[a-z0-9_]+/g) ?? [];
  const faults = samples.filter((name) => metricOf(name) === undefined).map((name) => `there is no ${name}`);
  const known = new Set([...added, ...samples.flatMap((name) => rows[metricOf(name) ?? '']?.labels ?? [])]);
  for (const [, name = '', matchers = ''] of text.matchAll(/\b((?:dke|process|nodejs)_[a-z0-9_]+)\{([^}]*)\}/g))
    for (const [, label = ''] of matchers.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g))
      if (![...added, ...(rows[metricOf(name) ?? '']?.labels ?? [])].includes(label))
        faults.push(`${name} has no ${label}`);
  for (const [, list = ''] of text.matchAll(/\b(?:by|on|ignoring|group_left)\s*\(([a-z_, ]*)\)/g))
    for (const label of list.split(',').map((one) => one.trim()))
      if (!known.has(label)) faults.push(`${label} is not a label of ${samples.join(', ')}`);
  return faults;
};

const rules = readAlertRules();
const panelsOf = (panel: Panel): Panel[] => [panel, ...(panel.panels ?? []).flatMap(panelsOf)];
const targets = panelsOf(dashboard).flatMap(({ title, targets: own = [] }) =>
  own.map((target) => ({ title, ...target })),
);

describe('docs/monitoring.md', () => {
  test('lists every metric (node test/support/monitoring-page.ts)', () => {
    expect(page).toContain(`\n\n${metricsTable()}\n\n`);
  });

  test('says of every alert how bad it is and what to do', () => {
    const listed = [...page.matchAll(/^\| `(Dke\w+)` \| (\w+) \| \S/gm)].map(([, name, severity]) => [name, severity]);
    expect(listed).toEqual(rules.map(({ name, severity }) => [name, severity]));
  });
});

test('alerts say what to do, as the page does (node test/support/alert-actions.ts)', () => {
  for (const { is, shouldBe } of withActions()) expect(is).toBe(shouldBe);
  for (const { text } of rules) expect(text).toMatch(/action: "[^"]{10,}/);
});

describe('docs/monitoring/alerts.yaml', () => {
  test('has rules, each under a name of its own', () => {
    expect(rules.length).toBeGreaterThan(20);
    expect(new Set(rules.map(({ name }) => name)).size).toBe(rules.length);
  });
  test.each(rules)('$name asks for what there is', ({ expression }) => {
    expect(expression.trim()).not.toBe('');
    expect(faultsOf(expression)).toEqual([]);
  });
  test.each(rules)('$name tells of labels that its expression keeps', ({ expression, text }) => {
    const used = [...text.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label ?? '');
    const kept = [...expression.matchAll(/^\s*(?:\d - )?sum by \(([^)]*)\)/gm)].flatMap(([, list = '']) =>
      list.split(', '),
    );
    const [sample = ''] = expression.match(/\b(?:dke|process|nodejs)_[a-z0-9_]+/) ?? [];
    const labels = kept.length > 0 ? kept : [...added, ...(rows[metricOf(sample) ?? '']?.labels ?? [])];
    expect(used.filter((label) => !labels.includes(label))).toEqual([]);
  });
});

// The package that has promtool also starts a server, so npm test does not install it.
// test/house/alert-rules evaluates the rules without it.
test.each(['alerts', 'alerts-days'])(
  'the alert rules do what %s.test.yaml says, where promtool is installed',
  (name) => {
    try {
      execFileSync('promtool', ['test', 'rules', join(root, `docs/monitoring/${name}.test.yaml`)], { stdio: 'pipe' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      console.log('skipped: no promtool on the PATH');
    }
  },
);

describe('docs/monitoring/dashboard.json', () => {
  test('has panels, each with an id of its own', () => {
    const ids = [...JSON.stringify(dashboard).matchAll(/"id":(\d+),"type"/g)].map(([, id]) => id);
    expect(ids.length).toBeGreaterThan(20);
    expect(new Set(ids).size).toBe(ids.length);
  });
  test.each(targets)('$title asks for what there is', ({ expr, legendFormat }) => {
    expect(faultsOf(expr.replaceAll('$__rate_interval', '5m'))).toEqual([]);
    const labels = [...added, 'name', ...Object.values(rows).flatMap((row) => row.labels)];
    const used = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label ?? '');
    expect(used.filter((label) => !labels.includes(label))).toEqual([]);
  });
  test('shows every metric that an alert asks for', () => {
    const metricsIn = (texts: readonly string[]) =>
      new Set(
        texts.flatMap((text) =>
          (text.match(/\b(?:dke|process|nodejs)_[a-z0-9_]+/g) ?? []).flatMap((one) => metricOf(one) ?? []),
        ),
      );
    const shown = metricsIn(targets.map(({ expr }) => expr));
    expect([...metricsIn(rules.map(({ expression }) => expression))].filter((name) => !shown.has(name))).toEqual([]);
  });
  test('its variables ask for what there is', () => {
    for (const { query = '' } of dashboard.templating.list) expect(faultsOf(query)).toEqual([]);
  });
});

test('a metric, a label and a grouping that are not there are noticed', () => {
  expect(faultsOf('rate(dke_xks_request_total[5m])')).toEqual(['there is no dke_xks_request_total']);
  expect(faultsOf('dke_xks_request_duration_seconds')).toEqual(['there is no dke_xks_request_duration_seconds']);
  expect(faultsOf('dke_keys_in_memory_count')).toEqual(['there is no dke_keys_in_memory_count']);
  expect(faultsOf('dke_healthy{endpoint="x"}')).toEqual(['dke_healthy has no endpoint']);
  expect(faultsOf('sum by (principal) (dke_healthy)')).toEqual(['principal is not a label of dke_healthy']);
});
