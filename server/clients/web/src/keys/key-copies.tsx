// The copies of the key that the service knows, in its words: what can still open it when this key
// is destroyed.

import type { KeyCopies } from '../api/types.ts';
import { Notice } from '../ui/page/notice.tsx';

export const KeyCopiesNotice = ({ copies: { count, items } }: { copies: KeyCopies }) => {
  const hidden = count - items.filter(({ waits }) => waits).length;
  return count === 0 && items.length === 0 ? null : (
    <Notice
      tone="warn"
      title={count === 1 ? 'There is another copy of this key' : `There are ${count} copies of this key`}
    >
      This key counts as unrecoverable only when they are destroyed too.
      {items.length > 0 && (
        <ul className="mt-1 list-disc pl-5">
          {items.map(({ place, id, text }) => (
            <li key={`${place} ${id}`} className="break-words">
              {text}
            </li>
          ))}
        </ul>
      )}
      {hidden > 0 && ` ${hidden} of them only an administrator of the platform can see.`}
    </Notice>
  );
};
