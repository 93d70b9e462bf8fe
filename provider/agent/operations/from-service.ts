// Keys that the service unwraps or derives with a key of the token. One for the token stays with
// the service. One for the session comes here sealed to a key pair that this application's own
// memory alone has (HPKE, RFC 9180), and is opened in the addon.
import { mayHaveLength } from '../../../server/base/key-rules.ts';
import type { Destination, TokenObject } from '../../../server/contract/tde.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';
import type { AttributeMap } from '../objects/attribute-blob.ts';
import { algorithmOf, describeNew, SharedKey } from '../objects/object-view.ts';
import type { NewObject } from '../objects/template.ts';
import { keyNotPermitted } from '../return-values.ts';
import type { Application } from '../sessions/application.ts';
import type { Session } from '../sessions/application-session.ts';
import { keepInSession } from './keep-object.ts';
import { openSealed, ownRecipient, secretKind } from './sealed-keys.ts';

/** Where the service is to put a key; `bits` is its size where that is known before the key. */
export const destinationOf = (application: Application, made: NewObject, bits: number | null): Destination => {
  const { attributes, kind } = made;
  if (attributes.get(CKA.TOKEN) === true) {
    if (made.checkValue !== null) {
      throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, 'the token computes CKA_CHECK_VALUE of its keys');
    }
    return { on: 'token', object: describeNew(attributes, bits) };
  }
  return {
    on: 'session',
    recipient: ownRecipient(application),
    class: kind === 'private' ? 'private-key' : 'secret-key',
    algorithm: algorithmOf(attributes),
    bits,
    sensitive: attributes.get(CKA.SENSITIVE) === true,
    extractable: attributes.get(CKA.EXTRACTABLE) === true,
  };
};

/**
 * Keys whose values cannot be read are not made so short that the values can be found
 * (server/base/key-rules.ts).
 */
export const checkHiddenLength = ({ attributes }: NewObject, bytes: number): void => {
  const custody = {
    sensitive: attributes.get(CKA.SENSITIVE) === true,
    extractable: attributes.get(CKA.EXTRACTABLE) === true,
  };
  if (mayHaveLength(bytes, custody)) return;
  throw new CryptokiError(
    CKR.KEY_SIZE_RANGE,
    'a key that is sensitive or not extractable has at least 16 bytes here: shorter ones reveal it byte by byte',
  );
};

/**
 * The key that came for the session: `maker` is the handle of the key that unwrapped or derived it.
 */
export const openSealedKey = async (
  application: Application,
  maker: number,
  { kind, attributes }: NewObject,
  sealed: Uint8Array,
): Promise<SharedKey> => {
  const wanted = kind === 'private' ? 'private' : secretKind(attributes);
  return new SharedKey(await openSealed(application, maker, wanted, sealed));
};

/** The handle of the object that the service made on the token. */
export const keepOnToken = (application: Application, object: TokenObject | null): number => {
  if (object === null)
    throw new CryptokiError(CKR.DEVICE_ERROR, 'the service created a key, but did not return its handle');
  return application.remember(object).handle;
};

/**
 * Puts a key that came from the service into its session. The service could decrypt with it: here
 * it wraps nothing sensitive.
 */
export const keepFromAbroad = (session: Session, attributes: AttributeMap, key: SharedKey): number => {
  const { application } = session;
  const handle = keepInSession(session, attributes, key);
  const object = application.sessionObject(handle, 'object');
  if (object === undefined) return handle;
  try {
    if (!application.roles.mayGoAbroad(object.attributes)) throw keyNotPermitted();
    return handle;
  } catch (error) {
    application.removeObject(object);
    throw error;
  }
};
