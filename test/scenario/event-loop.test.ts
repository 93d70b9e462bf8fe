// No request blocks the others: for each operation of the console's API, of the TDE front and of
// the key store proxy, its largest permitted input, and inputs of the largest size that are
// refused, are sent to a service in its own process, which measures the longest time that its event
// loop was blocked. The unit is a fixed piece of work of about a millisecond in the same process,
// and the best of some repetitions counts: a slow or busy machine passes. An operation without a
// row here does not compile, and fails.
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiRoutes } from '../../server/contract/api/index.ts';
import type { RouteGroup, RouteRow } from '../../server/contract/api/row.ts';
import {
  envelopeType,
  instanceText,
  onceHeader,
  onceRoutes,
  packEnvelope,
  type TdeRoutes,
  tdeRoutes,
  unpackEnvelope,
} from '../../server/contract/tde.ts';
import { mostHeld, mostValues, packHandles, packHeld } from '../../server/contract/tde-held.ts';
import type { Opening } from '../../server/operations/snapshots/openings.ts';
import { replacing } from '../support/console-api.ts';
import { grants, hardSubject, ids, type Largest, long, many, rows, world } from '../support/largest-inputs.ts';
import type { LoopPlace, LoopQuestion } from '../support/loop-child.ts';
import { masterKey, toLabel } from '../support/open-service.ts';
import { signXksRequest } from '../support/sign.ts';
import { sizeOf } from '../support/tiers.ts';

/** The longest block: 30 ms on a quiet machine; opening a large snapshot takes up to 20. */
const mostUnits = 30;
const repetitions = 12;
/** Size of the largest body of a request to the API, in bytes. */
const largestBody = 64 * 1024;

let child: ChildProcess;
let place: LoopPlace;
const heard = <T>(): Promise<T> =>
  new Promise((resolve, reject) => {
    const gone = (): void => reject(new Error('the service process has exited'));
    child.once('exit', gone);
    child.once('message', (message) => {
      child.off('exit', gone);
      resolve((message as { readonly answer: T }).answer);
    });
  });
const ask = <T>(question: LoopQuestion): Promise<T> => {
  const answer = heard<T>();
  child.send(question);
  return answer;
};

type Send = () => Promise<unknown>;
const send = async (
  method: string,
  path: string,
  body?: object | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly text: string }> => {
  const response = await fetch(`${place.base}${path}`, {
    method: method.toUpperCase(),
    headers: {
      ...replacing(method),
      authorization: `Bearer ${place.token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
};
const must = async <T>(method: string, path: string, body?: object): Promise<T> => {
  const { status, text } = await send(method, path, body);
  if (status > 299) throw new Error(`${method} ${path}: ${status} ${text.slice(0, 300)}`);
  return JSON.parse(text) as T;
};

let accessGuid = '';
const handles: Record<string, number> = {};
let xks: { readonly prefix: string; readonly accessKeyId: string; readonly secretAccessKey: string };

interface Operation {
  readonly name: string;
  readonly sends: readonly (readonly [input: string, send: Send])[];
  readonly refused: boolean | 'perhaps';
}

/** The thing that `{id}` names, by the group. */
const thingOf: Readonly<Record<string, string>> = {
  ...{ tenants: 'otherTenant', vaults: 'vault', keys: 'key', tdeGroups: 'group', applications: 'application' },
  ...{ endpoints: 'endpoint', diagnostics: 'endpoint', requests: 'endpoint', snapshots: 'snapshot', users: 'user' },
};
const pathOf = (group: string, route: RouteRow, { path = {} }: Largest): string =>
  route.path.replace(/\{(\w+)\}/g, (_, parameter: string) => {
    const named = path[parameter] ?? (parameter === 'id' ? (thingOf[group] ?? 'none') : parameter.replace(/Id$/, ''));
    return ids[named] ?? named;
  });
/** Bodies of the largest size that are not valid. */
const hostile = (route: RouteRow): readonly (readonly [string, string])[] => {
  const members = Object.keys(route.body?.shape ?? {});
  const size = largestBody - 64;
  const each = Math.floor(size / Math.max(1, members.length)) - 32;
  const filled = (text: string): string =>
    JSON.stringify(Object.fromEntries(members.map((member) => [member, long(each, text)])));
  return [
    ...['a', ' ', '-=', 'a@', '/+', '{['].map((text): readonly [string, string] => [
      `members of "${text}"`,
      filled(text),
    ]),
    ['deep', `{"name":${'['.repeat(size / 2 - 16)}${']'.repeat(size / 2 - 16)}}`],
    ['many members', `{${many(Math.floor(size / 10), (at) => `"${String(at).padStart(5, '0')}":0`).join(',')}}`],
    // For each member: a list with as many wrong items as the body can have.
    ...members.flatMap((member) =>
      ['0', '""', '[]', '{}'].map((item): readonly [string, string] => [
        `${member} is a list of ${item}`,
        `{"${member}":[${many(Math.floor((size - member.length) / (item.length + 1)), () => item).join(',')}]}`,
      ]),
    ),
    ['escapes', `{"name":"${long(size - 32, '\\u0061')}`],
    // Out of order: a program that orders them naively takes the square of their number.
    ['combining marks', `{"name":"a${'\u0315'.repeat(size / 4 - 16)}${'\u0316'.repeat(size / 4 - 16)}"}`],
  ];
};
/** The file of a snapshot that exists already: it is read to its end before it is refused. */
const sendFile = async (path: string, type: string) => {
  const headers = { authorization: `Bearer ${place.token}` };
  const file = await fetch(`${place.base}/api/snapshots/${place.snapshot}/file`, { headers });
  const response = await fetch(`${place.base}${path}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': type },
    body: await file.arrayBuffer(),
  });
  return { status: response.status, text: await response.text() };
};
let bodies = 0;
/** Each Nth, so that every kind of body is sent to some operations. */
const isSent = (): boolean => {
  bodies += 1;
  return bodies % sizeOf('hostile bodies') === 0;
};
const apiOperations = (): readonly Operation[] =>
  Object.entries(apiRoutes).flatMap(([group, routes]) =>
    Object.entries(routes as RouteGroup).flatMap(([name, route]) => {
      const row = (rows as Readonly<Record<string, Readonly<Record<string, Largest>>>>)[group]?.[name];
      if (row === undefined) throw new Error(`${group}.${name} has no row`);
      const path = pathOf(group, route, row);
      const sends: (readonly [string, Send])[] = [
        [
          'largest',
          async () =>
            route.takes === undefined
              ? send(route.method, `${path}${row.query ?? ''}`, await row.body?.())
              : sendFile(path, route.takes),
        ],
      ];
      if (route.query !== undefined)
        for (const member of Object.keys(route.query.shape))
          sends.push([`long ${member}`, () => send('get', `${path}?${member}=${long(7_000, '-a')}`)]);
      if (route.path.includes('{'))
        sends.push(['long path', () => send(route.method, route.path.replaceAll(/\{\w+\}/g, long(2_000)))]);
      if (route.method !== 'get' && route.takes === undefined)
        for (const [input, body] of hostile(route).filter(isSent))
          sends.push([input, () => send(route.method, `${path}${row.query ?? ''}`, body)]);
      return [{ name: `${group}.${name}`, sends, refused: row.refused ?? false }];
    }),
  );

const tdeSend = async (route: keyof TdeRoutes, head: object, raw: Uint8Array = new Uint8Array(0), handle = 1) => {
  const path = `/tde/v1/${accessGuid}/db${tdeRoutes[route].path.replace(':handle', String(handle))}`;
  const response = await fetch(`${place.base}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${accessGuid}`,
      'content-type': envelopeType,
      'x-dke-instance': instanceText({ host: 'h', pid: 1, process: 'p', library: '1', agent: '1', osUser: 'o' }),
      ...(onceRoutes.has(route) ? { [onceHeader]: `once-${Math.random().toString(36).slice(2)}` } : {}),
    },
    body: packEnvelope(head, raw) as Uint8Array<ArrayBuffer>,
  });
  const body = Buffer.from(await response.arrayBuffer());
  return response.status === 200
    ? (unpackEnvelope(body).head as { readonly handle?: number; readonly title?: string })
    : (JSON.parse(body.toString('utf8')) as { readonly handle?: number; readonly title?: string });
};
const data = new Uint8Array(1_000_000 - 16);
const aes = { ...masterKey('AES'), usages: ['encrypt', 'decrypt'] } as const;
const cbc = { algorithm: 'aes-cbc', iv: Buffer.alloc(16).toString('base64') } as const;
const gcm = { algorithm: 'aes-gcm', iv: Buffer.alloc(12).toString('base64'), aad: '', tagLength: 16 } as const;
const hmac = { algorithm: 'hmac', digest: 'sha512' } as const;
const attributes = Buffer.alloc(48 * 1024).toString('base64');
const short = Buffer.alloc(512).toString('base64');
const dataObject = {
  ...masterKey('DATA'),
  class: 'data',
  algorithm: null,
  bits: null,
  usages: [],
  sensitive: false,
  extractable: true,
  attributes,
};
let labels = 0;
const fresh = (): string => {
  labels += 1;
  return toLabel(`label ${labels}`);
};
const keyPair = (algorithm: string, bits: number) => ({
  privateKey: {
    ...masterKey('PAIR'),
    label: fresh(),
    class: 'private-key',
    algorithm,
    bits,
    usages: ['sign', 'decrypt'],
  },
  publicKey: null,
});
const tdeRows: { readonly [R in keyof TdeRoutes]: Send } = {
  info: () => tdeSend('info', {}),
  generateKey: () => tdeSend('generateKey', { ...aes, label: fresh(), attributes }),
  generateKeyPair: () => tdeSend('generateKeyPair', keyPair('rsa', 4096)),
  createObject: () => tdeSend('createObject', { ...dataObject, label: fresh() }, data.subarray(0, 900_000)),
  findObjects: () => tdeSend('findObjects', { after: 0, limit: 1000 }),
  getObject: () => tdeSend('getObject', {}, undefined, handles.data),
  readValue: () => tdeSend('readValue', {}, undefined, handles.data),
  updateObject: () => tdeSend('updateObject', { attributes }, undefined, handles.data),
  destroyObject: () => tdeSend('destroyObject', {}, undefined, 9_999),
  withdraw: () => tdeSend('withdraw', { key: long(128) }),
  refresh: () =>
    tdeSend('refresh', {}, packHeld(many(mostHeld, (at) => ({ handle: at + 1, uses: ['encrypt'], version: 1 })))),
  readValues: () => tdeSend('readValues', {}, packHandles(many(mostValues, () => handles.data ?? 0))),
  checkUse: () => tdeSend('checkUse', { usage: 'encrypt' }, undefined, handles.aes),
  encrypt: () => tdeSend('encrypt', cbc, data, handles.aes),
  decrypt: () => tdeSend('decrypt', cbc, data, handles.aes),
  cipherPart: () => tdeSend('cipherPart', { use: 'encrypt', cipher: gcm, state: '', last: true }, data, handles.aes),
  sign: () => tdeSend('sign', hmac, data, handles.generic),
  verify: () =>
    tdeSend('verify', hmac, Buffer.concat([Buffer.from([0, 0, 0, 64]), Buffer.alloc(64), data]), handles.generic),
  macPart: () => tdeSend('macPart', { use: 'sign', mac: hmac, state: '', last: true }, data, handles.generic),
  wrap: () =>
    tdeSend(
      'wrap',
      { mechanism: { way: 'key-wrap', padded: true }, key: { from: 'token', handle: handles.aes } },
      undefined,
      handles.wrap,
    ),
  unwrap: () =>
    tdeSend(
      'unwrap',
      { mechanism: { way: 'key-wrap', padded: true }, into: { on: 'token', object: { ...aes, label: fresh() } } },
      data.subarray(0, 8_192),
      handles.wrap,
    ),
  derive: () =>
    tdeSend(
      'derive',
      {
        mechanism: { way: 'hkdf', digest: 'sha512', steps: 'both', salt: attributes, info: short },
        into: { on: 'token', object: { ...masterKey('D'), label: fresh(), algorithm: 'generic', bits: 32_768 } },
      },
      undefined,
      handles.generic,
    ),
};
/**
 * Routes that refuse their input here: it has no existing object, no valid signature or no wrapped
 * key.
 */
const refusedByTde: ReadonlySet<keyof TdeRoutes> = new Set(['destroyObject', 'verify', 'unwrap']);
const tdeOperations = (): readonly Operation[] =>
  Object.keys(tdeRoutes).map((name) => {
    const route = name as keyof TdeRoutes;
    return {
      name: `tde.${name}`,
      refused: refusedByTde.has(route),
      sends: [
        ['largest', tdeRows[route]],
        ['no head', () => tdeSend(route, { label: long(900_000, '=a') }, undefined, handles.data)],
        [
          'deep',
          () =>
            tdeSend(route, JSON.parse(`{"a":${'['.repeat(4_000)}${']'.repeat(4_000)}}`) as object, data, handles.data),
        ],
      ],
    };
  });

const xksTargets = ['/health', '/keys/KEY/metadata', '/keys/KEY/encrypt', '/keys/KEY/decrypt'] as const;
const xksSend = async (target: string, body: string) => {
  const path = `${xks.prefix}${target.replace('KEY', ids.key ?? '')}`;
  const headers = await signXksRequest({ ...xks, host: new URL(place.base).host, path, body });
  const response = await fetch(`${place.base}${path}`, { method: 'POST', headers, body });
  return { status: response.status, text: await response.text() };
};
const xksOperations = (): readonly Operation[] =>
  xksTargets.map((target) => {
    const requestMetadata = {
      awsPrincipalArn: `arn:aws:iam::111122223333:user/${long(1_900)}`,
      kmsKeyArn: hardSubject,
      kmsOperation: 'Encrypt',
      kmsRequestId: '1234',
    };
    const body = {
      requestMetadata,
      plaintext: Buffer.alloc(4_096).toString('base64'),
      encryptionAlgorithm: 'AES_GCM',
      additionalAuthenticatedData: Buffer.alloc(8_000).toString('base64'),
    };
    return {
      name: `xks${target}`,
      refused: target.endsWith('decrypt'),
      sends: [
        ['largest', () => xksSend(target, JSON.stringify(body))],
        [
          'long member',
          () => xksSend(target, JSON.stringify({ requestMetadata, plaintext: long(largestBody - 3_000, '=a') })),
        ],
        ['deep', () => xksSend(target, `{"requestMetadata":${'['.repeat(30_000)}${']'.repeat(30_000)}}`)],
      ],
    };
  });

beforeAll(async () => {
  child = fork(join(import.meta.dirname, '../support/loop-child.ts'), {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  place = await heard<LoopPlace>();
  world.bigTenant = place.bigTenant;
  world.certificate = place.certificate;
  world.answerOpening = async () =>
    ask({ opening: await must<Opening>('post', `/api/snapshots/${place.snapshot}/openings`, {}) });
  const make = async (path: string, body: object = {}) => (await must<{ id: string }>('post', `/api${path}`, body)).id;
  ids.otherTenant = await make('/tenants', { name: 'other' });
  ids.snapshot = place.snapshot;
  ids.vault = await make('/vaults', { name: 'own' });
  ids.key = await make('/keys', { name: 'own', vaultId: ids.vault });
  ids.endpoint = await make('/endpoints', { name: 'own', vaultId: ids.vault, keyId: ids.key });
  const { XksProxyUriPath: uriPath, XksProxyAuthenticationCredential: credential } = await must<{
    readonly XksProxyUriPath: string;
    readonly XksProxyAuthenticationCredential: { readonly AccessKeyId: string; readonly RawSecretAccessKey: string };
  }>('post', `/api/endpoints/${ids.endpoint}/credentials`);
  xks = { prefix: uriPath, accessKeyId: credential.AccessKeyId, secretAccessKey: credential.RawSecretAccessKey };
  ids.spareVault = await make('/vaults', { name: 'spare' });
  ids.spareKey = await make('/keys', { name: 'spare', vaultId: ids.vault });
  ids.spareEndpoint = await make('/endpoints', { name: 'spare', vaultId: ids.vault, keyId: ids.key });
  ids.group = await make('/tde/groups', { name: 'own' });
  ids.otherGroup = await make('/tde/groups', { name: 'other' });
  const registered = await must<{ application: { id: string }; accessGuid: string }>('post', '/api/tde/applications', {
    name: 'db',
    groupId: ids.group,
  });
  ids.spareApplication = (
    await must<{ application: { id: string } }>('post', '/api/tde/applications', { name: 'spare', groupId: ids.group })
  ).application.id;
  ids.application = registered.application.id;
  accessGuid = registered.accessGuid;
  const person = async (user: string) =>
    (await must<{ user: { id: string } }>('post', '/api/users', { name: user, grants: grants.slice(0, 1) })).user.id;
  ids.user = await person('person');
  ids.spareUser = await person('spare');
  const run = await must<{ id: string; steps: { id: string }[] }>(
    'post',
    `/api/tde/applications/${ids.application}/runbook-runs`,
    { runbook: 'rotate' },
  );
  ids.run = run.id;
  ids.step = run.steps[0]?.id ?? '';
  const made = async (head: object, raw?: Uint8Array, route: 'generateKey' | 'createObject' = 'generateKey') =>
    (await tdeSend(route, { ...head, label: fresh() }, raw)).handle ?? 0;
  handles.aes = await made({ ...aes, sensitive: false, extractable: true });
  const { items: masterKeys } = await must<{ items: { id: string }[] }>(
    'get',
    `/api/tde/applications/${ids.application}/master-keys`,
  );
  ids.masterKey = masterKeys[0]?.id ?? '';
  handles.wrap = await made({ ...masterKey('W'), usages: ['wrap', 'unwrap'] });
  handles.generic = await made({
    ...masterKey('G'),
    algorithm: 'generic',
    bits: 512,
    usages: ['sign', 'verify', 'derive'],
  });
  handles.data = await made({ ...dataObject, modifiable: true }, data.subarray(0, 900_000), 'createObject');
  expect(Object.values(handles).every((handle) => handle > 0)).toBe(true);
}, 900_000);
afterAll(async () => {
  if (!child.connected) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.send('end' satisfies LoopQuestion);
  await gone;
});

const checkAll = async (operations: readonly Operation[]): Promise<void> => {
  let unit = await ask<number>('unit');
  const slow: string[] = [];
  for (const { name, sends, refused: isRefused } of operations)
    for (const [input, work] of sends) {
      let best = Number.POSITIVE_INFINITY;
      let answer: unknown;
      for (let times = 0; times < repetitions && best > mostUnits; times += 1) {
        if (times > 1) unit = Math.max(unit, await ask<number>('unit'));
        await ask('begin');
        answer = await work();
        best = Math.min(best, (await ask<number>('longest')) / unit);
      }
      const { status = 200 } = (answer ?? {}) as { readonly status?: number | string };
      // An input that is refused early would test nothing.
      if (input === 'largest' && isRefused !== 'perhaps' && (typeof status === 'number' && status >= 300) !== isRefused)
        slow.push(`${name}: ${status} ${JSON.stringify(answer).slice(0, 300)}`);
      if (best > mostUnits) slow.push(`${name}, ${input}: ${Math.round(best)} units`);
    }
  expect(slow).toEqual([]);
};

test('a block of forty pieces of work is seen', async () => {
  const unit = await ask<number>('unit');
  await ask('begin');
  await ask('block');
  expect((await ask<number>('longest')) / unit).toBeGreaterThan(mostUnits);
});
test('the TDE front', () => checkAll(tdeOperations()), 900_000);
test('the key store proxy', () => checkAll(xksOperations()), 900_000);
// Last, because it disables things.
test('the API of the console', () => checkAll(apiOperations()), 1_800_000);
