// The service itself: its logs and their sinks, its root key and erasure runs, and the node that
// looks.

import { serviceTenantId } from '../../base/ids.ts';
import { toRfc3339 } from '../../base/time.ts';
import type { Condition, NotificationKind } from '../../domain/notification.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { LogState } from '../../ports/log.ts';
import type { Ports } from '../../ports/ports.ts';
import type { LogForwarding } from '../audit/forward-logs.ts';
import { coveredUntil } from '../root/conclude-erasure.ts';
import type { SetupOperations, StatusOperations } from '../service/service-operations.ts';
import { hasAcceptedRisks, hasOldRootCopy } from '../service/setup-steps.ts';
import { type Failing, failingOf, readToldHealth } from '../service/told-health.ts';
import type { NotificationSource } from './watch.ts';

const minuteMs = 60_000;
/** Damaged records in a notification. */
const mostNamed = 20;
/** How long a fork of a log at a sink is told. */
const forkMs = 7 * 86_400_000;
const service = { kind: 'service', id: 'service', name: 'service' } as const;

export interface ServiceViews {
  readonly forwarding: Pick<LogForwarding, 'state'>;
  readonly health: StatusOperations['health'];
  readonly setup: Pick<SetupOperations, 'get'>;
  readonly logState: () => LogState;
  readonly folder: { readonly away: () => Promise<boolean>; readonly archive: { readonly directory: string } };
}

type ServicePorts = Pick<Ports, 'store' | 'clock' | 'deadlines' | 'erasure' | 'core' | 'directory' | 'root' | 'fleet'>;

const platform = async (
  { store: { read }, clock, root, erasure }: Pick<ServicePorts, 'store' | 'clock' | 'root' | 'erasure'>,
  { forwarding, setup }: Pick<ServiceViews, 'forwarding' | 'setup'>,
): Promise<readonly Condition[]> => {
  const now = clock.now();
  const found: Condition[] = [];
  for (const { name, target, log, lag, lost, lostAt, fork, failure } of await forwarding.state()) {
    if (lostAt !== null && now - lostAt < 24 * 60 * minuteMs)
      found.push({
        kind: 'requests.sink-lost',
        tenantId: serviceTenantId,
        subject: { kind: 'audit-sink', id: name, name },
        harmAt: lostAt,
        details: { target, lag, lost },
      });
    if (fork !== null && now - fork.at < forkMs)
      found.push({
        kind: 'audit.sink-forked',
        tenantId: serviceTenantId,
        subject: { kind: 'audit-sink', id: name, name },
        harmAt: fork.at,
        details: { target, log, record: fork.record },
      });
    if (failure !== null && now - failure.since > 5 * minuteMs)
      found.push({
        kind: 'audit.sink-behind',
        tenantId: serviceTenantId,
        subject: { kind: 'audit-sink', id: name, name },
        harmAt: failure.since,
        details: { target, log, lag, message: failure.message.slice(0, 200) },
      });
  }
  const size = await read.audit.size();
  const checkpoint = await read.audit.latestCheckpoint();
  const covered = checkpoint?.size ?? 0;
  const [first] =
    size > covered ? await read.audit.list(everyTenant, { order: 'oldest' }, { after: String(covered), limit: 1 }) : [];
  if (first !== undefined && now - first.at > 5 * minuteMs)
    found.push({
      kind: 'audit.checkpoint-stale',
      tenantId: serviceTenantId,
      subject: service,
      harmAt: first.at,
      details: { records: size - covered },
    });
  // During a run the new root key is not the only one yet.
  if (root.previous === undefined && (await hasOldRootCopy(read, root)))
    found.push({
      kind: 'root.backup-old',
      tenantId: serviceTenantId,
      subject: service,
      harmAt: null,
      details: { rootEpoch: root.current.epoch },
    });
  if (await hasAcceptedRisks(read)) {
    const steps = (await setup.get()).steps.filter(({ state }) => state === 'confirmed').map(({ step }) => step);
    if (steps.length > 0)
      found.push({
        kind: 'setup.risk-accepted',
        tenantId: serviceTenantId,
        subject: { ...service, name: steps.join(', ') },
        harmAt: null,
        details: { steps },
      });
  }
  const { state, blockers, failure } = await erasure.state();
  if (state === 'failed')
    found.push({
      kind: 'erasure.failed',
      tenantId: serviceTenantId,
      subject: service,
      harmAt: null,
      details: { reason: failure ?? '' },
    });
  if (state === 'blocked' && blockers !== null)
    found.push({
      kind: 'erasure.blocked',
      tenantId: serviceTenantId,
      subject: service,
      harmAt: blockers.since,
      details: {
        records: blockers.records.length,
        recordIds: blockers.records
          .map(({ id }) => id)
          .sort()
          .slice(0, mostNamed),
        nodes: blockers.nodes,
        standbys: blockers.standbys,
        snapshots: blockers.snapshots,
      },
    });
  const { waiting } = await read.keys.erasable(await coveredUntil(read));
  if (waiting > 0)
    found.push({
      kind: 'erasure.copies-left',
      tenantId: serviceTenantId,
      subject: { ...service, name: `${waiting} keys` },
      harmAt: null,
      details: { keys: waiting },
    });
  return found;
};

/** Conditions of the node that has the duty to check, and what it knows of the other nodes. */
const ownState = async (
  {
    store,
    core,
    deadlines,
    directory,
    fleet,
  }: Pick<ServicePorts, 'store' | 'core' | 'deadlines' | 'directory' | 'fleet'>,
  { health, logState, folder }: ServiceViews,
): Promise<readonly Condition[]> => {
  const own = (kind: NotificationKind, details: Condition['details'], name: string = service.name): Condition => ({
    kind,
    tenantId: serviceTenantId,
    subject: { ...service, name },
    harmAt: null,
    details,
  });
  const nodes = await fleet.nodes();
  /**
   * One for each check of each node: another one that fails is news, also while the first one is
   * acknowledged.
   */
  const failing = async (): Promise<readonly Condition[]> => {
    const found: Condition[] = [];
    const add = (checks: Failing, subject: (check: string) => Condition['subject']): void => {
      for (const [check, detail] of Object.entries(checks))
        found.push({ ...own('health.failing', { [check]: detail }), subject: subject(check) });
    };
    const here = failingOf(await health());
    if (store.link === undefined) {
      add(here, (check) => ({ ...service, id: `${service.id}-${check}`, name: check }));
      return found;
    }
    for (const { id, name, state, self } of nodes)
      if (self || state === 'active' || state === 'draining')
        add(self ? here : await readToldHealth(store.read, id), (check) => ({
          ...{ kind: 'node', id: `${id}-${check}`, name: `${check} (node ${name})` },
        }));
    return found;
  };
  const { dropped } = directory.requestLog();
  const time = await deadlines.state();
  const { failure: logFailure } = logState();
  return [
    ...(await failing()),
    ...(core.memoryStatus().locked ? [] : [own('memory.unlocked', {})]),
    ...(dropped === 0 ? [] : [own('requests.dropped', { dropped })]),
    ...(time.doubt === null
      ? []
      : [own('clock.jumped', { expected: toRfc3339(time.now), aheadSeconds: Math.round(time.doubt.ahead / 1000) })]),
    ...((await folder.away()) ? [own('snapshot.folder-missing', {}, folder.archive.directory)] : []),
    ...(logFailure === null
      ? []
      : [
          own('log.failing', {
            since: toRfc3339(logFailure.since),
            reason: logFailure.message.slice(0, 200),
            lost: logFailure.lost,
          }),
        ]),
    ...nodes
      .filter(({ state }) => state === 'offline')
      .map(
        ({ id, name, heartbeatAt }): Condition => ({
          kind: 'node.offline',
          tenantId: serviceTenantId,
          subject: { kind: 'node', id, name },
          harmAt: heartbeatAt,
          details: {},
        }),
      ),
  ];
};

export const serviceSources = (ports: ServicePorts, views: ServiceViews): readonly NotificationSource[] => [
  {
    about: 'audit log and erasure',
    kinds: [
      'audit.sink-behind',
      'audit.sink-forked',
      'requests.sink-lost',
      'audit.checkpoint-stale',
      'root.backup-old',
      'setup.risk-accepted',
      'erasure.blocked',
      'erasure.failed',
      'erasure.copies-left',
    ],
    every: 'minute',
    look: () => platform(ports, views),
  },
  {
    about: 'the state of the service',
    kinds: [
      'health.failing',
      'memory.unlocked',
      'requests.dropped',
      'clock.jumped',
      'log.failing',
      'snapshot.folder-missing',
      'node.offline',
    ],
    every: 'minute',
    look: () => ownState(ports, views),
  },
];
