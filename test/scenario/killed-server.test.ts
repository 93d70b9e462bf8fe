// A server that is killed at any moment of its work: acknowledged changes are kept, destroyed keys
// stay destroyed, and nothing is half done. A few kills here (DKE_KILLS); npm run faults does
// hundreds.
import { expect, test } from 'vitest';
import { killServer } from '../support/killed-server.ts';
import { isLong, sizeOf } from '../support/tiers.ts';

const kills = Number(process.env.DKE_KILLS ?? sizeOf('kills of a server'));
const seed = Number(process.env.DKE_SEED ?? (isLong ? Date.now() % 1_000_000 : 1));

test.each([
  ['while keys are made, rotated, switched, deleted, imported again and destroyed', false],
  ['while the root key and the keys of tenants are rotated under load', true],
])('killed %s, it loses nothing that it acknowledged', async (_, rotations) => {
  const { findings, acknowledged } = await killServer({ kills, seed, rotations });
  expect(findings, `DKE_SEED=${seed}`).toEqual([]);
  expect(Object.values(acknowledged).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0);
});
