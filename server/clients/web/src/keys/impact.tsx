// What an operation means, in words: the same picture for who requests it and for who approves it.
// The service computes it; each value is shown by its name in the answer.

import type { ReactNode } from 'react';
import type { Approval } from '../api/types.ts';
import { MasterKeyPicture } from '../applications/master-keys.tsx';
import { Facts } from '../ui/page/page.tsx';
import { Time } from '../ui/page/time.tsx';
import { KeyPicture } from './key-use.tsx';

const names: Readonly<Record<string, string>> = {
  activates: 'Becomes active',
  activatesCount: 'Items that become active',
  after: 'Rule after the change',
  appIds: 'app_ids',
  application: 'Application',
  applicationId: 'Application id',
  applications: 'Databases',
  before: 'Rule now',
  copies: 'Copies outside of the service',
  copyList: 'Copies',
  endpoints: 'Key store endpoints',
  endsForGood: 'Ends its use permanently',
  from: 'From group',
  groupApplications: 'Other applications of the group',
  groupId: 'Group id',
  hosts: 'Hosts',
  id: 'Id',
  instances: 'Processes seen',
  into: 'Into tenant',
  joins: 'Shares its keys with',
  keyId: 'Key id',
  keys: 'Keys',
  keysLost: 'Keys that it loses',
  lastUsedAt: 'Last used',
  lastUsedBy: 'Used by',
  lastUsedKey: 'Last used key',
  leaves: 'No longer shares its keys with',
  name: 'Name',
  newName: 'New name',
  newTenant: 'Creates a tenant',
  opens: 'Opens',
  recoveryKeyId: 'Recovery key id',
  rule: 'Rule',
  size: 'Size in bytes',
  snapshotId: 'Snapshot id',
  to: 'To group',
  tokens: 'API tokens',
  usableCopies: 'Copies of the key that stay usable',
  users: 'Users',
  vaultId: 'Vault id',
  vaults: 'Vaults',
};
const nameOf = (name: string): string => names[name] ?? name;

const isMoment = (value: string): boolean => /^\d{4}-\d\d-\d\dT/.test(value);

/** A value of an impact, for a person. */
const Value = ({ value }: { value: unknown }): ReactNode => {
  if (value === null || value === undefined) return 'none';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number') return value.toLocaleString('en-GB');
  if (typeof value === 'string') return isMoment(value) ? <Time value={value} seconds /> : value;
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(String).join(', ');
  return <code className="text-xs wrap-anywhere">{JSON.stringify(value)}</code>;
};

/** Values as facts, each by its name. */
export const ImpactView = ({ impact }: { impact: Readonly<Record<string, unknown>> }) => (
  <Facts items={Object.entries(impact).map(([name, value]) => [nameOf(name), <Value key={name} value={value} />])} />
);

/** What has changed since a request was made: each value then and now. */
export const ChangedView = ({
  then,
  now,
}: {
  then: Readonly<Record<string, unknown>>;
  now: Readonly<Record<string, unknown>>;
}) => {
  const changed = Object.keys(now).filter((name) => JSON.stringify(now[name]) !== JSON.stringify(then[name]));
  if (Object.keys(now).length === 0) return <p>It is no longer possible.</p>;
  return (
    <table className="mt-2 w-full text-left">
      <caption className="sr-only">What has changed since the request</caption>
      <thead>
        <tr>
          <th scope="col">What</th>
          <th scope="col">At the request</th>
          <th scope="col">Now</th>
        </tr>
      </thead>
      <tbody>
        {changed.map((name) => (
          <tr key={name} className="align-top">
            <th scope="row" className="pr-3 font-medium">
              {nameOf(name)}
            </th>
            <td className="pr-3 wrap-anywhere">
              <Value value={then[name]} />
            </td>
            <td className="wrap-anywhere">
              <Value value={now[name]} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
};

const idIn = (parameters: Approval['parameters'], name: string): string =>
  typeof parameters[name] === 'string' ? parameters[name] : '';

/** The picture that the requester had, read again: hosts, applications, uses. */
export const Picture = ({ approval: { operation, parameters } }: { approval: Approval }) => {
  if (operation === 'master-key.destroy')
    return <MasterKeyPicture applicationId={idIn(parameters, 'applicationId')} keyId={idIn(parameters, 'keyId')} />;
  return operation === 'key.delete' ? <KeyPicture keyId={idIn(parameters, 'id')} /> : null;
};
