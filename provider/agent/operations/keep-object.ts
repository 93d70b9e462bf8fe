// Where a new object is kept: a session object's key in the addon, a token object with the service.
import { core, type KeyRef } from '../../../addon/core.ts';
import { attributeName, CKA } from '../../schema/attributes.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';
import type { AttributeMap, ReadonlyAttributes } from '../objects/attribute-blob.ts';
import { kindOf } from '../objects/attribute-rules.ts';
import { publicAttributes, sameNumber } from '../objects/key-forms.ts';
import { describeNew, type SharedKey } from '../objects/object-view.ts';
import { equalValues } from '../objects/template.ts';
import { idsOfProcess } from '../objects/unique-id.ts';
import type { Session } from '../sessions/application-session.ts';
import type { Later } from '../sessions/later.ts';
import { ownCopy } from './collected-parts.ts';

/**
 * Unique ids of session objects: a random draw for each would be a fifth of what a new key costs.
 */
const nextId = idsOfProcess();

export const checkMayMake = (session: Session, attributes: ReadonlyAttributes): void =>
  session.application.checkMayWrite(session, attributes.get(CKA.TOKEN) === true, attributes.get(CKA.PRIVATE) === true);

/**
 * Puts a session object into its session, with what follows from its key. The key is released when
 * that fails.
 */
export const keepInSession = (session: Session, attributes: AttributeMap, key: SharedKey | null): number => {
  try {
    // The session may have been closed while the key was made.
    if (session.closed) throw new CryptokiError(CKR.SESSION_CLOSED, 'the session was closed in the meantime');
    attributes.set(CKA.UNIQUE_ID, Buffer.from(nextId()));
    if (key !== null) describeKey(attributes, key.ref);
    return session.application.addObject(session, attributes, key).handle;
  } catch (error) {
    key?.release();
    throw error;
  }
};

/**
 * Adds what follows from a key to its object's attributes, and checks what the template said of it.
 */
const describeKey = (attributes: AttributeMap, key: KeyRef): void => {
  const kind = kindOf(attributes.get(CKA.CLASS));
  if (kind === 'secret') {
    if (!attributes.has(CKA.VALUE_LEN)) attributes.set(CKA.VALUE_LEN, core.describe(key).bits / 8);
    attributes.set(CKA.CHECK_VALUE, core.checkValue(key));
    return;
  }
  if (kind !== 'public' && kind !== 'private') return;
  for (const [type, value] of publicAttributes(core.exportPublicKey(key), kind)) {
    const given = attributes.get(type);
    // A curve keeps the name that its maker gave it; everything else has one form.
    if (given === undefined || type !== CKA.EC_PARAMS) attributes.set(type, value);
    if (given === undefined || type === CKA.EC_PARAMS || type === CKA.EC_POINT) continue;
    if (!equalValues(given, value) && !sameNumber(given, value)) {
      throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, `${attributeName(type)} does not match the key`);
    }
  }
};

export const wrongCheckValue = (): CryptokiError =>
  new CryptokiError(CKR.ATTRIBUTE_VALUE_INVALID, 'CKA_CHECK_VALUE does not match the value');

export const checkCheckValue = (given: Uint8Array | null, key: SharedKey): void => {
  if (given === null || Buffer.compare(given, core.checkValue(key.ref)) === 0) return;
  key.release();
  throw wrongCheckValue();
};

/** An object that is not a secret, for the token. */
export const sendToToken = async (
  session: Session,
  attributes: AttributeMap,
  value: Uint8Array<ArrayBuffer>,
): Promise<number> => {
  const { application } = session;
  const { answer } = await application.ask('createObject', null, describeNew(attributes, null), value);
  return application.remember(answer).handle;
};

/** A secret or private key for the token, sealed. The local one stays the caller's. */
export const sendKey = async (session: Session, attributes: AttributeMap, key: SharedKey): Promise<number> => {
  const { application } = session;
  const isSecret = kindOf(attributes.get(CKA.CLASS)) === 'secret';
  const head = describeNew(attributes, isSecret ? core.describe(key.ref).bits : null);
  // Its object may be destroyed while the service is asked.
  const shared = key.share();
  try {
    const { answer } = await application.askWithKey('createObject', null, head, shared.ref);
    return application.remember(answer).handle;
  } finally {
    shared.release();
  }
};

/** `sendKey` with a key that was made for this object: it is released. */
export const sendOwnKey = (session: Session, attributes: AttributeMap, key: SharedKey): Promise<number> => {
  try {
    return sendKey(session, attributes, key);
  } finally {
    key.release();
  }
};

/** A public key for the token; the local one is released. */
export const sendPublicKey = (session: Session, attributes: AttributeMap, key: SharedKey): Promise<number> => {
  try {
    describeKey(attributes, key.ref);
    return sendToToken(session, attributes, ownCopy(core.exportPublicKey(key.ref)));
  } finally {
    key.release();
  }
};

/** A private key for the token, sealed; the local one is released. */
export const sendPrivateKey = (session: Session, attributes: AttributeMap, key: SharedKey): Promise<number> => {
  try {
    describeKey(attributes, key.ref);
    return sendKey(session, attributes, key);
  } finally {
    key.release();
  }
};

/** Throws when a key of the session must not go to the service, which has it from then on. */
export const checkMayGoAbroad = (session: Session, attributes: ReadonlyAttributes): void => {
  if (session.application.roles.mayGoAbroad(attributes)) return;
  throw new CryptokiError(CKR.ACTION_PROHIBITED, 'a key that has wrapped sensitive keys cannot leave its session');
};

/**
 * Puts a key that was unwrapped or derived here where its template wants it; on the token it is in
 * the service's custody.
 */
export const keepMadeKey = (session: Session, attributes: AttributeMap, key: SharedKey): Later<number> => {
  if (attributes.get(CKA.TOKEN) !== true) return keepInSession(session, attributes, key);
  try {
    describeKey(attributes, key.ref);
    checkMayGoAbroad(session, attributes);
    return sendKey(session, attributes, key);
  } finally {
    key.release();
  }
};
