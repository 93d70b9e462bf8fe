// Shared parts of the steps of the first setup.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ApiCall, send } from '../../api/client.ts';
import { setupPath } from '../../api/paths.ts';
import type { Setup } from '../../api/types.ts';
import { ApiCallView } from '../../ui/forms/api-call.tsx';
import { useAnnounce } from '../../ui/page/announce.tsx';
import { Button } from '../../ui/page/button.tsx';
import { Icon } from '../../ui/page/icon.tsx';
import { ProblemView } from '../../ui/page/problem-view.tsx';
import { Time } from '../../ui/page/time.tsx';

export type Step = Setup['steps'][number];

export const lookEvery = 5_000;

/** Reads a resource again while a step waits for it. */
export const useWatched = <T,>(path: string, query?: { readonly limit: number }) =>
  useQuery({
    queryKey: [path, 'setup'],
    queryFn: ({ signal }) => send<T>({ method: 'GET', path, ...(query === undefined ? {} : { query }) }, { signal }),
    refetchInterval: lookEvery,
  });

/**
 * Leaves a step as it is: a person accepts the risk, and can withdraw that. What the service has
 * found done has none.
 */
export const AcceptRisk = ({ step: { step, state, confirmed }, text }: { step: Step; text: string }) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const accepts = state === 'open';
  const call: ApiCall = { method: 'PUT', path: setupPath, body: { step, confirmed: accepts } };
  const change = useMutation({
    mutationFn: () => send<Setup>(call),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: [setupPath] });
      announce(accepts ? 'Risk accepted' : 'Risk no longer accepted');
    },
  });
  if (state === 'done') return null;
  return (
    <div className="space-y-2">
      {confirmed !== null && (
        <p className="flex items-center gap-2 font-medium text-warn">
          <Icon name="warning" />
          <span>
            Risk accepted by {confirmed.by} on <Time value={confirmed.at} />.
          </span>
        </p>
      )}
      <Button
        needs="setup:confirm"
        className="text-left whitespace-normal!"
        icon={accepts ? 'warning' : 'refresh'}
        busy={change.isPending}
        onClick={() => change.mutate()}
      >
        {accepts ? text : 'Withdraw acceptance'}
      </Button>
      {change.error !== null && <ProblemView error={change.error} compact />}
      <ApiCallView call={call} />
    </div>
  );
};

export const Finding = ({ children }: { children: string }) => (
  <p role="status" className="font-medium wrap-anywhere">
    {children.charAt(0).toUpperCase()}
    {children.slice(1)}.
  </p>
);
