// The first steps of a service. What the service can check is done when it is so. Of the rest, a
// person can accept the risk: such a step is not done, stays a warning, and is told to
// administrators until it is.

export const setupSteps = [
  'root-protection',
  'root-key',
  'administrator',
  'recovery-codes',
  'first-token',
  'audit-sinks',
  'recovery-key',
  'snapshot-schedule',
  'snapshot',
] as const;
export type SetupStepName = (typeof setupSteps)[number];

/** Steps that a person may leave undone: without them the service works, but is less safe. */
export const confirmableSteps = [
  'root-protection',
  'root-key',
  'administrator',
  'recovery-codes',
  'first-token',
  'audit-sinks',
  'snapshot-schedule',
] as const satisfies readonly SetupStepName[];
export type ConfirmedStep = (typeof confirmableSteps)[number];

export interface SetupStep {
  readonly step: SetupStepName;
  /** `confirmed`: a person has accepted the risk that it is not done. */
  readonly state: 'open' | 'confirmed' | 'done';
  /** What the service sees of it. */
  readonly finding: string;
  readonly confirmed: { readonly at: number; readonly by: string } | null;
}

export interface Setup {
  /** When a snapshot was first opened with a recovery key; null: none was yet. */
  readonly finishedAt: number | null;
  readonly steps: readonly SetupStep[];
}
