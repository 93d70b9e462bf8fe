// A name that may be long and contain no space, such as the label of a master key: it breaks after
// the separators between its words, and elsewhere only when a single word is wider than the column.

import { Fragment } from 'react';

export const LongName = ({ children }: { children: string }) =>
  children.split(/(?<=[._:/-])(?=[^._:/-])/).map((part, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text have no other identity
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ));
