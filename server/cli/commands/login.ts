// `dke login` and `dke logout`: a person's own session at the command. The password comes from the
// terminal without echo, or from a file descriptor, and stays bytes; the session is in a file of
// the person's configuration folder (mode 600) until logout ends it. Without a name, the browser is
// where the person signs in, with a passkey or the OpenID provider, too: browser-login.ts.

import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { AnswerOf, Operation } from '../../clients/typescript/operation.ts';
import { type Address, callOnce } from '../service/api-client.ts';
import { hoursOf, signInByBrowser } from '../service/browser-login.ts';
import { addressOf, outputOf } from '../service/caller.ts';
import { globalsOf } from '../service/context-file.ts';
import { asMayExist } from '../service/secret-answer.ts';
import {
  cookieName,
  type Kept,
  keptAt,
  parseKept,
  readKept,
  readyToKeep,
  sessionFile,
  writeKept,
} from '../service/session-file.ts';
import { askHidden } from '../terminal/ask-secret.ts';
import { CommandError, notOurs } from '../terminal/exit-codes.ts';

/** A JSON text of bytes that are UTF-8 already. The caller wipes it. */
const quoteBytes = (bytes: Buffer): Buffer => {
  const quoted = Buffer.alloc(bytes.length * 6 + 2);
  let length = 0;
  const put = (...more: readonly number[]): void => {
    for (const byte of more) {
      quoted[length] = byte;
      length += 1;
    }
  };
  put(0x22);
  for (const byte of bytes) {
    if (byte === 0x22 || byte === 0x5c) put(0x5c, byte);
    else if (byte < 0x20) put(...Buffer.from(`\\u00${byte.toString(16).padStart(2, '0')}`, 'latin1'));
    else put(byte);
  }
  put(0x22);
  return quoted.subarray(0, length);
};

interface Answer<T> {
  readonly body: T;
  /** The session that the answer sets. */
  readonly session: string | undefined;
}

const passkeyHint = 'passkeys and the OpenID provider need a browser: run dke login without a name';

type SignInStep = NonNullable<AnswerOf<typeof operations.session.start>['missing']>;

const undone: Readonly<Record<SignInStep, string>> = {
  'second-factor': 'enter your second factor',
  'new-password': 'choose a new password',
  enrolment: 'set up a second factor',
};

/** `body` is wiped when it has left. */
const send = async <E extends Operation>(
  address: Address,
  operation: E,
  session: string | undefined,
  body?: Buffer,
): Promise<Answer<AnswerOf<E>>> => {
  const headers = {
    origin: address.url,
    'user-agent': 'dke',
    ...(session === undefined ? {} : { cookie: `${cookieName}=${session}` }),
  };
  const answer = await callOnce(address, operation, body, headers, { exitClass: 'denied', hint: passkeyHint }).finally(
    () => body?.fill(0),
  );
  const set = answer.headers.getSetCookie().find((each) => each.startsWith(`${cookieName}=`));
  return { body: answer.body, session: set?.slice(cookieName.length + 1).split(';')[0] };
};

/** The lines of an inherited descriptor, as bytes. */
const linesOf = (descriptor: string): Buffer[] => {
  const number = Number(descriptor);
  if (!/^[0-9]{1,4}$/.test(descriptor) || number === 1 || number === 2)
    throw new CommandError('config', `${descriptor} is not a readable file descriptor`, {
      hint: 'for example --password-fd 0, with the password as first line of standard input',
    });
  let whole: Buffer;
  try {
    whole = readFileSync(number);
  } catch (error) {
    throw new CommandError(
      'config',
      `nothing can be read from descriptor ${number} (${(error as NodeJS.ErrnoException).code})`,
    );
  }
  const lines: Buffer[] = [];
  for (let at = 0; at < whole.length; ) {
    const found = whole.indexOf(0x0a, at);
    const end = found < 0 ? whole.length : found;
    lines.push(Buffer.from(whole.subarray(at, end)));
    at = end + 1;
  }
  whole.fill(0);
  return lines;
};

const objectOf = (members: Readonly<Record<string, Buffer>>): Buffer => {
  const parts = Object.entries(members).flatMap(([name, bytes], at) => [
    Buffer.from(`${at === 0 ? '{' : ','}"${name}":`, 'latin1'),
    quoteBytes(bytes),
  ]);
  const whole = Buffer.concat([...parts, Buffer.from('}', 'latin1')]);
  for (const part of parts) part.fill(0);
  for (const bytes of Object.values(members)) bytes.fill(0);
  return whole;
};

/** Ends what is kept for a service; what is over already is what was asked for. */
const endKept = async (place: Address, kept: Kept): Promise<void> => {
  if ('token' in kept)
    await callOnce(place, operations.deviceSignIn.end, Buffer.from(JSON.stringify({ token: kept.token })), {}, {});
  else
    await send(place, operations.session.end, kept.session).catch((error: unknown) => {
      if (!(error instanceof CommandError) || error.code !== 'unauthenticated') throw error;
    });
};

/**
 * Keeps a sign-in in the place of the one before, which it answers; one that cannot be kept ends.
 * Read now: another command may have kept one since this one began.
 */
const keep = async (place: Address, kept: Kept): Promise<Kept | undefined> => {
  try {
    const before = keptAt(readKept(), place.url);
    writeKept(place.url, kept);
    return before;
  } catch (error) {
    // What could not be ended stays valid, and nothing here can use or end it.
    throw await endKept(place, kept).then(
      () => error,
      () => asMayExist(error),
    );
  }
};

/** What a sign-in still needs; of an answer that may be any. Throws `CommandError`. */
const progressOf = (body: unknown): { readonly missing: SignInStep | null; readonly expiresAt: string | null } => {
  const { missing, expiresAt } = (body ?? {}) as { readonly missing?: unknown; readonly expiresAt?: unknown };
  if (missing !== null && (typeof missing !== 'string' || !Object.hasOwn(undone, missing))) throw notOurs();
  return { missing: missing as SignInStep | null, expiresAt: typeof expiresAt === 'string' ? expiresAt : null };
};

/** The session that an answer has set, if it can be kept. Throws `CommandError`. */
const keptOf = (user: string, session: string | undefined): Kept => {
  const kept = parseKept({ user, session: session ?? null });
  if (kept === undefined) throw notOurs();
  return kept;
};

/**
 * Signs in with a password, and with a code where one is needed. A session that cannot be kept
 * ends, whatever the reason is.
 */
const signIn = async (
  place: Address,
  user: string,
  password: Buffer,
  askCode: () => Promise<Buffer>,
): Promise<{ readonly kept: Kept; readonly expiresAt: string | null }> => {
  const credentials = objectOf({ user: Buffer.from(user), password });
  const begun = await send(place, operations.session.start, undefined, credentials);
  let kept = keptOf(user, begun.session);
  try {
    let progress = progressOf(begun.body);
    if (progress.missing === 'second-factor') {
      const code = await askCode();
      const name = /^[0-9]{6}$/.test(code.toString('latin1')) ? 'code' : 'recoveryCode';
      const answer = await send(place, operations.session.secondFactor, begun.session, objectOf({ [name]: code }));
      if (answer.session !== undefined) kept = keptOf(user, answer.session);
      progress = progressOf(answer.body);
    }
    const { missing, expiresAt } = progress;
    if (missing !== null)
      throw new CommandError('denied', `you must ${undone[missing]} first`, {
        hint: `do this in the console, ${place.url}, then sign in here`,
      });
    return { kept, expiresAt };
  } catch (error) {
    await endKept(place, kept).catch(() => undefined);
    throw error;
  }
};

interface LoginOptions {
  readonly passwordFd?: string;
  readonly role?: readonly string[];
  readonly hours?: number;
}

/** The token that a browser approves is kept in the place of what was there, which ends. */
const loginByBrowser = async (place: Address, options: LoginOptions, command: Command): Promise<void> => {
  readyToKeep();
  const { kept, expiresAt } = await signInByBrowser(place, options);
  const before = await keep(place, kept);
  if (before !== undefined) await endKept(place, before).catch(() => undefined);
  outputOf(command).record({ user: kept.user, server: place.url, expiresAt, file: sessionFile() });
};

export const addLogin = (program: Command): void => {
  program
    .command('login [user]')
    .description(
      'Signs in. Without a name: in a browser on any device, with everything that the console accepts. The command ' +
        'shows an address and a code, and gets a token for some hours when you approve it there. With a name: with ' +
        'your password and, if you use one, a one-time or recovery code, which the command asks for on the terminal. ' +
        'Every command without --token-file uses the sign-in until you log out.',
    )
    .option('--password-fd <number>', 'read from this file descriptor: the password, and the code on a second line')
    .option('--role <role...>', 'in a browser: ask for these of your roles only')
    .option('--hours <hours>', 'in a browser: how long the token is valid, 1 to 24; you can change it there', hoursOf)
    .action(async (user: string | undefined, options: LoginOptions, command: Command) => {
      const { passwordFd } = options;
      const place = addressOf(globalsOf(command));
      if (user === undefined && passwordFd === undefined) return loginByBrowser(place, options, command);
      if (user === undefined)
        throw new CommandError('config', '--password-fd needs the name of the user', {
          hint: 'dke login USER --password-fd 0',
        });
      if (options.role !== undefined || options.hours !== undefined)
        throw new CommandError('config', '--role and --hours are for a sign-in in the browser', {
          hint: 'run dke login without a name',
        });
      readyToKeep();
      const given = passwordFd === undefined ? undefined : linesOf(passwordFd);
      const ask = async (at: number, question: string): Promise<Buffer> => {
        const bytes = given === undefined ? await askHidden(question) : given[at];
        if (bytes !== undefined && bytes.length > 0) return bytes;
        throw new CommandError('config', `${question.replace(/: $/, '').toLowerCase()} is missing`, {
          hint: 'enter it on a terminal, or use --password-fd',
        });
      };
      const password = await ask(0, 'Password: ');
      const { kept, expiresAt } = await signIn(place, user, password, () =>
        ask(1, 'One-time code, or a recovery code: '),
      );
      // One session of a person at a service: the one before ends.
      const before = await keep(place, kept);
      if (before !== undefined) await endKept(place, before).catch(() => undefined);
      outputOf(command).record({ user, server: place.url, expiresAt, file: sessionFile() });
    });
};

export const addLogout = (program: Command): void => {
  program
    .command('logout')
    .description('Ends the sign-in of dke login in the service, and removes it here.')
    .action(async (_: object, command: Command) => {
      const place = addressOf(globalsOf(command));
      const sessions = readKept();
      if (!sessions.has(place.url))
        throw new CommandError('not-found', `not signed in at ${place.url}`, {
          hint: 'run dke login to sign in; --server selects another service',
        });
      const kept = keptAt(sessions, place.url);
      if (kept !== undefined) await endKept(place, kept);
      writeKept(place.url, undefined);
      if (kept === undefined)
        throw new CommandError('config', `the sign-in at ${place.url} was not usable, and is removed only here`, {
          hint: `end it in the console, ${place.url}, or wait until it expires`,
        });
    });
};
