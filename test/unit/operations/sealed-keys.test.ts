// Keys that are sent to the service: the recipient key, the binding, and its expiry.
import { createCipheriv, generateKeyPairSync, randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import type { ServiceInfo, TdeRoutes, TokenObject } from '../../../server/contract/tde.ts';
import {
  administrator,
  callTde,
  masterKey,
  openTestService,
  registerCaller,
  toLabel,
  untilAudited,
} from '../../support/open-service.ts';
import { sealedBytes } from '../../support/sealed-key.ts';
import { sharedService } from '../../support/shared.ts';

const opened = sharedService();
let guid: string;
let sibling: string;
beforeAll(async () => {
  const { accessGuid, groupId } = await registerCaller(opened, 'own');
  guid = accessGuid;
  sibling = (await registerCaller(opened, 'sibling', groupId)).accessGuid;
});

type Options = NonNullable<Parameters<typeof callTde>[4]>;
const ask = async <R extends keyof TdeRoutes>(
  route: R,
  head: TdeRoutes[R]['head'],
  options: Options = {},
  accessGuid = guid,
) => {
  const { status, head: answer, raw } = await callTde(opened.service, accessGuid, route, head, options);
  const known = answer as TdeRoutes[R]['answer'] & { readonly code?: string; readonly reason?: string };
  return { code: status === 200 ? 'none' : known.code, answer: known, raw };
};
const info = async (accessGuid = guid): Promise<ServiceInfo> => (await ask('info', {}, {}, accessGuid)).answer;

const head = (label: string) => ({ ...masterKey(label), usages: ['encrypt'] as const, modifiable: true });
const block = Buffer.alloc(16, 1);
const holds = async ({ handle }: Pick<TokenObject, 'handle'>, value: Buffer): Promise<void> => {
  const { raw } = await ask('encrypt', { algorithm: 'aes-ecb' }, { handle, raw: block });
  expect(raw).toEqual(createCipheriv('aes-256-ecb', value, null).setAutoPadding(false).update(block));
};
const labelled = async (label: string): Promise<number> =>
  (await ask('findObjects', { label: toLabel(label), after: 0, limit: 10 })).answer.objects.length;

test('every node, and the same one after a restart, has the same recipient; another tenant has another one', async () => {
  const first = await openTestService();
  const { caller } = await registerCaller(first, 'restarted');
  const before = await first.operations.tde.info(caller);
  const tenant = await first.operations.tenants.create(administrator, { name: 'other' });
  const elsewhere = { ...caller, application: { ...caller.application, tenantId: tenant.id } };
  expect((await first.operations.tde.info(elsewhere)).recipient).not.toEqual(before.recipient);
  await first.stop();
  const again = await openTestService({ folder: first.folder });
  try {
    expect((await again.operations.tde.info(caller)).recipient).toEqual(before.recipient);
  } finally {
    await again.remove();
  }
});

test('a key that does not come sealed is refused', async () => {
  for (const raw of [randomBytes(32), Buffer.alloc(0), randomBytes(36), randomBytes(84)])
    expect(['validation', 'conflict']).toContain((await ask('createObject', head('plain'), { raw })).code);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pair = { ...head('plain'), class: 'private-key', algorithm: 'ec', bits: null, usages: ['sign'] } as const;
  const raw = privateKey.export({ format: 'der', type: 'pkcs8' });
  expect(['validation', 'conflict']).toContain((await ask('createObject', pair, { raw })).code);
  expect(await labelled('plain')).toBe(0);
});

describe('a sealed key is for one request: it does not open', () => {
  const once = 'the-request';
  const value = randomBytes(32);
  const made = head('bound');
  const sealed = async () => sealedBytes(await info(), 'createObject', made, value, { once });

  test.each([
    ['with another head', { ...made, sensitive: false, extractable: true }, { once }],
    [
      'with the same head in another order',
      Object.fromEntries(Object.entries(made).reverse()) as typeof made,
      { once },
    ],
    ['under another Idempotency-Key', made, { once: 'another' }],
    ['without an Idempotency-Key', made, {}],
  ])('%s', async (_name, other, options) => {
    expect((await ask('createObject', other, { ...options, raw: await sealed() })).code).toBe('invalid-ciphertext');
  });
  test('of another application of the group', async () => {
    const { code } = await ask('createObject', made, { once, raw: await sealed() }, sibling);
    expect(code).toBe('invalid-ciphertext');
  });
  test('with any part of it changed', async () => {
    const whole = await sealed();
    for (const at of [36, 68, whole.length - 1]) {
      const raw = Buffer.from(whole);
      raw[at] = (raw[at] ?? 0) ^ 1;
      expect((await ask('createObject', made, { once, raw })).code).toBe('invalid-ciphertext');
    }
  });
  test('on another route, or for another wrapping key, or as one that is not sensitive', async () => {
    const wrapper = { ...head('wrapper'), usages: ['wrap'] as const };
    const first = (await ask('generateKey', wrapper)).answer;
    const second = (await ask('generateKey', { ...wrapper, label: toLabel('second') })).answer;
    const key = { from: 'session', class: 'secret-key', sensitive: true } as const;
    const wrap = { mechanism: { way: 'key-wrap', padded: true }, key } as const;
    const { handle } = first;
    const raw = sealedBytes(await info(), 'wrap', wrap, value, { handle });
    expect((await ask('wrap', wrap, { handle: second.handle, raw })).code).toBe('invalid-ciphertext');
    const open = { ...wrap, key: { ...key, sensitive: false } };
    expect((await ask('wrap', open, { handle, raw })).code).toBe('invalid-ciphertext');
    expect((await ask('createObject', made, { once, raw })).code).toBe('invalid-ciphertext');
    expect((await ask('wrap', wrap, { handle, raw })).code).toBe('none');
  });
  test('is refused and nothing is created; unchanged, it opens', async () => {
    expect(await labelled('bound')).toBe(0);
    const { code, answer } = await ask('createObject', made, { once, raw: await sealed() });
    expect(code).toBe('none');
    await holds(answer, value);
  });
});

test('with the keys of the tenant the recipient changes: what was sealed before no longer opens, but what was done is done', async () => {
  const before = await info();
  const value = randomBytes(32);
  const [done, late] = [head('done'), head('late')];
  const carriedOut = sealedBytes(before, 'createObject', done, value, { once: 'done' });
  const first = await ask('createObject', done, { once: 'done', raw: carriedOut });
  expect(first.code).toBe('none');

  await opened.operations.root.rotate(administrator);
  await untilAudited(opened, 'erasure.finished');
  const after = await info();
  expect(after.recipient).not.toEqual(before.recipient);
  expect(after.applicationId).toBe(before.applicationId);

  const refused = await ask('createObject', late, { raw: sealedBytes(before, 'createObject', late, value) });
  expect([refused.code, refused.answer.reason]).toEqual(['conflict', 'recipient-changed']);
  const wrap = {
    mechanism: { way: 'key-wrap', padded: true },
    key: { from: 'session', class: 'secret-key', sensitive: true },
  } as const;
  const { handle } = (await ask('generateKey', { ...head('wraps later'), usages: ['wrap'] })).answer;
  const unwrapped = await ask('wrap', wrap, { handle, raw: sealedBytes(before, 'wrap', wrap, value, { handle }) });
  expect([unwrapped.code, unwrapped.answer.reason]).toEqual(['conflict', 'recipient-changed']);
  expect(await labelled('late')).toBe(0);

  const repeat = await ask('createObject', done, { once: 'done', raw: carriedOut });
  expect(repeat).toMatchObject(first);
  const { code, answer } = await ask('createObject', late, { raw: sealedBytes(after, 'createObject', late, value) });
  expect(code).toBe('none');
  await holds(answer, value);
});
