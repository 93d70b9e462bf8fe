// When an Init need not ask the service again: provider/client/use-checks.ts.
import { expect, test } from 'vitest';
import type { ServiceRequest } from '../../../provider/client/service.ts';
import { UseChecks } from '../../../provider/client/use-checks.ts';
import type { KeyUsage } from '../../../server/fronts/contract/tde.ts';

const check = (handle: number, usage: KeyUsage): ServiceRequest => ({
  route: 'checkUse',
  handle,
  head: { usage },
  raw: null,
});
const encrypt = (handle: number): ServiceRequest => ({ route: 'encrypt', handle, head: { mode: 'ecb' }, raw: null });

const start = (lastMs = 500) => {
  let time = 1000;
  const checks = new UseChecks(lastMs, () => time);
  return {
    checks,
    pass(ms: number) {
      time += ms;
    },
    succeed: (request: ServiceRequest, epoch = 7, sentAt = time) => checks.succeeded(request, sentAt, epoch),
  };
};

test('a use counts for the same key and the same use, for a while from when it was asked', () => {
  const { checks, pass, succeed } = start();
  expect(checks.knows(check(1, 'encrypt'))).toBe(false);
  succeed(encrypt(1));
  expect(checks.knows(check(1, 'encrypt'))).toBe(true);
  expect(checks.knows(check(1, 'decrypt'))).toBe(false);
  expect(checks.knows(check(2, 'encrypt'))).toBe(false);
  pass(499);
  expect(checks.knows(check(1, 'encrypt'))).toBe(true);
  pass(1);
  expect(checks.knows(check(1, 'encrypt'))).toBe(false);
  succeed(check(1, 'sign'), 7, 1000);
  expect(checks.knows(check(1, 'sign'))).toBe(false);
});
test('only the question is spared, never the operation', () => {
  const { checks, succeed } = start();
  succeed(encrypt(1));
  expect(checks.knows(encrypt(1))).toBe(false);
});
test('whatever changes in the service, or goes wrong, has everything asked anew', () => {
  const { checks, succeed } = start();
  succeed(check(1, 'encrypt'));
  succeed(check(2, 'encrypt'), 8);
  expect([1, 2].map((handle) => checks.knows(check(handle, 'encrypt')))).toEqual([false, true]);
  checks.failed();
  expect(checks.knows(check(2, 'encrypt'))).toBe(false);
});
test('an answer that a change has overtaken says nothing', () => {
  const { checks, succeed } = start();
  succeed(check(2, 'encrypt'), 8);
  succeed(check(1, 'encrypt'), 7);
  expect([1, 2].map((handle) => checks.knows(check(handle, 'encrypt')))).toEqual([false, true]);
});
test('with key_check_ms = 0 every Init asks', () => {
  const { checks, succeed } = start(0);
  succeed(check(1, 'encrypt'));
  expect(checks.knows(check(1, 'encrypt'))).toBe(false);
});
