// The fragment of the address: how a page shows what its filters found. Several parts of a page
// have words of their own in it.

/** The fragment with these words; undefined and empty ones are taken out, those of others stay. */
export const withWords = (fragment: string, own: Readonly<Record<string, string | undefined>>): string => {
  const words = new URLSearchParams(fragment.replace(/^#/, ''));
  for (const [name, value] of Object.entries(own))
    if (value === undefined || value === '') words.delete(name);
    else words.set(name, value);
  return words.toString();
};
