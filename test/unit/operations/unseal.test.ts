// A sealed service: wrong passphrases slow down the caller who gives them, and no one else.
import { expect, test } from 'vitest';
import type { ServiceErrorCode } from '../../../server/base/service-error.ts';
import { createUnsealing } from '../../../server/operations/root/unseal.ts';
import type { RootProvider } from '../../../server/ports/root-provider.ts';
import { errorOf } from '../../support/people.ts';
import { quietLog } from '../../support/quiet-log.ts';

const right = () => Buffer.from('correct horse battery staple');
const wrong = () => Buffer.from('wrong');
const root = { release: () => undefined } as RootProvider;

/** `held`: a guess from outside is not answered before this resolves. */
const open = (held: Promise<void> = Promise.resolve()) => {
  let time = 0;
  const unsealing = createUnsealing(
    {
      unseal: async (passphrase) => {
        if (passphrase.equals(right())) return root;
        await held;
        return undefined;
      },
      retry: () => Promise.resolve(undefined),
    },
    {
      clock: { now: () => time, monotonic: () => time },
      log: quietLog,
    },
  );
  const passes = (ms: number): void => {
    time += ms;
  };
  return { ...unsealing, passes };
};

test('a wrong passphrase makes its own address wait, and no other one', async () => {
  const { unseal, passes, failures, stop } = open();
  const codes: ServiceErrorCode[] = [];
  for (let attempt = 0; attempt < 3; attempt += 1) codes.push(await errorOf(unseal(wrong(), '192.0.2.1')));
  expect(codes).toEqual(['forbidden', 'rate-limited', 'rate-limited']);
  // Addresses of one IPv6 /64 count as one address.
  expect(await errorOf(unseal(wrong(), '2001:db8:1:2::3'))).toBe('forbidden');
  expect(await errorOf(unseal(right(), '2001:db8:1:2::4'))).toBe('rate-limited');
  passes(1_000);
  expect(await errorOf(unseal(wrong(), '192.0.2.1'))).toBe('forbidden');
  passes(1_000);
  expect(await errorOf(unseal(wrong(), '192.0.2.1'))).toBe('rate-limited');
  expect(failures()).toBe(3);
  await unseal(right(), '192.0.2.2');
  stop();
});

test('guesses of many addresses at once do not keep out a person on the host', async () => {
  let answer = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const { unseal, root: opened, stop } = open(held);
  const guesses = Array.from({ length: 500 }, (_, at) => unseal(wrong(), `192.0.${at >> 8}.${at & 255}`));
  const settled = Promise.allSettled(guesses);
  // Nothing but the guesses has to be waited for: a few turns of this process are enough.
  const opens = unseal(right(), '127.0.0.1').then(() => 'open');
  const turns = async (): Promise<string> => {
    for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    return 'it waits for a guess';
  };
  expect(await Promise.race([opens, turns()])).toBe('open');
  expect(await opened).toBe(root);
  answer();
  await settled;
  stop();
});
