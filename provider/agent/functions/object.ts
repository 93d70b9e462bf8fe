// Object management, PKCS#11 2.40 section 5.7.
import { core } from '../../../addon/core.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKR } from '../../schema/return-values.ts';
import { type AttributeAnswers, type AttributeQuery, type AttributeValue, LengthOnly } from '../../schema/types.ts';
import { privateMaterial } from '../objects/key-forms.ts';
import { isReadable, isValue, kindOfView, type ObjectView } from '../objects/object-view.ts';
import { wipeAfterReply } from '../operations/collected-parts.ts';
import { FindOperation } from '../operations/find.ts';
import { changeObject, copyObject, createObject, destroyObject } from '../operations/objects.ts';
import { readSessionValue, readValue, valueLength } from '../operations/read-value.ts';
import type { Application } from '../sessions/application.ts';
import type { Later } from '../sessions/later.ts';
import { begin, checkIdle, step, stepOn } from '../sessions/session-state.ts';
import type { GuardedHandlers } from './guards.ts';

type Values = ReadonlyMap<number, AttributeValue | LengthOnly>;
const noValues: Values = new Map();

/**
 * The rows of one C_GetAttributeValue. Every row is answered; the return value names one of the
 * problems (5.7, numbers 1 to 5). `values` are those that are not in the object's map, as far as
 * they were asked for and may be read.
 */
const answer = (view: ObjectView, queries: readonly AttributeQuery[], values: Values) => {
  let rv: number = CKR.OK;
  const answers = queries.map(({ type }) => {
    const value = isValue(view, type);
    const known = value ? values.get(type) : view.attributes.get(type);
    if (known === undefined) rv = value ? CKR.ATTRIBUTE_SENSITIVE : CKR.ATTRIBUTE_TYPE_INVALID;
    return known ?? null;
  });
  return { rv, values: answers } satisfies AttributeAnswers;
};

const attributesOf = (
  view: ObjectView,
  queries: readonly AttributeQuery[],
  application: Application,
): Later<AttributeAnswers> => {
  const asked = queries.filter(({ type }) => isValue(view, type));
  if (asked.length === 0 || !isReadable(view)) return answer(view, queries, noValues);
  if (kindOfView(view) === 'private') {
    const withMaterial = (pkcs8: Uint8Array) =>
      answer(view, queries, privateMaterial(Buffer.from(pkcs8.buffer, pkcs8.byteOffset, pkcs8.length)));
    if (view.where === 'token')
      return readValue(application, view).then((pkcs8) => withMaterial(wipeAfterReply(pkcs8)));
    if (view.key === null) return answer(view, queries, noValues);
    return withMaterial(wipeAfterReply(core.exportPrivateKey(view.key.ref)));
  }
  const length = valueLength(view);
  if (length !== null && asked.every(({ capacity }) => capacity === null || capacity < length)) {
    return answer(view, queries, new Map([[CKA.VALUE, new LengthOnly(length)]]));
  }
  const withValue = (value: AttributeValue) => answer(view, queries, new Map([[CKA.VALUE, value]]));
  if (view.where === 'token') return readValue(application, view).then((value) => withValue(wipeAfterReply(value)));
  const value = readSessionValue(view);
  // An object that is not a key has its own value.
  return withValue(view.key === null ? value : wipeAfterReply(value));
};

const sizeOf = (value: AttributeValue): number => {
  if (typeof value === 'boolean') return 1;
  if (typeof value !== 'object') return 8;
  return value instanceof Uint8Array ? value.length : value.length * 8;
};

const objectSize = (view: ObjectView): number => {
  let size = valueLength(view) ?? 0;
  for (const [type, value] of view.attributes) if (type !== CKA.VALUE) size += sizeOf(value);
  return size;
};

export const object = {
  C_CreateObject: (session, { template }) => createObject(session, template),
  C_CopyObject: (session, { object, template }) => copyObject(session, object, template),
  C_DestroyObject: (session, { object }) => destroyObject(session, object),

  C_GetObjectSize: ({ application }, { object }) => {
    const view = application.sessionObject(object, 'object');
    return view === undefined ? application.tokenObject(object, 'object', true).then(objectSize) : objectSize(view);
  },

  C_GetAttributeValue: ({ application }, { object, template }) => {
    const view = application.sessionObject(object, 'object');
    if (view !== undefined) return attributesOf(view, template, application);
    return application.tokenObject(object, 'object', true).then((token) => attributesOf(token, template, application));
  },

  C_SetAttributeValue: (session, { object, template }) => changeObject(session, object, template),

  C_FindObjectsInit: (session, { template }) => {
    const cycle = checkIdle(session, 'find');
    const operation = new FindOperation(session.application, template);
    const searching = operation.begin();
    if (searching === undefined) return begin(session, 'find', operation);
    return searching.then(() => begin(session, 'find', operation, cycle));
  },

  C_FindObjects: (session, { objects }) => stepOn(session, 'find', (operation) => operation.take(objects)),

  C_FindObjectsFinal: (session) => step(session, 'find', true, () => undefined),
} as const satisfies GuardedHandlers;
