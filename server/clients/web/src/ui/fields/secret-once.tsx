// A secret that the service shows once: it lives in this dialog's state only, is never put into a
// URL, storage or a cache, and is discarded when the dialog closes. Closing requires a deliberate
// step, because the secret cannot be shown again.

import { type ReactNode, useState } from 'react';
import { Dialog, DialogActions } from '../forms/dialog.tsx';
import { Button } from '../page/button.tsx';
import { CopyButton } from '../page/copy.tsx';
import { Icon } from '../page/icon.tsx';
import { CheckField } from './field.tsx';

interface SecretFile {
  /** Says what the file is, and of what. */
  readonly name: string;
  readonly mode: string;
}

/** A file of a secret: its name says what it is, and only its owner may read it. */
export const secretFile = (what: string, of: string): SecretFile => ({
  name: `dke-${what}-${of.replaceAll(/[^A-Za-z0-9.-]+/g, '-')}.txt`,
  mode: '600',
});

/** Recommended for a file that was saved: browsers save files that others of the host can read. */
export const FileMode = ({ name, mode }: SecretFile) => (
  <p className="text-muted">
    Only its owner should read the file:{' '}
    <code className="wrap-anywhere">
      chmod {mode} {name}
    </code>
  </p>
);

/**
 * Masked, so that no one else reads it from the screen; it is copied and saved without being shown.
 */
export const SecretValue = ({ label, value, file }: { label: string; value: string; file?: SecretFile }) => {
  const [isShown, setShown] = useState(false);
  return (
    <div className="space-y-1">
      <p className="font-medium">{label}</p>
      <div className="flex items-start justify-between gap-2 rounded-md border border-line-strong bg-sunken py-1.5 pr-1.5 pl-3">
        {isShown ? (
          <code data-secret="" className="min-w-0 py-1 break-all">
            {value}
          </code>
        ) : (
          <span className="py-1">
            <span aria-hidden="true">••••••••••••</span>
            <span className="sr-only">hidden</span>
          </span>
        )}
        <span className="flex shrink-0 items-center">
          <button
            type="button"
            aria-label={`${isShown ? 'Hide' : 'Reveal'} ${label}`}
            onClick={() => setShown(!isShown)}
            className="inline-flex min-h-7 items-center rounded px-1.5 text-xs text-muted hover:bg-hover hover:text-ink"
          >
            {isShown ? 'Hide' : 'Reveal'}
          </button>
          <CopyButton value={value} label={label} />
        </span>
      </div>
      {file !== undefined && (
        <>
          <Button icon="download" onClick={() => saveFile(file.name, `${value}\n`, 'text/plain')}>
            {`Download ${file.name}`}
          </Button>
          <FileMode {...file} />
        </>
      )}
    </div>
  );
};

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
