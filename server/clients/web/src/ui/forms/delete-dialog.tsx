// Deletion of a resource by typing its name. The dialog reads the resource again first and sends
// its entity tag, so that you never delete anything other than what you saw.

import type { ReactNode } from 'react';
import { useFresh } from '../../api/fresh.ts';
import { ProblemView } from '../page/problem-view.tsx';
import { ConfirmDialog } from './confirm-dialog.tsx';

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
      renews={renews}
      done={announcement ?? `Deleted ${kind} “${name}”`}
    >
      {children}
      {fresh.error !== null && <ProblemView error={fresh.error} onRetry={() => void fresh.refetch()} compact />}
    </ConfirmDialog>
  );
};
