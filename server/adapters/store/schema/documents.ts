// Columns that hold JSON. What is in such a column may have been changed from outside: where the
// row is authenticated, its integrity says so, and nothing is read from a row that was; elsewhere a
// document has the members that its example has, or it is none.

const kindOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);

/**
 * The members of the example are there, each of the same kind; the first item of an array
 * represents all of its items, null for text, a number or nothing.
 */
const isLike = (value: unknown, example: unknown): boolean => {
  if (example === null) return ['null', 'string', 'number'].includes(kindOf(value));
  if (kindOf(value) !== kindOf(example)) return false;
  if (Array.isArray(example))
    return example.length === 0 || (value as readonly unknown[]).every((each) => isLike(each, example[0]));
  if (typeof example !== 'object') return true;
  return Object.entries(example as object).every(([name, each]) =>
    isLike((value as { readonly [member: string]: unknown })[name], each),
  );
};

/**
 * The document of a column that nothing authenticates; `otherwise` when it is not like its example,
 * or no JSON.
 */
export const readDocument = <T>(text: string | null, example: object, otherwise: T): T => {
  if (text === null) return otherwise;
  try {
    const value: unknown = JSON.parse(text);
    return isLike(value, example) ? (value as T) : otherwise;
  } catch {
    return otherwise;
  }
};
