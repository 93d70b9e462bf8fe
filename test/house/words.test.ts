// Words that the texts of the product do not use, because readers stumble over them: in the console, the command, the API's descriptions,
// errors, logs and notifications. Comments are not read here.
import { expect, test } from 'vitest';
import { files, read, withoutComments } from '../support/sources.ts';

const avoided: readonly (readonly [RegExp, string])[] = [
  [/\b(nobody|somebody|anybody|whoever)\b(?! =|[)},:])/i, 'name who: you, a user, an operator, anyone who'],
  [/\bno more\b/i, 'no longer'],
  [/\bof late\b(?!\()/i, 'recently, or recent'],
  [/\blook(s|ed)? at\b/i, 'check'],
  [/\bheard of\b/i, 'offline, or last heartbeat'],
  [/\bno way back\b/i, 'cannot be undone'],
  [/\b(give|gives|given) back\b/i, 'release, or return'],
  [/\bof no use\b/i, 'useless'],
  [/\bin clear\b/i, 'unencrypted'],
  [/\bhas not got\b/i, 'does not have'],
  [/\banew\b(?!')/i, 'again'],
  [/\bmends?\b/i, 'repair, or fix'],
  [/\blooks? whether\b/i, 'check whether'],
  [/\blies (under|at|in)\b/i, 'is in'],
  [/\bholds (until|at once|for|nothing|no)\b/i, 'is valid, expires, applies, or contains'],
];

test('texts that people read use none of these words', () => {
  const texts = files(['server', 'provider'], '.ts', '.tsx');
  const found = texts.flatMap((path) =>
    withoutComments(read(path))
      .split('\n')
      .flatMap((line, at) =>
        avoided.flatMap(([word, better]) =>
          word.test(line) ? [`${path}:${at + 1}: ${line.trim()} (better: ${better})`] : [],
        ),
      ),
  );
  expect(found).toEqual([]);
});
