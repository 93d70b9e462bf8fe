// An erasure run of several nodes, in every order of its steps within small bounds
// (test/model/erasure.ts), and with each decision spoiled. SLOW=1 explores larger bounds.
import { describe, expect, test, vi } from 'vitest';
import * as rules from '../../server/domain/root-run.ts';
import { explore } from '../support/explore.ts';
import { type Bounds, createErasureModel } from './erasure.ts';

vi.setConfig({ testTimeout: 3_600_000 });

const isSlow = process.env.SLOW === '1';
const threeNodes = { nodes: 3, runs: 1 };

const explored: readonly (readonly [string, Bounds])[] = [
  ['two runs, whose duty moves', { ...threeNodes, runs: 2, takeovers: 1 }],
  ['crashes', { ...threeNodes, takeovers: 1, crashes: 1 }],
  ['removals', { ...threeNodes, takeovers: 1, removals: 1 }],
  ['a failover', { ...threeNodes, takeovers: 1, failovers: 1 }],
  ['a failover in two runs', { nodes: 2, runs: 2, takeovers: 1, failovers: 1 }],
];
const exploredLonger: readonly (readonly [string, Bounds])[] = [
  ['a failover, and a duty that moves back', { ...threeNodes, takeovers: 2, failovers: 1 }],
  ['a failover, and a removal', { ...threeNodes, takeovers: 1, failovers: 1, removals: 1 }],
  ['a failover, and a crash', { ...threeNodes, takeovers: 1, failovers: 1, crashes: 1 }],
  ['two failovers', { ...threeNodes, takeovers: 1, failovers: 2 }],
  ['a failover in two runs of three nodes', { ...threeNodes, runs: 2, takeovers: 1, failovers: 1 }],
  ['removals and crashes in two runs', { ...threeNodes, runs: 2, takeovers: 2, removals: 1, crashes: 1 }],
];

test.each(isSlow ? [...explored, ...exploredLonger] : explored)('no rule is broken by %s', (_, bounds) => {
  const found = explore(createErasureModel(rules, bounds));
  expect(found.counterexample).toBeUndefined();
  expect(found.complete).toBe(true);
  expect(found.states).toBeGreaterThan(1_000);
});

const unreadable = (place: 'database' | 'standby') =>
  expect.stringMatching(new RegExp(`^[ABC] does not have a root key under which the ${place} is sealed$`));
const unended = 'from here the run never comes to its end';
const defects: readonly (readonly [string, Partial<typeof rules>, Bounds, unknown])[] = [
  [
    'the old root key is overwritten without waiting for a standby',
    { awaitedCopies: () => new Set() },
    { ...threeNodes, takeovers: 0, failovers: 1 },
    unreadable('standby'),
  ],
  [
    'the database that shows its copies may not be the one in which everything was sealed',
    {},
    // The other nodes would prove for themselves that everything opens with the new one.
    { ...threeNodes, nodes: 1, takeovers: 0, failovers: 1, unproved: true },
    unreadable('database'),
  ],
  [
    'something is sealed before every node has the new root key',
    { hasNewRoot: () => true },
    { ...threeNodes, takeovers: 0 },
    unreadable('database'),
  ],
  [
    'a node counts by the number of its root key, without the proof',
    { hasNewRoot: (node, run) => rules.hasNewRoot(node, run, true) },
    { ...threeNodes, nodes: 2, takeovers: 1, failovers: 1, crashes: 1 },
    unreadable('database'),
  ],
  [
    'a run ends before every node has overwritten the old root key',
    { hasErasedOldRoot: () => true },
    { ...threeNodes, takeovers: 0 },
    expect.stringMatching(/^the run is over, and [ABC] still has the old root key$/),
  ],
  [
    'a run whose row is lost in a failover ends without the other nodes',
    {},
    { ...threeNodes, takeovers: 0, failovers: 1, withoutRow: true },
    expect.stringMatching(/^the run is over, and [ABC] still has the old root key$/),
  ],
  [
    'the row of an earlier run counts for this one',
    {},
    { ...threeNodes, nodes: 2, runs: 2, takeovers: 0, failovers: 1, anyRun: true },
    unreadable('database'),
  ],
  [
    'a node whose row a failover has changed tells nothing',
    { isTold: () => true },
    { ...threeNodes, takeovers: 0, failovers: 1 },
    unended,
  ],
  [
    'a run that has come to its end on one node is begun anew',
    { isLeftOver: () => false },
    { ...threeNodes, takeovers: 0, failovers: 1 },
    unended,
  ],
  [
    'a node makes the root key of a run that it began before it took the one of another node',
    { mayMakeRootKey: () => true },
    { ...threeNodes, nodes: 2, takeovers: 1, failovers: 1, crashes: 1 },
    unreadable('database'),
  ],
  [
    'a node leads although another one has a newer root key',
    { mayLeadRun: (run, self, others) => (run === undefined ? 'yes' : rules.mayLeadRun(run, self, others)) },
    { ...threeNodes, nodes: 2, takeovers: 1, failovers: 1 },
    unended,
  ],
];

describe('a counterexample is found when', () => {
  test.each(defects)('%s', (_, spoilt, bounds, rule) => {
    const { counterexample } = explore(createErasureModel({ ...rules, ...spoilt }, bounds));
    expect(counterexample).toMatchObject({ rule });
  });
});

test('a copy that was behind is waited for when it is no longer seen, and until it has stored everything', () => {
  const behind = rules.awaitedCopies(new Set(), [
    { name: 'one', isBehind: true },
    { name: 'two', isBehind: false },
  ]);
  expect([...behind]).toEqual(['one']);
  expect([...rules.awaitedCopies(behind, [])]).toEqual(['one']);
  // A slot stays until an operator drops it.
  expect([...rules.awaitedCopies(new Set(['slot one']), [])]).toEqual([]);
  expect([...rules.awaitedCopies(behind, [{ name: 'one', isBehind: false }])]).toEqual([]);
});
