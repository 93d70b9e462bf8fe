// The first steps of a service. What the service can check is done when it is so; for the rest, a person confirms it.

export const setupSteps = ['root-key', 'administrator', 'audit-sinks', 'recovery-key', 'snapshot'] as const;
export type SetupStepName = (typeof setupSteps)[number];

/** Those that a person may confirm or skip: a copy is stored elsewhere, tokens are enough, the log stays here. */
export const confirmableSteps = [
  'root-key',
  'administrator',
  'audit-sinks',
] as const satisfies readonly SetupStepName[];
export type ConfirmedStep = (typeof confirmableSteps)[number];

export interface SetupStep {
  readonly step: SetupStepName;
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
