// The state between two parts of a long message returns through the caller: who knows the key of
// the message can make none, and a message continues across erasure runs.
import { createCipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { ServiceInfo, TdeRoutes } from '../../../server/contract/tde.ts';
import {
  administrator,
  callTde,
  masterKey,
  openTestService,
  registerCaller,
  untilAudited,
} from '../../support/open-service.ts';
import { sealedBytes } from '../../support/sealed-key.ts';
import { sharedService } from '../../support/shared.ts';

const opened = sharedService();
const cipher = { algorithm: 'aes-gcm', iv: Buffer.alloc(12, 9).toString('base64'), aad: '', tagLength: 16 } as const;
const data = randomBytes(50_000);

const asker =
  (service: Parameters<typeof callTde>[0], accessGuid: string) =>
  async <R extends keyof TdeRoutes>(
    route: R,
    head: TdeRoutes[R]['head'],
    options: NonNullable<Parameters<typeof callTde>[4]> = {},
  ) => {
    const { status, head: answer, raw } = await callTde(service, accessGuid, route, head, options);
    const known = answer as TdeRoutes[R]['answer'] & { readonly code?: string; readonly reason?: string };
    return { code: status === 200 ? 'none' : known.code, answer: known, raw };
  };
type Ask = ReturnType<typeof asker>;
const part = (
  ask: Ask,
  handle: number,
  state: string,
  raw: Uint8Array,
  last = false,
  use: 'encrypt' | 'decrypt' = 'encrypt',
) => ask('cipherPart', { use, cipher, state, last }, { handle, raw: Buffer.from(raw) });

/**
 * A state as version 1 sealed it: under HKDF of the key of the message. `restLength`: what it says
 * is kept of a block.
 */
const forged = (value: Buffer, owner: string, restLength: number): Buffer => {
  const field = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes]);
  const binding = Buffer.concat([
    Buffer.from([1, 1, 4, 16, 0, 0, 0, 0, 0, 0, 0, 0]),
    field(Buffer.alloc(12, 9)),
    field(Buffer.from(owner)),
  ]);
  const plain = Buffer.alloc(49);
  plain[32] = restLength;
  const salt = randomBytes(32);
  const key = Buffer.from(hkdfSync('sha256', value, salt, 'dke message part: seal\0', 32));
  const sealing = createCipheriv('aes-256-gcm', key, Buffer.alloc(12)).setAAD(binding);
  return Buffer.concat([salt, sealing.update(plain), sealing.final(), sealing.getAuthTag()]);
};

test('a caller who knows the value of the key makes no state of a message', async () => {
  const { accessGuid } = await registerCaller(opened, 'forger');
  const ask = asker(opened.service, accessGuid);
  const value = randomBytes(32);
  const head = { ...masterKey('known'), usages: ['encrypt', 'decrypt', 'derive'] as const };
  const info: ServiceInfo = (await ask('info', {})).answer;
  const { handle } = (
    await ask('createObject', head, {
      once: 'known',
      raw: sealedBytes(info, 'createObject', head, value, { once: 'known' }),
    })
  ).answer;
  const first = await part(ask, handle, '', data.subarray(0, 100));
  const epoch = Buffer.from(first.answer.state, 'base64').subarray(0, 4);
  for (const restLength of [0, 16, 200])
    for (const front of [Buffer.alloc(0), epoch]) {
      const state = Buffer.concat([front, forged(value, `${info.applicationId}\n`, restLength)]).toString('base64');
      expect((await part(ask, handle, state, data)).code).toMatch(/^(validation|conflict)$/);
    }
  // The service is there, and the message continues.
  expect((await part(ask, handle, first.answer.state, data.subarray(100), true)).code).toBe('none');
});

test('a state is for the application and the key of its message, not for others of the group', async () => {
  const { accessGuid, groupId } = await registerCaller(opened, 'owner of a message');
  const { accessGuid: otherGuid } = await registerCaller(opened, 'beside the owner', groupId);
  const ask = asker(opened.service, accessGuid);
  const other = asker(opened.service, otherGuid);
  const key = async (label: string) => (await ask('generateKey', masterKey(label))).answer.handle;
  const [own, beside] = [await key('of the message'), await key('of another one')];
  const sealed = await Promise.all(
    [own, beside].map(async (at) => (await ask('encrypt', cipher, { handle: at, raw: data })).raw),
  );
  const [of, another] = sealed as [Buffer, Buffer];
  // Each of the two applications may use each of the two keys.
  for (const by of [ask, other])
    for (const [handle, raw] of [
      [own, of],
      [beside, another],
    ] as const)
      expect((await part(by, handle, '', raw, true, 'decrypt')).code).toBe('none');
  const { state } = (await part(ask, own, '', of.subarray(0, 20_000), false, 'decrypt')).answer;
  const last = async (by: Ask, handle: number): Promise<string | undefined> =>
    (await part(by, handle, state, of.subarray(20_000), true, 'decrypt')).code;
  expect(await last(other, own)).toMatch(/^(validation|conflict)$/);
  expect(await last(ask, beside)).toMatch(/^(validation|conflict)$/);
  expect(await last(ask, own)).toBe('none');
});

test('a message continues on another node and across erasure runs', async () => {
  const first = await openTestService();
  const { accessGuid } = await registerCaller(first, 'erased');
  let ask = asker(first.service, accessGuid);
  const { handle } = (await ask('generateKey', masterKey('long'))).answer;
  const before = await part(ask, handle, '', data.subarray(0, 20_000));
  await first.stop();
  const again = await openTestService({ folder: first.folder });
  try {
    ask = asker(again.service, accessGuid);
    const middle = await part(ask, handle, before.answer.state, data.subarray(20_000, 30_000));
    await again.operations.root.rotate(administrator);
    await untilAudited(again, 'erasure.finished');
    const last = await part(ask, handle, middle.answer.state, data.subarray(30_000), true);
    expect(last.code).toBe('none');
    const sealed = Buffer.concat([before.raw, middle.raw, last.raw]);
    expect(Buffer.compare((await ask('decrypt', cipher, { handle, raw: sealed })).raw, data)).toBe(0);
  } finally {
    await again.remove();
  }
});

test('a restart after an erasure run ends a message: it then begins again', async () => {
  const first = await openTestService();
  const { accessGuid } = await registerCaller(first, 'ended');
  let ask = asker(first.service, accessGuid);
  const { handle } = (await ask('generateKey', masterKey('long'))).answer;
  const before = await part(ask, handle, '', data.subarray(0, 20_000));
  await first.operations.root.rotate(administrator);
  await untilAudited(first, 'erasure.finished');
  await first.stop();
  const again = await openTestService({ folder: first.folder });
  try {
    ask = asker(again.service, accessGuid);
    const refused = await part(ask, handle, before.answer.state, data.subarray(20_000), true);
    expect([refused.code, refused.answer.reason]).toEqual(['conflict', 'message-ended']);

    // The message begins again under its IV: this is allowed while every part equals the earlier
    // one.
    const begun = await part(ask, handle, '', data.subarray(0, 20_000));
    expect(Buffer.compare(begun.raw, before.raw)).toBe(0);
    expect(begun.answer.state).not.toBe(before.answer.state);
    const second = await part(ask, handle, begun.answer.state, data.subarray(20_000, 30_000));
    // What was encrypted before under this IV was this and no other second part.
    const other = Buffer.alloc(10_000, 1);
    expect((await part(ask, handle, begun.answer.state, other)).code).toBe('conflict');
    const last = await part(ask, handle, second.answer.state, data.subarray(30_000), true);
    const sealed = Buffer.concat([begun.raw, second.raw, last.raw]);
    expect(Buffer.compare((await ask('decrypt', cipher, { handle, raw: sealed })).raw, data)).toBe(0);
  } finally {
    await again.remove();
  }
});
