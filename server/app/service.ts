// A service from start to stop. It opens the data directory in an order that writes nothing before everything that is there was recognised: lock,
// database, root key, keys, then the first start. Each part is released in reverse order. Errors leave as StartError.

import { systemClock } from '../base/clock.ts';
import { ServiceError } from '../base/errors.ts';
import { newId, serviceTenantId } from '../base/ids.ts';
import { StartError } from '../base/start-error.ts';
import { serviceActor } from '../domain/actor.ts';
import type { TlsMaterial } from '../listener/listener.ts';
import type { Unsound } from '../operations/audit/seal-audit-log.ts';
import { setUp } from '../operations/service/first-start.ts';
import { openData } from './data.ts';
import { createFronts } from './fronts.ts';
import type { Service, ServiceOptions } from './interface.ts';
import { startJobs, stopGraceMs } from './jobs.ts';
import { createLifecycle, type Lifecycle, type StopFailure } from './lifecycle.ts';
import { createNodes } from './nodes.ts';
import { openObservation } from './observation.ts';
import { createParts } from './parts.ts';
import { createPorts } from './ports.ts';
import { auditSources } from './sinks.ts';
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

const open = async (options: ServiceOptions, lifecycle: Lifecycle): Promise<Service> => {
  const { config, version, log, connection } = options;
  const clock = systemClock;
  const requestId = (): string => newId(clock.now());
  const observed = await openObservation(options);
  const { observation, telemetry } = observed;
  // Opened first, so that it is stopped last: what is observed until then is sent.
  lifecycle.opened('the telemetry', () => telemetry?.stop(stopGraceMs));
  const data = await openData(options, lifecycle, requestId, observed);
  const {
    core: { core, raw },
    ring,
    certificates,
    root: { root, failedUnseals },
    storage: { store: rawStore },
  } = data;
  const nodes = await createNodes({ ring, root, clock, log, core }, data.storage, {
    ...options,
    name: config.node.name,
    sources: auditSources(config),
    postgresql: config.postgresql,
  });
  const { fleet, sealer, quarantine, reactions } = nodes;
  let stopping = false;
  const opened = createPorts(options, data, nodes, () => stopping);
  const { ports, deadlines, folder, spread, erasure, marks, trustedAuthorities } = opened;
  const { store, directory } = ports;
  lifecycle.opened('the directory', () => directory.close());
  lifecycle.opened('the nodes', () => fleet.stop());
  const parts = createParts(options, rawStore, nodes, opened, certificates, observed);
  const { operations, metrics, latency, forwarding, snapshots, notifications, retention, jobs } = parts;
  const fronts = createFronts(ports, operations, {
    ...{ config, version, core: raw, requestId, metrics, latency, marks, connection, observation },
  });
  telemetry?.startMetrics(metrics);
  certificates.make();

  let adminToken: string | undefined;
  let begun = false;
  /** What was found before the service had begun. */
  let early: Unsound | undefined;
  /** False: what a service in quarantine answers is served. */
  let serving = false;
  const record = async (
    kind: 'service.started' | 'service.stopped' | 'tls.certificate-created' | 'tls.issuer-changed',
    details: Record<string, unknown>,
  ): Promise<void> => {
    // In quarantine nothing is written.
    if (quarantine.closed() !== undefined) return;
    await store.write((tx) =>
      tx.audit.append({
        kind,
        actor: serviceActor(requestId()),
        tenantId: serviceTenantId,
        subject: { kind: 'service', id: 'service' },
        details: { node: fleet.name, ...details },
      }),
    );
  };
  /** Clients of this node had another certificate before: they have to be given this one. */
  const tellCertificate = async (): Promise<void> => {
    const made = certificates.made();
    const { isFirstStart, isNewNode } = data.storage;
    if (made === undefined || isFirstStart || isNewNode) return;
    log.warn(
      `a self-signed certificate was created: clients that trust the former one refuse it. Give them ${certificates.path} (ca_file in pkcs11.toml, ` +
        '--ca-file of dke, the trust store of the cloud), or stop the service and restore tls.crt and tls.key from a backup (a key that was there is now tls.key.former)',
      made,
    );
    await record('tls.certificate-created', made);
  };
  const steps: readonly (() => Promise<unknown>)[] = [
    async () => {
      ({ adminToken } = await setUp(ports)());
    },
    rawStore.started,
    deadlines.turn,
    folder.settle,
    snapshots.settle,
    erasure.resume,
    async () => {
      await fleet.join(spread.face());
      if (reactions.fault !== undefined) throw reactions.fault;
    },
    () =>
      lifecycle.start('the forwarding of the audit log', {
        start: forwarding.start,
        stop: () => forwarding.stop(stopGraceMs),
      }),
    () =>
      lifecycle.start('the last checkpoint of the audit log', {
        stop: async () => {
          if (quarantine.closed() !== undefined) return;
          // The next start makes up for it.
          await sealer.checkpoint().catch((error: unknown) => log.error('the last checkpoint failed', { error }));
        },
      }),
    () =>
      lifecycle.start('the audit record of the run', {
        start: () =>
          record('service.started', {
            version,
            rootEpoch: root.current.epoch,
            rootProvider: root.ways.find(({ opened: by }) => by)?.name ?? 'passphrase',
            failedUnseals,
            fileSystem: root.erasure.fileSystem,
            erasure: root.erasure.overwritesInPlace ? 'overwrites in place' : 'best effort',
          }),
        stop: () => record('service.stopped', {}),
      }),
    tellCertificate,
    () => startJobs(lifecycle, jobs),
  ];
  let taken = 0;
  const enterQuarantine = (found: Unsound): void => {
    quarantine.enter(found);
    quarantine.onConfirmed(async () => {
      await fleet.resume();
      serving = true;
    });
    close();
  };
  /** Begun again after a failure, it goes on with the step that failed. */
  const begin = async (): Promise<void> => {
    for (let step = steps[taken]; step !== undefined; step = steps[taken]) {
      await step();
      taken += 1;
    }
    begun = true;
    serving = true;
    if (early !== undefined) enterQuarantine(early);
  };
  const close = (): void => {
    const closed = quarantine.closed();
    if (closed === undefined) return;
    serving = false;
    directory.setHealthy(false);
    log.error('the service is in quarantine', { reason: closed.reason });
    options.say?.(`quarantine: ${closed.reason}`);
    options.say?.(`quarantine confirmation code: ${closed.code}`);
  };
  reactions.enterQuarantine = (found) => {
    if (!begun) early ??= found;
    else if (quarantine.closed() === undefined) enterQuarantine(found);
  };
  if (quarantine.closed() === undefined) await begin();
  else {
    close();
    await directory.loadTenants();
    quarantine.onConfirmed(begin);
  }

  const withAuthorities = (pairs: TlsMaterial['pairs']): TlsMaterial => ({
    pairs,
    clientAuthorities: config.tls.clientCertificates ? directory.clientAuthorities() : undefined,
  });
  return {
    operations,
    checkNotifications: () => notifications.turn(true),
    handle: (incoming, outgoing) => {
      const answer = (): void => {
        const isOpen = serving && quarantine.closed() === undefined;
        (isOpen ? fronts.handle : fronts.handleClosed)(incoming, outgoing);
      };
      const settled = fleet.settle();
      if (settled === undefined) answer();
      else void settled.then(answer);
    },
    xks: fronts.xks,
    tde: fronts.tde,
    certificatePath: certificates.path,
    adminToken,
    tenantRetention: retention,
    requestId,
    readTls: () => withAuthorities(certificates.read()),
    renewTls: ({ pairs }) => withAuthorities(certificates.renew(pairs, trustedAuthorities)),
    withAuthorities: ({ pairs }) => withAuthorities(pairs),
    tlsTaken: ({ pairs }) => {
      for (const change of certificates.taken(pairs))
        record('tls.issuer-changed', { ...change })
          .then(() => notifications.turn(true))
          .catch((error: unknown) => log.error('the change of the issuer could not be recorded', { error }));
    },
    onClientAuthorities: (tell) => directory.onClientAuthorities(tell),
    announceStop: () => {
      stopping = true;
      directory.setHealthy(false);
    },
    stop: async () => {
      const [first] = await lifecycle.stop();
      if (first !== undefined) throw stopFault(first);
    },
  };
};

export const openService = async (options: ServiceOptions): Promise<Service> => {
  const lifecycle = createLifecycle();
  try {
    return await open(options, lifecycle);
  } catch (error) {
    await lifecycle.stop();
    throw toStartError(error, options.config);
  }
};
