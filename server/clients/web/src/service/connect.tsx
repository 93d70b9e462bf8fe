// From nothing to a connected cloud or a registered database in one form, which creates what is
// missing on the way. Each call is made once, also when a later one is refused and the form is sent
// again: what was created stays, with its own page.

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useRef, useState } from 'react';
import { type ApiCall, ApiProblem, send } from '../api/client.ts';
import { applicationsPath, endpointPath, endpointsPath, groupsPath, keysPath, vaultsPath } from '../api/paths.ts';
import type { Endpoint, Key, ProxyConfiguration, RegisteredApplication, TdeGroup, Vault } from '../api/types.ts';
import { AccessGuidDialog } from '../applications/access-guid.tsx';
import { useGroups } from '../applications/use-groups.ts';
import { CredentialDialog } from '../endpoints/credential-list.tsx';
import { type Choice, NameField, SelectField, TextField } from '../ui/fields/field.tsx';
import { ApiCallView } from '../ui/forms/api-call.tsx';
import { Button } from '../ui/page/button.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { ProblemView } from '../ui/page/problem-view.tsx';
import { useVaults } from '../vaults/use-vaults.ts';

type Create = <Result>(call: ApiCall) => Promise<Result>;

/** Makes each call once, and repeats one whose answer was lost as the same one. */
const useCreate = (): Create => {
  const made = useRef(new Map<string, { readonly key: string; answer?: unknown }>());
  return async <Result,>(call: ApiCall) => {
    const text = JSON.stringify(call);
    const own = made.current.get(text) ?? { key: crypto.randomUUID() };
    made.current.set(text, own);
    own.answer ??= await send<Result>(call, { idempotencyKey: own.key });
    return own.answer as Result;
  };
};

/** In place of an existing one. */
const created = 'new';

/** Some calls, one after the other; each but the first needs an id of those before. */
const Chain = <Result,>({
  calls,
  run,
  submitLabel,
  onDone,
  children,
}: {
  /** Calls to show: those that are known before the first one is made. */
  calls: readonly ApiCall[];
  run: (create: Create) => Promise<Result>;
  submitLabel: string;
  onDone: (result: Result) => void;
  children: (fault: (path: string) => string | undefined) => ReactNode;
}) => {
  const client = useQueryClient();
  const create = useCreate();
  const mutation = useMutation({
    mutationFn: () => run(create),
    onSuccess: onDone,
    onSettled: () => client.invalidateQueries(),
  });
  const fields = mutation.error instanceof ApiProblem ? mutation.error.fields : [];
  return (
    <form
      className="max-w-xl space-y-4"
      onSubmit={(event) => {
        event.preventDefault();
        if (!mutation.isPending) mutation.mutate();
      }}
    >
      {children((path) => fields.find((field) => field.path === path)?.message)}
      {mutation.error !== null && <ProblemView error={mutation.error} compact />}
      {calls.map((call) => (
        <ApiCallView key={call.path} call={call} />
      ))}
      <Button type="submit" tone="primary" busy={mutation.isPending}>
        {submitLabel}
      </Button>
    </form>
  );
};

const withNew = (text: string, existing: readonly Choice[]): readonly Choice[] => [
  { value: created, text },
  ...existing,
];

const idOf = '{id}';

export const ConnectCloudPage = () => {
  const navigate = useNavigate();
  const vaults = useVaults().filter(({ kind, state }) => kind === 'general' && state === 'enabled');
  const [name, setName] = useState('cloud');
  const [vault, setVault] = useState(created);
  const [vaultName, setVaultName] = useState('cloud keys');
  const [keyName, setKeyName] = useState('cloud key');
  const [issued, setIssued] = useState<{ endpoint: Endpoint; credential: ProxyConfiguration } | null>(null);
  const newVault: ApiCall = { method: 'POST', path: vaultsPath, body: { name: vaultName } };
  const newKey = (vaultId: string): ApiCall => ({ method: 'POST', path: keysPath, body: { name: keyName, vaultId } });
  const newEndpoint = (vaultId: string, keyId: string): ApiCall => ({
    method: 'POST',
    path: endpointsPath,
    body: { name, vaultId, keyId },
  });
  const newCredential = (id: string): ApiCall => ({ method: 'POST', path: `${endpointPath(id)}/credentials` });
  const vaultId = vault === created ? idOf : vault;
  return (
    <Page
      title="Connect a cloud"
      description="Creates a vault, a key, an endpoint for it and the credential that you give to the cloud."
      crumbs={[{ text: 'Key store endpoints', to: '/endpoints' }]}
    >
      <Panel>
        <Chain
          calls={[...(vault === created ? [newVault] : []), newKey(vaultId), newEndpoint(vaultId, idOf)]}
          submitLabel="Create endpoint and credential"
          run={async (create) => {
            const chosen = vault === created ? (await create<Vault>(newVault)).id : vault;
            const key = await create<Key>(newKey(chosen));
            const endpoint = await create<Endpoint>(newEndpoint(chosen, key.id));
            return { endpoint, credential: await create<ProxyConfiguration>(newCredential(endpoint.id)) };
          }}
          onDone={setIssued}
        >
          {() => (
            <>
              <NameField
                label="Endpoint"
                help="For example, the cloud account that it serves."
                value={name}
                onValue={setName}
              />
              <SelectField
                label="Vault"
                value={vault}
                onValue={setVault}
                choices={withNew(
                  'A new vault',
                  vaults.map(({ id, name: text }) => ({ value: id, text })),
                )}
              />
              {vault === created && (
                <TextField label="Name of the vault" maxLength={128} value={vaultName} onValue={setVaultName} />
              )}
              <TextField
                label="Name of the key"
                help="A new AES-256 key. Its id is the external key id in the cloud."
                maxLength={128}
                value={keyName}
                onValue={setKeyName}
              />
            </>
          )}
        </Chain>
      </Panel>
      {issued !== null && (
        <CredentialDialog
          endpoint={issued.endpoint}
          issued={issued.credential}
          onClose={() => void navigate({ to: '/endpoints/$id/setup', params: { id: issued.endpoint.id } })}
        />
      )}
    </Page>
  );
};

export const ConnectDatabasePage = () => {
  const navigate = useNavigate();
  const groups = useGroups();
  const [name, setName] = useState('');
  const [group, setGroup] = useState(created);
  const [groupName, setGroupName] = useState('databases');
  const [registered, setRegistered] = useState<RegisteredApplication | null>(null);
  const newGroup: ApiCall = { method: 'POST', path: groupsPath, body: { name: groupName } };
  const newApplication = (groupId: string): ApiCall => ({
    method: 'POST',
    path: applicationsPath,
    body: { name, groupId },
  });
  return (
    <Page
      title="Register a database"
      description="Creates a group and the registration of a database, with the file for its host."
      crumbs={[{ text: 'TDE applications', to: '/tde/applications' }]}
    >
      <Panel>
        <Chain
          calls={[...(group === created ? [newGroup] : []), newApplication(group === created ? idOf : group)]}
          submitLabel="Register database"
          run={async (create) => {
            const chosen = group === created ? (await create<TdeGroup>(newGroup)).id : group;
            return create<RegisteredApplication>(newApplication(chosen));
          }}
          onDone={setRegistered}
        >
          {(fault) => (
            <>
              <NameField
                label="Database"
                help="With one registration for each database, their master keys stay separate."
                value={name}
                onValue={setName}
                fault={fault('name')}
              />
              <SelectField
                label="Group"
                help="Databases of a group can read each other's master keys."
                value={group}
                onValue={setGroup}
                choices={withNew(
                  'A new group',
                  groups.map(({ id, name: text }) => ({ value: id, text })),
                )}
              />
              {group === created && (
                <TextField label="Name of the group" maxLength={128} value={groupName} onValue={setGroupName} />
              )}
            </>
          )}
        </Chain>
      </Panel>
      {registered !== null && (
        <AccessGuidDialog
          applicationName={registered.application.name}
          issued={registered}
          onClose={() =>
            void navigate({ to: '/tde/applications/$id/setup', params: { id: registered.application.id } })
          }
        />
      )}
    </Page>
  );
};
