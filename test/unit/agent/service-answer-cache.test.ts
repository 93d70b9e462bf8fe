// When no new request to the service is necessary: provider/client/service-answer-cache.ts.
import { describe, expect, test } from 'vitest';
import type { ServiceRequest } from '../../../provider/client/service.ts';
import { ServiceAnswerCache } from '../../../provider/client/service-answer-cache.ts';
import type { KeyUsage } from '../../../server/fronts/contract/tde.ts';

const check = (handle: number, usage: KeyUsage): ServiceRequest => ({
  route: 'checkUse',
  handle,
  head: { usage },
  raw: null,
});
const encrypt = (handle: number): ServiceRequest => ({
  route: 'encrypt',
  handle,
  head: { algorithm: 'aes-ecb' },
  raw: null,
});

const start = (lastMs = 500) => {
  let time = 1000;
  const checks = new ServiceAnswerCache(lastMs, () => time);
  return {
    checks,
    pass(ms: number) {
      time += ms;
    },
    succeed: (request: ServiceRequest, epoch = 7, sentAt = time, answer: unknown = {}) =>
      checks.answered(request, sentAt, epoch, answer),
  };
};

test('a use counts for the same key and the same use, for a while from when it was asked', () => {
  const { checks, pass, succeed } = start();
  expect(checks.recall(check(1, 'encrypt'))).toBeNull();
  succeed(encrypt(1));
  expect(checks.recall(check(1, 'encrypt'))).not.toBeNull();
  expect(checks.recall(check(1, 'decrypt'))).toBeNull();
  expect(checks.recall(check(2, 'encrypt'))).toBeNull();
  pass(499);
  expect(checks.recall(check(1, 'encrypt'))).not.toBeNull();
  pass(1);
  expect(checks.recall(check(1, 'encrypt'))).toBeNull();
  succeed(check(1, 'sign'), 7, 1000);
  expect(checks.recall(check(1, 'sign'))).toBeNull();
});
test('only the question is spared, never the operation', () => {
  const { checks, succeed } = start();
  succeed(encrypt(1));
  expect(checks.recall(encrypt(1))).toBeNull();
});
test('any change or failure in the service causes a new request', () => {
  const { checks, succeed } = start();
  succeed(check(1, 'encrypt'));
  succeed(check(2, 'encrypt'), 8);
  expect([1, 2].map((handle) => checks.recall(check(handle, 'encrypt')))).toEqual([null, {}]);
  checks.failed();
  expect(checks.recall(check(2, 'encrypt'))).toBeNull();
});
test('an answer that a change has overtaken says nothing', () => {
  const { checks, succeed } = start();
  succeed(check(2, 'encrypt'), 8);
  succeed(check(1, 'encrypt'), 7);
  expect([1, 2].map((handle) => checks.recall(check(handle, 'encrypt')))).toEqual([null, {}]);
});
test('with key_check_ms = 0 every Init asks', () => {
  const { checks, succeed } = start(0);
  succeed(check(1, 'encrypt'));
  expect(checks.recall(check(1, 'encrypt'))).toBeNull();
});

describe('an object', () => {
  const get = (handle: number): ServiceRequest => ({ route: 'getObject', handle, head: {}, raw: null });
  const find: ServiceRequest = { route: 'findObjects', handle: null, head: { after: 0, limit: 2 }, raw: null };
  const [one, two] = [{ handle: 1 }, { handle: 2 }];

  test('that was found or fetched is known, for a while and until something changes', () => {
    const { checks, pass, succeed } = start();
    succeed(find, 7, 1000, { objects: [one, two], more: false });
    expect([1, 2, 3].map((handle) => checks.recall(get(handle)))).toEqual([one, two, null]);
    pass(400);
    succeed(get(2), 7, 1400, two);
    pass(100);
    expect([1, 2].map((handle) => checks.recall(get(handle)))).toEqual([null, two]);
    succeed(find, 8, 1500, { objects: [], more: false });
    expect(checks.recall(get(2))).toBeNull();
  });
  test('that was found with what it may be used for need not be asked for that', () => {
    const { checks, pass, succeed } = start();
    succeed(find, 7, 1000, { objects: [{ handle: 1, admits: ['encrypt', 'decrypt'] }, two], more: false });
    const recalled = (handle: number, usage: KeyUsage) => checks.recall(check(handle, usage));
    expect([recalled(1, 'encrypt'), recalled(1, 'decrypt')]).toEqual([{}, {}]);
    expect([recalled(1, 'sign'), recalled(2, 'encrypt')]).toEqual([null, null]);
    pass(500);
    expect(recalled(1, 'encrypt')).toBeNull();
  });
  test('is searched for again each time', () => {
    const { checks, succeed } = start();
    succeed(find, 7, 1000, { objects: [one], more: false });
    expect(checks.recall(find)).toBeNull();
  });
});
