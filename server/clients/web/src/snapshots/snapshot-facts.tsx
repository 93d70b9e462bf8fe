// Shared by the pages of snapshots: the size and the result of the verification.

import type { Snapshot } from '../api/types.ts';
import { Badge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';

export const formatSize = (size: number | null): string =>
  size === null ? '–' : size < 1_048_576 ? `${(size / 1024).toFixed(1)} KiB` : `${(size / 1_048_576).toFixed(1)} MiB`;

export const Verified = ({ snapshot: { verification, verifiedAt, tampered } }: { snapshot: Snapshot }) => {
  if (tampered || verification?.valid === false)
    return (
      <Badge tone="danger" icon="warning">
        {tampered ? 'Tampered with' : (verification?.finding ?? 'Not valid')}
      </Badge>
    );
  if (verifiedAt === null)
    return (
      <Badge tone="warn" icon="clock">
        Not verified
      </Badge>
    );
  return (
    <span className="inline-flex flex-wrap items-center gap-2">
      <Badge tone="ok" icon="active">
        {verification?.depth === 'opened' ? 'Opened and compared' : 'Valid'}
      </Badge>
      <Time value={verifiedAt} distance />
    </span>
  );
};
