// Every command that DKE offers (test/support/offered-commands.ts) is run as a process beside a
// real service, with what its text leaves to the reader: it does its work, or is refused as its row
// says.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runOffered } from '../support/command-runs.ts';
import { type CommandSite, offeredCatalogue, openCommandSite } from '../support/command-site.ts';

const catalogue = (await offeredCatalogue()).toSorted(([one], [other]) => (one < other ? -1 : 1));
let site: CommandSite;
beforeAll(async () => {
  site = await openCommandSite();
});
afterAll(() => site?.remove());

let done = 0;
let refused = 0;
test.each(catalogue)('%s', async (_, offered) => {
  const { args, fault, why } = await runOffered(site.world, offered);
  expect(fault, args.join(' ')).toBeUndefined();
  done += 1;
  if (why !== undefined) refused += 1;
});

test('all of them were run', () => {
  console.info(`${done} of ${catalogue.length} commands were run; ${refused} of them were refused, as their rows say`);
  expect(done).toBe(catalogue.length);
});
