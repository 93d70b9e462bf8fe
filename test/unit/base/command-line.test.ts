// Commands that are offered for copying, pasted into real shells: whatever people call their keys,
// the command gets one word.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readRunbooks } from '../../../server/adapters/runbooks/read-runbooks.ts';
import { command, fillCommand, shellWord } from '../../../server/base/command-line.ts';
import { fillRunbook, releaseNames, runbookNames } from '../../../server/domain/runbooks.ts';
import { folderOfTest } from '../../support/folders.ts';
import fc from '../../support/property.ts';

/** The words that a shell makes of a line whose command is `dke`. */
const wordsIn = (shell: string, line: string, cwd?: string): readonly string[] =>
  execFileSync(shell, ['-c', `dke() { for word do printf '%s\\0' "$word"; done; }\n${line}`], { encoding: 'utf8', cwd })
    .split('\0')
    .slice(0, -1);

const hostile = [
  '$(touch x)',
  '`touch x`',
  "'; touch x; '",
  '"; touch x; "',
  'a b\tc',
  '--help',
  '-rf',
  '*',
  '~root',
  '!!',
  '#',
  '',
  '\\',
  "$'\\x41'",
  '<master_key>',
  'a\nb; touch x',
  '\u202eevil\u2066',
  'zero\u200bwidth',
  '\u00a0',
  'Schlüssel 鍵',
  '&& touch x &',
];

describe('a value in a command', () => {
  test('is one word in bash, and runs nothing', () => {
    const folder = folderOfTest();
    const lines = hostile.flatMap((value) => [
      command`dke tde key blast-radius ${value}`,
      command`dke user create --subject=${value} ${value}`,
    ]);
    const words = hostile.flatMap((value) => {
      const at = value.startsWith('-') ? ['--'] : [];
      return ['tde', 'key', 'blast-radius', ...at, value, 'user', 'create', `--subject=${value}`, ...at, value];
    });
    expect(wordsIn('bash', lines.join('\n'), folder)).toEqual(words);
    expect(existsSync(join(folder, 'x'))).toBe(false);
  });

  test('of characters that can be seen is one word in every POSIX shell', () => {
    const seen = hostile.filter((value) => !/[\p{Cc}\p{Cf}\u00a0]/u.test(value));
    expect(wordsIn('dash', `dke ${seen.map(shellWord).join(' ')}`)).toEqual(seen);
  });

  test('of any characters is one word, and shows each of them', () => {
    const values = fc
      .sample(fc.string({ unit: 'binary', maxLength: 30 }), 100)
      .map((text) => text.replaceAll('\0', ''));
    const words = values.map(shellWord);
    for (const word of words) expect(word).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u00a0]/u);
    expect(wordsIn('bash', `dke ${words.join(' ')}`)).toEqual(values);
  });

  test('with a NUL, which no word can have, does not become the name before it', () => {
    expect(wordsIn('bash', `dke ${shellWord('erp\0x')}`)).toEqual(['erp\\000x']);
  });

  test('that zsh would look for among the programs is quoted', () => {
    expect(shellWord('=ls')).toBe("'=ls'");
  });

  test('that is an operand comes after all options', () => {
    expect(() => command`dke tde key list ${'erp'} --limit 1`).toThrow('options come before operands');
    expect(fillCommand('dke tde key list --limit 1 {application}', { application: '-x' })).toBe(
      'dke tde key list --limit 1 -- -x',
    );
  });
});

test('a database host that labels its key as a command has nothing run by a runbook that is pasted', () => {
  const folder = folderOfTest();
  const runbooks = readRunbooks();
  const evil = '$(touch x)`touch x`; touch x #';
  const values = {
    ...{ library: '/opt/libdke.so', config: '/etc/dke/pkcs11.toml', logs: '/var/log/dke', owner: 'oracle:oinstall' },
    ...{ application: evil, applicationId: evil, appId: evil, group: evil, hosts: evil, masterKey: evil },
  };
  const lines = new Set<string>();
  for (const name of runbookNames)
    for (const release of releaseNames)
      for (const { command: line } of fillRunbook(runbooks, name, release, 'cdb', values).steps)
        if (line?.includes('touch') === true) lines.add(line);
  expect(lines.size).toBeGreaterThan(5);
  const words = wordsIn('bash', [...lines].join('\n'), folder);
  expect(words.filter((word) => word === evil)).toHaveLength(lines.size);
  expect(existsSync(join(folder, 'x'))).toBe(false);
});
