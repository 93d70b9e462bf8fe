// Words that the texts of the product do not use, because readers stumble over them: in the console, in notifications, and in the checks of
// the diagnostics. Comments are not read here.
import { expect, test } from 'vitest';
import { files, read, withoutComments } from '../support/sources.ts';

const avoided: readonly (readonly [RegExp, string])[] = [
  [/\b(nobody|somebody|anybody|whoever)\b(?! =|[)},:])/i, 'name who: you, a user, an operator, anyone who'],
  [/\bno more\b/i, 'no longer'],
  [/\bof late\b/i, 'recently, or recent'],
  [/\blook(s|ed)? at\b/i, 'check'],
  [/\bheard of\b/i, 'offline, or last heartbeat'],
  [/\bno way back\b/i, 'cannot be undone'],
  [/\b(give|gives|given) back\b/i, 'release, or return'],
  [/\bof no use\b/i, 'useless'],
  [/\bin clear\b/i, 'unencrypted'],
  [/\bhas not got\b/i, 'does not have'],
];

test('texts that people read use none of these words', () => {
  const texts = [
    ...files(['server/web/src'], '.ts', '.tsx'),
    ...files(['server/diagnostics'], '.ts'),
    'server/domain/notification.ts',
  ];
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
