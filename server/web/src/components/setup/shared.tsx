// Shared parts of the steps of the first setup.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ApiCall, send } from '../../api/client.ts';
import type { Setup } from '../../api/types.ts';
import { ApiCallView } from '../forms/api-call.tsx';
import { useAnnounce } from '../page/announce.tsx';
import { Button } from '../page/button.tsx';
import { ProblemView } from '../page/problem-view.tsx';
import { Time } from '../page/time.tsx';
import { setupPath } from './setup.ts';

export type Step = Setup['steps'][number];
export type ConfirmedStep = 'root-key' | 'administrator' | 'audit-sinks';

export const lookEvery = 5_000;

/** Reads a resource again while a step waits for it. */
export const useWatched = <T,>(path: string, query?: { readonly limit: number }) =>
  useQuery({
    queryKey: [path, 'setup'],
    queryFn: ({ signal }) => send<T>({ method: 'GET', path, ...(query === undefined ? {} : { query }) }, { signal }),
    refetchInterval: lookEvery,
  });

/** A person's statement about what the service cannot check. */
export const ConfirmStep = ({ step, text, confirmed }: { step: ConfirmedStep; text: string; confirmed: boolean }) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const call: ApiCall = { method: 'PUT', path: setupPath, body: { step, confirmed } };
  const change = useMutation({
    mutationFn: () => send<Setup>(call),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: [setupPath] });
      announce(confirmed ? 'Marked as done' : 'Marked as not done');
    },
  });
  return (
    <div className="space-y-2">
      <Button
        needs="setup:confirm"
        tone={confirmed ? 'plain' : 'quiet'}
        className="text-left whitespace-normal!"
        icon={confirmed ? 'check' : 'refresh'}
        busy={change.isPending}
        onClick={() => change.mutate()}
      >
        {text}
      </Button>
      {change.error !== null && <ProblemView error={change.error} compact />}
      <ApiCallView call={call} />
    </div>
  );
};

export const ConfirmedBy = ({ step }: { step: Step }) =>
  step.confirmed === null ? null : (
    <p className="text-muted">
      Marked as done by {step.confirmed.by}, <Time value={step.confirmed.at} distance />.
    </p>
  );

export const Finding = ({ children }: { children: string }) => (
  <p role="status" className="font-medium wrap-anywhere">
    {children.charAt(0).toUpperCase()}
    {children.slice(1)}.
  </p>
);
