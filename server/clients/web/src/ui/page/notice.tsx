// A fact about the resource on this page that the user must know before acting on it.

import type { ReactNode } from 'react';
import { Icon, type IconName } from './icon.tsx';

const tones = {
  info: { frame: 'border-line bg-accent-soft', ink: 'text-accent', icon: 'info' },
  warn: { frame: 'border-warn/30 bg-warn-soft', ink: 'text-warn', icon: 'warning' },
  danger: { frame: 'border-danger/35 bg-danger-soft', ink: 'text-danger', icon: 'warning' },
} as const satisfies Record<string, { frame: string; ink: string; icon: IconName }>;

export const Notice = ({
  tone,
  title,
  children,
}: {
  tone: keyof typeof tones;
  title: string;
  children?: ReactNode;
}) => (
  <div className={`flex gap-3 rounded-lg border p-4 ${tones[tone].frame}`}>
    <Icon name={tones[tone].icon} className={`mt-0.5 size-5 ${tones[tone].ink}`} />
    <div className="min-w-0">
      <p className="font-semibold">{title}</p>
      {children !== undefined && <div className="break-words">{children}</div>}
    </div>
  </div>
);
