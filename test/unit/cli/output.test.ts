// What the command prints: tables, records, errors. Names come from other people and reach a terminal.
import { describe, expect, test } from 'vitest';
import { CommandError, classOfProblem, exitCodes } from '../../../server/cli/exit-codes.ts';
import { formatTable, openOutput, printError } from '../../../server/cli/output.ts';

const written = (format: 'text' | 'json', print: (output: ReturnType<typeof openOutput>) => void): string => {
  let text = '';
  print(
    openOutput(format, (part) => {
      text += part;
    }),
  );
  return text;
};

describe('for people', () => {
  test('columns line up, and no line ends in blanks', () => {
    expect(
      formatTable([
        ['A', 'LONGER', 'C'],
        ['longest', 'b', ''],
      ]),
    ).toBe('A        LONGER  C\nlongest  b');
  });

  test('what a terminal would act on is shown as an escape', () => {
    const page = { items: [{ name: 'a\u001b[2Jb\u009bc\u007f' }], next: null };
    expect(written('text', (output) => output.list(page, { NAME: 'name' }))).toBe('NAME\na\\x1b[2Jb\\x9bc\\x7f\n');
    expect(written('text', (output) => output.record({ name: 'x\ny' }))).toBe('name  x\\x0ay\n');
  });

  test('members of members stand under both names; what is not there is a dash', () => {
    expect(written('text', (output) => output.record({ a: { b: 1, c: [] }, d: null }))).toBe(
      'a.b  1\na.c  -\nd    -\n',
    );
  });

  test('of a list of things each has a line of its own, and numbers have three places', () => {
    const health = {
      at: 'now',
      checks: [
        { name: 'store', ms: 2.633677000001626 },
        { name: 'root', at: { x: null } },
      ],
    };
    expect(written('text', (output) => output.record({ health, tags: ['a', 'b'], mixed: [1, {}] }))).toBe(
      `health.at      now
health.checks  name store, ms 2.634
health.checks  name root, at.x -
tags           a, b
mixed          1, {}
`,
    );
    // A name that would clear the screen, however deep it is.
    expect(written('text', (output) => output.record({ each: [{ name: '\u001b[2J' }] }))).toBe('each  name \\x1b[2J\n');
  });

  test('an empty list says so; a page that is not the last says how to go on', () => {
    expect(written('text', (output) => output.list({ items: [] }, {}))).toBe('none\n');
    const page = { items: [{ id: 'x' }], next: 'cursor' };
    expect(written('text', (output) => output.list(page, { ID: (row) => row.id }))).toBe(
      'ID\nx\nmore: --after cursor\n',
    );
  });

  test('an error has one line for what is wrong, one for what to do, one to find it', () => {
    let text = '';
    printError(new CommandError('refused', 'two are live', { hint: 'remove one', requestId: 'r1' }), 'text', (part) => {
      text += part;
    });
    expect(text).toBe('dke: two are live\n  remove one\n  request r1\n');
  });
});

describe('for programs', () => {
  test('answers are the API’s own JSON, remarks are left out', () => {
    expect(written('json', (output) => output.say('a remark'))).toBe('');
    const page = { items: [{ id: 'x' }], next: null };
    expect(JSON.parse(written('json', (output) => output.list(page, {})))).toEqual(page);
  });

  test('every class of failure has an exit code of its own', () => {
    const codes = Object.values(exitCodes);
    expect(new Set(codes).size).toBe(codes.length);
    expect(codes.every((code) => code >= 0 && code < 64)).toBe(true);
    for (const exitClass of Object.values(classOfProblem)) expect(exitCodes[exitClass]).toBeGreaterThan(0);
  });
});
