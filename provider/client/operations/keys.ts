// From a key handle in an Init to a key that may be used: its type, its permission and the mechanisms that it allows
// (PKCS#11 2.40, sections 4.7 and 5.8.1). What only the service knows now, whether the key is disabled or destroyed, it is
// asked at every Init.
import type { KeyUsage } from '../../../server/fronts/contract/tde.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKO } from '../../schema/constants.ts';
import type { Application } from '../application.ts';
import { keyInvalid, keyNotPermitted, keyTypeInconsistent, mechanismInvalid } from '../errors.ts';
import { isTrue, type ObjectView, type SharedKey, type TokenView, usageAttribute } from '../object-view.ts';
import type { MechanismRow } from './mechanisms.ts';

const checkKey = (view: ObjectView, row: MechanismRow): void => {
  const { attributes } = view;
  if (attributes.get(CKA.CLASS) !== CKO.SECRET_KEY) throw keyInvalid();
  if (!row.keyTypes.includes(Number(attributes.get(CKA.KEY_TYPE)))) throw keyTypeInconsistent();
  const allowed = attributes.get(CKA.ALLOWED_MECHANISMS);
  if (Array.isArray(allowed) && allowed.length > 0 && !(allowed as readonly unknown[]).includes(row.type)) {
    throw mechanismInvalid();
  }
};

/** A session key that may be used so; undefined when the handle is a token object's. */
export const localKey = (
  application: Application,
  handle: number,
  row: MechanismRow,
  usage: KeyUsage,
): { readonly key: SharedKey; readonly private: boolean } | undefined => {
  const object = application.sessionObject(handle, 'key');
  if (object === undefined) return undefined;
  checkKey(object, row);
  if (object.key === null) throw keyInvalid();
  if (!isTrue(object, usageAttribute(usage))) throw keyNotPermitted();
  return { key: object.key, private: isTrue(object, CKA.PRIVATE) };
};

/** A token key that may be used so, as of now. */
export const tokenKey = async (
  application: Application,
  handle: number,
  row: MechanismRow,
  usage: KeyUsage,
): Promise<TokenView> => {
  const view = await application.tokenObject(handle, 'key', false);
  checkKey(view, row);
  await application.ask('checkUse', handle, { usage });
  return view;
};
