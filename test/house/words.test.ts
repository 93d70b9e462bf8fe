// Words that readers stumble over. Neither the texts of the product use them (console, command,
// API, errors, logs, notifications) nor its comments and pages, nor comments and titles of tests.
import { expect, test } from 'vitest';
import { files, read } from '../support/sources.ts';

const avoided: readonly (readonly [RegExp, string])[] = [
  [/(?<!`)\b(nobody|somebody|anybody|whoever)\b(?! =|[)},:`])/i, 'name who: you, a user, an operator, anyone who'],
  [/\bno more\b(?! than)/i, 'no longer'],
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
  [/(?<!\bthere )\b(is|are|was|were) no (?!longer\b|more than\b|such\b|one\b|\d)\w/i, 'is not a …'],
  [/\bany more\b/i, 'no longer'],
  [/\bonce more\b/i, 'again'],
  [/(?<!')\b(for good|for ever)\b/i, 'permanently, or forever'],
  [/\blets? go of\b/i, 'release'],
  [/\b(go(es)?|going) on\b(?! to\b)/i, 'continue'],
  [/\bby (itself|themselves)\b/i, 'automatically, or on its own'],
  [/\blies\b/i, 'is'],
  [/\brequests? for approval\b/i, 'approval request'],
  [/\bremed(y|ies)\b/i, 'fix'],
];
/** In comments of tests. */ const avoidedInTests: readonly (readonly [RegExp, string])[] = [
  [/\b(un)?told\b/i, 'reported, passed, configured, or by default'],
  [/\b(has|have|takes?) its time\b/i, 'can be slow, or: the limit is …'],
  [/\bare left out\b|\bis left out\b/i, 'omitted, or excluded'],
]; /** The same in comments, where a name of code is in backticks. */
const avoidedInComments: readonly (readonly [RegExp, string])[] = [
  [/\b(nobody|somebody|anybody|whoever)\b(?!`)/i, 'name who: you, a user, an operator, anyone who'],
];

const isComment = (line: string): boolean => /^\s*(\/\/|\/?\*)/.test(line);
/** Values in tests may be anything. */
const isProse = (line: string): boolean => isComment(line) || /^\s*(test|describe|it)\b/.test(line);

test('texts, comments and pages use none of these words', () => {
  const texts = [
    ...files(['addon', 'provider', 'server'], '.ts', '.tsx', '.c', '.cc', '.h', '.java', '.md'),
    ...files(['docs'], '.md', '.toml'),
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
  ];
  const tests = files(['test'], '.ts', '.tsx', '.c', '.cc', '.h').filter((path) => !path.endsWith('words.test.ts'));
  const found = [...texts, ...tests].flatMap((path) =>
    read(path)
      .split('\n')
      .flatMap((line, at) => {
        const words = [
          ...avoided,
          ...(isComment(line) ? avoidedInComments : []),
          ...(isComment(line) && tests.includes(path) ? avoidedInTests : []),
        ];
        return tests.includes(path) && !isProse(line)
          ? []
          : words.flatMap(([word, better]) =>
              word.test(line) ? [`${path}:${at + 1}: ${line.trim()} (better: ${better})`] : [],
            );
      }),
  );
  expect(found).toEqual([]);
});

const avoidedInConsole: readonly (readonly [RegExp, string])[] = [
  [/\bfrom now on\b/i, 'will …, or: from the next request'],
  [/: done['`]|>\s*Ok\s*<|'Ok'/, 'the result in words: Snapshot created, Passed'],
  [/\b(does not match'|Signs in as)/, 'Passwords do not match, User name'],
  [/\b(Access key ID|No alerts|Harm at)\b/, 'Access key id, No notifications, Act by'],
  [/\b(must|have|has) agreed?\b/i, 'approve'],
  [/\b(Make|Made|Making) /, 'create'],
];

test('texts of the console use the terms of the field', () => {
  const found = files(['server/clients/web/src'], '.ts', '.tsx').flatMap((path) =>
    read(path)
      .split('\n')
      .flatMap((line, at) =>
        isProse(line)
          ? []
          : avoidedInConsole.flatMap(([word, better]) =>
              word.test(line) ? [`${path}:${at + 1}: ${line.trim()} (better: ${better})`] : [],
            ),
      ),
  );
  expect(found).toEqual([]);
});

test('a sentence of the console has at most 22 words, and no semicolon in headings and help', () => {
  const long = (sentence: string): boolean => sentence.split(' ').length > 22;
  const sentences = (text: string): readonly string[] =>
    text
      .replaceAll(/\s+/g, ' ')
      .trim()
      .split(/(?<=[.?!:]) /);
  const found = files(['server/clients/web/src'], '.tsx').flatMap((path) => {
    const source = read(path);
    const attributes = [...source.matchAll(/\b(?:help|description|title|notice|label|taken|text)="([^"]+)"/g)];
    const paragraphs = [...source.matchAll(/>\s*([A-Z][^<>{}=]{30,}?)\s*</g)];
    return [
      ...attributes.flatMap(([, text = '']) => sentences(text).filter((one) => long(one) || one.includes(';'))),
      ...paragraphs.flatMap(([, text = '']) => sentences(text).filter(long)),
    ].map((sentence) => `${path}: ${sentence} (better: two sentences)`);
  });
  expect(found).toEqual([]);
});
