// A row that was changed in the database, not by the service: with any content, its list is still
// answered, its other rows are unchanged, and an authenticated row is marked as tampered with.
import type { SQLInputValue } from 'node:sqlite';
import { beforeAll, expect, test } from 'vitest';
import { policyColumns } from '../../server/adapters/store/rows/row-codes.ts';
import { formatRecoveryKey } from '../../server/base/recovery-key.ts';
import { mustTo, sendTo, sharedApi, sharedService } from '../support/shared.ts';
import { makeRecoveryKey } from '../support/snapshot-files.ts';
import { queryStored } from '../support/test-store.ts';

const opened = sharedService();
const api = sharedApi(opened);
let token: string;

const send = (method: string, path: string, body?: object) => sendTo(`${api.base}/api`, token, method, path, body);
const call = <T = { readonly id: string }>(method: string, path: string, body?: object) =>
  mustTo<T>(`${api.base}/api`, token, method, path, body);
const make = <T = { readonly id: string }>(path: string, body: object = {}): Promise<T> => call('POST', path, body);

interface Item {
  readonly id: string;
  readonly name?: string;
  readonly integrity?: string;
  readonly tampered?: boolean;
}
const itemsOf = async (path: string): Promise<readonly Item[]> =>
  (await call<{ items: readonly Item[] }>('GET', path)).items;

/** `one`: a row is answered alone, too. */
interface Listed {
  readonly table: string;
  readonly list: string;
  readonly one: boolean;
}
const ids = { application: '', endpoint: '' };
const of = (table: string, list: () => string, one = true) => ({ table, list, one });
const listed = [
  of('tenants', () => '/tenants'),
  of('vaults', () => '/vaults'),
  of('keys', () => '/keys'),
  of('approvals', () => '/approvals'),
  of('tde_groups', () => '/tde/groups'),
  of('tde_applications', () => '/tde/applications'),
  of('endpoints', () => '/endpoints'),
  of('external_key_stores', () => '/external-key-stores'),
  of('api_tokens', () => '/tokens'),
  of('users', () => '/users'),
  of('recovery_keys', () => '/recovery-keys', false),
  of('snapshots', () => '/snapshots'),
  of('notifications', () => '/notifications', false),
  of('runbook_runs', () => `/tde/applications/${ids.application}/runbook-runs`),
  of('diagnoses', () => `/endpoints/${ids.endpoint}/diagnostics`),
];

beforeAll(async () => {
  token = opened.service.adminToken ?? '';
  for (const at of [1, 2])
    await make('/tokens', { name: `approver ${at}`, grants: [{ role: 'key-approver', scope: null }] });
  for (const at of [1, 2]) {
    await make('/tenants', { name: `${at} spoilt` });
    const vault = await make('/vaults', { name: `vault ${at}` });
    const governed = await make('/vaults', { name: `governed ${at}` });
    const key = await make('/keys', { name: `key ${at}`, vaultId: vault.id });
    const held = await make('/keys', { name: `held ${at}`, vaultId: governed.id });
    await call('PUT', `/vaults/${governed.id}/dual-control`, {
      required: 2,
      approvers: null,
      actions: ['destroy', 'export', 'restore'],
    });
    await send('DELETE', `/keys/${held.id}`);
    const group = await make('/tde/groups', { name: `group ${at}` });
    const { application } = await make<{ application: Item }>('/tde/applications', {
      name: `application ${at}`,
      groupId: group.id,
    });
    ids.application = application.id;
    const endpoint = await make('/endpoints', { name: `endpoint ${at}`, vaultId: vault.id, keyId: key.id });
    ids.endpoint = endpoint.id;
    await make('/external-key-stores', {
      name: `store ${at}`,
      customKeyStoreId: `cks-${at}`,
      region: 'eu-central-1',
      endpointId: endpoint.id,
    });
    await make('/tokens', { name: `${at} spoilt`, grants: [{ role: 'auditor', scope: null }] });
    await make('/users', { name: `user-${at}`, grants: [{ role: 'auditor', scope: null }] });
    await make('/recovery-keys', { name: `safe ${at}`, publicKey: formatRecoveryKey(makeRecoveryKey().publicKey) });
    await make('/snapshots');
  }
  for (let count = 0; count < 2; count += 1) {
    await make(`/tde/applications/${ids.application}/runbook-runs`, { runbook: 'rotate' });
    await make(`/endpoints/${ids.endpoint}/diagnostics`);
  }
  await opened.service.checkNotifications();
});

/** Replacements for a value. */
const oddFor = (column: string, value: unknown): readonly (string | number | bigint)[] => {
  if (typeof value === 'number' || (value === null && column.endsWith('_at')))
    return [-1, Number.MAX_SAFE_INTEGER, 2n ** 62n];
  const isDocument = (typeof value === 'string' && /^[[{]/.test(value)) || documents.has(column);
  return isDocument ? ['', '{', '{}', '[]', 'null', '0', '"x"', '[null]', '[{}]', '[[1]]'] : ['', 'odd'];
};
const documents = new Set(['counts', 'verification', 'dual_control', 'finished_by']);

/** What is wrong with the answers while this row is spoilt. */
const lookAt = async (
  { table, list, one }: Listed,
  before: readonly Item[],
  victim: Item,
  column: string,
): Promise<readonly string[]> => {
  const { status, text } = await send('GET', list);
  if (status !== 200) return [`the list is ${status}`];
  const now = (JSON.parse(text) as { readonly items: readonly Item[] }).items;
  const wrong = before
    .filter(({ id }) => id !== victim.id && !now.some((each) => each.id === id))
    .map(({ id }) => `${id} is missing`);
  const same = now.find(({ id }) => id === victim.id);
  const policy = (policyColumns as { readonly [name: string]: readonly string[] })[table];
  const isTold = same === undefined || same.integrity === 'tampered' || same.tampered === true;
  if (policy?.includes(column) === true && !isTold) wrong.push('it does not say that it was changed');
  if (one) {
    const alone = await send('GET', `${list}/${victim.id}`);
    if (alone.status >= 500) wrong.push(`alone it is ${alone.status}`);
  }
  return wrong;
};

test.each(listed.map((each) => [each.table, each] as const))(
  'a row of %s with anything in any of its columns leaves its list and the other rows as they were',
  async (table, each) => {
    const list = each.list();
    const before = await itemsOf(list);
    // Not the calling token.
    const victim = before.find(({ name }) => name?.endsWith('spoilt') === true) ?? before[0];
    expect(before.length).toBeGreaterThan(1);
    if (victim === undefined) throw new Error('the list is empty');
    const [row] = await queryStored(opened.folder, `select * from ${table} where id = ?`, victim.id);
    const wrong: string[] = [];
    let tried = 0;
    for (const [column, value] of Object.entries(row ?? {})) {
      // Another id is another row, and bytes are opened by the core alone.
      if (column === 'id' || column === 'row_mac' || value instanceof Uint8Array) continue;
      for (const odd of oddFor(column, value)) {
        const put = (what: unknown) =>
          queryStored(
            opened.folder,
            `update ${table} set ${column} = ? where id = ?`,
            what as SQLInputValue,
            victim.id,
          );
        // The database itself refuses some values, such as a broken reference or a value out of
        // range.
        const refused = await put(odd).then(
          () => false,
          () => true,
        );
        if (refused) continue;
        tried += 1;
        const found = await lookAt({ ...each, list }, before, victim, column);
        wrong.push(...found.map((what) => `${column} = ${String(odd)}: ${what}`));
        await put(value);
      }
    }
    expect(wrong).toEqual([]);
    expect(tried).toBeGreaterThan(4);
    // The service may have raised more notifications in the meantime.
    const after = (await itemsOf(list)).map(({ id }) => id);
    expect(after).toEqual(expect.arrayContaining(before.map(({ id }) => id)));
  },
);
