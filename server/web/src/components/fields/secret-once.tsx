// A secret that the service shows once: it lives in this dialog's state only, is never put into a URL, storage or a cache, and is
// discarded when the dialog closes. Closing requires a deliberate step, because the secret cannot be shown again.

import { type ReactNode, useState } from 'react';
import { Dialog, DialogActions } from '../forms/dialog.tsx';
import { Button } from '../page/button.tsx';
import { CopyButton } from '../page/copy.tsx';
import { Icon } from '../page/icon.tsx';
import { CheckField } from './field.tsx';

export const SecretValue = ({ label, value }: { label: string; value: string }) => (
  <div>
    <p className="font-medium">{label}</p>
    <div className="mt-1 flex items-start justify-between gap-2 rounded-md border border-line-strong bg-sunken py-1.5 pr-1.5 pl-3">
      <code data-secret="" className="min-w-0 py-1 break-all">
        {value}
      </code>
      <CopyButton value={value} label={label} />
    </div>
  </div>
);

export const SecretOnceDialog = ({
  title,
  notice,
  taken,
  onClose,
  children,
}: {
  title: string;
  /** Names the secret and says that it is shown only once. */
  notice: string;
  /** Label of the checkbox: "I have stored the token". */
  taken: string;
  onClose: () => void;
  children: ReactNode;
}) => {
  const [stored, setStored] = useState(false);
  return (
    <Dialog title={title} onClose={onClose} locked wide>
      <div className="space-y-4">
        <div className="flex gap-3 rounded-lg bg-warn-soft p-3">
          <Icon name="warning" className="mt-0.5 size-5 text-warn" />
          <p>{notice}</p>
        </div>
        {children}
        <CheckField label={taken} checked={stored} onValue={setStored} />
      </div>
      <DialogActions>
        <Button tone="primary" disabled={!stored} onClick={onClose}>
          Done
        </Button>
      </DialogActions>
    </Dialog>
  );
};

/** Hands text or bytes to the browser as a file, without a request. */
export const saveFile = (name: string, content: BlobPart, type: string): void => {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(url);
};
