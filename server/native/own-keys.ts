// The service's own keys: their names, their places among the records, and what their attributes say.

import { canonicalJson } from '../base/bytes.ts';
import type { HashKey, TokenPurpose } from '../ports/key-ring.ts';

/** The service's own keys, as records of the service tenant. The object ids are fixed: there is one of each. */
export const ownKeys = {
  'row-authentication': '00000000-0000-0000-0000-000000000001',
  'token-hash': '00000000-0000-0000-0000-000000000002',
  'self-test': '00000000-0000-0000-0000-000000000003',
  'audit-signature': '00000000-0000-0000-0000-000000000004',
  'session-hash': '00000000-0000-0000-0000-000000000005',
  'api-token-hash': '00000000-0000-0000-0000-000000000006',
} as const;
export type OwnKey = keyof typeof ownKeys;
export const secretAttributes = canonicalJson({ algorithm: 'generic', bits: 256 });
export const ownAttributes: Readonly<Record<OwnKey, string>> = {
  'row-authentication': secretAttributes,
  'token-hash': secretAttributes,
  'self-test': canonicalJson({ algorithm: 'aes', bits: 256 }),
  'audit-signature': canonicalJson({ algorithm: 'ed25519' }),
  'session-hash': secretAttributes,
  'api-token-hash': secretAttributes,
};
export const isOwn = (name: string): name is OwnKey => Object.hasOwn(ownKeys, name);

export const hashKeys = ['session-hash', 'api-token-hash'] as const satisfies HashKey[];
/** Each purpose has a key that is rotated independently: sessions end when theirs is, and databases notice neither. */
export const hashKeyOf = (purpose: TokenPurpose): HashKey | 'token-hash' => {
  if (purpose === 'session') return 'session-hash';
  return purpose === 'api-token' || purpose === 'metrics-token' ? 'api-token-hash' : 'token-hash';
};

/** An own key that is replaced: the version of its record counts up. Absent `since`: the key is the first one. */
export interface ReplacedKeyAttributes {
  readonly since?: number;
}
/** The attributes of the audit log's key name those before it. */
export interface AuditKeyAttributes extends ReplacedKeyAttributes {
  readonly algorithm: 'ed25519';
  readonly former?: readonly { readonly key: string; readonly origin: string; readonly size: number }[];
}
