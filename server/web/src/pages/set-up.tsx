// The first steps of a service: root key, administrator, audit sinks, recovery key, first verified snapshot. What is done is read from the
// service, so that it can be left at any time; what only the configuration file can say is shown as its lines, and looked for.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { type ApiCall, send } from '../api/client.ts';
import type {
  AuditSink,
  InvitedUser,
  RecoveryKey,
  Root,
  Setup,
  Snapshot,
  SnapshotSchedule,
  Token,
  User,
} from '../api/types.ts';
import { ActionDialog } from '../components/action-dialog.tsx';
import { useAnnounce } from '../components/announce.tsx';
import { ApiCallView } from '../components/api-call.tsx';
import { Async } from '../components/async.tsx';
import { Button, buttonClass } from '../components/button.tsx';
import { ConfigLines, Lines, tomlTable, useSettings } from '../components/config-lines.tsx';
import { SelectField, TextField } from '../components/field.tsx';
import { FormDialog } from '../components/form.tsx';
import { Icon } from '../components/icon.tsx';
import { InvitationDialog, PersonFields } from '../components/invitation.tsx';
import type { ListPage } from '../components/list-view.tsx';
import { NewRecoveryKeyDialog } from '../components/new-recovery-key.tsx';
import { Notice } from '../components/notice.tsx';
import { Facts, Page } from '../components/page.tsx';
import { ProblemView } from '../components/problem-view.tsx';
import { setupPath, setupQuery, stepTitles } from '../components/set-up.ts';
import { type SetUpStep, SetUpSteps, type StepState } from '../components/steps.tsx';
import { Time } from '../components/time.tsx';

type Step = Setup['steps'][number];
type Settled = 'root-key' | 'administrator' | 'audit-sinks';

const lookEvery = 5_000;

/** What the service is asked for while a step waits for it. */
const useWatched = <T,>(path: string, query?: { readonly limit: number }) =>
  useQuery({
    queryKey: [path, 'set-up'],
    queryFn: ({ signal }) => send<T>({ method: 'GET', path, ...(query === undefined ? {} : { query }) }, { signal }),
    refetchInterval: lookEvery,
  });

/** A person's statement about what the service cannot check. */
const Settle = ({ step, text, settled }: { step: Settled; text: string; settled: boolean }) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const call: ApiCall = { method: 'PUT', path: setupPath, body: { step, settled } };
  const change = useMutation({
    mutationFn: () => send<Setup>(call),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: [setupPath] });
      announce(settled ? 'Settled' : 'Open again');
    },
  });
  return (
    <div className="space-y-2">
      <Button
        tone={settled ? 'plain' : 'quiet'}
        className="text-left whitespace-normal!"
        icon={settled ? 'check' : 'refresh'}
        busy={change.isPending}
        onClick={() => change.mutate()}
      >
        {text}
      </Button>
      {change.error !== null && <ProblemView error={change.error} compact />}
      <ApiCallView call={call} />
    </div>
  );
};

const SettledBy = ({ step }: { step: Step }) =>
  step.settled === null ? null : (
    <p className="text-muted">
      Settled by {step.settled.by}, <Time value={step.settled.at} distance />.
    </p>
  );

const Finding = ({ children }: { children: string }) => (
  <p role="status" className="font-medium wrap-anywhere">
    {children.charAt(0).toUpperCase()}
    {children.slice(1)}.
  </p>
);

// --- root key -------------------------------------------------------------------------------------------------------

const providerTypes = [
  { value: 'pkcs11', text: 'A hardware security module (PKCS#11)' },
  { value: 'passphrase', text: 'A passphrase' },
  { value: 'file', text: 'A key file on another medium' },
] as const;
type ProviderType = (typeof providerTypes)[number]['value'];

const providerLines: Readonly<Record<ProviderType, string>> = {
  pkcs11: tomlTable('[[root.providers]]', {
    name: 'hsm',
    type: 'pkcs11',
    module: '/usr/lib/softhsm/libsofthsm2.so',
    token: 'dke',
    key: 'dke-root',
    pin_file: '/etc/dke/hsm.pin',
  }),
  passphrase: tomlTable('[[root.providers]]', { name: 'people', type: 'passphrase' }),
  file: tomlTable('[[root.providers]]', { name: 'stick', type: 'file', path: '/media/dke/root-provider.key' }),
};
const providerNames: Readonly<Record<ProviderType, string>> = { pkcs11: 'hsm', passphrase: 'people', file: 'stick' };

const RootKey = ({ step }: { step: Step }) => {
  const [type, setType] = useState<ProviderType>('pkcs11');
  const root = useWatched<Root>('/api/root');
  const path = useSettings()?.items.find(({ name }) => name === 'root.path')?.value;
  return (
    <>
      <p className="max-w-prose text-muted">
        Everything is sealed under the root key. Anyone who has its file and a copy of the database has every key.
        Without the file, the database cannot be opened.
      </p>
      <Async query={root} lines={2}>
        {({ providers, epoch, fileSystem, overwritesInPlace }) => (
          <>
            <Finding>{step.finding}</Finding>
            <Facts
              items={[
                [
                  'File',
                  <code key="path" className="wrap-anywhere">
                    {path == null ? 'root.key in the data directory' : JSON.parse(path)}
                  </code>,
                ],
                ['Epoch', String(epoch)],
                [
                  'Opened at this start by',
                  providers
                    .filter(({ opened }) => opened)
                    .map(({ name }) => name)
                    .join(', ') || 'the file itself',
                ],
                ['File system', `${fileSystem}${overwritesInPlace ? '' : ': old root keys are erased as best it can'}`],
              ]}
            />
            <details className="rounded-lg border border-line">
              <summary className="min-h-9 px-3 py-2 font-medium">
                {providers.every(({ createdAt }) => createdAt === null)
                  ? 'Protect with HSM or passphrase'
                  : 'Add another provider'}
              </summary>
              <div className="space-y-3 border-t border-line p-3">
                <SelectField
                  label="What is to open it"
                  value={type}
                  onValue={(value) => setType(value as ProviderType)}
                  choices={[...providerTypes]}
                />
                <ConfigLines value={providerLines[type]} />
                <p>Then on the host of the service, while it is stopped:</p>
                <Lines
                  label="commands"
                  value={`systemctl stop dke\ndke root add-provider ${providerNames[type]}\nsystemctl start dke\ndke root rotate --wait`}
                />
                <p className="text-muted">
                  The rotation at the end makes copies of the unencrypted file useless. We recommend two providers: one
                  that starts the service without a person, and one for the day when the first is lost.
                </p>
              </div>
            </details>
          </>
        )}
      </Async>
      <p className="max-w-prose">
        Make a backup on the host of the service and store it separately, never with a backup of the database. Each
        rotation and each erasure run replaces the root key: the backup is then useless, and this step is open again.
      </p>
      <Lines label="commands" value="dke root backup --out root-backup.key" />
      <SettledBy step={step} />
      {step.state === 'open' ? (
        <Settle step="root-key" settled text="I stored a copy separately" />
      ) : (
        <Settle step="root-key" settled={false} text="Mark as not done" />
      )}
    </>
  );
};

// --- administrator --------------------------------------------------------------------------------------------------

const InviteAdministrator = ({
  onInvited,
  onClose,
}: {
  onInvited: (invited: InvitedUser) => void;
  onClose: () => void;
}) => {
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [displayName, setDisplayName] = useState('');
  return (
    <FormDialog<InvitedUser>
      title="Invite the first administrator"
      call={{
        method: 'POST',
        path: '/api/users',
        body: {
          name,
          ...(displayName === '' ? {} : { displayName }),
          grants: [{ role: 'administrator', scope: null }],
        },
      }}
      creates
      submitLabel="Invite"
      onCancel={onClose}
      onDone={async (invited) => {
        onInvited(invited);
        await client.invalidateQueries({ queryKey: ['/api/users'] });
      }}
    >
      {(fault) => (
        <>
          <PersonFields
            name={name}
            onName={setName}
            displayName={displayName}
            onDisplayName={setDisplayName}
            fault={fault}
          />
        </>
      )}
    </FormDialog>
  );
};

const isAdministrator = ({ grants }: Pick<User, 'grants'>): boolean =>
  grants.some(({ role }) => role === 'administrator');

const Administrator = ({ step }: { step: Step }) => {
  const [inviting, setInviting] = useState(false);
  const [invited, setInvited] = useState<InvitedUser | null>(null);
  const [revoking, setRevoking] = useState<Token | null>(null);
  const users = useWatched<ListPage<User>>('/api/users', { limit: 100 }).data?.items.filter(isAdministrator) ?? [];
  const first = useWatched<ListPage<Token>>('/api/tokens', { limit: 1000 }).data?.items.find(
    ({ name, revokedAt }) => name === 'first administrator' && revokedAt === null,
  );
  return (
    <>
      <p className="max-w-prose text-muted">
        The token of the first start is for set-up only; then revoke it. Later, people sign in with their own names:
        with a password and a passkey, or with a password and a one-time code.
      </p>
      <Finding>{step.finding}</Finding>
      {step.state !== 'done' && users.length > 0 && (
        <p>
          Invited: {users.map(({ name }) => name).join(', ')}. Open the invitation, choose a password and add the second
          factor; in this browser you are then signed in as that person.
        </p>
      )}
      <div className="flex flex-wrap gap-2">
        {step.state !== 'done' && (
          <Button tone={users.length === 0 ? 'primary' : 'plain'} icon="plus" onClick={() => setInviting(true)}>
            Invite the administrator
          </Button>
        )}
        {step.state === 'done' && first !== undefined && (
          <Button icon="blocked" onClick={() => setRevoking(first)}>
            Revoke the token of the first start…
          </Button>
        )}
        <Link to="/users" className={buttonClass()}>
          Users
        </Link>
      </div>
      <SettledBy step={step} />
      {step.state === 'open' && <Settle step="administrator" settled text="Skip: use tokens only" />}
      {step.state === 'settled' && <Settle step="administrator" settled={false} text="A person after all" />}
      {inviting && (
        <InviteAdministrator
          onClose={() => setInviting(false)}
          onInvited={(made) => {
            setInviting(false);
            setInvited(made);
          }}
        />
      )}
      {invited !== null && <InvitationDialog invited={invited} onClose={() => setInvited(null)} />}
      {revoking !== null && (
        <ActionDialog
          title="Revoke the token of the first start?"
          call={{ method: 'DELETE', path: `/api/tokens/${encodeURIComponent(revoking.id)}` }}
          submitLabel="Revoke"
          danger
          renews={['/api/tokens']}
          done="Token revoked"
          onClose={() => setRevoking(null)}
        >
          <p>Sessions that were opened with it end. Do this when you are signed in as a person.</p>
        </ActionDialog>
      )}
    </>
  );
};

// --- audit sinks ----------------------------------------------------------------------------------------------------

const sinkTypes = [
  { value: 'syslog', text: 'Syslog (RFC 5424) over TLS' },
  { value: 'https', text: 'HTTPS with JSON (OCSF)' },
  { value: 'file', text: 'A file on this host' },
] as const;
type SinkType = (typeof sinkTypes)[number]['value'];

const Sinks = ({ step }: { step: Step }) => {
  const [type, setType] = useState<SinkType>('syslog');
  const [target, setTarget] = useState('siem.example.com');
  const sinks = useWatched<{ readonly items: readonly AuditSink[] }>('/api/audit/sinks');
  const choose = (value: SinkType): void => {
    setType(value);
    setTarget(
      { syslog: 'siem.example.com', https: 'https://lake.example.com/in', file: '/var/log/dke/audit.ndjson' }[value],
    );
  };
  const lines = {
    syslog: tomlTable('[[audit.sinks]]', { name: 'siem', type, host: target, port: 6514 }),
    https: tomlTable('[[audit.sinks]]', { name: 'lake', type, url: target, token_file: '/etc/dke/lake.token' }),
    file: tomlTable('[[audit.sinks]]', { name: 'file', type, path: target }),
  } as const satisfies Record<SinkType, string>;
  return (
    <>
      <p className="max-w-prose text-muted">
        The audit log is signed and checked here. A copy on another host remains when this host is lost. Targets come
        only from the configuration file, so that users of the console cannot choose where records go.
      </p>
      <Finding>{step.finding}</Finding>
      <Async query={sinks} lines={2}>
        {({ items }) =>
          items.length === 0 ? (
            <div className="space-y-3">
              <div className="grid gap-3 sm:grid-cols-2">
                <SelectField
                  label="Where to"
                  value={type}
                  onValue={(value) => choose(value as SinkType)}
                  choices={[...sinkTypes]}
                />
                <TextField
                  label={{ syslog: 'Host', https: 'Address', file: 'Path' }[type]}
                  mono
                  value={target}
                  onValue={setTarget}
                />
              </div>
              <ConfigLines value={lines[type]} />
              <Lines label="command" value={'systemctl restart dke\ndke audit sinks'} />
              <p className="text-muted">
                It is looked for every few seconds, and shows here when records arrive there.
              </p>
            </div>
          ) : (
            <ul className="space-y-1">
              {items.map(({ name, target: to, lag, failure }) => (
                <li key={name} className="wrap-anywhere">
                  <strong>{name}</strong>, <code>{to}</code>:{' '}
                  {failure === null
                    ? lag === 0
                      ? 'has every record'
                      : `${lag} records are on their way`
                    : `does not answer: ${failure.message}`}
                </li>
              ))}
            </ul>
          )
        }
      </Async>
      <SettledBy step={step} />
      {step.state === 'open' && <Settle step="audit-sinks" settled text="Keep locally only" />}
      {step.state === 'settled' && <Settle step="audit-sinks" settled={false} text="It goes elsewhere after all" />}
    </>
  );
};

// --- recovery key, snapshot -----------------------------------------------------------------------------------------

const Recovery = ({ step }: { step: Step }) => {
  const [making, setMaking] = useState(false);
  const schedule = useWatched<SnapshotSchedule>('/api/snapshot-schedule');
  const keys = useWatched<{ readonly items: readonly RecoveryKey[] }>('/api/recovery-keys');
  return (
    <>
      <p className="max-w-prose text-muted">
        Snapshots are sealed to recovery keys that the service does not have: who takes the host cannot open them, and
        who has the key can bring everything back on another one.
      </p>
      <Async query={schedule} lines={2}>
        {({ directory, schedule: cron, next }) => (
          <>
            <Facts
              items={[
                ...(directory === null
                  ? []
                  : [
                      [
                        'Where they lie',
                        <code key="directory" className="wrap-anywhere">
                          {directory}
                        </code>,
                      ] as const,
                    ]),
                ['Made', cron ?? 'on demand only'],
                ['Next', <Time key="next" value={next} absent="–" />],
              ]}
            />
            {cron === null && (
              <details className="rounded-lg border border-line">
                <summary className="min-h-9 px-3 py-2 font-medium">On another disk, every night</summary>
                <div className="space-y-3 border-t border-line p-3">
                  <ConfigLines
                    value={tomlTable('[snapshots]', {
                      directory: '/var/lib/dke-snapshots',
                      schedule: '0 3 * * *',
                      keep_count: 14,
                    })}
                  />
                  <Lines
                    label="commands"
                    value={'install -d -m 700 -o dke -g dke /var/lib/dke-snapshots\nsystemctl restart dke'}
                  />
                </div>
              </details>
            )}
          </>
        )}
      </Async>
      <Async query={keys} lines={1}>
        {({ items }) => (
          <>
            {items.filter(({ removedAt }) => removedAt === null).length > 0 && (
              <ul className="space-y-1">
                {items
                  .filter(({ removedAt }) => removedAt === null)
                  .map(({ id, name, createdAt }) => (
                    <li key={id} className="wrap-anywhere">
                      <strong>{name}</strong>, <code>{id}</code>, <Time value={createdAt} distance />
                    </li>
                  ))}
              </ul>
            )}
            <Button icon="key" tone={step.state === 'open' ? 'primary' : 'plain'} onClick={() => setMaking(true)}>
              {step.state === 'open' ? 'Make a recovery key' : 'Make another one'}
            </Button>
          </>
        )}
      </Async>
      <div className="space-y-1">
        <p className="text-muted">Or away from here, on a machine of its own, with the command:</p>
        <Lines
          label="commands"
          value={
            "dke recovery-key create --out recovery.key --passphrase\ndke recovery-key register <public-key> --name 'safe of the bank'"
          }
        />
      </div>
      {making && <NewRecoveryKeyDialog onClose={() => setMaking(false)} />}
    </>
  );
};

const FirstSnapshot = ({ step, ready }: { step: Step; ready: boolean }) => {
  const client = useQueryClient();
  const [making, setMaking] = useState(false);
  const newest = useWatched<ListPage<Snapshot>>('/api/snapshots', { limit: 1 }).data?.items[0];
  return (
    <>
      <p className="max-w-prose text-muted">
        One state of everything, while others write. It is read again when it is made: signature, structure, digest and
        counts. With the recovery key each row is opened and each key compared.
      </p>
      <Finding>{step.finding}</Finding>
      {newest !== undefined && (
        <p className="wrap-anywhere">
          <Time value={newest.at} seconds />: {newest.keys} keys,{' '}
          {newest.verification === null
            ? (newest.failure ?? 'not verified')
            : newest.verification.sound
              ? 'valid'
              : (newest.verification.finding ?? 'not valid')}
          .
        </p>
      )}
      <div className="flex flex-wrap gap-2">
        <Button
          icon="snapshot"
          tone={step.state === 'done' ? 'plain' : 'primary'}
          disabled={!ready}
          onClick={() => setMaking(true)}
        >
          Make a snapshot
        </Button>
        <Link to="/snapshots" className={buttonClass()}>
          Snapshots
        </Link>
      </div>
      {!ready && <p className="text-muted">A recovery key comes first.</p>}
      {newest !== undefined && (
        <div className="space-y-1">
          <p>Open it with the recovery key, on the machine with its file. The step is done when that has succeeded:</p>
          <Lines label="command" value={`dke snapshot verify ${newest.id} --recovery-key recovery.key`} />
        </div>
      )}
      {making && (
        <ActionDialog<Snapshot>
          title="Make the first snapshot?"
          call={{ method: 'POST', path: '/api/snapshots', body: {} }}
          creates
          submitLabel="Make"
          renews={['/api/snapshots', setupPath]}
          done="The snapshot is created and verified"
          onClose={() => {
            setMaking(false);
            void client.invalidateQueries({ queryKey: [setupPath] });
          }}
        >
          <p>Sealed to every recovery key, written, and read again.</p>
        </ActionDialog>
      )}
    </>
  );
};

// --- the page -------------------------------------------------------------------------------------------------------

const Content = ({ step, steps }: { step: Step; steps: readonly Step[] }): ReactNode => {
  switch (step.step) {
    case 'root-key':
      return <RootKey step={step} />;
    case 'administrator':
      return <Administrator step={step} />;
    case 'audit-sinks':
      return <Sinks step={step} />;
    case 'recovery-key':
      return <Recovery step={step} />;
    case 'snapshot':
      return (
        <FirstSnapshot
          step={step}
          ready={steps.some(({ step: each, state }) => each === 'recovery-key' && state === 'done')}
        />
      );
  }
};

/** A step that is not current: what the service knows about it, and the rest on request. */
const Folded = ({ finding, children }: { finding: string; children: ReactNode }) => (
  <details className="group">
    <summary className="flex min-h-9 list-none items-center gap-2 rounded-md text-muted wrap-anywhere [&::-webkit-details-marker]:hidden">
      <Icon name="chevron" className="size-3.5 transition-transform group-open:rotate-90" />
      <span className="min-w-0">
        {finding.charAt(0).toUpperCase()}
        {finding.slice(1)}
      </span>
    </summary>
    <div className="space-y-3 pt-2">{children}</div>
  </details>
);

const Steps = ({ setup: { steps, finishedAt } }: { setup: Setup }) => {
  const open = steps.filter(({ state }) => state === 'open');
  const next = open[0]?.step;
  if (finishedAt !== null && next === undefined)
    return (
      <Notice tone="info" title="This service is set up">
        A snapshot was first opened with a recovery key <Time value={finishedAt} distance />. Test a restore soon.{' '}
        <Link to="/snapshots" className="link">
          Snapshots
        </Link>
      </Notice>
    );
  // Once it is set up only what is left of it is shown.
  const shown = finishedAt === null ? steps : open;
  const stateOf = (step: Step): StepState => (step.state !== 'open' ? 'done' : step.step === next ? 'next' : 'later');
  return (
    <SetUpSteps
      steps={shown.map(
        (step): SetUpStep => ({
          title: stepTitles[step.step],
          state: stateOf(step),
          children:
            step.step === next ? (
              <Content step={step} steps={steps} />
            ) : (
              <Folded finding={step.finding}>
                <Content step={step} steps={steps} />
              </Folded>
            ),
        }),
      )}
    />
  );
};

export const SetUpPage = () => {
  const query = useQuery({ ...setupQuery, refetchInterval: lookEvery });
  return (
    <Page
      title="Set up this service"
      description="From the root key to the first verified snapshot. You can leave at any time: progress is saved."
    >
      <Async query={query} lines={8}>
        {(setup) => <Steps setup={setup} />}
      </Async>
    </Page>
  );
};
