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
