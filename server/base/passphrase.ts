// How long a new passphrase must be, of root providers and recovery keys alike, in commands and
// pages.

/** Bytes of UTF-8. A shorter one can be guessed, also where each guess costs 128 MiB. */
export const shortestPassphrase = 12;

/** `of`: what it opens. */
export const shortPassphrase = (of: string): string =>
  `the passphrase of ${of} must have at least ${shortestPassphrase} bytes: choose five or six words that you use only here`;
