// Keys that come from the service, sealed to a key pair that only this application's own memory
// contains (HPKE, RFC 9180): they are opened in the addon. The way there is
// `Application.askWithKey`.
import { core, type KeyRef, type UnwrappedKind } from '../../../addon/core.ts';
import { sealedKeyInfo } from '../../../server/contract/tde.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKK } from '../../schema/constants.ts';
import type { ReadonlyAttributes } from '../objects/attribute-blob.ts';
import { kindOfView, SharedKey, type TokenView } from '../objects/object-view.ts';
import type { Application } from '../sessions/application.ts';
import { queued } from './slow-work.ts';

/** What the core calls a secret key of this type. */
export const secretKind = (attributes: ReadonlyAttributes): 'aes' | 'generic' =>
  attributes.get(CKA.KEY_TYPE) === CKK.AES ? 'aes' : 'generic';

/** What the service seals keys for this application to: Base64. */
export const ownRecipient = (application: Application): string =>
  core.hpkePublicKey(application.recipient()).toString('base64');

const info = Buffer.from(sealedKeyInfo);

/** `object`: the handle of what the key comes of. */
export const openSealed = async (
  application: Application,
  object: number,
  kind: UnwrappedKind,
  sealed: Uint8Array,
): Promise<KeyRef> => {
  const bound = Buffer.alloc(4);
  bound.writeUInt32BE(object);
  const own = application.recipient();
  if (kind !== 'private') return core.hpkeOpenKey(own, info, bound, sealed, kind);
  return queued('computation', application, () => core.hpkeOpenKeyLater(own, info, bound, sealed, kind));
};

/** A key of the token that its owner may read, as a local one. The receiver releases it. */
export const bringReadable = async (application: Application, view: TokenView): Promise<SharedKey> => {
  const kind = kindOfView(view) === 'private' ? 'private' : secretKind(view.attributes);
  const { raw } = await application.ask('readValue', view.handle, { recipient: ownRecipient(application) });
  return new SharedKey(await openSealed(application, view.handle, kind, raw));
};
