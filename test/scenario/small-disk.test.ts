// A disk that fills up under each persistent operation: a small one of the test's own, with so many
// free pages. The operation is refused with a reason or succeeds, data are decrypted in the
// meantime, and with free space everything matches the answers.
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { faultOperations, openWorkload, type Workload } from '../support/fault-workload.ts';
import { builtServer } from '../support/killed-server.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.ts';
import { isLong } from '../support/tiers.ts';

const disk = mountSmallDisk('32m');
if (typeof disk === 'string') console.log(`skipped: ${disk}`);
const page = 4096;
/**
 * Free pages: none, and some, so that the disk is full in the middle of an operation. In the long
 * tier: each number up to a large one.
 */
const left = isLong ? Array.from({ length: 48 }, (_, pages) => pages) : [0, 3];

const small = disk as SmallDisk;
const place = {} as { server: ServerProcess };
let workload: Workload;
let refusals = 0;

const start = (port?: number): Promise<ServerProcess> =>
  startServerProcess({
    folder: small.folder,
    toml: '[erasure]\ngather_ms = 10\n[snapshots]\nrestore_second_person = false\n',
    program: [builtServer],
    ...(port === undefined ? {} : { port }),
  });
beforeAll(async () => {
  if (typeof disk === 'string') return;
  place.server = await start();
  workload = await openWorkload(place, place.server.adminToken, { seed: 29 });
});
afterAll(async () => {
  if (typeof disk === 'string') return;
  small.free();
  await place.server?.stop('SIGKILL');
  small.end();
});

test.skipIf(typeof disk === 'string').each(faultOperations)(
  '%s on a disk that fills up is refused with a reason or done, and possible again when there is room',
  async (operation) => {
    for (const pages of left) {
      const work = await workload.prepare(operation);
      await workload.settle();
      small.fill(pages * page);
      const outcome = await work().then(
        () => 'done',
        (failure: unknown) => String(failure),
      );
      if (outcome !== 'done') {
        refusals += 1;
        expect(outcome, `${pages} pages left`).toMatch(/full|room|space|ENOSPC|is not imported again/i);
      }
      await workload.serve();
      expect(place.server.child.exitCode).toBeNull();
      small.free();
      await workload.change();
      // A turn that failed is tried again half a minute later, or at the next start.
      if ((await workload.settle()) === 'failed') {
        const { port } = place.server;
        expect(await place.server.stop()).toBe(0);
        place.server = await start(port);
      }
      expect(await workload.check(false)).toEqual([]);
    }
  },
);

test.skipIf(typeof disk === 'string')(
  'a service that is stopped on a full disk says what it could not record, and starts again on everything',
  async () => {
    expect(refusals).toBeGreaterThan(0);
    await workload.settle();
    small.fill();
    // The log of the database has room of its own for a while.
    for (let changes = 0; changes < 2000; changes += 1) {
      const made = await workload.change().then(
        () => true,
        () => false,
      );
      if (!made) break;
    }
    const { port, child } = place.server;
    const closed = once(child, 'close');
    expect(await place.server.stop()).toBe(5);
    await closed;
    expect(place.server.log()).toMatch(/stopped, but the store did not take the last records \(the disk is full/);
    small.free();
    place.server = await start(port);
    expect(await workload.check(true)).toEqual([]);
  },
);
