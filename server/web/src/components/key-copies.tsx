// Copies of the key in other tenants, which can still use them when this key is destroyed.

import type { KeyCopies } from '../api/types.ts';
import { Copyable } from './copy.tsx';
import { Notice } from './notice.tsx';

export const KeyCopiesNotice = ({ copies: { count, items } }: { copies: KeyCopies }) =>
  count === 0 ? null : (
    <Notice
      tone="warn"
      title={count === 1 ? 'Another tenant has a copy of this key' : `${count} copies in other tenants`}
    >
      A snapshot was restored into another tenant. If you destroy this key, the copies stay usable. This key counts as
      unrecoverable only when the copies are destroyed too.
      {items.length > 0 && (
        <ul className="mt-1 list-disc pl-5">
          {items.map(({ keyId, tenantName }) => (
            <li key={keyId}>
              {tenantName}: <Copyable value={keyId} label={`key id in ${tenantName}`} />
            </li>
          ))}
        </ul>
      )}
      {items.length < count && ' Ask an administrator of the platform which tenants have them.'}
    </Notice>
  );
