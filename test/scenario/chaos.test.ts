// Attacks from outside, by callers and on the database, one after the other (support/attacks.ts),
// beside steady calls of a cloud, on the store of the run and on a PostgreSQL of its own: no call
// fails, and what an attack has opened is released. Each state is one in which the service could be
// stopped; it stops in the last one. Latency and memory: npm run bench -- --only chaos.
import { readdirSync, readlinkSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type AttackedSite, attacks, databaseAttacks, startAttackedSite } from '../support/attacks.ts';
import { until } from '../support/host.ts';
import { type SteadyLoad, startSteadyLoad } from '../support/steady-load.ts';

/** A machine that can do less does less: a call waits for a free connection. */
const pace = { perSecond: 1_800, connections: 32 } as const;
const sockets = ({ site }: AttackedSite): number =>
  readdirSync(`/proc/${site.server.child.pid}/fd`).filter((name) => {
    try {
      return readlinkSync(`/proc/${site.server.child.pid}/fd/${name}`).startsWith('socket:');
    } catch {
      return false;
    }
  }).length;

describe.each([
  { store: 'the store of the run', postgresql: false, made: attacks },
  { store: 'PostgreSQL', postgresql: true, made: { ...attacks, ...databaseAttacks } },
])('on $store', ({ postgresql, made }) => {
  let on: AttackedSite;
  let before: number;
  let load: SteadyLoad | undefined;
  beforeAll(async () => {
    on = await startAttackedSite({ postgresql });
    before = sockets(on);
  });
  afterEach(async () => {
    for (const end of on.ends.splice(0)) end();
    await load?.stop().catch(() => undefined);
    load = undefined;
  });
  afterAll(() => on.close());

  test.each(Object.entries(made))(
    'no call of the cloud fails, and what was opened is released: %s',
    async (name, attack) => {
      load = await startSteadyLoad(on.site.server, on.endpoint, pace);
      await attack(on);
      // Calls at its height and after it.
      for (let at = 0; at < 20; at += 1) expect((await on.endpoint.encrypt(Buffer.alloc(32))).status).toBe(200);
      for (const end of on.ends.splice(0)) end();
      const { answered, failures, refused, unanswered, seconds, p50Ms, p99Ms } = await load.stop();
      load = undefined;
      console.log(
        `${name}: ${answered} calls, ${(answered / seconds).toFixed(0)} a second, p50 ${p50Ms?.toFixed(1)} ms, p99 ${p99Ms?.toFixed(1)} ms`,
      );
      expect({ failures, refused, unanswered }).toEqual({ failures: [], refused: 0, unanswered: 0 });
      expect(answered).toBeGreaterThan(0);
      await until(`the end of ${name}`, async () => (sockets(on) <= before + 8 ? true : undefined));
    },
  );

  test('and the service stops in the last state', async () => {
    const { server, api } = on.site;
    // A disk that hung is asked again from time to time.
    await until('health', async () => ((await api.send('GET', '/health')).status === 200 ? true : undefined));
    expect(await server.stop()).toBe(0);
    expect(server.child.signalCode).toBeNull();
  });
});
