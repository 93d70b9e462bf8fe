// The output of the command: tables, records, errors. Names are input of other users and reach a
// terminal.
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { CommandError, classOfProblem, exitCodes } from '../../../server/cli/terminal/exit-codes.ts';
import { formatTable, type OutputFormat, openOutput, printError } from '../../../server/cli/terminal/output.ts';
import { lineOf } from '../../../server/cli/terminal/progress.ts';
import { yamlOf } from '../../../server/cli/terminal/yaml.ts';

const written = (format: OutputFormat, print: (output: ReturnType<typeof openOutput>) => void): string => {
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
    expect(written('text', (output) => output.list(page, { NAME: 'name' }))).toBe(
      'NAME\na\\u{1b}[2Jb\\u{9b}c\\u{7f}\n',
    );
    // A text that is read backwards, and one that looks like another.
    expect(written('text', (output) => output.record({ name: 'a\u202eb\u200dc\u2028' }))).toBe(
      'name  a\\u{202e}b\\u{200d}c\\u{2028}\n',
    );
    expect(written('text', (output) => output.record({ name: 'x\ny' }))).toBe('name  x\\u{a}y\n');
    // Errors name what others have named, too.
    let told = '';
    const error = new CommandError('not-found', 'no vault a\u202eb\u009b', { hint: 'dke vault list\u001b[2J\u200d' });
    printError(error, 'text', (text) => {
      told += text;
    });
    expect(told).toContain('no vault a\\u{202e}b\\u{9b}\n  dke vault list\\u{1b}[2J\\u{200d}\n');
  });

  test('nested members are shown under both names; a missing value is a dash', () => {
    expect(written('text', (output) => output.record({ a: { b: 1, c: [] }, d: null }))).toBe(
      'a.b  1\na.c  -\nd    -\n',
    );
  });

  test('each item of a list has its own line, and numbers have three places', () => {
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
    expect(written('text', (output) => output.record({ each: [{ name: '\u001b[2J' }] }))).toBe(
      'each  name \\u{1b}[2J\n',
    );
  });

  test('an empty list says so; a page that is not the last says how to get the next one', () => {
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

  test('every class of failure has its own exit code', () => {
    const codes = Object.values(exitCodes);
    expect(new Set(codes).size).toBe(codes.length);
    expect(codes.every((code) => code >= 0 && code < 64)).toBe(true);
    for (const exitClass of Object.values(classOfProblem)) expect(exitCodes[exitClass]).toBeGreaterThan(0);
  });

  test('table is text; progress says what runs and for how long', () => {
    const page = { items: [{ id: 'x' }], next: null };
    expect(written('table', (output) => output.list(page, { ID: 'id' }))).toBe('ID\nx\n');
    expect([lineOf('dke verify', 2_400), lineOf('dke verify', 125_000)]).toEqual([
      'dke verify … 2 s',
      'dke verify … 2 min 5 s',
    ]);
  });

  test('CSV follows RFC 4180, contains no formula, and no hint about the next page', () => {
    const printed: string[] = [];
    const wrote: string[] = [];
    const put = (into: string[]) => (part: string | Uint8Array) => void into.push(String(part));
    const items = [
      { name: '=HYPERLINK("x")', tags: ['a', 'b'], uses: 3, at: null },
      { name: ' -1, "or" so\n', tags: [], uses: 0, at: '2026-03-01T09:30:00.000Z' },
    ];
    openOutput('csv', put(wrote), put(printed)).list(
      { items, next: 'cursor' },
      { NAME: 'name', TAGS: (row) => row.tags.join(' '), USES: 'uses', AT: (row) => row.at },
    );
    expect(wrote.join('').split('\r\n')).toEqual([
      'NAME,TAGS,USES,AT',
      '"\'=HYPERLINK(""x"")",a b,3,',
      '"\' -1, ""or"" so\n",,0,2026-03-01T09:30:00.000Z',
      '',
    ]);
    expect(printed).toEqual(['more: --after cursor\n']);
    expect(written('csv', (output) => output.record({ a: { b: '@x' }, c: null, d: [] }))).toBe(
      "MEMBER,VALUE\r\na.b,'@x\r\nc,\r\nd,\r\n",
    );
    expect(written('csv', (output) => output.say('a remark'))).toBe('');
  });

  test('YAML is blocks of quoted texts', () => {
    const page = { items: [{ id: 'no', on: null, tags: [], deep: [[1], { x: true }] }], next: null };
    expect(written('yaml', (output) => output.list(page, {}))).toBe(
      'items:\n  - id: "no"\n    "on": null\n    tags: []\n    deep:\n      - - 1\n      - x: true\nnext: null\n',
    );
  });

  const python = spawnSync('python3', ['-c', 'import yaml']);
  if (python.status !== 0) console.info('YAML is not read by another program: python3 with PyYAML is not installed');
  test.runIf(python.status === 0)('YAML says the same to another program, whatever the texts are', () => {
    const texts = [
      ...['', ' ', 'no', '~', '- a', 'a: b', '#', '&a *a !!str', '0x1f', '2026-03-01', '1e3', "it's", '"', '\\', '%'],
      ...['@', '`', 'a\nb\n', '\t', '\u0000\u001b\u007f\u0085\u009b', '\u2028\u2029', '\ufeff', '\ufffe\uffff', 'ä €'],
      ...['\u{1f511}', '{}', '[]'],
    ];
    const value = {
      texts,
      ...Object.fromEntries(texts.map((text, at) => [text, { at, text, list: [[], {}, [text]] }])),
      numbers: [0, -1, 1.5, 2 ** 53 - 1],
      others: [true, false, null],
    };
    const program = 'import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin.buffer)))';
    const read = spawnSync('python3', ['-c', program], { input: yamlOf(value), encoding: 'utf8' });
    expect(read.stderr).toBe('');
    expect(JSON.parse(read.stdout)).toEqual(value);
  });
});
