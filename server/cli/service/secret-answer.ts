// The answer of an operation that shows a secret once, parsed: it has every member that the
// contract names (`showsOnce`), or the secret is lost although what it opens may exist. Another
// call would create a second one, so every failure behind such a call says that.

import { takeMember } from '../../base/secret-member.ts';
import type { Operation } from '../../clients/typescript/operation.ts';
import { CommandError } from '../terminal/exit-codes.ts';

const mayExist = 'what was to be created may exist: list it, and revoke or remove it before you repeat the command';

/** What failed once something may have been created. */
export const asMayExist = (error: unknown): CommandError => {
  const { message, hint, requestId } =
    error instanceof CommandError
      ? error
      : { message: `the answer cannot be used (${(error as Error).message.split('\n')[0]})` };
  return new CommandError('may-exist', message, {
    hint: hint === undefined ? mayExist : `${mayExist}\n  ${hint}`,
    requestId,
  });
};

const isSecret = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.length > 0 && value.every((each) => typeof each === 'string' && each !== '')
    : typeof value === 'string' && value !== '';

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as { readonly [member: string]: unknown })[name]
    : undefined;

/** An answer that stays bytes is looked into without making a text of its secret. */
const hasSecret = (answer: unknown, path: string): boolean => {
  const names = path.split('.');
  if (!(answer instanceof Uint8Array)) return isSecret(names.reduce(memberOf, answer));
  const copy = Buffer.from(answer);
  const found = takeMember(copy, names.at(-1) ?? '', names.length);
  const { length } = found ?? [];
  found?.fill(0);
  copy.fill(0);
  return length > 0;
};

/**
 * The answer of an operation that shows a secret, once it has it. `mayBeNone`: what was asked for
 * has none, which the answer says with null.
 */
export const parseSecretAnswer = <A>({ showsOnce = [] }: Operation, answer: A, mayBeNone = false): A => {
  const isNone = (path: string): boolean => mayBeNone && memberOf(answer, path.split('.')[0] ?? '') === null;
  const missing = showsOnce.filter((path) => !isNone(path) && !hasSecret(answer, path));
  if (missing.length > 0) throw new CommandError('may-exist', `the answer has no secret (${missing.join(', ')})`);
  return answer;
};
