// The copies of a key, in the words of the service, and the command that ends each.

import { command } from '../../base/command-line.ts';
import type { KeyCopies } from '../../contract/api/keys-routes.ts';

type Copy = KeyCopies['items'][number];

export const describeCopies = ({ count, items }: KeyCopies): string => {
  if (count === 0) return 'none';
  const named = [...new Set(items.filter(({ waits }) => waits).map(({ tenantName, place }) => tenantName ?? place))];
  return `${count}${named.length === 0 ? '' : ` (${named.join(', ')})`}`;
};

const endOf = ({ place, id, tenantId, applicationId }: Copy): string | undefined => {
  if (place === 'other-tenant')
    return applicationId === null || tenantId === null
      ? undefined
      : command`dke tde key destroy --tenant=${tenantId} ${id}`;
  return place === 'snapshot' ? command`dke snapshot delete ${id}` : command`dke copy confirm-destroyed ${id}`;
};

/** Lines for people who are about to destroy the key, or have. */
export const copyLines = ({ count, items }: KeyCopies): readonly string[] => {
  if (count === 0 && items.length === 0) return [];
  const hidden = count - items.filter(({ waits }) => waits).length;
  return [
    `copies: ${describeCopies({ count, items })}. The key is not unrecoverable while there is one of them:`,
    ...items.flatMap((copy) => {
      const end = endOf(copy);
      return [`  ${copy.text}`, ...(end === undefined ? [] : [`    ${end}`])];
    }),
    ...(hidden <= 0 ? [] : [`  ${hidden} that you cannot see: ask an administrator of the platform`]),
  ];
};
