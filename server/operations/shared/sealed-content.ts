// The form in which the value of a token object that is not a secret key is stored: nonce (12),
// ciphertext, tag (16), AES-256-GCM with the id of the object as additional data. Whose the content
// key is: operations/tde/object-content.ts.

import { idBytes } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import type { Ports } from '../../ports/ports.ts';

type Core = Pick<Ports['core'], 'random' | 'cipher' | 'wipe'>;
const nonceLength = 12;
const tagLength = 16;

const parametersOf = (content: Uint8Array, id: string) =>
  ({ algorithm: 'aes-gcm', iv: content.subarray(0, nonceLength), aad: idBytes(id), tagLength }) as const;

/** With a fresh nonce. */
export const encryptContent = (core: Core, id: string, contentKey: KeyRef, value: Uint8Array): Buffer => {
  const content = Buffer.alloc(nonceLength + value.length + tagLength);
  core.random(content.subarray(0, nonceLength));
  core.cipher(contentKey, 'encrypt', parametersOf(content, id), value, content.subarray(nonceLength));
  return content;
};

/** The caller wipes the answer. Throws 'key-tampered'. */
export const decryptContent = (core: Core, id: string, contentKey: KeyRef, content: Uint8Array | null): Buffer => {
  if (content === null || content.length < nonceLength + tagLength)
    throw new ServiceError('key-tampered', 'the stored value is incomplete');
  try {
    const out = Buffer.alloc(content.length - nonceLength - tagLength);
    core.cipher(contentKey, 'decrypt', parametersOf(content, id), content.subarray(nonceLength), out);
    return out;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'invalid-ciphertext')
      throw new ServiceError('key-tampered', 'the stored value does not authenticate', { cause: error });
    throw error;
  }
};

/** The content as that of the object of another id, which is a copy. */
export const contentOfCopy = (
  core: Core,
  contentKey: KeyRef,
  content: Uint8Array,
  ids: { readonly from: string; readonly to: string },
): Buffer => {
  const value = decryptContent(core, ids.from, contentKey, content);
  try {
    return encryptContent(core, ids.to, contentKey, value);
  } finally {
    core.wipe(value);
  }
};
