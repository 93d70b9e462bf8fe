// Repeated members of JSON objects. JSON.parse keeps the last of them, and another parser may keep the first. Two programs that read the same
// document must not see two different requests (RFC 8259, section 4; RFC 7493, section 2.3).

/** The first member that its object has twice; undefined when there is none. `text` is valid JSON. Takes time in proportion to the text. */
export const repeatedMember = (text: string): string | undefined => {
  /** Of each object that is open, the names so far; undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '{') open.push(new Set());
    else if (character === '[') open.push(undefined);
    else if (character === '}' || character === ']') open.pop();
    else if (character === '"') {
      const start = at;
      for (at += 1; text[at] !== '"'; at += 1) if (text[at] === '\\') at += 1;
      let next = at + 1;
      while (isSpace(text[next])) next += 1;
      if (text[next] !== ':') continue;
      const name = JSON.parse(text.slice(start, at + 1)) as string;
      const names = open.at(-1);
      if (names?.has(name) === true) return name;
      names?.add(name);
    }
  }
  return undefined;
};

const isSpace = (character: string | undefined): boolean =>
  character === ' ' || character === '\n' || character === '\r' || character === '\t';
