// A key of the token wraps another key (PKCS#11 C_WrapKey). What is sensitive leaves only under a key that cannot open it again in the
// clear: one that the service made and that was never extractable, so that there is no second object with it, and that does
// not decrypt. It is marked before the wrapped bytes leave, and from then on it never decrypts (Clulow 2003; Bortolozzo and
// others 2010). The mark takes something from the key forever, so only the key's owner has it set.

import { isShortRsa } from '../../base/compatibility.ts';
import { ServiceError } from '../../base/errors.ts';
import type { KeyRef, WrapParameters } from '../../ports/crypto-core.ts';
import type { LoadedObject } from '../../ports/directory.ts';
import type { Repositories } from '../../ports/store.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { KeyToWrap, TdeCaller, TdeOperations } from './interface.ts';
import { openSealed, recipientChanged } from './open-sealed.ts';
import {
  admit,
  requireStillExportable,
  requireStillUsable,
  type UsePorts,
  type Wanted,
  withTokenKeys,
} from './use-token-key.ts';
import { findVisible, instanceDetails, recordDenial } from './visibility.ts';

/** What is to be wrapped, before it is open. */
interface Subject {
  readonly sensitive: boolean;
  /** Null for a key of the agent's. */
  readonly id: string | null;
  readonly class: 'secret-key' | 'private-key';
}

const admitSubject = async (ports: UsePorts, caller: TdeCaller, key: KeyToWrap): Promise<Subject> => {
  if (key.from === 'session') return { sensitive: key.sensitive, id: null, class: key.class };
  const { object } = await admit(ports, caller, { handle: key.handle, use: 'export' });
  if (object.class !== 'secret-key' && object.class !== 'private-key')
    throw new ServiceError('key-usage', 'only secret and private keys are wrapped');
  return { sensitive: object.sensitive, id: object.id, class: object.class };
};

/** The half of a pair, or the secret key, that could open what is wrapped. More than one when a private key came in twice. */
const openersOf = async (from: Repositories, wrapping: StoredObject): Promise<readonly StoredObject[]> => {
  if (wrapping.class === 'public-key' && wrapping.publicKey !== null) {
    const { groupId, publicKey } = wrapping;
    return from.objects.find({ groupId, publicKey, class: 'private-key', after: 0 }, 100);
  }
  const now = await from.objects.get(wrapping.handle);
  return now === undefined || now.destroyedAt !== null ? [] : [now];
};

const mayWrapSensitive = ({ local, neverExtractable, usages, integrity }: StoredObject): boolean =>
  local && neverExtractable && !usages.includes('decrypt') && integrity === 'ok';

/** Whether all that could open the wrapped key is marked, as this node sees it. */
const isMarked = async ({ store, directory }: UsePorts, { object }: LoadedObject): Promise<boolean> => {
  if (object.class !== 'public-key') return object.wrappedSensitive && mayWrapSensitive(object);
  const found = await openersOf(store.read, object);
  for (const { handle } of found) {
    const opener = (await directory.object(handle))?.object;
    if (opener === undefined || !opener.wrappedSensitive || !mayWrapSensitive(opener)) return false;
  }
  return found.length > 0;
};

const refusals = {
  'may decrypt': {
    message: 'this key cannot wrap sensitive keys',
    hint: 'use a wrapping key that the service created, that was never extractable and that cannot decrypt',
  },
  'owned by another application': {
    message: 'this key has wrapped no sensitive key yet, and belongs to another application of the group',
    hint: 'wrapping its first sensitive key permanently ends decryption with a key, so its own application must do that first',
  },
} as const;

/** Marks what could open the wrapped key, or refuses. Returns when the mark is on the disk and this node goes by it. */
const markWrapping = async (ports: UsePorts, caller: TdeCaller, loaded: LoadedObject): Promise<void> => {
  const { store, directory } = ports;
  if (await isMarked(ports, loaded)) return;
  const { marked, refusal } = await store.write(
    async (
      tx,
    ): Promise<{ readonly marked: readonly StoredObject[]; readonly refusal: keyof typeof refusals | null }> => {
      const found = await openersOf(tx, loaded.object);
      if (found.length === 0 && loaded.object.class !== 'public-key')
        throw new ServiceError('key-destroyed', 'the key is destroyed');
      if (found.length === 0 || !found.every(mayWrapSensitive)) return { marked: [], refusal: 'may decrypt' };
      const left = found.filter(({ wrappedSensitive }) => !wrappedSensitive);
      if (left.some(({ applicationId }) => applicationId !== caller.application.id))
        return { marked: [], refusal: 'owned by another application' };
      for (const opener of left) {
        await tx.objects.update({ ...opener, wrappedSensitive: true });
        await recordEvent(tx, 'key.decryption-ended', caller.actor, about('key', opener), {
          applicationId: caller.application.id,
          ...instanceDetails(caller),
        });
      }
      return { marked: found, refusal: null };
    },
  );
  if (refusal !== null) {
    const { message, hint } = refusals[refusal];
    await recordDenial(ports, caller, loaded.object, 'wrap', refusal);
    throw new ServiceError('forbidden', message, { hint });
  }
  await directory.renew({ objects: marked.map(({ handle }) => handle) });
};

/** A public key of the token, checked for wrapping. */
const admitPublicKey = async (ports: UsePorts, caller: TdeCaller, handle: number): Promise<LoadedObject> => {
  const loaded = await findVisible(ports, caller, handle, 'wrap');
  const { object } = loaded;
  if (object.class !== 'public-key' || object.algorithm !== 'rsa' || object.publicKey === null)
    throw new ServiceError('key-usage', 'the wrapping key is not an RSA public key');
  if (isShortRsa(object.bits ?? 0)) throw new ServiceError('key-usage', 'an RSA key below 2048 bits cannot wrap keys');
  if (!object.usages.includes('wrap')) throw new ServiceError('key-usage', 'the key is not for wrap');
  return loaded;
};

const admitSecretKey = async (ports: UsePorts, caller: TdeCaller, handle: number): Promise<LoadedObject> => {
  const loaded = await admit(ports, caller, { handle, use: 'wrap' });
  if (loaded.object.algorithm !== 'aes') throw new ServiceError('key-usage', 'the key is not an AES key');
  return loaded;
};

/**
 * Opens both keys and wraps, in one step: nothing that was destroyed or changed in the meantime leaves. `brought` is the client's key, null for
 * one of the token.
 */
const wrapNow = (
  ports: UsePorts,
  caller: TdeCaller,
  { object: wrapping }: LoadedObject,
  mechanism: WrapParameters,
  key: KeyToWrap,
  brought: KeyRef | null,
  sensitive: boolean,
): Promise<Buffer> => {
  const { core } = ports;
  const isPublic = wrapping.class === 'public-key';
  const wanted: Wanted[] = [];
  if (!isPublic) wanted.push({ handle: wrapping.handle, use: 'wrap' });
  if (key.from === 'token') wanted.push({ handle: key.handle, use: 'export' });
  return withTokenKeys(ports, caller, wanted, (opened) => {
    const [first] = opened;
    const open = isPublic ? core.importPublicKey(Buffer.from(wrapping.publicKey ?? '', 'base64')) : null;
    try {
      const by = open ?? first?.reference;
      const subject = brought ?? opened.at(-1)?.reference;
      if (by === undefined || subject === undefined) throw new ServiceError('internal', 'a key was not opened');
      // It was admitted as one that is not, to which fewer rules apply.
      if (key.from === 'token' && !sensitive && opened.at(-1)?.loaded.object.sensitive !== false)
        throw new ServiceError('forbidden', 'the key became sensitive in the meantime');
      if (sensitive && !isPublic && first?.loaded.object.wrappedSensitive !== true)
        throw new ServiceError('conflict', 'the wrapping key changed in the meantime');
      return core.wrapKey(by, mechanism, subject);
    } finally {
      if (open !== null) core.release(open);
    }
  });
};

/** The client's key, which the caller releases; null for a key of the token. */
const bring = async (ports: UsePorts, caller: TdeCaller, key: KeyToWrap): Promise<KeyRef | null> => {
  if (key.from === 'token') return null;
  const reference = await openSealed(ports, caller, key.key, key.class === 'private-key' ? 'private' : 'generic');
  if (reference === null) throw recipientChanged();
  return reference;
};

export const wrapTokenKey =
  (ports: UsePorts): TdeOperations['wrap'] =>
  async (caller, handle, mechanism, key) => {
    const isPublic = mechanism.way === 'oaep';
    const wrapping = await (isPublic ? admitPublicKey : admitSecretKey)(ports, caller, handle);
    const subject = await admitSubject(ports, caller, key);
    if (subject.sensitive && mechanism.way === 'cipher')
      throw new ServiceError('forbidden', 'wrap sensitive keys with AES key wrap or OAEP, which detect changes');
    const brought = await bring(ports, caller, key);
    let wrapped: Buffer;
    try {
      if (subject.sensitive) await markWrapping(ports, caller, wrapping);
      wrapped = await wrapNow(ports, caller, wrapping, mechanism, key, brought, subject.sensitive);
    } finally {
      if (brought !== null) ports.core.release(brought);
    }
    const by = { applicationId: caller.application.id, ...instanceDetails(caller), mechanism: mechanism.way };
    const { tenantId, id } = wrapping.object;
    await ports.store.write(async (tx) => {
      if (!isPublic) await requireStillUsable(tx, tenantId, id);
      if (subject.id !== null) await requireStillExportable(tx, tenantId, subject.id, subject.sensitive);
      await recordEvent(tx, 'key.wrapped', caller.actor, about(isPublic ? 'object' : 'key', { id, tenantId }), {
        ...by,
        wrappedKeyId: subject.id,
        class: subject.class,
        sensitive: subject.sensitive,
      });
      if (subject.id !== null)
        await recordEvent(tx, 'key.exported', caller.actor, about('key', { id: subject.id, tenantId }), {
          ...by,
          form: 'wrapped',
          wrappingKeyId: id,
        });
    });
    return wrapped;
  };
