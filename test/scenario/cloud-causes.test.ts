// Every cause of the table (server/base/cloud-causes.ts) is played: the simulated cloud, driven by
// the AWS SDK, reports the table's names when a store is created and connects, and when a key is
// created and used; and `dke doctor endpoint` names the cause by the table's check, with the same
// names.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  ConnectCustomKeyStoreCommand,
  CreateCustomKeyStoreCommand,
  CreateKeyCommand,
  DescribeCustomKeyStoresCommand,
  DisconnectCustomKeyStoreCommand,
  EncryptCommand,
  type KMSClient,
} from '@aws-sdk/client-kms';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CheckResult } from '../../server/base/checks.ts';
import { type CloudCause, cloudCauses, exceptionOf, wordsOf } from '../../server/base/cloud-causes.ts';
import type { Endpoint } from '../../server/fronts/contract/api/endpoints.ts';
import { type Authority, type IssuedCertificate, makeAuthority } from '../support/authority.ts';
import { causesOfPage, causesTable } from '../support/cloud-causes-page.ts';
import { type CloudProcess, kmsClientOf, startCloudProcess } from '../support/cloud-process.ts';
import { until } from '../support/host.ts';
import { type PublicFront, startPublicFront } from '../support/public-front.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

let folder: string;
let authority: Authority;
let good: IssuedCertificate;
let front: PublicFront;
let site: Site;
let cloud: CloudProcess;
let kms: KMSClient;

const issue = (from: Authority, names = ['DNS:localhost'], dates: object = {}): IssuedCertificate =>
  from.issue({ commonName: 'front', names, usage: 'serverAuth', ...dates });

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-causes-'));
  authority = makeAuthority(folder, 'public authority');
  good = issue(authority);
  front = await startPublicFront(good);
  site = await startSite({
    toml: `public_url = "${front.url}"\n[diagnostics]\ntrusted_authorities = "${authority.certificate}"\n`,
  });
  front.leadTo(site.server.port);
  cloud = await startCloudProcess(folder, authority.certificate);
  kms = kmsClientOf(cloud);
});
afterAll(async () => {
  kms?.destroy();
  await cloud?.stop();
  await front?.close();
  await site?.end();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  front.behave({});
  front.show(good);
  front.drop();
});

interface Told {
  readonly uriPath?: string;
  readonly externalKeyId?: string;
}
const createStore = async ({ configuration }: XksEndpoint, { uriPath }: Told = {}): Promise<string> => {
  const answer = await kms.send(
    new CreateCustomKeyStoreCommand({
      CustomKeyStoreName: `store-${randomUUID()}`,
      CustomKeyStoreType: 'EXTERNAL_KEY_STORE',
      XksProxyConnectivity: 'PUBLIC_ENDPOINT',
      XksProxyUriEndpoint: front.url,
      XksProxyUriPath: uriPath ?? configuration.XksProxyUriPath,
      XksProxyAuthenticationCredential: configuration.XksProxyAuthenticationCredential,
    }),
  );
  return answer.CustomKeyStoreId ?? '';
};
const connect = async (CustomKeyStoreId: string): Promise<string | null> => {
  await kms.send(new ConnectCustomKeyStoreCommand({ CustomKeyStoreId }));
  return until('the end of the connection attempt', async () => {
    const { CustomKeyStores } = await kms.send(new DescribeCustomKeyStoresCommand({ CustomKeyStoreId }));
    const store = CustomKeyStores?.[0];
    if (store?.ConnectionState === 'CONNECTING') return undefined;
    return { word: store?.ConnectionErrorCode ?? (store?.ConnectionState === 'CONNECTED' ? null : 'not connected') };
  }).then(({ word }) => word);
};
const createKey = async (CustomKeyStoreId: string, XksKeyId: string): Promise<string> => {
  const made = await kms.send(new CreateKeyCommand({ Origin: 'EXTERNAL_KEY_STORE', CustomKeyStoreId, XksKeyId }));
  return made.KeyMetadata?.KeyId ?? '';
};
/** The name of the exception; null: it works. */
const named = (work: Promise<unknown>): Promise<string | null> =>
  work.then(
    () => null,
    (error: unknown) => (error as Error).name,
  );

interface Play {
  readonly cause: CloudCause;
  readonly how: string;
  readonly break: (place: XksEndpoint) => unknown;
  readonly repair?: () => unknown;
  /** What the cloud side is configured with. */
  readonly told?: (place: XksEndpoint) => Told;
  /** Where the cloud can meet it; all when absent. */
  readonly operations?: readonly (keyof ReturnType<typeof wordsOf>)[];
}
/** The request log is written in batches. */
const refusalLogged = ({ endpoint }: XksEndpoint, errorName: string): Promise<true> =>
  until('the refused request in the log', async () => {
    const { text } = await site.api.send('GET', `/api/endpoints/${endpoint.id}/requests?limit=1`);
    return text.includes(errorName) ? true : undefined;
  });
const play = (cause: CloudCause, how: string, break_: Play['break'], more: Partial<Play> = {}): Play => ({
  ...{ cause, how, ...more },
  break: break_,
});
const post = (path: string) => site.api.call('POST', path);
const answer =
  (status: number, body: string, headers: Readonly<Record<string, string>> = {}) =>
  () =>
    front.behave({ answer: { status, body, headers } });
const upperCase = ({ endpoint }: XksEndpoint): Told => ({ externalKeyId: endpoint.keyId.toUpperCase() });
const removeCredentials = async ({ endpoint }: XksEndpoint): Promise<void> => {
  const path = `/api/endpoints/${endpoint.id}`;
  const { credentials } = await site.api.call<Endpoint>('GET', path);
  for (const { id } of credentials) await site.api.call('DELETE', `${path}/credentials/${id}`);
};

const plays: readonly Play[] = [
  play('endpoint-disabled', 'dke endpoint disable', ({ endpoint }) => post(`/api/endpoints/${endpoint.id}/disable`)),
  play('wrong-address', 'another XksProxyUriPath', () => undefined, {
    told: () => ({ uriPath: '/xks/other/kms/xks/v1' }),
    operations: ['create'],
  }),
  play('no-credential', 'every credential is removed', removeCredentials),
  play('wrong-credential', 'the credential of the cloud is removed', async (place) => {
    await site.api.call('POST', `/api/endpoints/${place.endpoint.id}/credentials`);
    const path = `/api/endpoints/${place.endpoint.id}`;
    const { credentials } = await site.api.call<Endpoint>('GET', path);
    const { AccessKeyId } = place.configuration.XksProxyAuthenticationCredential;
    const own = credentials.find(({ accessKeyId }) => accessKeyId === AccessKeyId);
    await site.api.call('DELETE', `${path}/credentials/${own?.id}`);
  }),
  play('vault-gone', 'dke vault disable', ({ endpoint }) => post(`/api/vaults/${endpoint.vaultId}/disable`)),
  play('key-gone', 'dke key delete', ({ endpoint }) => site.api.call('DELETE', `/api/keys/${endpoint.keyId}`)),
  play('key-disabled', 'dke key disable', ({ endpoint }) => post(`/api/keys/${endpoint.keyId}/disable`)),
  play('wrong-key-id', 'an id in capital letters', () => undefined, { told: upperCase, operations: ['createKey'] }),
  play('no-connection', 'nothing listens', () => front.close(), { repair: () => front.open() }),
  play('tls-version', 'a suite that the cloud does not offer', () =>
    front.show(good, { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' }),
  ),
  play('certificate-expired', 'an expired certificate', () =>
    front.show(issue(authority, ['DNS:localhost'], { notBefore: '20250101000000Z', notAfter: '20250201000000Z' })),
  ),
  play('certificate-name', 'a certificate for another name', () => front.show(issue(authority, ['DNS:other.example']))),
  play('certificate-chain', 'an incomplete chain', () => {
    const issued = issue(authority.below('in between'));
    const [leaf = ''] = readFileSync(issued.certificate, 'utf8').split(/(?<=-----END CERTIFICATE-----\n)/);
    writeFileSync(issued.certificate, leaf);
    front.show(issued);
  }),
  play('another-answers', '403 of a firewall', answer(403, '<html>no</html>')),
  play('another-answers', '502 of a balancer', answer(502, '<html>bad gateway</html>')),
  play('another-answers', 'a redirection', answer(301, '', { location: 'https://localhost/elsewhere' })),
  play('answers-changed', 'another document', answer(200, '{"status":"healthy"}')),
  play('requests-changed', 'another Host', () => front.behave({ rewrite: { host: 'inside.example' } })),
  play('requests-changed', 'another body', () =>
    front.behave({ rewrite: { body: (text) => (text === '' ? text : JSON.stringify(JSON.parse(text), null, 1)) } }),
  ),
  play('path-changed', 'a prefix is removed', () =>
    front.behave({ rewrite: { path: (path) => path.replace(/^\/xks\/[^/]+\//, '/xks/') } }),
  ),
];
const elsewhere: Partial<Record<CloudCause, string>> = {
  'key-kind': 'no endpoint can be created with such a key',
  clock: 'endpoint-doctor.test.ts, with a service whose clock is wrong',
  'no-name': 'endpoint-doctor.test.ts, with a service of such a name',
  denied: 'the doctor does not know the rules of the cloud: xks-settings.test.ts',
  slow: 'endpoint-doctor.test.ts and cloud-faults.test.ts: it is about time',
};
test('every cause is played, here or elsewhere', () => {
  const played = new Set([...plays.map(({ cause }) => cause), ...Object.keys(elsewhere)]);
  expect([...played].sort()).toEqual(Object.keys(cloudCauses).sort());
  for (const [cause, where] of Object.entries(elsewhere)) console.log(`not played here: ${cause}: ${where}`);
});
test('docs/cloud.md shows the table (node test/support/cloud-causes-page.ts)', () => {
  expect(causesOfPage()).toBe(causesTable());
});

test.each(plays)('$cause: $how', async ({ cause, break: break_, repair, told, operations }) => {
  const make = () => createXksEndpoint(site, `cause-${randomUUID().slice(0, 8)}`);
  // One whose store is created now, one that gets a key, and one whose key is used.
  const [fresh, connected, used] = [await make(), await make(), await make()];
  const [connectedStore, usedStore] = [await createStore(connected), await createStore(used)];
  expect([await connect(connectedStore), await connect(usedStore)]).toEqual([null, null]);
  const kmsKey = await createKey(usedStore, used.endpoint.keyId);
  const cloudSide = told?.(connected) ?? {};
  for (const place of [fresh, connected, used]) await break_(place);
  // A certificate is shown to new connections.
  if (cloudCauses[cause].fault === 'tls') front.drop();
  try {
    const words = wordsOf(cause);
    const runs: Readonly<Record<keyof typeof words, () => Promise<string | null>>> = {
      create: () => named(createStore(fresh, cloudSide)),
      createKey: () => named(createKey(connectedStore, cloudSide.externalKeyId ?? connected.endpoint.keyId)),
      use: () => named(kms.send(new EncryptCommand({ KeyId: kmsKey, Plaintext: Buffer.from('x') }))),
      connect: async () => {
        await kms.send(new DisconnectCustomKeyStoreCommand({ CustomKeyStoreId: connectedStore }));
        return connect(connectedStore);
      },
    };
    const found: Partial<Record<keyof typeof words, string | null>> = {};
    for (const name of operations ?? (['create', 'createKey', 'use', 'connect'] as const))
      found[name] = await runs[name]();
    if (cause === 'wrong-credential') await refusalLogged(connected, 'AuthenticationFailedException');
    if (cause === 'wrong-key-id') await refusalLogged(connected, 'KeyNotFoundException');
    const { results } = await site.api.call<{ results: CheckResult[] }>(
      'POST',
      `/api/endpoints/${connected.endpoint.id}/diagnostics`,
      // With it, an earlier check would name the key.
      { cloud: cause === 'wrong-key-id' ? {} : cloudSide },
    );
    const first = results.find(({ state }) => state === 'failed');
    expect({ found, first }).toMatchObject({
      found: Object.fromEntries(Object.keys(found).map((name) => [name, words[name as keyof typeof words]])),
      first: { id: cloudCauses[cause].check, predicts: exceptionOf(cause), reports: words },
    });
  } finally {
    await repair?.();
  }
});
