// One resource on a page: a skeleton while it loads, then the content or the problem.

import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ProblemView } from './problem-view.tsx';
import { Time } from './time.tsx';

/** What is shown is from before, because it could not be read again. */
const Outdated = ({ query }: { query: UseQueryResult }) => (
  <div className="p-2">
    <p className="mb-1 text-xs text-muted">
      From <Time value={new Date(query.dataUpdatedAt).toISOString()} seconds />. It could not be read again:
    </p>
    <ProblemView error={query.error} onRetry={() => void query.refetch()} compact />
  </div>
);

export const Async = <Data,>({
  query,
  lines = 4,
  skeleton,
  inset = false,
  children,
}: {
  query: UseQueryResult<Data>;
  /** Height of the skeleton, in lines. */
  lines?: number;
  /** Placeholder instead of lines of text. */
  skeleton?: ReactNode;
  /** The content fills its panel to the edges; a problem does not. */
  inset?: boolean;
  children: (data: Data) => ReactNode;
}) => {
  if (query.data !== undefined)
    return (
      <>
        {query.error !== null && <Outdated query={query} />}
        {children(query.data)}
      </>
    );
  if (query.error !== null) {
    const problem = <ProblemView error={query.error} onRetry={() => void query.refetch()} />;
    return inset ? <div className="p-4">{problem}</div> : problem;
  }
  if (skeleton !== undefined) return skeleton;
  return (
    <div role="status" aria-label="Loading" className="space-y-3">
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: placeholders have no identity
        <div key={line} className={`skeleton h-4 ${line % 2 === 0 ? 'w-2/3' : 'w-1/2'}`} />
      ))}
    </div>
  );
};
