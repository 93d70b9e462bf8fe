// A run of the diagnostics with a listener: each check is reported at its end, not at the end of
// all; a listener that disconnects stops nothing.
import { expect, test } from 'vitest';
import { type CheckWatch, ok, runChecks } from '../../../server/base/diagnostic-checks.ts';
import type { DiagnosisEvent } from '../../../server/operations/index.ts';
import { administrator } from '../../support/open-service.ts';
import { sharedService } from '../../support/shared.ts';

test('the planned checks are reported first, then each result as it arrives', async () => {
  const reported: string[] = [];
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const watch: CheckWatch = {
    started: (checks) => reported.push(`started ${checks.map(({ id }) => id).join(' ')}`),
    ended: ({ id, state }) => {
      reported.push(`${id} ${state}`);
      // The second one continues only when the first has been reported.
      if (id === 'one') release();
    },
  };
  const check = (id: string, needs: readonly string[], run: () => Promise<ReturnType<typeof ok>>) => ({
    ...{ id, layer: 'layer', title: id, needs },
    run,
  });
  const results = await runChecks(
    [
      check('one', [], async () => ok('yes')),
      check('two', ['one'], async () => {
        await held;
        throw new Error('no');
      }),
      check('three', ['two'], async () => ok('never')),
    ],
    {},
    watch,
  );
  expect(reported).toEqual(['started one two three', 'one ok', 'two failed', 'three skipped']);
  expect(results.map(({ state }) => state)).toEqual(['ok', 'failed', 'skipped']);
});

const opened = sharedService();

const endpointOf = async (name: string): Promise<string> => {
  const { vaults, keys, endpoints } = opened.operations;
  const vault = await vaults.create(administrator, { name: `vault of ${name}` });
  const key = await keys.create(administrator, { name, vaultId: vault.id });
  return (await endpoints.create(administrator, { name, vaultId: vault.id, keyId: key.id })).id;
};

test('a followed run reports what a run finds, and is stored even if its reader leaves early', async () => {
  const { diagnostics } = opened.operations;
  const id = await endpointOf('followed');
  const request = { callerTime: null, cloud: {} };
  const events: DiagnosisEvent[] = [];
  for await (const event of await diagnostics.follow(administrator, id, request)) events.push(event);
  const [first] = events;
  const last = events.at(-1);
  if (first?.kind !== 'started' || last?.kind !== 'kept') throw new Error('it has no beginning or no end');
  const results = events.flatMap((event) => (event.kind === 'ended' ? [event.result] : []));
  expect(results).toEqual(last.diagnosis.results);
  expect(results.map((result) => result.id)).toEqual(first.checks.map((check) => check.id));
  expect(await diagnostics.get(administrator, id, last.diagnosis.id)).toEqual(last.diagnosis);

  for await (const event of await diagnostics.follow(administrator, id, request)) if (event.kind === 'started') break;
  // One run at a time: this one waits for the one without a listener.
  await diagnostics.run(administrator, id, request);
  expect((await diagnostics.list(administrator, id, {})).items).toHaveLength(3);
});

test('a missing or deleted endpoint is refused before anything is reported', async () => {
  const { diagnostics, endpoints } = opened.operations;
  const id = await endpointOf('gone');
  await endpoints.delete(administrator, id);
  const request = { callerTime: null, cloud: {} };
  await expect(diagnostics.follow(administrator, id, request)).rejects.toMatchObject({ code: 'not-found' });
  await expect(diagnostics.follow(administrator, 'none', request)).rejects.toMatchObject({ code: 'not-found' });
});

test('rules that are not in force yet are tried, and those in force are compared', async () => {
  const { endpoints } = opened.operations;
  const id = await endpointOf('ruled');
  const { settings } = await endpoints.get(administrator, id);
  const deny = { name: 'not from there', effect: 'deny', when: { account: ['999'] } } as const;
  await endpoints.changeSettings(administrator, id, { ...settings, rules: [deny] });
  const request = {
    kmsOperation: 'Decrypt',
    awsPrincipalArn: 'arn:aws:iam::999:role/a',
    kmsKeyArn: undefined,
    awsSourceVpc: undefined,
    awsSourceVpce: undefined,
    kmsViaService: undefined,
  };
  const denied = { effect: 'deny', rule: 'not from there' };
  expect(await endpoints.simulateRules(administrator, id, { requests: [request] })).toEqual([
    { ...denied, passed: [], current: denied },
  ]);
  expect(await endpoints.simulateRules(administrator, id, { rules: [], requests: [request] })).toEqual([
    { effect: 'allow', rule: null, passed: [], current: denied },
  ]);
  await expect(
    endpoints.simulateRules(administrator, id, { rules: [deny, deny], requests: [request] }),
  ).rejects.toMatchObject({ code: 'validation' });
  expect((await endpoints.get(administrator, id)).settings.rules).toEqual([deny]);
});

test('of an endpoint, three runs are under way or wait: the next one is refused, and there is a place when one has ended', async () => {
  const { diagnostics } = opened.operations;
  const id = await endpointOf('busy');
  const request = { callerTime: null, cloud: {} };
  const runs = [1, 2, 3].map(() => diagnostics.run(administrator, id, request));
  await expect(diagnostics.run(administrator, id, request)).rejects.toMatchObject({ code: 'rate-limited' });
  await Promise.all(runs);
  expect((await diagnostics.run(administrator, id, request)).endpointId).toBe(id);
});
