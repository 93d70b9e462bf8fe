// Commands that are offered for copying. Names, labels and hosts come from other people: a database
// host that labels its key `$(touch x)` would otherwise have a command of its own in the
// administrator's shell.
//
// Who can choose a value: anyone who can name something. What proves it: nothing, so each value is
// one word of the shell, whatever it is. Whose it is: the resource's that it names. How long: as a
// name. What is kept: nothing. What the reader sees: each character; what shows nothing, or turns
// the direction of a text, is written as an escape that the shell reads.

/** A first `=` is a program's path for zsh. */
const plain = /^(?!=)[A-Za-z0-9_@%+=:,./-]+$/;
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const space = /[\u00a0\u2000-\u200a\u202f\u205f\u3000]/u;

const bytesOf = (character: string): string =>
  [...new TextEncoder().encode(character)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');

/**
 * One word of a POSIX shell; with invisible characters, of a shell that knows `$'…'` (bash, zsh,
 * ksh). No word can have a NUL: a shell leaves out what follows it, and what is left may be another
 * name. So that one becomes the text of its escape, which is not a name.
 */
export const shellWord = (text: string): string => {
  if (plain.test(text)) return text;
  const escaped = [...text].map((character) =>
    unseen.test(character) || space.test(character)
      ? `${character === '\0' ? '\\' : ''}${bytesOf(character)}`
      : character === '\\' || character === "'"
        ? `\\${character}`
        : character,
  );
  const shown = [...text].some((character) => unseen.test(character) || space.test(character));
  return shown ? `$'${escaped.join('')}'` : `'${text.replaceAll("'", "'\\''")}'`;
};

/**
 * A name in a statement that is offered for PostgreSQL: always in quotation marks unless it is
 * plain, so that it is one identifier, whatever it is. Invisible characters are written as their
 * escapes: a line break in a name would end a line of psql.
 */
export const sqlName = (text: string): string => {
  if (/^[a-z_][a-z0-9_]*$/.test(text) && !reservedWords.has(text)) return text;
  const quoted = text.replaceAll('"', '""');
  const isUnseen = (character: string): boolean => unseen.test(character) || space.test(character);
  if (![...text].some((character) => isUnseen(character) || character === '\\')) return `"${quoted}"`;
  const escaped = [...quoted].map((character) =>
    isUnseen(character) || character === '\\'
      ? `\\+${(character.codePointAt(0) ?? 0).toString(16).padStart(6, '0')}`
      : character,
  );
  return `U&"${escaped.join('')}"`;
};
/** Names of roles and schemas that PostgreSQL reads as something else where they are not quoted. */
const reservedWords = new Set(
  (
    'all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation column concurrently constraint ' +
    'create cross current_catalog current_date current_role current_schema current_time current_timestamp current_user default deferrable desc ' +
    'distinct do else end except false fetch for foreign freeze from full grant group having ilike in initially inner intersect into is isnull join ' +
    'lateral leading left like limit localtime localtimestamp natural none not notnull null offset on only or order outer overlaps placing primary ' +
    'references returning right select session_user similar some symmetric system_user table tablesample then to trailing true union unique ' +
    'user using variadic verbose when where window with'
  ).split(' '),
);

/**
 * A command from fixed words and values. A value after `=` belongs to its option. Each other value
 * is an operand, and comes last: when one of them begins with a hyphen, `--` goes before the first.
 *
 *     command`dke key enable ${name}`
 */
export const command = (words: TemplateStringsArray, ...values: readonly string[]): string => {
  const isOperand = (index: number): boolean => !(words[index] ?? '').endsWith('=');
  const first = values.findIndex((_, index) => isOperand(index));
  if (first >= 0 && words.slice(first + 1).some((text) => / -/.test(text)))
    throw new TypeError(`options come before operands: ${words.join('…')}`);
  const ends = values.some((value, index) => isOperand(index) && value.startsWith('-'));
  return words.reduce((line, text, index) => {
    const value = values[index];
    if (value === undefined) return line + text;
    return `${line}${text}${ends && index === first ? '-- ' : ''}${shellWord(value)}`;
  }, '');
};

/**
 * A command from a text with places in braces, such as `dke key enable {key}`, with each value
 * quoted as in `command`. A place whose name is not known keeps its braces.
 */
export const fillCommand = (template: string, values: Readonly<Record<string, string>>): string =>
  template
    .split('\n')
    .map((line) => {
      const parts = line.split(/\{(\w+)\}/);
      const words = parts.filter((_, index) => index % 2 === 0);
      const names = parts.filter((_, index) => index % 2 === 1);
      const given = names.map((name) => values[name] ?? `{${name}}`);
      return command(Object.assign(words, { raw: words }), ...given);
    })
    .join('\n');

/**
 * Adds lines to a unit of systemd. They are appended: what an earlier command of this kind has
 * allowed stays allowed.
 */
export const extendUnit = (unit: string, name: string, lines: readonly string[]): string => {
  const folder = `/etc/systemd/system/${unit}.service.d`;
  return `install -d ${folder} && printf '%s\\n' '[Service]' ${lines.map(shellWord).join(' ')} >> ${folder}/${name}.conf && systemctl daemon-reload`;
};
