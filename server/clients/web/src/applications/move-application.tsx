// Moves a TDE application to another group. The dialog shows the consequences for the chosen group,
// from the service, before the user can confirm.

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../api/client.ts';
import { applicationPath, applicationsPath, keysPath } from '../api/paths.ts';
import type { Application, ApplicationMove, MovedApplication } from '../api/types.ts';
import { PickField } from '../ui/fields/pick-field.tsx';
import { ConfirmDialog } from '../ui/forms/confirm-dialog.tsx';
import { Async } from '../ui/page/async.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { useGroups } from './use-groups.ts';

const count = (number: number, one: string): string => `${number} ${one}${number === 1 ? '' : 's'}`;
const hostsOf = (move: ApplicationMove['leaves'][number]): number =>
  new Set(move.instances.map((instance) => instance.host)).size;

const MoveView = ({ move }: { move: ApplicationMove }) => (
  <div className="space-y-3">
    {move.conflictingLabels.length > 0 && (
      <Notice tone="danger" title="The application cannot be moved to this group">
        Keys of {move.to.name} have the labels <span className="break-all">{move.conflictingLabels.join(', ')}</span>.
        Labels must be unique in a group.
      </Notice>
    )}
    <p>
      {count(move.keys, 'key')} and {count(move.objects, 'other object')} of its own move with it and stay usable.
    </p>
    <div>
      <p className="font-medium">
        It can no longer use {count(move.keysLost, 'key')} of these applications. They can no longer use its keys
      </p>
      <ul className="mt-1 list-disc pl-5">
        {move.leaves.map((other) => (
          <li key={other.id}>
            {other.name}
            <span className="text-muted">
              , {count(other.keys, 'key')}
              {other.instances.length === 0 ? ', not used yet' : `, used from ${count(hostsOf(other), 'host')}`}
            </span>
          </li>
        ))}
        {move.leaves.length === 0 && <li className="text-muted">It is the only application in {move.from.name}.</li>}
      </ul>
    </div>
    {move.joins.length > 0 && <p>It will share keys with {move.joins.map((other) => other.name).join(', ')}.</p>}
    <Notice tone="warn" title="Applies to every open session from its next call">
      A cloned database can no longer read tablespace keys that are still under a key of the old group. First set its
      own master key there.
    </Notice>
  </div>
);

export const MoveApplicationDialog = ({ application, onClose }: { application: Application; onClose: () => void }) => {
  const groups = useGroups();
  const [groupId, setGroupId] = useState('');
  const path = `${applicationPath(application.id)}/move`;
  const query = useQuery({
    // Not under the key of the applications: a move makes those stale, and this must not be read
    // again.
    queryKey: ['application-move', application.id, groupId],
    enabled: groupId !== '',
    queryFn: ({ signal }) =>
      send<MovedApplication>({ method: 'POST', path, query: { dryRun: true }, body: { groupId } }, { signal }),
    // The consequences must be current.
    gcTime: 0,
  });
  return (
    <ConfirmDialog<MovedApplication>
      title={`Move “${application.name}” to another group`}
      expected={application.name}
      expectedKind="name of the application"
      ready={query.data !== undefined && query.data.move.conflictingLabels.length === 0}
      wide
      call={{ method: 'POST', path, body: { groupId, confirm: application.name } }}
      submitLabel="Move application"
      onCancel={onClose}
      renews={[applicationsPath, keysPath]}
      done={({ move }) => `Application “${application.name}” moved to “${move.to.name}”`}
    >
      <PickField
        label="New group"
        placeholder="Choose a group"
        choices={groups
          .filter((group) => group.id !== application.groupId)
          .map((group) => ({ value: group.id, text: group.name }))}
        value={groupId}
        onValue={setGroupId}
      />
      {groupId !== '' && <Async query={query}>{({ move }) => <MoveView move={move} />}</Async>}
    </ConfirmDialog>
  );
};
