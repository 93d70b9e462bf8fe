// `dke cloud` in front of a proxy that misbehaves in every way there is, driven by the AWS SDK:
// each fault is the exception that the cloud's key service has for it, by operation, and for
// ConnectCustomKeyStore the ConnectionErrorCode that its documentation names.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  ConnectCustomKeyStoreCommand,
  CreateCustomKeyStoreCommand,
  CreateKeyCommand,
  DecryptCommand,
  DescribeCustomKeyStoresCommand,
  DisconnectCustomKeyStoreCommand,
  EncryptCommand,
  GenerateDataKeyCommand,
  type KMSClient,
  ReEncryptCommand,
  UpdateCustomKeyStoreCommand,
} from '@aws-sdk/client-kms';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Authority, makeAuthority } from '../support/authority.ts';
import { type CloudProcess, kmsClientOf, startCloudProcess } from '../support/cloud-process.ts';
import {
  answerWith,
  type Json,
  type Misdeed,
  type ProxyOperation,
  type ScriptedProxy,
  startScriptedProxy,
} from '../support/scripted-proxy.ts';
import { signXksRequest } from '../support/sign.ts';

const budgetMs = 2_000;
let folder: string;
let authority: Authority;
let proxy: ScriptedProxy;
let cloud: CloudProcess;
let kms: KMSClient;
const goodCertificate = () =>
  authority.issue({ commonName: '127.0.0.1', names: ['IP:127.0.0.1', 'DNS:localhost'], usage: 'serverAuth' });
let good: ReturnType<typeof goodCertificate>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-cloud-faults-'));
  authority = makeAuthority(folder, 'proxies');
  good = goodCertificate();
  proxy = await startScriptedProxy(good);
  cloud = await startCloudProcess(folder, authority.certificate, budgetMs);
  kms = kmsClientOf(cloud);
});
afterAll(async () => {
  kms?.destroy();
  const code = await cloud?.stop();
  await proxy?.close();
  rmSync(folder, { recursive: true, force: true });
  expect(code).toBe(0);
  expect(cloud.log()).toBe('');
});
afterEach(() => proxy.show(good));

const accessKeyId = 'AKIDTESTTESTTESTTEST';
const secretAccessKey = 'wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYwJalrXUtn';
const Plaintext = Buffer.from('what is to be kept');
const EncryptionContext = { project: 'nile' };
let count = 0;
const newPrefix = (): string => {
  count += 1;
  return `store${count}`;
};

const createStore = async (prefix: string, uriEndpoint = proxy.url): Promise<string> => {
  const answer = await kms.send(
    new CreateCustomKeyStoreCommand({
      CustomKeyStoreName: `${prefix}-${randomUUID()}`,
      CustomKeyStoreType: 'EXTERNAL_KEY_STORE',
      XksProxyConnectivity: 'PUBLIC_ENDPOINT',
      XksProxyUriEndpoint: uriEndpoint,
      XksProxyUriPath: `/${prefix}/kms/xks/v1`,
      XksProxyAuthenticationCredential: { AccessKeyId: accessKeyId, RawSecretAccessKey: secretAccessKey },
    }),
  );
  return answer.CustomKeyStoreId ?? '';
};
/** The state of the store after the end of its connection attempt, or the ConnectionErrorCode. */
const connect = async (CustomKeyStoreId: string): Promise<string> => {
  await kms.send(new ConnectCustomKeyStoreCommand({ CustomKeyStoreId }));
  return vi.waitFor(
    async () => {
      const { CustomKeyStores } = await kms.send(new DescribeCustomKeyStoresCommand({ CustomKeyStoreId }));
      const store = CustomKeyStores?.[0];
      if (store?.ConnectionState === 'CONNECTING') throw new Error('still connecting');
      return store?.ConnectionErrorCode ?? store?.ConnectionState ?? '';
    },
    { timeout: 300_000 },
  );
};
const disconnect = (CustomKeyStoreId: string) => kms.send(new DisconnectCustomKeyStoreCommand({ CustomKeyStoreId }));
const createKey = async (CustomKeyStoreId: string): Promise<string> => {
  const input = { Origin: 'EXTERNAL_KEY_STORE', CustomKeyStoreId, XksKeyId: `key-${randomUUID()}` } as const;
  return (await kms.send(new CreateKeyCommand(input))).KeyMetadata?.KeyId ?? '';
};
const encrypt = (KeyId: string) => kms.send(new EncryptCommand({ KeyId, Plaintext, EncryptionContext }));
const decrypt = (CiphertextBlob: Uint8Array | undefined) =>
  kms.send(new DecryptCommand({ CiphertextBlob, EncryptionContext }));
/** The name of the exception, or `none`. */
const exceptionOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'none',
    (error: unknown) => (error as Error).name,
  );

/** A connected store with a key and something that the key sealed. */
const openStore = async () => {
  const prefix = newPrefix();
  const storeId = await createStore(prefix);
  expect(await connect(storeId)).toBe('CONNECTED');
  const KeyId = await createKey(storeId);
  const { CiphertextBlob } = await encrypt(KeyId);
  return { prefix, storeId, KeyId, CiphertextBlob };
};

const refuse =
  (status: number, errorName: string): Misdeed =>
  (outgoing) =>
    answerWith(outgoing, status, { errorName, errorMessage: 'no' });
const say =
  (status: number, text: string, headers: Readonly<Record<string, string>> = {}): Misdeed =>
  (outgoing) => {
    outgoing.writeHead(status, { 'content-length': Buffer.byteLength(text), ...headers }).end(text);
  };

interface Names {
  readonly create: string;
  readonly connect: string;
  readonly createKey: string;
  readonly use: string;
}
const names = (create: string, connectCode: string): Names => ({
  create,
  connect: connectCode,
  createKey: 'CustomKeyStoreInvalidStateException',
  use: 'KMSInvalidStateException',
});
const unreachable = names('XksProxyUriUnreachableException', 'XKS_PROXY_NOT_REACHABLE');
const timedOut = names('XksProxyUriUnreachableException', 'XKS_PROXY_TIMED_OUT');
const invalidResponse = names('XksProxyInvalidResponseException', 'XKS_PROXY_INVALID_RESPONSE');
const credential = names('XksProxyIncorrectAuthenticationCredentialException', 'INVALID_CREDENTIALS');
const wrongTls = names('XksProxyUriUnreachableException', 'XKS_PROXY_INVALID_TLS_CONFIGURATION');

/** Every operation of the cloud while the fault lasts, and once it is over. */
const expectFault = async (expected: Names, begin: (prefix: string) => void, end: (prefix: string) => void) => {
  const { prefix, storeId, KeyId, CiphertextBlob } = await openStore();
  const fresh = newPrefix();
  for (const each of [prefix, fresh]) begin(each);
  const found = {
    create: await exceptionOf(createStore(fresh)),
    update: await exceptionOf(
      kms.send(
        new UpdateCustomKeyStoreCommand({
          CustomKeyStoreId: storeId,
          XksProxyAuthenticationCredential: { AccessKeyId: accessKeyId, RawSecretAccessKey: secretAccessKey },
        }),
      ),
    ),
    createKey: await exceptionOf(createKey(storeId)),
    encrypt: await exceptionOf(encrypt(KeyId)),
    decrypt: await exceptionOf(decrypt(CiphertextBlob)),
    connect: await disconnect(storeId).then(() => connect(storeId)),
  };
  expect(found).toEqual({
    create: expected.create,
    update: expected.create,
    createKey: expected.createKey,
    encrypt: expected.use,
    decrypt: expected.use,
    connect: expected.connect,
  });
  for (const each of [prefix, fresh]) end(each);
  expect(await connect(storeId)).toBe('CONNECTED');
  expect(Buffer.from((await decrypt(CiphertextBlob)).Plaintext ?? [])).toEqual(Plaintext);
};
const runFaults = (rows: readonly (readonly [string, Misdeed, Names])[]): void => {
  test.each(rows)('%s', (_what, misdeed, expected) =>
    expectFault(
      expected,
      (prefix) => proxy.tell(prefix, misdeed),
      (prefix) => proxy.tell(prefix, undefined),
    ),
  );
};

test('a proxy of another vendor, with vectors of 16 bytes and no metadata, is used as ours is', async () => {
  const { KeyId, CiphertextBlob, prefix } = await openStore();
  expect(Buffer.from((await decrypt(CiphertextBlob)).Plaintext ?? [])).toEqual(Plaintext);
  const made = await kms.send(new GenerateDataKeyCommand({ KeyId, KeySpec: 'AES_256' }));
  expect((await kms.send(new DecryptCommand({ CiphertextBlob: made.CiphertextBlob }))).Plaintext).toEqual(
    made.Plaintext,
  );
  // What it was sent is not a plaintext of ours, and is signed as an independent signer signs it.
  const seen = proxy.requests.filter(({ path }) => path.startsWith(`/${prefix}/`));
  expect(seen.map(({ operation }) => operation)).toEqual(
    expect.arrayContaining(['health', 'metadata', 'encrypt', 'decrypt']),
  );
  for (const { path, headers, text, body } of seen) {
    expect(text).not.toContain(Plaintext.toString('base64').slice(0, 20));
    expect((body.requestMetadata as Json).kmsRequestId).toMatch(/^[0-9a-f-]{36}$/);
    const stamp = String(headers['x-amz-date']).replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z');
    const signed = await signXksRequest({
      host: String(headers.host),
      path,
      body: text,
      accessKeyId,
      secretAccessKey,
      date: new Date(stamp),
    });
    expect(headers.authorization).toBe(signed.authorization);
  }
});

describe('a proxy that refuses', () => {
  runFaults([
    [
      'with AccessDenied',
      refuse(403, 'AccessDeniedException'),
      names('XksProxyInvalidConfigurationException', 'XKS_PROXY_ACCESS_DENIED'),
    ],
    ['with AuthenticationFailed', refuse(401, 'AuthenticationFailedException'), credential],
    [
      'with InvalidUriPath',
      refuse(404, 'InvalidUriPathException'),
      names('XksProxyInvalidConfigurationException', 'XKS_PROXY_INVALID_CONFIGURATION'),
    ],
    ['with Throttling', refuse(429, 'ThrottlingException'), unreachable],
    ['with DependencyTimeout', refuse(503, 'DependencyTimeoutException'), timedOut],
    ['with Internal', refuse(500, 'InternalException'), invalidResponse],
    ['with Validation', refuse(400, 'ValidationException'), invalidResponse],
    [
      'with UnsupportedOperation',
      refuse(501, 'UnsupportedOperationException'),
      names('UnsupportedOperationException', 'XKS_PROXY_INVALID_RESPONSE'),
    ],
    ['with an unknown error', refuse(400, 'TeapotException'), invalidResponse],
    ['with an error of another status', refuse(400, 'AuthenticationFailedException'), invalidResponse],
    ['with a status of another error', refuse(503, 'ValidationException'), invalidResponse],
    ['with an errorName that is a member of every object', refuse(400, 'toString'), invalidResponse],
    ['with 403 and no body', say(403, ''), invalidResponse],
    ['with 503 and a page', say(503, '<html>busy</html>', { 'content-type': 'text/html' }), invalidResponse],
    ['with a redirection', say(302, '', { location: 'https://localhost/' }), invalidResponse],
  ]);
});

describe('a proxy that answers, but not what was asked', () => {
  const brokenOff: Misdeed = (outgoing) => {
    outgoing.writeHead(200, { 'content-length': '100' });
    outgoing.write('{');
    outgoing.socket?.end();
  };
  runFaults([
    ['nothing', say(200, ''), invalidResponse],
    ['no content', (outgoing) => void outgoing.writeHead(204).end(), invalidResponse],
    ['half a document', say(200, '{"plaintext":'), invalidResponse],
    ['a list', say(200, '[]'), invalidResponse],
    ['null', say(200, 'null'), invalidResponse],
    ['a string', say(200, '"ACTIVE"'), invalidResponse],
    ['an empty object', say(200, '{}'), invalidResponse],
    ['an error with status 200', say(200, '{"errorName":"InternalException"}'), invalidResponse],
    ['the right answer with status 201', (outgoing, answer) => answerWith(outgoing, 201, answer()), invalidResponse],
    ['more than 64 KiB', say(200, `{"x":"${'x'.repeat(70_000)}"}`), invalidResponse],
    [
      'more than 64 KiB without end',
      (outgoing) => {
        outgoing.writeHead(200);
        const more = (): void => {
          while (!outgoing.destroyed && outgoing.write('x'.repeat(10_000)));
          if (!outgoing.destroyed) outgoing.once('drain', more);
        };
        more();
      },
      invalidResponse,
    ],
    ['no HTTP', (outgoing) => void outgoing.socket?.end('nonsense\r\n\r\n'), invalidResponse],
    ['nothing: it hangs up', (outgoing) => void outgoing.socket?.destroy(), unreachable],
    ['half: it hangs up', brokenOff, unreachable],
  ]);
});

describe('a proxy that is slow', () => {
  runFaults([
    ['and never answers', () => undefined, timedOut],
    ['with the body', (outgoing) => void outgoing.writeHead(200, { 'content-length': '50' }).write('{'), timedOut],
  ]);
});

describe('a proxy whose TLS is wrong', () => {
  const other = (name: string): Authority => makeAuthority(folder, name);
  const server = { commonName: '127.0.0.1', names: ['IP:127.0.0.1'], usage: 'serverAuth' } as const;
  test.each([
    ['is of an authority that is not trusted', () => other('stranger').issue(server)],
    ['is over', () => authority.issue({ ...server, notBefore: '20250101000000Z', notAfter: '20250201000000Z' })],
    ['has not begun', () => authority.issue({ ...server, notBefore: '20900101000000Z', notAfter: '20910101000000Z' })],
    ['is for another name', () => authority.issue({ ...server, names: ['DNS:other.example'] })],
    ['is for no name', () => authority.issue({ ...server, commonName: 'nobody', names: [] })],
    ['is for clients', () => authority.issue({ ...server, usage: 'clientAuth' })],
    [
      'comes without its chain',
      () => {
        const { certificate, key } = authority.below(`issuer-${randomUUID()}`).issue(server);
        // The file of the leaf alone is next to the one with the chain.
        return { certificate: certificate.replace(/crt$/, 'leaf'), key };
      },
    ],
  ])('its certificate %s', (_what, make) => {
    const wrong = make();
    return expectFault(
      wrongTls,
      () => proxy.show(wrong),
      () => proxy.show(good),
    );
  });
});

describe('an address', () => {
  /** Something that listens and closes on its own at the end of the test. */
  const listen = async (greet: (socket: import('node:net').Socket) => void) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      greet(socket);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return { port: (server.address() as AddressInfo).port, close: () => server.close() };
  };
  test('that refuses connections cannot be reached', async () => {
    const { port, close } = await listen(() => undefined);
    close();
    expect(await exceptionOf(createStore(newPrefix(), `https://127.0.0.1:${port}`))).toBe(unreachable.create);
  });
  test('that DNS does not know cannot be reached', async () => {
    expect(await exceptionOf(createStore(newPrefix(), 'https://nobody.invalid'))).toBe(unreachable.create);
  });
  test('where no TLS is spoken cannot be reached', async () => {
    const { port, close } = await listen((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    expect(await exceptionOf(createStore(newPrefix(), `https://127.0.0.1:${port}`))).toBe(wrongTls.create);
    close();
  });
  test.each([
    'http://127.0.0.1',
    'https://',
    'https://127.0.0.1/path',
    'https://a b',
    'ftp://x',
    `https://${'x'.repeat(130)}`,
  ])('%s is refused before anything is called', async (address) => {
    expect(await exceptionOf(createStore(newPrefix(), address))).toBe('ValidationException');
  });
});

/** Only one operation misbehaves: its answer is changed. */
const spoil = (prefix: string, operation: ProxyOperation, change: (answer: Json) => Json): void =>
  proxy.tell(prefix, (outgoing, answer, request) =>
    answerWith(outgoing, 200, request.operation === operation ? change(answer()) : answer()),
  );
const refuseOnly = (prefix: string, operation: ProxyOperation, status: number, errorName: string): void =>
  proxy.tell(prefix, (outgoing, answer, request) => {
    if (request.operation === operation) answerWith(outgoing, status, { errorName });
    else answerWith(outgoing, 200, answer());
  });

describe('GetHealthStatus', () => {
  const detail = { id: 'a', model: 'm', healthStatus: 'ACTIVE' };
  test.each<[string, (answer: Json) => Json, Names]>([
    ...['xksProxyFleetSize', 'xksProxyVendor', 'xksProxyModel', 'ekmVendor', 'ekmFleetDetails'].flatMap(
      (name): [string, (answer: Json) => Json, Names][] => [
        [`without ${name}`, (answer) => ({ ...answer, [name]: undefined }), invalidResponse],
        [`with ${name} null`, (answer) => ({ ...answer, [name]: null }), invalidResponse],
        [`with ${name} of another type`, (answer) => ({ ...answer, [name]: { a: 1 } }), invalidResponse],
      ],
    ),
    ['with no node', (answer) => ({ ...answer, xksProxyFleetSize: 0 }), invalidResponse],
    ['with half a node', (answer) => ({ ...answer, xksProxyFleetSize: 1.5 }), invalidResponse],
    ['with a number as text', (answer) => ({ ...answer, xksProxyFleetSize: '1' }), invalidResponse],
    ['with no key manager', (answer) => ({ ...answer, ekmFleetDetails: [] }), invalidResponse],
    [
      'with eleven key managers',
      (answer) => ({ ...answer, ekmFleetDetails: Array.from({ length: 11 }, () => detail) }),
      invalidResponse,
    ],
    ['with a key manager that is null', (answer) => ({ ...answer, ekmFleetDetails: [null] }), invalidResponse],
    [
      'with a key manager without id',
      (answer) => ({ ...answer, ekmFleetDetails: [{ ...detail, id: undefined }] }),
      invalidResponse,
    ],
    [
      'with an unknown health',
      (answer) => ({ ...answer, ekmFleetDetails: [{ ...detail, healthStatus: 'FINE' }] }),
      invalidResponse,
    ],
    [
      'with every key manager unavailable',
      (answer) => ({ ...answer, ekmFleetDetails: [{ ...detail, healthStatus: 'UNAVAILABLE' }] }),
      unreachable,
    ],
  ])('answered %s', async (_what, change, expected) => {
    const prefix = newPrefix();
    const storeId = await createStore(prefix);
    spoil(prefix, 'health', change);
    expect(await connect(storeId)).toBe(expected.connect);
    const fresh = newPrefix();
    spoil(fresh, 'health', change);
    expect(await exceptionOf(createStore(fresh))).toBe(expected.create);
  });
  test('answered with one key manager degraded and one unavailable, and unknown members, is good', async () => {
    const prefix = newPrefix();
    const storeId = await createStore(prefix);
    spoil(prefix, 'health', (answer) => ({
      ...answer,
      later: 1,
      ekmFleetDetails: [
        { ...detail, healthStatus: 'DEGRADED', later: 1 },
        { ...detail, healthStatus: 'UNAVAILABLE' },
      ],
    }));
    expect(await connect(storeId)).toBe('CONNECTED');
  });
  test('answered with an error of keys is malformed', async () => {
    const prefix = newPrefix();
    refuseOnly(prefix, 'health', 404, 'KeyNotFoundException');
    expect(await exceptionOf(createStore(prefix))).toBe(invalidResponse.create);
  });
});

describe('GetKeyMetadata', () => {
  const configuration = 'XksKeyInvalidConfigurationException';
  const state = 'CustomKeyStoreInvalidStateException';
  let store: Awaited<ReturnType<typeof openStore>>;
  beforeAll(async () => {
    store = await openStore();
  });
  afterEach(() => proxy.tell(store.prefix, undefined));

  test.each<[string, (answer: Json) => Json, string]>([
    ['without keySpec', (answer) => ({ ...answer, keySpec: undefined }), state],
    ['without keyUsage', (answer) => ({ ...answer, keyUsage: undefined }), state],
    ['without keyStatus', (answer) => ({ ...answer, keyStatus: undefined }), state],
    ['with keySpec a number', (answer) => ({ ...answer, keySpec: 256 }), state],
    ['with keyUsage a string', (answer) => ({ ...answer, keyUsage: 'ENCRYPT,DECRYPT' }), state],
    ['with a keyUsage that is a number', (answer) => ({ ...answer, keyUsage: ['ENCRYPT', 'DECRYPT', 7] }), state],
    ['with eleven usages', (answer) => ({ ...answer, keyUsage: ['ENCRYPT', 'DECRYPT', ...'abcdefghi'] }), state],
    ['with AES_128', (answer) => ({ ...answer, keySpec: 'AES_128' }), configuration],
    ['with RSA_2048', (answer) => ({ ...answer, keySpec: 'RSA_2048' }), configuration],
    ['with aes_256', (answer) => ({ ...answer, keySpec: 'aes_256' }), configuration],
    ['with ENCRYPT alone', (answer) => ({ ...answer, keyUsage: ['ENCRYPT'] }), configuration],
    ['with DECRYPT alone', (answer) => ({ ...answer, keyUsage: ['DECRYPT'] }), configuration],
    ['with no usage', (answer) => ({ ...answer, keyUsage: [] }), configuration],
    ['with DISABLED', (answer) => ({ ...answer, keyStatus: 'DISABLED' }), configuration],
  ])('answered %s', async (_what, change, expected) => {
    spoil(store.prefix, 'metadata', change);
    expect(await exceptionOf(createKey(store.storeId))).toBe(expected);
  });
  test.each([
    [404, 'KeyNotFoundException', 'XksKeyNotFoundException'],
    [400, 'InvalidStateException', configuration],
    [400, 'InvalidKeyUsageException', configuration],
    [403, 'AccessDeniedException', state],
    [400, 'InvalidCiphertextException', state],
  ])('answered with %i %s', async (status, errorName, expected) => {
    refuseOnly(store.prefix, 'metadata', status, errorName);
    expect(await exceptionOf(createKey(store.storeId))).toBe(expected);
  });
});

describe('Encrypt and Decrypt', () => {
  let store: Awaited<ReturnType<typeof openStore>>;
  beforeAll(async () => {
    store = await openStore();
  });
  afterEach(() => proxy.tell(store.prefix, undefined));
  const cut = (value: unknown, length: number): string =>
    Buffer.alloc(length, Buffer.from(String(value), 'base64')).toString('base64');
  const flip = (value: unknown): string => {
    const changed = Buffer.from(String(value), 'base64');
    changed[0] = (changed[0] ?? 0) ^ 1;
    return changed.toString('base64');
  };

  test.each<[string, (answer: Json) => Json]>([
    ...['ciphertext', 'initializationVector', 'authenticationTag', 'ciphertextDataIntegrityValue'].flatMap(
      (name): [string, (answer: Json) => Json][] => [
        [`without ${name}`, (answer) => ({ ...answer, [name]: undefined })],
        [`with ${name} a number`, (answer) => ({ ...answer, [name]: 7 })],
        [`with ${name} that is not Base64`, (answer) => ({ ...answer, [name]: '*' })],
        [
          `with ${name} without padding`,
          (answer) => ({ ...answer, [name]: `${String(answer[name]).replace(/=+$/, '')}A` }),
        ],
        [`with ${name} changed`, (answer) => ({ ...answer, [name]: flip(answer[name]) })],
      ],
    ),
    ['with a ciphertext that is longer', (answer) => ({ ...answer, ciphertext: cut(answer.ciphertext, 47) })],
    ['with a ciphertext that is shorter', (answer) => ({ ...answer, ciphertext: cut(answer.ciphertext, 45) })],
    ['with an empty ciphertext', (answer) => ({ ...answer, ciphertext: '' })],
    [
      'with a vector of 13 bytes',
      (answer) => ({ ...answer, initializationVector: cut(answer.initializationVector, 13) }),
    ],
    ['with a tag of 12 bytes', (answer) => ({ ...answer, authenticationTag: cut(answer.authenticationTag, 12) })],
    ['with metadata of 21 bytes', (answer) => ({ ...answer, ciphertextMetadata: Buffer.alloc(21).toString('base64') })],
    ['with metadata that its integrity value leaves out', (answer) => ({ ...answer, ciphertextMetadata: 'AAAA' })],
    [
      'with an integrity value of 31 bytes',
      (answer) => ({ ...answer, ciphertextDataIntegrityValue: cut(answer.ciphertextDataIntegrityValue, 31) }),
    ],
    [
      'with vector and tag in each other’s place',
      (answer) => ({
        ...answer,
        initializationVector: answer.authenticationTag,
        authenticationTag: answer.initializationVector,
      }),
    ],
  ])('Encrypt answered %s', async (_what, change) => {
    spoil(store.prefix, 'encrypt', change);
    expect(await exceptionOf(encrypt(store.KeyId))).toBe('KMSInvalidStateException');
    expect(await exceptionOf(kms.send(new GenerateDataKeyCommand({ KeyId: store.KeyId, KeySpec: 'AES_256' })))).toBe(
      'KMSInvalidStateException',
    );
  });

  test.each<[string, (answer: Json) => Json, string]>([
    ['without plaintext', () => ({}), 'KMSInvalidStateException'],
    ['with a plaintext that is null', () => ({ plaintext: null }), 'KMSInvalidStateException'],
    ['with a plaintext that is not Base64', () => ({ plaintext: '*' }), 'KMSInvalidStateException'],
    [
      'with a plaintext that is longer',
      (answer) => ({ plaintext: cut(answer.plaintext, 47) }),
      'KMSInvalidStateException',
    ],
    [
      'with a plaintext that is shorter',
      (answer) => ({ plaintext: cut(answer.plaintext, 45) }),
      'KMSInvalidStateException',
    ],
    // The plaintext has the right form: only the cloud's own seal shows that it is wrong.
    [
      'with a plaintext that is another',
      (answer) => ({ plaintext: flip(answer.plaintext) }),
      'InvalidCiphertextException',
    ],
  ])('Decrypt answered %s', async (_what, change, expected) => {
    spoil(store.prefix, 'decrypt', change);
    expect(await exceptionOf(decrypt(store.CiphertextBlob))).toBe(expected);
    const move = new ReEncryptCommand({
      CiphertextBlob: store.CiphertextBlob,
      SourceEncryptionContext: EncryptionContext,
      DestinationKeyId: store.KeyId,
    });
    expect(await exceptionOf(kms.send(move))).toBe(expected);
  });

  test.each([
    ['encrypt', 404, 'KeyNotFoundException', 'KMSInvalidStateException'],
    ['encrypt', 400, 'InvalidStateException', 'KMSInvalidStateException'],
    ['encrypt', 400, 'InvalidKeyUsageException', 'KMSInvalidStateException'],
    ['encrypt', 400, 'InvalidCiphertextException', 'KMSInvalidStateException'],
    ['decrypt', 404, 'KeyNotFoundException', 'KMSInvalidStateException'],
    ['decrypt', 400, 'InvalidStateException', 'KMSInvalidStateException'],
    ['decrypt', 400, 'InvalidCiphertextException', 'InvalidCiphertextException'],
    ['decrypt', 403, 'AccessDeniedException', 'KMSInvalidStateException'],
  ] as const)('%s answered with %i %s', async (operation, status, errorName, expected) => {
    refuseOnly(store.prefix, operation, status, errorName);
    const work = operation === 'encrypt' ? encrypt(store.KeyId) : decrypt(store.CiphertextBlob);
    expect(await exceptionOf(work)).toBe(expected);
  });
});
