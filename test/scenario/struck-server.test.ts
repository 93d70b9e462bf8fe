// A server that is struck in a single system call of an operation: killed at a write, a sync or a rename, told that the disk is full
// or that it failed. A few calls here; npm run faults strikes each.
import { expect, test } from 'vitest';
import { strikeServer, whyNoStrikes } from '../support/struck-server.ts';

const reason = whyNoStrikes();
if (reason !== undefined) console.log(`skipped: ${reason}`);

const few = { every: false, most: 2, seed: 7 } as const;

test.skipIf(reason !== undefined).each([
  [
    'killed while a key is destroyed and its erasure turn runs',
    { operations: ['destroy'], calls: ['pwrite64', 'fsync'] },
  ],
  ['told that the disk is full, refuses and serves', { operations: ['create'], calls: ['pwrite64'], error: 'ENOSPC' }],
  ['told that a sync failed, stops, and starts again', { operations: ['create'], calls: ['fsync'], error: 'EIO' }],
] as const)(
  '%s, nothing acknowledged is lost and nothing is half done',
  async (_, what) => {
    const { findings, strikes } = await strikeServer({ ...few, ...what });
    expect(findings).toEqual([]);
    expect(strikes).toBeGreaterThan(0);
  },
  240_000,
);
