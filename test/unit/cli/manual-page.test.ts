// The manual page that the packages install: every command is in it, and nothing in it is a request
// of roff by accident.
import { spawnSync } from 'node:child_process';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { makeProgram } from '../../../server/cli/program.ts';
import { shellFiles } from '../../../server/cli/shell-files.ts';

const date = new Date('2026-03-01T09:30:00Z');
const { 'dke.1': page = '', ...others } = await shellFiles('1.0.0', date);

test('the same commit gives the same files', async () => {
  expect(await shellFiles('1.0.0', date)).toEqual({ 'dke.1': page, ...others });
  expect(Object.keys(others)).toEqual(['completion.bash', 'completion.zsh', 'completion.fish']);
  expect(page.split('\n')[0]).toBe('.TH DKE 1 "2026-03-01" "dke 1.0.0" "External key management"');
});

const names = (command: Command, name: string): readonly string[] => [
  ...(command.commands.length === 0 ? [name] : []),
  ...command.commands.flatMap((each) => names(each, `${name} ${each.name()}`)),
];
test('every command is in it', async () => {
  const text = page.replaceAll('\\-', '-');
  expect(names(await makeProgram('1'), 'dke').filter((name) => !text.includes(`\\fB${name}`))).toEqual([]);
});

test('it is ASCII, and its lines begin with text or one of few requests', () => {
  expect(page).toMatch(/^[\n\x20-\x7e]*$/);
  const requests = new Set(page.split('\n').flatMap((line) => /^[.'](\S*)/.exec(line)?.[1] ?? []));
  expect([...requests].sort()).toEqual(['B', 'I', 'RE', 'RI', 'RS', 'SH', 'SS', 'TH', 'TP']);
});

const isMissing = spawnSync('groff', ['--version']).error !== undefined;
if (isMissing) console.info('the manual page is not set: groff is not installed');
test.skipIf(isMissing)('groff sets it without a warning', () => {
  const run = spawnSync('groff', ['-man', '-ww', '-Tascii'], { input: page, encoding: 'utf8' });
  expect(run.stderr).toBe('');
});
