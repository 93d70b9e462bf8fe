// The commands in a printed fix, so that tests run them as they are printed. What a fix says
// without a command ("put the file there") is done by the test itself.

/** One command of a shell, of `dke`, or of PostgreSQL. */
export interface PrintedCommand {
  readonly kind: 'shell' | 'dke' | 'sql';
  readonly text: string;
}

const forms: readonly (readonly [PrintedCommand['kind'], RegExp])[] = [
  // A command of the shell is all of a fix, or follows its first words to its end or to `dke`.
  ['shell', /(?:^|: )((?:chmod|chown|install -|rm|mv|mkdir) ?.*?)(?= && dke |; nothing was changed$|$)/gs],
  ['dke', /(?<=: |\(|&& |\brun )(dke [a-z]+(?:[ -][a-z]+)*(?: [A-Z]+| '[^']*')?)/g],
  ['sql', /\b(GRANT [^;]+)/g],
];

export const commandsIn = (said: string): readonly PrintedCommand[] =>
  forms
    .flatMap(([kind, form]) => [...said.matchAll(form)].map(({ index, 1: text = '' }) => ({ index, kind, text })))
    .toSorted((one, other) => one.index - other.index)
    .map(({ kind, text }) => ({ kind, text }));
