// A failure for the user: what failed, what to do next, which permission is missing, and the
// request id that finds the same call in the audit log and the server's log.

import type { ReactNode } from 'react';
import { ApiProblem } from '../../api/client.ts';
import { Button } from './button.tsx';
import { CopyButton } from './copy.tsx';
import { Icon } from './icon.tsx';
import { sentence } from './sentence.ts';
import { withOwnTime } from './time.tsx';

const asProblem = (error: unknown): ApiProblem =>
  error instanceof ApiProblem
    ? error
    : new ApiProblem({
        status: 0,
        code: 'page-fault',
        title: 'This page has an error',
        detail: error instanceof Error ? error.message : 'An unexpected error occurred.',
        hint: 'Reload the page. The service itself is not affected.',
      });

export const ProblemView = ({
  error,
  onRetry,
  compact = false,
}: {
  error: unknown;
  onRetry?: (() => void) | undefined;
  /** Inside a form or dialog whose title already names the action. */
  compact?: boolean;
}) => {
  const problem = asProblem(error);
  const waits = problem.status === 202;
  const denied = problem.status === 403 || waits;
  const title = denied && !waits ? 'Permission denied' : sentence(problem.title).replace(/\.$/, '');
  const detail = sentence(problem.message);
  return (
    <div
      role="alert"
      className={`flex gap-3 rounded-lg border text-left ${denied ? 'border-line bg-quiet-soft' : 'border-danger/35 bg-danger-soft'} ${compact ? 'p-3' : 'p-4'}`}
    >
      <Icon
        name={waits ? 'clock' : denied ? 'blocked' : 'warning'}
        className={`mt-0.5 size-5 ${denied ? 'text-muted' : 'text-danger'}`}
      />
      <div className="min-w-0 flex-1 space-y-1">
        <p className="font-semibold">{title}</p>
        {detail !== sentence(title) && <p className="break-words">{withOwnTime(detail)}</p>}
        {denied && problem.permission !== undefined && (
          <p>
            The missing permission is <code className="font-semibold">{problem.permission}</code>. A tenant
            administrator can grant it.
          </p>
        )}
        {problem.fields.length > 0 && (
          <ul className="list-disc pl-5">
            {problem.fields.map((field) => (
              <li key={`${field.path} ${field.message}`}>
                {field.path !== '' && <code>{field.path}</code>} {withOwnTime(field.message)}
              </li>
            ))}
          </ul>
        )}
        {problem.hint !== undefined && <p className="text-muted">{withOwnTime(sentence(problem.hint))}</p>}
        <p className="flex flex-wrap items-center gap-x-2 text-xs text-muted">
          <code>{problem.code}</code>
          {problem.requestId !== undefined && (
            <span className="inline-flex min-w-0 items-center gap-1">
              {waits ? 'approval' : 'request'} <code className="min-w-0 break-all">{problem.requestId}</code>
              <CopyButton value={problem.requestId} label="request id" />
            </span>
          )}
        </p>
        {onRetry !== undefined && (
          <div className="pt-1">
            <Button icon="refresh" onClick={onRetry}>
              Try again
            </Button>
          </div>
        )}
      </div>
    </div>
  );
};

/** An empty list, with the next step. */
export const EmptyState = ({ title, children, action }: { title: string; children: ReactNode; action?: ReactNode }) => (
  <div className="flex flex-col items-center px-4 py-12 text-center">
    <p className="text-base font-semibold">{title}</p>
    <div className="mt-1 max-w-prose text-muted">{children}</div>
    {action !== undefined && <div className="mt-4">{action}</div>}
  </div>
);
