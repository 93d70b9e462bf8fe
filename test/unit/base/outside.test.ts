// The door to what is outside: calls end in total, answers have a largest size, and what is refused
// differs from what is away.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { callOutside, ItemRefused, readAnswer, requireAccepted, skipAnswer } from '../../../server/base/outside.ts';

const place = 'receiver.example';
async function* endless(onRead: () => void = () => undefined): AsyncGenerator<Uint8Array> {
  for (;;) {
    onRead();
    yield new Uint8Array(16_384);
  }
}

describe('a call', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('whose peer drips ends in total, and what it has open is ended', async () => {
    let isOpen = true;
    const drip = async function* (): AsyncGenerator<Uint8Array> {
      for (;;) {
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        yield new Uint8Array(1);
      }
    };
    const call = callOutside({ place, totalMs: 10_000 }, (signal) => {
      signal.addEventListener('abort', () => {
        isOpen = false;
      });
      return skipAnswer(drip());
    });
    const outcome = expect(call).rejects.toThrow('receiver.example did not answer completely within 10 s');
    await vi.advanceTimersByTimeAsync(9_999);
    expect(isOpen).toBe(true);
    await vi.advanceTimersByTimeAsync(1);
    await outcome;
    expect(isOpen).toBe(false);
  });

  test('ends when the service stops, also before it begins', async () => {
    const stopping = new AbortController();
    const options = { place, totalMs: 10_000, stopping: stopping.signal };
    const call = callOutside(options, () => new Promise(() => undefined));
    stopping.abort();
    await expect(call).rejects.toThrow('is stopping');
    await expect(callOutside(options, () => new Promise(() => undefined))).rejects.toThrow('is stopping');
  });

  test('that is answered leaves nothing behind', async () => {
    expect(await callOutside({ place, totalMs: 10_000 }, async () => 'answer')).toBe('answer');
    expect(vi.getTimerCount()).toBe(0);
  });
});

test('an answer without an end is not read to its end', async () => {
  let reads = 0;
  const count = (): void => {
    reads += 1;
    if (reads > 1_000) throw new Error('it is read without an end');
  };
  await expect(readAnswer(endless(count), 65_536, place)).rejects.toThrow('longer than 65536 bytes');
  await skipAnswer(endless(count));
  expect(reads).toBeLessThan(20);
});

test.each([400, 409, 413, 422, 431])('status %i refuses what was sent', (status) => {
  expect(() => requireAccepted(status, place)).toThrow(ItemRefused);
});
test.each([301, 401, 403, 404, 408, 429, 500, 503])('status %i says nothing about what was sent', (status) => {
  expect(() => requireAccepted(status, place)).toThrow(`receiver.example answers with status ${status}`);
  expect(() => requireAccepted(status, place)).not.toThrow(ItemRefused);
});
