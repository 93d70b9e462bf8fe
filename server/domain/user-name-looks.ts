// Whether a user name can be taken for another one, as far as rules say it that people can check:
// one script, marks that are seen, and no letter that is there only to look like another. It leaves
// out what looks alike within one script (l and 1, rn and m): docs/decisions/0061.

// Scripts in everyday use (Unicode, UAX #31, table 5). Those that are written together count as
// one.
const scripts = [
  ...['Latin', 'Cyrillic', 'Greek', 'Arabic', 'Armenian', 'Bengali', 'Devanagari', 'Ethiopic', 'Georgian'],
  ...['Gujarati', 'Gurmukhi', 'Hebrew', 'Kannada', 'Khmer', 'Lao', 'Malayalam', 'Myanmar', 'Oriya', 'Sinhala'],
  ...['Tamil', 'Telugu', 'Thaana', 'Thai', 'Tibetan'],
].map((script) => [script]);
const together = [
  ['Han', 'Hiragana', 'Katakana'],
  ['Han', 'Bopomofo'],
  ['Han', 'Hangul'],
];
const ofOneScript = [...scripts, ...together].map(
  (names) =>
    new RegExp(
      `^[${names.map((name) => String.raw`\p{Script_Extensions=${name}}`).join('')}\\p{Script=Common}\\p{Script=Inherited}]*$`,
      'u',
    ),
);

/**
 * Marks that are not seen on a letter: its own dot, one that is there already, and lines across.
 */
const unseenMark = /\p{Soft_Dotted}\p{M}*\u0307|(\p{Mn})\1|[\u0334-\u0338]/u;

/**
 * Letters of phonetics, and others that look like those of a keyboard (ı, ɡ, ɑ, ɪ, ƅ, ǀ, ꞌ), small
 * capitals and letters that stand for a stroke. Those of alphabets in use (ə, ɛ, ɔ and others) are
 * not among them.
 */
const phonetic =
  /(?![\u0253\u0254\u0256\u0257\u0259\u025b\u0263\u0268\u0272\u0289\u028a])[\u0250-\u02ff\u1d00-\u1dbf\u2c60-\u2c7f\ua700-\ua7ff\uab30-\uab6f]|[\u0131\u0138\u0184\u0185\u01a6\u01c0-\u01c3\u0237\u023f\u0240\u0640]|[\u{10780}-\u{107bf}\u{1df00}-\u{1dfff}]/u;

/**
 * Letters of other scripts that look like Latin ones as they are written: a name of them alone
 * looks like a Latin name. One more letter, which does not, tells it apart.
 */
const likeLatin: readonly RegExp[] = [
  /^[асԁеһіјӏорԛѕѵԝхуАВЕНІЈКӀМОРԚСЅТѴԜХУҮԌ]+$/u,
  /^[αγηικνορυχωϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ]+$/u,
  /^[օոսհցզյՕՍՏ]+$/u,
];

export const looksLikeAnother = (name: string): boolean => {
  const spelled = name.normalize('NFKC');
  const both = [spelled, spelled.toLowerCase()].map((each) => each.normalize('NFD'));
  const letters = both[0]?.replaceAll(/[^\p{L}]/gu, '') ?? '';
  return (
    !ofOneScript.some((pattern) => pattern.test(spelled)) ||
    both.some((each) => unseenMark.test(each) || phonetic.test(each)) ||
    likeLatin.some((pattern) => pattern.test(letters))
  );
};
