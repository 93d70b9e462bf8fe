// One run of an endpoint's diagnostics: the result to start with on top, then every layer between
// the cloud and its key.

import type { CheckResult, Diagnosis } from '../api/types.ts';
import { CopyButton } from '../ui/page/copy.tsx';
import { Icon, type IconName } from '../ui/page/icon.tsx';
import { Badge, type StateTone } from '../ui/page/state-badge.tsx';

const looks: Readonly<Record<CheckResult['state'], readonly [StateTone, IconName, string]>> = {
  ok: ['ok', 'active', 'Passed'],
  warning: ['warn', 'warning', 'Warning'],
  failed: ['danger', 'warning', 'Failed'],
  skipped: ['quiet', 'pause', 'Skipped'],
};

const layerNames: Readonly<Record<string, string>> = {
  connection: 'Connection',
  key: 'Key and vault',
  clock: 'Clock',
  network: 'Network',
  dns: 'DNS',
  tls: 'TLS',
  health: 'Health',
  sigv4: 'SigV4',
  activity: 'Activity',
};
export const nameLayer = (layer: string): string => layerNames[layer] ?? layer;

const capital = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

/** What the cloud reports, by operation. */
const tellReports = ({ predicts, reports }: CheckResult): string =>
  reports === undefined
    ? (predicts ?? '')
    : `${predicts} (connect: ${reports.connect ?? 'nothing'}, create key: ${reports.createKey ?? 'nothing'}, use key: ${reports.use ?? 'nothing'})`;

/** The worst state of a run. */
export const verdictOf = ({ results }: Diagnosis): 'ok' | 'warning' | 'failed' =>
  results.some(({ state }) => state === 'failed')
    ? 'failed'
    : results.some(({ state }) => state === 'warning')
      ? 'warning'
      : 'ok';

/** The result to start with; undefined: all checks passed. */
export const firstOf = ({ results }: Pick<Diagnosis, 'results'>): CheckResult | undefined =>
  results.find(({ state }) => state === 'failed') ?? results.find(({ state }) => state === 'warning');

export const VerdictBadge = ({ diagnosis }: { diagnosis: Diagnosis }) => {
  const state = verdictOf(diagnosis);
  const [tone, icon] = looks[state];
  const count = diagnosis.results.filter((result) => result.state === state).length;
  return (
    <Badge tone={tone} icon={icon}>
      {state === 'ok' ? 'Passed' : `${count} ${state === 'failed' ? 'failed' : count === 1 ? 'warning' : 'warnings'}`}
    </Badge>
  );
};

/** The run as text, for a ticket or a colleague. */
export const formatDiagnosis = (name: string, diagnosis: Diagnosis): string => {
  const first = firstOf(diagnosis);
  const width = Math.max(...diagnosis.results.map(({ layer }) => layer.length));
  return [
    `${name}, ${diagnosis.at}: ${first === undefined ? 'passed' : `${first.state}: ${first.title}: ${first.evidence}`}`,
    ...(first?.fix === undefined ? [] : [`  ${first.fix}`]),
    '',
    ...diagnosis.results.flatMap((result) => {
      const { state, layer, title, evidence, predicts, fix } = result;
      return [
        `${state.padEnd(8)} ${layer.padEnd(width)} ${title}: ${evidence}`,
        ...(state === 'ok' || state === 'skipped'
          ? []
          : [
              ...(predicts === undefined ? [] : [`         the cloud reports ${tellReports(result)}`]),
              ...(fix === undefined ? [] : [`         ${fix}`]),
            ]),
      ];
    }),
    '',
  ].join('\n');
};

const Start = ({ result }: { result: CheckResult }) => {
  const failed = result.state === 'failed';
  return (
    <div
      className={`rounded-lg border p-4 ${failed ? 'border-danger/35 bg-danger-soft' : 'border-warn/30 bg-warn-soft'}`}
    >
      <p className={`flex items-center gap-2 text-xs font-medium ${failed ? 'text-danger' : 'text-warn'}`}>
        <Icon name="warning" /> Start here: {nameLayer(result.layer)}
      </p>
      <p className="mt-1 text-base font-semibold">{capital(result.title)}</p>
      <p className="mt-0.5 wrap-anywhere">{capital(result.evidence)}</p>
      <dl className="mt-3 grid gap-x-6 gap-y-2 sm:grid-cols-[auto_1fr]">
        {result.predicts !== undefined && (
          <>
            <dt className="text-muted">The cloud reports</dt>
            <dd>
              <code className="wrap-anywhere">{tellReports(result)}</code>
            </dd>
          </>
        )}
        {result.fix !== undefined && (
          <>
            <dt className="text-muted">How to fix</dt>
            <dd className="wrap-anywhere">{capital(result.fix)}</dd>
          </>
        )}
      </dl>
    </div>
  );
};

const Line = ({ result }: { result: CheckResult }) => {
  const [tone, icon, word] = looks[result.state];
  const quiet = result.state === 'ok' || result.state === 'skipped';
  return (
    <li className="grid gap-x-4 gap-y-1 py-2 sm:grid-cols-[6.5rem_1fr_auto]">
      <span>
        <Badge tone={tone} icon={icon}>
          {word}
        </Badge>
      </span>
      <div className={`min-w-0 ${result.state === 'skipped' ? 'text-muted' : ''}`}>
        <p>
          {capital(result.title)}: <span className="wrap-anywhere text-muted">{result.evidence}</span>
        </p>
        {!quiet && result.predicts !== undefined && (
          <p className="text-xs text-muted">
            The cloud reports <code className="wrap-anywhere">{tellReports(result)}</code>
          </p>
        )}
        {!quiet && result.fix !== undefined && <p className="text-xs wrap-anywhere">{capital(result.fix)}</p>}
      </div>
      <span className="text-xs text-muted tabular-nums max-sm:hidden">
        {result.state === 'skipped' ? '' : `${result.durationMs.toFixed(1)} ms`}
      </span>
    </li>
  );
};

/** The results of a run so far. */
export interface LiveDiagnosis {
  readonly checks: readonly Pick<CheckResult, 'id' | 'layer' | 'title'>[];
  readonly results: readonly CheckResult[];
}

const WaitingLine = ({ title, running }: { title: string; running: boolean }) => (
  <li
    aria-current={running ? 'step' : undefined}
    className="grid gap-x-4 gap-y-1 py-2 text-muted sm:grid-cols-[6.5rem_1fr_auto]"
  >
    <span>
      <Badge tone="quiet" icon="clock">
        {running ? 'Running' : 'Waiting'}
      </Badge>
    </span>
    <p className={running ? 'text-ink' : ''}>{capital(title)}</p>
  </li>
);

/**
 * A running diagnosis: each check as it ends; the first failed one moves to the top immediately.
 */
export const LiveDiagnosisView = ({ live }: { live: LiveDiagnosis }) => {
  const { checks, results } = live;
  const first = firstOf(live);
  const ended = new Map(results.map((result) => [result.id, result]));
  const running = checks.find(({ id }) => !ended.has(id))?.id;
  const layers = [...new Set(checks.map(({ layer }) => layer))];
  return (
    <div className="space-y-5">
      <div role="status" className="space-y-2">
        <p className="font-medium">
          {checks.length === 0 ? 'Starting…' : `${results.length} of ${checks.length} checks completed`}
        </p>
        <progress
          aria-label="Completed checks"
          className="h-1.5 w-full overflow-hidden rounded-full"
          value={results.length}
          max={Math.max(checks.length, 1)}
        />
      </div>
      {first !== undefined && <Start result={first} />}
      <div className="divide-y divide-line">
        {layers.map((layer) => (
          <section key={layer} className="grid gap-x-6 py-2 first:pt-0 lg:grid-cols-[9rem_1fr]">
            <h3 className="pt-2.5 font-medium">{nameLayer(layer)}</h3>
            <ul>
              {checks
                .filter((check) => check.layer === layer)
                .map(({ id, title }) => {
                  const result = ended.get(id);
                  return result === undefined ? (
                    <WaitingLine key={id} title={title} running={id === running} />
                  ) : (
                    <Line key={id} result={result} />
                  );
                })}
            </ul>
          </section>
        ))}
      </div>
    </div>
  );
};

export const DiagnosisView = ({ name, diagnosis }: { name: string; diagnosis: Diagnosis }) => {
  const first = firstOf(diagnosis);
  const layers = [...new Set(diagnosis.results.map(({ layer }) => layer))];
  return (
    <div className="space-y-5">
      {first === undefined ? (
        <div className="flex gap-3 rounded-lg border border-ok/30 bg-ok-soft p-4">
          <Icon name="active" className="mt-0.5 size-5 text-ok" />
          <div>
            <p className="font-semibold">All checks passed</p>
            <p>The endpoint works as the cloud key service expects, from this node and through its public name.</p>
          </div>
        </div>
      ) : (
        <Start result={first} />
      )}
      <div className="divide-y divide-line">
        {layers.map((layer) => (
          <section key={layer} className="grid gap-x-6 py-2 first:pt-0 lg:grid-cols-[9rem_1fr]">
            <h3 className="pt-2.5 font-medium">{nameLayer(layer)}</h3>
            <ul>
              {diagnosis.results
                .filter((result) => result.layer === layer)
                .map((result) => (
                  <Line key={result.id} result={result} />
                ))}
            </ul>
          </section>
        ))}
      </div>
      <div className="flex items-center text-muted">
        <CopyButton value={formatDiagnosis(name, diagnosis)} label="results as text" />
        <span className="text-xs">Copy as text</span>
      </div>
    </div>
  );
};
