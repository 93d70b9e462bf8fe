// On the overview: a link to the setup until it is finished, then its remaining steps. Hidden for
// users who may not see it.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { buttonClass } from '../ui/page/button.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Panel } from '../ui/page/page.tsx';
import { setupQuery, stepTitles } from './use-setup.ts';

const barTones = { open: 'bg-line-strong/40', confirmed: 'bg-warn', done: 'bg-accent' } as const;

export const SetupPanel = () => {
  const setup = useQuery({ ...setupQuery, retry: false }).data;
  const open = setup?.steps.filter(({ state }) => state === 'open') ?? [];
  const risks = setup?.steps.filter(({ state }) => state === 'confirmed') ?? [];
  if (setup === undefined) return null;
  if (open.length === 0)
    return risks.length === 0 ? null : (
      <Notice tone="warn" title="Accepted risks of the setup">
        {risks.map(({ step }) => stepTitles[step]).join(', ')}.{' '}
        <Link to="/setup" className="link">
          View the setup
        </Link>
      </Notice>
    );
  const next = open[0] === undefined ? '' : stepTitles[open[0].step];
  if (setup.finishedAt !== null)
    return (
      <Notice tone="info" title="Finish setting up">
        {open.map(({ step }) => stepTitles[step]).join(', ')}.{' '}
        <Link to="/setup" className="link">
          Continue
        </Link>
      </Notice>
    );
  const done = setup.steps.filter(({ state }) => state === 'done').length;
  const accepted = setup.steps.length - open.length - done;
  return (
    <Panel title="Set up this service">
      <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-3">
        <div className="min-w-0 flex-1 basis-64 space-y-2">
          <p className="max-w-prose">
            {done} of {setup.steps.length} steps are complete
            {accepted > 0 && `, and of ${accepted} the risk is accepted`}, from the root key to the first verified
            snapshot. You can leave at any time. Progress is saved.
          </p>
          <ul aria-hidden="true" className="flex max-w-sm gap-1.5">
            {setup.steps.map(({ step, state }) => (
              <li key={step} className={`h-1.5 flex-1 rounded-full ${barTones[state]}`} />
            ))}
          </ul>
        </div>
        <Link to="/setup" className={buttonClass('primary')}>
          {done === 0 ? 'Start setup' : `Next: ${next.charAt(0).toLowerCase()}${next.slice(1)}`}
        </Link>
      </div>
    </Panel>
  );
};
