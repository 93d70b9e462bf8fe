// The steps of a runbook: statements and commands, where to run them, the expected result, and
// warnings. During a run, each step has its outcome.

import type { ReactNode } from 'react';
import type { RunbookStep } from '../api/types.ts';
import { CopyButton } from '../ui/page/copy.tsx';
import { Icon } from '../ui/page/icon.tsx';

export const placeNames: Readonly<Record<RunbookStep['place'], string>> = {
  host: 'On the database host',
  database: 'In the database',
  console: 'In DKE',
  'target-host': 'On the target host',
  target: 'In the target database',
};

export const releaseNames = { '11g': '11g R2', '12c-18c': '12c to 18c', '19c': '19c and later' } as const;
export const containerNames = { 'non-cdb': 'No container database', cdb: 'Container database (CDB)' } as const;

const Block = ({ label, value }: { label: string; value: string }) => (
  <div className="flex items-start justify-between gap-2 rounded-md bg-sunken py-1 pr-1 pl-3">
    <div className="min-w-0 py-1">
      <span className="sr-only">{label}: </span>
      <pre className="text-xs wrap-anywhere whitespace-pre-wrap">{value}</pre>
    </div>
    <CopyButton value={value} label={label} />
  </div>
);

export const Warnings = ({ warnings }: { warnings: readonly string[] }) =>
  warnings.length === 0 ? null : (
    <div className="rounded-lg border border-warn/30 bg-warn-soft p-4">
      <p className="flex items-center gap-2 font-semibold">
        <Icon name="warning" className="size-5 text-warn" /> Before you begin
      </p>
      <ul className="mt-1.5 list-disc space-y-1 pl-7">
        {warnings.map((warning) => (
          <li key={warning}>{warning}</li>
        ))}
      </ul>
    </div>
  );

export const RunbookSteps = ({
  steps,
  aside,
}: {
  steps: readonly RunbookStep[];
  /** At the end of a step: its outcome. */
  aside?: (step: RunbookStep, index: number) => ReactNode;
}) => (
  <ol className="divide-y divide-line">
    {steps.map((step, index) => (
      <li key={step.id} className="grid gap-x-4 gap-y-2 px-4 py-4 sm:grid-cols-[2rem_1fr]">
        <span
          aria-hidden="true"
          className="flex size-7 items-center justify-center rounded-full bg-accent-soft text-xs font-semibold text-accent"
        >
          {index + 1}
        </span>
        <div className="min-w-0 space-y-2">
          <div>
            <h3 className="font-semibold wrap-anywhere">
              <span className="sr-only">Step {index + 1}: </span>
              {step.title}
            </h3>
            <p className="text-xs text-muted">{placeNames[step.place]}</p>
          </div>
          {step.warning !== undefined && (
            <p className="flex gap-2 text-warn">
              <Icon name="warning" className="mt-0.5 size-4" />
              <span className="min-w-0">{step.warning}</span>
            </p>
          )}
          {step.text !== undefined && <p className="max-w-prose wrap-anywhere">{step.text}</p>}
          {step.sql !== undefined && <Block label="statement" value={step.sql} />}
          {step.shell !== undefined && <Block label="shell command" value={step.shell} />}
          {step.setting !== undefined && <Block label="configuration line" value={step.setting} />}
          {step.command !== undefined && step.command !== step.shell && (
            <Block label="dke command" value={step.command} />
          )}
          {step.expect !== undefined && (
            <p className="flex gap-2 text-muted">
              <Icon name="check" className="mt-0.5 size-4 text-ok" />
              <span className="min-w-0 wrap-anywhere">
                <span className="sr-only">Expected: </span>
                {step.expect}
              </span>
            </p>
          )}
          {aside?.(step, index)}
        </div>
      </li>
    ))}
  </ol>
);
