// Names that people give: 1 to 128 characters, at least one of them visible, no space at either end. Control characters, characters without
// width and those that change the direction of the text are refused: with them two names look the same. Joiners stay, because scripts and
// symbols need them.

import { ServiceError } from '../../base/errors.ts';
import { textOfLabel } from '../../domain/label.ts';

const refused =
  /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]/u;
const visible = /[\p{L}\p{N}\p{P}\p{S}]/u;

export const checkName = (name: string): string => {
  if (name.length < 1 || name.length > 128 || name.trim() !== name || refused.test(name) || !visible.test(name))
    throw new ServiceError(
      'validation',
      'a name has 1 to 128 characters, at least one of them visible, no control or invisible characters, and no space at its ends',
    );
  return name;
};

/** A label is bytes; people get its text when it is printable UTF-8, else hexadecimal. */
export const nameFromLabel = (label: string): string =>
  (textOfLabel(label) ?? Buffer.from(label, 'base64').toString('hex')).slice(0, 256);
