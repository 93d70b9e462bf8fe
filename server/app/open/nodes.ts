// This node among the nodes of its service, and whether the database is the one that it confirmed
// changes in.

import { readHostFacts } from '../../adapters/host/host-facts.ts';
import { StartError } from '../../base/start-error.ts';
import type { AuditFinding } from '../../domain/audit-finding.ts';
import { isSameHost } from '../../domain/host.ts';
import { type AuditSealer, createAuditSealer } from '../../operations/audit/seal-audit-log.ts';
import { compareWithState } from '../../operations/nodes/compare-position.ts';
import { createFleet } from '../../operations/nodes/fleet.ts';
import { createMissingRecords } from '../../operations/service/missing-records.ts';
import { createQuarantine, type QuarantineGate } from '../../operations/service/quarantine.ts';
import { decidingRecord } from '../../operations/shared/tree-of-log.ts';
import type { CryptoCore } from '../../ports/crypto-core.ts';
import type { AuditSinkSource } from '../../ports/log-sink.ts';
import type { Ports } from '../../ports/ports.ts';
import type { ServiceEvents } from './events.ts';
import { copiedFault, type Storage } from './storage.ts';

export interface Nodes {
  readonly fleet: ReturnType<typeof createFleet>;
  readonly sealer: AuditSealer;
  readonly quarantine: QuarantineGate;
  readonly state: Storage['state'];
  /** Facts of this host. */
  readonly host: string;
  /** Why this node may not join, or has to leave. */
  fault(): StartError | undefined;
}

const removedFault = (): StartError =>
  new StartError(
    'store',
    'this node was removed: to join again, copy the root key file of a node that runs, and delete the file node in the data directory',
  );

const lostFault = (): StartError =>
  new StartError(
    'store',
    'this node is not in the database, which is in a state from before it joined (docs/postgresql.md, After a failover that has lost changes): start it again, and it joins again',
  );

const schemaFault = (found: string, own: string): StartError =>
  new StartError(
    'store',
    `the database has the schema ${found}, and this version of the service needs ${own}: another version was started on it; all nodes of one ` +
      'database run the same version (docs/upgrade.md)',
  );

/**
 * Nodes of one database notice each other (NodeLink.claim); with the embedded one, the log tells
 * where it was used last.
 */
const compareHost = async ({ link, read }: Storage['store'], host: string): Promise<AuditFinding> => {
  if (link !== undefined) return { state: 'intact' };
  const last = await decidingRecord(read.audit, { kind: 'service.started', order: 'newest' });
  const before = last === null ? 'a record that was changed from outside' : last?.details.host;
  if (typeof before !== 'string' || (last !== null && isSameHost(before, host))) return { state: 'intact' };
  const expectedIn = `record ${last?.sequence ?? 'service.started'} of its audit log`;
  return {
    ...{ state: 'copied', size: await read.audit.size() },
    differences: [{ what: 'host', found: host, foundIn: 'this host', expected: before, expectedIn }],
  };
};

export const createNodes = async (
  {
    ring,
    root,
    clock,
    log,
    core,
    events,
  }: Pick<Ports, 'ring' | 'root' | 'clock' | 'log'> & {
    readonly core: CryptoCore;
    readonly events: ServiceEvents;
  },
  { store, node, state, databasePath }: Storage,
  options: {
    readonly name: string;
    readonly version: string;
    readonly postgresql: { readonly database: string; readonly host: string; readonly contactMs: number } | undefined;
    readonly acceptDatabase: boolean;
    /** See ServiceOptions. */
    readonly hostFacts?: (() => string) | undefined;
    /** What the sinks of the audit log still have. */
    readonly sources: readonly AuditSinkSource[];
    readonly onFatal: (error: StartError) => void;
  },
): Promise<Nodes> => {
  const { name, version, postgresql, acceptDatabase, onFatal } = options;
  let fault: StartError | undefined;
  const leave = (why: StartError): void => {
    fault = why;
    onFatal(why);
  };
  events.on('nodeRemoved', () => leave(removedFault()));
  events.on('nodeLost', () => leave(lostFault()));
  events.on('schemaChanged', (schema) => leave(schemaFault(schema, store.schema)));
  events.on('nodeCopied', () => leave(copiedFault(node.path)));
  const fleet = createFleet(
    { store, ring, clock, log, state, events },
    { id: node.id, start: { name, version, contactMs: postgresql?.contactMs ?? 0, directory: node.directory } },
  );
  const fenced = fleet.duties.fence(store);
  const sealer = createAuditSealer({
    store: fenced,
    ring,
    root,
    clock,
    log,
    perform: (work) => fleet.perform('audit', work),
    events,
  });
  const host = (options.hostFacts ?? readHostFacts)();
  const compared = await compareWithState({ store: fenced, root }, state, {
    finding: await sealer.inspect(),
    selfId: node.id,
  });
  const finding = compared.state === 'intact' ? await compareHost(store, host) : compared;
  if (acceptDatabase) {
    if (finding.state !== 'intact') await sealer.accept(finding);
    state.clear();
  }
  const quarantine = createQuarantine(fenced, sealer, {
    finding: acceptDatabase ? { state: 'intact' } : finding,
    state,
    place: postgresql === undefined ? databasePath : `${postgresql.database} on ${postgresql.host}`,
    core,
    clock,
    log,
    missing: createMissingRecords({ store, ring }, options.sources),
  });
  return { fleet, sealer, quarantine, state, host, fault: () => fault };
};
