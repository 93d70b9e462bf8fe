// Making, copying, changing and destroying objects (PKCS#11 2.40, sections 5.7 and 5.14). A session object's key is made in,
// or copied into, the addon; a token object is the service's. Whatever a template holds as a view is copied before the
// first await.
import { randomUUID } from 'node:crypto';
import { CoreError, core, type KeyRef } from '../../../addon/core.ts';
import { ServiceError } from '../../../server/base/errors.ts';
import { attributeName, CKA } from '../../schema/attributes.ts';
import { CKK, CKO } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { type Attribute, CryptokiError } from '../../schema/types.ts';
import type { AttributeMap, ReadonlyAttributes } from '../attribute-blob.ts';
import { actionProhibited } from '../errors.ts';
import { encodePrivateKey, encodePublicKey, publicAttributes, sameNumber } from '../key-forms.ts';
import {
  blobOf,
  describeNew,
  isReadable,
  isTrue,
  kindOfView,
  type ObjectView,
  SharedKey,
  type TokenView,
  usagesOf,
} from '../object-view.ts';
import { kindOf } from '../rules.ts';
import type { Later, Session } from '../session.ts';
import { changes, equalValues, type NewObject, newObject } from '../template.ts';
import { ownCopy } from './parts.ts';
import { isSecretValue, readSessionValue, readValue } from './value.ts';

const aesBits = { 16: 128, 24: 192, 32: 256 } as const;

const generate = (keyType: number, length: number): KeyRef =>
  keyType === CKK.AES ? core.generateAes(aesBits[length as keyof typeof aesBits]) : core.generateGeneric(length);
/** What the core calls a secret key of this type. */
export const secretKind = (attributes: ReadonlyAttributes): 'aes' | 'generic' =>
  attributes.get(CKA.KEY_TYPE) === CKK.AES ? 'aes' : 'generic';
const importSecret = (attributes: ReadonlyAttributes, value: Uint8Array): SharedKey =>
  new SharedKey(core.importSecret(secretKind(attributes), value));

export const checkMayMake = (session: Session, attributes: ReadonlyAttributes): void =>
  session.application.checkMayWrite(session, attributes.get(CKA.TOKEN) === true, attributes.get(CKA.PRIVATE) === true);

/** Puts a session object into its session, with what follows from its key. The key is released when that fails. */
export const keepInSession = (session: Session, attributes: AttributeMap, key: SharedKey | null): number => {
  try {
    // The session may have been closed while the key was made.
    if (session.closed) throw new CryptokiError(CKR.SESSION_CLOSED, 'the session was closed meanwhile');
    attributes.set(CKA.UNIQUE_ID, Buffer.from(randomUUID()));
    if (key !== null) describeKey(attributes, key.ref);
    return session.application.addObject(session, attributes, key).handle;
  } catch (error) {
    key?.release();
    throw error;
  }
};

/** Adds what follows from a key to its object's attributes, and checks what the template said of it. */
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
      throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, `${attributeName(type)} is not that of the key`);
    }
  }
};

const checkCheckValue = (given: Uint8Array | null, key: SharedKey): void => {
  if (given === null || Buffer.compare(given, core.checkValue(key.ref)) === 0) return;
  key.release();
  throw new CryptokiError(CKR.ATTRIBUTE_VALUE_INVALID, 'CKA_CHECK_VALUE is not that of the value');
};

/** C_GenerateKey. */
export const generateObject = (
  session: Session,
  mechanism: number,
  keyType: number,
  template: readonly Attribute[],
): Later<number> => {
  const { loggedIn } = session.application;
  const origin = { how: 'generate', mechanism, keyType, objectClass: CKO.SECRET_KEY } as const;
  const { attributes, length, checkValue } = newObject(template, origin, loggedIn);
  checkMayMake(session, attributes);
  if (length === null || checkValue !== null) {
    throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, 'a check value cannot be known before the key');
  }
  if (attributes.get(CKA.TOKEN) === true) return generateOnToken(session, attributes, length);
  attributes.set(CKA.VALUE_LEN, length);
  return keepInSession(session, attributes, new SharedKey(generate(keyType, length)));
};

const generateOnToken = async (session: Session, attributes: AttributeMap, length: number): Promise<number> => {
  const { application } = session;
  const { answer } = await application.ask('generateKey', null, describeNew(attributes, length * 8));
  return application.remember(answer).handle;
};

/** C_CreateObject. */
export const createObject = (session: Session, template: readonly Attribute[]): Later<number> => {
  const made = newObject(template, { how: 'create' }, session.application.loggedIn);
  checkMayMake(session, made.attributes);
  return made.attributes.get(CKA.TOKEN) === true ? createOnToken(session, made) : createInSession(session, made);
};

/** The refusal of a key's numbers, by the core or because they fit into no key: the template's values are at fault. */
const importing = (encode: () => Buffer, add: (encoded: Buffer) => KeyRef): SharedKey => {
  let encoded: Buffer | null = null;
  try {
    encoded = encode();
    return new SharedKey(add(encoded));
  } catch (error) {
    const refused = error instanceof CoreError && (error.code === 'bad-argument' || error.code === 'unsupported');
    if (!refused && !(error instanceof RangeError)) throw error;
    throw new CryptokiError(CKR.ATTRIBUTE_VALUE_INVALID, 'the attributes are not those of a key of this type');
  } finally {
    if (encoded !== null) core.wipe(encoded);
  }
};

const importPublic = (attributes: ReadonlyAttributes): SharedKey =>
  importing(
    () => encodePublicKey(Number(attributes.get(CKA.KEY_TYPE)), attributes),
    (spki) => core.importPublicKey(spki),
  );

const importPrivate = ({ attributes, material }: NewObject): SharedKey =>
  importing(
    () => encodePrivateKey(Number(attributes.get(CKA.KEY_TYPE)), attributes, material),
    (pkcs8) => core.importPrivateKey(pkcs8),
  );

const createInSession = (session: Session, made: NewObject): number => {
  const { kind, attributes, value, checkValue } = made;
  switch (kind) {
    case 'data':
    case 'certificate':
      keepValue(made);
      return keepInSession(session, attributes, null);
    case 'public':
      return keepInSession(session, attributes, importPublic(attributes));
    case 'private':
      return keepInSession(session, attributes, importPrivate(made));
    case 'secret': {
      const key = importSecret(attributes, value ?? new Uint8Array(0));
      checkCheckValue(checkValue, key);
      return keepInSession(session, attributes, key);
    }
  }
};

/** What is no key has its value in its map. A certificate is its value, or names where it is (4.6.3). */
const keepValue = ({ kind, attributes, value }: NewObject): void => {
  const url = attributes.get(CKA.URL);
  if (kind === 'certificate' && value === null && !(url instanceof Uint8Array && url.length > 0)) {
    throw new CryptokiError(CKR.TEMPLATE_INCOMPLETE, 'a certificate needs CKA_VALUE or CKA_URL');
  }
  attributes.set(CKA.VALUE, Buffer.from(value ?? []));
};

const createOnToken = (session: Session, made: NewObject): Promise<number> => {
  const { kind, attributes, value, length, checkValue } = made;
  switch (kind) {
    case 'private':
      return sendPrivateKey(session, attributes, importPrivate(made));
    case 'public':
      return sendPublicKey(session, attributes, importPublic(attributes));
    case 'certificate':
      keepValue(made);
      attributes.delete(CKA.VALUE);
      break;
    case 'secret':
      if (checkValue !== null && value !== null) {
        const key = importSecret(attributes, value);
        checkCheckValue(checkValue, key);
        key.release();
      }
      break;
  }
  return sendToToken(session, attributes, length, ownCopy(value ?? new Uint8Array(0)));
};

const sendToToken = async (
  session: Session,
  attributes: AttributeMap,
  length: number | null,
  value: Uint8Array<ArrayBuffer>,
): Promise<number> => {
  const { application } = session;
  const bits = length === null ? null : length * 8;
  const { answer } = await application.ask('createObject', null, describeNew(attributes, bits), value);
  return application.remember(answer).handle;
};

/** A public key for the token; the local one is released. */
export const sendPublicKey = (session: Session, attributes: AttributeMap, key: SharedKey): Promise<number> => {
  try {
    describeKey(attributes, key.ref);
    return sendToToken(session, attributes, null, ownCopy(core.exportPublicKey(key.ref)));
  } finally {
    key.release();
  }
};

/** The same for a private key. */
const sendPrivateKey = (session: Session, attributes: AttributeMap, key: SharedKey): Promise<number> => {
  try {
    describeKey(attributes, key.ref);
    return sendToToken(session, attributes, null, secretCopy(core.exportPrivateKey(key.ref)));
  } finally {
    key.release();
  }
};

/** A copy to be given away; what was copied is wiped. */
const secretCopy = (value: Uint8Array): Uint8Array<ArrayBuffer> => {
  try {
    return ownCopy(value);
  } finally {
    core.wipe(value);
  }
};

/** The value of a session key for the service, which has the key from then on. Throws when the key must stay here. */
export const valueForService = (session: Session, { ref }: SharedKey, attributes: ReadonlyAttributes) => {
  if (!session.application.roles.mayGoAbroad(attributes)) {
    throw new CryptokiError(CKR.ACTION_PROHIBITED, 'a key that has wrapped sensitive keys stays in its session');
  }
  return secretCopy(
    kindOf(attributes.get(CKA.CLASS)) === 'private' ? core.exportPrivateKey(ref) : core.exportSecret(ref),
  );
};

/** Puts a key that was unwrapped or derived here where its template wants it; on the token it is in the service's custody. */
export const keepMadeKey = (session: Session, attributes: AttributeMap, key: SharedKey): Later<number> => {
  if (attributes.get(CKA.TOKEN) !== true) return keepInSession(session, attributes, key);
  try {
    describeKey(attributes, key.ref);
    return sendKey(session, attributes, key);
  } finally {
    key.release();
  }
};

const sendKey = (session: Session, attributes: AttributeMap, key: SharedKey): Promise<number> => {
  const value = valueForService(session, key, attributes);
  const length = kindOf(attributes.get(CKA.CLASS)) === 'secret' ? value.length : null;
  return sendToToken(session, attributes, length, value);
};

/** C_CopyObject. */
export const copyObject = (session: Session, handle: number, template: readonly Attribute[]): Later<number> => {
  const source = session.application.sessionObject(handle, 'object');
  if (source === undefined) return copyFromToken(session, handle, template);
  const attributes = copiedAttributes(session, source, template);
  if (attributes.get(CKA.TOKEN) === true) {
    // What is secret comes into the service's custody: a way in, never out.
    if (source.key !== null && isSecretValue(source)) return sendKey(session, attributes, source.key);
    const own = ownCopy(readSessionValue(source));
    attributes.delete(CKA.VALUE);
    return sendToToken(session, attributes, null, own);
  }
  return keepInSession(session, attributes, source.key?.share() ?? null);
};

const copiedAttributes = (session: Session, source: ObjectView, template: readonly Attribute[]): AttributeMap => {
  if (source.attributes.get(CKA.COPYABLE) === false) throw actionProhibited();
  const attributes: AttributeMap = new Map(source.attributes);
  for (const [type, value] of changes(template, source.attributes, 'copy')) attributes.set(type, value);
  checkMayMake(session, attributes);
  return attributes;
};

const copyFromToken = async (session: Session, handle: number, template: readonly Attribute[]): Promise<number> => {
  const { application } = session;
  const source = await application.tokenObject(handle, 'object', true);
  const attributes = copiedAttributes(session, source, template);
  // A key in the service's custody does not leave it, unless its owner could read it anyway.
  const kind = kindOfView(source);
  if (!isReadable(source)) throw actionProhibited();
  const value = await readValue(application, source);
  if (attributes.get(CKA.TOKEN) === true) {
    return sendToToken(session, attributes, kind === 'secret' ? value.length : null, ownCopy(value));
  }
  if (kind === 'public') return keepInSession(session, attributes, importPublic(attributes));
  if (kind !== 'secret' && kind !== 'private') {
    attributes.set(CKA.VALUE, value);
    return keepInSession(session, attributes, null);
  }
  const key = importValue(source, value);
  // The service has it too.
  application.roles.mayGoAbroad(attributes);
  return keepInSession(session, attributes, key);
};

/** A key of the token that may be read, as a local one; the value that was read is wiped. */
export const importValue = ({ attributes }: TokenView, value: Uint8Array): SharedKey => {
  try {
    if (kindOf(attributes.get(CKA.CLASS)) === 'private') return new SharedKey(core.importPrivateKey(value));
    return importSecret(attributes, value);
  } finally {
    core.wipe(value);
  }
};

/** C_SetAttributeValue. */
export const changeObject = (session: Session, handle: number, template: readonly Attribute[]): Later<void> => {
  const object = session.application.sessionObject(handle, 'object');
  if (object === undefined) return changeOnToken(session, handle, template);
  const changed = allowedChanges(session, object, template);
  const value = changed.get(CKA.VALUE);
  if (value instanceof Uint8Array) changed.set(CKA.VALUE, Buffer.from(value));
  session.application.changeObject(object, changed);
};

const allowedChanges = (session: Session, object: ObjectView, template: readonly Attribute[]): AttributeMap => {
  session.application.checkMayWrite(session, object.where === 'token', isTrue(object, CKA.PRIVATE));
  if (!isTrue(object, CKA.MODIFIABLE)) throw actionProhibited();
  return changes(template, object.attributes, 'set');
};

/** Every refusal means that another's change went through: so many of them at once are no honest use. */
const mostAttempts = 64;

/** Another's change of the same object, between this one's look at it and its change, is not undone: it looks again. */
const changeOnToken = async (session: Session, handle: number, template: readonly Attribute[]): Promise<void> => {
  const refused = template.find(({ type }) => type === CKA.VALUE);
  const own =
    refused === undefined ? template : template.map((each) => (each === refused ? { ...each, value: null } : each));
  const { application } = session;
  for (let attempt = 1; ; attempt++) {
    const object = await application.tokenObject(handle, 'object', true);
    application.checkMayWrite(session, true, isTrue(object, CKA.PRIVATE));
    // Another's object of the group: the service refuses, and records that somebody tried.
    if (!object.object.owned) await application.ask('updateObject', handle, {});
    if (!isTrue(object, CKA.MODIFIABLE)) throw actionProhibited();
    if (refused !== undefined) throw new CryptokiError(CKR.ATTRIBUTE_READ_ONLY, 'CKA_VALUE of a token object is fixed');
    const changed = allowedChanges(session, object, own);
    if (changed.size === 0) return;
    try {
      const { answer } = await application.ask('updateObject', handle, describeChange(object, changed));
      application.remember(answer);
      return;
    } catch (error) {
      if (!(error instanceof ServiceError && error.code === 'conflict') || attempt === mostAttempts) throw error;
    }
  }
};

const describeChange = (view: TokenView, changed: AttributeMap) => {
  const { object } = view;
  const after: AttributeMap = new Map([...view.attributes, ...changed]);
  const label = changed.get(CKA.LABEL);
  const usages = usagesOf(after);
  const attributes = blobOf(after);
  const replaced = {
    ...(usages.join() === usagesOf(view.attributes).join() ? {} : { usages }),
    ...(attributes === blobOf(view.attributes) ? {} : { attributes }),
  };
  return {
    ...(label instanceof Uint8Array ? { label: Buffer.from(label).toString('base64') } : {}),
    // These go one way only: `changes` has seen to it.
    ...(changed.has(CKA.SENSITIVE) ? { sensitive: true as const } : {}),
    ...(changed.has(CKA.EXTRACTABLE) ? { extractable: false as const } : {}),
    ...replaced,
    ...(Object.keys(replaced).length > 0 ? { seen: { attributes: object.attributes, usages: object.usages } } : {}),
  };
};

/** C_DestroyObject. A token key is destroyed for good, with every copy of it. */
export const destroyObject = (session: Session, handle: number): Later<void> => {
  const object = session.application.sessionObject(handle, 'object');
  if (object === undefined) return destroyOnToken(session, handle);
  session.application.checkMayWrite(session, false, isTrue(object, CKA.PRIVATE));
  if (!isTrue(object, CKA.DESTROYABLE)) throw actionProhibited();
  session.application.removeObject(object);
};

const destroyOnToken = async (session: Session, handle: number): Promise<void> => {
  const { application } = session;
  const object = await application.tokenObject(handle, 'object', true);
  application.checkMayWrite(session, true, isTrue(object, CKA.PRIVATE));
  // Whether it may be destroyed, and by whom, is the service's to say, which records a refusal.
  await application.ask('destroyObject', handle, {});
  application.forget(handle);
};
