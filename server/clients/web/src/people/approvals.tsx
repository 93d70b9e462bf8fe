// Approval requests: operations that wait until others approve them (dual
// control). An approver sees the requester's picture, computed now, and what has changed since.

import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { send } from '../api/client.ts';
import type { Approval } from '../api/types.ts';
import { ChangedView, ImpactView, Picture } from '../keys/impact.tsx';
import { sessionQuery } from '../session/current-session.ts';
import { type Choice, TextField } from '../ui/fields/field.tsx';
import { FilterBar, SelectFilter } from '../ui/fields/filters.tsx';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { Button } from '../ui/page/button.tsx';
import type { IconName } from '../ui/page/icon.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Badge, type StateTone } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import type { Column } from '../ui/table/data-table.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { Actor } from './actor.tsx';

const route = getRouteApi('/approvals');
const path = '/api/approvals';

const looks: Readonly<Record<Approval['state'], readonly [StateTone, IconName, string]>> = {
  pending: ['warn', 'clock', 'Pending'],
  approved: ['ok', 'check', 'Approved'],
  completed: ['ok', 'active', 'Completed'],
  rejected: ['danger', 'blocked', 'Rejected'],
  withdrawn: ['quiet', 'trash', 'Withdrawn'],
  expired: ['quiet', 'clock', 'Expired'],
  outdated: ['quiet', 'info', 'Outdated'],
};
const states: readonly Choice[] = Object.entries(looks).map(([value, [, , text]]) => ({ value, text }));

const operations: Readonly<Record<Approval['operation'], string>> = {
  'master-key.destroy': 'Destroy the master key',
  'key.delete': 'Delete the key',
  'vault.delete': 'Delete the vault',
  'application.move': 'Move the application',
  'dual-control.change': 'Change the dual control of the vault',
  'vault.rename': 'Rename the vault',
  'group.rename': 'Rename the group',
  'snapshot.export': 'Export the snapshot',
  'recovery-key.register': 'Register the recovery key',
  'snapshot.restore': 'Restore the snapshot',
  'tenant.delete': 'Delete the tenant',
  'tenant.purge': 'Purge the tenant',
};

/** Who is still needed, by name. */
const Missing = ({ approval: { state, missing, able } }: { approval: Approval }) => {
  if (state !== 'pending' || able === undefined) return null;
  const names = able.map(({ name }) => name).join(', ');
  return able.length < missing ? (
    <Notice tone="danger" title={`${missing} more must approve, and only ${able.length} can`}>
      {able.length > 0 && `Can approve: ${names}. `}Give the role key-approver to more people, then withdraw the request
      and repeat it.
    </Notice>
  ) : (
    <p>
      <strong>{missing} more must approve.</strong> Can approve now: {names}.
    </p>
  );
};

/** An approver may know a thing by a name that someone has changed. */
const FormerNames = ({
  approval: { formerNames: names = [], formerNamesOmitted: omitted = 0 },
}: {
  approval: Approval;
}) =>
  names.length + omitted > 0 && (
    <Notice tone="warn" title="Renamed in the last 90 days">
      <ul className="space-y-1">
        {names.map(({ kind, id, name, formerName, until, by }) => (
          <li key={`${id} ${formerName}`} className="wrap-anywhere">
            The {kind} “{name}” was called “{formerName}” until <Time value={until} seconds />. Renamed by{' '}
            <Actor id={by.id} name={by.name} />.
          </li>
        ))}
      </ul>
      {omitted > 0 && (
        <p className="mt-2">
          <strong>At least {omitted} more former names are not shown.</strong> The audit log has all of them.
        </p>
      )}
    </Notice>
  );

/** Lists show a request as it was made: the request itself says what it would do now. */
const Detail = ({ listed }: { listed: Approval }) => {
  const isOpen = listed.endedAt === null;
  const now = useQuery({
    queryKey: [path, listed.id],
    queryFn: ({ signal }) => send<Approval>({ method: 'GET', path: `${path}/${listed.id}` }, { signal }),
    staleTime: 0,
    enabled: isOpen,
  });
  const approval = now.data ?? listed;
  const changed = approval.changed ?? null;
  return (
    <div className="space-y-4">
      <Facts
        items={[
          ['Requested by', <Actor key="by" id={approval.requestedBy.id} name={approval.requestedBy.name} />],
          ['Requested', <Time key="at" value={approval.requestedAt} seconds />],
          ['Expires', <Time key="until" value={approval.expiresAt} />],
        ]}
      />
      {changed !== null && (
        <Notice tone="danger" title="This has changed since the request: an approval ends it as outdated">
          <ChangedView then={{ name: approval.subject.name, ...listed.impact }} now={changed} />
        </Notice>
      )}
      <FormerNames approval={approval} />
      {isOpen && now.dataUpdatedAt > 0 && (
        <p className="text-xs text-muted">
          Computed <Time value={new Date(now.dataUpdatedAt).toISOString()} seconds />
        </p>
      )}
      <ImpactView impact={{ ...approval.parameters, ...approval.impact }} />
      {isOpen && <Picture approval={approval} />}
      {approval.rules.map((rule) => (
        <p key={rule.vaultId} className="text-muted">
          {rule.vaultName}: {rule.required} must approve, in addition to the requester
          {rule.approvers !== null && `. ${rule.approvers.length} were eligible at the request`}.
        </p>
      ))}
      <Missing approval={approval} />
      {approval.decisions.length > 0 && (
        <ul className="space-y-1">
          {approval.decisions.map((decision) => (
            <li key={decision.by.id}>
              {decision.by.name} {decision.decision === 'approve' ? 'approved' : 'rejected'},{' '}
              <Time value={decision.at} />
              {decision.comment !== null && `: ${decision.comment}`}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
};

type Verb = 'approve' | 'reject' | 'withdraw';
const verbs: Readonly<Record<Verb, readonly [label: string, done: string]>> = {
  approve: ['Approve', 'Approved'],
  reject: ['Reject', 'Rejected'],
  withdraw: ['Withdraw', 'Withdrawn'],
};

interface Decision {
  readonly approval: Approval;
  readonly verb: Verb;
}

const DecisionDialog = ({ approval, verb, onClose }: Decision & { readonly onClose: () => void }) => {
  const [comment, setComment] = useState('');
  const [label, done] = verbs[verb];
  const takesComment = verb !== 'withdraw';
  return (
    <ActionDialog<Approval>
      wide
      title={`${label}: ${operations[approval.operation].toLowerCase()} “${approval.subject.name}”?`}
      call={{
        method: 'POST',
        path: `${path}/${encodeURIComponent(approval.id)}/${verb}`,
        body: !takesComment || comment.trim() === '' ? {} : { comment: comment.trim() },
      }}
      submitLabel={label}
      danger={takesComment}
      renews={[path]}
      done={done}
      onClose={onClose}
    >
      <div className="space-y-4">
        {verb === 'approve' && <p>The last required approval starts the action at once. Check the impact first.</p>}
        <Detail listed={approval} />
        {takesComment && (
          <TextField label="Comment" optional help="Recorded in the audit log." value={comment} onValue={setComment} />
        )}
      </div>
    </ActionDialog>
  );
};

const State = ({ approval: { state, missing } }: { approval: Approval }) => {
  const [tone, icon, word] = looks[state];
  return (
    <Badge tone={tone} icon={icon}>
      {state === 'pending' ? `${missing} more to approve` : word}
    </Badge>
  );
};

/** The actions of the signed-in user. */
const Actions = ({ approval, isOwn, decide }: { approval: Approval; isOwn: boolean; decide: (verb: Verb) => void }) => {
  const { state } = approval;
  if (isOwn && (state === 'pending' || state === 'approved'))
    return (
      <Button opens onClick={() => decide('withdraw')}>
        Withdraw
      </Button>
    );
  // The service says who can: a button that only refuses is not there.
  if (approval.mayDecide !== true) return null;
  return (
    <span className="inline-flex gap-2">
      <Button needs="approvals:decide" opens onClick={() => decide('approve')}>
        Approve
      </Button>
      <Button needs="approvals:decide" tone="dangerPlain" opens onClick={() => decide('reject')}>
        Reject
      </Button>
    </span>
  );
};

const columns = (own: string | undefined, decide: (decision: Decision) => void): readonly Column<Approval>[] => [
  {
    key: 'what',
    header: 'Action',
    names: true,
    cell: ({ operation, subject }) => `${operations[operation]} ${subject.name}`,
  },
  { key: 'state', header: 'State', cell: (approval) => <State approval={approval} /> },
  { key: 'by', header: 'Requested by', cell: ({ requestedBy: { id, name } }) => <Actor id={id} name={name} /> },
  {
    key: 'until',
    header: 'Expires',
    cell: ({ expiresAt, endedAt }) =>
      endedAt === null ? (
        <Time value={expiresAt} distance />
      ) : (
        <span className="text-muted">
          ended <Time value={endedAt} distance />
        </span>
      ),
  },
  {
    key: 'actions',
    header: 'Actions',
    end: true,
    actions: true,
    cell: (approval) => (
      <Actions
        approval={approval}
        isOwn={approval.requestedBy.id === own}
        decide={(verb) => decide({ approval, verb })}
      />
    ),
  },
];

export const ApprovalsPage = () => {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const own = useQuery(sessionQuery).data?.id;
  const list = useList<Approval>(path, { ...filters });
  const [deciding, decide] = useState<Decision | null>(null);
  const filtered = filters.state !== undefined;
  const clear = () => void navigate({ search: {}, replace: true });
  return (
    <Page
      title="Approvals"
      description="Actions under dual control wait here for approval. The requester cannot approve. One rejection ends the request."
    >
      <Panel flush>
        <FilterBar active={filtered} onClear={clear}>
          <SelectFilter
            label="State"
            value={filters.state}
            onValue={(state) => void navigate({ search: { state }, replace: true })}
            choices={states}
          />
        </FilterBar>
        <ListView
          list={list}
          endless
          caption="Approval requests"
          rowKey={({ id }) => id}
          filtered={filtered}
          onClearFilters={clear}
          columns={columns(own, decide)}
          detail={(approval) => <Detail listed={approval} />}
          empty={
            <EmptyState title="No pending approvals">
              Set up dual control for a vault on the page Vaults. Destruction, export and restore then wait here for
              approval.
            </EmptyState>
          }
        />
      </Panel>
      {deciding !== null && <DecisionDialog {...deciding} onClose={() => decide(null)} />}
    </Page>
  );
};
