// Which names are taken: those of every script, and none that looks like another one or like nothing.
import { expect, test } from 'vitest';
import { checkName } from '../../../server/operations/shared/names.ts';

test.each(['a', 'Schlüssel 1', '鍵', 'मास्टर', '👩‍💻', 'می‌خواهم', '-', 'a'.repeat(128)])('%s is a name', (name) => {
  expect(checkName(name)).toBe(name);
});
test.each([
  ['nothing', ''],
  ['a character without width', '\u200b'],
  ['a joiner alone', '\u200d'],
  ['a mark alone', '\u0301'],
  ['a soft hyphen in it', 'pass\u00adword'],
  ['text that runs backwards', 'abc\u202edef'],
  ['an isolate', '\u2066abc\u2069'],
  ['a byte order mark', '\ufeffabc'],
  ['a control character', 'a\u0007b'],
  ['a space at its end', 'a '],
  ['too many characters', 'a'.repeat(129)],
])('%s is none', (_, name) => {
  expect(() => checkName(name)).toThrow(expect.objectContaining({ code: 'validation' }));
});
