// CKA_VALUE, and the numbers of private keys: what is not in an object's map. Callers have checked
// that it may be read (`isReadable`).
import { core } from '../../../addon/core.ts';
import { CKA } from '../../schema/attributes.ts';
import { kindOfView, type ObjectView } from '../objects/object-view.ts';
import type { Application } from '../sessions/application.ts';

/** The length of VALUE without reading it; null when only reading tells. */
export const valueLength = (view: ObjectView): number | null => {
  const value = view.attributes.get(CKA.VALUE);
  if (value instanceof Uint8Array) return value.length;
  const length = view.attributes.get(CKA.VALUE_LEN);
  return length === undefined ? null : Number(length);
};

/**
 * The key or value that a session object consists of. A secret or private key is a copy, which the
 * receiver wipes if it keeps it.
 */
export const readSessionValue = (view: Extract<ObjectView, { where: 'session' }>): Uint8Array => {
  const kind = kindOfView(view);
  if (kind === 'secret' && view.key !== null) return core.exportSecret(view.key.ref);
  if (kind === 'private' && view.key !== null) return core.exportPrivateKey(view.key.ref);
  const value = view.attributes.get(kind === 'public' ? CKA.PUBLIC_KEY_INFO : CKA.VALUE);
  return value instanceof Uint8Array ? value : new Uint8Array(0);
};

/** Secret and private keys. */
export const isSecretKey = (view: ObjectView): boolean => {
  const kind = kindOfView(view);
  return kind === 'secret' || kind === 'private';
};

export const readValue = async (application: Application, view: ObjectView): Promise<Uint8Array> =>
  view.where === 'session' ? readSessionValue(view) : (await application.ask('readValue', view.handle, {})).raw;
