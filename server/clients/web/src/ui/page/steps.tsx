// The steps of a setup: done, accepted as a risk, next, waiting. The state of each step is read
// from the service, so that a setup can be interrupted and continued.

import type { ReactNode } from 'react';
import { Icon } from './icon.tsx';

export type StepState = 'done' | 'accepted' | 'next' | 'waiting' | 'later';

export interface SetupStep {
  readonly title: string;
  readonly state: StepState;
  readonly children: ReactNode;
}

const words: Readonly<Record<StepState, string>> = {
  done: 'done',
  accepted: 'risk accepted, not done',
  next: 'next',
  waiting: 'waiting',
  later: 'later',
};

const Mark = ({ state, number }: { state: StepState; number: number }) => {
  if (state === 'done')
    return (
      <span className="flex size-7 items-center justify-center rounded-full bg-ok-soft text-ok">
        <Icon name="check" />
      </span>
    );
  if (state === 'accepted')
    return (
      <span className="flex size-7 items-center justify-center rounded-full bg-warn-soft text-warn">
        <Icon name="warning" />
      </span>
    );
  if (state === 'waiting')
    return (
      <span className="flex size-7 items-center justify-center rounded-full bg-accent-soft text-accent">
        <Icon name="clock" className="size-4 motion-safe:animate-pulse" />
      </span>
    );
  return (
    <span
      className={`flex size-7 items-center justify-center rounded-full text-xs font-semibold ${state === 'next' ? 'bg-accent text-on-accent' : 'bg-quiet-soft text-muted'}`}
    >
      {number}
    </span>
  );
};

export const SetupSteps = ({ steps }: { steps: readonly SetupStep[] }) => (
  <ol className="overflow-hidden rounded-xl border border-line bg-surface shadow-raised">
    {steps.map(({ title, state, children }, index) => (
      <li
        key={title}
        aria-current={state === 'next' || state === 'waiting' ? 'step' : undefined}
        className="grid gap-x-4 gap-y-2 border-line px-4 py-4 not-first:border-t sm:grid-cols-[2rem_1fr]"
      >
        <span aria-hidden="true">
          <Mark state={state} number={index + 1} />
        </span>
        <div className="min-w-0 space-y-3">
          <h2 className={`pt-0.5 font-semibold ${state === 'later' ? 'text-muted' : ''}`}>
            {title}
            <span className="sr-only"> ({words[state]})</span>
          </h2>
          {children}
        </div>
      </li>
    ))}
  </ol>
);
