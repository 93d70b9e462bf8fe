// Accepted names: those of every script, and none that looks like another one or that is invisible.
import { expect, test } from 'vitest';
import { foldUserName, isUserName } from '../../../server/domain/user.ts';
import { checkName } from '../../../server/operations/shared/names.ts';

test.each([
  'a',
  'Schlüssel 1',
  '鍵',
  'मास्टर',
  '👩‍💻',
  '👩🏽‍💻',
  '👩‍❤️‍👨',
  '🏳️‍🌈',
  '1️⃣',
  '⌛︎',
  'می‌خواهم',
  'क्‍ष',
  '葛\u{e0100}',
  'Jose\u0301',
  '❤️',
  '-',
  'a'.repeat(128),
])('%s is a name', (name) => {
  expect(checkName(name)).toBe(name);
});
test.each<readonly [string, string]>([
  ['nothing', ''],
  ['a character without width', '\u200b'],
  ['a joiner alone', '\u200d'],
  ['a mark alone', '\u0301'],
  ['a joiner after a letter that joins with nothing', 'prod\u200d'],
  ['a selector after a letter without variants', 'prod\ufe0f2'],
  ['two selectors', '\u2764\ufe0f\ufe0f'],
  ['a joiner after a mark of a letter', 'Jose\u0301\u200c'],
  ['a joiner between a letter and its mark', 'Jose\u200c\u0301'],
  ['a joiner after two marks', 'Jose\u0301\u0302\u200d'],
  ['a joiner after a letter of a script without joins', '鍵\u200d'],
  ['a joiner after a digit of another script', '१\u200c'],
  ['a joiner between Hebrew letters', 'ש\u200cל'],
  ['a non-joiner after an Arabic letter that never joins', 'د\u200cر'],
  ['a non-joiner at the end of an Arabic word', 'می\u200c'],
  ['a joiner between Arabic letters that join', 'م\u200dی'],
  ['a selector that an emoji does not need', '👩\ufe0f'],
  ['a selector of what a sign looks like already', '❤\ufe0e'],
  ['a selector after a mark', 'e\u0301\ufe0f'],
  ['a joiner after the last emoji', '👩\u200d'],
  ['a non-joiner at its beginning', '\u200cprod'],
  ['a soft hyphen in it', 'pass\u00adword'],
  ['text that runs backwards', 'abc\u202edef'],
  ['an isolate', '\u2066abc\u2069'],
  ['a byte order mark', '\ufeffabc'],
  ['a control character', 'a\u0007b'],
  ['a space at its end', 'a '],
  ['two spaces between words', 'a  b'],
  ...['\u00a0', '\u2000', '\u2003', '\u2009', '\u200a', '\u202f', '\u205f', '\u3000', '\u1680'].map(
    (space): [string, string] => [`a space of another kind: ${space.codePointAt(0)?.toString(16)}`, `a${space}b`],
  ),
  ['a Hangul filler', '\u3164'],
  ['a narrow Hangul filler in it', 'a\uffa0b'],
  ['a Hangul filler of a syllable', '\u115f\u1160'],
  ['blank Braille', '\u2800'],
  ['tags', 'a\u{e0041}'],
  ['a mark of an annotation', 'a\ufff9b'],
  ['a joiner of graphemes', 'a\u034fb'],
  ['too many characters', 'a'.repeat(129)],
])('%s is none', (_, name) => {
  expect(() => checkName(name)).toThrow(expect.objectContaining({ code: 'validation' }));
});

test('a user name has no letter that is not seen', () => {
  const unseen = ['\u3164', '\u115f', '\ufe0f', '\u{e0100}', '\u200c', '\u200d', '\u180b'];
  expect(['ada', '\u3164', ...unseen.map((each) => `ada${each}`)].filter(isUserName)).toEqual(['ada']);
  // Marks that are seen belong to the scripts.
  expect(['मास्टर', 'e\u0301va'].filter(isUserName)).toHaveLength(2);
});

test.each<readonly [string, string]>([
  ['a dot on a letter that has one', 'admi\u0307n'],
  ['a dot on a letter that has one and another mark', 'admi\u0323\u0307n'],
  ['a capital letter with a dot', 'adm\u0130n'],
  ['a letter without its dot', 'adm\u0131n'],
  ['a Cyrillic letter', '\u0430dmin'],
  ['a Greek letter', 'r\u03bfot'],
  ['a letter of phonetics', 'ma\u0261da'],
  ['its capital letter', 'MA\ua7acDA'],
  ['another letter of phonetics', 'm\u0251gda'],
  ['a small capital', 'm\u1d00gda'],
  ['a stroke that is a letter', '\u01c0da'],
  ['a mark twice', 'e\u0301\u0301va'],
  ['a line across a letter', 'o\u0338la'],
  ['a script that is not in use', '\u13aa\u13ac\u13a2'],
  ['Cyrillic letters that all look like Latin ones', '\u0430\u0441\u0435'],
  ['Cyrillic capitals that all look like Latin ones, with a digit', '\u0422\u041e\u041c1'],
  ['Greek letters that all look like Latin ones', '\u03bd\u03b9\u03ba\u03bf'],
])('a user name is not taken for another one: %s', (_, name) => {
  expect(isUserName(name)).toBe(false);
});

test('a user name may have the letters of each script in use', () => {
  const names = ['Анна', 'Тома', 'Νίκος', 'José', 'Łukasz', 'Øyvind', 'Nguyễn', 'Əli', 'Ɛfua', 'محمد', 'שרה', 'Արամ'];
  names.push(
    '田中さくら',
    'ミカエル',
    'チャーリー',
    '김민준',
    '王小明',
    'मास्टर',
    'สมชาย',
    'ada.lovelace+1@example.org',
    '4711',
  );
  expect(names.filter((name) => !isUserName(name))).toEqual([]);
});

test('a user name is compared in one way, in whichever case, width and composition it is written', () => {
  const differing: string[] = [];
  for (let point = 0; point < 0x110000; point += 1) {
    if (point >= 0xd800 && point < 0xe000) continue;
    for (const name of [`a${String.fromCodePoint(point)}`, `a${String.fromCodePoint(point)}b`]) {
      if (!isUserName(name)) continue;
      const folded = foldUserName(name);
      const lower = name.toLowerCase();
      const spellings = [folded, lower, name.normalize('NFC'), name.normalize('NFD'), lower.normalize('NFD')];
      for (const spelling of [...spellings, name.normalize('NFKC'), name.normalize('NFKD')])
        if (foldUserName(spelling) !== folded) differing.push(`${name} ${spelling}`);
    }
  }
  expect(differing).toEqual([]);
  // Letters without a capital of their own.
  expect(foldUserName('J\u030c')).toBe(foldUserName('\u01f0'));
});
