// How every source file is written: it opens by saying what it is, names no machine, and leaves
// nothing for later.
import { basename } from 'node:path';
import { describe, expect, test } from 'vitest';
import { files, includesOf, read, withoutComments } from '../support/sources.ts';

const folders = ['addon', 'provider', 'server', 'test', 'docs', '.ci'];
const typescript = files(folders, '.ts', '.tsx');
const native = files(folders, '.c', '.h', '.cc');
const scripts = files(folders, '.sh', '.ci/run');
const prose = [
  ...files(folders, '.md', '.json', '.html', '.css', '.in', '.map'),
  'README.md',
  'CHANGELOG.md',
  'CMakeLists.txt',
  'package.json',
];
const code = [...typescript, ...native, ...scripts];

const linesWith = (paths: readonly string[], pattern: RegExp, text: (path: string) => string = read): string[] =>
  paths.flatMap((path) =>
    text(path)
      .split('\n')
      .flatMap((line, at) => (pattern.test(line) ? [`${path}:${at + 1}: ${line.trim()}`] : [])),
  );

describe('every source file', () => {
  test('opens with a comment that bounds it', () => {
    const opens = (path: string): boolean => /^(\/\/ |\/\*|# )/.test(read(path).replace(/^#!.*\n/, ''));
    // A .c or .cc that starts with its own header is bounded there.
    const header = (path: string): string => path.replace(/\.cc?$/, '.h');
    const leansOnHeader = (path: string): boolean =>
      native.includes(header(path)) && includesOf(path)[0]?.target === header(path) && opens(header(path));
    expect(code.filter((path) => !opens(path) && !leansOnHeader(path))).toEqual([]);
  });

  test('names no path of a machine', () => {
    const homes = ['home', 'Users', 'root', 'work'].map((folder) => `/${folder}/`).join('|');
    expect(linesWith([...code, ...prose], new RegExp(`(^|[^\\w.$}/)-])(${homes})\\w`))).toEqual([]);
  });

  test('leaves nothing for later', () => {
    const words = ['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK', 'not ' + 'implemented'];
    expect(linesWith([...code, ...prose], new RegExp(`\\b(${words.join('|')})\\b`))).toEqual([]);
  });
});

describe('TypeScript', () => {
  test('files are named in kebab-case', () => {
    const names = typescript.filter(
      (path) => !/^[a-z0-9]+(-[a-z0-9]+)*(\.(test|d|config))?\.tsx?$/.test(basename(path)),
    );
    expect(names).toEqual([]);
  });

  test('silences no rule without a reason beside it', () => {
    const bare = linesWith(
      typescript,
      /@ts-(ignore|nocheck)|@ts-expect-error\s*$|biome-ignore [^:]*$|biome-ignore [^:]*:\s*$/,
    );
    expect(bare.filter((line) => !line.startsWith('test/house/sources.test.ts'))).toEqual([]);
  });

  test('tests neither single one out nor are passed over in silence', () => {
    const tests = typescript.filter((path) => path.endsWith('.test.ts') && !path.endsWith('house/sources.test.ts'));
    expect(linesWith(tests, /\b(test|it|describe)\.(only|skip|todo)\(/, (path) => withoutComments(read(path)))).toEqual(
      [],
    );
  });

  test('only test files that share no modules with others put a module in the place of another', () => {
    // In a process that shares modules, the real one may be loaded already (vitest.config.ts).
    const mocking = typescript.filter((path) => path.startsWith('test/') && /\bvi\.mock\(/.test(read(path)));
    expect(mocking.filter((path) => path !== 'test/scenario/unreadable-master-key.test.ts')).toEqual([]);
    expect(read('vitest.config.ts')).toMatch(/\|unreadable-master-key'/);
  });

  test('code writes to standard output only where a person reads it', () => {
    const speakers =
      /^(test\/|server\/cli\/|server\/app\/process\.ts|provider\/agent\/threads\/main\.ts|provider\/schema\/generate\.ts|provider\/packaging\/main\.ts|server\/clients\/web\/)/;
    const quiet = typescript.filter((path) => !speakers.test(path));
    expect(linesWith(quiet, /\bconsole\.|process\.stdout/, (path) => withoutComments(read(path)))).toEqual([]);
  });
});

describe('C and C++', () => {
  // A host may have put its own descriptor under the number: see descriptor.h.
  test('of the library uses descriptors through descriptor.c only', () => {
    const calls =
      'accept|bind|close|connect|dup[23]?|flock|ioctl|p?poll|pread|pwrite|readv?|recv(from|msg)?|select|send(to|msg)?|[gs]etsockopt|shutdown|writev?';
    const library = native.filter(
      (path) => /^provider\/module\/.*\.c$/.test(path) && basename(path) !== 'descriptor.c',
    );
    expect(linesWith(library, new RegExp(`(^|[^\\w.>])(${calls})\\(`), (path) => withoutComments(read(path)))).toEqual(
      [],
    );
  });

  test('files are named in one lower-case way', () => {
    const names = native.filter((path) => !/^[a-z0-9]+([_-][a-z0-9]+)*\.(c|cc|h)$/.test(basename(path)));
    expect(names).toEqual([]);
  });

  test('no function is used that has no bound', () => {
    const unbounded = /\b(strcpy|strcat|sprintf|vsprintf|gets|alloca|strtok|system|popen)\s*\(/;
    const shipped = native.filter((path) => !path.startsWith('test/'));
    expect(linesWith(shipped, unbounded, (path) => withoutComments(read(path)))).toEqual([]);
  });

  test('the library writes to no standard stream', () => {
    const library = native.filter((path) => path.startsWith('provider/module/'));
    expect(
      linesWith(library, /\b(v?printf|puts|putchar|perror)\s*\(|\b(stderr|stdout)\b/, (path) =>
        withoutComments(read(path)),
      ),
    ).toEqual([]);
  });
});
