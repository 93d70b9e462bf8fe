// What is exchanged after a time is reported in time, by a whole service: credentials of endpoints,
// access_guids and the master keys of applications.
import { afterEach, expect, test, vi } from 'vitest';
import { administrator, masterKey, registerCaller } from '../support/open-service.ts';
import { freshService } from '../support/shared.ts';

const opened = freshService();
afterEach(() => void vi.useRealTimers());
const day = 86_400_000;

/** What is reported when so many days have passed, with its severity. */
const toldAfter = async (begin: number, days: number): Promise<Readonly<Record<string, string>>> => {
  vi.setSystemTime(begin + days * day);
  await opened.service.checkNotifications();
  const { items } = await opened.operations.notifications.list(administrator, { limit: 100 });
  const open = items.filter(({ resolvedAt }) => resolvedAt === null);
  return Object.fromEntries(open.map(({ kind, severity }) => [kind, severity]));
};

test('credentials of endpoints and access_guids are due each quarter, master keys from six months on', async () => {
  const begin = Date.now();
  vi.useFakeTimers({ toFake: ['Date'], now: begin });
  const { vaults, keys, endpoints, tde } = opened.operations;
  const { id: vaultId } = await vaults.create(administrator, { name: 'vault' });
  const { id: keyId } = await keys.create(administrator, { name: 'key', vaultId });
  const { id: endpointId } = await endpoints.create(administrator, { name: 'cloud', vaultId, keyId });
  await endpoints.addCredential(administrator, endpointId);
  const { caller } = await registerCaller(opened, 'erp');
  await tde.generateKey(caller, masterKey('MK'));
  const due = ['endpoint.credential-due', 'application.access-guid-due'];
  const severities = async (days: number, kinds: readonly string[]) => {
    const told = await toldAfter(begin, days);
    return kinds.map((kind) => told[kind]);
  };
  expect(await severities(76, due)).toEqual([undefined, undefined]);
  expect(await severities(78, due)).toEqual(['low', 'low']);
  expect(await severities(92, due)).toEqual(['medium', 'medium']);
  // A new one, and the old one removed.
  const { credentials } = await endpoints.get(administrator, endpointId);
  await endpoints.addCredential(administrator, endpointId);
  for (const { id } of credentials) await endpoints.removeCredential(administrator, endpointId, id);
  expect(await severities(93, due)).toEqual([undefined, 'medium']);
  const masterKeys = ['master-key.rotation-due'];
  expect(await severities(182, masterKeys)).toEqual([undefined]);
  expect(await severities(184, masterKeys)).not.toEqual([undefined]);
  await tde.generateKey(caller, masterKey('MK2'));
  expect(await severities(185, masterKeys)).toEqual([undefined]);
});
