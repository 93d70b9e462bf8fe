// Values that the user needs elsewhere: shown in full, in a fixed-width font, with a copy button.

import { useEffect, useState } from 'react';
import { Icon } from './icon.tsx';

export const CopyButton = ({ value, label }: { value: string; label: string }) => {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  useEffect(() => {
    if (state === 'idle') return undefined;
    const timer = setTimeout(() => setState('idle'), 2000);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = () => {
    navigator.clipboard.writeText(value).then(
      () => setState('copied'),
      () => setState('failed'),
    );
  };
  return (
    <button
      type="button"
      onClick={copy}
      title={`Copy ${label}`}
      aria-label={`Copy ${label}`}
      className="inline-flex min-h-7 shrink-0 items-center gap-1 rounded px-1.5 text-xs text-muted hover:bg-hover hover:text-ink"
    >
      <Icon name={state === 'copied' ? 'check' : 'copy'} className={state === 'copied' ? 'size-4 text-ok' : 'size-4'} />
      <span aria-live="polite">
        {state === 'copied' && 'Copied'}
        {state === 'failed' && 'Select and copy manually'}
      </span>
    </button>
  );
};

const tailLength = 12;

/**
 * An identifier in little room: cut in its middle, because both ends tell one from another. The
 * text stays whole.
 */
export const Identifier = ({ value, label }: { value: string; label: string }) => (
  <span className="inline-flex max-w-full min-w-0 items-center gap-1">
    <span title={value} className="inline-flex max-w-56 min-w-0">
      <span className="truncate">{value.slice(0, -tailLength)}</span>
      <span className="whitespace-pre">{value.slice(-tailLength)}</span>
    </span>
    <CopyButton value={value} label={label} />
  </span>
);

/** An identifier or path with its copy button. */
export const Copyable = ({ value, label }: { value: string; label: string }) => (
  <span className="inline-flex max-w-full items-center gap-1">
    <code className="min-w-0 break-all">{value}</code>
    <CopyButton value={value} label={label} />
  </span>
);
