// A service that has lived: vaults, keys in several states, a database that set its keys, endpoints
// that were called, well and not, tokens of several roles. For the tests of the console's pages,
// and for the pictures of the tour.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Endpoint, ProxyConfiguration } from '../../server/contract/api/endpoints-routes.ts';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { runCommand } from './command.ts';
import { createGroup, openConsoleApi, registerApplication } from './console-api.ts';
import type { Site } from './site.ts';
import { openXksCaller } from './xks-caller.ts';

export interface ConsoleData {
  readonly vaultId: string;
  readonly keyId: string;
  readonly applicationId: string;
  readonly masterKeyId: string;
  readonly endpointId: string;
  /** A runbook run that is half-way through the rotation of the application's master key. */
  readonly runId: string;
  readonly snapshotId: string;
  /** A token that has one application and nothing else. */
  readonly ownerToken: string;
}

const principals = [
  'arn:aws:iam::111122223333:role/orders-service',
  'arn:aws:iam::111122223333:role/billing-batch',
  'arn:aws:sts::111122223333:assumed-role/reports/i-0abc',
];

/** A recovery key, a snapshot that is held, one that is deleted; answers the former. */
const fillSnapshots = async ({ api, folder }: Site): Promise<string> => {
  const { code, stdout, stderr } = await runCommand([
    ...['-o', 'json', 'recovery-key', 'create', '--out', join(folder, 'recovery.key')],
  ]);
  if (code !== 0) throw new Error(`no recovery key was made: ${stderr}`);
  const { publicKey } = JSON.parse(stdout) as { readonly publicKey: string };
  await api.call('POST', '/api/recovery-keys', { name: 'Safe of the bank, drawer 12', publicKey });
  const snapshot = (): Promise<{ readonly id: string }> => api.call('POST', '/api/snapshots', {});
  const { id: deleted } = await snapshot();
  await api.call('DELETE', `/api/snapshots/${deleted}`);
  const { id } = await snapshot();
  await api.call('POST', `/api/snapshots/${id}/verify`, {});
  return id;
};

/**
 * A vault under dual control, with requests of the user and of others: pending, completed and
 * rejected.
 */
const fillApprovals = async ({ api, server }: Site): Promise<void> => {
  const person = async (name: string, ...roles: readonly string[]) => {
    const { token } = await api.call<{ readonly token: string }>('POST', '/api/tokens', {
      name,
      grants: roles.map((role) => ({ role, scope: null })),
    });
    return openConsoleApi(server, token);
  };
  const anna = await person('anna (approver)', 'key-approver');
  const bert = await person('bert (approver)', 'key-approver');
  const manager = await person('night shift', 'key-manager');
  const make = (path: string, body: object) => api.call<{ readonly id: string }>('POST', path, body);
  const vault = await make('/api/vaults', { name: 'Settlement' });
  const names = ['payments-2025', 'payments-2024', 'payments-2023', 'payments-2022'];
  const ids: string[] = [];
  for (const name of names) ids.push((await make('/api/keys', { name, vaultId: vault.id })).id);
  await api.call('PUT', `/api/vaults/${vault.id}/dual-control`, {
    required: 2,
    actions: ['destroy', 'export', 'restore'],
  });
  const ask = async (by: typeof manager, id = ''): Promise<string> =>
    (JSON.parse((await by.send('DELETE', `/api/keys/${id}`)).text) as { readonly id: string }).id;
  const [own, others, agreed, refused] = [
    await ask(api, ids[0]),
    await ask(manager, ids[1]),
    await ask(manager, ids[2]),
    await ask(manager, ids[3]),
  ];
  const decide = (by: typeof manager, verb: string, id: string | undefined, comment: string) =>
    by.call('POST', `/api/approvals/${id}/${verb}`, { comment });
  await decide(anna, 'approve', own, 'seen with the auditors');
  await decide(anna, 'approve', others, 'change 4712');
  await decide(anna, 'approve', agreed, 'change 4711');
  await decide(bert, 'approve', agreed, 'yes');
  await decide(bert, 'reject', refused, 'settlement still runs on it');
};

export const fillConsole = async (site: Site): Promise<ConsoleData> => {
  const { api } = site;
  const make = (path: string, body: object) => api.call<{ readonly id: string }>('POST', path, body);
  const vault = await make('/api/vaults', { name: 'Payments' });
  const archive = await make('/api/vaults', { name: 'Archive 2019-2024' });
  const keyIds: string[] = [];
  for (const name of ['orders-2026', 'invoices-2026', 'customer-addresses'])
    keyIds.push((await make('/api/keys', { name, vaultId: vault.id })).id);
  const [keyId = '', invoices = '', addresses = ''] = keyIds;
  const old = await make('/api/keys', { name: 'orders-2019', vaultId: archive.id });
  await api.call('POST', `/api/keys/${keyId}/rotate`);
  await api.call('POST', `/api/keys/${addresses}/disable`);
  await api.call('DELETE', `/api/keys/${old.id}`);

  const finance = await createGroup(api, 'Finance');
  await createGroup(api, 'Research');
  const erp: RegisteredApplication = await registerApplication(api, 'erp', finance);
  await registerApplication(api, 'crm', finance);
  const database = site.database(site.config('erp', erp));
  await database.call('open', { pin: '' });
  const labels = [
    '06B7A1D20C55E94F0ABF3C77D1E0A94522',
    '0669F037D091A73D4F13BF2CE921EB2CF0',
    '06C41E5A8870B1429DB2F6A3905D7E18C4',
  ];
  for (const label of labels) await database.call('generate', { label: `ORACLE.TDE.HSM.MK.${label}` });
  await database.stop();
  const masterKey = await api.masterKey(erp.application.id, `ORACLE.TDE.HSM.MK.${labels[1]}`);

  const runs = `/api/tde/applications/${erp.application.id}/runbook-runs`;
  const { id: runId } = await make(runs, { runbook: 'rotate', release: '19c', containers: 'cdb' });
  await api.call('PUT', `${runs}/${runId}/steps/keystore-open`, { outcome: 'done', note: 'change 4711' });
  await api.call('PUT', `${runs}/${runId}/steps/history-before`, { outcome: 'not-needed' });

  const endpoint = await api.call<Endpoint>('POST', '/api/endpoints', {
    name: 'aws-eu-central-1',
    vaultId: vault.id,
    keyId,
  });
  const stopped = await api.call<Endpoint>('POST', '/api/endpoints', {
    name: 'aws-us-east-1',
    vaultId: vault.id,
    keyId: invoices,
  });
  const configuration = await api.call<ProxyConfiguration>('POST', `/api/endpoints/${endpoint.id}/credentials`);
  const caller = openXksCaller(site.server);
  const metadata = (kmsOperation: string, principal = principals[0]) => ({
    awsPrincipalArn: principal,
    kmsKeyArn: 'arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
    kmsOperation,
    kmsRequestId: randomUUID(),
  });
  await caller.send(configuration, '/health', {
    requestMetadata: { kmsRequestId: randomUUID(), kmsOperation: 'KmsHealthCheck' },
  });
  await caller.send(configuration, `/keys/${keyId}/metadata`, { requestMetadata: metadata('DescribeKey') });
  for (let i = 0; i < 24; i += 1)
    await caller.send(configuration, `/keys/${keyId}/encrypt`, {
      requestMetadata: metadata('Encrypt', principals[i % principals.length]),
      plaintext: Buffer.alloc(32, i).toString('base64'),
      encryptionAlgorithm: 'AES_GCM',
    });
  await caller.send(configuration, `/keys/${keyId.toUpperCase()}/metadata`, {
    requestMetadata: metadata('DescribeKey'),
  });
  await caller.send(
    configuration,
    `/keys/${keyId}/metadata`,
    { requestMetadata: metadata('DescribeKey') },
    { secretAccessKey: 'x'.repeat(43) },
  );
  caller.close();
  await api.call('PUT', `/api/endpoints/${endpoint.id}/settings`, {
    operatorProbes: true,
    rate: { perSecond: 1800, burst: 3600 },
    clientCertificate: null,
    rules: [
      { name: 'not through lambda', effect: 'deny', when: { viaService: ['lambda.*.amazonaws.com'] } },
      {
        name: 'no batch that encrypts',
        effect: 'deny',
        when: { principal: ['*billing-batch'], operation: ['Encrypt'] },
      },
      { name: 'our account', effect: 'allow', when: { account: ['111122223333'] } },
      { name: 'no one else', effect: 'deny', when: {} },
    ],
  });
  await api.call('POST', `/api/endpoints/${stopped.id}/disable`);
  await make('/api/external-key-stores', {
    name: 'orders in the cloud',
    customKeyStoreId: 'cks-1234567890abcdef0',
    region: 'eu-central-1',
    endpointId: endpoint.id,
  });
  await api.call('POST', `/api/endpoints/${endpoint.id}/diagnostics`, {});

  const snapshotId = await fillSnapshots(site);
  // Destroyed since then: it stays destroyed after a restore.
  const outdated = await api.masterKey(erp.application.id, `ORACLE.TDE.HSM.MK.${labels[2]}`);
  await api.call('POST', `/api/tde/applications/${erp.application.id}/master-keys/${outdated.id}/destroy`, {
    confirm: outdated.name,
  });

  const token = (name: string, role: string, scope: object | null = null) =>
    api.call<{ readonly token: string }>('POST', '/api/tokens', {
      name,
      grants: [{ role, scope }],
      expiresAt: new Date(Date.now() + 90 * 86_400_000).toISOString(),
    });
  for (const [name, displayName, role] of [
    ['ada', 'Ada Byron', 'key-manager'],
    ['grace', 'Grace Hopper', 'auditor'],
  ])
    await api.call('POST', '/api/users', { name, displayName, grants: [{ role, scope: null }] });
  await fillApprovals(site);
  await make('/api/tenants', { name: 'Subsidiary' });
  const paused = await make('/api/tenants', { name: 'Joint venture' });
  await api.call('POST', `/api/tenants/${paused.id}/suspend`, {});
  const left = await make('/api/tenants', { name: 'Sold in 2024' });
  await api.call('DELETE', `/api/tenants/${left.id}`);
  await token('night audit', 'auditor');
  await token('ada (keys)', 'key-manager');
  const { token: ownerToken } = await token('crm database team', 'application-owner', {
    kind: 'endpoint',
    id: stopped.id,
  });
  return {
    vaultId: vault.id,
    keyId,
    applicationId: erp.application.id,
    masterKeyId: masterKey.id,
    endpointId: endpoint.id,
    runId,
    snapshotId,
    ownerToken,
  };
};
