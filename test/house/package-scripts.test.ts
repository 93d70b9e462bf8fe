// The scripts of the packages run under two programs called update-alternatives, Debian's and Red
// Hat's (chkconfig), and under dash and bash.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { packages } from '../../provider/packaging/packages.ts';
import { files, read } from '../support/sources.ts';
import { installed } from '../support/tools.ts';

const scripts = ['server', 'provider'].flatMap((part) =>
  ['postinst', 'prerm', 'postrm'].map((name) => `${part}/packaging/${name}`),
);
/**
 * What both programs know: Red Hat's has no --quiet, and fails where it does not know an option.
 */
const shared = ['--install', '--slave', '--remove'];

test.each(scripts)('%s gives update-alternatives only options that both programs have', (path) => {
  const text = readFileSync(path, 'utf8').replaceAll(/\\\n/g, ' ');
  const calls = text.split('\n').filter((line) => /^\s*update-alternatives /.test(line));
  expect(calls).toHaveLength(path.endsWith('postrm') ? 0 : 1);
  const options = calls.flatMap((line) => line.match(/ --[a-z-]+/g) ?? []).map((option) => option.trim());
  expect(options.filter((option) => !shared.includes(option))).toEqual([]);
});

test.each(scripts)('%s never keeps a package from its removal', (path) => {
  const removals = readFileSync(path, 'utf8').match(/.*(--remove |systemctl .*disable).*/g) ?? [];
  expect(removals).toHaveLength(path.endsWith('prerm') ? 2 : 0);
  for (const line of removals) expect(line).toMatch(/\|\| true$/);
});

test.each(['dash', 'bash'])('%s reads every script', (shell) => {
  if (!installed(shell, shell)) return;
  for (const path of scripts) execFileSync(shell, ['-n', path]);
});

test('the packages of the programs have every page that a message names', () => {
  const named = files(['server', 'provider', 'addon'], '.ts', '.c', '.toml', '.service').flatMap((path) =>
    [...read(path).matchAll(/docs\/([a-z/-]+\.md)/g)].map(([, page = '']) => page),
  );
  expect(named.length).toBeGreaterThan(20);
  for (const name of ['dke-server', 'dke-provider']) {
    const spec = packages.find((each) => each.name === name);
    const texts = Object.keys(spec?.texts(() => '') ?? {});
    expect([...new Set(named)].filter((page) => !texts.includes(`/usr/share/doc/${name}/${page}`))).toEqual([]);
  }
});
