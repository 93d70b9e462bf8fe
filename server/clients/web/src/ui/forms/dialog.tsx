// Modal dialogs on the browser's own <dialog>: it keeps the focus inside, closes on Escape, gives
// the focus back, and needs no style injected at run time, which the content security policy would
// refuse.

import { type ReactNode, useEffect, useId, useRef } from 'react';
import { Button, IconButton } from '../page/button.tsx';
import { UnsavedGuard, useUnsaved } from './unsaved.tsx';

export interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly wide?: boolean;
  /**
   * While true, Escape and the close button do nothing: a call is in progress, or a secret has not
   * been stored.
   */
  readonly locked?: boolean;
}

const fields = 'input:not([type="hidden"], :disabled, [readonly]), select:not(:disabled), textarea:not(:disabled)';
/**
 * What a person does first: fills the first field, or, where something is destroyed, finds the
 * way out. The browser would take the first button, which closes: a space would end the dialog.
 */
const focusFirst = (dialog: HTMLDialogElement): void => {
  const visible = (selector: string): HTMLElement | undefined =>
    [...dialog.querySelectorAll<HTMLElement>(selector)].find((element) => element.checkVisibility());
  const isDestructive = visible('button[type="submit"][data-tone="danger"]') !== undefined;
  const first = isDestructive ? visible('[data-cancel]') : (visible(fields) ?? visible('[data-cancel]'));
  first?.focus();
};

/** Mount it to open it. A form in it that was changed is left after a question. */
export const Dialog = (props: DialogProps) => (
  <UnsavedGuard question={DiscardDialog}>
    <Frame {...props} />
  </UnsavedGuard>
);

/** Asks whether what was typed is given up. */
export const DiscardDialog = ({ onStay, onDiscard }: { onStay: () => void; onDiscard: () => void }) => (
  <Frame title="Discard what you entered?" onClose={onStay}>
    <p>It was not saved.</p>
    <DialogActions>
      <Button data-cancel onClick={onStay}>
        Keep editing
      </Button>
      <Button tone="danger" onClick={onDiscard}>
        Discard
      </Button>
    </DialogActions>
  </Frame>
);

const Frame = ({ title, onClose, children, wide = false, locked = false }: DialogProps) => {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const unsaved = useUnsaved();
  const close = (): void => (unsaved === undefined ? onClose() : unsaved.leave(onClose));

  useEffect(() => {
    const dialog = ref.current;
    const opener = document.activeElement;
    if (dialog === null) return undefined;
    dialog.showModal();
    focusFirst(dialog);
    return () => {
      dialog.close();
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
      // The action has removed its own button: keyboard users continue in the page, not outside of
      // it.
      else document.querySelector<HTMLElement>('#main h1')?.focus();
    };
  }, []);

  return (
    <dialog
      ref={ref}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        if (!locked) close();
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
        {!locked && <IconButton icon="close" label="Close" onClick={close} className="-mr-2" />}
      </div>
      <div className="px-5 pt-2 pb-5">{children}</div>
    </dialog>
  );
};

export const DialogActions = ({ children }: { children: ReactNode }) => (
  <div className="mt-5 flex flex-col-reverse gap-2 sm:flex-row sm:justify-end">{children}</div>
);
