// Keys, vaults, endpoints and credentials under the External Key Store Proxy API, on the real
// server: what a change of theirs does to the very next request on connections that are open. Each
// test has an endpoint of its own.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Endpoint, EndpointCredential, ProxyConfiguration } from '../../server/contract/api/endpoints-routes.ts';
import type { DeletedKey, KeyUse } from '../../server/contract/api/keys-routes.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';
import { type CallerAnswer, openXksCaller, wholeMetadata, type XksCaller } from '../support/xks-caller.ts';

let site: Site;
let caller: XksCaller;
beforeAll(async () => {
  site = await startSite();
  caller = openXksCaller(site.server);
});
afterAll(async () => {
  caller?.close();
  await site?.end();
});

type Members = Readonly<Record<string, unknown>>;
const plaintext = Buffer.from('a data key of thirty-two bytes!!').toString('base64');
let count = 0;
const makePlace = (): Promise<XksEndpoint> => {
  count += 1;
  return createXksEndpoint(site, `life-${count}`);
};

interface Door {
  readonly configuration: ProxyConfiguration;
  readonly keyId: string;
}
const doorOf = ({ configuration, endpoint }: XksEndpoint): Door => ({ configuration, keyId: endpoint.keyId });
const encrypt = ({ configuration, keyId }: Door): Promise<CallerAnswer> =>
  caller.send(configuration, `/keys/${keyId}/encrypt`, {
    requestMetadata: wholeMetadata(),
    plaintext,
    encryptionAlgorithm: 'AES_GCM',
  });
const decrypt = ({ configuration, keyId }: Door, sealed: Members): Promise<CallerAnswer> =>
  caller.send(configuration, `/keys/${keyId}/decrypt`, {
    requestMetadata: wholeMetadata({ kmsOperation: 'Decrypt' }),
    encryptionAlgorithm: 'AES_GCM',
    ...sealed,
  });
const metadata = ({ configuration, keyId }: Door): Promise<CallerAnswer> =>
  caller.send(configuration, `/keys/${keyId}/metadata`, { requestMetadata: wholeMetadata() });
const health = ({ configuration }: Door): Promise<CallerAnswer> =>
  caller.send(configuration, '/health', { requestMetadata: wholeMetadata() });
const seal = async (door: Door): Promise<Members> => {
  const answer = await encrypt(door);
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};
/** What the four operations answer: 200 or an errorName. */
const answers = async (door: Door, sealed: Members): Promise<readonly (string | number)[]> =>
  (await Promise.all([health(door), metadata(door), encrypt(door), decrypt(door, sealed)])).map(
    ({ status, errorName }) => errorName ?? status,
  );
const all = (answer: string | number): readonly (string | number)[] => [answer, answer, answer, answer];
const keysOnly = (errorName: string): readonly (string | number)[] => [200, errorName, errorName, errorName];

describe('a key', () => {
  test('that is rotated seals with its new version, and opens what all its versions sealed', async () => {
    const { endpoint, configuration } = await makePlace();
    const door = { configuration, keyId: endpoint.keyId };
    const versionOf = (sealed: Members): number =>
      Buffer.from(String(sealed.ciphertextMetadata), 'base64').readUIntBE(1, 3);
    const sealed: Members[] = [await seal(door)];
    for (let version = 2; version <= 5; version += 1) {
      await site.api.call('POST', `/api/keys/${door.keyId}/rotate`);
      sealed.push(await seal(door));
      expect(await metadata(door)).toMatchObject({ body: { keySpec: 'AES_256', keyStatus: 'ENABLED' } });
    }
    expect(sealed.map(versionOf)).toEqual([1, 2, 3, 4, 5]);
    for (const each of sealed) expect((await decrypt(door, each)).body).toEqual({ plaintext });
  });
  test('tells when it was last used and through which endpoint; what is not a use of it does not count', async () => {
    const place = await makePlace();
    const [door, other] = [doorOf(place), doorOf(await makePlace())];
    const { id, name } = place.endpoint;
    const use = (key: string) => site.api.call<KeyUse>('GET', `/api/keys/${key}/use`);
    expect([(await health(door)).status, (await metadata(door)).status]).toEqual([200, 200]);
    expect((await decrypt(door, await seal(other))).status).toBe(400);
    // Uses are written in order: when this one is visible, the earlier ones would be too.
    await expect.poll(async () => (await use(other.keyId)).lastUsedAt).not.toBeNull();
    const copies = { count: 0, items: [] };
    const before = { keyId: door.keyId, copies, firstUsedAt: null, lastUsedAt: null, application: null };
    expect(await use(door.keyId)).toEqual({
      ...before,
      endpoints: [{ id, name, state: 'enabled', lastUsedAt: null, lastRequestAt: expect.any(String) }],
    });
    await seal(door);
    await expect.poll(async () => (await use(door.keyId)).lastUsedAt).not.toBeNull();
    const after = await use(door.keyId);
    expect(after.endpoints).toMatchObject([{ id, lastUsedAt: after.lastUsedAt }]);
    const lastUsedAt = String(after.lastUsedAt);
    expect(await site.api.call('GET', `/api/keys/${door.keyId}`)).toMatchObject({
      firstUsedAt: lastUsedAt,
      lastUsedAt,
    });
    const { plan } = await site.api.call<DeletedKey>('DELETE', `/api/keys/${door.keyId}?dryRun=true`);
    expect(plan?.impact).toEqual({ endsForGood: true, endpoints: [name], lastUsedAt, lastUsedBy: name });
    // The last use through a deleted endpoint stays known.
    await site.api.call('DELETE', `/api/endpoints/${id}`);
    const gone = await site.api.call<DeletedKey>('DELETE', `/api/keys/${door.keyId}?dryRun=true`);
    expect(gone.plan?.impact).toEqual({ endsForGood: true, endpoints: [], lastUsedAt, lastUsedBy: name });
  });
  test('opens no ciphertext whose version was changed to another of its own', async () => {
    const door = doorOf(await makePlace());
    await site.api.call('POST', `/api/keys/${door.keyId}/rotate`);
    const sealed = await seal(door);
    const changed = Buffer.from(String(sealed.ciphertextMetadata), 'base64');
    changed.writeUIntBE(1, 1, 3);
    expect(await decrypt(door, { ...sealed, ciphertextMetadata: changed.toString('base64') })).toMatchObject({
      errorName: 'InvalidCiphertextException',
    });
  });
  test('opens what it sealed before the service was started again', async () => {
    const door = doorOf(await makePlace());
    const first = await seal(door);
    await site.api.call('POST', `/api/keys/${door.keyId}/rotate`);
    const second = await seal(door);
    caller.close();
    await site.stopServer();
    await site.startServer();
    caller = openXksCaller(site.server);
    for (const sealed of [first, second]) expect((await decrypt(door, sealed)).body).toEqual({ plaintext });
  });

  test('that is disabled says so, and does nothing until it is enabled', async () => {
    const door = doorOf(await makePlace());
    const sealed = await seal(door);
    await site.api.call('POST', `/api/keys/${door.keyId}/disable`);
    expect((await metadata(door)).body).toMatchObject({ keyStatus: 'DISABLED' });
    expect(await answers(door, sealed)).toEqual([200, 200, 'InvalidStateException', 'InvalidStateException']);
    await site.api.call('POST', `/api/keys/${door.keyId}/enable`);
    expect((await metadata(door)).body).toMatchObject({ keyStatus: 'ENABLED' });
    expect((await decrypt(door, sealed)).body).toEqual({ plaintext });
  });
  test('that is disabled says so of a ciphertext that is not its own, too', async () => {
    const door = doorOf(await makePlace());
    const sealed = { ...(await seal(door)), ciphertextMetadata: Buffer.alloc(20, 9).toString('base64') };
    await site.api.call('POST', `/api/keys/${door.keyId}/disable`);
    expect(await decrypt(door, sealed)).toMatchObject({ errorName: 'InvalidStateException' });
  });
  test('that is soft-deleted is no longer there', async () => {
    const door = doorOf(await makePlace());
    const sealed = await seal(door);
    await site.api.call('DELETE', `/api/keys/${door.keyId}`);
    expect(await answers(door, sealed)).toEqual(keysOnly('KeyNotFoundException'));
    expect((await site.api.send('POST', `/api/keys/${door.keyId}/enable`)).status).toBeGreaterThanOrEqual(200);
    expect(await answers(door, sealed)).toEqual(keysOnly('KeyNotFoundException'));
  });
  test('of another endpoint is not found here, and opens no ciphertext of this one', async () => {
    const [here, there] = [doorOf(await makePlace()), doorOf(await makePlace())];
    const sealed = await seal(here);
    expect(await answers({ ...here, keyId: there.keyId }, sealed)).toEqual(keysOnly('KeyNotFoundException'));
    expect(await decrypt(there, sealed)).toMatchObject({ errorName: 'InvalidCiphertextException' });
    // A ciphertext that claims the other key's salt, version and vector.
    const other = await seal(there);
    expect(await decrypt(there, { ...other, ciphertext: sealed.ciphertext })).toMatchObject({
      errorName: 'InvalidCiphertextException',
    });
  });
  test('of the same vault that is not the key of the endpoint is not found', async () => {
    const { endpoint, configuration } = await makePlace();
    const { vaultId } = endpoint;
    const { id: keyId } = await site.api.call<{ readonly id: string }>('POST', '/api/keys', {
      name: 'beside',
      vaultId,
    });
    const second = await site.api.call<Endpoint>('POST', '/api/endpoints', { name: 'beside', vaultId, keyId });
    const own = await site.api.call<ProxyConfiguration>('POST', `/api/endpoints/${second.id}/credentials`);
    const sealed = await seal({ configuration: own, keyId });
    expect(await answers({ configuration, keyId }, sealed)).toEqual(keysOnly('KeyNotFoundException'));
  });
  test('opens what it sealed through any endpoint of its own', async () => {
    const { endpoint, configuration } = await makePlace();
    const { vaultId, keyId } = endpoint;
    const second = await site.api.call<Endpoint>('POST', '/api/endpoints', {
      name: `${endpoint.name}-b`,
      vaultId,
      keyId,
    });
    const credential = await site.api.call<ProxyConfiguration>('POST', `/api/endpoints/${second.id}/credentials`);
    const sealed = await seal({ configuration, keyId });
    expect((await decrypt({ configuration: credential, keyId }, sealed)).body).toEqual({ plaintext });
    await site.api.call('DELETE', `/api/endpoints/${endpoint.id}`);
    expect((await decrypt({ configuration: credential, keyId }, sealed)).body).toEqual({ plaintext });
    await site.api.call('DELETE', `/api/keys/${keyId}`);
    expect(await decrypt({ configuration: credential, keyId }, sealed)).toMatchObject({
      errorName: 'KeyNotFoundException',
    });
  });
});

describe('a vault', () => {
  test('that is disabled hides its key until it is enabled', async () => {
    const { endpoint, configuration } = await makePlace();
    const door = { configuration, keyId: endpoint.keyId };
    const sealed = await seal(door);
    await site.api.call('POST', `/api/vaults/${endpoint.vaultId}/disable`);
    expect(await answers(door, sealed)).toEqual(keysOnly('KeyNotFoundException'));
    await site.api.call('POST', `/api/vaults/${endpoint.vaultId}/enable`);
    expect(await answers(door, sealed)).toEqual(all(200));
  });
  test('that is deleted hides its key permanently', async () => {
    const { endpoint, configuration } = await makePlace();
    const door = { configuration, keyId: endpoint.keyId };
    const sealed = await seal(door);
    const removed = await site.api.send('DELETE', `/api/vaults/${endpoint.vaultId}`);
    // A vault may have to be empty first.
    if (removed.status >= 400) {
      expect(removed.status).toBe(409);
      await site.api.call('DELETE', `/api/keys/${endpoint.keyId}`);
      await site.api.call('DELETE', `/api/vaults/${endpoint.vaultId}`);
    }
    expect(await answers(door, sealed)).toEqual(keysOnly('KeyNotFoundException'));
  });
});

describe('an endpoint', () => {
  test('that is disabled answers nothing until it is enabled', async () => {
    const { endpoint, configuration } = await makePlace();
    const door = { configuration, keyId: endpoint.keyId };
    const sealed = await seal(door);
    await site.api.call('POST', `/api/endpoints/${endpoint.id}/disable`);
    expect(await answers(door, sealed)).toEqual(all('InvalidStateException'));
    await site.api.call('POST', `/api/endpoints/${endpoint.id}/enable`);
    expect(await answers(door, sealed)).toEqual(all(200));
  });
  test('that is deleted no longer has a path, and its prefix is not given again', async () => {
    const { endpoint, configuration } = await makePlace();
    const door = { configuration, keyId: endpoint.keyId };
    const sealed = await seal(door);
    await site.api.call('DELETE', `/api/endpoints/${endpoint.id}`);
    expect(await answers(door, sealed)).toEqual(all('InvalidUriPathException'));
    const { vaultId, keyId, prefix } = endpoint;
    const again = await site.api.send('POST', '/api/endpoints', { name: 'again', vaultId, keyId, prefix });
    expect(again.status).toBe(409);
  });
  test('that is disabled answers no unsigned question either', async () => {
    const { endpoint, configuration } = await makePlace();
    await site.api.call('POST', `/api/endpoints/${endpoint.id}/disable`);
    const answer = await caller.send(configuration, '/health', {}, { unsigned: true });
    expect(answer).toMatchObject({ errorName: 'InvalidStateException' });
  });
});

describe('credentials', () => {
  const credentialsOf = async ({ endpoint }: XksEndpoint): Promise<readonly EndpointCredential[]> =>
    (await site.api.call<Endpoint>('GET', `/api/endpoints/${endpoint.id}`)).credentials;
  const add = ({ endpoint }: XksEndpoint): Promise<ProxyConfiguration> =>
    site.api.call('POST', `/api/endpoints/${endpoint.id}/credentials`);
  const idOf = ({ XksProxyAuthenticationCredential: { AccessKeyId } }: ProxyConfiguration) => AccessKeyId;

  test('have the form that the cloud takes, and are never the same twice', async () => {
    const place = await makePlace();
    const both = [place.configuration, await add(place)].map((each) => each.XksProxyAuthenticationCredential);
    for (const { AccessKeyId, RawSecretAccessKey } of both) {
      expect(AccessKeyId).toMatch(/^[A-Z2-7]{20,30}$/);
      expect(RawSecretAccessKey).toMatch(/^[A-Za-z0-9/+=]{43,64}$/);
    }
    expect(new Set(both.flatMap((each) => Object.values(each))).size).toBe(4);
  });

  test('are two at most', async () => {
    const place = await makePlace();
    await add(place);
    expect((await site.api.send('POST', `/api/endpoints/${place.endpoint.id}/credentials`)).status).toBe(409);
  });

  test('are rotated: both are good, the last use of each is seen, the first is removed and is good for nothing at once', async () => {
    const place = await makePlace();
    const keyId = place.endpoint.keyId;
    const first: Door = { configuration: place.configuration, keyId };
    const sealed = await seal(first);
    const second: Door = { configuration: await add(place), keyId };
    const used = async (): Promise<readonly (number | boolean)[]> => {
      const found = await credentialsOf(place);
      return [first, second].map(({ configuration }) => {
        const at = found.find(({ accessKeyId }) => accessKeyId === idOf(configuration))?.lastUsedAt ?? null;
        return at === null ? false : new Date(at).getTime();
      });
    };
    await expect.poll(used).toEqual([expect.any(Number), false]);
    expect((await decrypt(second, sealed)).body).toEqual({ plaintext });
    await expect.poll(used).toEqual([expect.any(Number), expect.any(Number)]);
    const [firstAt, secondAt] = await used();
    expect(Number(secondAt)).toBeGreaterThanOrEqual(Number(firstAt));

    const removed = (await credentialsOf(place)).find(({ accessKeyId }) => accessKeyId === idOf(first.configuration));
    await site.api.call('DELETE', `/api/endpoints/${place.endpoint.id}/credentials/${removed?.id}`);
    expect(await answers(first, sealed)).toEqual(all('AuthenticationFailedException'));
    expect(await answers(second, sealed)).toEqual(all(200));
    // There is room for the next.
    await add(place);
  });

  test('that were refused count as unused', async () => {
    const place = await makePlace();
    const { configuration, endpoint } = place;
    const { AccessKeyId } = configuration.XksProxyAuthenticationCredential;
    const forged: ProxyConfiguration = {
      ...configuration,
      XksProxyAuthenticationCredential: { AccessKeyId, RawSecretAccessKey: 'x'.repeat(64) },
    };
    expect(await encrypt({ configuration: forged, keyId: endpoint.keyId })).toMatchObject({ status: 401 });
    // Uses are written in order: when this one is visible, the refused one would be too.
    const other = doorOf(await makePlace());
    await seal(other);
    const seen = async () => {
      const items = (await site.api.call<{ items: Endpoint[] }>('GET', '/api/endpoints?limit=200')).items;
      return items
        .flatMap((item) => item.credentials)
        .find(({ accessKeyId }) => accessKeyId === idOf(other.configuration))?.lastUsedAt;
    };
    await expect.poll(seen).toEqual(expect.anything());
    expect((await credentialsOf(place))[0]?.lastUsedAt).toBeNull();
  });

  test('of another endpoint are good for nothing here', async () => {
    const [here, there] = [await makePlace(), await makePlace()];
    const door: Door = {
      keyId: here.endpoint.keyId,
      configuration: {
        ...here.configuration,
        XksProxyAuthenticationCredential: there.configuration.XksProxyAuthenticationCredential,
      },
    };
    const sealed = await seal(doorOf(here));
    expect(await answers(door, sealed)).toEqual(all('AuthenticationFailedException'));
  });
});

test('no answer and no record of a request has a key, a plaintext or a secret in it', async () => {
  const place = await makePlace();
  const door = doorOf(place);
  const sealed = await seal(door);
  await decrypt(door, sealed);
  await decrypt(door, { ...sealed, ciphertext: plaintext });
  const { RawSecretAccessKey } = place.configuration.XksProxyAuthenticationCredential;
  const log = async (): Promise<string> =>
    (await site.api.send('GET', `/api/endpoints/${place.endpoint.id}/requests`)).text;
  await expect.poll(log).toContain('InvalidCiphertextException');
  const written = (await log()) + site.server.log() + (await site.api.send('GET', '/api/audit?limit=1000')).text;
  for (const secret of [plaintext, Buffer.from(plaintext, 'base64').toString(), RawSecretAccessKey])
    expect(written).not.toContain(secret);
});
