// What a password must be (NIST SP 800-63B section 3.1.1.2): long enough, not too long, not the
// user's name, none of those that everybody tries first. No rule about kinds of characters: such
// rules make passwords that are guessed as easily and forgotten more often. Works on bytes (UTF-8),
// so that a password need not become text.

export const shortestPassword = 12;
export const longestPassword = 256;

/**
 * The most frequent ones of twelve characters and more; what is shorter is refused by its length.
 */
const common: ReadonlySet<string> = new Set([
  'password1234',
  'password12345',
  'password123456',
  'passwordpassword',
  '123456789012',
  '1234567890123',
  '12345678901234',
  '123456789012345',
  '1234567890123456',
  '1234567891011',
  '123456789123',
  '123456123456',
  '123123123123',
  '098765432100',
  'qwertyuiop123',
  'qwertyuiop[]',
  'qwertyqwerty',
  'qwerty123456',
  '1q2w3e4r5t6y',
  '1qaz2wsx3edc',
  '1qaz2wsx3edc4rfv',
  'qazwsxedcrfv',
  'asdfghjkl123',
  'abcdefghijkl',
  'abcdefghijklm',
  'abc123abc123',
  'administrator',
  'administrator1',
  'adminadminadmin',
  'letmeinletmein',
  'welcome12345',
  'changemechangeme',
  'changeme1234',
  'iloveyou1234',
  'correcthorsebatterystaple',
  'trustno1trustno1',
]);
const longestCommon = Math.max(...[...common].map(({ length }) => length));

/** Characters, not bytes: a continuation byte is part of the one before it. */
const lengthOf = (password: Uint8Array): number => {
  let length = 0;
  for (const byte of password) if ((byte & 0xc0) !== 0x80) length += 1;
  return length;
};

const lower = (byte: number): number => (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte);

/**
 * Compares without regard to the case of ASCII letters; both are the user's own, so the time
 * reveals nothing.
 */
const isText = (password: Uint8Array, text: string): boolean => {
  const other = new TextEncoder().encode(text);
  return password.length === other.length && password.every((byte, at) => lower(byte) === lower(other[at] ?? 0));
};

/** Why this is not a password for the user of this name; undefined: it is one. */
export const faultOfPassword = (password: Uint8Array, userName: string): string | undefined => {
  const length = lengthOf(password);
  if (length < shortestPassword) return `must have at least ${shortestPassword} characters`;
  if (length > longestPassword) return `must have at most ${longestPassword} characters`;
  if (isText(password, userName) || isText(password, `${userName}${userName}`)) return 'must not be the user name';
  if (password.every((byte) => byte === password[0])) return 'must not repeat a single character';
  if (password.length <= longestCommon) for (const each of common) if (isText(password, each)) return 'is too common';
  return undefined;
};
