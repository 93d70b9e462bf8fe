// Keys, and data, from keys (PKCS#11 2.40, section 5.14): ECDH (mechanisms 2.3.19) and HKDF (3.0,
// section 2.62) and encryption (2.15), in the addon from keys of the session, by the service from
// keys of the token.
import {
  CoreError,
  type Curve,
  core,
  type DeriveParameters,
  type KeyDescription,
  type KeyRef,
} from '../../../addon/core.ts';
import { digestLengths } from '../../../server/base/digests.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKF, CKK, CKO } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { type Attribute, CryptokiError, type Mechanism } from '../../schema/types.ts';
import { fitsKeyType } from '../objects/attribute-rules.ts';
import { pointLength, pointOf } from '../objects/key-forms.ts';
import { isTrue, type ObjectView, SharedKey, type TokenView } from '../objects/object-view.ts';
import { type NewObject, newObject, prescribed } from '../objects/template.ts';
import { keyNotPermitted, keyTypeInconsistent, mechanismInvalid, parameterInvalid } from '../return-values.ts';
import type { Application } from '../sessions/application.ts';
import type { Session } from '../sessions/application-session.ts';
import type { Later } from '../sessions/later.ts';
import { ownCopy } from './collected-parts.ts';
import { localKey, publicHalf, tokenKeyOnce } from './find-key.ts';
import { checkHiddenLength, destinationOf, keepFromAbroad, keepOnToken, openSealedKey } from './from-service.ts';
import { checkMayMake, keepMadeKey } from './keep-object.ts';
import type { Derivation, MechanismRow } from './mechanism-row.ts';
import { mechanismFor } from './mechanisms.ts';
import { createObject } from './objects.ts';
import { openSealed, ownRecipient, secretKind } from './sealed-keys.ts';

/**
 * Bytes that come of it when the template does not say how many; null when only the template can
 * say. `bits`: of the base.
 */
const naturalLength = (bits: number, parameters: Derivation): number | null => {
  switch (parameters.way) {
    case 'ecdh':
      return parameters.kdf === null ? Math.ceil(bits / 8) : digestLengths[parameters.kdf];
    case 'hkdf':
      return parameters.steps === 'extract' ? digestLengths[parameters.digest] : null;
    case 'sp800-108':
      return null;
    case 'encryption':
      return parameters.data.length;
  }
};

/** With the peer's point bare. `curve`: of the base. */
const withBarePoint = (parameters: Derivation, curve: Curve | undefined): Derivation =>
  parameters.way === 'ecdh' ? { ...parameters, point: pointOf(parameters.point, pointLength(curve)) } : parameters;

const sized = (parameters: Derivation, bytes: number): DeriveParameters =>
  parameters.way === 'sp800-108'
    ? { way: parameters.way, prf: parameters.prf, parts: parameters.partsFor(bytes) }
    : parameters;

const derive = (
  base: KeyRef,
  parameters: Derivation,
  saltKey: KeyRef | null,
  kind: 'aes' | 'generic',
  bytes: number,
): KeyRef => {
  try {
    return core.derive(base, sized(parameters, bytes), saltKey, kind, bytes);
  } catch (error) {
    // Shared data or info that is too long, or a point that is not on the curve, which would tell
    // of the private key.
    const isTelling = error instanceof CoreError && error.code === 'bad-argument' && parameters.way !== 'encryption';
    throw isTelling ? parameterInvalid() : error;
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
  const saltHandle = (parameters.way === 'hkdf' ? parameters.saltKey : undefined) ?? null;
  const base = localKey(application, baseHandle, row, 'derive');
  if (base === undefined) {
    const onToken = row.derivesData ? dataOnToken : deriveOnToken;
    return admitOnToken(application, baseHandle, saltHandle, row).then((view) =>
      onToken(session, view, parameters, template),
    );
  }
  checkCustody(base.view, parameters);
  const salt = saltHandle === null ? null : localKey(application, saltHandle, row, 'derive');
  if (salt === undefined) throw apart();
  const saltKey = salt?.key.ref ?? null;
  if (row.derivesData) {
    const { rows, bytes } = newData(base.view, parameters, template);
    return keepData(session, rows, derive(base.key.ref, parameters, saltKey, 'generic', bytes));
  }
  const { bits, curve } = core.describe(base.key.ref);
  const { made, bytes } = newDerived(session, base.view, bits, parameters, template);
  const bare = withBarePoint(parameters, curve);
  const key = new SharedKey(derive(base.key.ref, bare, saltKey, secretKind(made.attributes), bytes));
  return keepMadeKey(session, made.attributes, key);
};

/**
 * A chosen value, encrypted as a key that may be read: the base key would encrypt for callers who
 * may only derive.
 */
const checkCustody = (base: ObjectView, parameters: Derivation): void => {
  if (parameters.way === 'encryption' && isTrue(base, CKA.SENSITIVE)) throw keyNotPermitted();
  // CMAC is of AES keys, and they have no HMAC.
  const isAes = base.attributes.get(CKA.KEY_TYPE) === CKK.AES;
  if (parameters.way === 'sp800-108' && isAes !== (parameters.prf.algorithm === 'aes-cmac'))
    throw keyTypeInconsistent();
};

/** A salt would have to leave its place. */
const apart = (): CryptokiError =>
  new CryptokiError(
    CKR.MECHANISM_PARAM_INVALID,
    'either both the salt and the base must be keys of the token, or neither',
  );

/** A base key of the token, and its salt if that is a key. */
const admitOnToken = async (
  application: Application,
  handle: number,
  saltHandle: number | null,
  row: MechanismRow,
): Promise<TokenView> => {
  const view = await tokenKeyOnce(application, handle, row, 'derive', 'key');
  if (saltHandle !== null) {
    if (localKey(application, saltHandle, row, 'derive') !== undefined) throw apart();
    await tokenKeyOnce(application, saltHandle, row, 'derive', 'key');
  }
  return view;
};

/**
 * The template of a data object that is derived, without its value, and how many bytes the value
 * has.
 */
const newData = (
  base: ObjectView,
  parameters: Derivation,
  template: readonly Attribute[],
): { readonly rows: readonly Attribute[]; readonly bytes: number } => {
  const whole = prescribed(template, base.attributes.get(CKA.DERIVE_TEMPLATE));
  for (const { type, value } of whole) {
    if (type === CKA.VALUE || (type === CKA.CLASS && value !== CKO.DATA)) {
      throw new CryptokiError(
        CKR.TEMPLATE_INCONSISTENT,
        'the derived object is data, and the mechanism determines its value',
      );
    }
  }
  const length = whole.find(({ type }) => type === CKA.VALUE_LEN)?.value;
  const bytes = length === undefined ? naturalLength(0, parameters) : length;
  if (bytes === null) throw new CryptokiError(CKR.TEMPLATE_INCOMPLETE, 'CKA_VALUE_LEN is missing');
  if (typeof bytes !== 'number') throw new CryptokiError(CKR.ATTRIBUTE_VALUE_INVALID, 'CKA_VALUE_LEN is not a length');
  checkLength(0, parameters, CKK.GENERIC_SECRET, bytes);
  const rows = whole.filter(({ type }) => type !== CKA.VALUE_LEN && type !== CKA.CLASS);
  return { rows: [...rows, { type: CKA.CLASS, value: CKO.DATA, length: 8 }], bytes };
};

/** Takes the value out of the addon into an object of data. `made` is released. */
const keepData = (session: Session, rows: readonly Attribute[], made: KeyRef): Later<number> => {
  const value = core.exportSecret(made);
  core.release(made);
  try {
    // The value is copied before anything waits.
    return createObject(session, [...rows, { type: CKA.VALUE, value, length: value.length }]);
  } finally {
    core.wipe(value);
  }
};

/** Data from a key of the token: the service derives it as a key of the session. */
const dataOnToken = async (
  session: Session,
  base: TokenView,
  parameters: Derivation,
  template: readonly Attribute[],
): Promise<number> => {
  const { application } = session;
  const { rows, bytes } = newData(base, parameters, template);
  const into = {
    on: 'session',
    recipient: ownRecipient(application),
    class: 'secret-key',
    algorithm: 'generic',
    bits: bytes * 8,
    sensitive: false,
    extractable: true,
  } as const;
  const { raw } = await application.ask('derive', base.handle, { mechanism: sized(parameters, bytes), into });
  return keepData(session, rows, await openSealed(application, base.handle, 'generic', raw));
};

/** What is to be made, and of how many bytes. `bits` is the base key's size. */
const newDerived = (
  session: Session,
  base: ObjectView,
  bits: number,
  parameters: Derivation,
  template: readonly Attribute[],
): { readonly made: NewObject; readonly bytes: number } => {
  const whole = prescribed(template, base.attributes.get(CKA.DERIVE_TEMPLATE));
  const made = newObject(whole, { how: 'derive', base: base.attributes }, session.application.loggedIn);
  checkMayMake(session, made.attributes);
  if (made.kind !== 'secret' || made.checkValue !== null) {
    throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, 'the derived object must be a secret key');
  }
  const bytes = made.length ?? naturalLength(bits, parameters);
  if (bytes === null) throw new CryptokiError(CKR.TEMPLATE_INCOMPLETE, 'CKA_VALUE_LEN is missing');
  checkLength(bits, parameters, Number(made.attributes.get(CKA.KEY_TYPE)), bytes);
  checkHiddenLength(made, bytes);
  return { made, bytes };
};

/** A base whose size makes no difference. */
const noCurve: Pick<KeyDescription, 'bits' | 'curve'> = { bits: 0 };

/** From a key of the token: the service derives. */
const deriveOnToken = async (
  session: Session,
  base: TokenView,
  parameters: Derivation,
  template: readonly Attribute[],
): Promise<number> => {
  const { application } = session;
  checkCustody(base, parameters);
  const { bits, curve } = parameters.way === 'ecdh' ? publicHalf(base, (description) => description) : noCurve;
  const { made, bytes } = newDerived(session, base, bits, parameters, template);
  const into = destinationOf(application, made, bytes * 8);
  const head = { mechanism: sized(withBarePoint(parameters, curve), bytes), into };
  const data = parameters.way === 'encryption' ? ownCopy(parameters.data) : undefined;
  const { answer, raw } = await application.ask('derive', base.handle, head, data);
  if (into.on === 'token') return keepOnToken(application, answer.object);
  return keepFromAbroad(session, made.attributes, await openSealedKey(application, base.handle, made, raw));
};

const checkLength = (bits: number, parameters: Derivation, keyType: number, bytes: number): void => {
  if (parameters.way === 'encryption' && bytes > parameters.data.length) {
    throw new CryptokiError(CKR.DATA_LEN_RANGE, 'the data is shorter than the key');
  }
  if (!gives(bits, parameters, bytes) || !fitsKeyType(keyType, bytes)) {
    throw new CryptokiError(CKR.KEY_SIZE_RANGE, 'the mechanism cannot derive a key of this length');
  }
};

const gives = (bits: number, parameters: Derivation, bytes: number): boolean => {
  switch (parameters.way) {
    case 'ecdh':
      return parameters.kdf !== null || bytes <= (naturalLength(bits, parameters) ?? 0);
    case 'hkdf':
      return parameters.steps === 'extract'
        ? bytes === digestLengths[parameters.digest]
        : bytes <= 255 * digestLengths[parameters.digest];
    // The core counts what the counter is long enough for.
    case 'sp800-108':
      return true;
    case 'encryption':
      return bytes <= parameters.data.length;
  }
};
