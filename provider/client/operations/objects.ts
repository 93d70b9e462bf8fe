// Making, copying, changing and destroying objects (PKCS#11 2.40, sections 5.7 and 5.14). A session object's key is made in,
// or copied into, the addon; a token object is the service's. Whatever a template holds as a view is copied before the
// first await.
import { randomUUID } from 'node:crypto';
import { CoreError, core, type KeyRef } from '../../../addon/core.ts';
import { isShortRsa } from '../../../server/base/compatibility.ts';
import { digestLengths } from '../../../server/base/digests.ts';
import { ServiceError } from '../../../server/base/errors.ts';
import { attributeKind, attributeName, CKA } from '../../schema/attributes.ts';
import { CKK, CKO } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { type Attribute, CryptokiError } from '../../schema/types.ts';
import type { Application } from '../application.ts';
import type { AttributeMap, ReadonlyAttributes } from '../attribute-blob.ts';
import { actionProhibited } from '../errors.ts';
import {
  encodePrivateKey,
  encodePublicKey,
  isWholeRsaKey,
  publicAttributes,
  rsaNumbers,
  sameNumber,
} from '../key-forms.ts';
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
import { andThen, type Later, type Session } from '../session.ts';
import { changes, equalValues, type NewObject, newObject } from '../template.ts';
import { ownCopy } from './parts.ts';
import { bringReadable, secretKind } from './sealed-keys.ts';
import { inTurn } from './slow-work.ts';
import { isSecretKey, readSessionValue, readValue } from './value.ts';

const aesBits = { 16: 128, 24: 192, 32: 256 } as const;

const generate = (keyType: number, length: number): KeyRef =>
  keyType === CKK.AES ? core.generateAes(aesBits[length as keyof typeof aesBits]) : core.generateGeneric(length);
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

const wrongCheckValue = (): CryptokiError =>
  new CryptokiError(CKR.ATTRIBUTE_VALUE_INVALID, 'CKA_CHECK_VALUE is not that of the value');

const checkCheckValue = (given: Uint8Array | null, key: SharedKey): void => {
  if (given === null || Buffer.compare(given, core.checkValue(key.ref)) === 0) return;
  key.release();
  throw wrongCheckValue();
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
const notImported = (error: unknown): unknown => {
  const refused = error instanceof CoreError && (error.code === 'bad-argument' || error.code === 'unsupported');
  if (!refused && !(error instanceof RangeError)) return error;
  return new CryptokiError(CKR.ATTRIBUTE_VALUE_INVALID, 'the attributes are not those of a key of this type');
};

const tooShort = (): CryptokiError =>
  new CryptokiError(CKR.ATTRIBUTE_VALUE_INVALID, 'an RSA key has at least 2048 bits, or needs a compatibility switch');

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
const importPublic = (application: Application, attributes: ReadonlyAttributes): Later<SharedKey> => {
  try {
    const spki = encodePublicKey(Number(attributes.get(CKA.KEY_TYPE)), attributes);
    return admitSize(application, new SharedKey(core.importPublicKey(spki)));
  } catch (error) {
    throw notImported(error);
  }
};

/** The standard requires the modulus and the private exponent only: what else is not given is computed. */
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
    return await admitSize(application, new SharedKey(await inTurn('search', application, add)));
  } catch (error) {
    throw notImported(error);
  } finally {
    for (const each of numbers) if (each.length > 0) core.wipe(each);
  }
};

/** The material is encoded at once, because it does not outlive the call. The numbers are checked in the user's turn. */
const importPrivate = async (application: Application, made: NewObject): Promise<SharedKey> => {
  const { attributes, material } = made;
  if (attributes.get(CKA.KEY_TYPE) === CKK.RSA && !isWholeRsaKey(attributes, material))
    return completeRsa(application, made);
  let encoded: Buffer | null = null;
  try {
    const pkcs8 = encodePrivateKey(Number(attributes.get(CKA.KEY_TYPE)), attributes, material);
    encoded = pkcs8;
    const key = new SharedKey(await inTurn('computation', application, () => core.importPrivateKeyLater(pkcs8)));
    return await admitSize(application, key);
  } catch (error) {
    throw notImported(error);
  } finally {
    if (encoded !== null) core.wipe(encoded);
  }
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

/** What is no key has its value in its map. A certificate is its value, or names where it is (4.6.3). */
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

/** An object that is no secret, for the token. */
const sendToToken = async (
  session: Session,
  attributes: AttributeMap,
  value: Uint8Array<ArrayBuffer>,
): Promise<number> => {
  const { application } = session;
  const { answer } = await application.ask('createObject', null, describeNew(attributes, null), value);
  return application.remember(answer).handle;
};

/** A secret or private key for the token, sealed. The local one stays the caller's. */
const sendKey = async (session: Session, attributes: AttributeMap, key: SharedKey): Promise<number> => {
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

/** The same with a key that was made for it: it is released. */
const sendOwnKey = (session: Session, attributes: AttributeMap, key: SharedKey): Promise<number> => {
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

/** The same for a private key. */
const sendPrivateKey = (session: Session, attributes: AttributeMap, key: SharedKey): Promise<number> => {
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
  throw new CryptokiError(CKR.ACTION_PROHIBITED, 'a key that has wrapped sensitive keys stays in its session');
};

/** Puts a key that was unwrapped or derived here where its template wants it; on the token it is in the service's custody. */
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

/** The value of what is no key, where the attributes have it. */
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
 * Values that may be secret are views on the frame, which does not last until the service has answered: `work` gets the template with copies,
 * which are wiped when it is done.
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

/** Every refusal means that another's change went through: so many of them at once are no honest use. */
const mostAttempts = 64;

const changeOnToken = (session: Session, handle: number, template: readonly Attribute[]): Promise<void> =>
  withOwnValues(template, (own) => changeStored(session, handle, own));

/** Another's change of the same object, between this one's look at it and its change, is not undone: it looks again. */
const changeStored = async (session: Session, handle: number, template: readonly Attribute[]): Promise<void> => {
  const { application } = session;
  for (let attempt = 1; ; attempt++) {
    const object = await application.tokenObject(handle, 'object', true);
    application.checkMayWrite(session, true, isTrue(object, CKA.PRIVATE));
    // Another's object of the group: the service refuses, and records that somebody tried.
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
