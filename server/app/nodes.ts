// This node among the nodes of its service, and whether the database is the one that it confirmed changes in.
//
// What follows from news of other nodes is built later than the fleet that brings them: each part takes its place in `reactions`.

import { StartError } from '../base/start-error.ts';
import { type AuditSealer, createAuditSealer, type Unsound } from '../operations/audit/seal-audit-log.ts';
import { createFleet } from '../operations/nodes/fleet.ts';
import type { ErasureScheduler } from '../operations/root/run-erasure.ts';
import type { RootSpread } from '../operations/root/spread-root.ts';
import { createMissingRecords } from '../operations/service/missing-records.ts';
import { createQuarantine, type QuarantineGate } from '../operations/service/quarantine.ts';
import type { SnapshotFolder } from '../operations/snapshots/folder.ts';
import type { CryptoCore } from '../ports/crypto-core.ts';
import type { AuditSinkSource } from '../ports/log-sink.ts';
import type { Ports } from '../ports/ports.ts';
import { copiedFault, type Storage } from './storage.ts';

export interface Reactions {
  erasure?: ErasureScheduler;
  spread?: RootSpread;
  folder?: SnapshotFolder;
  /** Changes that were confirmed are missing, or records are not the ones that were signed. */
  enterQuarantine?: (found: Unsound) => void;
  /** This node may not join, or has to leave. */
  fault?: StartError;
}

export interface Nodes {
  readonly fleet: ReturnType<typeof createFleet>;
  readonly sealer: AuditSealer;
  readonly quarantine: QuarantineGate;
  readonly reactions: Reactions;
}

const removedFault = (): StartError =>
  new StartError(
    'store',
    'this node was removed: to join again, copy the root key file of a node that runs, and delete the file node in the data directory',
  );

export const createNodes = async (
  { ring, root, clock, log, core }: Pick<Ports, 'ring' | 'root' | 'clock' | 'log'> & { readonly core: CryptoCore },
  { store, node, databasePath }: Storage,
  options: {
    readonly name: string;
    readonly version: string;
    readonly postgresql: { readonly database: string; readonly host: string; readonly contactMs: number } | undefined;
    readonly acceptDatabase: boolean;
    /** What the sinks of the audit log still have. */
    readonly sources: readonly AuditSinkSource[];
    readonly onFatal: (error: StartError) => void;
  },
): Promise<Nodes> => {
  const { name, version, postgresql, acceptDatabase, onFatal } = options;
  const reactions: Reactions = {};
  const fleet = createFleet(
    { store, ring, clock, log },
    { id: node.id, name, version, contactMs: postgresql?.contactMs ?? 0, directory: node.directory },
    {
      removed: () => {
        reactions.fault = removedFault();
        onFatal(reactions.fault);
      },
      copied: () => {
        reactions.fault = copiedFault(node.path);
        onFatal(reactions.fault);
      },
      lost: () => reactions.enterQuarantine?.({ state: 'lost-changes' }),
      destroyed: () => reactions.erasure?.schedule(),
      rootRunChanged: (rootRun, own) => reactions.spread?.follow(rootRun, own) ?? Promise.resolve(),
      mayTendSnapshots: () => reactions.folder?.mayTend() ?? Promise.resolve(true),
      mayLead: (rootRun, others) => reactions.spread?.mayLead(rootRun, others) ?? Promise.resolve(true),
      took: (duty) => {
        if (duty === 'erasure')
          reactions.erasure
            ?.resume()
            .catch((error: unknown) => log.error('the erasure run could not be resumed', { error }));
      },
    },
  );
  const fenced = fleet.duties.fence(store);
  const sealer = createAuditSealer({
    store: fenced,
    ring,
    root,
    clock,
    log,
    perform: (work) => fleet.perform('audit', work),
    onChanged: (found) => reactions.enterQuarantine?.(found),
  });
  const finding = await sealer.inspect();
  if (finding.state !== 'sound' && acceptDatabase) await sealer.accept(finding);
  const quarantine = createQuarantine(fenced, sealer, {
    finding: acceptDatabase ? { state: 'sound' } : finding,
    place: postgresql === undefined ? databasePath : `${postgresql.database} on ${postgresql.host}`,
    core,
    log,
    missing: createMissingRecords({ store, ring }, options.sources),
  });
  return { fleet, sealer, quarantine, reactions };
};
