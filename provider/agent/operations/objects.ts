// Making, copying, changing and destroying objects (PKCS#11 2.40, sections 5.7 and 5.14). A session
// object's key is made in, or copied into, the addon; a token object is the service's. Whatever a
// template holds as a view is copied before the first await.
import { core, type KeyRef } from '../../../addon/core.ts';
import { digestLengths } from '../../../server/base/digests.ts';
import { ServiceError } from '../../../server/base/service-error.ts';
import { attributeKind, CKA } from '../../schema/attributes.ts';
import { CKK, CKO } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { type Attribute, CryptokiError } from '../../schema/types.ts';
import type { AttributeMap, ReadonlyAttributes } from '../objects/attribute-blob.ts';
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
} from '../objects/object-view.ts';
import { changes, type NewObject, newObject } from '../objects/template.ts';
import { actionProhibited } from '../return-values.ts';
import type { Session } from '../sessions/application-session.ts';
import { andThen, type Later } from '../sessions/later.ts';
import { ownCopy } from './collected-parts.ts';
import { importPrivate, importPublic, importSecret } from './import-key.ts';
import {
  checkCheckValue,
  checkMayGoAbroad,
  checkMayMake,
  keepInSession,
  sendKey,
  sendOwnKey,
  sendPrivateKey,
  sendPublicKey,
  sendToToken,
  wrongCheckValue,
} from './keep-object.ts';
import { isSecretKey, readSessionValue, readValue } from './read-value.ts';
import { bringReadable } from './sealed-keys.ts';

const aesBits = { 16: 128, 24: 192, 32: 256 } as const;

const generate = (keyType: number, length: number): KeyRef =>
  keyType === CKK.AES ? core.generateAes(aesBits[length as keyof typeof aesBits]) : core.generateGeneric(length);
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
    throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, 'a check value cannot be given before the key exists');
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

const createInSession = (session: Session, made: NewObject): Later<number> => {
  const { kind, attributes, value, checkValue } = made;
  switch (kind) {
    case 'data':
    case 'certificate':
      keepValue(made);
      return keepInSession(session, attributes, null);
    case 'public':
      return andThen(importPublic(session.application, attributes), (key) => keepInSession(session, attributes, key));
    case 'private':
      return importPrivate(session.application, made).then((key) => keepInSession(session, attributes, key));
    case 'secret': {
      const key = importSecret(attributes, value ?? new Uint8Array(0));
      checkCheckValue(checkValue, key);
      return keepInSession(session, attributes, key);
    }
  }
};

/**
 * An object that is not a key has its value in its attributes. A certificate is its value, or names
 * where it is (4.6.3).
 */
const keepValue = ({ kind, attributes, value, checkValue }: NewObject): void => {
  const url = attributes.get(CKA.URL);
  if (kind === 'certificate' && value === null && !(url instanceof Uint8Array && url.length > 0)) {
    throw new CryptokiError(CKR.TEMPLATE_INCOMPLETE, 'a certificate needs CKA_VALUE or CKA_URL');
  }
  attributes.set(CKA.VALUE, Buffer.from(value ?? []));
  if (kind !== 'certificate' || value === null) return;
  const own = certificateCheckValue(value);
  if (checkValue !== null && Buffer.compare(checkValue, own) !== 0) throw wrongCheckValue();
  attributes.set(CKA.CHECK_VALUE, own);
};

/** Section 4.6.3: the first three bytes of the SHA-1 of the value. */
const certificateCheckValue = (value: Uint8Array): Buffer => {
  const digest = Buffer.alloc(digestLengths.sha1);
  core.digest('sha1', value, digest);
  return digest.subarray(0, 3);
};

const createOnToken = (session: Session, made: NewObject): Promise<number> => {
  const { kind, attributes, value, checkValue } = made;
  switch (kind) {
    case 'private':
      return importPrivate(session.application, made).then((key) => sendPrivateKey(session, attributes, key));
    case 'public':
      return Promise.resolve(importPublic(session.application, attributes)).then((key) =>
        sendPublicKey(session, attributes, key),
      );
    case 'secret': {
      // Into the addon at once: from the caller's frame to the service its value is nowhere else.
      const key = importSecret(attributes, value ?? new Uint8Array(0));
      checkCheckValue(checkValue, key);
      return sendOwnKey(session, attributes, key);
    }
    case 'certificate':
      keepValue(made);
      attributes.delete(CKA.VALUE);
  }
  return sendToToken(session, attributes, ownCopy(value ?? new Uint8Array(0)));
};

/** C_CopyObject. */
export const copyObject = (session: Session, handle: number, template: readonly Attribute[]): Later<number> => {
  const source = session.application.sessionObject(handle, 'object');
  if (source === undefined) return copyFromToken(session, handle, template);
  const attributes = copiedAttributes(session, source, template);
  if (attributes.get(CKA.TOKEN) === true) {
    // What is secret comes into the service's custody: a way in, never out.
    if (source.key !== null && isSecretKey(source)) {
      checkMayGoAbroad(session, attributes);
      return sendKey(session, attributes, source.key);
    }
    const own = ownCopy(valueIn(attributes) ?? readSessionValue(source));
    attributes.delete(CKA.VALUE);
    return sendToToken(session, attributes, own);
  }
  return keepInSession(session, attributes, source.key?.share() ?? null);
};

/** The value of an object that is not a key, if the attributes have it. */
const valueIn = (attributes: ReadonlyAttributes): Uint8Array | undefined => {
  const value = attributes.get(CKA.VALUE);
  return value instanceof Uint8Array ? value : undefined;
};

const copiedAttributes = (session: Session, source: ObjectView, template: readonly Attribute[]): AttributeMap => {
  if (source.attributes.get(CKA.COPYABLE) === false) throw actionProhibited();
  const attributes: AttributeMap = new Map(source.attributes);
  const changed = changes(template, source.attributes, 'copy');
  // The template's value is wiped with it.
  const value = valueIn(changed);
  if (value !== undefined) changed.set(CKA.VALUE, ownCopy(value));
  for (const [type, each] of changed) attributes.set(type, each);
  checkMayMake(session, attributes);
  return attributes;
};

const copyFromToken = (session: Session, handle: number, template: readonly Attribute[]): Promise<number> =>
  withOwnValues(template, (own) => copyStored(session, handle, own));

/**
 * Values that may be secret are views on the frame, which does not last until the service has
 * answered: `work` gets the template with copies, which are wiped when it is done.
 */
const withOwnValues = async <T>(
  template: readonly Attribute[],
  work: (own: readonly Attribute[]) => Promise<T>,
): Promise<T> => {
  const copies: Uint8Array[] = [];
  const own = template.map((attribute) => {
    if (attributeKind(attribute.type) !== 'secret' || !(attribute.value instanceof Uint8Array)) return attribute;
    const value = ownCopy(attribute.value);
    copies.push(value);
    return { ...attribute, value };
  });
  try {
    return await work(own);
  } finally {
    for (const each of copies) core.wipe(each);
  }
};

const copyStored = async (session: Session, handle: number, template: readonly Attribute[]): Promise<number> => {
  const { application } = session;
  const source = await application.tokenObject(handle, 'object', true);
  const attributes = copiedAttributes(session, source, template);
  // A key in the service's custody does not leave it, unless its owner could read it anyway.
  if (!isReadable(source)) throw actionProhibited();
  if (isSecretKey(source)) {
    const key = await bringReadable(application, source);
    if (attributes.get(CKA.TOKEN) === true) return sendOwnKey(session, attributes, key);
    // The service has it too.
    application.roles.mayGoAbroad(attributes);
    return keepInSession(session, attributes, key);
  }
  const value = valueIn(attributes) ?? (await readValue(application, source));
  attributes.delete(CKA.VALUE);
  if (attributes.get(CKA.TOKEN) === true) return sendToToken(session, attributes, ownCopy(value));
  if (kindOfView(source) === 'public')
    return keepInSession(session, attributes, await importPublic(application, attributes));
  attributes.set(CKA.VALUE, value);
  return keepInSession(session, attributes, null);
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

/** Every refusal means that another change succeeded: so many at once are not honest use. */
const mostAttempts = 64;

const changeOnToken = (session: Session, handle: number, template: readonly Attribute[]): Promise<void> =>
  withOwnValues(template, (own) => changeStored(session, handle, own));

/**
 * Another change of the same object, between this one's read and write, is not undone: it reads
 * again.
 */
const changeStored = async (session: Session, handle: number, template: readonly Attribute[]): Promise<void> => {
  const { application } = session;
  for (let attempt = 1; ; attempt++) {
    const object = await application.tokenObject(handle, 'object', true);
    application.checkMayWrite(session, true, isTrue(object, CKA.PRIVATE));
    // Another's object of the group: the service refuses, and records the attempt.
    if (!object.object.owned) await application.ask('updateObject', handle, {});
    const changed = allowedChanges(session, object, template);
    if (changed.size === 0) return;
    const value = changed.get(CKA.VALUE);
    changed.delete(CKA.VALUE);
    const head = {
      ...describeChange(object, changed),
      ...(value === undefined ? {} : { replacesValue: true as const }),
    };
    const raw = value instanceof Uint8Array ? ownCopy(value) : null;
    try {
      const { answer } = await application.ask('updateObject', handle, head, raw);
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
    ...(changed.has(CKA.WRAP_WITH_TRUSTED) ? { wrapWithTrusted: true as const } : {}),
    ...replaced,
    ...(Object.keys(replaced).length > 0 ? { seen: { attributes: object.attributes, usages: object.usages } } : {}),
  };
};

/** C_DestroyObject. A token key is destroyed permanently, with every copy of it. */
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
