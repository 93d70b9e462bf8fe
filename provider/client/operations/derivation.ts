// Keys from keys (PKCS#11 2.40, section 5.14): ECDH (mechanisms 2.3.19) and HKDF (3.0, section 2.62) in the addon from keys of the
// session, by the service from keys of the token.
import { CoreError, core, type KeyRef } from '../../../addon/core.ts';
import { digestLengths } from '../../../server/base/digests.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKF } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { type Attribute, CryptokiError, type Mechanism } from '../../schema/types.ts';
import { mechanismInvalid, parameterInvalid } from '../errors.ts';
import { type ObjectView, SharedKey, type TokenView } from '../object-view.ts';
import { fitsKeyType } from '../rules.ts';
import type { Later, Session } from '../session.ts';
import { type NewObject, newObject, prescribed } from '../template.ts';
import { destinationOf, keepFromAbroad, keepOnToken, openSealedKey } from './from-service.ts';
import { deriveHead } from './heads.ts';
import { localKey, publicHalf, tokenKeyOnce } from './keys.ts';
import { type DeriveParameters, mechanismFor } from './mechanisms.ts';
import { checkMayMake, keepMadeKey, secretKind } from './objects.ts';

/** Bytes that come of it when the template does not say how many; null when only the template can say. `bits`: of the base. */
const naturalLength = (bits: number, parameters: DeriveParameters): number | null => {
  if (parameters.way === 'hkdf') return parameters.steps === 'extract' ? digestLengths[parameters.digest] : null;
  return parameters.kdf === null ? Math.ceil(bits / 8) : digestLengths[parameters.kdf];
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
    return tokenKeyOnce(application, baseHandle, row, 'derive', 'key').then((view) =>
      deriveOnToken(session, view, parameters, template),
    );
  }
  const { made, bytes } = newDerived(session, base.view, core.describe(base.key.ref).bits, parameters, template);
  const key = new SharedKey(derive(base.key.ref, parameters, secretKind(made.attributes), bytes));
  return keepMadeKey(session, made.attributes, key);
};

/** What is to be made, and of how many bytes. `bits` is the base key's size. */
const newDerived = (
  session: Session,
  base: ObjectView,
  bits: number,
  parameters: DeriveParameters,
  template: readonly Attribute[],
): { readonly made: NewObject; readonly bytes: number } => {
  const whole = prescribed(template, base.attributes.get(CKA.DERIVE_TEMPLATE));
  const made = newObject(whole, { how: 'derive', base: base.attributes }, session.application.loggedIn);
  checkMayMake(session, made.attributes);
  if (made.kind !== 'secret' || made.checkValue !== null) {
    throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, 'what is derived is a secret key');
  }
  const bytes = made.length ?? naturalLength(bits, parameters);
  if (bytes === null) throw new CryptokiError(CKR.TEMPLATE_INCOMPLETE, 'CKA_VALUE_LEN is missing');
  checkLength(bits, parameters, Number(made.attributes.get(CKA.KEY_TYPE)), bytes);
  return { made, bytes };
};

/** From a key of the token: the service derives. */
const deriveOnToken = async (
  session: Session,
  base: TokenView,
  parameters: DeriveParameters,
  template: readonly Attribute[],
): Promise<number> => {
  const { application } = session;
  const bits = parameters.way === 'hkdf' ? 0 : publicHalf(base, (description) => description.bits);
  const { made, bytes } = newDerived(session, base, bits, parameters, template);
  const into = destinationOf(application, made, bytes * 8);
  const { answer, raw } = await application.ask('derive', base.handle, { mechanism: deriveHead(parameters), into });
  if (into.on === 'token') return keepOnToken(application, answer.object);
  return keepFromAbroad(session, made.attributes, openSealedKey(application, base.handle, made, raw));
};

const checkLength = (bits: number, parameters: DeriveParameters, keyType: number, bytes: number): void => {
  const natural = naturalLength(bits, parameters);
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
