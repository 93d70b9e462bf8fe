// Keys from keys (PKCS#11 2.40, section 5.14): ECDH (mechanisms 2.3.19) and HKDF (3.0, section 2.62) with session keys, in the
// addon.
import { CoreError, core, type KeyRef } from '../../../addon/core.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKF, CKK } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { type Attribute, CryptokiError, type Mechanism } from '../../schema/types.ts';
import { keyTypeInconsistent, mechanismInvalid, parameterInvalid } from '../errors.ts';
import { SharedKey } from '../object-view.ts';
import { fitsKeyType } from '../rules.ts';
import type { Later, Session } from '../session.ts';
import { newObject, prescribed } from '../template.ts';
import { localKey } from './keys.ts';
import { type DeriveParameters, digestLengths, mechanismFor } from './mechanisms.ts';
import { checkMayMake, keepMadeKey } from './objects.ts';

/** Bytes that come of it when the template does not say how many; null when only the template can say. */
const naturalLength = (base: KeyRef, parameters: DeriveParameters): number | null => {
  if (parameters.way === 'hkdf') return parameters.steps === 'extract' ? digestLengths[parameters.digest] : null;
  return parameters.kdf === null ? Math.ceil(core.describe(base).bits / 8) : digestLengths[parameters.kdf];
};

const derive = (base: KeyRef, parameters: DeriveParameters, kind: 'aes' | 'generic', bytes: number): KeyRef => {
  if (parameters.way === 'hkdf') {
    const { digest, salt, info, steps } = parameters;
    return core.hkdf(base, digest, salt, info, kind, bytes, steps);
  }
  const { point, kdf, shared } = parameters;
  const through = kdf === null ? {} : { kdf, sharedInfo: shared };
  try {
    return core.ecdh(base, point, { kind, bytes, ...through });
  } catch (error) {
    // A point that is not on the curve would tell of the private key.
    if (error instanceof CoreError && error.code === 'bad-argument') throw parameterInvalid();
    throw error;
  }
};

/** C_DeriveKey. */
export const deriveKey = (
  session: Session,
  mechanism: Mechanism,
  baseHandle: number,
  template: readonly Attribute[],
): Later<number> => {
  const { application } = session;
  const row = mechanismFor(mechanism, CKF.DERIVE);
  const parameters = row.derive?.(mechanism.parameter);
  if (parameters === undefined) throw mechanismInvalid();
  const base = localKey(application, baseHandle, row, 'derive');
  if (base === undefined) {
    return application.tokenObject(baseHandle, 'key', false).then(() => {
      throw keyTypeInconsistent();
    });
  }
  const { attributes: ofBase } = base.view;
  const whole = prescribed(template, ofBase.get(CKA.DERIVE_TEMPLATE));
  const made = newObject(whole, { how: 'derive', base: ofBase }, application.loggedIn);
  const { kind, attributes, length, checkValue } = made;
  checkMayMake(session, attributes);
  if (kind !== 'secret' || checkValue !== null) {
    throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, 'what is derived is a secret key');
  }
  const bytes = length ?? naturalLength(base.key.ref, parameters);
  if (bytes === null) throw new CryptokiError(CKR.TEMPLATE_INCOMPLETE, 'CKA_VALUE_LEN is missing');
  checkLength(base.key.ref, parameters, Number(attributes.get(CKA.KEY_TYPE)), bytes);
  const aes = attributes.get(CKA.KEY_TYPE) === CKK.AES;
  return keepMadeKey(
    session,
    attributes,
    new SharedKey(derive(base.key.ref, parameters, aes ? 'aes' : 'generic', bytes)),
  );
};

const checkLength = (base: KeyRef, parameters: DeriveParameters, keyType: number, bytes: number): void => {
  const natural = naturalLength(base, parameters);
  const gives =
    parameters.way === 'hkdf'
      ? parameters.steps === 'extract'
        ? bytes === natural
        : bytes <= 255 * digestLengths[parameters.digest]
      : parameters.kdf !== null || bytes <= (natural ?? 0);
  if (!gives || !fitsKeyType(keyType, bytes)) {
    throw new CryptokiError(CKR.KEY_SIZE_RANGE, 'the mechanism gives no key of this length');
  }
};
