// A restore: the snapshot, where it goes, the recovery key that opens it; a dry run that does all of it and takes it back; and then, when it has
// been checked and confirmed, the restore itself. The recovery key's file and passphrase stay in this browser.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect, useId, useRef, useState } from 'react';
import { type ApiCall, send } from '../api/client.ts';
import type { Approval, RecoveryKey, Snapshot, SnapshotRestore, Tenant } from '../api/types.ts';
import { useAnnounce } from '../components/announce.tsx';
import { ApiCallView } from '../components/api-call.tsx';
import { Async } from '../components/async.tsx';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { DataTable } from '../components/data-table.tsx';
import { FileField, NameField, SecretField, SelectField } from '../components/field.tsx';
import type { ListPage } from '../components/list-view.tsx';
import { Notice } from '../components/notice.tsx';
import { Facts, Page, Panel } from '../components/page.tsx';
import { ProblemView } from '../components/problem-view.tsx';
import { formatSize, snapshotPath, snapshotsPath, Verified } from '../components/snapshot-facts.tsx';
import { Badge } from '../components/state-badge.tsx';
import { Time } from '../components/time.tsx';
import { RecoveryFault, type RecoveryFile } from '../recovery/recovery-key.ts';
import { openSnapshot, readRecoveryFile } from '../recovery/use-recovery-key.ts';

const route = getRouteApi('/snapshots/$id/restore');
const recoveryKeysPath = '/api/recovery-keys';

/** Where it goes. */
type Target =
  | { readonly to: 'same' }
  | { readonly to: 'new'; readonly name: string }
  | { readonly to: 'empty'; readonly tenantId: string };

const bodyOf = (target: Target): object =>
  target.to === 'new' ? { newTenant: target.name.trim() } : target.to === 'empty' ? { tenantId: target.tenantId } : {};
const isWhole = (target: Target): boolean =>
  target.to === 'new' ? target.name.trim() !== '' : target.to === 'same' || target.tenantId !== '';

/** A chosen file, and what it says of itself. The file itself is read each time it is used, in a thread of its own. */
interface Chosen {
  readonly file: File;
  readonly told: RecoveryFile;
}

const tables: Readonly<Record<string, string>> = {
  vaults: 'Vaults',
  tde_groups: 'TDE groups',
  tde_applications: 'TDE applications',
  access_guids: 'access_guids',
  instances: 'Instances seen',
  keys: 'Keys',
  key_versions: 'Key versions',
  key_bindings: 'Key bindings',
  tde_objects: 'Token objects',
  endpoints: 'Key store endpoints',
  endpoint_credentials: 'Endpoint credentials',
  external_key_stores: 'External key stores',
};

const count = (value: number) => (
  <span className={`tabular-nums ${value === 0 ? 'text-muted' : 'font-semibold'}`}>{value.toLocaleString()}</span>
);

const Impact = ({ found }: { found: SnapshotRestore }) => {
  const rows = Object.entries(found.counts).filter(([, each]) => Object.values(each).some((number) => number > 0));
  return (
    <div className="space-y-5">
      {rows.length === 0 ? (
        <p className="px-4 pt-4">The snapshot is empty: the tenant has no data.</p>
      ) : (
        <DataTable
          caption={found.dryRun ? 'Preview of the restore' : 'Result of the restore'}
          rows={rows}
          rowKey={([table]) => table}
          columns={[
            { key: 'what', header: 'Kind', names: true, cell: ([table]) => tables[table] ?? table },
            {
              key: 'made',
              header: found.dryRun ? 'Would be created' : 'Created',
              cell: ([, each]) => count(each.made),
            },
            {
              key: 'changed',
              header: found.dryRun ? 'Would be changed' : 'Changed',
              cell: ([, each]) => count(each.changed),
            },
            { key: 'unchanged', header: 'Unchanged', cell: ([, each]) => count(each.unchanged) },
            { key: 'kept', header: 'Newer, kept', cell: ([, each]) => count(each.kept) },
            { key: 'left', header: 'Left out', cell: ([, each]) => count(each.leftOut) },
          ]}
        />
      )}
      <div className="space-y-5 px-4 pb-4">
        {found.newIds && (
          <Notice tone="info" title="A copy next to the original">
            Another tenant here has these ids, so everything gets new ids. Credentials of the original are left out.
          </Notice>
        )}
        <section className="space-y-2">
          <h3 className="flex flex-wrap items-center gap-2 font-medium">
            Keys that stay destroyed <Badge tone="quiet" icon="destroyed">{`${found.stayDestroyed.length}`}</Badge>
          </h3>
          {found.stayDestroyed.length === 0 ? (
            <p className="text-muted">None: no key of the snapshot was destroyed since.</p>
          ) : (
            <ul className="divide-y divide-line rounded-lg border border-line">
              {found.stayDestroyed.map((each) => (
                <li key={each.id} className="flex flex-wrap items-baseline justify-between gap-x-4 px-3 py-2">
                  <span className="min-w-0">
                    <span className="font-medium wrap-anywhere">{each.name}</span>{' '}
                    <code className="text-xs wrap-anywhere text-muted">{each.id}</code>
                  </span>
                  <span className="text-muted">
                    destroyed <Time value={each.destroyedAt} />
                  </span>
                </li>
              ))}
            </ul>
          )}
        </section>
        {found.activated.length > 0 && (
          <Notice
            tone="warn"
            title={`${found.activated.length} items ${found.dryRun ? 'would become' : 'became'} active or change`}
          >
            <ul className="list-disc pl-5">
              {found.activated.map(({ kind, change, id, name }) => (
                <li key={`${kind} ${id}`} className="wrap-anywhere">
                  {kind} {name}: {change}
                </li>
              ))}
            </ul>
          </Notice>
        )}
      </div>
    </div>
  );
};

/** What dual control says to it, and how far a request for agreement is. */
const Rules = ({ snapshotId, found }: { snapshotId: string; found: SnapshotRestore }) => {
  const asked = useQuery({
    queryKey: ['/api/approvals', 'of', snapshotId],
    queryFn: async ({ signal }) => {
      const pages = await Promise.all(
        ['pending', 'approved'].map((state) =>
          send<ListPage<Approval>>(
            { method: 'GET', path: '/api/approvals', query: { state, limit: 1000 } },
            { signal },
          ),
        ),
      );
      return pages
        .flatMap(({ items }) => items)
        .find(({ operation, subject }) => operation === 'snapshot.restore' && subject.id === snapshotId);
    },
    // A user who may not see approvals learns it from the answer to the restore.
    enabled: found.rules.length > 0,
    retry: false,
  });
  if (found.rules.length === 0)
    return (
      <Notice tone="info" title="No approval required">
        The restore starts when you confirm it.
      </Notice>
    );
  const open = asked.data;
  return (
    <Notice
      tone={open?.state === 'approved' ? 'info' : 'warn'}
      title={
        open?.state === 'approved'
          ? 'Approved'
          : open?.state === 'pending'
            ? `Requested: ${open.missing} more must approve`
            : 'Approval required'
      }
    >
      <ul className="list-disc pl-5">
        {found.rules.map((rule) => (
          <li key={rule.vaultId}>
            {rule.vaultName}: {rule.required} in addition to you
            {rule.approvers !== null && `, of ${rule.approvers.length} eligible`}
          </li>
        ))}
      </ul>
      <p className="mt-1">
        {open?.state === 'approved'
          ? 'Confirm it again to restore with your recovery key.'
          : 'Confirm to request approval. After it is approved, return to this page and confirm again with the recovery key, which only you have.'}{' '}
        <Link to="/approvals" className="link">
          Approvals
        </Link>
      </p>
    </Notice>
  );
};

const SnapshotFactsPanel = ({ snapshot, keys }: { snapshot: Snapshot; keys: readonly RecoveryKey[] | undefined }) => (
  <Facts
    items={[
      ['Time', <Time key="at" value={snapshot.at} seconds />],
      ['Id', <code key="id">{snapshot.id}</code>],
      ['Verified', <Verified key="verified" snapshot={snapshot} />],
      ['Keys', snapshot.keys.toLocaleString()],
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

const RestoreForm = ({ snapshot, tenants }: { snapshot: Snapshot; tenants: readonly Tenant[] }) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const [target, setTarget] = useState<Target>({ to: 'same' });
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [fault, setFault] = useState<string>();
  const [confirming, setConfirming] = useState(false);
  const [done, setDone] = useState<SnapshotRestore | null>(null);
  const resultId = useId();
  const result = useRef<HTMLHeadingElement>(null);
  /** Bytes, wiped when they are replaced and when the page is left. */
  const passphrase = useRef<Uint8Array>(new Uint8Array(0));
  const [given, setGiven] = useState(false);
  useEffect(() => () => void passphrase.current.fill(0), []);

  const path = `${snapshotPath(snapshot.id)}/restore`;
  const rehearsal = useMutation({
    mutationFn: async () => {
      if (chosen === null) throw new Error('no recovery key is chosen');
      const opened = await openSnapshot(snapshot.id, chosen.file, chosen.told, passphrase.current);
      return send<SnapshotRestore>({
        method: 'POST',
        path,
        query: { dryRun: true },
        body: { ...bodyOf(target), ...opened },
      });
    },
    onSuccess: () => announce('Dry run complete: nothing was changed'),
  });
  const change = (next: Target): void => {
    setTarget(next);
    rehearsal.reset();
  };
  const choose = async (file: File | undefined): Promise<void> => {
    rehearsal.reset();
    setChosen(null);
    setFault(undefined);
    if (file === undefined) return;
    const told = await readRecoveryFile(file);
    if (told instanceof RecoveryFault) setFault(told.message);
    else if (!snapshot.recoveryKeyIds.includes(told.id))
      setFault(`This snapshot is not sealed to the recovery key ${told.id}.`);
    else setChosen({ file, told });
  };
  const found = done ?? rehearsal.data;
  const wantsPassphrase = chosen?.told.wantsPassphrase === true;
  const ready = chosen !== null && (!wantsPassphrase || given) && isWhole(target);
  const call: ApiCall & { readonly method: 'POST' } = { method: 'POST', path, body: bodyOf(target) };
  const own = tenants.find(({ id }) => id === snapshot.tenantId);
  const others = tenants.filter(({ id, state }) => id !== snapshot.tenantId && state === 'active');
  useEffect(() => {
    if (done !== null || rehearsal.data !== undefined) result.current?.focus();
  }, [done, rehearsal.data]);

  if (done === null || found === undefined)
    return (
      <>
        <form
          className="space-y-6"
          onSubmit={(event) => {
            event.preventDefault();
            if (ready && !rehearsal.isPending) rehearsal.mutate();
          }}
        >
          <Panel title="Target">
            <div className="grid gap-4 sm:grid-cols-2">
              <SelectField
                label="Restore into"
                value={target.to}
                onValue={(to) =>
                  change(
                    to === 'new'
                      ? { to, name: '' }
                      : to === 'empty'
                        ? { to, tenantId: others[0]?.id ?? '' }
                        : { to: 'same' },
                  )
                }
                help="Everything newer than the snapshot stays. Everything is restored, or nothing."
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
                  onValue={(name) => change({ to: 'new', name })}
                  help="The name of the new tenant."
                />
              )}
              {target.to === 'empty' && (
                <SelectField
                  label="Tenant"
                  value={target.tenantId}
                  onValue={(tenantId) => change({ to: 'empty', tenantId })}
                  choices={others.map(({ id, name }) => ({ value: id, text: name }))}
                />
              )}
            </div>
          </Panel>
          <Panel
            title="Recovery key"
            description="The service cannot open a snapshot. You can, with the file of a recovery key."
          >
            <div className="space-y-4">
              <Notice tone="info" title="The file does not leave this browser">
                This browser opens it in a separate thread, and sends only the snapshot's own key, sealed for this one
                use. Until then, file and passphrase are in the browser's memory, and no page can be sure to wipe them.
                On a machine that you do not trust, use{' '}
                <code className="wrap-anywhere">dke snapshot restore {snapshot.id} --recovery-key FILE</code>.
              </Notice>
              <div className="grid gap-4 sm:grid-cols-2">
                <FileField
                  label="Recovery key file"
                  help={
                    chosen === null ? (
                      <>
                        The file that <code>dke recovery-key create</code> wrote.
                      </>
                    ) : (
                      <>
                        Recovery key <code>{chosen.told.id}</code>
                        {chosen.told.wantsPassphrase ? ', with a passphrase.' : ', without a passphrase.'}
                      </>
                    )
                  }
                  fault={fault}
                  onFile={(file) => void choose(file)}
                />
                {wantsPassphrase && (
                  <SecretField
                    label="Passphrase"
                    help="A check takes about a second, and 128 MiB."
                    onBytes={(bytes) => {
                      passphrase.current.fill(0);
                      passphrase.current = bytes;
                      setGiven(bytes.length > 0);
                    }}
                  />
                )}
              </div>
              {rehearsal.error !== null && <ProblemView error={rehearsal.error} compact />}
              <ApiCallView call={{ ...call, query: { dryRun: true } }} />
              <div className="flex flex-wrap items-center gap-3">
                <Button type="submit" tone="primary" busy={rehearsal.isPending} disabled={!ready}>
                  Dry run
                </Button>
                <p role="status" className="text-muted">
                  {rehearsal.isPending ? 'Restoring and undoing everything…' : ''}
                </p>
              </div>
            </div>
          </Panel>
        </form>
        {rehearsal.data !== undefined && (
          <section aria-labelledby={resultId} className="space-y-6">
            <h2 id={resultId} ref={result} tabIndex={-1} className="text-lg font-semibold outline-none">
              Preview
            </h2>
            <Panel flush>
              <Impact found={rehearsal.data} />
            </Panel>
            <Rules snapshotId={snapshot.id} found={rehearsal.data} />
            <Button tone="danger" onClick={() => setConfirming(true)}>
              Restore…
            </Button>
          </section>
        )}
        {confirming && chosen !== null && rehearsal.data !== undefined && (
          <ConfirmDialog<SnapshotRestore>
            title="Restore this snapshot?"
            expected={snapshot.id.slice(0, 8)}
            expectedKind="first eight characters of its id"
            wide
            call={call}
            complete={() => openSnapshot(snapshot.id, chosen.file, chosen.told, passphrase.current)}
            submitLabel="Restore"
            onCancel={() => {
              setConfirming(false);
              void client.invalidateQueries({ queryKey: ['/api/approvals'] });
            }}
            onDone={async (restored) => {
              setConfirming(false);
              setDone(restored);
              passphrase.current.fill(0);
              announce('Snapshot restored');
              await client.invalidateQueries();
            }}
          >
            <p>
              Restores the state of <Time value={snapshot.at} seconds />{' '}
              {target.to === 'new'
                ? `as the new tenant “${target.name.trim()}”`
                : target.to === 'same'
                  ? `into the tenant “${own?.name ?? ''}”`
                  : `into the tenant “${others.find(({ id }) => id === target.tenantId)?.name ?? ''}”`}
              . This cannot be undone, except by restoring another snapshot.
            </p>
            <Rules snapshotId={snapshot.id} found={rehearsal.data} />
          </ConfirmDialog>
        )}
      </>
    );
  return (
    <section aria-labelledby={resultId} className="space-y-6">
      <h2 id={resultId} ref={result} tabIndex={-1} className="text-lg font-semibold outline-none">
        Restored
      </h2>
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
        <Impact found={done} />
      </Panel>
    </section>
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
      description="Start with a dry run: it restores everything, then undoes it. Destroyed keys stay destroyed."
    >
      <Panel title="Snapshot">
        <Async query={query}>{(snapshot) => <SnapshotFactsPanel snapshot={snapshot} keys={keys.data?.items} />}</Async>
      </Panel>
      {query.data !== undefined &&
        (query.data.state === 'held' ? (
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
