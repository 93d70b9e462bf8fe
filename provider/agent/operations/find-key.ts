// From a key handle in an Init to a key that may be used: its class and type, its permission and
// the mechanisms that it allows (PKCS#11 2.40, sections 4.7 and 5.8.1). What only the service knows
// now, whether the key is disabled or destroyed, it is asked at every Init, but for what it has
// said a moment ago (service-answer-cache.ts).
import { core, type KeyDescription, type KeyRef } from '../../../addon/core.ts';
import type { KeyUsage } from '../../../server/contract/tde.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';
import type { ObjectKind } from '../objects/attribute-rules.ts';
import {
  isTrue,
  kindOfView,
  type ObjectView,
  SharedKey,
  type TokenView,
  usageAttribute,
} from '../objects/object-view.ts';
import {
  keyInvalid,
  keyNotPermitted,
  keyTypeInconsistent,
  mechanismInvalid,
  objectInvalid,
  unwrappingKeyInvalid,
  unwrappingKeyTypeInconsistent,
  wrappingKeyInvalid,
  wrappingKeyTypeInconsistent,
} from '../return-values.ts';
import type { Application, Named } from '../sessions/application.ts';
import { isAsymmetric, type MechanismRow } from './mechanism-row.ts';

/**
 * What a key is used for. To the service, a signature with recovery is a signature: what it makes
 * is the same.
 */
export type Use = KeyUsage | 'signRecover' | 'verifyRecover';

const permission = (use: Use): number =>
  use === 'signRecover' ? CKA.SIGN_RECOVER : use === 'verifyRecover' ? CKA.VERIFY_RECOVER : usageAttribute(use);

/** Which half of a pair a use takes. */
const halves = {
  encrypt: 'public',
  verify: 'public',
  verifyRecover: 'public',
  wrap: 'public',
  decrypt: 'private',
  sign: 'private',
  signRecover: 'private',
  unwrap: 'private',
  derive: 'private',
} as const satisfies Record<Use, ObjectKind>;

/** What a handle is called that names no key, and a key of the wrong type, where it stands. */
const refusals = {
  object: { invalid: objectInvalid, type: keyTypeInconsistent },
  key: { invalid: keyInvalid, type: keyTypeInconsistent },
  wrapping: { invalid: wrappingKeyInvalid, type: wrappingKeyTypeInconsistent },
  unwrapping: { invalid: unwrappingKeyInvalid, type: unwrappingKeyTypeInconsistent },
} as const satisfies Record<Named, object>;

const checkKey = (view: ObjectView, row: MechanismRow, usage: Use, named: Named = 'key'): void => {
  const { attributes } = view;
  const kind = kindOfView(view);
  if (kind !== 'secret' && kind !== 'public' && kind !== 'private') throw refusals[named].invalid();
  if (!row.keyTypes.includes(Number(attributes.get(CKA.KEY_TYPE)))) throw refusals[named].type();
  if (isAsymmetric(row) ? kind !== halves[usage] : kind !== 'secret') throw keyNotPermitted();
  const allowed = attributes.get(CKA.ALLOWED_MECHANISMS);
  if (Array.isArray(allowed) && allowed.length > 0 && !(allowed as readonly unknown[]).includes(row.type)) {
    throw mechanismInvalid();
  }
};

/** A key in the addon for one operation, which releases it when it ends. */
export interface LocalKey {
  readonly key: SharedKey;
  readonly private: boolean;
  readonly view: ObjectView;
}

/** A session key that may be used so; undefined when the handle is a token object's. */
export const localKey = (
  application: Application,
  handle: number,
  row: MechanismRow,
  usage: Use,
  named: Named = 'key',
): LocalKey | undefined => {
  const object = application.sessionObject(handle, named);
  if (object === undefined) return undefined;
  checkKey(object, row, usage, named);
  if (object.key === null) throw keyInvalid();
  if (!isTrue(object, permission(usage))) throw keyNotPermitted();
  if (usage === 'decrypt' && application.roles.hasWrapped(object.attributes)) throw keyNotPermitted();
  return { key: object.key, private: isTrue(object, CKA.PRIVATE), view: object };
};

/** A token key that may be used so, as of now. */
export const tokenKey = async (
  application: Application,
  handle: number,
  row: MechanismRow,
  usage: KeyUsage,
): Promise<TokenView> => {
  const view = await application.tokenObject(handle, 'key', false);
  checkKey(view, row, usage);
  await application.ask('checkUse', handle, { usage });
  return view;
};

/** A token key for one request, in which the service checks whether it may be used so. */
export const tokenKeyOnce = async (
  application: Application,
  handle: number,
  row: MechanismRow,
  usage: Use,
  named: Named,
): Promise<TokenView> => {
  const view = await application.tokenObject(handle, named, true);
  checkKey(view, row, usage, named);
  if (!isTrue(view, permission(usage))) throw keyNotPermitted();
  return view;
};

/** What the core says of the public half of a token's pair. */
export const publicHalf = <T>(view: TokenView, say: (description: KeyDescription) => T): T => {
  const key = importPublicHalf(view);
  try {
    return say(core.describe(key));
  } finally {
    core.release(key);
  }
};

const importPublicHalf = (view: TokenView): KeyRef => {
  const spki = view.attributes.get(CKA.PUBLIC_KEY_INFO);
  if (!(spki instanceof Uint8Array)) throw new CryptokiError(CKR.KEY_HANDLE_INVALID, 'the public key has no value');
  return core.importPublicKey(spki);
};

/**
 * A public key of the token, fetched: public operations need no service. The receiver releases it.
 */
export const tokenPublicKey = async (
  application: Application,
  handle: number,
  row: MechanismRow,
  usage: Use,
): Promise<LocalKey> => {
  return bringPublicKey(await tokenKeyOnce(application, handle, row, usage, 'key'));
};

/**
 * A public key of the token as a local one, for who has checked that it may be used so. The
 * receiver releases it.
 */
export const bringPublicKey = (view: TokenView): LocalKey => ({
  key: new SharedKey(importPublicHalf(view)),
  private: isTrue(view, CKA.PRIVATE),
  view,
});
