// The states of nodes as lists show them.

import type { Node } from '../api/types.ts';
import type { IconName } from '../ui/page/icon.tsx';
import { Badge, type StateTone } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';

const looks: Readonly<Record<Node['state'], readonly [StateTone, IconName, string]>> = {
  active: ['ok', 'active', 'Running'],
  draining: ['warn', 'pause', 'Draining'],
  offline: ['danger', 'warning', 'Offline'],
  stopped: ['quiet', 'pause', 'Stopped'],
  removed: ['quiet', 'trash', 'Removed'],
};

export const NodeState = ({ state }: Pick<Node, 'state'>) => {
  const [tone, icon, word] = looks[state];
  return (
    <Badge tone={tone} icon={icon}>
      {word}
    </Badge>
  );
};

/** Shows seconds: "just now" would hide that a node has been silent for seconds. */
export const HeardOf = ({ heartbeatAt, state }: Pick<Node, 'heartbeatAt' | 'state'>) =>
  state === 'offline' ? <Time value={heartbeatAt} seconds /> : <Time value={heartbeatAt} distance />;

/** What one node does for all. */
export const dutyNames: Readonly<Record<Node['duties'][number], string>> = {
  erasure: 'Erasure runs',
  audit: 'Audit checkpoints',
  forwarding: 'Sinks and notifications',
  'key-stores': 'Checks of key stores',
  pruning: 'Removal of old changes',
  schedules: 'Schedules',
};
