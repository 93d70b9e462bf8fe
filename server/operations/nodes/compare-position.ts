// What the node's own state (ports/node-state.ts) says about the database at the start: a service
// that ended in quarantine starts in it, and one whose database has gone back while it was down
// finds that, too. It is healthy only where the database has everything that was recorded.

import type { AuditFinding } from '../../domain/audit-finding.ts';
import { lostDifferences, type StorePosition } from '../../domain/change-protocol.ts';
import { type Difference, differencesOf } from '../../domain/difference.ts';
import type { NodeState } from '../../ports/node-state.ts';
import type { Ports } from '../../ports/ports.ts';
import { rootHashOf, rootOf } from '../shared/tree-of-log.ts';
import { silentAfterMs } from './acknowledgement.ts';

type ComparePorts = Pick<Ports, 'store' | 'root'>;

/** `place`: where the position was kept. */
const comparePosition = async (
  { store: { read, link } }: ComparePorts,
  { last, records, root, rows }: Partial<StorePosition>,
  place: string,
): Promise<readonly Difference[]> => {
  const found: Difference[] = [];
  const size = await read.audit.size();
  const differs = (what: string, has: string, foundIn: string, expected: string): void => {
    found.push({ what, found: has, foundIn, expected, expectedIn: place });
  };
  if (records !== undefined && size < records)
    differs('number of audit records', String(size), 'its audit log', `at least ${records}`);
  else if (records !== undefined && root !== undefined) {
    const hash = (await rootOf(read.audit, records))?.toString('hex') ?? 'not complete';
    if (hash !== root) differs(rootHashOf(records), hash, 'its audit log', root);
  }
  const version = rows === undefined ? undefined : (await read.whole.rowSet())?.version;
  if (rows !== undefined && rows > (version ?? 0))
    differs('version of the policy rows', String(version ?? 'none'), 'its table row_set', `at least ${rows}`);
  const changes = last === undefined ? undefined : await link?.changesSince(last, Number.MAX_SAFE_INTEGER);
  if (last !== undefined && changes !== undefined && typeof changes === 'object' && 'lost' in changes)
    found.push(...lostDifferences(changes.lost, last, place));
  return found;
};

/**
 * Another node serves: its changes reached this database until a moment ago, so no older copy was
 * put back.
 */
const anotherServes = async ({ link }: ComparePorts['store'], selfId: string): Promise<boolean> =>
  ((await link?.nodes()) ?? []).some(
    ({ id, state, silentMs }) => id !== selfId && state === 'active' && silentMs < silentAfterMs,
  );

/** `finding`: of the comparison with the checkpoint, where more may be known. */
export const compareWithState = async (
  ports: ComparePorts,
  state: Pick<NodeState, 'position' | 'positionPlace' | 'quarantine' | 'rootRestoredAt' | 'clear'>,
  { finding, selfId }: { readonly finding: AuditFinding; readonly selfId: string },
): Promise<AuditFinding> => {
  const { position, quarantine, rootRestoredAt } = state;
  // The record of this quarantine knows what was found first, and since when.
  if (finding.state !== 'intact') return quarantine?.finding ?? finding;
  const recorded = quarantine?.finding;
  const behind = [
    ...(position === undefined ? [] : await comparePosition(ports, position, state.positionPlace())),
    ...(recorded?.atLeast === undefined
      ? []
      : await comparePosition(ports, recorded.atLeast, 'the record of the quarantine')),
  ];
  const differences = differencesOf(behind);
  if (differences !== undefined) {
    // Where nothing is missing, what is there was rewritten.
    const isRewritten = position !== undefined && behind.every(({ what }) => what === rootHashOf(position.records));
    const rewritten = async () =>
      ({ state: 'changed', size: await ports.store.read.audit.size(), differences }) as const;
    return recorded ?? (isRewritten ? rewritten() : { state: 'lost-changes', differences });
  }
  if (rootRestoredAt !== undefined && ports.root.anchor.read() === undefined) {
    if (!(await anotherServes(ports.store, selfId))) {
      const size = await ports.store.read.audit.size();
      const place = ports.root.anchor.place();
      return {
        ...{ state: 'restored', size, at: null },
        differences: [
          {
            ...{ what: 'newest audit record', found: String(size), foundIn: 'its audit log', expectedIn: place },
            expected: `not known: the root key was restored at ${rootRestoredAt}, and there is no checkpoint`,
          },
        ],
      };
    }
  }
  // What was recorded holds in this database: the owner has put the right one back.
  if (quarantine !== undefined || rootRestoredAt !== undefined) state.clear();
  return finding;
};
