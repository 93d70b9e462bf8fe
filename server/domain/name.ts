// Names that people give: 1 to 128 characters, at least one of them visible, no space at either end. Control characters, characters without
// width or ink and those that change the direction of the text are refused: with them two names look the same. Joiners and selectors of a
// variant stay where scripts and symbols need them.

// Unicode calls most of them "default ignorable" (Hangul fillers and tags among them). Blank Braille, blank musical notes and the marks of
// interlinear annotations come on top.
const refused =
  /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u2800\ufff9-\ufffb\u{1d159}]|(?!\u200c|\u200d|[\ufe00-\ufe0f]|[\u{e0100}-\u{e01ef}])\p{Default_Ignorable_Code_Point}/u;
/**
 * Joiners and selectors that change nothing: at the beginning, and after a letter, digit or sign
 * that has no variants. A keycap has one.
 */
const selector = String.raw`(?:\u200c|[\ufe00-\ufe0f]|[\u{e0100}-\u{e01ef}])`;
const plain = String.raw`(?:^|\u200d|${selector}|[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{ASCII}])`;
const idle = new RegExp(String.raw`${plain}(?:${selector}(?!\u20e3)|(?<!\ufe0f)\u200d)`, 'u');
const visible = /[\p{L}\p{N}\p{P}\p{S}]/u;

/** Whether something in it is not seen, or changes how the rest is seen. */
export const isDeceptive = (text: string): boolean => refused.test(text);

export const isName = (text: string): boolean =>
  text.length >= 1 &&
  text.length <= 128 &&
  text.trim() === text &&
  !isDeceptive(text) &&
  !idle.test(text) &&
  visible.test(text);
