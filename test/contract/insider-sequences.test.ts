// Insiders over time: people of mixed roles, honest ones and others, act in one tenant at random,
// with every credential that they have come by: tokens that they created, invitations that they
// received, sessions of users whose password they have reset. After each step the stored rows are
// compared with those before it (insider-facts.ts): nothing may have been created or ended beyond
// the model (insider-model.ts). Its size: test/support/tiers.ts.

import { test } from 'vitest';
import { beginPlay } from '../support/insider-people.ts';
import fc from '../support/property.ts';
import { sharedApi, sharedService } from '../support/shared.ts';
import { withStored } from '../support/test-store.ts';
import { sizeOf } from '../support/tiers.ts';

const toml = '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n[people]\nsecond_factor = "optional"\n';
const length = 250;
const sequences = Number(process.env.DKE_TEST_SEQUENCES ?? sizeOf('insider sequences'));

const opened = sharedService({ toml });
const api = sharedApi(opened);

test('no sequence of steps gains or ends more than the model allows', { timeout: 1_200_000 }, async () => {
  // Small numbers are not likelier than others: they would be the same few people and requests.
  const any = fc.noBias(fc.nat());
  const step = fc.record({ who: any, what: any, seeds: fc.array(any, { minLength: 16, maxLength: 16 }) });
  await withStored(opened.folder, (stored) =>
    fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: length, maxLength: length, size: 'max' }), async (steps) => {
        const play = await beginPlay(opened, stored, api.base);
        for (const each of steps) await play.step(each);
      }),
      // Its message names who did what; a shorter sequence would be another world.
      { numRuns: sequences, endOnFailure: true },
    ),
  );
});
