// What works on the ports of a service: its operations, and what runs behind them.

import { dirname } from 'node:path';
import { createDiskSpace, type DiskPlace } from '../../adapters/host/disk-space.ts';
import { readProcessFacts } from '../../adapters/host/process-facts.ts';
import { openPackageDirectory } from '../../adapters/packages/package-folder.ts';
import { probeDirectory } from '../../base/durable-files.ts';
import type { LimitRefusals } from '../../base/limit-refusals.ts';
import { systemClock } from '../../base/time.ts';
import { createApprovals } from '../../operations/approvals/approvals.ts';
import { createLogForwarding, type LogForwarding } from '../../operations/audit/forward-logs.ts';
import { createKeyStoreWatch } from '../../operations/endpoints/external-key-stores.ts';
import type { Operations } from '../../operations/index.ts';
import { createNotificationDelivery } from '../../operations/notifications/deliver.ts';
import { createSources } from '../../operations/notifications/sources.ts';
import { createNotificationWatch } from '../../operations/notifications/watch.ts';
import { clearDeletedUsers } from '../../operations/people/clear-deleted.ts';
import { createRequestMinutes } from '../../operations/requests/request-minutes.ts';
import { createXksLatency, type XksLatency } from '../../operations/requests/xks-latency.ts';
import { createProviderChanges } from '../../operations/root/change-provider.ts';
import { checkHealth } from '../../operations/service/check-health.ts';
import { createHousekeeping } from '../../operations/service/housekeeping.ts';
import { createMinuteJobs } from '../../operations/service/minute-jobs.ts';
import { readMetrics } from '../../operations/service/read-metrics.ts';
import { readOverview } from '../../operations/service/read-overview.ts';
import { createBackupAuthority } from '../../operations/service/service-backup.ts';
import { setupSteps } from '../../operations/service/setup-steps.ts';
import { tellCertificates } from '../../operations/service/told-certificates.ts';
import { tellHealth } from '../../operations/service/told-health.ts';
import { createJobBoard } from '../../operations/shared/job-board.ts';
import { createSnapshots, type Snapshots } from '../../operations/snapshots/index.ts';
import { recoverMissing } from '../../operations/snapshots/recover-missing.ts';
import { createTenantRetention, type TenantRetention } from '../../operations/tenants/purge-tenant.ts';
import type { Store } from '../../ports/store.ts';
import { createBackupAnswers } from '../host/backup-requests.ts';
import { createTimetable, type Jobs, minuteTasks } from '../jobs.ts';
import type { ServiceOptions } from '../running-service.ts';
import type { Certificates } from '../tls/own-certificate.ts';
import type { Disks } from './disks.ts';
import type { Nodes } from './nodes.ts';
import type { Observed } from './observation.ts';
import { createOperations } from './operations.ts';
import type { OpenedPorts } from './ports.ts';
import { openSink, openTarget } from './sinks.ts';

/** The snapshots may be in a network folder that hangs: they come last. */
const diskPlaces = ({ dataDirectory, log, accessLog, snapshots }: ServiceOptions['config']): readonly DiskPlace[] => [
  { place: 'data', folder: dataDirectory },
  ...(log.destination === 'stderr' || log.destination === 'stdout'
    ? []
    : [{ place: 'log' as const, folder: dirname(log.destination) }]),
  ...(accessLog === undefined ? [] : [{ place: 'access-log' as const, folder: dirname(accessLog.path) }]),
  { place: 'snapshots', folder: snapshots.directory },
];

export interface Parts {
  readonly operations: Operations;
  readonly metrics: ReturnType<typeof readMetrics>;
  readonly latency: XksLatency;
  readonly forwarding: LogForwarding;
  readonly snapshots: Snapshots;
  readonly notifications: ReturnType<typeof createNotificationWatch>;
  /** To the node that notifies. */
  readonly tellCertificates: ReturnType<typeof tellCertificates>;
  readonly retention: TenantRetention;
  readonly jobs: Jobs;
}

type Reported = Pick<Observed, 'accessLogState' | 'telemetryState'> & { readonly refusals: LimitRefusals };

/** What this node tells the one that notifies. */
const createTold = (
  { store, fleet }: Pick<OpenedPorts['ports'], 'store' | 'fleet'>,
  { served }: Pick<Certificates, 'served'>,
  views: Parameters<typeof tellHealth>[2],
) => {
  const health = tellHealth({ store, clock: systemClock }, fleet.id, views);
  const own = tellCertificates({ store, clock: systemClock }, fleet.id, served);
  const tellAll = async (): Promise<void> => {
    await health();
    await own();
  };
  return { tellCertificates: own, tellAll };
};

export const createParts = (
  { config, version, log, logState }: Pick<ServiceOptions, 'config' | 'version' | 'log' | 'logState'>,
  rawStore: Store,
  { sealer, quarantine, state }: Pick<Nodes, 'sealer' | 'quarantine' | 'state'>,
  opened: OpenedPorts,
  certificates: Certificates,
  { disks, ...observed }: Reported & { readonly disks: Disks },
): Parts => {
  const { ports, idempotency, preconditions, deadlines, folder, erasure } = opened;
  const { store, fleet } = ports;
  const clock = systemClock;
  const forwarding = createLogForwarding(
    { store, clock, log, fleet },
    config.auditSinks.map((sink) => ({
      sink: openSink(sink, version, disks),
      log: sink.log,
      endpoints: sink.endpoints,
    })),
    quarantine,
  );
  const approvals = createApprovals(ports, { expireMs: config.approvals.expireMs });
  const board = createJobBoard(clock);
  const snapshots = createSnapshots(ports, approvals, config.snapshots, folder, createTimetable(log), board);
  const latency = createXksLatency({ store, clock });
  const health = checkHealth(ports, {
    probe: () => probeDirectory(config.dataDirectory),
    refusal: state.refusal,
  });
  const packages = openPackageDirectory(config.server.packagesDirectory);
  // Nothing waits for it: the service does its work without the packages, too.
  packages.list().catch((error: Error) => log.warn(`packages cannot be distributed: ${error.message}`));
  const delivery = createNotificationDelivery(
    ports,
    config.notificationTargets.map((target) => openTarget(target, version, () => clock.now(), disks)),
  );
  const setup = setupSteps(ports, forwarding, config.snapshots.schedule);
  const operations = createOperations(ports, {
    ...{ sealer, forwarding, approvals, delivery },
    rules: { tenants: { retentionMs: config.tenants.retentionDays * 86_400_000 }, snapshots: config.snapshots },
    ready: {
      health,
      snapshots: snapshots.operations,
      quarantine: quarantine.operations,
      overview: readOverview(ports, latency),
      idempotency: idempotency.operations,
      preconditions: preconditions.operations,
      setup,
      jobs: async () => ({ nodes: await fleet.nodes(), jobs: board.jobs() }),
      clock: { get: deadlines.state, confirm: deadlines.confirm },
      settings: async () => ({ source: config.source, items: config.settings }),
      packages,
    },
  });
  const notifications = createNotificationWatch(
    ports,
    createSources(ports, {
      ...{ forwarding, latency, health, logState, folder, setup },
      certificates: certificates.served,
      certificateFaults: () => certificates.faults(opened.trustedAuthorities),
      schedule: config.snapshots.schedule,
      reminders: {
        token: config.reminders.tokenDays,
        key: config.reminders.keyDays,
        backup: config.postgresql === undefined ? config.reminders.backupDays : 0,
      },
    }),
  );
  const metrics = readMetrics(ports, {
    health: operations.health,
    quarantined: () => quarantine.closed() !== undefined,
    processFacts: readProcessFacts,
    diskSpace: createDiskSpace(diskPlaces(config)),
    certificates: certificates.served,
    certificateFaults: () => certificates.faults(opened.trustedAuthorities),
    auditSinks: () => forwarding.state(),
    notificationTargets: () => delivery.state(),
    logState,
    ...observed,
  });
  const providerChanges = createProviderChanges(ports);
  const backupAnswers = createBackupAnswers(
    config.dataDirectory,
    createBackupAuthority(ports),
    () => quarantine.closed()?.reason,
    log,
  );
  const retention = createTenantRetention(ports);
  const requestMinutes = createRequestMinutes(ports);
  const told = createTold(ports, certificates, { health: operations.health, logState });
  const jobs: Jobs = {
    erasure,
    requestMinutes,
    delivery,
    snapshots: snapshots.schedule,
    meter: ports.meter,
    housekeeping: createHousekeeping(
      ports,
      { requestLogDays: config.limits.requestLogDays, requestLogRows: config.limits.requestLogRows },
      told.tellAll,
      async () => {
        await backupAnswers.run();
        await sealer.run();
        await providerChanges.run();
        await opened.receipts.run();
      },
      (all) => latency.flush(all),
      board,
      forwarding.requestsRemoved,
    ),
    minuteJobs: createMinuteJobs(
      ports,
      minuteTasks({
        ...{ deadlines, approvals, retention, notifications, requestMinutes, store: rawStore },
        ...{ clearDeletedUsers: clearDeletedUsers(ports), recoverMissing: recoverMissing(ports) },
      }),
      board,
    ),
    externalKeyStores: createKeyStoreWatch(ports, config.externalKeyStores.probeSeconds * 1000, board),
  };
  return { operations, metrics, latency, forwarding, snapshots, notifications, ...told, retention, jobs };
};
