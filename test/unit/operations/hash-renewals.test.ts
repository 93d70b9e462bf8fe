// The hash of an access_guid of an earlier version, which a use renews: while that cannot be
// written, a node tries each one once a minute, says once a minute that it failed, and counts.
import { expect, test } from 'vitest';
import { newId } from '../../../server/base/ids.ts';
import type { TdeApplication } from '../../../server/domain/tde.ts';
import { makeBearer } from '../../../server/operations/access/bearer.ts';
import { createMeter } from '../../../server/operations/data-path/meter.ts';
import { authenticateApplication } from '../../../server/operations/tde/authenticate-application.ts';
import { core } from '../../support/core-keys.ts';
import { instance } from '../../support/open-service.ts';
import { quietLog } from '../../support/quiet-log.ts';

type Given = Parameters<typeof authenticateApplication>[0];

test('while the database takes no change, each is tried once a minute, and one line a minute says so', async () => {
  let now = 0;
  let writes = 0;
  const lines: string[] = [];
  const clock = { now: () => now, monotonic: () => now };
  const meter = createMeter(clock);
  const application: TdeApplication = {
    ...{ id: newId(1), tenantId: newId(2), groupId: newId(3), name: 'erp', appId: 'erp', state: 'enabled' },
    ...{
      tokenLabel: 'erp',
      callers: { networks: [], certificates: [] },
      compatibility: [],
      createdAt: 5,
      integrity: 'ok',
    },
  };
  const authenticate = authenticateApplication({
    ...{ clock, meter },
    log: { ...quietLog, warn: (message: string) => void lines.push(message) },
    ring: {
      hashToken: (_: string, value: string) => `new ${value}`,
      formerHashes: (_: string, value: string) => [`former ${value}`],
    } as unknown as Given['ring'],
    directory: {
      application: (hash: string) =>
        hash.startsWith('former ') ? { application, accessGuidId: hash.slice(7) } : undefined,
      stopOf: () => null,
    } as unknown as Given['directory'],
    usage: { seen: () => Promise.resolve(), refused: () => undefined } as unknown as Given['usage'],
    store: {
      write: () => {
        writes += 1;
        return Promise.reject(new Error('the disk is full'));
      },
    } as unknown as Given['store'],
  });
  const guids = [makeBearer(core, 'access-guid'), makeBearer(core, 'access-guid')];
  const use = async (): Promise<void> => {
    for (const accessGuid of guids)
      await authenticate({ accessGuid, appId: 'erp', instance, requestId: 'r', peer: null });
    // What a use has begun is over before the next one.
    await new Promise(setImmediate);
  };
  for (let uses = 0; uses < 50; uses += 1) await use();
  expect([writes, meter.hashesNotRenewed(), lines.length]).toEqual([2, 2, 1]);
  now += 60_000;
  for (let uses = 0; uses < 50; uses += 1) await use();
  expect([writes, meter.hashesNotRenewed(), lines.length]).toEqual([4, 4, 2]);
});
