// The state of a resource: a word and an icon; the colour only repeats them.

import { Icon, type IconName } from './icon.tsx';

const tones = {
  ok: 'bg-ok-soft text-ok',
  quiet: 'bg-quiet-soft text-muted',
  warn: 'bg-warn-soft text-warn',
  danger: 'bg-danger-soft text-danger',
} as const;

export type StateTone = keyof typeof tones;

const states: Readonly<Record<string, { tone: StateTone; icon: IconName; word: string }>> = {
  active: { tone: 'ok', icon: 'active', word: 'Active' },
  enabled: { tone: 'ok', icon: 'active', word: 'Enabled' },
  ok: { tone: 'ok', icon: 'active', word: 'Healthy' },
  disabled: { tone: 'warn', icon: 'pause', word: 'Disabled' },
  'no-credential': { tone: 'warn', icon: 'warning', word: 'No credential' },
  'never-called': { tone: 'quiet', icon: 'clock', word: 'Never called' },
  'key-unusable': { tone: 'danger', icon: 'warning', word: 'Key cannot be used' },
  invited: { tone: 'quiet', icon: 'clock', word: 'Invited' },
  'soft-deleted': { tone: 'quiet', icon: 'trash', word: 'Soft-deleted' },
  deleted: { tone: 'quiet', icon: 'trash', word: 'Deleted' },
  'vault-disabled': { tone: 'warn', icon: 'pause', word: 'Vault disabled' },
  'vault-deleted': { tone: 'quiet', icon: 'trash', word: 'Vault deleted' },
  destroyed: { tone: 'danger', icon: 'destroyed', word: 'Destroyed' },
  tampered: { tone: 'danger', icon: 'warning', word: 'Tampered with' },
  removed: { tone: 'quiet', icon: 'trash', word: 'Removed' },
  live: { tone: 'ok', icon: 'active', word: 'Live' },
  suspended: { tone: 'warn', icon: 'pause', word: 'Suspended' },
  purged: { tone: 'danger', icon: 'destroyed', word: 'Purged' },
  revoked: { tone: 'danger', icon: 'blocked', word: 'Revoked' },
  expired: { tone: 'warn', icon: 'clock', word: 'Expired' },
  warn: { tone: 'warn', icon: 'warning', word: 'Needs attention' },
  fail: { tone: 'danger', icon: 'warning', word: 'Failing' },
};

export const Badge = ({ tone, icon, children }: { tone: StateTone; icon: IconName; children: string }) => (
  <span
    className={`inline-flex items-center gap-1.5 rounded-full py-0.5 pr-2.5 pl-1.5 text-xs font-medium whitespace-nowrap ${tones[tone]}`}
  >
    <Icon name={icon} className="size-3.5" />
    {children}
  </span>
);

/** For a choice of states. */
export const stateWord = (state: string): string => states[state]?.word ?? state;

/**
 * The service refuses a row that was changed from outside in every state, so the badge shows that
 * instead of the state.
 */
export const StateBadge = ({ state, integrity = 'ok' }: { state: string; integrity?: 'ok' | 'tampered' }) => {
  const { tone, icon, word } = states[integrity === 'tampered' ? integrity : state] ?? {
    tone: 'quiet' as const,
    icon: 'info' as const,
    word: state,
  };
  return (
    <Badge tone={tone} icon={icon}>
      {word}
    </Badge>
  );
};
