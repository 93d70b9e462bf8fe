// The one secret member of a JSON body, read and written as bytes: `RawSecretAccessKey` of a proxy
// configuration file and `Plaintext` of the KMS protocol, and passwords of people, never become
// JavaScript strings, which nothing can wipe. What is left of a body is read by JSON.parse, where
// the member then stands as blanks. Base64 is the standard alphabet, padded and canonical (RFC 4648
// section 4).

const quote = 0x22;
const backslash = 0x5c;

/** The index behind a string that begins at `at`, or -1. */
const endOfString = (body: Buffer, at: number): number => {
  for (let index = at + 1; index < body.length; index += 1) {
    if (body[index] === backslash) index += 1;
    else if (body[index] === quote) return index + 1;
  }
  return -1;
};

const skipBlanks = (body: Buffer, at: number): number => {
  let index = at;
  while (index < body.length && (body[index] ?? 0) <= 0x20) index += 1;
  return index;
};

/**
 * Where the characters of the first string member `name` at this depth stand: from, and behind the
 * last one.
 */
const findMember = (body: Buffer, name: string, depth: number): readonly [from: number, to: number] | null => {
  const wanted = Buffer.from(`"${name}"`);
  let level = 0;
  for (let index = 0; index < body.length; index += 1) {
    const byte = body[index];
    if (byte === 0x7b || byte === 0x5b) level += 1;
    else if (byte === 0x7d || byte === 0x5d) level -= 1;
    else if (byte === quote) {
      const end = endOfString(body, index);
      if (end < 0) return null;
      const colon = skipBlanks(body, end);
      const from = skipBlanks(body, colon + 1);
      const found = level === depth && body[colon] === 0x3a && body.subarray(index, end).equals(wanted);
      if (found && body[from] === quote) {
        const to = endOfString(body, from);
        return to < 0 ? null : [from + 1, to - 1];
      }
      index = end - 1;
    }
  }
  return null;
};

/**
 * Copies the characters of the first string member `name` at this depth (1 = the outermost object)
 * and blanks them in the body; null when there is none. Only the escape `\/` is resolved: no other
 * character of a secret is written with a backslash.
 */
export const takeMember = (body: Buffer, name: string, depth: number): Buffer | null => {
  const place = findMember(body, name, depth);
  if (place === null) return null;
  const [from, to] = place;
  const taken = Buffer.alloc(to - from);
  let length = 0;
  for (let at = from; at < to; at += 1) {
    if (body[at] === backslash && body[at + 1] === 0x2f) continue;
    taken[length] = body[at] ?? 0;
    length += 1;
  }
  body.fill(0x20, from, to);
  return taken.subarray(0, length);
};

/** The characters as they stand there, escapes and all. */
const takeRaw = (body: Buffer, name: string): Buffer | null => {
  const place = findMember(body, name, 1);
  if (place === null) return null;
  const [from, to] = place;
  const taken = Buffer.alloc(to - from);
  body.copy(taken, 0, from, to);
  body.fill(0x20, from, to);
  return taken;
};

const alphabet = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/');
const values = new Int8Array(256).fill(-1);
for (const [value, character] of alphabet.entries()) values[character] = value;
const padding = 0x3d;

/** Bytes of Base64 characters; null when they are none. */
export const decodeBase64 = (text: Uint8Array): Buffer | null => {
  if (text.length % 4 !== 0) return null;
  const pads = text.at(-1) !== padding ? 0 : text.at(-2) !== padding ? 1 : 2;
  const bytes = Buffer.alloc((text.length / 4) * 3 - pads);
  for (let at = 0, to = 0; at < text.length; at += 4) {
    let group = 0;
    for (let index = at; index < at + 4; index += 1) {
      const value = index >= text.length - pads ? 0 : (values[text[index] ?? 0] ?? -1);
      if (value < 0) return null;
      group = (group << 6) | value;
    }
    for (const byte of [group >>> 16, (group >>> 8) & 0xff, group & 0xff]) {
      if (to < bytes.length) bytes[to] = byte;
      // Bits beyond the end must be zero: one text for one value.
      else if (byte !== 0) return null;
      to += 1;
    }
  }
  return bytes;
};

/**
 * An answer with its secret member: `{..., "name":"<Base64>"}`. The caller wipes it after it was
 * sent.
 */
export const writeWithSecret = (members: object, name: string, secret: Uint8Array): Buffer => {
  const head = Buffer.from(`${JSON.stringify(members).slice(0, -1)},${JSON.stringify(name)}:"`);
  const encoded = Math.ceil(secret.length / 3) * 4;
  const answer = Buffer.alloc(head.length + encoded + 2, padding);
  head.copy(answer);
  let to = head.length;
  for (let at = 0; at < secret.length; at += 3) {
    const left = secret.length - at;
    const group = ((secret[at] ?? 0) << 16) | ((secret[at + 1] ?? 0) << 8) | (secret[at + 2] ?? 0);
    for (let index = 0; index < Math.min(4, left + 1); index += 1)
      answer[to + index] = alphabet[(group >>> (18 - 6 * index)) & 0x3f] ?? 0;
    to += 4;
  }
  answer.write('"}', to);
  return answer;
};

const escapes: ReadonlyMap<number, number> = new Map(
  Object.entries({ '"': 0x22, '\\': 0x5c, '/': 0x2f, b: 0x08, f: 0x0c, n: 0x0a, r: 0x0d, t: 0x09 }).map(
    ([letter, byte]) => [letter.charCodeAt(0), byte],
  ),
);
const hexadecimal = (byte: number): number =>
  byte >= 0x30 && byte <= 0x39
    ? byte - 0x30
    : (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66
      ? (byte | 0x20) - 0x57
      : -1;

/** The UTF-16 code unit of four hexadecimal digits, or -1. */
const codeUnit = (text: Uint8Array, at: number): number => {
  let unit = 0;
  for (let index = at; index < at + 4; index += 1) {
    const digit = hexadecimal(text[index] ?? 0);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
};

/** Writes a code point as UTF-8; answers where the next one goes. */
const writeCodePoint = (out: Buffer, to: number, point: number): number => {
  if (point < 0x80) {
    out[to] = point;
    return to + 1;
  }
  const more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  out[to] = ((0xf00 >> more) & 0xff) | (point >> (6 * more));
  for (let index = 1; index <= more; index += 1) out[to + index] = 0x80 | ((point >> (6 * (more - index))) & 0x3f);
  return to + more + 1;
};

/**
 * Takes the string member `name` of the outermost object as UTF-8 bytes, every escape of RFC 8259
 * resolved, and blanks it in the body. 'malformed': it is there and is not JSON text (a lone
 * surrogate counts as such). Null: there is none. The caller wipes the bytes.
 */
export const takeText = (body: Buffer, name: string): Buffer | 'malformed' | null => {
  const raw = takeRaw(body, name);
  if (raw === null) return null;
  const text = Buffer.alloc(raw.length);
  let to = 0;
  let sound = true;
  for (let at = 0; at < raw.length && sound; ) {
    const byte = raw[at] ?? 0;
    if (byte !== backslash) {
      sound = byte >= 0x20;
      text[to] = byte;
      to += 1;
      at += 1;
      continue;
    }
    const letter = raw[at + 1] ?? 0;
    if (letter !== 0x75) {
      const meant = escapes.get(letter);
      sound = meant !== undefined;
      text[to] = meant ?? 0;
      to += 1;
      at += 2;
      continue;
    }
    let point = codeUnit(raw, at + 2);
    at += 6;
    if (point >= 0xd800 && point <= 0xdbff && raw[at] === backslash && raw[at + 1] === 0x75) {
      const low = codeUnit(raw, at + 2);
      if (low >= 0xdc00 && low <= 0xdfff) {
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
      }
    }
    sound = point >= 0 && (point < 0xd800 || point > 0xdfff);
    if (sound) to = writeCodePoint(text, to, point);
  }
  raw.fill(0);
  if (sound) return text.subarray(0, to);
  text.fill(0);
  return 'malformed';
};
