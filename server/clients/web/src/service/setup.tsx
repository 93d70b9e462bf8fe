// The first steps of a service, from the root key to the first verified snapshot, and then to the
// first cloud or database. Their state is read from the service, so that the setup can be
// interrupted at any time. For settings of the configuration file, it shows the lines and waits.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Setup } from '../api/types.ts';
import { Async } from '../ui/page/async.tsx';
import { Icon } from '../ui/page/icon.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Page } from '../ui/page/page.tsx';
import { type SetupStep, SetupSteps, type StepState } from '../ui/page/steps.tsx';
import { Time } from '../ui/page/time.tsx';
import { Administrator, LastingTokens, RecoveryCodes } from './setup/administrator.tsx';
import { Sinks } from './setup/audit-sinks.tsx';
import { ConnectLinks } from './setup/connect-links.tsx';
import { FirstSnapshot, Recovery, Schedule } from './setup/recovery.tsx';
import { RootBackup, RootProtection } from './setup/root-key.tsx';
import { lookEvery, type Step } from './setup/shared.tsx';
import { setupQuery, stepTitles } from './use-setup.ts';

const Content = ({ step, steps }: { step: Step; steps: readonly Step[] }): ReactNode => {
  switch (step.step) {
    case 'root-protection':
      return <RootProtection step={step} />;
    case 'root-key':
      return <RootBackup step={step} />;
    case 'administrator':
      return <Administrator step={step} />;
    case 'recovery-codes':
      return <RecoveryCodes step={step} />;
    case 'first-token':
      return <LastingTokens step={step} />;
    case 'snapshot-schedule':
      return <Schedule step={step} />;
    case 'audit-sinks':
      return <Sinks step={step} />;
    case 'recovery-key':
      return <Recovery step={step} />;
    case 'snapshot':
      return (
        <FirstSnapshot
          step={step}
          ready={steps.some(({ step: each, state }) => each === 'recovery-key' && state === 'done')}
        />
      );
  }
};

/** A step that is not current: its state, with the details on request. */
const Folded = ({ finding, children }: { finding: string; children: ReactNode }) => (
  <details className="group">
    <summary className="flex min-h-9 list-none items-center gap-2 rounded-md text-muted wrap-anywhere [&::-webkit-details-marker]:hidden">
      <Icon name="chevron" className="size-3.5 transition-transform group-open:rotate-90" />
      <span className="min-w-0">
        {finding.charAt(0).toUpperCase()}
        {finding.slice(1)}
      </span>
    </summary>
    <div className="space-y-3 pt-2">{children}</div>
  </details>
);

const Steps = ({ setup: { steps, finishedAt } }: { setup: Setup }) => {
  const open = steps.filter(({ state }) => state === 'open');
  const next = open[0]?.step;
  if (finishedAt !== null && steps.every(({ state }) => state === 'done'))
    return (
      <Notice tone="info" title="This service is set up">
        A snapshot was first opened with a recovery key <Time value={finishedAt} distance />. Test a restore soon.{' '}
        <Link to="/snapshots" className="link">
          Snapshots
        </Link>
      </Notice>
    );
  // After the setup, only what is not done is shown.
  const shown = finishedAt === null ? steps : steps.filter(({ state }) => state !== 'done');
  const stateOf = ({ step, state }: Step): StepState =>
    state === 'done' ? 'done' : state === 'confirmed' ? 'accepted' : step === next ? 'next' : 'later';
  return (
    <SetupSteps
      steps={shown.map(
        (step): SetupStep => ({
          title: stepTitles[step.step],
          state: stateOf(step),
          children:
            step.step === next ? (
              <Content step={step} steps={steps} />
            ) : (
              <Folded finding={step.finding}>
                <Content step={step} steps={steps} />
              </Folded>
            ),
        }),
      )}
    />
  );
};

export const SetupPage = () => {
  const query = useQuery({ ...setupQuery, refetchInterval: lookEvery });
  return (
    <Page
      title="Set up this service"
      description="From the root key to the first verified snapshot. You can leave at any time. Progress is saved."
    >
      <Async query={query} lines={8}>
        {(setup) => <Steps setup={setup} />}
      </Async>
      <ConnectLinks />
    </Page>
  );
};
