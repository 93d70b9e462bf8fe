// The ports of a service: what its operations use of the world, each with the adapter that this
// configuration asks for.

import { rootCertificates } from 'node:tls';
import { openArchive } from '../../adapters/archives/archive.ts';
import { openAwsReader } from '../../adapters/cloud/aws.ts';
import { createPasswordHashes } from '../../adapters/crypto/password-hashes.ts';
import { createKeyStoreProbe } from '../../adapters/diagnosis/key-store-probe.ts';
import { createEndpointDiagnosis } from '../../adapters/diagnosis/run-endpoint-checks.ts';
import { readHostUptime } from '../../adapters/host/process-facts.ts';
import { createOpenId } from '../../adapters/identity/open-id.ts';
import { createPasskeys } from '../../adapters/identity/passkeys.ts';
import { createExclusion } from '../../base/exclusion.ts';
import { createProbeMarks, type ProbeMarks } from '../../base/probe-mark.ts';
import { systemClock } from '../../base/time.ts';
import { type CopyReceipts, createCopyReceipts } from '../../operations/copies/take-receipts.ts';
import { createDirectory } from '../../operations/data-path/create-working-memory.ts';
import { createMeter } from '../../operations/data-path/meter.ts';
import { createUsageLog } from '../../operations/data-path/usage-log.ts';
import { createAwaitCopies } from '../../operations/root/await-copies.ts';
import { createErasureScheduler, type ErasureScheduler } from '../../operations/root/schedule-erasure.ts';
import { createRootSpread, type RootSpread } from '../../operations/root/spread-root.ts';
import { createDeadlines, type RunningDeadlines } from '../../operations/service/deadline-clock.ts';
import { createIdempotency } from '../../operations/shared/answer-once.ts';
import { createPreconditions } from '../../operations/shared/preconditions.ts';
import { createSnapshotFolder, type SnapshotFolder } from '../../operations/snapshots/snapshot-folder.ts';
import type { Ports } from '../../ports/ports.ts';
import { readBackupReceipts } from '../host/create-backup.ts';
import type { ServiceOptions } from '../running-service.ts';
import type { OpenedData } from './data.ts';
import type { Disks } from './disks.ts';
import type { ServiceEvents } from './events.ts';
import { readAuthorities, readOpenId } from './identity.ts';
import type { Nodes } from './nodes.ts';
import { openInvitationMailer } from './sinks.ts';

export interface OpenedPorts {
  readonly ports: Ports;
  readonly idempotency: ReturnType<typeof createIdempotency>;
  readonly preconditions: ReturnType<typeof createPreconditions>;
  readonly deadlines: RunningDeadlines;
  readonly folder: SnapshotFolder;
  readonly spread: RootSpread;
  readonly erasure: ErasureScheduler;
  readonly receipts: CopyReceipts;
  readonly marks: ProbeMarks;
  readonly trustedAuthorities: readonly string[];
}

/** How long after a failure, and after a hold, an erasure run is tried again. */
const erasureRetry = { retryMs: 30_000, heldMs: 2_000 } as const;

export const createPorts = (
  options: Pick<ServiceOptions, 'config' | 'version' | 'log' | 'publicUrl' | 'listening' | 'passwordParameters'>,
  { core: { core, raw }, ring, root: { root }, certificates }: OpenedData,
  { fleet, quarantine }: Nodes,
  events: ServiceEvents,
  stopping: () => boolean,
  disks: Disks,
): OpenedPorts => {
  const { config, version, log, publicUrl, listening } = options;
  const clock = systemClock;
  // In quarantine nothing is written until an operator confirms the database.
  const ownStore = quarantine.store;
  const idempotency = createIdempotency(ownStore, { clock, log, ring, fleet });
  const preconditions = createPreconditions(idempotency.store);
  const { store } = preconditions;

  // `ownStore` is for what the service writes on its own: it is not part of a caller's repeatable
  // or conditional request.
  const directory = fleet.over(
    createDirectory(
      { store: ownStore, core, ring, clock, log },
      { objects: config.limits.cachedObjects, requests: config.limits.queuedRequests },
    ),
  );
  events.on('lateCommit', (changes) => {
    log.warn('a commit has ended that was waited for too long: what it changed is shown now');
    fleet.show(changes).catch((error: unknown) => log.error('a late change could not be shown', { error }));
  });
  const deadlines = createDeadlines({ store: ownStore, clock, log }, readHostUptime);
  const folder = createSnapshotFolder(
    { store, clock, log },
    openArchive(raw, config.snapshots.directory, disks.files),
    fleet,
  );
  const { archive } = folder;
  archive.prepare();
  const exclusion = createExclusion();
  const spread = createRootSpread({ core, root, ring, store, clock, log, fleet, events });
  const { gatherMs, missingSnapshots } = config.erasure;
  const receipts = createCopyReceipts(
    { store: ownStore, clock },
    { 'service-backup': () => readBackupReceipts(config.dataDirectory), 'root-backup': root.backups },
  );
  const erasure = createErasureScheduler(
    {
      ...{ store, core, ring, root, clock, log, archive, exclusion, fleet },
      spread,
      missingSnapshots,
      takeReceipts: () => receipts.run('now'),
      awaitCopies: createAwaitCopies({ store, root, clock }, config.postgresql?.replicaLagMs ?? 0),
    },
    { gatherMs, ...erasureRetry },
  );
  events.on('keyDestroyed', erasure.schedule);
  events.on('dutyTaken', (duty) => {
    if (duty !== 'erasure') return;
    erasure.resume().catch((error: unknown) => log.error('the erasure run could not be resumed', { error }));
  });

  const identity = {
    version,
    startedAt: clock.now(),
    asksClientCertificates: config.tls.clientCertificates,
    stopping,
    publicUrl,
    authority: () => certificates.authority(new URL(publicUrl()).hostname),
  };
  const trustedAuthorities = readAuthorities(config.diagnostics.trustedAuthorities);
  const marks = createProbeMarks(
    (...of) => ring.authenticateRow(...of),
    () => clock.now(),
  );
  const cloud = config.aws.read ? openAwsReader(config.aws, log) : undefined;
  const ports: Ports = {
    ...{
      store,
      core,
      archive,
      exclusion,
      root,
      ring,
      directory,
      fleet,
      clock,
      deadlines,
      log,
      erasure,
      identity,
      cloud,
    },
    usage: createUsageLog({ store: ownStore, clock, log }, config.limits.instancesPerApplication),
    meter: createMeter(clock),
    passwords: createPasswordHashes(core, options.passwordParameters),
    people: config.people,
    mailer: openInvitationMailer(config, disks),
    passkeys: createPasskeys(publicUrl),
    provider: config.oidc === undefined ? undefined : createOpenId(readOpenId(config.oidc, disks), log),
    diagnosis: createEndpointDiagnosis(
      { store, directory, clock, identity, cloud },
      {
        ...{ crypto: raw, marks, node: listening, trustedAuthorities },
        servedCertificate: async () => (await disks.files.read(certificates.path)).toString('utf8'),
        cloudNetworks: config.diagnostics.cloudNetworks,
      },
    ),
    keyStoreProbe: createKeyStoreProbe(
      { store, directory, clock, identity },
      { crypto: raw, marks, node: listening, trust: [...rootCertificates, ...trustedAuthorities] },
    ),
  };
  return { ports, idempotency, preconditions, deadlines, folder, spread, erasure, receipts, marks, trustedAuthorities };
};
