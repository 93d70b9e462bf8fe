// Names that people give: 1 to 128 characters, no control characters, no space at either end.

import { ServiceError } from '../base/errors.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

export const checkName = (name: string): string => {
  if (name.length < 1 || name.length > 128 || name.trim() !== name || control.test(name))
    throw new ServiceError(
      'validation',
      'a name has 1 to 128 characters, no control characters and no space at its ends',
    );
  return name;
};

/** A label is bytes; people get its text when it is printable UTF-8, else hexadecimal. */
export const nameFromLabel = (label: string): string => {
  const bytes = Buffer.from(label, 'base64');
  const text = bytes.toString('utf8');
  const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u.test(text) && Buffer.from(text, 'utf8').equals(bytes);
  return (printable ? text : bytes.toString('hex')).slice(0, 256);
};
