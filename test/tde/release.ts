// The tests of one profile: every scenario on every token, its trace against the golden one, and
// what no file may hold afterwards.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { presentTokens } from '../support/token.ts';
import {
  expectedOfOurs,
  goldenPath,
  goldenText,
  readGolden,
  traceDifferences,
  tracesUnder,
  writeGolden,
} from './golden.ts';
import { type ProfileName, readProfile } from './profile.ts';
import { type Scenario, type Stage, scenarios, setStage, walletPassword } from './scenarios.ts';
import { percentiles } from './timing.ts';
import type { TracedCall } from './trace.ts';
import { canary, filesHolding, pin, startWorld, type World } from './world.ts';

const writing = process.env.DKE_WRITE_GOLDEN === '1';

export const describeRelease = (name: ProfileName): void => {
  const profile = readProfile(name);
  const fitting = Object.entries<Scenario>(scenarios)
    .map(([scenario, row]) => ({ scenario, ...row }))
    .filter(({ containers = false }) => !containers || profile.containers.value);

  describe.each(presentTokens)(`a simulated database, ${profile.title}, on %s`, (token) => {
    let world: World;
    const calls: TracedCall[] = [];
    beforeAll(async () => {
      world = await startWorld[token]();
    });
    afterAll(async () => {
      console.log(`${profile.name} on ${token}, per call:\n${percentiles(calls)}`);
      await world.end();
    });

    test.each(fitting)('$scenario: a database $title', async ({ scenario, run }) => {
      const stage: Stage = await setStage(world, profile);
      try {
        await run(stage);
        const traces = tracesUnder(stage.traces());
        for (const each of traces.values()) calls.push(...each);
        const text = goldenText(traces);
        const path = goldenPath(name, scenario);
        if (writing && token === 'SoftHSM2') writeGolden(path, text);
        const golden = readGolden(path);
        if (token === 'SoftHSM2') expect(text).toBe(golden);
        else {
          const { text: expected, met } = expectedOfOurs(scenario, golden, text);
          expect(text).toBe(expected);
          expect(traceDifferences.filter((each) => each.scenario === scenario && !met.has(each))).toEqual([]);
        }
      } finally {
        await stage.end();
      }
    });

    test('no file of databases, traces, tokens or of the service holds a row, the PIN or a password of a wallet', () => {
      // What is searched for is found where it is.
      expect(filesHolding(import.meta.dirname, canary, pin, walletPassword).length).toBeGreaterThan(0);
      expect(filesHolding(world.folder, canary, pin, walletPassword)).toEqual([]);
    });
  });
};
