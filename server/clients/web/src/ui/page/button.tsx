// Buttons, and links that look like them. One primary action in each view; danger only for what
// cannot be undone.

import type { ComponentProps, ReactNode } from 'react';
import type { Permission } from '../../api/types.ts';
import { useMay } from '../../session/may.ts';
import { Icon, type IconName } from './icon.tsx';

const tones = {
  primary: 'bg-accent text-on-accent hover:bg-accent-strong border-transparent',
  plain: 'bg-surface text-ink border-line-strong/50 hover:bg-hover',
  quiet: 'bg-transparent text-muted border-transparent hover:bg-hover hover:text-ink',
  danger: 'bg-danger text-on-danger hover:bg-danger-strong border-transparent',
  dangerPlain: 'bg-surface text-danger border-danger/50 hover:bg-danger-soft',
} as const;

export type ButtonTone = keyof typeof tones;

const shape =
  'inline-flex min-h-9 items-center justify-center gap-2 rounded-md border px-3 py-1.5 text-sm font-medium whitespace-nowrap transition-colors select-none disabled:opacity-55 disabled:cursor-not-allowed aria-disabled:opacity-55';

export const buttonClass = (tone: ButtonTone = 'plain'): string => `${shape} ${tones[tone]}`;

export interface ButtonProps extends Omit<ComponentProps<'button'>, 'children'> {
  readonly tone?: ButtonTone;
  readonly icon?: IconName;
  /** While true, the button keeps its label, shows progress, and ignores a second press. */
  readonly busy?: boolean;
  /** Who lacks it does not see the button. */
  readonly needs?: Permission;
  /**
   * The permission is needed for what does not exist yet: one for a single resource is not enough.
   */
  readonly creates?: boolean;
  /** A dialog follows, which can be left without an effect: the text ends with “…”. */
  readonly opens?: boolean;
  readonly children: ReactNode;
}

export const Button = ({ needs, creates = false, ...rest }: ButtonProps) => {
  const may = useMay();
  return needs === undefined || may(needs, { scoped: !creates }) ? <PlainButton {...rest} /> : null;
};

const PlainButton = ({
  tone = 'plain',
  icon,
  busy = false,
  opens = false,
  children,
  className = '',
  onClick,
  ...rest
}: Omit<ButtonProps, 'needs' | 'creates'>) => (
  <button
    type="button"
    data-tone={tone}
    aria-haspopup={opens ? 'dialog' : undefined}
    {...rest}
    aria-busy={busy || undefined}
    aria-disabled={busy || undefined}
    onClick={(event) => {
      if (busy) event.preventDefault();
      else onClick?.(event);
    }}
    className={`${buttonClass(tone)} ${className}`}
  >
    {busy ? <Spinner /> : icon !== undefined && <Icon name={icon} />}
    {children}
    {opens && '…'}
  </button>
);

export const IconButton = ({
  icon,
  label,
  className = '',
  ...rest
}: Omit<ComponentProps<'button'>, 'children'> & { icon: IconName; label: string }) => (
  <button
    type="button"
    {...rest}
    aria-label={label}
    title={label}
    className={`inline-flex size-9 items-center justify-center rounded-md text-muted transition-colors hover:bg-hover hover:text-ink ${className}`}
  >
    <Icon name={icon} className="size-5" />
  </button>
);

const Spinner = () => (
  <svg
    viewBox="0 0 20 20"
    className="size-4 motion-safe:animate-spin"
    fill="none"
    stroke="currentColor"
    strokeWidth="2"
    aria-hidden="true"
  >
    <circle cx="10" cy="10" r="7" opacity="0.3" />
    <path d="M17 10a7 7 0 0 0-7-7" strokeLinecap="round" />
  </svg>
);
