// Names that people give (domain/name.ts), and those of token objects, which are labels.

import { ServiceError } from '../../base/service-error.ts';
import { textOfLabel } from '../../domain/label.ts';
import { isName } from '../../domain/name.ts';

export const checkName = (name: string): string => {
  if (!isName(name))
    throw new ServiceError(
      'validation',
      'a name must have 1 to 128 characters, at least one visible, no control or invisible characters, no spaces at the beginning or end, and one plain space between words',
    );
  return name;
};

/** A label is bytes; people get its text when it is printable UTF-8, else hexadecimal. */
export const nameFromLabel = (label: string): string =>
  (textOfLabel(label) ?? Buffer.from(label, 'base64').toString('hex')).slice(0, 256);
