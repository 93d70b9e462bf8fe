// The log of the running service on a separate disk that fills up: the service continues, reports
// it in health and notifications, and writes what waited as soon as there is room. SIGHUP opens the
// file again by its name.
import { existsSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWorkload } from '../support/fault-workload.ts';
import { until } from '../support/host.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.ts';

const disk = mountSmallDisk('2m');
if (typeof disk === 'string') console.log(`skipped: ${disk}`);
const small = disk as SmallDisk;
const path = typeof disk === 'string' ? '' : join(disk.folder, 'dke.log');
const place = {} as { server: ServerProcess };
beforeAll(async () => {
  if (typeof disk === 'string') return;
  place.server = await startServerProcess({
    toml: `[log]\nlevel = "debug"\ndestination = "${path}"\n[snapshots]\nrestore_second_person = false\n`,
  });
});
afterAll(async () => {
  await place.server?.remove();
  if (typeof disk !== 'string') small.end();
});

/** A metric without labels. */
const metric = async (name: string): Promise<number> => {
  const { Agent, request } = await import('undici');
  const dispatcher = new Agent({ connect: { ca: readFileSync(place.server.caFile) } });
  try {
    const { body } = await request(`${place.server.url}/metrics`, { dispatcher });
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await body.text())?.[1]);
  } finally {
    await dispatcher.close();
  }
};
const countOf = (text: string): number => readFileSync(path, 'utf8').split(text).length - 1;
const again = 'the certificate was reloaded';

test.skipIf(typeof disk === 'string')('a full disk under the log is reported, and ends nothing', async () => {
  const workload = await openWorkload(place, place.server.adminToken, { seed: 7 });
  place.server.child.kill('SIGHUP');
  await until('a line', async () => (countOf(again) === 1 ? true : undefined));
  small.fill();
  // The last page of the file has room for a few lines.
  await until('a failure', async () => {
    place.server.child.kill('SIGHUP');
    return (await metric('dke_log_failing')) === 1 ? true : undefined;
  });
  const written = countOf(again);
  // Keys are used and changes are made in the meantime.
  await workload.serve();
  await workload.change();
  expect(place.server.child.exitCode).toBeNull();
  place.server.child.kill('SIGHUP');
  expect(countOf(again)).toBe(written);
  small.free();
  await until('the end of the failure', async () => ((await metric('dke_log_failing')) === 0 ? true : undefined));
  await until('every line', async () =>
    countOf(again) > written && countOf('could not be written') === 1 ? true : undefined,
  );
  expect(await metric('dke_log_lost_lines_total')).toBe(0);
});

test.skipIf(typeof disk === 'string')('SIGHUP opens the log again after it was moved away', async () => {
  renameSync(path, `${path}.moved`);
  place.server.child.kill('SIGHUP');
  await until('a new file', async () => (existsSync(path) && countOf(again) > 0 ? true : undefined));
  expect(await place.server.stop()).toBe(0);
  expect(countOf('"msg":"stopped"')).toBe(1);
});
