// Keys from a template's values, imported into the addon (PKCS#11 2.40, section 5.7). Whatever a
// template has as a view is copied before the first await.
import { CoreError, core } from '../../../addon/core.ts';
import { isShortRsa } from '../../../server/base/compatibility-switches.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKK } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';
import type { ReadonlyAttributes } from '../objects/attribute-blob.ts';
import { encodePrivateKey, encodePublicKey, isWholeRsaKey, rsaNumbers } from '../objects/key-forms.ts';
import { SharedKey } from '../objects/object-view.ts';
import type { NewObject } from '../objects/template.ts';
import type { Application } from '../sessions/application.ts';
import type { Later } from '../sessions/later.ts';
import { ownCopy } from './collected-parts.ts';
import { secretKind } from './sealed-keys.ts';
import { queued } from './slow-work.ts';

export const importSecret = (attributes: ReadonlyAttributes, value: Uint8Array): SharedKey =>
  new SharedKey(core.importSecret(secretKind(attributes), value));

/**
 * The refusal of a key's numbers, by the core or because they fit into no key: the template's
 * values are at fault.
 */
const notImported = (error: unknown): unknown => {
  const refused = error instanceof CoreError && (error.code === 'bad-argument' || error.code === 'unsupported');
  if (!refused && !(error instanceof RangeError)) return error;
  return new CryptokiError(CKR.ATTRIBUTE_VALUE_INVALID, 'the attributes do not fit a key of this type');
};

const tooShort = (): CryptokiError =>
  new CryptokiError(
    CKR.ATTRIBUTE_VALUE_INVALID,
    'an RSA key must have at least 2048 bits, unless a compatibility switch is on',
  );

/** The key. A short RSA key that the application may not have is released, and `refusal` thrown. */
export const admitSize = (
  application: Application,
  key: SharedKey,
  refusal: () => CryptokiError = tooShort,
): Later<SharedKey> => {
  const { kind, bits } = core.describe(key.ref);
  const switches = kind === 'rsa-private' || kind === 'rsa-public' ? switchesByHalf[kind] : null;
  if (switches === null || !isShortRsa(bits)) return key;
  return application.permit(switches, refusal).then(
    () => key,
    (error: unknown) => {
      key.release();
      throw error;
    },
  );
};
const switchesByHalf = {
  'rsa-private': ['short-rsa-keys'],
  'rsa-public': ['short-rsa-verification', 'short-rsa-keys'],
} as const;

/** A promise for a short RSA key only. */
export const importPublic = (application: Application, attributes: ReadonlyAttributes): Later<SharedKey> => {
  try {
    const spki = encodePublicKey(Number(attributes.get(CKA.KEY_TYPE)), attributes);
    return admitSize(application, new SharedKey(core.importPublicKey(spki)));
  } catch (error) {
    throw notImported(error);
  }
};

/**
 * The standard requires the modulus and the private exponent only: what else is not given is
 * computed.
 */
const completeRsa = async (application: Application, { attributes, material }: NewObject): Promise<SharedKey> => {
  const numbers = rsaNumbers(attributes, material).map((number) => ownCopy(number));
  const [modulus, publicExponent, privateExponent, prime1, prime2] = numbers as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ];
  try {
    const add = () => core.importRsaNumbersLater(modulus, publicExponent, privateExponent, prime1, prime2);
    return await admitSize(application, new SharedKey(await queued('search', application, add)));
  } catch (error) {
    throw notImported(error);
  } finally {
    for (const each of numbers) if (each.length > 0) core.wipe(each);
  }
};

/**
 * The material is encoded at once, because it does not outlive the call. The numbers are checked in
 * the user's turn.
 */
export const importPrivate = async (application: Application, made: NewObject): Promise<SharedKey> => {
  const { attributes, material } = made;
  if (attributes.get(CKA.KEY_TYPE) === CKK.RSA && !isWholeRsaKey(attributes, material))
    return completeRsa(application, made);
  let encoded: Buffer | null = null;
  try {
    const pkcs8 = encodePrivateKey(Number(attributes.get(CKA.KEY_TYPE)), attributes, material);
    encoded = pkcs8;
    const key = new SharedKey(await queued('computation', application, () => core.importPrivateKeyLater(pkcs8)));
    return await admitSize(application, key);
  } catch (error) {
    throw notImported(error);
  } finally {
    if (encoded !== null) core.wipe(encoded);
  }
};
