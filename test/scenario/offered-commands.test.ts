// Every command that DKE offers (test/support/offered-commands.ts) is run as a process beside a
// real service, with what its text leaves to the reader: it does its work, or is refused as its row
// says.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { argumentsOf, endOf, rowOf } from '../support/command-runs.ts';
import { type CommandSite, offeredCatalogue, openCommandSite } from '../support/command-site.ts';

const catalogue = (await offeredCatalogue()).toSorted(([one], [other]) => (one < other ? -1 : 1));
let site: CommandSite;
beforeAll(async () => {
  site = await openCommandSite();
});
afterAll(() => site?.remove());

let done = 0;
test.each(catalogue)('%s', async (_, offered) => {
  const { until, alone } = rowOf(offered);
  const args = await argumentsOf(site.world, offered);
  const [code, says] = until === undefined ? endOf(rowOf(offered), args) : [0, until];
  const ran = alone === true || until !== undefined ? await site.world.alone(args, until) : await site.world.dke(args);
  expect([ran.code, ran.code === code ? '' : (ran.stderr || ran.stdout).slice(0, 300)], args.join(' ')).toEqual([
    code,
    '',
  ]);
  expect(ran.stderr + ran.stdout).toMatch(says);
  expect(ran.stderr).not.toMatch(/^\s+at |unknown option|too many arguments/m);
  done += 1;
});

test('all of them were run', () => {
  console.info(`${done} of ${catalogue.length} commands were run`);
  expect(done).toBe(catalogue.length);
});
