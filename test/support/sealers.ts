// Sealers of the audit log over one store, as the nodes of a database have them, each with a
// checkpoint next to its own root key.
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { openStore } from '../../server/adapters/store/store.ts';
import { createEvents } from '../../server/base/events.ts';
import { systemClock } from '../../server/base/time.ts';
import type { Unsound } from '../../server/domain/audit-finding.ts';
import type { Differences } from '../../server/domain/difference.ts';
import { type AuditSealer, createAuditSealer, type SealEvents } from '../../server/operations/audit/seal-audit-log.ts';
import type { NodeState } from '../../server/ports/node-state.ts';
import type { Store } from '../../server/ports/store.ts';

/** Differences for a finding whose values do not matter. */
export const differences: Differences = [
  { what: 'records', found: '1', foundIn: 'the database', expected: '2', expectedIn: 'a file' },
];

/** The node state of a gate that does not store its quarantine. */
export const noNodeState: Pick<NodeState, 'quarantine' | 'recordQuarantine' | 'clear'> = {
  quarantine: undefined,
  recordQuarantine: () => undefined,
  clear: () => undefined,
};

type SealPorts = Parameters<typeof createAuditSealer>[0];

export interface TestSealer {
  readonly sealer: AuditSealer;
  /** What is next to the root key. */
  anchor(): string | undefined;
  readonly found: readonly Unsound[];
}

export interface Sealers {
  readonly store: Store;
  readonly errors: readonly unknown[];
  /** The monotonic clock of every node advances by so many milliseconds. */
  pass(ms: number): void;
  /** `leads`: it creates the periodic checkpoints. */
  node(leads: boolean): TestSealer;
}

export const openSealers = async (path: string): Promise<Sealers> => {
  let now = 0;
  const clock = { ...systemClock, monotonic: () => now };
  const store = await openStore({
    path,
    clock,
    authenticateRow: (text) => createHmac('sha256', 'row key').update(text).digest('hex'),
    onFatal: (error) => {
      throw error;
    },
  });
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const published = Buffer.from(String(publicKey.export({ format: 'jwk' }).x), 'base64url');
  const errors: unknown[] = [];
  const silent = (): void => undefined;
  const ring = {
    auditPublicKey: () => published,
    refreshAuditKey: () => Promise.resolve(),
    followAuditKey: () => Promise.resolve(),
    auditKeys: () => [{ publicKey: published, until: null }],
    signAudit: (text: string) => sign(null, Buffer.from(text), privateKey),
  };
  const log = { debug: silent, info: silent, warn: silent, error: (...all: unknown[]) => errors.push(all) };
  return {
    store,
    errors,
    pass: (ms) => {
      now += ms;
    },
    node: (leads) => {
      let anchor: string | undefined;
      const found: Unsound[] = [];
      const root = {
        anchor: {
          read: () => anchor,
          place: () => 'root.key.checkpoint',
          write: (note: string) => {
            anchor = note;
          },
        },
      };
      const events = createEvents<SealEvents>();
      events.on('databaseChanged', (finding) => found.push(finding));
      const sealer = createAuditSealer({
        store,
        ring: ring as unknown as SealPorts['ring'],
        root: root as unknown as SealPorts['root'],
        clock,
        log: log as unknown as SealPorts['log'],
        perform: (work) => (leads ? work() : Promise.resolve(undefined)),
        events,
      });
      return { sealer, anchor: () => anchor, found };
    },
  };
};
