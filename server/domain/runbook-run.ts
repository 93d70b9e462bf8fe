// A run of a runbook: what was shown to the person, and who completed which step and when. It is
// evidence, so the steps are kept as they were shown, whatever a later version of the service says.

import type { Containers, Release, RunbookName, RunbookStep } from './runbooks.ts';

export type StepOutcome = 'done' | 'not-needed';
export type RunOutcome = 'done' | 'abandoned';

export interface CompletedStep {
  readonly step: string;
  readonly outcome: StepOutcome;
  readonly at: number;
  readonly actorId: string;
  readonly actorName: string;
  readonly note: string | null;
}

export interface RunbookRun {
  readonly id: string;
  readonly tenantId: string;
  readonly applicationId: string;
  readonly runbook: RunbookName;
  readonly title: string;
  readonly release: Release;
  readonly containers: Containers | null;
  readonly warnings: readonly string[];
  readonly steps: readonly RunbookStep[];
  readonly startedAt: number;
  readonly startedBy: { readonly id: string; readonly name: string };
  readonly finishedAt: number | null;
  readonly finishedBy: { readonly id: string; readonly name: string } | null;
  readonly outcome: RunOutcome | null;
  /** At most one a step, in the order of completion. */
  readonly completedSteps: readonly CompletedStep[];
}

/** Open steps, in their order. */
export const openSteps = ({
  steps,
  completedSteps,
}: Pick<RunbookRun, 'steps' | 'completedSteps'>): readonly RunbookStep[] =>
  steps.filter(({ id }) => !completedSteps.some(({ step }) => step === id));
