// Faults of a JSON text that JSON.parse accepts. JSON.parse keeps the last of repeated members, and
// another parser may keep the first; two programs that read the same document must not see two
// different requests (RFC 8259, section 4; RFC 7493, section 2.3). A long list takes far longer to
// check against a schema than to scan.

/**
 * Whether arrays and objects are nested deeper than this. Asked before anything reads the document:
 * what checks a value against a schema calls itself for each level. `bytes` need not be valid JSON.
 */
export const isNestedDeeper = (bytes: Uint8Array, most: number): boolean => {
  let depth = 0;
  let isInText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (isInText && byte === 0x5c) at += 1;
    else if (byte === 0x22) isInText = !isInText;
    else if (isInText) continue;
    else if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      if (depth > most) return true;
    } else if (byte === 0x7d || byte === 0x5d) depth -= 1;
  }
  return false;
};

/** Levels of a head of the TDE API and of what comes with it; the deepest one has eight. */
export const mostHeadLevels = 32;

/**
 * Throws RangeError for what is nested deeper, before it is parsed; SyntaxError for what is not
 * JSON.
 */
export const parseShallow = (bytes: Buffer, mostLevels: number): unknown => {
  if (isNestedDeeper(bytes, mostLevels)) throw new RangeError(`nested deeper than ${mostLevels} levels`);
  return JSON.parse(bytes.toString('utf8'));
};

/**
 * A member that its object has twice, or an array or object with more than `mostItems` items; the
 * first one found. `text` is valid JSON. Takes time in proportion to the text.
 */
export const findJsonFault = (
  text: string,
  mostItems: number,
): { readonly repeated: string } | 'too-many-items' | undefined => {
  /**
   * Arrays and objects that are open, the innermost last: the commas so far, and the names of an
   * object.
   */
  const open: { commas: number; readonly names: Set<string> | undefined }[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    const inner = open.at(-1);
    if (character === '{') open.push({ commas: 0, names: new Set() });
    else if (character === '[') open.push({ commas: 0, names: undefined });
    else if (character === '}' || character === ']') open.pop();
    else if (character === ',' && inner !== undefined) {
      inner.commas += 1;
      if (inner.commas >= mostItems) return 'too-many-items';
    } else if (character === '"') {
      const start = at;
      for (at += 1; text[at] !== '"'; at += 1) if (text[at] === '\\') at += 1;
      let next = at + 1;
      while (isSpace(text[next])) next += 1;
      if (text[next] !== ':') continue;
      const name = JSON.parse(text.slice(start, at + 1)) as string;
      if (inner?.names?.has(name) === true) return { repeated: name };
      inner?.names?.add(name);
    }
  }
  return undefined;
};

const isSpace = (character: string | undefined): boolean =>
  character === ' ' || character === '\n' || character === '\r' || character === '\t';
