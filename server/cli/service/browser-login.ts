// `dke login` without a name: a person approves this command in a browser (RFC 8628), and it gets a
// token for some hours. The address and the code go to standard error, so that standard output
// stays one record.

import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidArgumentError } from 'commander';
import { printable } from '../../base/printable.ts';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { AnswerOf, Operation } from '../../clients/typescript/operation.ts';
import { CommandError, notOurs } from '../terminal/exit-codes.ts';
import { type Address, callOnce } from './api-client.ts';
import { asMayExist } from './secret-answer.ts';
import { type Kept, parseKept } from './session-file.ts';

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

const isInterval = (seconds: unknown): seconds is number =>
  typeof seconds === 'number' && seconds >= 0 && seconds <= codeMs / 1000;

type Started = Pick<
  AnswerOf<typeof routes.start>,
  'deviceCode' | 'userCode' | 'url' | 'completeUrl' | 'intervalSeconds'
>;
/** What a sign-in begins with; of an answer that may be any. Throws `CommandError`. */
const parseStarted = (answer: unknown): Started => {
  const { deviceCode, userCode, url, completeUrl, intervalSeconds } = (answer ?? {}) as {
    readonly [member in keyof Started]?: unknown;
  };
  const texts = [deviceCode, userCode, url, completeUrl];
  if (!texts.every((text) => typeof text === 'string' && text !== '') || !isInterval(intervalSeconds)) throw notOurs();
  const [code = '', entered = '', page = '', complete = ''] = texts as readonly string[];
  return { deviceCode: code, userCode: entered, url: page, completeUrl: complete, intervalSeconds };
};

interface Approved {
  readonly kept: Kept;
  readonly expiresAt: string | null;
}
type Decision = 'refused' | 'expired' | Approved | { readonly intervalSeconds: number };
/**
 * What the person has decided; of an answer that may be any. Throws `CommandError`: an answer of
 * success that cannot be read may be the one that had the token.
 */
const parseDecision = (answer: unknown): Decision => {
  const { state, intervalSeconds, user, issued } = (answer ?? {}) as { readonly [member: string]: unknown };
  if (state === 'refused' || state === 'expired') return state;
  if ((state === 'pending' || state === 'slow-down') && isInterval(intervalSeconds)) return { intervalSeconds };
  const { token, record } = (issued ?? {}) as { readonly token?: unknown; readonly record?: unknown };
  const kept = state === 'issued' ? parseKept({ user, token }) : undefined;
  if (kept === undefined) throw asMayExist(notOurs());
  const { expiresAt } = (record ?? {}) as { readonly expiresAt?: unknown };
  return { kept, expiresAt: typeof expiresAt === 'string' ? expiresAt : null };
};

/** Waits until the person has decided, or the code has expired. */
export const signInByBrowser = async (
  address: Address,
  { role, hours }: { readonly role?: readonly string[]; readonly hours?: number },
): Promise<Approved> => {
  const asked = { host: hostName(), ...(role && { roles: role }), ...(hours && { hours }) };
  const { deviceCode, userCode, url, completeUrl, intervalSeconds } = parseStarted(
    await ask(address, routes.start, asked),
  );
  process.stderr.write(
    `Open ${printable(url)} in a browser, sign in, and enter the code ${printable(userCode)}\n` +
      `  or open ${printable(completeUrl)}\n` +
      'Compare the code there. It is valid for ten minutes. Do not give it to another person.\n',
  );
  const until = performance.now() + codeMs;
  let isTold = false;
  /** An answer that was lost may have been the one with the token. */
  let mayBeIssued = false;
  for (let seconds = intervalSeconds; ; ) {
    await sleep(seconds * 1000);
    const decision = await ask(address, routes.poll, { deviceCode }).then(parseDecision, (error: unknown) => {
      mayBeIssued ||= !(error instanceof CommandError) || error.mayBeDone;
      // Too many commands of this address ask, or the service or the way to it is away: the person
      // may decide in the meantime.
      if (!(error instanceof CommandError) || !error.passes || performance.now() > until)
        throw mayBeIssued ? asMayExist(error) : error;
      if (!isTold) process.stderr.write(`Waiting: ${printable(error.message)}. Still asking until the code expires.\n`);
      isTold = true;
      return { intervalSeconds: seconds + intervalSeconds };
    });
    if (decision === 'refused') throw new CommandError('denied', 'the sign-in was refused', startAgain);
    if (decision === 'expired' || performance.now() > until + codeMs) {
      const over = new CommandError(
        'denied',
        'the code has expired, or its token was in an answer that was lost',
        startAgain,
      );
      throw mayBeIssued ? asMayExist(over) : new CommandError('denied', 'the code has expired', startAgain);
    }
    if ('kept' in decision) return decision;
    seconds = decision.intervalSeconds;
  }
};
