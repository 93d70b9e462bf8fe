// Recovery keys as text: the public half of an X25519 pair (RFC 7748) that snapshots are sealed to,
// with an identifier that shows a slip of the pen. And what the sealing of a snapshot's key binds
// (addon/FORMAT.md, section 5). No private half comes here.

import { hash } from 'node:crypto';
import { labelBytes } from '../../addon/labels.ts';
import { canonicalJson, parseBase64, toBase64 } from './bytes.ts';

const prefix = 'dke-recovery-key';
const x25519 = 1;

export interface RecoveryPublicKey {
  /** 16 hexadecimal digits of the SHA-256 over the key. */
  readonly id: string;
  /** 32 bytes. */
  readonly publicKey: Buffer;
}

/** The identifier of a public key of 32 bytes. */
export const recoveryKeyId = (publicKey: Uint8Array): string =>
  hash('sha256', Buffer.concat([Buffer.from('dke recovery key 1\n'), publicKey]), 'hex').slice(0, 16);

/** `dke-recovery-key+ID+BASE64`: what is registered with a service, and is not secret. */
export const formatRecoveryKey = (publicKey: Uint8Array): string =>
  `${prefix}+${recoveryKeyId(publicKey)}+${toBase64(Buffer.concat([Buffer.of(x25519), publicKey]))}`;

/** Null when the text is not a recovery key's public half, or was mistyped. */
export const parseRecoveryKey = (text: string): RecoveryPublicKey | null => {
  const [, id = '', encoded = ''] = /^dke-recovery-key\+([0-9a-f]{16})\+([A-Za-z0-9+/=]+)$/.exec(text.trim()) ?? [];
  const bytes = parseBase64(encoded);
  if (bytes?.length !== 33 || bytes[0] !== x25519) return null;
  const publicKey = bytes.subarray(1);
  return recoveryKeyId(publicKey) === id ? { id, publicKey } : null;
};

/** What binds a snapshot's key to the recovery key that it is sealed to (HPKE). */
export const sealingContext = (snapshotId: string, tenantId: string, keyId: string) => ({
  info: labelBytes('dke snapshot key 1'),
  aad: Buffer.from(canonicalJson({ recoveryKeyId: keyId, snapshotId, tenantId })),
});

/**
 * What binds the key of a backup of the whole service to the recovery key that it is sealed to
 * (HPKE).
 */
export const backupContext = (backupId: string, keyId: string) => ({
  info: labelBytes('dke backup key 1'),
  aad: Buffer.from(canonicalJson({ backupId, recoveryKeyId: keyId })),
});

/**
 * What binds a snapshot's key, on its way to the service that is to open it once, to this opening
 * (HPKE).
 */
export const openingContext = (snapshotId: string, openingId: string) => ({
  info: labelBytes('dke snapshot opening 1'),
  aad: Buffer.from(canonicalJson({ openingId, snapshotId })),
});
