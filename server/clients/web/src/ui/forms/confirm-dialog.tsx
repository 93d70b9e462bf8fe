// Confirmation by typing the name, for actions that cannot be undone or that stop the work of
// others. The consequence is above the field, and the button is disabled until the text matches
// exactly (identifiers are case-sensitive).

import { type ReactNode, useState } from 'react';
import { TextField } from '../fields/field.tsx';
import { Dialog } from './dialog.tsx';
import { CallForm, type CallFormProps } from './form.tsx';

export const ConfirmDialog = <Result,>({
  title,
  expected,
  expectedKind,
  ready = true,
  wide = false,
  children,
  ...form
}: Omit<CallFormProps<Result>, 'children' | 'submitDisabled' | 'submitTone'> & {
  title: string;
  /** The exact text to type. */
  expected: string;
  /** The name of that text, such as "key name". */
  expectedKind: string;
  /** False while the impact is still being read: only what is shown can be confirmed. */
  ready?: boolean;
  wide?: boolean;
  onCancel: () => void;
  children: ReactNode;
}) => {
  const [typed, setTyped] = useState('');
  return (
    <Dialog title={title} onClose={form.onCancel} wide={wide}>
      <CallForm {...form} typedAgain submitTone="danger" submitDisabled={!ready || typed !== expected}>
        {() => (
          <>
            <div className="space-y-3">{children}</div>
            <TextField
              label={`Type the ${expectedKind} to confirm`}
              help={
                <>
                  Exactly <code className="font-semibold break-all text-ink">{expected}</code>
                </>
              }
              value={typed}
              onValue={setTyped}
              autoCapitalize="off"
              mono
            />
          </>
        )}
      </CallForm>
    </Dialog>
  );
};
