// A name that may be long and have no blank in it, such as the label of a master key: it breaks after what stands between its words, and
// elsewhere only when a single word is wider than its place.

import { Fragment } from 'react';

export const LongName = ({ children }: { children: string }) =>
  children.split(/(?<=[._:/-])(?=[^._:/-])/).map((part, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text have no other identity
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ));
