// Nodes: the servers that share one database. Shows which are running, have confirmed every change,
// have the newest root key, and do the work that one node does for all.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { send } from '../api/client.ts';
import { nodesPath } from '../api/paths.ts';
import type { Node, Status } from '../api/types.ts';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { ConfirmDialog } from '../ui/forms/confirm-dialog.tsx';
import { Async } from '../ui/page/async.tsx';
import type { IconName } from '../ui/page/icon.tsx';
import { ActionMenu, type MenuAction } from '../ui/page/menu.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import { dutyNames, HeardOf, NodeState } from './node-state.tsx';

const own = ({ id }: Node): string => `${nodesPath}/${encodeURIComponent(id)}`;

const runs = ({ state }: Node): boolean => state === 'active' || state === 'draining';
const Dash = () => <span className="text-muted">–</span>;

/** The number of changes that it has not confirmed yet. */
const Changes = ({ node }: { node: Node }) => {
  if (!runs(node) && node.state !== 'offline') return <Dash />;
  if (node.behind === 0) return <span className="text-muted">all confirmed</span>;
  return (
    <Badge tone="warn" icon="clock">
      {`${node.behind} to confirm`}
    </Badge>
  );
};

const Root = ({ node, newest }: { node: Node; newest: number }) => (
  <span className="inline-flex flex-wrap items-center gap-2">
    <span className="tabular-nums">{node.rootEpoch}</span>
    {node.rootEpoch < newest && (
      <Badge tone="warn" icon="clock">
        older
      </Badge>
    )}
    {node.hasOldRoot && (
      <Badge tone="warn" icon="clock">
        also has the old key
      </Badge>
    )}
  </span>
);

const Duties = ({ duties }: Pick<Node, 'duties'>) =>
  duties.length === 0 ? (
    <Dash />
  ) : (
    <ul>
      {duties.map((duty) => (
        <li key={duty}>{dutyNames[duty]}</li>
      ))}
    </ul>
  );

type Verb = 'drain' | 'resume' | 'remove';

const Alone = ({ node }: { node: Node }) => (
  <Panel title="One server with its own database">
    <div className="space-y-4">
      <p className="max-w-prose text-muted">
        Each change takes effect at once, and this server does all the work. Several equal servers can share one
        PostgreSQL (<code>docs/postgresql.md</code>).
      </p>
      <Facts
        items={[
          ['Name', node.name],
          ['State', <NodeState key="state" state={node.state} />],
          ['Version', node.version],
          ['Root key, epoch', String(node.rootEpoch)],
          ['Running since', <Time key="since" value={node.startedAt} />],
          ['Duties', 'all'],
        ]}
      />
    </div>
  </Panel>
);

interface FleetProps {
  readonly nodes: readonly Node[];
  readonly asOf: number;
  readonly onAct: (node: Node, verb: Verb) => void;
}

const Fleet = ({ nodes, asOf, onAct }: FleetProps) => {
  const live = nodes.filter(({ state }) => state !== 'removed');
  const running = live.filter(runs);
  const newest = Math.max(...live.map(({ rootEpoch }) => rootEpoch));
  const waitsFor = running.filter(({ behind }) => behind > 0);
  const silent = live.filter(({ state }) => state === 'offline');
  const old = live.filter(({ rootEpoch, hasOldRoot }) => rootEpoch < newest || hasOldRoot);
  const idle = (Object.keys(dutyNames) as (keyof typeof dutyNames)[]).filter(
    (duty) => !nodes.some(({ duties }) => duties.includes(duty)),
  );
  const actionsOf = (node: Node): readonly MenuAction[] => {
    const act = (text: string, icon: IconName, verb: Verb, danger = false): MenuAction => ({
      text,
      needs: 'nodes:manage',
      icon,
      danger,
      onSelect: () => onAct(node, verb),
    });
    return [
      ...(node.state === 'active' || node.state === 'offline' ? [act('Drain', 'pause', 'drain')] : []),
      ...(node.state === 'draining' ? [act('Resume', 'refresh', 'resume')] : []),
      ...(node.state !== 'removed' && !node.self ? [act('Remove', 'trash', 'remove', true)] : []),
    ];
  };
  return (
    <>
      {silent.map((node) => (
        <Notice key={node.id} tone="danger" title={`${node.name} is offline`}>
          {node.usesKeysUntil === null ? (
            'If it still runs, it can use keys. Check its host, then start or remove it.'
          ) : (
            <>
              If it still runs, it stops using keys <Time value={node.usesKeysUntil} distance />. Start it, or remove it
              if it will not return.
            </>
          )}
        </Notice>
      ))}
      {idle.length > 0 && (
        <Notice tone="warn" title="No node assigned">
          {idle.map((duty) => dutyNames[duty]).join(', ')}: a node takes over within seconds, unless all nodes are
          draining.
        </Notice>
      )}
      <Panel title="All nodes" asOf={asOf}>
        <Facts
          items={[
            ['Running', `${running.length} of ${live.length}`],
            ['Confirmed every change', waitsFor.length === 0 ? 'all' : `not yet: ${names(waitsFor)}`],
            ['Newest root key, epoch', String(newest)],
            ['Have only the new key', old.length === 0 ? 'all' : `not yet: ${names(old)}`],
          ]}
        />
      </Panel>
      <Panel title="Nodes" flush>
        <DataTable
          caption="Nodes"
          rows={nodes}
          rowKey={({ id }) => id}
          columns={[
            {
              key: 'name',
              header: 'Name',
              names: true,
              cell: ({ id, name, self }) => (
                <>
                  <Link to="/nodes/$id" params={{ id }} className="link">
                    {name}
                  </Link>
                  {self && <span className="font-normal text-muted"> (serves this page)</span>}
                </>
              ),
            },
            { key: 'state', header: 'State', cell: ({ state }) => <NodeState state={state} /> },
            { key: 'changes', header: 'Changes', nowrap: true, cell: (node) => <Changes node={node} /> },
            { key: 'root', header: 'Root epoch', cell: (node) => <Root node={node} newest={newest} /> },
            { key: 'duties', header: 'Duties', nowrap: true, cell: ({ duties }) => <Duties duties={duties} /> },
            { key: 'heard', header: 'Last heartbeat', cell: (node) => <HeardOf {...node} /> },
            {
              key: 'actions',
              header: 'Actions',
              end: true,
              actions: true,
              cell: (node) => <ActionMenu label={`Actions on node ${node.name}`} actions={actionsOf(node)} />,
            },
          ]}
          detail={(node) => (
            <Facts
              items={[
                [
                  'Id',
                  <code key="id" className="break-all">
                    {node.id}
                  </code>,
                ],
                ['Version', node.version],
                ['Running since', <Time key="since" value={node.startedAt} seconds />],
                ['Last heartbeat', <Time key="heard" value={node.heartbeatAt} seconds />],
              ]}
            />
          )}
        />
      </Panel>
    </>
  );
};

const names = (nodes: readonly Node[]): string => nodes.map(({ name }) => name).join(', ');

const texts = {
  drain: [
    'Drain',
    'Node is draining',
    'Its health check fails, so requests and duties move to other nodes. It still answers requests.',
  ],
  resume: ['Resume', 'Node resumed', 'Its health check passes again, and it gets requests and duties again.'],
} as const;

export const NodesPage = () => {
  const [acting, setActing] = useState<{ readonly node: Node; readonly verb: Verb } | null>(null);
  const nodes = useQuery({
    queryKey: [nodesPath],
    queryFn: ({ signal }) => send<{ readonly items: readonly Node[] }>({ method: 'GET', path: nodesPath }, { signal }),
    refetchInterval: 5_000,
  });
  const dialect = useQuery({
    queryKey: ['/api/status'],
    queryFn: ({ signal }) => send<Status>({ method: 'GET', path: '/api/status' }, { signal }),
  }).data?.store.dialect;
  const close = (): void => setActing(null);
  return (
    <Page
      title="Nodes"
      description="The servers of this service: their state, the changes that they confirmed, and their duties."
    >
      <Async query={nodes} lines={6}>
        {({ items }) => {
          const [only] = items;
          return dialect === 'sqlite' && items.length === 1 && only !== undefined ? (
            <Alone node={only} />
          ) : (
            <Fleet nodes={items} asOf={nodes.dataUpdatedAt} onAct={(node, verb) => setActing({ node, verb })} />
          );
        }}
      </Async>
      {acting !== null && acting.verb !== 'remove' && (
        <ActionDialog<Node>
          title={`${texts[acting.verb][0]} the node ${acting.node.name}?`}
          call={{ method: 'POST', path: `${own(acting.node)}/${acting.verb}` }}
          submitLabel={`${texts[acting.verb][0]} node`}
          renews={[nodesPath]}
          done={texts[acting.verb][1]}
          onClose={close}
        >
          <p>{texts[acting.verb][2]}</p>
        </ActionDialog>
      )}
      {acting?.verb === 'remove' && (
        <ConfirmDialog<Node>
          title={`Remove the node ${acting.node.name}?`}
          call={{ method: 'DELETE', path: own(acting.node) }}
          submitLabel="Remove node"
          expected={acting.node.name}
          expectedKind="name of the node"
          onCancel={close}
          renews={[nodesPath]}
          done="Node removed"
        >
          <p>Changes and erasure runs no longer wait for it. If it still runs, it stops and cannot start again.</p>
          <p>
            This does not erase its root key file. Destroy the file with the host. Otherwise, the file can open keys in
            old backups, even keys that you destroy later.
          </p>
        </ConfirmDialog>
      )}
    </Page>
  );
};
