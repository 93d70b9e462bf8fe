// Keys under keys (PKCS#11 2.40, section 5.14): C_WrapKey and C_UnwrapKey with session keys, in the addon. A private key
// travels as its PKCS#8. What may not be wrapped by what, beyond the standard: key-roles.ts.
import { CoreError, type CoreErrorCode, core, type KeyRef, type UnwrappedKind } from '../../../addon/core.ts';
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
import { keyNotPermitted, mechanismInvalid } from '../errors.ts';
import { keyTypeOf } from '../key-forms.ts';
import { isReadable, isTrue, kindOfView, type ObjectView, SharedKey } from '../object-view.ts';
import { fitsKeyType } from '../rules.ts';
import type { Later, Session } from '../session.ts';
import { matchesTemplate, newObject, prescribed } from '../template.ts';
import { localKey } from './keys.ts';
import { mechanismFor, type WrapParameters } from './mechanisms.ts';
import { checkMayMake, keepMadeKey, secretKind } from './objects.ts';
import { readValue } from './value.ts';

const notWrappable = (why: string): CryptokiError => new CryptokiError(CKR.KEY_NOT_WRAPPABLE, why);

const wrapUnder = (wrapping: KeyRef, parameters: WrapParameters, key: KeyRef): Buffer => {
  switch (parameters.way) {
    case 'key-wrap':
      return core.wrapKey(wrapping, key, parameters.padded);
    case 'cipher':
      return core.wrapKeyCipher(wrapping, parameters.cipher, key);
    case 'oaep':
      return core.wrapKeyOaep(wrapping, parameters.oaep, key);
  }
};

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
  if (wrapping === undefined) return application.tokenObject(wrappingHandle, 'wrapping', false).then(refuseToken);

  const put = (key: KeyRef): BytesOutput => {
    const wrapped = wrapUnder(wrapping.key.ref, parameters, key);
    return out.capacity !== null && wrapped.length <= out.capacity ? wrapped : new LengthOnly(wrapped.length);
  };
  const object = application.sessionObject(handle, 'key');
  if (object !== undefined) {
    checkWrappable(session, wrapping.view, parameters, object);
    if (object.key === null) throw notWrappable('the object holds no key');
    return put(object.key.ref);
  }
  return application.tokenObject(handle, 'key', true).then(async (token) => {
    checkWrappable(session, wrapping.view, parameters, token);
    // What the service keeps from its own caller does not come here to be wrapped.
    if (!isReadable(token) || kindOfView(token) !== 'secret') throw notWrappable('the service keeps the key');
    const value = await readValue(application, token);
    const key = core.importSecret(secretKind(token.attributes), value);
    core.wipe(value);
    try {
      return put(key);
    } finally {
      core.release(key);
    }
  });
};

/** A token key's wrapping would be the service's to do, and it does none. */
const refuseToken = (): never => {
  throw new CryptokiError(
    CKR.KEY_FUNCTION_NOT_PERMITTED,
    'keys of the token neither wrap nor unwrap: a session key does',
  );
};

const checkWrappable = (session: Session, wrapping: ObjectView, { way }: WrapParameters, object: ObjectView): void => {
  const { application } = session;
  const kind = kindOfView(object);
  if (kind !== 'secret' && kind !== 'private') throw notWrappable('only secret and private keys are wrapped');
  if (!isTrue(object, CKA.EXTRACTABLE)) {
    throw new CryptokiError(CKR.KEY_UNEXTRACTABLE, 'CKA_EXTRACTABLE of the key is false');
  }
  if (isTrue(object, CKA.WRAP_WITH_TRUSTED) && !isTrue(wrapping, CKA.TRUSTED)) {
    throw notWrappable('the key asks for a trusted wrapping key, and there is none here');
  }
  if (!matchesTemplate(object.attributes, wrapping.attributes.get(CKA.WRAP_TEMPLATE))) {
    throw notWrappable('the key is not one that CKA_WRAP_TEMPLATE of the wrapping key allows');
  }
  if (!isTrue(object, CKA.SENSITIVE)) return;
  if (way === 'cipher')
    throw notWrappable('a sensitive key is wrapped with AES key wrap or OAEP, which notice changes');
  const { roles } = application;
  if (!roles.mayWrap(wrapping.attributes, application.allAttributes(), application.decrypting())) {
    throw notWrappable('a key that may decrypt wraps no sensitive key');
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

const openWrapped = (
  unwrapping: KeyRef,
  parameters: WrapParameters,
  wrapped: Uint8Array,
  kind: UnwrappedKind,
): KeyRef => {
  try {
    switch (parameters.way) {
      case 'key-wrap':
        return core.unwrapKey(unwrapping, wrapped, parameters.padded, kind);
      case 'cipher':
        return core.unwrapKeyCipher(unwrapping, parameters.cipher, wrapped, kind);
      case 'oaep':
        return core.unwrapKeyOaep(unwrapping, parameters.oaep, wrapped, kind);
    }
  } catch (error) {
    const rv = error instanceof CoreError ? badWrapping[error.code] : undefined;
    if (rv === undefined) throw error;
    throw new CryptokiError(rv, 'the wrapped key is not valid');
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
  if (unwrapping === undefined) return application.tokenObject(unwrappingHandle, 'unwrapping', false).then(refuseToken);

  const whole = prescribed(template, unwrapping.view.attributes.get(CKA.UNWRAP_TEMPLATE));
  const { kind, attributes, length, checkValue } = newObject(whole, { how: 'unwrap' }, application.loggedIn);
  checkMayMake(session, attributes);
  if (kind !== 'secret' && kind !== 'private') {
    throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, 'what is unwrapped is a secret or a private key');
  }
  if (application.roles.hasWrapped(unwrapping.view.attributes)) {
    // Whether a padding is right, asked often enough, decrypts (Bardou and others, 2012): what key wrap made included.
    if (parameters.way === 'cipher') throw keyNotPermitted();
    if (attributes.get(CKA.SENSITIVE) === false) {
      throw new CryptokiError(
        CKR.TEMPLATE_INCONSISTENT,
        'a key that has wrapped sensitive keys unwraps sensitive ones',
      );
    }
  }

  const wanted = kind === 'private' ? 'private' : secretKind(attributes);
  const key = new SharedKey(openWrapped(unwrapping.key.ref, parameters, wrapped, wanted));
  const keyType = Number(attributes.get(CKA.KEY_TYPE));
  try {
    if (kind === 'private') {
      if (keyTypeOf(key.ref) !== keyType) throw wrappedInvalid();
    } else {
      const bytes = core.describe(key.ref).bits / 8;
      if (!fitsKeyType(keyType, bytes)) throw wrappedInvalid();
      if (length !== null && length !== bytes) {
        throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, 'CKA_VALUE_LEN is not the length of the wrapped key');
      }
      if (checkValue !== null && Buffer.compare(checkValue, core.checkValue(key.ref)) !== 0) {
        throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, 'CKA_CHECK_VALUE is not that of the wrapped key');
      }
    }
  } catch (error) {
    key.release();
    throw error;
  }
  return keepMadeKey(session, attributes, key);
};
