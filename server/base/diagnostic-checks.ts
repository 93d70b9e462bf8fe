// The diagnostics engine: checks as data, run in order, those that depend on a failed one skipped.
// The same results are shown by `dke doctor` and other callers; nothing here knows what is checked.

import type { CloudWords } from './cloud-causes.ts';
import { redact } from './redaction.ts';
import { StartError } from './start-error.ts';

/** The result of a check. `fix` says what to do, if there is something to do. */
export interface Finding {
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly evidence: string;
  readonly fix?: string | undefined;
  /**
   * The name of this fault in other products, where it is known: the exception of a cloud key
   * service, the code that a database prints.
   */
  readonly predicts?: string | undefined;
  /** What a cloud key service reports at each of its operations. */
  readonly reports?: CloudWords | undefined;
}

/** `Context` carries what the checks work on; a check may leave there what later ones need. */
export interface Check<Context> {
  readonly id: string;
  /**
   * Where the fault would be: 'configuration', 'files', 'socket', 'network', 'dns', 'tls',
   * 'service', 'key', ...
   */
  readonly layer: string;
  /** What is so when it passes, and the title while it is not known. */
  readonly title: string;
  /** The title when it has failed: the fault, and never a hope. Absent: the title names a thing. */
  readonly fault?: string;
  /** Ids of checks without whose success this one says nothing. */
  readonly needs: readonly string[];
  readonly run: (context: Context) => Finding | Promise<Finding>;
}

export interface CheckResult {
  readonly id: string;
  readonly layer: string;
  readonly title: string;
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly evidence: string;
  readonly fix?: string | undefined;
  readonly predicts?: string | undefined;
  readonly reports?: CloudWords | undefined;
  readonly durationMs: number;
}

/** Checks of one thing. */
export interface CheckedPart {
  readonly what: string;
  /** Who will meet what a finding predicts. */
  readonly whoSays?: string;
  readonly results: readonly CheckResult[];
}

export const ok = (evidence: string): Finding => ({ state: 'ok', evidence });
/** The finding of a check that was not requested. */
export const notAsked = (evidence: string): Finding => ({ state: 'skipped', evidence });
export const warning = (evidence: string, fix?: string): Finding => ({ state: 'warning', evidence, fix });
export const failed = (evidence: string, fix?: string): Finding => ({ state: 'failed', evidence, fix });

/** What a check will test, before it has. */
export type PlannedCheck = Pick<CheckResult, 'id' | 'layer' | 'title'>;

/** Told what happens while it happens. */
export interface CheckWatch {
  started(checks: readonly PlannedCheck[]): void;
  ended(result: CheckResult): void;
}

/** What an error says of the check that threw it. */
export const findingOf = (error: unknown): Finding =>
  error instanceof StartError
    ? failed(error.evidence, error.fix)
    : failed(error instanceof Error ? error.message : String(error));

/** One after the other. A check that throws has failed; its message is the evidence. */
export const runChecks = async <Context>(
  checks: readonly Check<Context>[],
  context: Context,
  watch?: CheckWatch,
): Promise<readonly CheckResult[]> => {
  const results = new Map<string, CheckResult>();
  const keep = (result: CheckResult): void => {
    results.set(result.id, result);
    watch?.ended(result);
  };
  watch?.started(checks.map(({ id, layer, title }) => ({ id, layer, title })));
  for (const { id, layer, title, fault = title, needs, run } of checks) {
    const missing = needs
      .map((need) => results.get(need))
      .find((need) => need?.state !== 'ok' && need?.state !== 'warning');
    if (missing !== undefined) {
      keep({ id, layer, title, state: 'skipped', evidence: `blocked by: ${missing.title}`, durationMs: 0 });
      continue;
    }
    const startedAt = performance.now();
    let finding: Finding;
    try {
      finding = await run(context);
    } catch (error) {
      finding = findingOf(error);
    }
    keep({
      id,
      layer,
      title: finding.state === 'failed' ? fault : title,
      ...finding,
      evidence: redact(finding.evidence),
      durationMs: Math.round((performance.now() - startedAt) * 10) / 10,
    });
  }
  return [...results.values()];
};
