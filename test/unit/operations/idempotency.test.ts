// Requests under an Idempotency-Key, in the service itself: their records are written together with
// their results.
import { expect, test } from 'vitest';
import { newId } from '../../../server/base/ids.ts';
import type { RowAuthenticator } from '../../../server/base/row-jobs.ts';
import { ServiceError } from '../../../server/base/service-error.ts';
import { systemClock } from '../../../server/base/time.ts';
import {
  createIdempotency,
  type KeptAnswer,
  type RepeatableRequest,
} from '../../../server/operations/shared/answer-once.ts';
import type { StoredRequest } from '../../../server/ports/kept-answers.ts';
import type { Store } from '../../../server/ports/store.ts';
import { administrator } from '../../support/open-service.ts';
import { freshService, restart } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = freshService();

const requestOf = (id: string, fingerprint = 'create a vault'): RepeatableRequest => ({
  id,
  fingerprint,
  requestId: newId(1),
});
const create = (name: string) => async (): Promise<KeptAnswer> => {
  const vault = await opened.operations.vaults.create(administrator, { name });
  return { location: `/api/vaults/${vault.id}`, body: JSON.stringify({ name }) };
};
const vaultsOf = async (name: string): Promise<number> =>
  (await queryStored(opened.folder, 'select id from vaults where name = ?', name)).length;
const once = (request: RepeatableRequest, work: () => Promise<KeptAnswer>) =>
  opened.operations.idempotency.once(request, work);

test('one is carried out once, and answered the same afterwards and after a restart', async () => {
  const { kept, repeated } = await once(requestOf('a'), create('one'));
  expect(repeated).toBe(false);
  const again = await once(requestOf('a'), create('one'));
  expect(again).toEqual({ kept, repeated: true });
  await restart(opened);
  expect(await once(requestOf('a'), create('one'))).toEqual(again);
  expect(await vaultsOf('one')).toBe(1);
  await expect(once(requestOf('a', 'create a key'), create('two'))).rejects.toMatchObject({ code: 'conflict' });
  expect(await vaultsOf('two')).toBe(0);
});

test('one that was refused may be tried again, whether or not it had written something', async () => {
  const refuse = (work: () => Promise<unknown>) => async (): Promise<KeptAnswer> => {
    await work();
    throw new ServiceError('conflict', 'refused');
  };
  await expect(
    once(
      requestOf('b'),
      refuse(async () => undefined),
    ),
  ).rejects.toThrow('refused');
  await expect(once(requestOf('b'), refuse(create('kept')))).rejects.toThrow('refused');
  expect(await queryStored(opened.folder, 'select id from idempotency_keys')).toEqual([]);
  expect((await once(requestOf('b'), create('made'))).repeated).toBe(false);
  expect(await vaultsOf('made')).toBe(1);
});

test.each([
  new TypeError('a fault of the service'),
  // The store was lost when the answer was to be read.
  new ServiceError('unavailable', 'the database does not answer'),
])('one that was carried out and then failed is not carried out again: %s', async (fault) => {
  const failing = async (): Promise<KeptAnswer> => {
    await create('failed')();
    throw fault;
  };
  await expect(once(requestOf('e'), failing)).rejects.toBe(fault);
  // Under another name, which the names of vaults do not refuse.
  await expect(once(requestOf('e'), create('again'))).rejects.toMatchObject({ code: 'conflict' });
  expect([await vaultsOf('failed'), await vaultsOf('again')]).toEqual([1, 0]);
});

test('one that was carried out and not answered is not carried out again, and the repeat says where to look', async () => {
  const first = requestOf('c');
  let written: () => void = () => undefined;
  const isWritten = new Promise<void>((resolve) => {
    written = resolve;
  });
  // Its process ends between the commit and the answer.
  void once(first, async () => {
    await create('cut off')();
    written();
    return new Promise(() => undefined);
  });
  await isWritten;
  await restart(opened);
  await expect(once(requestOf('c'), create('cut off'))).rejects.toMatchObject({
    code: 'conflict',
    hint: expect.stringContaining(first.requestId),
  });
  expect(await vaultsOf('cut off')).toBe(1);
});

test('what was changed from outside is given to no one', async () => {
  await once(requestOf('d'), create('real'));
  await queryStored(opened.folder, "update idempotency_keys set location = '/api/vaults/of-somebody-else'");
  await expect(once(requestOf('d'), create('real'))).rejects.toMatchObject({ code: 'key-tampered' });
});

test('one that was carried out before ids had a key of their own is not carried out again', async () => {
  const authenticateRow: RowAuthenticator = (text, job) => `${job}: ${text}`;
  const kept: KeptAnswer = { location: '/api/vaults/1', body: null };
  const stored: StoredRequest = {
    ...requestOf('earlier: idempotency id g', 'earlier: idempotency fingerprint create a vault'),
    ...{ run: 'a run', createdAt: 1, answer: kept, integrity: 'ok' },
  };
  const get = async (id: string) => (id === stored.id ? stored : undefined);
  const { operations } = createIdempotency({ read: { idempotency: { get } } } as unknown as Store, {
    clock: systemClock,
    log: undefined as never,
    fleet: undefined as never,
    ring: { authenticateRow },
  });
  expect(await operations.once(requestOf('g'), () => Promise.reject(new Error('again')))).toEqual({
    ...{ kept, repeated: true },
  });
  await expect(operations.once(requestOf('g', 'another'), () => Promise.reject(new Error('again')))).rejects.toThrow(
    'already used for another request',
  );
});
