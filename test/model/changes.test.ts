// The change protocol of several nodes, in every order of its steps within small bounds
// (test/model/changes.ts). A model that finds nothing proves nothing: with each decision spoiled as
// it was, or might be, a counterexample must be found. SLOW=1 explores larger bounds.
import { describe, expect, test, vi } from 'vitest';
import * as protocol from '../../server/domain/change-protocol.ts';
import { explore } from '../support/explore.ts';
import { type Bounds, createChangeModel } from './changes.ts';

vi.setConfig({ testTimeout: 3_600_000 });

const { continuationOf, pendingOf, standingOf } = protocol;
const isSlow = process.env.SLOW === '1';

const threeNodes = { nodes: 3, contact: 1 };
const repeated: Bounds = { ...threeNodes, changes: 1, repeats: 1 };
const failedOver: Bounds = { ...threeNodes, changes: 2, failovers: 1 };
const repeatedAcross: Bounds = { nodes: 2, contact: 1, changes: 1, repeats: 1, failovers: 1 };
const crashed: Bounds = { nodes: 2, contact: 1, changes: 1, failovers: 1, crashes: 1 };
const late: Bounds = { nodes: 2, contact: 1, changes: 2, failovers: 1, late: true };

const explored: readonly (readonly [string, Bounds])[] = [
  ['changes, repeated at any node, while nodes are away and rows are pruned', { ...repeated, changes: 2, prunes: 1 }],
  ['a failover that loses changes', failedOver],
  ['a failover, and a repeat', repeatedAcross],
  ['removals, stops and starts', { ...repeated, removals: 1, stops: 1 }],
  ['crashes and starts', { ...repeated, crashes: 1 }],
  ['a failover, and a crash', crashed],
  ['late answers', { nodes: 2, contact: 2, changes: 1, repeats: 1, late: true }],
];
const exploredLonger: readonly (readonly [string, Bounds])[] = [
  ['changes, repeated at any node, for two ticks', { ...repeated, contact: 2, changes: 2, prunes: 2 }],
  ['a failover, and late answers', late],
  ['a failover, pruned rows and repeats', { ...failedOver, repeats: 1, prunes: 1 }],
  ['a failover, and a removal', { ...failedOver, removals: 1 }],
  ['a failover, and crashes', { ...crashed, changes: 2, crashes: 2 }],
  ['a failover, and a crash of one of three nodes', { ...failedOver, changes: 1, crashes: 1 }],
  ['a failover, a crash, a stop and a repeat', { ...crashed, stops: 1, repeats: 1 }],
  ['late answers of three nodes', { ...threeNodes, changes: 1, repeats: 1, late: true }],
  [
    'removals, stops, crashes and pruned rows',
    { ...repeated, contact: 2, removals: 1, stops: 1, crashes: 1, prunes: 1 },
  ],
];

test.each(isSlow ? [...explored, ...exploredLonger] : explored)('no rule is broken by %s', (_, bounds) => {
  const found = explore(createChangeModel(protocol, bounds));
  expect(found.counterexample).toBeUndefined();
  expect(found.complete).toBe(true);
  // The bounds reach what they are for.
  expect(found.states).toBeGreaterThan(400);
});

const uses = expect.stringMatching(/^[ABC] uses key 1 after it was acknowledged as disabled, and is not named$/);
const silentLoss = expect.stringMatching(
  / shows a change that a failover has lost, is in contact, and does not report the loss$/,
);
const forgotten = expect.stringMatching(
  /^[AB] starts with a database that lacks what it has acknowledged, and is not in quarantine$/,
);
const defects: readonly (readonly [string, Partial<typeof protocol>, Bounds, unknown])[] = [
  [
    'a request that changes nothing does not look up the change that it has found done',
    {},
    { ...repeatedAcross, unfound: true },
    expect.stringMatching(/^[AB] acknowledged a change that is lost, and no node will report it$/),
  ],
  [
    'changes are compared by their numbers, without their ids',
    {
      continuationOf: (applied, { head, next }) => {
        if (head.epoch <= applied.epoch) return 'nothing';
        return next === undefined || next.epoch > applied.epoch ? 'reload' : 'changes';
      },
      renewsContact: (head, _, { applied }) => applied.epoch >= head.epoch,
    },
    failedOver,
    silentLoss,
  ],
  [
    'no rows is read as no changes',
    {
      continuationOf: (applied, found) => {
        const how = continuationOf(applied, found);
        return how === 'reload' ? 'nothing' : how;
      },
      renewsContact: (_, __, { lost }) => !lost,
    },
    { ...repeated, prunes: 1 },
    uses,
  ],
  [
    'a request that has changed nothing waits for no node',
    {
      standingOf: (own, settled, view) => {
        const standing = standingOf(own, settled, view);
        return standing.state === 'shown' ? { ...standing, epoch: own.epoch } : standing;
      },
    },
    { ...repeated, unfound: true },
    uses,
  ],
  [
    'a removed node is not named',
    { pendingOf: (peers, ...rest) => pendingOf(peers, ...rest).filter(({ state }) => state !== 'removed') },
    { ...repeated, removals: 1 },
    uses,
  ],
  [
    'a silent node is not named',
    { pendingOf: (peers, ...rest) => pendingOf(peers, ...rest).filter(({ silentMs }) => silentMs === 0) },
    { ...repeated, contact: 2 },
    uses,
  ],
  [
    'a node is named for too short a time',
    { pendingForMs: (pending) => (protocol.pendingForMs(pending) ?? 0) - 1 },
    { ...repeated, contact: 2 },
    uses,
  ],
  [
    'a beat renews contact although the changes were not read',
    { renewsContact: (_, __, { lost }) => !lost },
    late,
    uses,
  ],
  [
    'a beat renews contact when the number is high enough',
    { renewsContact: (head, _, { applied, lost }) => !lost && applied.epoch >= head.epoch },
    late,
    silentLoss,
  ],
  [
    'an own change counts as made when another one has its number',
    { standingOf: (own, settled, view) => standingOf(own, settled, { ...view, idOf: () => own.history }) },
    failedOver,
    'A acknowledged a change that is lost, and no node will report it',
  ],
  [
    'a node that has lost track uses keys',
    { mayUseKeys: (_, contact) => protocol.mayUseKeys({ lost: false }, contact) },
    failedOver,
    'A uses keys although it has lost track',
  ],
  [
    'what a node has confirmed, and that it is in quarantine, ends with its process',
    {},
    { ...crashed, unread: 'quarantine and position' },
    forgotten,
  ],
  ['an acknowledgement leaves before the position is on the disk', {}, { ...crashed, unkept: true }, forgotten],
  [
    'a start looks whether the node is in quarantine, and not at its position',
    {},
    { ...crashed, unread: 'position' },
    forgotten,
  ],
  [
    'the database takes the number that a node tells, without comparing the id',
    {},
    { ...late, unchecked: true },
    'A uses key 2 after it was acknowledged as disabled, and is not named',
  ],
];

describe('a counterexample is found when', () => {
  test.each(defects)('%s', (_, spoilt, bounds, rule) => {
    const { counterexample } = explore(createChangeModel({ ...protocol, ...spoilt }, bounds));
    expect(counterexample).toMatchObject({ rule });
  });
});

test('a counterexample is the shortest list of steps that leads to it', () => {
  const spoilt: Partial<typeof protocol> = { pendingOf: () => [] };
  const { counterexample } = explore(createChangeModel({ ...protocol, ...spoilt }, repeated));
  expect(counterexample?.steps).toEqual([
    'A makes change 1: it disables key 1',
    'A hears of its own change',
    'A acknowledges the change to key 1',
  ]);
});
