// Completion scripts, run by the shells themselves: bash always, zsh and fish where they are
// installed.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { makeProgram } from '../../../server/cli/program.ts';
import { completionScript, type Shell, shells } from '../../../server/cli/terminal/completion.ts';
import { sharedFolder } from '../../support/folders.ts';

const folder = sharedFolder();
beforeAll(async () => {
  const program = await makeProgram('1');
  for (const shell of Object.keys(shells) as Shell[])
    writeFileSync(join(folder, shell), completionScript(program, shell));
  writeFileSync(join(folder, 'a file.toml'), '');
});

/** Each line is a user's input; the last word is not finished. */
const typed: readonly (readonly [line: string, expected: readonly string[]])[] = [
  ['dke tena', ['tenant']],
  ['dke vault dual-control ', ['remove', 'set', 'show']],
  ['dke vault list --li', ['--limit']],
  ['dke -o json key li', ['list']],
  ['dke key list --vau', ['--vault']],
  ['dke key list --state a', ['active']],
  ['dke -o y', ['yaml']],
  ['dke vault list --output c', ['csv']],
  ['dke setup confirm ad', ['administrator']],
  ['dke vault list --serv', ['--server']],
  ['dke completion z', ['zsh']],
  ['dke vault show ', []],
  ['dke vault create --limi', []],
];
const missing = (shell: Shell): boolean => {
  const isMissing = spawnSync(shell, ['--version']).error !== undefined;
  if (isMissing) console.info(`completion is not tried in ${shell}: it is not installed`);
  return isMissing;
};
/** One run of the shell, a line of answers for each question. */
const ask = (shell: Shell, script: string, lines: readonly string[]): readonly (readonly string[])[] => {
  const args = shell === 'bash' ? ['--norc', '--noprofile', '-c', script] : ['-c', script];
  const run = spawnSync(shell, args, {
    cwd: folder,
    encoding: 'utf8',
    input: lines.map((line) => `${line}\n`).join(''),
  });
  expect(run.stderr).toBe('');
  return run.stdout
    .split('\n')
    .slice(0, -1)
    .map((line) =>
      line
        .split('\t')
        .filter((word) => word !== '')
        .sort(),
    );
};

test.skipIf(missing('bash'))('bash completes commands, options, their values and files', () => {
  const script = `set -u; source ./bash
    while IFS= read -r line; do
      read -ra COMP_WORDS <<< "$line"; [[ $line == *' ' ]] && COMP_WORDS+=('')
      COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _dke
      (IFS=$'\\t'; echo "\${COMPREPLY[*]-}")
    done; complete -p dke >&3`;
  const asked = [...typed, ['dke --ca-file a', ['a file.toml']] as const];
  expect(
    ask(
      'bash',
      script.replace(' >&3', ''),
      asked.map(([line]) => line),
    ),
  ).toEqual([...asked.map(([, expected]) => expected), ['complete -F _dke dke']]);
});

test.skipIf(missing('zsh'))('zsh has the same candidates', () => {
  // The completion system needs a terminal, so the test queries the candidates.
  const script = `compdef() { :; }; compadd() { shift; print -r -- "\${(j:	:)\${(M)@:#\${words[CURRENT]}*}}" }; _files() { echo files }
    source ./zsh
    while IFS= read -r line; do
      words=("\${(@s: :)line}"); CURRENT=$#words; _dke
    done`;
  const asked = [...typed, ['dke --ca-file a', ['files']] as const];
  expect(
    ask(
      'zsh',
      script,
      asked.map(([line]) => line),
    ),
  ).toEqual(asked.map(([, expected]) => expected));
});

test.skipIf(missing('fish'))('fish completes commands, options and their values', () => {
  const script = `source ./fish
    while read -l line
      set -l found (complete -C "$line" | string replace -r '\\t.*' '')
      echo (string join -- \\t $found)
    end`;
  expect(
    ask(
      'fish',
      script,
      typed.map(([line]) => line),
    ),
  ).toEqual(typed.map(([, expected]) => expected));
});
