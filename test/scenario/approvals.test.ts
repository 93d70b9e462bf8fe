// Dual control with the real command against the real service: an operation that waits is not a
// success, and two others carry it out.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exitCodes } from '../../server/cli/terminal/exit-codes.ts';
import type { Approval } from '../../server/contract/api/approvals-routes.ts';
import { type CommandRun, runCommand } from '../support/command.ts';
import { type ConsoleApi, openConsoleApi } from '../support/console-api.ts';
import { type Site, startSite } from '../support/site.ts';

let site: Site;
beforeAll(async () => {
  site = await startSite();
});
afterAll(() => site?.end());

interface Person {
  readonly id: string;
  readonly api: ConsoleApi;
  dke(...args: string[]): Promise<CommandRun>;
}

const enrol = async (name: string, role: string): Promise<Person> => {
  const grants = [{ role, scope: null }];
  const { record, token } = await site.api.call<{ record: { id: string }; token: string }>('POST', '/api/tokens', {
    name,
    grants,
  });
  const tokenFile = join(site.folder, `${name}.token`);
  writeFileSync(tokenFile, token, { mode: 0o600 });
  return {
    id: record.id,
    api: openConsoleApi(site.server, token),
    dke: (...args) =>
      runCommand([...args, '-o', 'json'], {
        environment: { DKE_SERVER: site.server.url, DKE_CA_FILE: site.server.caFile, DKE_TOKEN_FILE: tokenFile },
      }),
  };
};
const answer = <T>({ stdout, stderr, code }: CommandRun): T => {
  expect([stderr, code]).toEqual(['', 0]);
  return JSON.parse(stdout) as T;
};

test('a key under a rule of two is deleted when two others have agreed', async () => {
  const security = await enrol('security', 'tenant-administrator');
  const manager = await enrol('manager', 'key-manager');
  const anna = await enrol('anna', 'key-approver');
  const bert = await enrol('bert', 'key-approver');
  const vault = await manager.api.call<{ id: string }>('POST', '/api/vaults', { name: 'payments' });
  const key = await manager.api.call<{ id: string }>('POST', '/api/keys', { name: 'orders', vaultId: vault.id });
  const state = async () => (await site.api.call<{ state: string }>('GET', `/api/keys/${key.id}`)).state;

  const rule = ['vault', 'dual-control', 'set', vault.id, '--approver', anna.id, bert.id, '--approvals'];
  expect(await security.dke(...rule, '3')).toMatchObject({
    code: exitCodes.refused,
    stderr: expect.stringContaining('this rule could never be satisfied'),
  });
  expect(answer(await security.dke(...rule, '2'))).toMatchObject({ rule: { required: 2 }, approvers: [{}, {}] });
  const plan = answer(await manager.dke('key', 'delete', key.id, '--dry-run'));
  expect(plan).toMatchObject({ rules: [{ vaultName: 'payments', required: 2 }] });

  expect(await manager.dke('key', 'delete', key.id, '--confirm', 'orders')).toMatchObject({
    code: exitCodes.waiting,
    stderr: expect.stringContaining('2 others must approve it by'),
  });
  expect(await state()).toBe('active');
  const { items } = answer<{ items: Approval[] }>(await anna.dke('approval', 'list', '--state', 'pending'));
  const id = items[0]?.id ?? '';
  expect(items).toMatchObject([{ operation: 'key.delete', missing: 2, requestedBy: { name: 'manager' } }]);
  expect((await manager.api.send('POST', `/api/approvals/${id}/approve`, {})).status).toBe(403);
  answer(await anna.dke('approval', 'approve', id, '--comment', 'no endpoint has it'));
  expect(await state()).toBe('active');
  const done = await bert.api.call<Approval>('POST', `/api/approvals/${id}/approve`, {});
  expect(done).toMatchObject({ state: 'completed', decisions: [{ by: { name: 'anna' } }, { by: { name: 'bert' } }] });
  expect(await state()).toBe('soft-deleted');

  // Removing the rule itself needs approval. Over HTTP that is 202 with the address of the request.
  const removal = await security.api.send('DELETE', `/api/vaults/${vault.id}/dual-control`);
  expect(removal.status).toBe(202);
  const place = String(removal.headers.location);
  expect(await security.api.call('GET', place)).toMatchObject({ operation: 'dual-control.change', missing: 2 });
  expect((await bert.api.send('POST', `${place}/withdraw`)).status).toBe(403);
  expect(await security.api.call('POST', `${place}/withdraw`)).toMatchObject({ state: 'withdrawn' });
  expect(await site.api.call('GET', `/api/vaults/${vault.id}/dual-control`)).toMatchObject({ rule: { required: 2 } });
});
