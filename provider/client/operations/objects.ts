// Making, copying, changing and destroying objects (PKCS#11 2.40, sections 5.7 and 5.14). A session object's key is made in,
// or copied into, the addon; a token object is the service's. Whatever a template holds as a view is copied before the
// first await.
import { randomUUID } from 'node:crypto';
import { core, type KeyRef } from '../../../addon/core.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKK, CKO } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { type Attribute, CryptokiError } from '../../schema/types.ts';
import type { AttributeMap } from '../attribute-blob.ts';
import { actionProhibited } from '../errors.ts';
import {
  blobOf,
  describeNew,
  isReadable,
  isTrue,
  type ObjectView,
  type SessionObject,
  SharedKey,
  type TokenView,
  usagesOf,
} from '../object-view.ts';
import type { Later, Session } from '../session.ts';
import { changes, type NewObject, newObject } from '../template.ts';
import { ownCopy } from './parts.ts';
import { readSessionValue, readValue } from './value.ts';

const aesBits = { 16: 128, 24: 192, 32: 256 } as const;

const generate = (keyType: number, length: number): KeyRef =>
  keyType === CKK.AES ? core.generateAes(aesBits[length as keyof typeof aesBits]) : core.generateGeneric(length);
const importKey = (attributes: AttributeMap, value: Uint8Array): SharedKey =>
  new SharedKey(core.importSecret(attributes.get(CKA.KEY_TYPE) === CKK.AES ? 'aes' : 'generic', value));

const checkMayMake = (session: Session, attributes: AttributeMap): void =>
  session.application.checkMayWrite(session, attributes.get(CKA.TOKEN) === true, attributes.get(CKA.PRIVATE) === true);

/** Puts a session object into its session, with what is computed from the key. */
const keepInSession = (session: Session, attributes: AttributeMap, key: SharedKey | null, length: number | null) => {
  attributes.set(CKA.UNIQUE_ID, Buffer.from(randomUUID()));
  if (key !== null && length !== null) {
    attributes.set(CKA.VALUE_LEN, length);
    attributes.set(CKA.CHECK_VALUE, core.checkValue(key.ref));
  }
  return session.application.addObject(session, attributes, key).handle;
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
  const { attributes, length, checkValue } = newObject(template, { how: 'generate', mechanism, keyType }, loggedIn);
  checkMayMake(session, attributes);
  if (length === null || checkValue !== null) {
    throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, 'a check value cannot be known before the key');
  }
  if (attributes.get(CKA.TOKEN) === true) return generateOnToken(session, attributes, length);
  return keepInSession(session, attributes, new SharedKey(generate(keyType, length)), length);
};

const generateOnToken = async (session: Session, attributes: AttributeMap, length: number): Promise<number> => {
  const { application } = session;
  const { answer } = await application.ask('generateKey', null, describeNew(attributes, length));
  return application.remember(answer).handle;
};

/** C_CreateObject. */
export const createObject = (session: Session, template: readonly Attribute[]): Later<number> => {
  const made = newObject(template, { how: 'create' }, session.application.loggedIn);
  checkMayMake(session, made.attributes);
  return made.attributes.get(CKA.TOKEN) === true ? createOnToken(session, made) : createInSession(session, made);
};

const createInSession = (session: Session, { attributes, value, length, checkValue }: NewObject): number => {
  if (length === null) {
    attributes.set(CKA.VALUE, Buffer.from(value ?? []));
    return keepInSession(session, attributes, null, null);
  }
  const key = importKey(attributes, value ?? new Uint8Array(0));
  checkCheckValue(checkValue, key);
  return keepInSession(session, attributes, key, length);
};

const createOnToken = (session: Session, { attributes, value, length, checkValue }: NewObject): Promise<number> => {
  if (checkValue !== null && value !== null) {
    const key = importKey(attributes, value);
    checkCheckValue(checkValue, key);
    key.release();
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
  const { answer } = await application.ask('createObject', null, describeNew(attributes, length), value);
  return application.remember(answer).handle;
};

/** C_CopyObject. */
export const copyObject = (session: Session, handle: number, template: readonly Attribute[]): Later<number> => {
  const source = session.application.sessionObject(handle, 'object');
  if (source === undefined) return copyFromToken(session, handle, template);
  const attributes = copiedAttributes(session, source, template);
  if (attributes.get(CKA.TOKEN) === true) {
    // Only what its owner could read and create again goes to the service: a sensitive key stays in the addon.
    if (!isReadable(source)) throw actionProhibited();
    const value = readSessionValue(source);
    const own = ownCopy(value);
    if (source.key !== null) core.wipe(value);
    return sendToToken(session, attributes, source.key === null ? null : own.length, own);
  }
  const length = attributes.get(CKA.VALUE_LEN);
  return keepInSession(session, attributes, source.key?.share() ?? null, length === undefined ? null : Number(length));
};

const copiedAttributes = (session: Session, source: ObjectView, template: readonly Attribute[]): AttributeMap => {
  if (source.attributes.get(CKA.COPYABLE) === false) throw actionProhibited();
  const attributes: AttributeMap = new Map(source.attributes);
  for (const [type, value] of changes(template, source.attributes, 'copy')) attributes.set(type, value);
  checkMayMake(session, attributes);
  return attributes;
};

const copyFromToken = async (session: Session, handle: number, template: readonly Attribute[]): Promise<number> => {
  const source = await session.application.tokenObject(handle, 'object', true);
  const attributes = copiedAttributes(session, source, template);
  // A key in the service's custody does not leave it, unless its owner could read it anyway.
  if (!isReadable(source)) throw actionProhibited();
  const value = await readValue(session.application, source);
  const isKey = attributes.get(CKA.CLASS) === CKO.SECRET_KEY;
  const length = isKey ? value.length : null;
  if (attributes.get(CKA.TOKEN) === true) return sendToToken(session, attributes, length, ownCopy(value));
  if (!isKey) {
    attributes.set(CKA.VALUE, value);
    return keepInSession(session, attributes, null, null);
  }
  const key = importKey(attributes, value);
  core.wipe(value);
  return keepInSession(session, attributes, key, length);
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

/** Of a token object the service changes the label, the permissions and the agent's own attributes. */
const fixedOnToken: readonly number[] = [CKA.SENSITIVE, CKA.EXTRACTABLE, CKA.VALUE];

const changeOnToken = async (session: Session, handle: number, template: readonly Attribute[]): Promise<void> => {
  const refused = template.find(({ type }) => type === CKA.VALUE);
  const own =
    refused === undefined ? template : template.map((each) => (each === refused ? { ...each, value: null } : each));
  const { application } = session;
  const object = await application.tokenObject(handle, 'object', true);
  application.checkMayWrite(session, true, isTrue(object, CKA.PRIVATE));
  if (!isTrue(object, CKA.MODIFIABLE)) throw actionProhibited();
  if (refused !== undefined) throw new CryptokiError(CKR.ATTRIBUTE_READ_ONLY, 'CKA_VALUE of a token object is fixed');
  const changed = allowedChanges(session, object, own);
  if (changed.size === 0) return;
  if (fixedOnToken.some((type) => changed.has(type))) {
    throw new CryptokiError(CKR.ATTRIBUTE_READ_ONLY, 'the service fixes this attribute when the key is made');
  }
  const { answer } = await application.ask('updateObject', handle, describeChange(object, changed));
  application.remember(answer);
};

const describeChange = (object: TokenView, changed: AttributeMap) => {
  const after: AttributeMap = new Map([...object.attributes, ...changed]);
  const label = changed.get(CKA.LABEL);
  const [usages, before] = [usagesOf(after), usagesOf(object.attributes)];
  const blob = blobOf(after);
  return {
    ...(label instanceof Uint8Array ? { label: Buffer.from(label).toString('base64') } : {}),
    ...(usages.join() === before.join() ? {} : { usages }),
    ...(blob === blobOf(object.attributes) ? {} : { attributes: blob }),
  };
};

/** C_DestroyObject. A token key is destroyed for good, with every copy of it. */
export const destroyObject = (session: Session, handle: number): Later<void> => {
  const object = session.application.sessionObject(handle, 'object');
  if (object === undefined) return destroyOnToken(session, handle);
  checkMayDestroy(session, object);
  session.application.removeObject(object);
};

const checkMayDestroy = (session: Session, object: SessionObject | TokenView): void => {
  session.application.checkMayWrite(session, object.where === 'token', isTrue(object, CKA.PRIVATE));
  if (!isTrue(object, CKA.DESTROYABLE)) throw actionProhibited();
};

const destroyOnToken = async (session: Session, handle: number): Promise<void> => {
  const { application } = session;
  checkMayDestroy(session, await application.tokenObject(handle, 'object', true));
  await application.ask('destroyObject', handle, {});
  application.forget(handle);
};
