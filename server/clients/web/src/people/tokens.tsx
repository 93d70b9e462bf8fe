// API tokens, with roles or for metrics: list, create (shown once), revoke.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { send } from '../api/client.ts';
import { applicationsPath, endpointsPath } from '../api/paths.ts';
import type { Application, Endpoint, IssuedToken, RoleDescription, Token } from '../api/types.ts';
import { useEvery } from '../session/every.ts';
import { type Choice, NameField, SelectField } from '../ui/fields/field.tsx';
import { PickField } from '../ui/fields/pick-field.tsx';
import { SecretOnceDialog, SecretValue, secretFile } from '../ui/fields/secret-once.tsx';
import { ConfirmDialog } from '../ui/forms/confirm-dialog.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { Button } from '../ui/page/button.tsx';
import { ActionMenu } from '../ui/page/menu.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { BulkActions, type RowsAction } from '../ui/table/bulk-actions.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { titled } from './role-names.ts';
import { mayOf, stateOfToken } from './token-list.tsx';
import { TokenTabs } from './token-tabs.tsx';

const path = '/api/tokens';
const rolesPath = '/api/roles';

const lifetimes: readonly Choice[] = [
  { value: '30', text: '30 days' },
  { value: '90', text: '90 days' },
  { value: '365', text: '1 year' },
  { value: 'never', text: 'Until it is revoked' },
];

/** A break-glass token ends within eight hours. */
const emergencies: readonly Choice[] = [
  { value: '1h', text: '1 hour' },
  { value: '4h', text: '4 hours' },
  { value: '8h', text: '8 hours' },
];
const hours = 3_600_000;

const lists = {
  application: [applicationsPath, 'applications:read'],
  endpoint: [endpointsPath, 'endpoints:read'],
} as const;

/** Chosen instead of a role. */
const metrics = 'metrics';

const day = 86_400_000;

const CreateToken = ({ onIssued, onClose }: { onIssued: (issued: IssuedToken) => void; onClose: () => void }) => {
  const client = useQueryClient();
  const [name, setName] = useState('');
  const roles =
    useQuery({
      queryKey: [rolesPath],
      queryFn: ({ signal }) =>
        send<{ readonly items: readonly RoleDescription[] }>({ method: 'GET', path: rolesPath }, { signal }),
      staleTime: Number.POSITIVE_INFINITY,
    }).data?.items ?? [];
  const [chosen, setChosen] = useState<string>('auditor');
  const [resource, setResource] = useState('application');
  const [resourceId, setResourceId] = useState('');
  const [lifetime, setLifetime] = useState('90');
  const [emergency, setEmergency] = useState('1h');
  const role = roles.find((each) => each.role === chosen);
  const isScoped = role?.scoped === true;
  const [listPath, listNeeds] = lists[resource === 'application' ? 'application' : 'endpoint'];
  const resources = (useEvery<Application | Endpoint>(listPath, listNeeds) ?? []).flatMap(
    ({ id, name: text, state }) => (state === 'deleted' ? [] : [{ value: id, text }]),
  );
  const choices: readonly Choice[] = [
    ...roles.map((each) => ({ value: each.role, text: titled(each.role) })),
    { value: metrics, text: 'Metrics: only reads /metrics' },
  ];
  // From the moment the form was opened, in whole seconds: the call that is shown is the call that
  // is sent.
  const [openedAt] = useState(() => Math.floor(Date.now() / 1000) * 1000);
  const isEmergency = chosen === 'break-glass';
  const lifetimeMs = isEmergency ? Number.parseInt(emergency, 10) * hours : Number(lifetime) * day;
  const expiresAt = !isEmergency && lifetime === 'never' ? null : new Date(openedAt + lifetimeMs).toISOString();
  return (
    <FormDialog<IssuedToken>
      title="Create an API token"
      call={{
        method: 'POST',
        path,
        body:
          chosen === metrics
            ? { name, kind: metrics, expiresAt }
            : {
                name,
                grants: [{ role: chosen, scope: isScoped ? { kind: resource, id: resourceId } : null }],
                expiresAt,
              },
      }}
      creates
      submitLabel="Create token"
      onCancel={onClose}
      onDone={async (issued) => {
        onIssued(issued);
        await client.invalidateQueries({ queryKey: [path] });
      }}
    >
      {(fault) => (
        <>
          <NameField
            help="The user or program of the token. The audit log shows this name."
            value={name}
            onValue={setName}
            fault={fault('name')}
          />
          <SelectField
            label="Role"
            help={chosen === metrics ? 'For Prometheus and similar tools.' : role?.description}
            value={chosen}
            onValue={setChosen}
            fault={fault('grants')}
            choices={choices}
          />
          {isScoped && (
            <>
              <SelectField
                label="Resource type"
                value={resource}
                onValue={(next) => {
                  setResource(next);
                  setResourceId('');
                }}
                fault={fault('grants.0.scope.kind')}
                choices={[
                  { value: 'application', text: 'TDE application' },
                  { value: 'endpoint', text: 'Key store endpoint' },
                ]}
              />
              <PickField
                key={resource}
                label="Resource"
                value={resourceId}
                onValue={setResourceId}
                fault={fault('grants.0.scope.id')}
                placeholder="Its name, or its id"
                choices={resources}
              />
            </>
          )}
          <SelectField
            label="Expires after"
            value={isEmergency ? emergency : lifetime}
            onValue={isEmergency ? setEmergency : setLifetime}
            fault={fault('expiresAt')}
            choices={isEmergency ? emergencies : lifetimes}
          />
        </>
      )}
    </FormDialog>
  );
};

const nameOf = ({ name }: Token): string => name;

const revoke: RowsAction<Token> = {
  ...{ verb: 'Revoke', needs: 'tokens:manage', danger: true },
  text: 'Scripts and sessions that use them will be refused. A revoked token stays revoked.',
  callOf: ({ id }) => ({ method: 'DELETE', path: `${path}/${encodeURIComponent(id)}` }),
};

const BulkTokens = ({ tokens, onDone }: { tokens: readonly Token[]; onDone: () => void }) => (
  <BulkActions
    rows={tokens}
    actions={[revoke]}
    nouns={['token', 'tokens']}
    nameOf={nameOf}
    renews={[path]}
    onDone={onDone}
  />
);

export const TokensPage = () => {
  const list = useList<Token>(path);
  const [creating, setCreating] = useState(false);
  const [issued, setIssued] = useState<IssuedToken | null>(null);
  const [revoking, setRevoking] = useState<Token | null>(null);
  const create = (
    <Button tone="primary" icon="plus" creates needs="tokens:manage" opens onClick={() => setCreating(true)}>
      Create token
    </Button>
  );
  return (
    <Page
      title="API tokens"
      description="For this console, the dke command and scripts. A token for metrics can do nothing else. The service stores only keyed hashes."
      actions={create}
    >
      <TokenTabs />
      <Panel flush>
        <ListView
          list={list}
          endless
          caption="API tokens"
          rowKey={(token) => token.id}
          nameOf={nameOf}
          bulk={(rows, onDone) => <BulkTokens tokens={rows} onDone={onDone} />}
          columns={[
            {
              key: 'name',
              header: 'Name',
              names: true,
              cell: (token) => (
                <Link to="/tokens/$id" params={{ id: token.id }} className="link">
                  {token.name}
                </Link>
              ),
              sort: nameOf,
            },
            { key: 'roles', header: 'Roles', cell: mayOf },
            { key: 'state', header: 'State', cell: (token) => <StateBadge state={stateOfToken(token)} /> },
            { key: 'used', header: 'Last used', cell: (token) => <Time value={token.lastUsedAt} distance /> },
            { key: 'expires', header: 'Expires', cell: (token) => <Time value={token.expiresAt} /> },
            { key: 'created', header: 'Created', cell: (token) => <Time value={token.createdAt} /> },
            {
              key: 'actions',
              header: 'Actions',
              end: true,
              actions: true,
              cell: (token) => (
                <ActionMenu
                  label={`Actions on token ${token.name}`}
                  actions={
                    stateOfToken(token) === 'active'
                      ? [
                          {
                            text: 'Revoke',
                            needs: 'tokens:manage',
                            icon: 'blocked',
                            danger: true,
                            onSelect: () => setRevoking(token),
                          },
                        ]
                      : []
                  }
                />
              ),
            },
          ]}
          empty={
            <EmptyState title="No tokens yet" action={create}>
              Create one for each person and each script, so that the audit log can tell them apart.
            </EmptyState>
          }
        />
      </Panel>
      {creating && (
        <CreateToken
          onIssued={(result) => {
            setCreating(false);
            setIssued(result);
          }}
          onClose={() => setCreating(false)}
        />
      )}
      {issued !== null && (
        <SecretOnceDialog
          title={`Token “${issued.record.name}”`}
          notice={`The token is shown only once. Anyone who has it has its permissions: ${mayOf(issued.record)}.`}
          taken="I have stored the token"
          onClose={() => setIssued(null)}
        >
          <SecretValue label="Token" value={issued.token} file={secretFile('token', issued.record.name)} />
        </SecretOnceDialog>
      )}
      {revoking !== null && (
        <ConfirmDialog
          title={`Revoke “${revoking.name}”?`}
          expected={revoking.name}
          expectedKind="token name"
          call={{ method: 'DELETE', path: `${path}/${encodeURIComponent(revoking.id)}` }}
          submitLabel="Revoke token"
          onCancel={() => setRevoking(null)}
          renews={[path]}
          done={`Token “${revoking.name}” revoked`}
        >
          <p>
            Scripts and sessions that use it will be refused. Last used: <Time value={revoking.lastUsedAt} distance />.
          </p>
        </ConfirmDialog>
      )}
    </Page>
  );
};
