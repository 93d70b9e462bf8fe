// Names that people give: 1 to 128 characters, at least one of them visible, no space at either
// end, and one plain space between words. Two spaces, spaces of other kinds, control characters,
// characters without width or ink and those that change the direction of the text are refused: with
// them two names look the same. Joiners and selectors of a variant stay where scripts and symbols
// need them.

// Unicode calls most of them "default ignorable" (Hangul fillers and tags among them). Blank
// Braille, blank musical notes and the marks of interlinear annotations come on top.
const refused =
  /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u2800\ufff9-\ufffb\u{1d159}]|(?!\u200c|\u200d|[\ufe00-\ufe0f]|[\u{e0100}-\u{e01ef}])\p{Default_Ignorable_Code_Point}/u;
/** Marks behind which a joiner decides what the next letter looks like. */
const viramas =
  '[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u0f84\u1039\u17d2\u1a60\u1b44\u1baa\u1bab\ua8c4\ua953\ua9c0\uaaf6\uabed]';
/**
 * Letters of scripts that join. Arabic ones that join with nothing behind them look the same with
 * a non-joiner.
 */
const unjoined =
  '[\u0621-\u0625\u0627\u0629\u062f-\u0632\u0648\u0660-\u0669\u0671-\u0677\u0688-\u0699\u06c0\u06c3-\u06cb\u06cd\u06cf\u06d2-\u06d5\u06ee-\u06f9\u0759-\u075b\u076b\u076c\u0771\u0773\u0774\u0778\u0779]';
const joining = String.raw`[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Nko}\p{Script=Adlam}]`;
/**
 * The joiners and selectors that change what is seen: those behind a virama, between letters that
 * would join, between emoji, and where a character has a variant. A name with any other one looks
 * like the name without it.
 */
const needed = new RegExp(
  [
    String.raw`(?<=${viramas})[\u200c\u200d]`,
    String.raw`(?<=(?!${unjoined})(?=\p{L})${joining}\p{M}*)\u200c(?=(?=\p{L})${joining})`,
    String.raw`(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})`,
    String.raw`(?<=\p{Emoji_Presentation})\ufe0e`,
    String.raw`(?<=(?![\p{Emoji_Presentation}\p{ASCII}])\p{Emoji})\ufe0f`,
    String.raw`(?<=[0-9#*])\ufe0f(?=\u20e3)`,
    String.raw`(?<=\p{Script=Han})[\ufe00-\ufe02\u{e0100}-\u{e01ef}]`,
  ].join('|'),
  'gu',
);
const changing = /\u200c|\u200d|[\ufe00-\ufe0f]|[\u{e0100}-\u{e01ef}]/u;
const hasIdle = (text: string): boolean => changing.test(text) && changing.test(text.replace(needed, ''));
const otherSpaces = /(?! )\p{Zs}| {2}/u;
const visible = /[\p{L}\p{N}\p{P}\p{S}]/u;

/** Whether something in it is not seen, or changes how the rest is seen. */
export const isDeceptive = (text: string): boolean => refused.test(text);

export const isName = (text: string): boolean =>
  text.length >= 1 &&
  text.length <= 128 &&
  text.trim() === text &&
  !otherSpaces.test(text) &&
  !isDeceptive(text) &&
  !hasIdle(text) &&
  visible.test(text);
