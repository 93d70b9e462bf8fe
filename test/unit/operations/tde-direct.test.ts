// The TDE API, called directly: what docs/pkcs11.md says that the service checks, it checks for a
// caller who has the access_guid and no agent. Each rule is driven over the front; the permitted
// call beside each refused one shows that the rule refuses, and nothing else.
import { generateKeyPairSync, privateDecrypt } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import type { KeyRules, TdeRoutes } from '../../../server/contract/tde.ts';
import {
  administrator,
  callTde,
  masterKey,
  registerCaller,
  type TdeAnswer,
  toLabel,
  untilAudited,
} from '../../support/open-service.ts';
import { sharedService } from '../../support/shared.ts';

const opened = sharedService();
let accessGuid: string;
/** An application of the same group. */
let otherGuid: string;
beforeAll(async () => {
  const { groupId, ...direct } = await registerCaller(opened, 'direct');
  ({ accessGuid } = direct);
  ({ accessGuid: otherGuid } = await registerCaller(opened, 'beside it', groupId));
});

type Route = keyof TdeRoutes;
const call = (route: Route, handle: number, head: object, raw?: Uint8Array): Promise<TdeAnswer> =>
  callTde(opened.service, accessGuid, route, head, raw === undefined ? { handle } : { handle, raw });
const codeOf = async (answer: Promise<TdeAnswer>): Promise<string> => {
  const { status, head } = await answer;
  return status === 200 ? 'done' : (head as { readonly code: string }).code;
};
interface Made {
  readonly handle: number;
  readonly id: string;
}
let count = 0;
const described = (change: object) => {
  count += 1;
  return { ...masterKey(`direct ${count}`), ...change };
};
const make = async (change: object): Promise<Made> => {
  const { status, head } = await call('generateKey', 0, described(change));
  expect(status).toBe(200);
  return head as Made;
};
const makePair = async (algorithm: string, bits: number, usages: readonly string[]): Promise<Made> => {
  const half = described({ class: 'private-key', algorithm, bits, usages });
  const { status, head } = await call('generateKeyPair', 0, { privateKey: half, publicKey: null });
  expect(status).toBe(200);
  return (head as { readonly privateKey: Made }).privateKey;
};
const createPublic = async (spki: Uint8Array, change: object = {}): Promise<Made> => {
  const open = { class: 'public-key', algorithm: 'rsa', bits: null, sensitive: false, extractable: true };
  const { status, head } = await call('createObject', 0, described({ ...open, usages: ['wrap'], ...change }), spki);
  expect(status).toBe(200);
  return head as Made;
};

const base64 = (bytes: number): string => Buffer.alloc(bytes, 7).toString('base64');
const message = Buffer.from('sixteen bytes in');
const cbc = { algorithm: 'aes-cbc', iv: base64(16) };
const ecb = { algorithm: 'aes-ecb' };
const gcm = (tagLength: number, iv = 12) => ({ algorithm: 'aes-gcm', iv: base64(iv), tagLength });
const keyWrap = { way: 'key-wrap', padded: true };
const oaep = { way: 'oaep', oaep: { padding: 'oaep', digest: 'sha256', mgfDigest: 'sha256' } };
const hkdf = { way: 'hkdf', digest: 'sha256', steps: 'both', salt: '', info: '' };
const hmac = { algorithm: 'hmac', digest: 'sha256' };
const token = (handle: number) => ({ from: 'token', handle });
const recipient = generateKeyPairSync('x25519').publicKey.export({ format: 'der', type: 'spki' });
const session = (change: object = {}) => ({
  on: 'session',
  recipient: recipient.subarray(-32).toString('base64'),
  class: 'secret-key',
  algorithm: 'generic',
  bits: 256,
  sensitive: true,
  extractable: false,
  ...change,
});
const onToken = (change: object = {}) => ({ on: 'token', object: described({ algorithm: 'generic', ...change }) });

describe('a mechanism takes keys of its type', () => {
  test('an AES key makes no HMAC and derives nothing by HKDF; a generic one has no CMAC and encrypts nothing', async () => {
    const uses = ['sign', 'verify', 'derive', 'encrypt', 'wrap', 'unwrap'];
    const [aes, generic] = [await make({ usages: uses }), await make({ algorithm: 'generic', usages: uses })];
    const expected = async (handle: number, isAes: boolean): Promise<void> => {
      const [forAes, forGeneric] = isAes ? ['done', 'key-usage'] : ['key-usage', 'done'];
      const part = { state: '', last: true };
      expect(await codeOf(call('sign', handle, hmac, message))).toBe(forGeneric);
      expect(await codeOf(call('sign', handle, { algorithm: 'aes-cmac' }, message))).toBe(forAes);
      expect(await codeOf(call('macPart', handle, { ...part, use: 'sign', mac: hmac }, message))).toBe(forGeneric);
      expect(
        await codeOf(call('macPart', handle, { ...part, use: 'sign', mac: { algorithm: 'aes-cmac' } }, message)),
      ).toBe(forAes);
      expect(await codeOf(call('derive', handle, { mechanism: hkdf, into: session() }))).toBe(forGeneric);
      expect(await codeOf(call('encrypt', handle, cbc, message))).toBe(forAes);
      const wrapped = await codeOf(call('unwrap', handle, { mechanism: keyWrap, into: session() }, Buffer.alloc(40)));
      expect(wrapped).toBe(isAes ? 'invalid-ciphertext' : 'key-usage');
    };
    await expected(aes.handle, true);
    await expected(generic.handle, false);
    const signature = Buffer.concat([Buffer.of(0, 0, 0, 4), Buffer.alloc(4), message]);
    expect(await codeOf(call('verify', aes.handle, hmac, signature))).toBe('key-usage');
    expect(await codeOf(call('verify', generic.handle, hmac, signature))).toBe('invalid-ciphertext');
  });

  test('CMAC is the function of SP 800-108 for AES keys, HMAC for generic ones', async () => {
    const parts = { data: '', counterAt: 0, counterBytes: 1, littleEndian: false, counterFirst: true, iv: '' };
    const kdf = (prf: object) => ({ mechanism: { way: 'sp800-108', prf, parts }, into: session() });
    const aes = await make({ usages: ['derive'] });
    const generic = await make({ algorithm: 'generic', usages: ['derive'] });
    expect(await codeOf(call('derive', aes.handle, kdf(hmac)))).toBe('key-usage');
    expect(await codeOf(call('derive', generic.handle, kdf({ algorithm: 'aes-cmac' })))).toBe('key-usage');
    expect(await codeOf(call('derive', aes.handle, kdf({ algorithm: 'aes-cmac' })))).toBe('done');
    expect(await codeOf(call('derive', generic.handle, kdf(hmac)))).toBe('done');
  });

  test('a private key signs with the algorithm that it has', async () => {
    const ec = await makePair('ec', 256, ['sign', 'derive']);
    const digest = Buffer.alloc(32, 1);
    expect(await codeOf(call('sign', ec.handle, { algorithm: 'rsa-pkcs1' }, digest))).toBe('key-usage');
    expect(await codeOf(call('sign', ec.handle, { algorithm: 'ed25519' }, digest))).toBe('key-usage');
    expect(await codeOf(call('sign', ec.handle, hmac, digest))).toBe('key-usage');
    expect(await codeOf(call('sign', ec.handle, { algorithm: 'ecdsa' }, digest))).toBe('done');
    expect(await codeOf(call('derive', ec.handle, { mechanism: hkdf, into: session() }))).toBe('key-usage');
  });
});

test('a GCM tag has at least 96 bits', async () => {
  const { handle } = await make({});
  for (const tagLength of [4, 8, 11, 17]) {
    expect(await codeOf(call('encrypt', handle, gcm(tagLength), message))).toBe('validation');
    expect(await codeOf(call('decrypt', handle, gcm(tagLength), message))).toBe('validation');
    const part = { state: '', last: true, use: 'decrypt', cipher: gcm(tagLength) };
    expect(await codeOf(call('cipherPart', handle, part, message))).toBe('validation');
  }
  expect(await codeOf(call('encrypt', handle, gcm(12), message))).toBe('done');
});

test('a key whose value cannot be read has 128 bits where its length is chosen', async () => {
  const { handle } = await make({ algorithm: 'generic', usages: ['derive'] });
  for (const bits of [8, 16, 120])
    for (const into of [session({ bits }), onToken({ bits }), session({ bits, sensitive: false })])
      expect(await codeOf(call('derive', handle, { mechanism: hkdf, into }))).toBe('validation');
  const readable = { bits: 8, sensitive: false, extractable: true };
  expect(await codeOf(call('derive', handle, { mechanism: hkdf, into: session(readable) }))).toBe('done');
  expect(await codeOf(call('derive', handle, { mechanism: hkdf, into: onToken({ bits: 128 }) }))).toBe('done');
  const unwrapping = await make({ usages: ['encrypt', 'unwrap'] });
  const wrapped = (await call('encrypt', unwrapping.handle, cbc, message)).raw;
  const cipher = { way: 'cipher', cipher: cbc };
  const unwrap = (into: object) => codeOf(call('unwrap', unwrapping.handle, { mechanism: cipher, into }, wrapped));
  expect(await unwrap(session({ bits: 8 }))).toBe('validation');
  expect(await unwrap(onToken({ bits: 120 }))).toBe('validation');
  expect(await unwrap(session({ bits: 128 }))).toBe('done');
});

describe('a key leaves', () => {
  const open = { sensitive: false, extractable: true };
  /** Under a key of the one who asks. */
  const wrapFor = async (guid: string, handle: number): Promise<TdeAnswer> => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const spki = publicKey.export({ format: 'der', type: 'spki' });
    const given = { class: 'public-key', algorithm: 'rsa', bits: null, usages: ['wrap'], ...open };
    const made = await callTde(opened.service, guid, 'createObject', described(given), { handle: 0, raw: spki });
    const by = (made.head as Made).handle;
    return callTde(opened.service, guid, 'wrap', { mechanism: oaep, key: token(handle) }, { handle: by });
  };

  test('only if it is extractable, and only for its owner, not for another application of the group', async () => {
    const stays = await make({ sensitive: false, extractable: false });
    const leaves = await make(open);
    expect(await codeOf(wrapFor(accessGuid, stays.handle))).toBe('forbidden');
    expect(await codeOf(wrapFor(otherGuid, leaves.handle))).toBe('forbidden');
    expect(await codeOf(callTde(opened.service, otherGuid, 'readValue', {}, { handle: leaves.handle }))).toBe(
      'forbidden',
    );
    expect(await codeOf(wrapFor(accessGuid, leaves.handle))).toBe('done');
    // Refusals are recorded in order: once the later one is there, the earlier one must be as well.
    expect((await untilAudited(opened, 'key.denied', leaves.id)).details).toMatchObject({
      reason: 'owned by another application',
    });
    const { items } = await opened.operations.audit.list(administrator, { kind: 'key.denied', subjectId: stays.id });
    expect(items.map(({ details }) => details)).toMatchObject([{ reason: 'not extractable' }]);
  });

  test('readable only if it is extractable and not sensitive', async () => {
    const read = async (change: object): Promise<string> => codeOf(call('readValue', (await make(change)).handle, {}));
    expect(await read({ sensitive: true, extractable: true })).toBe('forbidden');
    expect(await read({ sensitive: false, extractable: false })).toBe('forbidden');
    expect(await read(open)).toBe('done');
  });
});

describe('what the maker of a key has laid down', () => {
  const ruled = (rules: KeyRules, change: object = {}): Promise<Made> => make({ rules, ...change });

  test('its mechanisms: it is used with no other one', async () => {
    const usages = ['encrypt', 'decrypt', 'wrap', 'unwrap', 'sign'];
    const { handle, id } = await ruled({ mechanisms: ['aes-cbc', 'key-wrap'] }, { usages });
    expect(await codeOf(call('encrypt', handle, cbc, message))).toBe('done');
    expect(await codeOf(call('encrypt', handle, ecb, message))).toBe('key-usage');
    expect(await codeOf(call('decrypt', handle, ecb, message))).toBe('key-usage');
    expect(await codeOf(call('sign', handle, { algorithm: 'aes-cmac' }, message))).toBe('key-usage');
    const part = { state: '', last: true, use: 'encrypt', cipher: gcm(16) };
    expect(await codeOf(call('cipherPart', handle, part, message))).toBe('key-usage');
    const other = await make({ sensitive: false, extractable: true });
    const wrap = (padded: boolean) =>
      codeOf(call('wrap', handle, { mechanism: { way: 'key-wrap', padded }, key: token(other.handle) }));
    expect(await wrap(true)).toBe('key-usage');
    expect(await wrap(false)).toBe('done');
    const denied = await untilAudited(opened, 'key.denied', id);
    expect(denied.details).toMatchObject({ reason: 'mechanism not allowed' });
    // An empty list of mechanisms allows none at all.
    const none = await ruled({ mechanisms: [] });
    expect(await codeOf(call('encrypt', none.handle, cbc, message))).toBe('key-usage');
  });

  test('that it is wrapped by a trusted key: no key wraps it, also not one of an attacker', async () => {
    const attacker = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const { handle: by } = await createPublic(attacker.publicKey.export({ format: 'der', type: 'spki' }));
    const open = { sensitive: false, extractable: true } as const;
    const subject = await ruled({ wrapWithTrusted: true }, open);
    const free = await make(open);
    const wrap = (key: number) => call('wrap', by, { mechanism: oaep, key: token(key) });
    expect(await codeOf(wrap(subject.handle))).toBe('forbidden');
    expect((await untilAudited(opened, 'key.denied', subject.id)).details).toMatchObject({
      reason: 'requires a trusted key',
    });
    const { raw } = await wrap(free.handle);
    const value = privateDecrypt({ key: attacker.privateKey, oaepHash: 'sha256' }, raw);
    expect(value).toEqual((await call('readValue', free.handle, {})).raw);
    // Its owner says so later: once, and permanently.
    const raised = { ...{ mechanism: oaep }, key: token(free.handle) };
    expect(await codeOf(call('updateObject', free.handle, { wrapWithTrusted: true }))).toBe('forbidden');
    const changeable = await make({ ...open, modifiable: true });
    expect(await codeOf(call('updateObject', changeable.handle, { wrapWithTrusted: true }))).toBe('done');
    expect(await codeOf(call('updateObject', changeable.handle, { wrapWithTrusted: false }))).toBe('validation');
    expect(await codeOf(wrap(changeable.handle))).toBe('forbidden');
    expect(await codeOf(call('wrap', by, raised))).toBe('done');
  });

  test('what it wraps', async () => {
    const usages = ['wrap'];
    const { handle, id } = await ruled({ wraps: { extractable: true, algorithms: ['generic'] } }, { usages });
    const open = { sensitive: false, extractable: true } as const;
    const wrap = async (change: object) =>
      codeOf(call('wrap', handle, { mechanism: keyWrap, key: token((await make({ ...open, ...change })).handle) }));
    expect(await wrap({})).toBe('forbidden');
    expect(await wrap({ algorithm: 'generic' })).toBe('done');
    expect((await untilAudited(opened, 'key.denied', id)).details).toMatchObject({ reason: 'prescription' });
    const publicKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;
    const rules = { wraps: { sensitive: true } } satisfies KeyRules;
    const by = await createPublic(publicKey.export({ format: 'der', type: 'spki' }), { rules });
    const key = token((await make(open)).handle);
    expect(await codeOf(call('wrap', by.handle, { mechanism: oaep, key }))).toBe('forbidden');
  });

  test('what it derives: that it stays in the service, and stays hidden', async () => {
    const strict = {
      onToken: true,
      sensitive: true,
      extractable: false,
      usages: ['sign'],
      noUsages: ['derive'],
    } as const;
    const { handle } = await ruled({ derives: strict }, { algorithm: 'generic', usages: ['derive'] });
    const derive = (into: object) => codeOf(call('derive', handle, { mechanism: hkdf, into }));
    const uses = { usages: ['sign'] };
    expect(await derive(session())).toBe('forbidden');
    expect(await derive(onToken({ ...uses, sensitive: false }))).toBe('forbidden');
    expect(await derive(onToken({ ...uses, extractable: true }))).toBe('forbidden');
    expect(await derive(onToken({ usages: ['sign', 'derive'] }))).toBe('forbidden');
    expect(await derive(onToken({ usages: [] }))).toBe('forbidden');
    expect(await derive(onToken(uses))).toBe('done');
  });

  test('what it unwraps', async () => {
    const usages = ['wrap', 'unwrap'];
    const { handle } = await ruled({ unwraps: { class: 'secret-key', bits: 128, wrapWithTrusted: true } }, { usages });
    const subject = await make({ bits: 128, sensitive: false, extractable: true });
    const wrapped = (await call('wrap', handle, { mechanism: keyWrap, key: token(subject.handle) })).raw;
    const unwrap = (into: object) => codeOf(call('unwrap', handle, { mechanism: keyWrap, into }, wrapped));
    const marked = { wrapWithTrusted: true } satisfies KeyRules;
    expect(await unwrap(onToken({ bits: 256, rules: marked }))).toBe('forbidden');
    expect(await unwrap(onToken({ bits: 128 }))).toBe('forbidden');
    expect(await unwrap(onToken({ bits: 128, rules: marked }))).toBe('done');
  });

  test('cannot be changed, and an unknown rule is refused instead of ignored', async () => {
    const { handle } = await ruled({ mechanisms: ['aes-cbc'] }, { modifiable: true });
    expect(await codeOf(call('updateObject', handle, { rules: {} }))).toBe('validation');
    expect(await codeOf(call('updateObject', handle, { attributes: '', label: toLabel('renamed') }))).toBe('done');
    expect(await codeOf(call('encrypt', handle, ecb, message))).toBe('key-usage');
    for (const rules of [{ mechanisms: ['CKM_AES_CBC'] }, { wraps: { colour: 'blue' } }, { forbids: [] }])
      expect(await codeOf(call('generateKey', 0, described({ rules })))).toBe('validation');
  });
});
