// One action on one resource: what it does in a sentence, the call, the button. For actions that can be undone;
// ConfirmDialog is for the others.

import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useAnnounce } from './announce.tsx';
import { type CallFormProps, FormDialog } from './form.tsx';

export const ActionDialog = <Result,>({
  title,
  call,
  creates = false,
  submitLabel,
  danger = false,
  renews,
  done,
  onClose,
  children,
}: Pick<CallFormProps<Result>, 'call' | 'creates' | 'submitLabel'> & {
  title: string;
  danger?: boolean;
  /** The lists and details (by the first part of their query key) that the action changes. */
  renews: readonly string[];
  /** What to announce. */
  done: string;
  onClose: () => void;
  children: ReactNode;
}) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  return (
    <FormDialog<Result>
      title={title}
      call={call}
      creates={creates}
      submitLabel={submitLabel}
      submitTone={danger ? 'danger' : 'primary'}
      onCancel={onClose}
      onDone={async () => {
        await Promise.all(renews.map((path) => client.invalidateQueries({ queryKey: [path] })));
        announce(done);
        onClose();
      }}
    >
      {() => children}
    </FormDialog>
  );
};
