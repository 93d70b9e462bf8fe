// A service that has lived: vaults, keys in several states, a database that set its keys, endpoints that were called, well and not,
// tokens of several roles. For the tests that look at the console's pages, and for the pictures of the tour.
import { randomUUID } from 'node:crypto';
import type { Endpoint, ProxyConfiguration } from '../../server/fronts/contract/api/endpoints.ts';
import type { RegisteredApplication } from '../../server/fronts/contract/api/tde-applications.ts';
import { createGroup, registerApplication } from './console-api.ts';
import type { Site } from './site.ts';
import { openXksCaller } from './xks-caller.ts';

export interface ConsoleData {
  readonly vaultId: string;
  readonly keyId: string;
  readonly applicationId: string;
  readonly masterKeyId: string;
  readonly endpointId: string;
  /** Of the rotation of its master key, half-way. */
  readonly runId: string;
  /** A token that has one application and nothing else. */
  readonly ownerToken: string;
}

const principals = [
  'arn:aws:iam::111122223333:role/orders-service',
  'arn:aws:iam::111122223333:role/billing-batch',
  'arn:aws:sts::111122223333:assumed-role/reports/i-0abc',
];

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
  const labels = ['06B7A1D20C55E94F0ABF3C77D1E0A94522', '0669F037D091A73D4F13BF2CE921EB2CF0'];
  for (const label of labels) await database.call('generate', { label: `ORACLE.TDE.HSM.MK.${label}` });
  await database.stop();
  const masterKey = await api.masterKey(erp.application.id, `ORACLE.TDE.HSM.MK.${labels[1]}`);

  const runs = `/api/tde/applications/${erp.application.id}/runbook-runs`;
  const { id: runId } = await make(runs, { runbook: 'rotate', release: '19c', containers: 'cdb' });
  await api.call('PUT', `${runs}/${runId}/steps/open`, { outcome: 'done', note: 'change 4711' });
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
  await api.call('POST', `/api/endpoints/${stopped.id}/disable`);
  await make('/api/external-key-stores', {
    name: 'orders in the cloud',
    customKeyStoreId: 'cks-1234567890abcdef0',
    region: 'eu-central-1',
    endpointId: endpoint.id,
  });
  await api.call('POST', `/api/endpoints/${endpoint.id}/diagnostics`, {});

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
  await make('/api/tenants', { name: 'Subsidiary' });
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
    ownerToken,
  };
};
