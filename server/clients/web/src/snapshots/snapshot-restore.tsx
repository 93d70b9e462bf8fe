// A restore: the snapshot, the target, and the recovery key that opens it; a dry run that restores
// everything and undoes it; and then, after a check and a confirmation, the restore itself. The
// recovery key's file and passphrase stay in this browser.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { type ApiCall, send } from '../api/client.ts';
import { snapshotPath, snapshotsPath } from '../api/paths.ts';
import type { RecoveryKey, Snapshot, SnapshotRestore, Tenant } from '../api/types.ts';
import { RecoveryFault, type RecoveryFile } from '../recovery/recovery-key.ts';
import { openSnapshot, readRecoveryFile } from '../recovery/use-recovery-key.ts';
import { FileField, NameField, SecretField, SelectField } from '../ui/fields/field.tsx';
import { PickField } from '../ui/fields/pick-field.tsx';
import { ApiCallView } from '../ui/forms/api-call.tsx';
import { ConfirmDialog } from '../ui/forms/confirm-dialog.tsx';
import { useAnnounce } from '../ui/page/announce.tsx';
import { Async } from '../ui/page/async.tsx';
import { Button } from '../ui/page/button.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { ProblemView } from '../ui/page/problem-view.tsx';
import { Time } from '../ui/page/time.tsx';
import { RestoreApproval, RestoreImpact } from './restore-impact.tsx';
import { formatSize, Verified } from './snapshot-facts.tsx';

const route = getRouteApi('/snapshots/$id/restore');
const recoveryKeysPath = '/api/recovery-keys';

/** The target of the restore. */
type Target =
  | { readonly to: 'same' }
  | { readonly to: 'new'; readonly name: string }
  | { readonly to: 'empty'; readonly tenantId: string };

const bodyOf = (target: Target): object =>
  target.to === 'new' ? { newTenant: target.name.trim() } : target.to === 'empty' ? { tenantId: target.tenantId } : {};
const isWhole = (target: Target): boolean =>
  target.to === 'new' ? target.name.trim() !== '' : target.to === 'same' || target.tenantId !== '';

/**
 * A chosen file and the content of its head. The file is read each time it is used, in a separate
 * thread.
 */
interface Chosen {
  readonly file: File;
  readonly told: RecoveryFile;
}

const SnapshotFactsPanel = ({ snapshot, keys }: { snapshot: Snapshot; keys: readonly RecoveryKey[] | undefined }) => (
  <Facts
    items={[
      ['Time', <Time key="at" value={snapshot.at} seconds />],
      ['Id', <code key="id">{snapshot.id}</code>],
      ['Verified', <Verified key="verified" snapshot={snapshot} />],
      ['Keys', snapshot.keys.toLocaleString('en-GB')],
      ['Size', formatSize(snapshot.size)],
      [
        'Opened by',
        <ul key="by">
          {snapshot.recoveryKeyIds.map((id) => (
            <li key={id} className="wrap-anywhere">
              {keys?.find((key) => key.id === id)?.name ?? 'a recovery key that is not registered here'}{' '}
              <code className="text-xs text-muted">{id}</code>
            </li>
          ))}
        </ul>,
      ],
    ]}
  />
);

/**
 * The recovery key that was chosen. Its file is read each time it is used; the passphrase is bytes,
 * wiped when they are replaced or left.
 */
const useRecoveryKey = (snapshot: Snapshot) => {
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [fault, setFault] = useState<string>();
  const [hasPassphrase, setHasPassphrase] = useState(false);
  const passphrase = useRef<Uint8Array>(new Uint8Array(0));
  useEffect(() => () => void passphrase.current.fill(0), []);
  const choose = async (file: File | undefined): Promise<void> => {
    setChosen(null);
    setFault(undefined);
    if (file === undefined) return;
    const told = await readRecoveryFile(file);
    if (told instanceof RecoveryFault) setFault(told.message);
    else if (!snapshot.recoveryKeyIds.includes(told.id))
      setFault(`This snapshot is not sealed to the recovery key ${told.id}.`);
    else setChosen({ file, told });
  };
  return {
    chosen,
    fault,
    choose,
    isReady: chosen !== null && (!chosen.told.wantsPassphrase || hasPassphrase),
    setPassphrase: (bytes: Uint8Array): void => {
      passphrase.current.fill(0);
      passphrase.current = bytes;
      setHasPassphrase(bytes.length > 0);
    },
    /** Opens the snapshot for one use. */
    open: async () => {
      if (chosen === null) throw new Error('no recovery key is chosen');
      return openSnapshot(snapshot.id, chosen.file, chosen.told, passphrase.current);
    },
    wipe: (): void => void passphrase.current.fill(0),
  };
};
type ChosenRecoveryKey = ReturnType<typeof useRecoveryKey>;

interface TargetChoice {
  readonly target: Target;
  /** The tenant of the snapshot, if it is here. */
  readonly own: Tenant | undefined;
  readonly others: readonly Tenant[];
}

const TargetPanel = ({ target, own, others, onTarget }: TargetChoice & { onTarget: (target: Target) => void }) => {
  const first: Readonly<Record<Target['to'], Target>> = {
    same: { to: 'same' },
    new: { to: 'new', name: '' },
    empty: { to: 'empty', tenantId: others[0]?.id ?? '' },
  };
  return (
    <Panel title="Target">
      <div className="grid gap-4 sm:grid-cols-2">
        <SelectField
          label="Restore into"
          value={target.to}
          onValue={(to) => onTarget(first[to as Target['to']])}
          help="Data that is newer than the snapshot stays. A restore is complete or changes nothing."
          choices={[
            {
              value: 'same',
              text: own === undefined ? 'Original tenant (not here)' : `Original tenant: ${own.name}`,
              disabled: own === undefined,
            },
            { value: 'new', text: 'A new tenant' },
            { value: 'empty', text: 'Another, empty tenant', disabled: others.length === 0 },
          ]}
        />
        {target.to === 'new' && (
          <NameField
            autoFocus={false}
            value={target.name}
            onValue={(name) => onTarget({ to: 'new', name })}
            help="The name of the new tenant."
          />
        )}
        {target.to === 'empty' && (
          <PickField
            label="Tenant"
            value={target.tenantId}
            onValue={(tenantId) => onTarget({ to: 'empty', tenantId })}
            choices={others.map(({ id, name }) => ({ value: id, text: name }))}
          />
        )}
      </div>
    </Panel>
  );
};

const KeyFileHelp = ({ chosen }: { chosen: Chosen | null }) =>
  chosen === null ? (
    <>
      The file that <code>dke recovery-key create</code> wrote.
    </>
  ) : (
    <>
      Recovery key <code>{chosen.told.id}</code>
      {chosen.told.wantsPassphrase ? ', with a passphrase.' : ', without a passphrase.'}
    </>
  );

/** `children`: content below the fields, in the same panel. */
const RecoveryKeyPanel = ({
  snapshotId,
  recoveryKey: { chosen, fault, choose, setPassphrase },
  onChange,
  children,
}: {
  snapshotId: string;
  recoveryKey: ChosenRecoveryKey;
  onChange: () => void;
  children: ReactNode;
}) => (
  <Panel
    title="Recovery key"
    description="The service cannot open a snapshot. You can, with the file of a recovery key."
  >
    <div className="space-y-4">
      <Notice tone="info" title="The file does not leave this browser">
        This browser opens it in a separate thread, and sends only the snapshot's own key, sealed for this one use.
        Until then, file and passphrase are in the browser's memory. A page cannot guarantee that they are wiped. On a
        machine that you do not trust, use{' '}
        <code className="wrap-anywhere">dke snapshot restore {snapshotId} --recovery-key FILE</code>.
      </Notice>
      <div className="grid gap-4 sm:grid-cols-2">
        <FileField
          label="Recovery key file"
          help={<KeyFileHelp chosen={chosen} />}
          fault={fault}
          onFile={(file) => {
            onChange();
            void choose(file);
          }}
        />
        {chosen?.told.wantsPassphrase === true && (
          <SecretField
            label="Passphrase"
            help="Checking it takes about a second and 128 MiB of memory."
            onBytes={setPassphrase}
          />
        )}
      </div>
      {children}
    </div>
  </Panel>
);

/** Takes the focus when it appears. */
const ResultSection = ({ title, children }: { title: string; children: ReactNode }) => {
  const id = useId();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <section aria-labelledby={id} className="space-y-6">
      <h2 id={id} ref={heading} tabIndex={-1} className="text-lg font-semibold outline-none">
        {title}
      </h2>
      {children}
    </section>
  );
};

const Restored = ({ snapshot, done }: { snapshot: Snapshot; done: SnapshotRestore }) => (
  <ResultSection title="Restored">
    <Notice tone="info" title="Restore complete and audited">
      <p>
        The earlier state is restored{done.newTenant ? ', under a new name' : ''}. Check what is active again, then
        create a new snapshot.
      </p>
      <p className="mt-1 flex flex-wrap gap-x-4">
        <Link to="/audit" search={{ subjectId: snapshot.id }} className="link">
          In the audit log
        </Link>
        <Link to="/keys" className="link">
          Keys
        </Link>
        <Link to="/tenants" className="link">
          Tenants
        </Link>
      </p>
    </Notice>
    <Panel flush>
      <RestoreImpact found={done} />
    </Panel>
  </ResultSection>
);

const targetText = ({ target, own, others }: TargetChoice): string => {
  if (target.to === 'new') return `as the new tenant “${target.name.trim()}”`;
  const tenant = target.to === 'same' ? own : others.find(({ id }) => id === target.tenantId);
  return `into the tenant “${tenant?.name ?? ''}”`;
};

const ConfirmRestore = ({
  snapshot,
  call,
  choice,
  found,
  recoveryKey,
  onCancel,
  onDone,
}: {
  snapshot: Snapshot;
  call: RestoreCall;
  choice: TargetChoice;
  found: SnapshotRestore;
  recoveryKey: ChosenRecoveryKey;
  onCancel: () => void;
  onDone: (restored: SnapshotRestore) => void;
}) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  return (
    <ConfirmDialog<SnapshotRestore>
      title="Restore this snapshot?"
      expected={snapshot.id.slice(0, 8)}
      expectedKind="first eight characters of its id"
      wide
      call={call}
      complete={recoveryKey.open}
      submitLabel="Restore"
      onCancel={() => {
        onCancel();
        void client.invalidateQueries({ queryKey: ['/api/approvals'] });
      }}
      onDone={async (restored) => {
        onDone(restored);
        recoveryKey.wipe();
        announce('Snapshot restored');
        await client.invalidateQueries();
      }}
    >
      <p>
        Restores the state of <Time value={snapshot.at} seconds /> {targetText(choice)}. This cannot be undone, except
        by restoring another snapshot.
      </p>
      <RestoreApproval snapshotId={snapshot.id} found={found} />
    </ConfirmDialog>
  );
};

type RestoreCall = ApiCall & { readonly method: 'POST' };

const RestoreForm = ({ snapshot, tenants }: { snapshot: Snapshot; tenants: readonly Tenant[] }) => {
  const announce = useAnnounce();
  const [target, setTarget] = useState<Target>({ to: 'same' });
  const [confirming, setConfirming] = useState(false);
  const [done, setDone] = useState<SnapshotRestore | null>(null);
  const recoveryKey = useRecoveryKey(snapshot);
  const path = `${snapshotPath(snapshot.id)}/restore`;
  const call: RestoreCall = { method: 'POST', path, body: bodyOf(target) };
  const dryRun = useMutation({
    mutationFn: async () => {
      const opened = await recoveryKey.open();
      return send<SnapshotRestore>({ ...call, query: { dryRun: true }, body: { ...bodyOf(target), ...opened } });
    },
    onSuccess: () => announce('Dry run complete. Nothing was changed.'),
  });
  const ready = recoveryKey.isReady && isWhole(target);
  const choice: TargetChoice = {
    target,
    own: tenants.find(({ id }) => id === snapshot.tenantId),
    others: tenants.filter(({ id, state }) => id !== snapshot.tenantId && state === 'active'),
  };
  if (done !== null) return <Restored snapshot={snapshot} done={done} />;
  return (
    <>
      <form
        className="space-y-6"
        onSubmit={(event) => {
          event.preventDefault();
          if (ready && !dryRun.isPending) dryRun.mutate();
        }}
      >
        <TargetPanel
          {...choice}
          onTarget={(next) => {
            setTarget(next);
            dryRun.reset();
          }}
        />
        <RecoveryKeyPanel snapshotId={snapshot.id} recoveryKey={recoveryKey} onChange={dryRun.reset}>
          {dryRun.error !== null && <ProblemView error={dryRun.error} compact />}
          <ApiCallView call={{ ...call, query: { dryRun: true } }} />
          <div className="flex flex-wrap items-center gap-3">
            <Button type="submit" tone="primary" busy={dryRun.isPending} disabled={!ready}>
              Start dry run
            </Button>
            <p role="status" className="text-muted">
              {dryRun.isPending ? 'Restoring everything, then undoing it…' : ''}
            </p>
          </div>
        </RecoveryKeyPanel>
      </form>
      {dryRun.data !== undefined && (
        <ResultSection title="Dry run">
          <Panel flush>
            <RestoreImpact found={dryRun.data} />
          </Panel>
          <RestoreApproval snapshotId={snapshot.id} found={dryRun.data} />
          <Button tone="danger" onClick={() => setConfirming(true)} opens>
            Restore
          </Button>
        </ResultSection>
      )}
      {confirming && dryRun.data !== undefined && (
        <ConfirmRestore
          {...{ snapshot, call, choice, recoveryKey }}
          found={dryRun.data}
          onCancel={() => setConfirming(false)}
          onDone={(restored) => {
            setConfirming(false);
            setDone(restored);
          }}
        />
      )}
    </>
  );
};

export const SnapshotRestorePage = () => {
  const { id } = route.useParams();
  const query = useQuery({
    queryKey: [snapshotsPath, id],
    queryFn: ({ signal }) => send<Snapshot>({ method: 'GET', path: snapshotPath(id) }, { signal }),
  });
  const keys = useQuery({
    queryKey: [recoveryKeysPath],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly RecoveryKey[] }>({ method: 'GET', path: recoveryKeysPath }, { signal }),
  });
  const tenants = useQuery({
    queryKey: ['/api/tenants'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly Tenant[] }>({ method: 'GET', path: '/api/tenants' }, { signal }),
  });
  return (
    <Page
      title="Restore a snapshot"
      crumbs={[{ text: 'Snapshots', to: '/snapshots' }]}
      description="Start with a dry run. It restores everything, then undoes it. Destroyed keys stay destroyed."
    >
      <Panel title="Snapshot">
        <Async query={query}>{(snapshot) => <SnapshotFactsPanel snapshot={snapshot} keys={keys.data?.items} />}</Async>
      </Panel>
      {query.data !== undefined &&
        (query.data.state === 'available' ? (
          <Async query={tenants} lines={2}>
            {({ items }) => <RestoreForm key={id} snapshot={query.data} tenants={items} />}
          </Async>
        ) : (
          <Notice tone="warn" title="This snapshot is not available">
            Undelete it first, or choose another.
          </Notice>
        ))}
    </Page>
  );
};
