// Text of others as a terminal may show it: names, labels and files come from other people.

/**
 * Control characters (also those of C1), and those that show nothing or turn the direction of the
 * text, as escapes. `except`: characters that stay.
 */
export const printable = (text: string, except = ''): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    except.includes(character) ? character : `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
