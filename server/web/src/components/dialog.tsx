// Modal dialogs on the browser's own <dialog>: it keeps the focus inside, closes on Escape, gives the focus back, and needs no
// style injected at run time, which the content security policy would refuse.

import { type ReactNode, useEffect, useId, useRef } from 'react';
import { IconButton } from './button.tsx';

export interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly wide?: boolean;
  /** While true, Escape and the close button do nothing: a call is in progress, or a secret has not been stored. */
  readonly locked?: boolean;
}

/** Mount it to open it. */
export const Dialog = ({ title, onClose, children, wide = false, locked = false }: DialogProps) => {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();

  useEffect(() => {
    const dialog = ref.current;
    const opener = document.activeElement;
    if (dialog === null) return undefined;
    dialog.showModal();
    return () => {
      dialog.close();
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
      // The action has removed its own button: keyboard users continue in the page, not outside of it.
      else document.querySelector<HTMLElement>('#main h1')?.focus();
    };
  }, []);

  return (
    <dialog
      ref={ref}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        if (!locked) onClose();
      }}
      onKeyDown={(event) => {
        // The browser closes a dialog at the second Escape even when the first was refused.
        if (event.key === 'Escape' && locked) event.preventDefault();
      }}
      className={`rise m-auto max-h-[calc(100dvh-2rem)] w-[calc(100vw-2rem)] overflow-y-auto rounded-xl border border-line bg-raised shadow-float max-sm:mb-4 ${wide ? 'max-w-3xl' : 'max-w-lg'}`}
    >
      <div className="flex items-start justify-between gap-4 px-5 pt-4">
        <h2 id={titleId} className="min-w-0 pt-1 text-lg font-semibold break-words">
          {title}
        </h2>
        {!locked && <IconButton icon="close" label="Close" onClick={onClose} className="-mr-2" />}
      </div>
      <div className="px-5 pt-2 pb-5">{children}</div>
    </dialog>
  );
};

export const DialogActions = ({ children }: { children: ReactNode }) => (
  <div className="mt-5 flex flex-col-reverse gap-2 sm:flex-row sm:justify-end">{children}</div>
);
