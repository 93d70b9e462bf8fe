// Deletion of a resource by typing its name. The dialog reads the resource again first and sends its entity tag, so that you never
// delete anything other than what you saw.

import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useFresh } from '../api/fresh.ts';
import { useAnnounce } from './announce.tsx';
import { ConfirmDialog } from './confirm-dialog.tsx';
import { ProblemView } from './problem-view.tsx';

export const DeleteDialog = <Result,>({
  kind,
  name,
  path,
  renews,
  announcement,
  ready = true,
  onClose,
  children,
}: {
  /** "key", "vault", "endpoint". */
  kind: string;
  name: string;
  path: string;
  /** First parts of the query keys that the deletion changes. */
  renews: readonly string[];
  /** The announcement; default: it was deleted. */
  announcement?: (result: Result) => string;
  /** False while the consequences are still being read. */
  ready?: boolean;
  onClose: () => void;
  children: ReactNode;
}) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const fresh = useFresh<unknown>(path);
  return (
    <ConfirmDialog<Result>
      title={`Delete “${name}”?`}
      expected={name}
      expectedKind={`${kind} name`}
      ready={ready && fresh.data !== undefined}
      call={{ method: 'DELETE', path }}
      ifMatch={fresh.data?.etag}
      submitLabel={`Delete ${kind}`}
      onCancel={onClose}
      onDone={async (result) => {
        await Promise.all(renews.map((key) => client.invalidateQueries({ queryKey: [key] })));
        announce(announcement?.(result) ?? `Deleted ${kind} “${name}”`);
        onClose();
      }}
    >
      {children}
      {fresh.error !== null && <ProblemView error={fresh.error} onRetry={() => void fresh.refetch()} compact />}
    </ConfirmDialog>
  );
};
