// One action on one resource: what it does in a sentence, the call, the button. For actions that
// can be undone; ConfirmDialog is for the others.

import type { ReactNode } from 'react';
import { type CallFormProps, FormDialog } from './form.tsx';

export const ActionDialog = <Result,>({
  danger = false,
  onClose,
  children,
  ...form
}: Pick<CallFormProps<Result>, 'call' | 'creates' | 'submitLabel' | 'renews' | 'done'> & {
  title: string;
  wide?: boolean;
  danger?: boolean;
  onClose: () => void;
  children: ReactNode;
}) => (
  <FormDialog<Result> {...form} submitTone={danger ? 'danger' : 'primary'} onCancel={onClose}>
    {() => children}
  </FormDialog>
);
