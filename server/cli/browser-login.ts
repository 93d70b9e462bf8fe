// `dke login` without a name: a person approves this command in a browser (RFC 8628), and it gets a
// token for some hours. The address and the code go to standard error, so that standard output
// stays one record.

import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidArgumentError } from 'commander';
import { printable } from '../base/printable.ts';
import { operations } from '../client/gen/operations.ts';
import type { Operation } from '../client/operation.ts';
import { type Address, callOnce } from './client.ts';
import { CommandError } from './exit-codes.ts';

const routes = operations.deviceSignIn;

export const hoursOf = (text: string): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 24) throw new InvalidArgumentError('1 to 24 hours.');
  return value;
};

/** What the service takes as the name of a host. */
const hostName = (): string => {
  const name = hostname()
    .replaceAll(/[^A-Za-z0-9._-]/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 64);
  return name === '' ? 'host' : name;
};

const ask = async <E extends Operation>(address: Address, operation: E, body: object) =>
  (await callOnce(address, operation, Buffer.from(JSON.stringify(body)), {}, {})).body;

/** A code is valid for so long; a service that stays away is not waited for beyond. */
const codeMs = 10 * 60_000;
const startAgain = { hint: 'run dke login again' };

/** Waits until the person has decided, or the code has expired. */
export const signInByBrowser = async (
  address: Address,
  { role, hours }: { readonly role?: readonly string[]; readonly hours?: number },
): Promise<{ readonly user: string; readonly token: string; readonly expiresAt: string | null }> => {
  const asked = { host: hostName(), ...(role && { roles: role }), ...(hours && { hours }) };
  const { deviceCode, userCode, url, completeUrl, intervalSeconds } = await ask(address, routes.start, asked);
  process.stderr.write(
    `Open ${printable(url)} in a browser, sign in, and enter the code ${printable(userCode)}\n` +
      `  or open ${printable(completeUrl)}\n` +
      'Compare the code there. It is valid for ten minutes. Do not give it to another person.\n',
  );
  const until = performance.now() + codeMs;
  for (let seconds = intervalSeconds; ; ) {
    await sleep(seconds * 1000);
    const answer = await ask(address, routes.poll, { deviceCode }).catch((error: unknown) => {
      // Too many commands of this address ask, or the service or the way to it is away: the person
      // may decide in the meantime.
      const passes = error instanceof CommandError && error.exitClass === 'unreachable';
      if (passes && performance.now() < until) return null;
      throw error;
    });
    seconds = answer?.intervalSeconds ?? seconds + intervalSeconds;
    if (answer?.state === 'refused') throw new CommandError('denied', 'the sign-in was refused', startAgain);
    if (answer?.state === 'expired') throw new CommandError('denied', 'the code has expired', startAgain);
    if (answer?.issued != null)
      return {
        user: answer.user ?? '',
        token: answer.issued.token,
        expiresAt: answer.issued.record.expiresAt,
      };
  }
};
