// Patterns with `*` (any characters) and `?` (one), in time that grows with the length of the text:
// pieces between stars are searched from left to right, each once. Backtracking would take the
// product of both lengths, for each of thousands of patterns, while every other caller waits.

/** Whether a text fits one pattern. */
export type Wildcard = (text: string) => boolean;

/** Where `piece` is first found at or after `from`; -1: nowhere. */
type Search = (text: string, from: number) => number;

const bitsOfWord = 32;

/**
 * The search for a piece with `?`: shift-and, one bit for each of its characters, in words of 32
 * bits (Baeza-Yates and Gonnet, "A new approach to text searching", 1992). A step of the text costs
 * one operation a word.
 */
const searchBits = (piece: string): Search => {
  const words = Math.ceil(piece.length / bitsOfWord);
  /** For each character of the piece, the places that take it. */
  const places = new Map<string, Uint32Array>();
  const anywhere = new Uint32Array(words);
  const mark = (mask: Uint32Array, at: number): void => {
    const word = Math.floor(at / bitsOfWord);
    mask[word] = ((mask[word] ?? 0) | (1 << (at % bitsOfWord))) >>> 0;
  };
  [...piece].forEach((character, at) => {
    if (character === '?') mark(anywhere, at);
    else if (!places.has(character)) places.set(character, new Uint32Array(words));
  });
  for (const mask of places.values()) mask.set(anywhere);
  [...piece].forEach((character, at) => {
    const mask = places.get(character);
    if (mask !== undefined) mark(mask, at);
  });
  const last = piece.length - 1;
  const [lastWord, lastBit] = [Math.floor(last / bitsOfWord), (1 << (last % bitsOfWord)) >>> 0];
  return (text, from) => {
    const state = new Uint32Array(words);
    for (let at = from; at < text.length; at += 1) {
      const mask = places.get(text[at] as string) ?? anywhere;
      let carried = 1;
      for (let word = 0; word < words; word += 1) {
        const before = state[word] as number;
        state[word] = ((before << 1) | carried) & (mask[word] as number);
        carried = before >>> (bitsOfWord - 1);
      }
      if (((state[lastWord] as number) & lastBit) !== 0) return at - last;
    }
    return -1;
  };
};

/** `indexOf` of V8 turns to Boyer and Moore's search where a plain one would go back often. */
const searchOf = (piece: string): Search =>
  piece.includes('?') ? searchBits(piece) : (text, from) => text.indexOf(piece, from);

const isAt = (piece: string, text: string, place: number): boolean => {
  for (let at = 0; at < piece.length; at += 1) if (piece[at] !== '?' && piece[at] !== text[place + at]) return false;
  return true;
};

/** Whether a text has to be searched: a pattern without a piece between two stars is compared. */
export const hasSearch = (pattern: string): boolean =>
  pattern
    .split('*')
    .slice(1, -1)
    .some((piece) => piece !== '');

/** `pattern` is ASCII. */
export const compileWildcard = (pattern: string): Wildcard => {
  const pieces = pattern.split('*');
  const [first = '', last = ''] = [pieces[0], pieces.at(-1)];
  if (pieces.length === 1) return (text) => text.length === first.length && isAt(first, text, 0);
  const between = pieces.slice(1, -1).filter((piece) => piece !== '');
  const searches = between.map((piece) => ({ search: searchOf(piece), length: piece.length }));
  return (text) => {
    const end = text.length - last.length;
    if (end < first.length || !isAt(first, text, 0) || !isAt(last, text, end)) return false;
    let from = first.length;
    for (const { search, length } of searches) {
      const found = search(text, from);
      if (found < 0) return false;
      from = found + length;
    }
    return from <= end;
  };
};
