// One node: its state, what it has confirmed, its duties, and what was changed about it.

import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import { nodesPath } from '../api/paths.ts';
import type { Node } from '../api/types.ts';
import { History } from '../audit/history.tsx';
import { Async } from '../ui/page/async.tsx';
import { Copyable } from '../ui/page/copy.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { Time } from '../ui/page/time.tsx';
import { dutyNames, HeardOf, NodeState } from './node-state.tsx';

const route = getRouteApi('/nodes/$id');

export const NodePage = () => {
  const { id } = route.useParams();
  const query = useQuery({
    queryKey: [nodesPath, id],
    queryFn: ({ signal }) => send<Node>({ method: 'GET', path: `${nodesPath}/${encodeURIComponent(id)}` }, { signal }),
    refetchInterval: 5_000,
  });
  const node = query.data;
  return (
    <Page
      title={node?.name ?? 'Node'}
      crumbs={[{ text: 'Nodes', to: '/nodes' }]}
      badge={node !== undefined && <NodeState state={node.state} />}
    >
      <Panel title="Node" asOf={query.dataUpdatedAt}>
        <Async query={query} lines={4}>
          {(value) => (
            <Facts
              items={[
                ['Version', value.version],
                ['Running since', <Time key="since" value={value.startedAt} seconds />],
                ['Last heartbeat', <HeardOf key="heard" {...value} />],
                ['Changes to confirm', String(value.behind)],
                ['Root key, epoch', `${value.rootEpoch}${value.hasOldRoot ? ', and the old key' : ''}`],
                ['Duties', value.duties.map((duty) => dutyNames[duty]).join(', ') || 'none'],
                ['Serves this page', value.self ? 'yes' : 'no'],
                ['Id', <Copyable key="id" value={value.id} label="node id" />],
              ]}
            />
          )}
        </Async>
      </Panel>
      <History title="Changes of this node" of={{ subjectId: id }} />
    </Page>
  );
};
