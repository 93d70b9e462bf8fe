// CKA_VALUE: the only attribute that is not in an object's map. Callers have checked that it may be read (`isReadable`).
import { core } from '../../../addon/core.ts';
import { CKA } from '../../schema/attributes.ts';
import type { Application } from '../application.ts';
import type { ObjectView } from '../object-view.ts';

/** The length of VALUE without reading it; null when only reading tells. */
export const valueLength = (view: ObjectView): number | null => {
  const value = view.attributes.get(CKA.VALUE);
  if (value instanceof Uint8Array) return value.length;
  const length = view.attributes.get(CKA.VALUE_LEN);
  return length === undefined ? null : Number(length);
};

/** VALUE of a session object. For a key a copy, which the receiver wipes if it keeps it. */
export const readSessionValue = (view: Extract<ObjectView, { where: 'session' }>): Uint8Array => {
  if (view.key !== null) return core.exportSecret(view.key.ref);
  const value = view.attributes.get(CKA.VALUE);
  return value instanceof Uint8Array ? value : new Uint8Array(0);
};

export const readValue = async (application: Application, view: ObjectView): Promise<Uint8Array> =>
  view.where === 'session' ? readSessionValue(view) : (await application.ask('readValue', view.handle, {})).raw;
