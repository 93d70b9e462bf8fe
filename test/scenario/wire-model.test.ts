// The connection between library and agent as a model (test/model/wire.pml), explored exhaustively
// by SPIN: every interleaving of two threads and one agent. A model that finds nothing proves
// nothing, so it must also find each known defect.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { inLongTier } from '../support/tiers.ts';

const model = resolve(import.meta.dirname, '../model/wire.pml');
const folder = mkdtempSync(join(tmpdir(), 'dke-model-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const full = inLongTier('scenario/wire-model: full bounds');

/** SPIN's result for a variant of the model, with one defect or none. */
const explore = (...names: readonly string[]): string => {
  const run = (command: string, ...words: string[]): string =>
    execFileSync(command, words, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  run('spin', '-a', ...names.map((name) => `-D${name}`), model);
  // What takes seconds to explore is not worth being optimized.
  run('cc', '-w', full ? '-O2' : '-O0', '-DSAFETY', '-DCOLLAPSE', '-o', 'pan', 'pan.c');
  return run('./pan', '-m100000', '-w24');
};

test.each([
  ['with the lane, small', ['SMALL']],
  ...(full
    ? ([
        ['with the lane', []],
        ['with messages ahead of calls', ['HELD']],
      ] as const)
    : []),
] as const)('no message is broken, no answer goes astray, and no thread waits forever, %s', (_, names) => {
  const said = explore(...names);
  expect(said).toMatch(/errors: 0$/m);
  expect(said).not.toMatch(/Search not completed|max search depth too small/);
});

test.each([
  ['a call leads while its message is being sent', ['LEAD_WHILE_SENT', 'HELD'], 'invalid end state'],
  ['the bell is silent for output that waits (small)', ['WAIT_UNSEEN', 'CALLS=2', 'SMALL'], 'invalid end state'],
  ...(full
    ? ([
        [
          'the lane is used while output waits for the socket',
          ['LANE_BESIDE_OUTPUT'],
          'assertion violated (reading==0)',
        ],
        ['a sender whose socket is full does not read', ['SEND_UNREAD', 'HELD'], 'invalid end state'],
        ['the leader sleeps although the socket holds more', ['SLEEP_UNDRAINED'], 'invalid end state'],
        ['the bell is silent for output that waits', ['WAIT_UNSEEN', 'CALLS=2'], 'invalid end state'],
      ] as const)
    : []),
] as const)('it finds the defect when %s', (_, names, finding) => {
  expect(explore(...names)).toContain(finding);
});
