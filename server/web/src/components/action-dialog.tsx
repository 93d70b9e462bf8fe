// One action on one thing, asked for once: what it does in a sentence, the call, the button. For actions that can be undone; what
// cannot is for ConfirmDialog.

import type { ReactNode } from 'react';
import { type CallFormProps, FormDialog } from './form.tsx';

export const ActionDialog = <Result,>({
  danger = false,
  onClose,
  children,
  ...form
}: Pick<CallFormProps<Result>, 'call' | 'creates' | 'submitLabel' | 'renews' | 'done'> & {
  title: string;
  danger?: boolean;
  onClose: () => void;
  children: ReactNode;
}) => (
  <FormDialog<Result> {...form} submitTone={danger ? 'danger' : 'primary'} onCancel={onClose}>
    {() => children}
  </FormDialog>
);
