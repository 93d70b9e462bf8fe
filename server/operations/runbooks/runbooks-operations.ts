// What can be done with runbooks.

import type { TenantActor } from '../../domain/actor.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { RunbookRun, RunOutcome, StepOutcome } from '../../domain/runbook-run.ts';
import type { Containers, FilledRunbook, Release, RunbookSummary } from '../../domain/runbooks.ts';

export interface RunbookVariant {
  readonly runbook: string;
  readonly release: Release;
  readonly containers: Containers;
}

export interface RunbookOperations {
  /** In the order in which they are shown. */
  all(): Promise<readonly RunbookSummary[]>;
  /**
   * With the application's own values. An unknown runbook: 'not-found'; a release that it cannot be
   * followed on: 'conflict'.
   */
  fill(actor: TenantActor, applicationId: string, variant: RunbookVariant): Promise<FilledRunbook>;
  /** Newest first. */
  list(actor: TenantActor, applicationId: string, query: PageRequest): Promise<Page<RunbookRun>>;
  get(actor: TenantActor, applicationId: string, id: string): Promise<RunbookRun>;
  start(actor: TenantActor, applicationId: string, variant: RunbookVariant): Promise<RunbookRun>;
  /** Completing a step again replaces its outcome and note. A finished run: 'conflict'. */
  completeStep(
    actor: TenantActor,
    applicationId: string,
    id: string,
    step: string,
    completion: { readonly outcome: StepOutcome; readonly note: string | null },
  ): Promise<RunbookRun>;
  reopenStep(actor: TenantActor, applicationId: string, id: string, step: string): Promise<RunbookRun>;
  /**
   * Ends a run. 'conflict' for a run that has ended, and for 'done' while a step is not complete.
   */
  finish(
    actor: TenantActor,
    applicationId: string,
    id: string,
    end: { readonly outcome: RunOutcome; readonly note: string | null },
  ): Promise<RunbookRun>;
}
