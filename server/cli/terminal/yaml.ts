// JSON values as YAML, in blocks. Every text is quoted as JSON quotes it, which YAML reads in the
// same way: no text can be taken for a number, a date, a boolean or an anchor.

/**
 * Characters that JSON may leave as they are and readers of YAML refuse, or take for the end of a
 * line.
 */
const unsafe = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

const scalar = (value: unknown): string =>
  (JSON.stringify(value) ?? 'null').replaceAll(
    unsafe,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

const plainKey = /^(?!(?:y|n|yes|no|true|false|on|off|null)$)[a-z][a-z0-9]*$/i;
const keyOf = (name: string): string => (plainKey.test(name) ? name : scalar(name));

const isCollection = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0;

/** The lines of one value, without indentation. */
const linesOf = (value: unknown): readonly string[] => {
  if (Array.isArray(value)) {
    if (value.length === 0) return ['[]'];
    return value.flatMap((each: unknown) => linesOf(each).map((line, at) => `${at === 0 ? '- ' : '  '}${line}`));
  }
  if (!isCollection(value)) return [typeof value === 'object' && value !== null ? '{}' : scalar(value)];
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) => {
    if (member === undefined) return [];
    const [first = '', ...rest] = linesOf(member);
    return isCollection(member)
      ? [`${keyOf(name)}:`, ...[first, ...rest].map((line) => `  ${line}`)]
      : [`${keyOf(name)}: ${first}`];
  });
};

export const yamlOf = (value: unknown): string => `${linesOf(value).join('\n')}\n`;
