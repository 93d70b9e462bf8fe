// Labels of token objects are bytes, kept as Base64. People read, search and compare them as text.

const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u;

/**
 * The text of a label that is printable UTF-8, without the final NUL that programs in C leave;
 * undefined for any other.
 */
export const textOfLabel = (label: string): string | undefined => {
  const bytes = Buffer.from(label, 'base64');
  const content = bytes.at(-1) === 0 ? bytes.subarray(0, -1) : bytes;
  const text = content.toString('utf8');
  return printable.test(text) && Buffer.from(text, 'utf8').equals(content) ? text : undefined;
};
