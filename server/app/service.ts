// A service from start to stop. It opens the data directory in an order that writes nothing before
// everything that is there was recognised: lock, database, root key, keys, then the first start
// (start.ts). Each part is released in reverse order. Errors leave as StartError.

import { createEvents } from '../base/events.ts';
import { newId } from '../base/ids.ts';
import { createLimitRefusals } from '../base/limit-refusals.ts';
import { ServiceError } from '../base/service-error.ts';
import { StartError } from '../base/start-error.ts';
import { systemClock } from '../base/time.ts';
import { createTurns, type GivingWay } from '../base/turns.ts';
import type { TlsMaterial } from '../fronts/listener/listener.ts';
import { createStopGrace } from './jobs.ts';
import { createLifecycle, type Lifecycle, type StopFailure } from './lifecycle.ts';
import { createParts } from './open/background-work.ts';
import { openData } from './open/data.ts';
import { createDisks } from './open/disks.ts';
import type { ServiceEvents } from './open/events.ts';
import { createFronts } from './open/fronts.ts';
import { createNodes } from './open/nodes.ts';
import { openObservation } from './open/observation.ts';
import { createPorts } from './open/ports.ts';
import { auditSources } from './open/sinks.ts';
import { openDirectory } from './open/storage.ts';
import type { Service, ServiceOptions } from './running-service.ts';
import { createServing } from './serving.ts';
import { createRecord, createStart } from './start.ts';
import { requireStart } from './start-checks.ts';
import { toStartError } from './start-errors.ts';

const stopFault = ({ name, error }: StopFailure): StartError =>
  new StartError(
    'store',
    `stopped, but the store did not take the last records (${error instanceof Error ? error.message : 'it failed'}; step: ${name}): ` +
      (error instanceof ServiceError && error.hint !== undefined
        ? error.hint
        : 'what was confirmed is stored; repair the store before the next start'),
    { cause: error },
  );

/** The first failure is the answer of the stop; the others are reported with their steps. */
const reportFailures = (log: ServiceOptions['log'], failures: readonly StopFailure[]): void => {
  for (const { name, error } of failures) log.error('a part of the service failed to stop', { step: name, error });
};

const open = async (options: ServiceOptions, lifecycle: Lifecycle): Promise<Service> => {
  const { config, version, log, connection, refusals = createLimitRefusals(() => undefined) } = options;
  requireStart(config, log, () => openDirectory(config, lifecycle));
  const clock = systemClock;
  const requestId = (): string => newId(clock.now());
  const events: ServiceEvents = createEvents();
  // Opened first, so that they are closed last: what is under way until then is written.
  const disks = createDisks(config.dataDirectory);
  const grace = options.stopGrace ?? createStopGrace();
  lifecycle.opened('the disks', () => disks.close(grace()));
  const observed = await openObservation({ ...options, disks });
  const { observation, telemetry, accessLogState, telemetryState } = observed;
  // What is observed until the rest has stopped is sent.
  lifecycle.opened('the telemetry', () => telemetry?.stop(grace()));
  const data = await openData(options, lifecycle, requestId, observed, events, disks);
  const { core, ring, certificates, storage } = data;
  const nodes = await createNodes({ ring, root: data.root.root, clock, log, core: core.core, events }, storage, {
    ...options,
    name: config.node.name,
    sources: auditSources(config, disks.files),
    postgresql: config.postgresql,
  });
  const { fleet, quarantine } = nodes;
  let stopping = false;
  const opened = createPorts(options, data, nodes, events, () => stopping, disks);
  const { ports, marks, trustedAuthorities } = opened;
  const { directory } = ports;
  lifecycle.opened('the directory', () => directory.close());
  lifecycle.opened('the nodes', () => fleet.stop());
  const parts = createParts(options, storage.store, nodes, opened, certificates, {
    accessLogState,
    telemetryState,
    refusals,
    disks,
  });
  const { operations, metrics, latency, notifications, tellCertificates, retention } = parts;
  // A certificate, a signal or a rotation of the root key can start one at any time.
  lifecycle.opened('the checks of notifications', () => notifications.stop());
  const fronts = createFronts(ports, operations, {
    ...{ config, version, core: core.raw, requestId, metrics, latency, marks, connection, observation },
    refused: refusals.refused,
  });
  telemetry?.startMetrics(metrics);
  // From now on, a backup of the former root key opens nothing.
  events.on('rootRotated', () => {
    notifications.checkAll().catch((error: unknown) => log.error('the notifications could not be checked', { error }));
  });
  certificates.make();

  const record = createRecord({ nodes, opened, requestId });
  const start = createStart(options, lifecycle, { data, nodes, opened, parts, requestId, grace });
  const serving = createServing(start, { fleet, quarantine, directory, events, log, say: options.say });
  await serving.begin();

  const withAuthorities = (pairs: TlsMaterial['pairs']): TlsMaterial => ({
    pairs,
    clientAuthorities: config.tls.clientCertificates ? directory.clientAuthorities() : undefined,
  });
  const { isPressed } = fleet;
  const giveWay: GivingWay =
    isPressed === undefined ? (use) => use() : createTurns(() => isPressed() || storage.store.isWriting());
  return {
    operations,
    checkNotifications: notifications.checkAll,
    handle: (incoming, outgoing) => {
      const answer = (): void => (serving.isOpen() ? fronts.handle : fronts.handleClosed)(incoming, outgoing);
      const isUse = fronts.xks.owns(incoming.url) || fronts.tde.owns(incoming.url);
      const settled = fleet.settle?.();
      if (settled !== undefined) void settled.then(answer);
      else if (isUse) giveWay(answer);
      else answer();
    },
    xks: fronts.xks,
    tde: fronts.tde,
    certificatePath: certificates.path,
    adminToken: start.adminToken(),
    tenantRetention: retention,
    requestId,
    readTls: () => withAuthorities(certificates.read()),
    renewTls: async () => withAuthorities(await certificates.renew(trustedAuthorities)),
    withAuthorities: ({ pairs }) => withAuthorities(pairs),
    tlsTaken: ({ pairs }) => {
      const changes = certificates.taken(pairs);
      if (changes.length > 0)
        Promise.all(changes.map((change) => record('tls.issuer-changed', { ...change })))
          .then(() => tellCertificates(true))
          .then(notifications.checkAll)
          .catch((error: unknown) => log.error('the change of the issuer could not be recorded', { error }));
    },
    onClientAuthorities: (tell) => directory.onClientAuthorities(tell),
    announceStop: () => {
      stopping = true;
      directory.setHealthy(false);
    },
    stop: async () => {
      disks.hurry();
      const [first, ...others] = await lifecycle.stop();
      reportFailures(log, others);
      if (first !== undefined) throw stopFault(first);
    },
  };
};

export const openService = async (options: ServiceOptions): Promise<Service> => {
  const lifecycle = createLifecycle();
  try {
    return await open(options, lifecycle);
  } catch (error) {
    reportFailures(options.log, await lifecycle.stop());
    throw toStartError(error, options.config);
  }
};
