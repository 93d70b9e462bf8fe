// `dke cloud` against a real `dke server`, both as processes over HTTPS, driven by the AWS SDK and
// the AWS command: each fault is the exception, and for ConnectCustomKeyStore the
// ConnectionErrorCode, that the cloud's key service has for it.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  ConnectCustomKeyStoreCommand,
  CreateCustomKeyStoreCommand,
  CreateKeyCommand,
  DecryptCommand,
  DeleteCustomKeyStoreCommand,
  DescribeCustomKeyStoresCommand,
  DescribeKeyCommand,
  DisconnectCustomKeyStoreCommand,
  EncryptCommand,
  GenerateDataKeyCommand,
  GenerateDataKeyWithoutPlaintextCommand,
  KMSClient,
  ReEncryptCommand,
  UpdateCustomKeyStoreCommand,
} from '@aws-sdk/client-kms';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { ProxyConfiguration } from '../../server/contract/api/endpoints-routes.ts';
import { type CloudProcess, type Gate, openGate, startCloudProcess } from '../support/cloud-process.ts';
import { type ConsoleApi, openConsoleApi } from '../support/console-api.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';

let folder: string;
let server: ServerProcess;
let stranger: ServerProcess;
let cloud: CloudProcess;
let gate: Gate;
let api: ConsoleApi;
let vaultId: string;
let kms: KMSClient;

const clientWith = (accessKeyId: string, secretAccessKey: string): KMSClient =>
  new KMSClient({
    endpoint: cloud.url,
    region: 'us-east-1',
    credentials: { accessKeyId, secretAccessKey },
    maxAttempts: 1,
    requestHandler: { httpsAgent: new Agent({ ca: readFileSync(cloud.certificateFile) }) },
  });

const credentials = (): readonly [string, string] => {
  const text = readFileSync(cloud.credentialsFile, 'utf8');
  return [/key_id = (\S+)/.exec(text)?.[1] ?? '', /access_key = (\S+)/.exec(text)?.[1] ?? ''];
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-cloud-test-'));
  [server, stranger] = await Promise.all([startServerProcess(), startServerProcess()]);
  [cloud, gate] = await Promise.all([startCloudProcess(folder, server.caFile), openGate(server.port)]);
  api = openConsoleApi(server, server.adminToken);
  vaultId = (await api.call<{ id: string }>('POST', '/api/vaults', { name: 'cloud' })).id;
  kms = clientWith(...credentials());
});
afterEach(() => gate.lead(server.port));
afterAll(async () => {
  kms?.destroy();
  const code = await cloud?.stop();
  await gate?.close();
  await Promise.all([server?.remove(), stranger?.remove()]);
  rmSync(folder, { recursive: true, force: true });
  expect(code).toBe(0);
  expect(cloud.log()).toBe('');
});

let count = 0;
/** A key in the service and an endpoint for it. */
const makeEndpoint = async () => {
  count += 1;
  const key = await api.call<{ id: string }>('POST', '/api/keys', { name: `key-${count}`, vaultId });
  const body = { name: `endpoint-${count}`, vaultId, keyId: key.id };
  const endpoint = await api.call<{ id: string }>('POST', '/api/endpoints', body);
  const proxy = await api.call<ProxyConfiguration>('POST', `/api/endpoints/${endpoint.id}/credentials`);
  return { keyId: key.id, endpointId: endpoint.id, proxy, name: `store-${count}` };
};
type Made = Awaited<ReturnType<typeof makeEndpoint>>;

const storeInput = ({ proxy, name }: Made) =>
  ({
    CustomKeyStoreName: name,
    CustomKeyStoreType: 'EXTERNAL_KEY_STORE',
    XksProxyConnectivity: 'PUBLIC_ENDPOINT',
    XksProxyUriEndpoint: gate.url,
    ...proxy,
  }) as const;
const createStore = async (made: Made): Promise<string> =>
  (await kms.send(new CreateCustomKeyStoreCommand(storeInput(made)))).CustomKeyStoreId ?? '';
const stateOf = async (id: string) =>
  (await kms.send(new DescribeCustomKeyStoresCommand({ CustomKeyStoreId: id }))).CustomKeyStores?.[0];
/** The store after the end of its connection attempt. */
const connectStore = async (id: string) => {
  await kms.send(new ConnectCustomKeyStoreCommand({ CustomKeyStoreId: id }));
  return vi.waitFor(
    async () => {
      const store = await stateOf(id);
      expect(store?.ConnectionState).not.toBe('CONNECTING');
      return store;
    },
    { timeout: 300_000 },
  );
};
const makeKey = async (storeId: string, xksKeyId: string): Promise<string> => {
  const input = { Origin: 'EXTERNAL_KEY_STORE', CustomKeyStoreId: storeId, XksKeyId: xksKeyId } as const;
  return (await kms.send(new CreateKeyCommand(input))).KeyMetadata?.KeyId ?? '';
};
const openStore = async () => {
  const made = await makeEndpoint();
  const storeId = await createStore(made);
  expect(await connectStore(storeId)).toMatchObject({ ConnectionState: 'CONNECTED' });
  return { ...made, storeId, KeyId: await makeKey(storeId, made.keyId) };
};
const refused = (work: Promise<unknown>, name: string) => expect(work).rejects.toMatchObject({ name });

const Plaintext = Buffer.from('what is to be kept');
const EncryptionContext = { project: 'nile', department: 'marketing' };
const encrypt = (KeyId: string) => kms.send(new EncryptCommand({ KeyId, Plaintext, EncryptionContext }));

test('a store lives from its creation to its deletion', async () => {
  const made = await makeEndpoint();
  const CustomKeyStoreId = await createStore(made);
  await refused(createStore(made), 'CustomKeyStoreNameInUseException');
  await refused(createStore({ ...made, name: 'another' }), 'XksProxyUriInUseException');
  await refused(makeKey(CustomKeyStoreId, made.keyId), 'CustomKeyStoreInvalidStateException');
  expect(await stateOf(CustomKeyStoreId)).toMatchObject({
    CustomKeyStoreName: made.name,
    ConnectionState: 'DISCONNECTED',
    XksProxyConfiguration: { UriEndpoint: gate.url, UriPath: made.proxy.XksProxyUriPath },
  });
  expect(await connectStore(CustomKeyStoreId)).toMatchObject({ ConnectionState: 'CONNECTED' });
  await refused(kms.send(new DeleteCustomKeyStoreCommand({ CustomKeyStoreId })), 'CustomKeyStoreInvalidStateException');
  const renamed = `${made.name}-renamed`;
  const second = await api.call<ProxyConfiguration>('POST', `/api/endpoints/${made.endpointId}/credentials`);
  const { XksProxyAuthenticationCredential } = second;
  await kms.send(
    new UpdateCustomKeyStoreCommand({
      CustomKeyStoreId,
      NewCustomKeyStoreName: renamed,
      XksProxyAuthenticationCredential,
    }),
  );
  expect(await stateOf(CustomKeyStoreId)).toMatchObject({
    CustomKeyStoreName: renamed,
    XksProxyConfiguration: { AccessKeyId: XksProxyAuthenticationCredential.AccessKeyId },
  });
  await kms.send(new DisconnectCustomKeyStoreCommand({ CustomKeyStoreId }));
  await kms.send(new DeleteCustomKeyStoreCommand({ CustomKeyStoreId }));
  await refused(stateOf(CustomKeyStoreId), 'CustomKeyStoreNotFoundException');
});

describe('a key in a connected store', () => {
  let KeyId: string;
  let storeId: string;
  let keyId: string;
  beforeAll(async () => {
    ({ KeyId, storeId, keyId } = await openStore());
  });

  test('says what it is, and is one of its external key', async () => {
    const { KeyMetadata } = await kms.send(new DescribeKeyCommand({ KeyId }));
    expect(KeyMetadata).toMatchObject({
      Origin: 'EXTERNAL_KEY_STORE',
      KeyState: 'Enabled',
      CustomKeyStoreId: storeId,
      XksKeyConfiguration: { Id: keyId },
    });
    await refused(makeKey(storeId, keyId), 'XksKeyAlreadyInUseException');
    await refused(makeKey(storeId, 'no-such-key'), 'XksKeyNotFoundException');
    await refused(makeKey(storeId, keyId.toUpperCase()), 'XksKeyNotFoundException');
    await refused(kms.send(new DescribeKeyCommand({ KeyId: 'nobody' })), 'NotFoundException');
  });

  test.each([1, 2, 3, 32, 4096])('opens what it sealed: %i bytes', async (length) => {
    const sent = Buffer.alloc(length, 0xfb);
    const { CiphertextBlob } = await kms.send(new EncryptCommand({ KeyId, Plaintext: sent, EncryptionContext }));
    const opened = await kms.send(new DecryptCommand({ CiphertextBlob, EncryptionContext }));
    expect(Buffer.from(opened.Plaintext ?? []).equals(sent)).toBe(true);
  });

  test('makes data keys', async () => {
    const made = await kms.send(new GenerateDataKeyCommand({ KeyId, KeySpec: 'AES_256', EncryptionContext }));
    const { CiphertextBlob } = made;
    const opened = await kms.send(new DecryptCommand({ KeyId, CiphertextBlob, EncryptionContext }));
    expect(made.Plaintext).toHaveLength(32);
    expect(opened.Plaintext).toEqual(made.Plaintext);
    const hidden = await kms.send(new GenerateDataKeyWithoutPlaintextCommand({ KeyId, NumberOfBytes: 16 }));
    expect(hidden).not.toHaveProperty('Plaintext');
    const shown = await kms.send(new DecryptCommand({ CiphertextBlob: hidden.CiphertextBlob }));
    expect(shown.Plaintext).toHaveLength(16);
  });

  test('hands over to another key', async () => {
    const other = await openStore();
    const { CiphertextBlob } = await encrypt(KeyId);
    const moved = await kms.send(
      new ReEncryptCommand({
        CiphertextBlob,
        SourceEncryptionContext: EncryptionContext,
        DestinationKeyId: other.KeyId,
      }),
    );
    const opened = await kms.send(new DecryptCommand({ CiphertextBlob: moved.CiphertextBlob, KeyId: other.KeyId }));
    expect(Buffer.from(opened.Plaintext ?? [])).toEqual(Plaintext);
    await refused(
      kms.send(new DecryptCommand({ CiphertextBlob, KeyId: other.KeyId, EncryptionContext })),
      'IncorrectKeyException',
    );
  });

  test('refuses another encryption context and every changed byte', async () => {
    const { CiphertextBlob = new Uint8Array() } = await encrypt(KeyId);
    await refused(kms.send(new DecryptCommand({ CiphertextBlob })), 'InvalidCiphertextException');
    for (const place of [0, 1, 17, 18, 19, 35, 60, CiphertextBlob.length - 1]) {
      const changed = Buffer.from(CiphertextBlob);
      changed[place] = (changed[place] ?? 0) ^ 1;
      await refused(
        kms.send(new DecryptCommand({ CiphertextBlob: changed, EncryptionContext })),
        'InvalidCiphertextException',
      );
    }
  });

  test('is unavailable while its store is disconnected, and keeps the store', async () => {
    await kms.send(new DisconnectCustomKeyStoreCommand({ CustomKeyStoreId: storeId }));
    await refused(encrypt(KeyId), 'KMSInvalidStateException');
    await refused(
      kms.send(new DeleteCustomKeyStoreCommand({ CustomKeyStoreId: storeId })),
      'CustomKeyStoreHasCMKsException',
    );
    expect(await connectStore(storeId)).toMatchObject({ ConnectionState: 'CONNECTED' });
    await encrypt(KeyId);
  });
});

describe('faults of the proxy', () => {
  test.each<[string, () => number | 'silence' | 'end', string]>([
    ['without an answer', () => 'end', 'XKS_PROXY_NOT_REACHABLE'],
    ['that never answers', () => 'silence', 'XKS_PROXY_TIMED_OUT'],
    ['whose certificate is of no known authority', () => stranger.port, 'XKS_PROXY_INVALID_TLS_CONFIGURATION'],
  ])('one %s', async (_, where, code) => {
    const { KeyId, storeId } = await openStore();
    const fresh = await makeEndpoint();
    gate.lead(where());
    await refused(createStore(fresh), 'XksProxyUriUnreachableException');
    await refused(encrypt(KeyId), 'KMSInvalidStateException');
    await kms.send(new DisconnectCustomKeyStoreCommand({ CustomKeyStoreId: storeId }));
    expect(await connectStore(storeId)).toMatchObject({ ConnectionState: 'FAILED', ConnectionErrorCode: code });
    gate.lead(server.port);
    expect(await connectStore(storeId)).toMatchObject({ ConnectionState: 'CONNECTED' });
    await encrypt(KeyId);
  });

  test('one that no longer knows the credential', async () => {
    const { KeyId, storeId, endpointId } = await openStore();
    const { credentials: known } = await api.call<{ credentials: { id: string }[] }>(
      'GET',
      `/api/endpoints/${endpointId}`,
    );
    await api.call('DELETE', `/api/endpoints/${endpointId}/credentials/${known[0]?.id}`);
    await refused(encrypt(KeyId), 'KMSInvalidStateException');
    await kms.send(new DisconnectCustomKeyStoreCommand({ CustomKeyStoreId: storeId }));
    expect(await connectStore(storeId)).toMatchObject({ ConnectionErrorCode: 'INVALID_CREDENTIALS' });
  });

  test('a wrong secret and a wrong prefix', async () => {
    const made = await makeEndpoint();
    const { AccessKeyId } = made.proxy.XksProxyAuthenticationCredential;
    const wrong = { AccessKeyId, RawSecretAccessKey: 'A'.repeat(64) };
    await refused(
      createStore({ ...made, proxy: { ...made.proxy, XksProxyAuthenticationCredential: wrong } }),
      'XksProxyIncorrectAuthenticationCredentialException',
    );
    await refused(
      createStore({ ...made, proxy: { ...made.proxy, XksProxyUriPath: '/xks/nowhere/kms/xks/v1' } }),
      'XksProxyInvalidConfigurationException',
    );
  });

  test('an endpoint that was deleted', async () => {
    const { storeId, endpointId } = await openStore();
    await kms.send(new DisconnectCustomKeyStoreCommand({ CustomKeyStoreId: storeId }));
    await api.call('DELETE', `/api/endpoints/${endpointId}`);
    expect(await connectStore(storeId)).toMatchObject({ ConnectionErrorCode: 'XKS_PROXY_INVALID_CONFIGURATION' });
  });

  test.each([
    ['disabled', 'POST', '/disable', 'XksKeyInvalidConfigurationException'],
    ['deleted', 'DELETE', '', 'XksKeyNotFoundException'],
  ] as const)('an external key that is %s', async (_, method, path, name) => {
    const { KeyId, keyId } = await openStore();
    const fresh = await makeEndpoint();
    const storeId = await createStore(fresh);
    await connectStore(storeId);
    for (const id of [keyId, fresh.keyId]) await api.call(method, `/api/keys/${id}${path}`);
    await refused(encrypt(KeyId), 'KMSInvalidStateException');
    await refused(makeKey(storeId, fresh.keyId), name);
  });
});

describe('callers', () => {
  test('who sign wrongly learn nothing', async () => {
    const [accessKeyId, secret] = credentials();
    for (const [client, name] of [
      [clientWith(accessKeyId, `${secret}x`), 'InvalidSignatureException'],
      [clientWith(`${accessKeyId.slice(0, -1)}8`, secret), 'UnrecognizedClientException'],
    ] as const) {
      await refused(client.send(new DescribeCustomKeyStoresCommand({})), name);
      client.destroy();
    }
  });

  test('may be the AWS command', async () => {
    const { KeyId } = await openStore();
    const plain = join(folder, 'plain');
    writeFileSync(plain, Plaintext);
    const run = async (...args: readonly string[]): Promise<string> => {
      const general = ['--endpoint-url', cloud.url, '--ca-bundle', cloud.certificateFile, '--region', 'us-east-1'];
      const environment = { AWS_SHARED_CREDENTIALS_FILE: cloud.credentialsFile, AWS_CONFIG_FILE: join(folder, 'none') };
      const { stdout } = await promisify(execFile)('aws', ['kms', ...args, ...general, '--output', 'text'], {
        env: { PATH: process.env.PATH, HOME: folder, ...environment },
      });
      return stdout.trim();
    };
    const blob = await run(
      'encrypt',
      '--key-id',
      KeyId,
      '--plaintext',
      `fileb://${plain}`,
      '--query',
      'CiphertextBlob',
    );
    const sealed = join(folder, 'sealed');
    writeFileSync(sealed, Buffer.from(blob, 'base64'));
    const opened = await run('decrypt', '--ciphertext-blob', `fileb://${sealed}`, '--query', 'Plaintext');
    expect(Buffer.from(opened, 'base64')).toEqual(Plaintext);
    await expect(run('describe-key', '--key-id', 'nobody')).rejects.toThrow('NotFoundException');
  });
});
