// Network: the callers of the last hour come from where the cloud key service calls from.

import { notAsked, ok, warning } from '../../../base/diagnostic-checks.ts';
import { createNetworks } from '../../../base/networks.ts';
import type { EndpointCheck } from '../context.ts';

export const cloudRanges: EndpointCheck = {
  id: 'cloud-ranges',
  layer: 'network',
  title: 'callers are in the networks of the cloud',
  fault: 'callers are outside of the networks of the cloud',
  needs: [],
  run: ({ cloudRanges: ranges, recent }) => {
    if (ranges.length === 0) return notAsked('diagnostics.cloud_networks is empty');
    const networks = createNetworks(ranges);
    const peers = new Set(recent.flatMap(({ peer, status }) => (peer === null || status !== 200 ? [] : [peer])));
    if (peers.size === 0)
      return warning('no signed requests in the last hour', 'check that the firewall allows requests from the cloud');
    const strange = [...peers].filter((peer) => !networks.has(peer));
    return strange.length === 0
      ? ok(`${peers.size} callers`)
      : warning(`also called from ${strange.slice(0, 5).join(', ')}`, 'allow only the networks of the cloud');
  },
};
