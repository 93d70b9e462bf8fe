// The steps of a start that follow when everything is open and the database is the right one, in
// their order. What a step starts is stopped in reverse order (lifecycle.ts).

import { serviceTenantId } from '../base/ids.ts';
import { serviceActor } from '../domain/actor.ts';
import { adoptPersons } from '../operations/access/identities.ts';
import { setUp } from '../operations/service/first-start.ts';
import { type StopGrace, startJobs } from './jobs.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { Parts } from './open/background-work.ts';
import type { OpenedData } from './open/data.ts';
import type { Nodes } from './open/nodes.ts';
import type { OpenedPorts } from './open/ports.ts';
import type { ServiceOptions } from './running-service.ts';

export interface Start {
  /** Runs every step. A call after a failure continues with the step that failed. */
  run(): Promise<void>;
  /** The value of the first administrator's token; undefined unless this is the first start. */
  adminToken(): string | undefined;
}

interface Opened {
  readonly data: OpenedData;
  readonly nodes: Nodes;
  readonly opened: OpenedPorts;
  readonly parts: Parts;
  readonly requestId: () => string;
  readonly grace: StopGrace;
}

/** An audit record of the service itself. In quarantine nothing is written. */
export const createRecord =
  ({ nodes: { fleet, quarantine }, opened: { ports }, requestId }: Pick<Opened, 'nodes' | 'opened' | 'requestId'>) =>
  async (
    kind: 'service.started' | 'service.stopped' | 'tls.certificate-created' | 'tls.issuer-changed',
    details: Record<string, unknown>,
  ): Promise<void> => {
    if (quarantine.closed() !== undefined) return;
    await ports.store.write((tx) =>
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
const tellCertificate = async (
  { data: { certificates, storage } }: Opened,
  { log }: Pick<ServiceOptions, 'log'>,
  record: ReturnType<typeof createRecord>,
): Promise<void> => {
  const made = certificates.made();
  const { isFirstStart, isNewNode } = storage;
  if (made === undefined || isFirstStart || isNewNode) return;
  log.warn(
    `a self-signed certificate was created: clients that trust the former one refuse it. Give them ${certificates.path} (ca_file in pkcs11.toml, ` +
      '--ca-file of dke, the trust store of the cloud), or stop the service and restore tls.crt and tls.key from a backup (a key that was there is now tls.key.former)',
    made,
  );
  await record('tls.certificate-created', made);
};

/** What the audit log says about this run of the service. */
const runDetails = (
  { data: { root: opened } }: Opened,
  { version }: Pick<ServiceOptions, 'version'>,
): Record<string, unknown> => {
  const { root, failedUnseals } = opened;
  return {
    version,
    rootEpoch: root.current.epoch,
    rootProvider: root.ways.find(({ opened: by }) => by)?.name ?? 'passphrase',
    failedUnseals,
    fileSystem: root.erasure.fileSystem,
    erasure: root.erasure.overwritesInPlace ? 'overwrites in place' : 'best effort',
  };
};

export const createStart = (
  options: Pick<ServiceOptions, 'log' | 'version' | 'showFirstToken'>,
  lifecycle: Lifecycle,
  all: Opened,
): Start => {
  const { log } = options;
  const { data, nodes, opened, parts } = all;
  const { fleet, sealer, quarantine } = nodes;
  const { ports, deadlines, folder, spread, erasure } = opened;
  const { forwarding, snapshots, jobs } = parts;
  const record = createRecord(all);
  let adminToken: string | undefined;
  const steps: readonly (() => Promise<unknown>)[] = [
    async () => {
      // Before anything else can fail: it is created once.
      ({ adminToken } = await setUp(ports)(options.showFirstToken ?? (() => undefined)));
    },
    data.storage.store.started,
    () => adoptPersons(data.storage.store),
    deadlines.advance,
    folder.settle,
    snapshots.settle,
    erasure.resume,
    async () => {
      await fleet.join(spread.nodeKeys(), {
        followRootRun: spread.follow,
        mayLead: spread.mayLead,
        mayTendSnapshots: folder.mayTend,
      });
      const fault = nodes.fault();
      if (fault !== undefined) throw fault;
    },
    () =>
      lifecycle.start('the forwarding of the audit log', {
        start: forwarding.start,
        stop: () => forwarding.stop(all.grace()),
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
        start: () => record('service.started', { ...runDetails(all, options), host: nodes.host }),
        stop: () => record('service.stopped', {}),
      }),
    () => tellCertificate(all, options, record),
    () => startJobs(lifecycle, jobs, all.grace),
  ];
  let done = 0;
  return {
    run: async () => {
      for (let step = steps[done]; step !== undefined; step = steps[done]) {
        await step();
        done += 1;
      }
    },
    adminToken: () => adminToken,
  };
};
