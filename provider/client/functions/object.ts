// Object management, PKCS#11 2.40 section 5.7.
import { CKA } from '../../schema/attributes.ts';
import { CKR } from '../../schema/return-values.ts';
import { type AttributeAnswers, type AttributeQuery, type AttributeValue, LengthOnly } from '../../schema/types.ts';
import type { Application } from '../application.ts';
import type { GuardedHandlers } from '../guards.ts';
import { isReadable, type ObjectView } from '../object-view.ts';
import { FindOperation } from '../operations/find.ts';
import { changeObject, copyObject, createObject, destroyObject } from '../operations/objects.ts';
import { wipeAfterReply } from '../operations/parts.ts';
import { begin, checkIdle, step } from '../operations/running.ts';
import { readSessionValue, readValue, valueLength } from '../operations/value.ts';
import type { Later } from '../session.ts';

/**
 * The rows of one C_GetAttributeValue. Every row is answered; the return value names one of the problems (5.7, numbers 1 to
 * 5). `value` is VALUE where it was asked for and may be read.
 */
const answer = (view: ObjectView, queries: readonly AttributeQuery[], value: AttributeValue | LengthOnly | null) => {
  let rv: number = CKR.OK;
  const values = queries.map(({ type }) => {
    if (type === CKA.VALUE) {
      if (value === null) rv = CKR.ATTRIBUTE_SENSITIVE;
      return value;
    }
    const known = view.attributes.get(type);
    if (known === undefined) rv = CKR.ATTRIBUTE_TYPE_INVALID;
    return known ?? null;
  });
  return { rv, values } satisfies AttributeAnswers;
};

/** Room for VALUE; undefined when nobody asks for it, null when only its length is asked. */
const valueRoom = (queries: readonly AttributeQuery[]): number | null | undefined =>
  queries.find(({ type }) => type === CKA.VALUE)?.capacity;

const attributesOf = (
  view: ObjectView,
  queries: readonly AttributeQuery[],
  application: Application,
): Later<AttributeAnswers> => {
  const room = valueRoom(queries);
  if (room === undefined || !isReadable(view)) return answer(view, queries, null);
  const length = valueLength(view);
  if (length !== null && (room === null || room < length)) return answer(view, queries, new LengthOnly(length));
  if (view.where === 'token') {
    return readValue(application, view).then((value) => answer(view, queries, wipeAfterReply(value)));
  }
  const value = readSessionValue(view);
  // A data object's value is the object's own.
  return answer(view, queries, view.key === null ? value : wipeAfterReply(value));
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
    checkIdle(session, 'find');
    const operation = new FindOperation(session.application, template);
    const searching = operation.begin();
    if (searching === undefined) return begin(session, 'find', operation);
    return searching.then(() => begin(session, 'find', operation));
  },

  C_FindObjects: (session, { objects }) => step(session, 'find', false, (operation) => operation.take(objects)),

  C_FindObjectsFinal: (session) => step(session, 'find', true, () => undefined),
} as const satisfies GuardedHandlers;
