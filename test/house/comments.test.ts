// How wide a comment is: a person reads it beside the code, and two files side by side.
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
