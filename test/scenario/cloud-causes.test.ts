// Every cause of the table (server/base/cloud-causes.ts) is played: the simulated cloud, driven by
// the AWS SDK, reports the table's names when a store is created and connects, and when a key is
// created and used; `dke doctor endpoint` names the cause by the table's check, with the same
// names; and the probe of external key stores has the same ConnectionErrorCode where it can meet
// it.
import { spawnSync } from 'node:child_process';
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
import { parseConfig } from '../../server/app/config/config.ts';
import { openOffline } from '../../server/app/host/offline.ts';
import { type CloudCause, cloudCauses, exceptionOf, wordsOf } from '../../server/base/cloud-causes.ts';
import type { CheckResult } from '../../server/base/diagnostic-checks.ts';
import type { Endpoint } from '../../server/contract/api/endpoints-routes.ts';
import type { ExternalKeyStore } from '../../server/contract/api/external-key-stores-routes.ts';
import { everyTenant } from '../../server/domain/tenant.ts';
import { type Authority, type IssuedCertificate, makeAuthority } from '../support/authority.ts';
import { causesOfPage, causesTable } from '../support/cloud-causes-page.ts';
import { type CloudProcess, kmsClientOf, startCloudProcess } from '../support/cloud-process.ts';
import { until } from '../support/host.ts';
import { type PublicFront, startPublicFront } from '../support/public-front.ts';
import { type ShiftedClock, shiftedClock } from '../support/shifted-clock.ts';
import { type Site, startSite } from '../support/site.ts';
import { storeToml } from '../support/test-store.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

let folder: string;
let authority: Authority;
let good: IssuedCertificate;
let front: PublicFront;
let site: Site;
let cloud: CloudProcess;
let kms: KMSClient;

/** Longer than the cloud's 250 ms: only one of these causes is about time. */
const budgetMs = 3_000;
/**
 * The service and the cloud have a file of host names of their own, where this system lets them:
 * the public name is in it, until a play removes it.
 */
const hostNames = { name: 'localhost', through: [] as readonly string[], why: undefined as string | undefined };
const layHostNames = (): void => {
  const file = join(folder, 'hosts');
  writeFileSync(file, '127.0.0.1 localhost keys.test\n');
  const through = ['unshare', '-m', 'sh', '-c', `mount --bind '${file}' /etc/hosts && exec "$@"`, 'sh'];
  const { status, stderr, error } = spawnSync(through[0] ?? '', [...through.slice(1), 'true'], { encoding: 'utf8' });
  if (status === 0) Object.assign(hostNames, { name: 'keys.test', through });
  else hostNames.why = `no file of host names of their own: ${stderr || String(error)}`;
};
const removeHostNames = (): void => writeFileSync(join(folder, 'hosts'), '127.0.0.1 localhost\n');

const issue = (from: Authority, names = [`DNS:${hostNames.name}`], dates: object = {}): IssuedCertificate =>
  from.issue({ commonName: 'front', names, usage: 'serverAuth', ...dates });
const publicUrl = (): string => `https://${hostNames.name}:${front.port}`;
const toml = (): string =>
  `public_url = "${publicUrl()}"\n[diagnostics]\ntrusted_authorities = "${authority.certificate}"\n`;
const startBehindFront = async (through: readonly string[] = []): Promise<Site> => {
  const started = await startSite({ toml: toml(), through: [...hostNames.through, ...through] });
  front.leadTo(started.server.port);
  return started;
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-causes-'));
  layHostNames();
  authority = makeAuthority(folder, 'public authority');
  good = issue(authority);
  front = await startPublicFront(good);
  site = await startBehindFront();
  cloud = await startCloudProcess(folder, authority.certificate, budgetMs, hostNames.through);
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
      XksProxyUriEndpoint: publicUrl(),
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
  /** A site of its own. */
  readonly start?: () => Promise<Site>;
  /** What the cloud side is configured with. */
  readonly told?: (place: XksEndpoint) => Told;
  /** Where the cloud can meet it; all when absent. */
  readonly operations?: readonly (keyof ReturnType<typeof wordsOf>)[];
  /** The refusal that the request log has before the doctor reads it: it is written in batches. */
  readonly refusal?: string;
  /** Before the doctor and the probe, for which less is enough. */
  readonly diagnosed?: () => unknown;
  /** Why it cannot be played on this system. */
  readonly impossible?: () => string | undefined;
}
const refusalLogged = (here: Site, { endpoint }: XksEndpoint, errorName: string): Promise<true> =>
  until('the refused request in the log', async () => {
    const { text } = await here.api.send('GET', `/api/endpoints/${endpoint.id}/requests`);
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

/**
 * What the API offers no way to: a restore of a snapshot, or a version of DKE with other keys, has
 * such a row. Written with its valid code, while the service is stopped.
 */
const takeEncryption = async ({ endpoint }: XksEndpoint): Promise<void> => {
  await site.stopServer();
  const text = `[memory]\nallow_unlocked = true\n${await storeToml(site.folder, '')}`;
  const offline = await openOffline(parseConfig(text, null, site.folder), () => Promise.resolve(undefined));
  try {
    await offline.store.write(async (tx) => {
      const key = await tx.keys.stored(everyTenant, endpoint.keyId);
      if (key === undefined) throw new Error('there is no such key');
      await tx.keys.update({ ...key, usages: ['decrypt'] });
    });
  } finally {
    await offline.close();
  }
  await site.startServer();
};
let clock: ShiftedClock;

const plays: readonly Play[] = [
  play('endpoint-disabled', 'dke endpoint disable', ({ endpoint }) => post(`/api/endpoints/${endpoint.id}/disable`)),
  play('wrong-address', 'another XksProxyUriPath', () => undefined, {
    told: () => ({ uriPath: '/xks/other/kms/xks/v1' }),
    operations: ['create'],
  }),
  play('no-credential', 'every credential is removed', removeCredentials),
  play(
    'wrong-credential',
    'the credential of the cloud is removed',
    async (place) => {
      await site.api.call('POST', `/api/endpoints/${place.endpoint.id}/credentials`);
      const path = `/api/endpoints/${place.endpoint.id}`;
      const { credentials } = await site.api.call<Endpoint>('GET', path);
      const { AccessKeyId } = place.configuration.XksProxyAuthenticationCredential;
      const own = credentials.find(({ accessKeyId }) => accessKeyId === AccessKeyId);
      await site.api.call('DELETE', `${path}/credentials/${own?.id}`);
    },
    { refusal: 'AuthenticationFailedException' },
  ),
  play('vault-gone', 'dke vault disable', ({ endpoint }) => post(`/api/vaults/${endpoint.vaultId}/disable`)),
  play('key-gone', 'dke key delete', ({ endpoint }) => site.api.call('DELETE', `/api/keys/${endpoint.keyId}`)),
  play('key-disabled', 'dke key disable', ({ endpoint }) => post(`/api/keys/${endpoint.keyId}/disable`)),
  play('wrong-key-id', 'an id in capital letters', () => undefined, {
    ...{ told: upperCase, operations: ['createKey'], refusal: 'KeyNotFoundException' },
  }),
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
  play('key-kind', 'its stored usages lack encryption', takeEncryption),
  play('clock', 'the clock of the service is set back by six minutes', () => clock.ahead(-360_000), {
    start: () => {
      clock = shiftedClock(folder);
      return startBehindFront(['env', ...Object.entries(clock.environment).map((each) => each.join('='))]);
    },
  }),
  play('no-name', 'the name is removed from the file of host names', removeHostNames, {
    repair: layHostNames,
    impossible: () => hostNames.why,
  }),
  play(
    'denied',
    'a rule that denies all',
    ({ endpoint }) =>
      site.api.call('PUT', `/api/endpoints/${endpoint.id}/settings`, {
        ...{ operatorProbes: false, rate: null, clientCertificate: null },
        rules: [{ name: 'closed', effect: 'deny', when: {} }],
      }),
    { refusal: 'AccessDeniedException' },
  ),
  play('slow', 'the front passes requests on too late', () => front.behave({ delayMs: budgetMs + 200 }), {
    diagnosed: () => front.behave({ delayMs: 300 }),
  }),
];
test.each(Object.keys(cloudCauses))('the cause %s has a play', (cause) => {
  expect(plays.map((each) => each.cause)).toContain(cause);
});
test('docs/cloud.md shows the table (node test/support/cloud-causes-page.ts)', () => {
  expect(causesOfPage()).toBe(causesTable());
});

/** What the probe does not meet: it knows it without a call, or only the cloud has it. */
const notProbed: Partial<Record<CloudCause, string>> = {
  'endpoint-disabled': 'the probe calls no endpoint that people have disabled: DISCONNECTED',
  'no-credential': 'the probe has nothing to sign with: DISCONNECTED',
  'wrong-address': 'the probe has the right one',
  'wrong-credential': 'the probe signs with one of the endpoint',
  'wrong-key-id': 'the probe has the right one',
  clock: 'the probe signs by the same clock',
};
/** The doctor's first line that fails; where none does, the first suspicion. */
const diagnose = async (here: Site, { endpoint }: XksEndpoint, told: Told): Promise<CheckResult | undefined> => {
  const { results } = await here.api.call<{ results: CheckResult[] }>(
    'POST',
    `/api/endpoints/${endpoint.id}/diagnostics`,
    { cloud: told, callerTime: new Date().toISOString() },
  );
  return results.find(({ state }) => state === 'failed') ?? results.find(({ predicts }) => predicts !== undefined);
};
/** The ConnectionErrorCode of the probe; null: it has none. */
const probe = async (here: Site, { endpoint }: XksEndpoint): Promise<string | null> => {
  const registered = await here.api.call<ExternalKeyStore>('POST', '/api/external-key-stores', {
    ...{ name: endpoint.name, customKeyStoreId: `cks-${randomUUID()}`, region: 'us-east-1', endpointId: endpoint.id },
  });
  const path = `/api/external-key-stores/${registered.id}/probe`;
  return (await here.api.call<ExternalKeyStore>('POST', path)).connection.errorCode;
};

test.for(plays)('$cause: $how', async (played, { skip }) => {
  const { cause, operations, refusal } = played;
  const why = played.impossible?.();
  if (why !== undefined) return skip(why);
  const here = (await played.start?.()) ?? site;
  try {
    const make = () => createXksEndpoint(here, `cause-${randomUUID().slice(0, 8)}`);
    // One whose store is created now, one that gets a key, and one whose key is used.
    const [fresh, connected, used] = [await make(), await make(), await make()];
    const [connectedStore, usedStore] = [await createStore(connected), await createStore(used)];
    expect([await connect(connectedStore), await connect(usedStore)]).toEqual([null, null]);
    const kmsKey = await createKey(usedStore, used.endpoint.keyId);
    const cloudSide = played.told?.(connected) ?? {};
    for (const place of [fresh, connected, used]) await played.break(place);
    // A certificate is shown to new connections, and a name is looked up for them.
    if (cloudCauses[cause].fault === 'tls' || cause === 'no-name') front.drop();
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
    if (refusal !== undefined) await refusalLogged(here, connected, refusal);
    await played.diagnosed?.();
    // With the id that the cloud has, an earlier check would name the key.
    const first = await diagnose(here, connected, cause === 'wrong-key-id' ? {} : cloudSide);
    expect({ found, first, probed: await probe(here, connected) }).toMatchObject({
      found: Object.fromEntries(Object.keys(found).map((name) => [name, words[name as keyof typeof words]])),
      first: { id: cloudCauses[cause].check, predicts: exceptionOf(cause), reports: words },
      probed: cause in notProbed ? null : words.connect,
    });
  } finally {
    await played.repair?.();
    if (here !== site) {
      await here.end();
      front.leadTo(site.server.port);
    }
  }
});
