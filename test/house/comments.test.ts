// How a comment is written: no wider than a person reads beside the code, with two files side by
// side, and with its subject, so that it is understood without the next declaration.
import { expect, test } from 'vitest';
import { files, read } from '../support/sources.ts';

const widest = 100;
/** Tables, and what tools read: each is one line. */
const inOneLine = /^\s*(\/\/|\*|\/\*)\s*(\||biome-[a-z]+ |NOLINT)/;

/** The lines of comments that are too wide, by their numbers. */
const tooWide = (text: string): readonly number[] =>
  text
    .split('\n')
    .flatMap((line, at) =>
      line.length > widest && /^\s*(\/\/|\*(?= |\/|$)|\/\*)/.test(line) && !inOneLine.test(line) ? [at + 1] : [],
    );

/** What a program writes is read in its generator. */
const isGenerated = (text: string): boolean => /\bGenerated (from|by)\b/.test(text.slice(0, 400));

test(`no line of a comment is wider than ${widest} columns`, () => {
  const wide = files(['addon', 'provider', 'server', 'test'], '.ts', '.tsx', '.c', '.h', '.cc', '.java').flatMap(
    (path) => (isGenerated(read(path)) ? [] : tooWide(read(path)).map((line) => `${path}:${line}`)),
  );
  expect(wide, 'wrap it').toEqual([]);
});

test('a wide line is found in each form of a comment', () => {
  const wide = 'x'.repeat(widest);
  expect(tooWide(`// ${wide}\n * ${wide}\n  /** ${wide} */\nconst a = '${wide}';\n// | ${wide} |`)).toEqual([1, 2, 3]);
});

/** Beginnings of comments that leave their subject to the code below, or to the comment above. */
const subjectless = /^(Of|Those|By|And|Or|The same|So many|As|Such|None|Both|Else|Again|Then|It|They|Also)\b/;

/** The first line of each comment that stands on lines of its own, with its number. */
const beginningsOf = (text: string): readonly (readonly [line: number, beginning: string])[] => {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.flatMap((line, at) => {
    const before = lines[at - 1] ?? '';
    const [, own] =
      /^\/\*\*? (.+)$/.exec(line) ??
      (/^\/\*\*?$/.test(before) ? /^\* (.+)$/.exec(line) : null) ??
      (before.startsWith('//') ? null : /^\/\/ (.+)$/.exec(line)) ??
      [];
    return own === undefined ? [] : [[at + 1, own] as const];
  });
};

test('every comment names its subject', () => {
  const found = files(['addon', 'provider', 'server', 'test'], '.ts', '.tsx', '.c', '.h', '.cc').flatMap((path) =>
    isGenerated(read(path))
      ? []
      : beginningsOf(read(path))
          .filter(([, beginning]) => subjectless.test(beginning))
          .map(([line, beginning]) => `${path}:${line}: ${beginning}`),
  );
  expect(found, 'say what it is about').toEqual([]);
});

test('the beginning of each form of a comment is found', () => {
  const text = '// Of a\n// Of b\n\n/** Of c */\n  /**\n   * Of d\n   * Of e\n   */\nconst f = 1; // Of g';
  expect(beginningsOf(text)).toEqual([
    [1, 'Of a'],
    [4, 'Of c */'],
    [6, 'Of d'],
  ]);
});
