// An application whose host name changes with every call: the stored instances, and the audit log.
import { expect, test } from 'vitest';
import { administrator, instance, registerCaller } from '../../support/open-service.ts';
import { restart, sharedService } from '../../support/shared.ts';

const limit = 10;
const opened = sharedService({
  toml: `[limits]\ninstances_per_application = ${limit}\n[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n`,
});

test('a new instance replaces the one that was used longest ago, and the audit log counts instead of listing them', async () => {
  const { caller, accessGuid } = await registerCaller(opened, 'unlimited');
  const other = await registerCaller(opened, 'neighbour', caller.application.groupId);
  const { id } = caller.application;
  const call = (host: string) =>
    opened.operations.tde.authenticate({
      ...{ accessGuid, appId: caller.appId, instance: { ...instance, host }, requestId: 'call', peer: null },
    });
  const calls = 120;
  for (let n = 1; n <= calls; n += 1) expect((await call(`pod-${n}`)).application.id).toBe(id);
  const kept = await opened.operations.applications.instances(administrator, id);
  expect(kept.map(({ host }) => host)).toHaveLength(limit);
  expect(kept.map(({ host }) => host)).toContain(`pod-${calls}`);
  expect(kept.map(({ host }) => host)).not.toContain('pod-1');
  expect(await opened.operations.applications.instances(administrator, other.caller.application.id)).toHaveLength(1);

  // One that was replaced is served, too.
  await call('pod-1');
  expect((await opened.operations.applications.instances(administrator, id)).map(({ host }) => host)).toContain(
    'pod-1',
  );

  await restart(opened);
  const query = { kind: 'instance.first-used', subjectId: id, order: 'oldest', limit: 500 } as const;
  const { items } = await opened.operations.audit.list(administrator, query);
  // 50 in an hour, the first of those that are counted, their summary, and that of the one that
  // came again.
  expect(items.length).toBeLessThanOrEqual(53);
  const counted = items.reduce((sum, { details }) => sum + Number(details.count ?? 0), 0);
  // The caller's first instance, and the one that came again.
  expect(items.filter(({ details }) => details.count === undefined).length + counted).toBeGreaterThanOrEqual(calls + 1);
  const replaced = items.reduce((sum, { details }) => sum + Number(details.replaced ?? 0), 0);
  expect(replaced).toBe(calls + 1 + 1 - limit);
});
