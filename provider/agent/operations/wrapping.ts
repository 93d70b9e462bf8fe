// Keys under keys (PKCS#11 2.40, section 5.14): C_WrapKey and C_UnwrapKey, in the addon with keys
// of the session, by the service with keys of the token. A private key travels as its PKCS#8. What
// may not be wrapped by what, beyond the standard: key-roles.ts.
import {
  CoreError,
  type CoreErrorCode,
  core,
  type KeyRef,
  type UnwrappedKind,
  type WrapParameters,
} from '../../../addon/core.ts';
import { isShortRsa } from '../../../server/base/compatibility-switches.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKF } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import {
  type Attribute,
  type BytesOutput,
  CryptokiError,
  LengthOnly,
  type Mechanism,
  type OutBuffer,
} from '../../schema/types.ts';
import { fitsKeyType } from '../objects/attribute-rules.ts';
import { keyTypeOf, numberBits } from '../objects/key-forms.ts';
import {
  isReadable,
  isTrue,
  kindOfView,
  type ObjectView,
  type SessionObject,
  SharedKey,
} from '../objects/object-view.ts';
import { matchesTemplate, type NewObject, newObject, prescribed } from '../objects/template.ts';
import { keyNotPermitted, mechanismInvalid } from '../return-values.ts';
import type { Application } from '../sessions/application.ts';
import type { Session } from '../sessions/application-session.ts';
import type { Later } from '../sessions/later.ts';
import { ownCopy } from './collected-parts.ts';
import { bringPublicKey, type LocalKey, localKey, tokenKeyOnce } from './find-key.ts';
import { checkHiddenLength, destinationOf, keepFromAbroad, keepOnToken, openSealedKey } from './from-service.ts';
import { admitSize } from './import-key.ts';
import { checkMayGoAbroad, checkMayMake, keepMadeKey } from './keep-object.ts';
import { isAsymmetric, type MechanismRow } from './mechanism-row.ts';
import { mechanismFor } from './mechanisms.ts';
import { bringReadable, secretKind } from './sealed-keys.ts';
import { queued } from './slow-work.ts';

const notWrappable = (why: string): CryptokiError => new CryptokiError(CKR.KEY_NOT_WRAPPABLE, why);

/** C_WrapKey. */
export const wrapKey = (
  session: Session,
  mechanism: Mechanism,
  wrappingHandle: number,
  handle: number,
  out: OutBuffer,
): Later<BytesOutput> => {
  const { application } = session;
  const row = mechanismFor(mechanism, CKF.WRAP);
  const parameters = row.wrap?.(mechanism.parameter);
  if (parameters === undefined) throw mechanismInvalid();
  const wrapping = localKey(application, wrappingHandle, row, 'wrap', 'wrapping');
  if (wrapping === undefined) return wrapOnToken(session, row, parameters, wrappingHandle, handle, out);

  const object = application.sessionObject(handle, 'key');
  if (object === undefined) return wrapReadable(session, wrapping, parameters, handle, out);
  checkMayWrap(session, wrapping.view, parameters, object);
  return put(core.wrapKey(wrapping.key.ref, parameters, keyOf(object).ref), out);
};

const put = (wrapped: Uint8Array, { capacity }: OutBuffer): BytesOutput =>
  capacity !== null && wrapped.length <= capacity ? wrapped : new LengthOnly(wrapped.length);

const keyOf = ({ key }: SessionObject): SharedKey => {
  if (key === null) throw notWrappable('the object contains no key');
  return key;
};

/**
 * A key of the token under one of the session: only what its owner could read anyway comes here to
 * be wrapped.
 */
const wrapReadable = async (
  session: Session,
  wrapping: LocalKey,
  parameters: WrapParameters,
  handle: number,
  out: OutBuffer,
): Promise<BytesOutput> => {
  const { application } = session;
  const token = await application.tokenObject(handle, 'key', true);
  checkMayWrap(session, wrapping.view, parameters, token);
  if (!isReadable(token)) throw notWrappable('a key of the token can be wrapped only with a key of the token');
  const key = await bringReadable(application, token);
  try {
    return put(core.wrapKey(wrapping.key.ref, parameters, key.ref), out);
  } finally {
    key.release();
  }
};

/**
 * Under a key of the token: the service wraps. Only what is not sensitive is wrapped here, under a
 * public key.
 */
const wrapOnToken = async (
  session: Session,
  row: MechanismRow,
  parameters: WrapParameters,
  wrappingHandle: number,
  handle: number,
  out: OutBuffer,
): Promise<BytesOutput> => {
  const { application } = session;
  const wrapping = await tokenKeyOnce(application, wrappingHandle, row, 'wrap', 'wrapping');
  const key = await application.object(handle, 'key', true);
  checkWrappable(wrapping, parameters, key);
  if (key.where === 'token') {
    const source = { from: 'token', handle } as const;
    const head = { mechanism: parameters, key: source };
    return put((await application.ask('wrap', wrappingHandle, head)).raw, out);
  }
  if (isAsymmetric(row) && !isTrue(key, CKA.SENSITIVE)) {
    const { key: open } = bringPublicKey(wrapping);
    try {
      return put(core.wrapKey(open.ref, parameters, keyOf(key).ref), out);
    } finally {
      open.release();
    }
  }
  const source = {
    from: 'session',
    class: kindOfView(key) === 'private' ? 'private-key' : 'secret-key',
    sensitive: isTrue(key, CKA.SENSITIVE),
  } as const;
  const head = { mechanism: parameters, key: source };
  checkMayGoAbroad(session, key.attributes);
  // Its object may be destroyed while the service is asked.
  const shared = keyOf(key).share();
  try {
    return put((await application.askWithKey('wrap', wrappingHandle, head, shared.ref)).raw, out);
  } finally {
    shared.release();
  }
};

/** Short RSA keys, which a compatibility switch may admit, wrap nothing. */
const isTooShort = ({ attributes }: ObjectView): boolean => {
  const modulus = attributes.get(CKA.MODULUS);
  return modulus instanceof Uint8Array && isShortRsa(numberBits(modulus));
};

/**
 * What the standard asks of a key that is to be wrapped, and that a sensitive one is never wrapped
 * so that changes pass.
 */
const checkWrappable = (wrapping: ObjectView, { way }: WrapParameters, object: ObjectView): void => {
  if (way === 'oaep' && isTooShort(wrapping))
    throw new CryptokiError(CKR.WRAPPING_KEY_SIZE_RANGE, 'an RSA key below 2048 bits cannot wrap keys');
  const kind = kindOfView(object);
  if (kind !== 'secret' && kind !== 'private') throw notWrappable('only secret and private keys can be wrapped');
  if (!isTrue(object, CKA.EXTRACTABLE)) {
    throw new CryptokiError(CKR.KEY_UNEXTRACTABLE, 'CKA_EXTRACTABLE of the key is false');
  }
  if (isTrue(object, CKA.WRAP_WITH_TRUSTED) && !isTrue(wrapping, CKA.TRUSTED)) {
    throw notWrappable('the key requires a trusted wrapping key, and this token has none');
  }
  if (!matchesTemplate(object.attributes, wrapping.attributes.get(CKA.WRAP_TEMPLATE))) {
    throw notWrappable('CKA_WRAP_TEMPLATE of the wrapping key does not allow this key');
  }
  if (isTrue(object, CKA.SENSITIVE) && way === 'cipher')
    throw notWrappable('a sensitive key can be wrapped only with AES key wrap or OAEP, which detect changes');
};

/**
 * `checkWrappable` for a wrapping key of the session, which must not come to decrypt what it wraps.
 */
const checkMayWrap = (session: Session, wrapping: ObjectView, parameters: WrapParameters, object: ObjectView): void => {
  checkWrappable(wrapping, parameters, object);
  if (!isTrue(object, CKA.SENSITIVE)) return;
  const { application } = session;
  if (!application.roles.mayWrap(wrapping.attributes, application.allAttributes(), application.decrypting())) {
    throw notWrappable('a key that can decrypt cannot wrap a sensitive key');
  }
};

/** The core's refusal of a wrapped key, whatever is wrong with it. */
const badWrapping: Partial<Record<CoreErrorCode, number>> = {
  'bad-argument': CKR.WRAPPED_KEY_INVALID,
  'authentication-failed': CKR.WRAPPED_KEY_INVALID,
  'data-length': CKR.WRAPPED_KEY_LEN_RANGE,
  unsupported: CKR.WRAPPED_KEY_INVALID,
};
const wrappedInvalid = (): CryptokiError => new CryptokiError(CKR.WRAPPED_KEY_INVALID, 'the wrapped key is not valid');
const notUnwrapped = (error: unknown): unknown => {
  const rv = error instanceof CoreError ? badWrapping[error.code] : undefined;
  return rv === undefined ? error : new CryptokiError(rv, 'the wrapped key is not valid');
};

/** A secret key that was wrapped under an AES key. */
const openSecret = (
  unwrapping: KeyRef,
  parameters: WrapParameters,
  wrapped: Uint8Array,
  kind: 'aes' | 'generic',
  bytes: number | undefined,
): KeyRef => {
  try {
    return core.unwrapKey(unwrapping, parameters, wrapped, kind, bytes);
  } catch (error) {
    throw notUnwrapped(error);
  }
};

/**
 * A private key, whose numbers are checked, or one that a private key unwraps: in the user's turn.
 * `wrapped` is a copy; `unwrapping` is released.
 */
const openQueued = async (
  application: Application,
  unwrapping: SharedKey,
  parameters: WrapParameters,
  wrapped: Uint8Array,
  kind: UnwrappedKind,
  bytes: number | undefined,
): Promise<KeyRef> => {
  const open = () => core.unwrapKeyLater(unwrapping.ref, parameters, wrapped, kind, bytes);
  try {
    return await queued('computation', application, open);
  } catch (error) {
    throw notUnwrapped(error);
  } finally {
    unwrapping.release();
  }
};

/** C_UnwrapKey. */
export const unwrapKey = (
  session: Session,
  mechanism: Mechanism,
  unwrappingHandle: number,
  wrapped: Uint8Array,
  template: readonly Attribute[],
): Later<number> => {
  const { application } = session;
  const row = mechanismFor(mechanism, CKF.UNWRAP);
  const parameters = row.wrap?.(mechanism.parameter);
  if (parameters === undefined) throw mechanismInvalid();
  const unwrapping = localKey(application, unwrappingHandle, row, 'unwrap', 'unwrapping');
  if (unwrapping === undefined)
    return unwrapOnToken(session, row, parameters, unwrappingHandle, ownCopy(wrapped), template);
  const made = newUnwrapped(session, unwrapping.view, parameters, template);
  if (application.roles.hasWrapped(unwrapping.view.attributes)) {
    // Whether a padding is right, asked often enough, decrypts (Bardou and others, 2012): what key
    // wrap made included.
    if (parameters.way === 'cipher') throw keyNotPermitted();
    if (made.attributes.get(CKA.SENSITIVE) === false) {
      throw new CryptokiError(
        CKR.TEMPLATE_INCONSISTENT,
        'a key that has wrapped sensitive keys can unwrap only sensitive keys',
      );
    }
  }
  const wanted = made.kind === 'private' ? 'private' : secretKind(made.attributes);
  const bytes = made.length ?? undefined;
  const keep = (key: SharedKey): Later<number> => {
    checkUnwrapped(made, key);
    return keepMadeKey(session, made.attributes, key);
  };
  if (wanted !== 'private' && parameters.way !== 'oaep')
    return keep(new SharedKey(openSecret(unwrapping.key.ref, parameters, wrapped, wanted, bytes)));
  return openQueued(application, unwrapping.key.share(), parameters, ownCopy(wrapped), wanted, bytes)
    .then((reference) => admitSize(application, new SharedKey(reference), wrappedInvalid))
    .then(keep);
};

const newUnwrapped = (
  session: Session,
  unwrapping: ObjectView,
  parameters: WrapParameters,
  template: readonly Attribute[],
): NewObject => {
  const whole = prescribed(template, unwrapping.attributes.get(CKA.UNWRAP_TEMPLATE));
  const made = newObject(whole, { how: 'unwrap' }, session.application.loggedIn);
  checkMayMake(session, made.attributes);
  if (made.kind !== 'secret' && made.kind !== 'private') {
    throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, 'the unwrapped object must be a secret or a private key');
  }
  // CBC does not tell how long the key is: the template does.
  if (parameters.way === 'cipher' && parameters.cipher.algorithm === 'aes-cbc' && made.length !== null)
    checkHiddenLength(made, made.length);
  return made;
};

/** Whether the key is the one that the template speaks of. It is released when it is not. */
const checkUnwrapped = ({ kind, attributes, length, checkValue }: NewObject, key: SharedKey): void => {
  const keyType = Number(attributes.get(CKA.KEY_TYPE));
  try {
    if (kind === 'private') {
      if (keyTypeOf(key.ref) !== keyType) throw wrappedInvalid();
    } else {
      const bytes = core.describe(key.ref).bits / 8;
      if (!fitsKeyType(keyType, bytes)) throw wrappedInvalid();
      if (length !== null && length !== bytes) {
        throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, 'CKA_VALUE_LEN does not match the wrapped key');
      }
      if (checkValue !== null && Buffer.compare(checkValue, core.checkValue(key.ref)) !== 0) {
        throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, 'CKA_CHECK_VALUE does not match the wrapped key');
      }
    }
  } catch (error) {
    key.release();
    throw error;
  }
};

/**
 * With a key of the token: the service unwraps. `wrapped` is a copy: the caller's bytes do not last
 * until the key is found.
 */
const unwrapOnToken = async (
  session: Session,
  row: MechanismRow,
  parameters: WrapParameters,
  unwrappingHandle: number,
  wrapped: Uint8Array<ArrayBuffer>,
  template: readonly Attribute[],
): Promise<number> => {
  const { application } = session;
  const unwrapping = await tokenKeyOnce(application, unwrappingHandle, row, 'unwrap', 'unwrapping');
  const made = newUnwrapped(session, unwrapping, parameters, template);
  const into = destinationOf(application, made, made.length === null ? null : made.length * 8);
  const head = { mechanism: parameters, into };
  const { answer, raw } = await application.ask('unwrap', unwrapping.handle, head, wrapped);
  if (into.on === 'token') return keepOnToken(application, answer.object);
  const key = await openSealedKey(application, unwrapping.handle, made, raw);
  checkUnwrapped(made, key);
  return keepFromAbroad(session, made.attributes, key);
};
