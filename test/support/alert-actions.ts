// What to do about each alert, in its rule: the text is that of docs/monitoring.md. Run on its own
// it writes docs/monitoring/alerts.yaml and the tests of the rules.

import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

const folder = resolve(import.meta.dirname, '../../docs');
const files = ['alerts.yaml', 'alerts.test.yaml', 'alerts-days.test.yaml'].map((name) =>
  resolve(folder, 'monitoring', name),
);
const runbook = 'file:///usr/share/doc/dke-server/monitoring.md#alerts';

/** Plain text: an alert shows no links of Markdown. */
const plain = (text: string): string =>
  text
    .replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1')
    .replaceAll('`', '')
    .trim();

const readActions = (): ReadonlyMap<string, string> => {
  const page = readFileSync(resolve(folder, 'monitoring.md'), 'utf8');
  return new Map(
    [...page.matchAll(/^\| `(Dke\w+)` \| \w+ \| (.+) \|$/gm)].map(([, name = '', text = '']) => [name, plain(text)]),
  );
};

/** Each file as it should be. */
export const withActions = (): readonly { readonly path: string; readonly is: string; readonly shouldBe: string }[] => {
  const actions = readActions();
  return files.map((path) => {
    const is = readFileSync(path, 'utf8');
    let name = '';
    const lines = is.split('\n').flatMap((line) => {
      name = /^\s*(?:- )?(?:alert|alertname): (\w+)$/.exec(line)?.[1] ?? name;
      if (/^ {10}(action|runbook_url): /.test(line)) return [];
      const action = JSON.stringify(actions.get(name) ?? '');
      if (/^ {10}summary: /.test(line))
        return [line, `          action: ${action}`, `          runbook_url: ${runbook}`];
      const expected = /^( *)exp_annotations: \{ summary: ("(?:[^"\\]|\\.)*")(?:, action: .*)? \}$/.exec(line);
      return expected === null
        ? [line]
        : [`${expected[1]}exp_annotations: { summary: ${expected[2]}, action: ${action}, runbook_url: "${runbook}" }`];
    });
    return { path, is, shouldBe: lines.join('\n') };
  });
};

if (import.meta.main) for (const { path, shouldBe } of withActions()) writeFileSync(path, shouldBe);
