// When no new request to the service is necessary: provider/agent/service/service-answer-cache.ts.

import { describe, expect, test } from 'vitest';
import { ServiceAnswerCache } from '../../../provider/agent/service/service-answer-cache.ts';
import type { ServiceRequest } from '../../../provider/agent/service/service-door.ts';
import type { KeyUsage } from '../../../server/contract/tde.ts';
import {
  mostHeld,
  mostValues,
  packHandles,
  packHeld,
  packHeldAnswers,
  packValues,
  unpackHandles,
  unpackHeld,
  unpackHeldAnswers,
  unpackValues,
} from '../../../server/contract/tde-held.ts';
import fc from '../../support/property.ts';

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

const held = fc.record({
  handle: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  version: fc.integer({ min: 0, max: 2 ** 40 }),
  uses: fc.subarray(['encrypt', 'decrypt', 'wrap', 'unwrap', 'sign', 'verify', 'derive'] as const),
});

const start = (lastMs = 500) => {
  let time = 1000;
  const cache = new ServiceAnswerCache(lastMs, () => time);
  return {
    cache,
    checks: {
      recall: (request: ServiceRequest) => cache.recall(request)?.answer ?? null,
      failed: (handle?: number) => cache.failed(handle),
    },
    pass(ms: number) {
      time += ms;
    },
    succeed: (request: ServiceRequest, epoch = 7, sentAt = time, answer: unknown = {}) =>
      cache.answered(request, sentAt, epoch, answer),
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
  const known = { label: '', attributes: '', class: 'data', version: 5 };
  const [one, two] = [
    { ...known, handle: 1 },
    { ...known, handle: 2 },
  ];

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
    succeed(find, 7, 1000, { objects: [{ ...one, admits: ['encrypt', 'decrypt'] }, two], more: false });
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

describe('what is held and no longer counts', () => {
  const get = (handle: number): ServiceRequest => ({ route: 'getObject', handle, head: {}, raw: null });
  const value = (handle: number): ServiceRequest => ({ route: 'readValue', handle, head: {}, raw: null });
  const object = (handle: number, version = 5) => ({ handle, version, class: 'data', label: '', attributes: '' });

  test('is proven with one request, from when that was sent, and only what it proves counts', () => {
    const { cache, checks, pass, succeed } = start();
    for (const handle of [1, 2, 3]) {
      succeed(check(handle, 'encrypt'));
      checks.recall(check(handle, 'encrypt'));
    }
    pass(500);
    const asked = cache.toRefresh(check(2, 'encrypt'));
    expect(asked.map(({ handle, uses }) => [handle, uses])).toEqual([2, 1, 3].map((each) => [each, ['encrypt']]));
    const [proven, refused] = [
      { uses: ['encrypt'] as const, same: false },
      { uses: [], same: false },
    ];
    cache.refreshed(asked, 1400, 7, [proven, refused, proven]);
    expect([1, 2, 3].map((handle) => checks.recall(check(handle, 'encrypt')))).toEqual([null, {}, {}]);
    // What was refused is asked for alone from then on.
    expect(cache.toRefresh(check(1, 'encrypt'))).toEqual([]);
    pass(400);
    expect(checks.recall(check(2, 'encrypt'))).toBeNull();
  });
  test('is one that was said once, and not for long ago', () => {
    const { cache, checks, pass, succeed } = start();
    for (const handle of [1, 2]) {
      succeed(check(handle, 'encrypt'));
      checks.recall(check(handle, 'encrypt'));
    }
    expect(cache.toRefresh(check(1, 'decrypt'))).toEqual([]);
    expect(cache.toRefresh(check(3, 'encrypt'))).toEqual([]);
    expect(cache.toRefresh(encrypt(1))).toEqual([]);
    pass(10_000);
    expect(cache.toRefresh(check(1, 'encrypt'))).toHaveLength(2);
    checks.recall(check(1, 'encrypt'));
    pass(10_000);
    // The other one is no longer asked for.
    expect(cache.toRefresh(check(1, 'encrypt'))).toEqual([]);
  });
  test('an answer of another node counts when it was asked for later, whatever its epoch is', () => {
    const { checks, pass, succeed } = start();
    succeed(check(1, 'encrypt'), 900);
    pass(10);
    succeed(check(2, 'encrypt'), 7);
    expect([1, 2].map((handle) => checks.recall(check(handle, 'encrypt')))).toEqual([null, {}]);
  });
  test('a refusal of one object says nothing of others', () => {
    const { checks, succeed } = start();
    for (const handle of [1, 2]) succeed(check(handle, 'encrypt'));
    checks.failed(1);
    expect([1, 2].map((handle) => checks.recall(check(handle, 'encrypt')))).toEqual([null, {}]);
  });
  test('values count while the object has their version, for as long as that is proven', () => {
    const { cache, pass, succeed } = start();
    for (const handle of [1, 2]) succeed(get(handle), 7, 1000, object(handle));
    expect(cache.valuesToRead(value(2))).toEqual([2, 1]);
    cache.valuesRead([1, 2].map((handle) => ({ handle, version: 5, value: Buffer.from([handle]) })));
    expect(cache.recall(value(1))?.raw).toEqual(new Uint8Array([1]));
    expect(cache.valuesToRead(value(1))).toEqual([]);
    // The receiver wipes what it gets.
    cache.recall(value(1))?.raw.fill(0);
    expect(cache.recall(value(1))?.raw).toEqual(new Uint8Array([1]));
    pass(500);
    expect(cache.recall(value(1))).toBeNull();
    for (const handle of [1, 2]) cache.recall(get(handle));
    const asked = cache.toRefresh(get(1));
    expect(asked).toEqual([1, 2].map((handle) => ({ handle, uses: [], version: 5 })));
    cache.refreshed(asked, 1500, 7, [
      { uses: [], same: true },
      { uses: [], same: false },
    ]);
    expect(cache.recall(value(1))?.raw).toEqual(new Uint8Array([1]));
    expect(cache.recall(value(2))).toBeNull();
    succeed(get(2), 7, 1500, object(2, 6));
    expect(cache.recall(value(2))).toBeNull();
    expect(cache.valuesToRead(value(2))).toEqual([2]);
  });
  test('takes a bounded part of the memory, and is wiped when it goes', () => {
    const { cache, succeed } = start();
    const bytes = 64 * 1024;
    for (let handle = 1; handle <= 200; handle++) {
      succeed(get(handle), 7, 1000, object(handle));
      cache.valuesRead([{ handle, version: 5, value: Buffer.alloc(bytes, 1) }]);
    }
    expect(cache.recall(value(1))).toBeNull();
    expect(cache.recall(value(200))?.raw).toHaveLength(bytes);
    const kept = Array.from({ length: 200 }, (_, at) => cache.recall(value(at + 1))).filter((each) => each !== null);
    expect(kept).toHaveLength(128);
    cache.close();
    expect(cache.recall(value(200))).toBeNull();
  });
});

describe('the bytes of requests for many objects', () => {
  test('come back as they were', () => {
    fc.assert(
      fc.property(fc.array(held, { minLength: 1, maxLength: 20 }), (all) => {
        expect(unpackHeld(packHeld(all))).toEqual(all);
        const answers = all.map(({ uses, version }) => ({ uses, same: version % 2 === 0 }));
        expect(unpackHeldAnswers(packHeldAnswers(answers), answers.length)).toEqual(answers);
        const handles = all.map(({ handle }) => handle);
        expect(unpackHandles(packHandles(handles))).toEqual(handles);
        const values = all.map(({ handle, version }) => ({ handle, version, value: Buffer.alloc(version % 50, 3) }));
        expect(unpackValues(packValues(values))).toEqual(values);
      }),
    );
  });
  test('are refused when they are not whole entries, or too many', () => {
    const refused = (work: () => unknown): void => expect(work).toThrow(/entries|value|each entry/);
    for (const raw of [Buffer.alloc(0), Buffer.alloc(12), Buffer.alloc(11 * (mostHeld + 1))])
      refused(() => unpackHeld(raw));
    for (const raw of [Buffer.alloc(0), Buffer.alloc(5), Buffer.alloc(4 * (mostValues + 1))])
      refused(() => unpackHandles(raw));
    refused(() => unpackHeldAnswers(Buffer.alloc(2), 3));
    const whole = packValues([{ handle: 1, version: 2, value: Buffer.from('value') }]);
    for (let length = 1; length < whole.length; length++) refused(() => unpackValues(whole.subarray(0, length)));
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        for (const read of [unpackHeld, unpackHandles, unpackValues])
          try {
            read(Buffer.from(bytes));
          } catch (error) {
            expect(error).toMatchObject({ code: 'validation' });
          }
      }),
    );
  });
});
