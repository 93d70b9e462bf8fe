// The guide at /guide: docs/*.md as pages that the service serves beside the console, under the
// same content security policy. Only what the guides use of Markdown is known; every text is
// escaped before anything is made of it, so that a page has no markup but the one that is made
// here.

import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import type { Plugin } from 'vite';

/** Left out: pages of pictures and measurements, which would be most of the bytes. */
const leftOut: ReadonlySet<string> = new Set(['tour', 'figures']);

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** The anchor of a heading, in the form that GitHub uses: links work in both places. */
const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

interface Place {
  /** Path of the page below docs, without its extension: `databases/oracle`. */
  readonly name: string;
  readonly pages: ReadonlySet<string>;
}

/**
 * A link to another page of the guide, or out of it; null: to a file that the guide does not have.
 */
const addressOf = (target: string, { name, pages }: Place): string | null => {
  if (/^https:\/\//.test(target) || target.startsWith('#')) return target;
  const [path = '', anchor] = target.split('#');
  const page = posix
    .normalize(posix.join(posix.dirname(name), path))
    .replace(/^docs\//, '')
    .replace(/\.md$/, '');
  if (!path.endsWith('.md') || !pages.has(page)) return null;
  return `/guide/${page}.html${anchor === undefined ? '' : `#${anchor}`}`;
};

/** Text with code, emphasis and links. */
const inline = (text: string, place: Place): string =>
  text
    .split(/(`[^`]+`)/)
    .map((part) => {
      if (part.length > 2 && part.startsWith('`') && part.endsWith('`'))
        return `<code>${escaped(part.slice(1, -1).replaceAll('\\|', '|'))}</code>`;
      return escaped(part)
        .replaceAll('\\|', '|')
        .replaceAll(/!\[([^\]]*)\]\([^)]*\)/g, '$1')
        .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
        .replaceAll(/\*([^*\s][^*]*)\*/g, '<em>$1</em>');
    })
    .join('')
    .replaceAll(/\[((?:[^[\]]|<[^>]*>)*)\]\(([^)\s]+)\)/g, (_, words: string, target: string) => {
      const address = addressOf(target, place);
      return address === null ? words : `<a href="${address}">${words}</a>`;
    });

const cellsOf = (row: string): readonly string[] =>
  row
    .trim()
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());

const table = ([head = '', , ...rows]: readonly string[], place: Place): string => {
  const row = (line: string, cell: 'th' | 'td'): string =>
    `<tr>${cellsOf(line)
      .map((text) => `<${cell}>${inline(text, place)}</${cell}>`)
      .join('')}</tr>`;
  return `<div class="wide" tabindex="0"><table><thead>${row(head, 'th')}</thead><tbody>${rows.map((line) => row(line, 'td')).join('')}</tbody></table></div>`;
};

const item = /^(\s*)(?:[-*]|\d+\.) /;

/** Items with what is indented below each. */
const list = (lines: readonly string[], place: Place): string => {
  const items: string[][] = [];
  for (const line of lines)
    if (/^(?:[-*]|\d+\.) /.test(line)) items.push([line.replace(item, '')]);
    else items.at(-1)?.push(line.replace(/^ {2,3}/, ''));
  const tag = /^\d/.test(lines[0] ?? '') ? 'ol' : 'ul';
  return `<${tag}>${items.map((own) => `<li>${blocks(own, place)}</li>`).join('')}</${tag}>`;
};

/** The lines from `at` on that belong together. */
const takeWhile = (lines: readonly string[], at: number, belongs: (line: string, index: number) => boolean) => {
  let end = at;
  while (end < lines.length && belongs(lines[end] ?? '', end)) end += 1;
  return lines.slice(at, end);
};

const blocks = (lines: readonly string[], place: Place): string => {
  const made: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? '';
    const heading = /^(#{1,6}) (.*)$/.exec(line);
    if (line.trim() === '') at += 1;
    else if (line.startsWith('```')) {
      const code = takeWhile(lines, at + 1, (each) => !each.startsWith('```'));
      made.push(`<pre tabindex="0"><code>${escaped(code.join('\n'))}</code></pre>`);
      at += code.length + 2;
    } else if (heading !== null) {
      const [, marks = '', text = ''] = heading;
      made.push(`<h${marks.length} id="${slugOf(text)}">${inline(text, place)}</h${marks.length}>`);
      at += 1;
    } else if (line.startsWith('|')) {
      const rows = takeWhile(lines, at, (each) => each.startsWith('|'));
      made.push(table(rows, place));
      at += rows.length;
    } else if (/^(?:[-*]|\d+\.) /.test(line)) {
      const own = takeWhile(
        lines,
        at,
        (each, index) =>
          /^(?:[-*]|\d+\.) /.test(each) ||
          /^ {2,}\S/.test(each) ||
          (each === '' && /^(?: {2,}\S|[-*] |\d+\. )/.test(lines[index + 1] ?? '')),
      );
      made.push(list(own, place));
      at += own.length;
    } else {
      const text = takeWhile(lines, at, (each) => each.trim() !== '' && !/^(?:#{1,6} |```|\||[-*] |\d+\. )/.test(each));
      // A line that only looks like the beginning of something else is text.
      const own = text.length === 0 ? [line] : text;
      made.push(`<p>${inline(own.join(' '), place)}</p>`);
      at += own.length;
    }
  }
  return made.join('\n');
};

const page = (title: string, content: string): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>${escaped(title)} · DKE guide</title>
    <link rel="icon" href="/favicon.svg" type="image/svg+xml" />
    <script src="/theme.js"></script>
    <link rel="stylesheet" href="/guide.css" />
  </head>
  <body>
    <nav aria-label="Guide"><a href="/">Console</a> <a href="/guide/index.html">All guides</a></nav>
    <main>
${content}
    </main>
  </body>
</html>
`;

/** Every page of the guide by its file below the root of the pages. */
export const renderGuide = (root: string): ReadonlyMap<string, string> => {
  const docs = join(root, 'docs');
  const names = ['', 'databases'].flatMap((folder) =>
    readdirSync(join(docs, folder))
      .filter((file) => file.endsWith('.md'))
      .map((file) => posix.join(folder, file.slice(0, -3)))
      .filter((name) => !leftOut.has(name)),
  );
  const pages = new Set(names);
  const made = new Map<string, string>();
  for (const name of names) {
    const lines = readFileSync(join(docs, `${name}.md`), 'utf8').split('\n');
    const title = lines.find((line) => line.startsWith('# '))?.slice(2) ?? name;
    made.set(`guide/${name}.html`, page(title, blocks(lines, { name, pages })));
  }
  // The list of the guides is that of the README.
  const readme = readFileSync(join(root, 'README.md'), 'utf8').split('\n');
  const start = readme.indexOf('## Guides') + 1;
  const contents = takeWhile(readme, start, (line) => !line.startsWith('## '));
  made.set('guide/index.html', page('Guides', `<h1>Guides</h1>\n${blocks(contents, { name: 'README', pages })}`));
  return made;
};

export const guide = (root: string): Plugin => ({
  name: 'dke-guide',
  generateBundle() {
    for (const [fileName, source] of renderGuide(root)) this.emitFile({ type: 'asset', fileName, source });
  },
});
