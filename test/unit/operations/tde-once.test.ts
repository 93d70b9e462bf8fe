// Requests of database hosts that are sent again under their key: carried out once, and answered as
// the first time.
import { beforeAll, expect, test } from 'vitest';
import { envelopeType, instanceText, packEnvelope, type TdeRoutes, tdeRoutes } from '../../../server/contract/tde.ts';
import { dataObject, instance, masterKey, registerCaller, sendTde } from '../../support/open-service.ts';
import { sealedBytes } from '../../support/sealed-key.ts';
import { sharedService } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = sharedService();
let mine: string;
let others: string;
beforeAll(async () => {
  const { accessGuid, groupId } = await registerCaller(opened, 'mine');
  mine = accessGuid;
  others = (await registerCaller(opened, 'others', groupId)).accessGuid;
});

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
  const { head: info } = await ask('info', {}, null);
  const create = (of: typeof head, bytes: Uint8Array) =>
    ask('createObject', of, 'd', { raw: sealedBytes(info, 'createObject', of, bytes, { once: 'd' }) });
  const first = await create(head, value);
  expect(first.status).toBe(200);
  // A repeat is read from the row, and names its version, too.
  expect(await create(head, value)).toMatchObject(first);
  expect((await create({ ...head, private: false }, value)).head.code).toBe('conflict');
  expect((await create(head, value.subarray(16))).head.code).toBe('conflict');
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
  expect(second).toMatchObject(first);
  const alone = { privateKey: { ...half('private-key'), label: '' }, publicKey: null };
  const made = await ask('generateKeyPair', alone, 'g');
  expect((await ask('generateKeyPair', alone, 'g')).head).toMatchObject(made.head);
  expect(made.head.publicKey).toBeNull();
});

test('a change that was carried out is not refused for what it has changed', async () => {
  const { head: key } = await ask('generateKey', { ...masterKey('before'), modifiable: true }, null);
  const { attributes, usages } = key as TdeRoutes['getObject']['answer'];
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

const outcomeOf = async (key: string, accessGuid = mine): Promise<string> => {
  const { status, head } = await ask('withdraw', { key }, null, { accessGuid });
  expect(status).toBe(200);
  return head.outcome;
};

test('a request that was withdrawn before it arrived is not carried out, and its answer says so', async () => {
  expect(await outcomeOf('w1')).toBe('not-carried-out');
  expect((await ask('generateKey', masterKey('withdrawn'), 'w1')).head).toMatchObject({ code: 'conflict' });
  expect((await ask('generateKey', masterKey('withdrawn'), 'w2')).status).toBe(200);
});

test('what a withdrawn request has created is destroyed, its label is free again, and a repeat is refused', async () => {
  const { head: key } = await ask('generateKey', masterKey('undone'), 'w3');
  expect(await outcomeOf('w3')).toBe('undone');
  expect(await outcomeOf('w3')).toBe('not-carried-out');
  expect((await ask('getObject', {}, null, { handle: key.handle })).head.code).toBe('key-destroyed');
  expect((await ask('generateKey', masterKey('undone'), 'w3')).head.code).toBe('conflict');
  expect((await ask('generateKey', masterKey('undone'), 'w4')).status).toBe(200);

  const { head: object } = await ask('createObject', dataObject('undone'), 'w5', { raw: Buffer.from('some data') });
  expect(await outcomeOf('w5')).toBe('undone');
  expect((await ask('readValue', {}, null, { handle: object.handle })).head.code).toBe('key-destroyed');
});

test('the first use of a new key is stored before it is answered: no node, whatever it has heard, withdraws the key', async () => {
  const { head: key } = await ask('generateKey', masterKey('in use'), 'w10');
  const { tde } = opened.operations;
  const caller = await tde.authenticate({ accessGuid: mine, appId: 'db', instance, requestId: 'r', peer: null });
  await tde.encrypt(caller, key.handle, { algorithm: 'aes-cbc-pad', iv: Buffer.alloc(16) }, Buffer.from('a page'));
  const [row] = await queryStored(opened.folder, 'select last_used_at as used from keys where id = ?', key.id);
  expect(row?.used).toEqual(expect.any(Number));
  expect(await outcomeOf('w10')).toBe('kept');
});

test('both halves of a withdrawn pair are destroyed', async () => {
  const half = (objectClass: 'private-key' | 'public-key') =>
    ({
      ...masterKey('undone pair'),
      class: objectClass,
      algorithm: 'ec',
      usages: [],
      sensitive: objectClass === 'private-key',
    }) as const;
  const head = { privateKey: half('private-key'), publicKey: half('public-key') };
  expect((await ask('generateKeyPair', head, 'w9')).status).toBe(200);
  expect(await outcomeOf('w9')).toBe('undone');
  const { head: found } = await ask('findObjects', { label: half('public-key').label, after: 0, limit: 10 }, null);
  expect(found.objects).toEqual([]);
});

test('of a request and its withdrawal at the same moment, nothing is left', async () => {
  for (let round = 0; round < 20; round++) {
    const key = `race ${round}`.replace(' ', '-');
    const [made, outcome] = await Promise.all([ask('generateKey', masterKey('race'), key), outcomeOf(key)]);
    expect([made.status, outcome]).toEqual(made.status === 200 ? [200, 'undone'] : [409, 'not-carried-out']);
    const { head } = await ask('findObjects', { label: masterKey('race').label, after: 0, limit: 10 }, null);
    expect(head.objects).toEqual([]);
  }
});

test('what was used since stays, and so does a change', async () => {
  const { head: key } = await ask('generateKey', { ...masterKey('kept'), modifiable: true }, 'w6');
  const block = new Uint8Array(16);
  expect((await ask('encrypt', { algorithm: 'aes-ecb' }, null, { handle: key.handle, raw: block })).status).toBe(200);
  expect(await outcomeOf('w6')).toBe('kept');
  expect((await ask('updateObject', { label: masterKey('renamed').label }, 'w7', { handle: key.handle })).status).toBe(
    200,
  );
  expect(await outcomeOf('w7')).toBe('kept');
  expect((await ask('getObject', {}, null, { handle: key.handle })).head.label).toBe(masterKey('renamed').label);
});

test("one application does not withdraw another one's request, and a key that is none is refused", async () => {
  const { head: key } = await ask('generateKey', masterKey('not yours'), 'w8');
  expect(await outcomeOf('w8', others)).toBe('not-carried-out');
  expect((await ask('getObject', {}, null, { handle: key.handle })).status).toBe(200);
  expect((await ask('withdraw', { key: 'a b' }, null)).head.code).toBe('validation');
});
