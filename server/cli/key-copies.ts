// The copies of a key in other tenants, in words.

import type { KeyCopies } from '../fronts/contract/api/keys.ts';

export const describeCopies = ({ count, items }: KeyCopies): string => {
  if (count === 0) return 'none';
  const named = items.map(({ tenantName }) => tenantName);
  return `${count}${named.length === 0 ? '' : ` (${named.join(', ')})`}`;
};

/** Lines for people who are about to destroy the key, or have. */
export const copyLines = (copies: KeyCopies): readonly string[] => {
  if (copies.count === 0) return [];
  const hidden = copies.count - copies.items.length;
  return [
    `copies in other tenants: ${describeCopies(copies)}. They stay usable, and the key is not unrecoverable until they are destroyed:`,
    ...copies.items.map(({ keyId, tenantId, tenantName, applicationId }) =>
      applicationId === null
        ? `  ${keyId} of ${tenantName}: a general-purpose key is destroyed when its tenant is purged`
        : `  dke tde key destroy ${keyId} --tenant ${tenantId}`,
    ),
    ...(hidden === 0 ? [] : [`  ${hidden} in tenants that you cannot see: ask an administrator of the platform`]),
  ];
};
