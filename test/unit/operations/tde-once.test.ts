// Requests of database hosts that are sent again under their key: carried out once, and answered as the first time.
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  envelopeType,
  instanceText,
  packEnvelope,
  type TdeRoutes,
  type TokenObject,
  tdeRoutes,
} from '../../../server/fronts/contract/tde.ts';
import {
  instance,
  masterKey,
  type OpenedService,
  openTestService,
  registerCaller,
  sendTde,
} from '../../support/open-service.ts';

let opened: OpenedService;
let mine: string;
let others: string;
beforeAll(async () => {
  opened = await openTestService();
  const { accessGuid, groupId } = await registerCaller(opened, 'mine');
  mine = accessGuid;
  others = (await registerCaller(opened, 'others', groupId)).accessGuid;
});
afterAll(() => opened.remove());

const ask = async <R extends keyof TdeRoutes>(
  route: R,
  head: TdeRoutes[R]['head'],
  key: string | null,
  { handle = 0, raw, accessGuid = mine }: { handle?: number; raw?: Uint8Array; accessGuid?: string } = {},
) => {
  const headers = {
    authorization: `Bearer ${accessGuid}`,
    'content-type': envelopeType,
    'x-dke-instance': instanceText(instance),
    ...(key === null ? {} : { 'idempotency-key': key }),
  };
  const path = `/tde/v1/${accessGuid}/db${tdeRoutes[route].path.replace(':handle', String(handle))}`;
  const { status, head: answer } = await sendTde(opened.service, path, headers, packEnvelope(head, raw));
  return { status, head: answer as TdeRoutes[R]['answer'] & { readonly code?: string } };
};

test('a key is made once, however often and at how many places at once it is asked for', async () => {
  const head = masterKey('once');
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask('generateKey', head, 'a')));
  answers.push(await ask('generateKey', head, 'a'));
  expect(answers.map(({ status }) => status)).toEqual(Array(9).fill(200));
  expect(new Set(answers.map(({ head: { handle } }) => handle)).size).toBe(1);
});

test('without a key, or under another one, it is another request', async () => {
  const head = masterKey('twice');
  expect((await ask('generateKey', head, null)).status).toBe(200);
  expect((await ask('generateKey', head, null)).head.code).toBe('label-exists');
  expect((await ask('generateKey', head, 'b')).head.code).toBe('label-exists');
});

test('what was refused is tried again', async () => {
  const { head: blocking } = await ask('generateKey', masterKey('refused'), null);
  expect((await ask('generateKey', masterKey('refused'), 'c')).head.code).toBe('label-exists');
  expect((await ask('destroyObject', {}, null, { handle: blocking.handle })).status).toBe(200);
  expect((await ask('generateKey', masterKey('refused'), 'c')).status).toBe(200);
});

test('the same key with another request is refused', async () => {
  const value = new Uint8Array(32).fill(7);
  const head = { ...masterKey('import'), bits: null, extractable: true };
  expect((await ask('createObject', head, 'd', { raw: value })).status).toBe(200);
  expect((await ask('createObject', head, 'd', { raw: value })).status).toBe(200);
  expect((await ask('createObject', { ...head, private: false }, 'd', { raw: value })).head.code).toBe('conflict');
  expect((await ask('createObject', head, 'd', { raw: value.subarray(16) })).head.code).toBe('conflict');
  expect((await ask('generateKey', { ...head, bits: 256 }, 'd')).head.code).toBe('conflict');
  for (const key of ['', ' ', 'x'.repeat(129), 'a b'])
    expect((await ask('generateKey', head, key)).head.code).toBe('validation');
});

test('the key is of one application: another one in the group does not get what it has made', async () => {
  const first = await ask('generateKey', masterKey('own'), 'e');
  expect(first.status).toBe(200);
  expect((await ask('generateKey', masterKey('own'), 'e', { accessGuid: others })).head.code).toBe('label-exists');
});

test('both halves of a pair come back', async () => {
  const half = (objectClass: 'private-key' | 'public-key') =>
    ({
      ...masterKey('pair'),
      class: objectClass,
      algorithm: 'ec',
      usages: [],
      sensitive: objectClass === 'private-key',
    }) as const;
  const head = { privateKey: half('private-key'), publicKey: half('public-key') };
  const [first, second] = [await ask('generateKeyPair', head, 'f'), await ask('generateKeyPair', head, 'f')];
  expect(first.status).toBe(200);
  expect(second).toEqual(first);
  const alone = { privateKey: { ...half('private-key'), label: '' }, publicKey: null };
  const made = await ask('generateKeyPair', alone, 'g');
  expect((await ask('generateKeyPair', alone, 'g')).head).toEqual(made.head);
  expect(made.head.publicKey).toBeNull();
});

test('a change that was carried out is not refused for what it has changed', async () => {
  const { head: key } = await ask('generateKey', { ...masterKey('before'), modifiable: true }, null);
  const { attributes, usages } = key as TokenObject;
  const change = { attributes: 'AAAA', seen: { attributes, usages } };
  expect((await ask('updateObject', change, 'h', { handle: key.handle })).status).toBe(200);
  expect((await ask('updateObject', change, 'h', { handle: key.handle })).status).toBe(200);
  expect((await ask('updateObject', change, 'i', { handle: key.handle })).head.code).toBe('conflict');
});

test('what was made and destroyed since is not made again', async () => {
  const { head: key } = await ask('generateKey', masterKey('gone'), 'j');
  await ask('destroyObject', {}, null, { handle: key.handle });
  expect((await ask('generateKey', masterKey('gone'), 'j')).head.code).toBe('key-destroyed');
});
