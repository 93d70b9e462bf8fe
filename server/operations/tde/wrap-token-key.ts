// A key of the token wraps another key (PKCS#11 C_WrapKey). What is sensitive leaves only under a
// key that cannot open it again in the clear: one that the service made and that was never
// extractable, so that there is no second object with it, and that does not decrypt. It is marked
// before the wrapped bytes leave, and from then on it never decrypts (Clulow 2003; Bortolozzo and
// others 2010). The mark takes something from the key forever, so only the key's owner has it set.

import { isShortRsa } from '../../base/compatibility-switches.ts';
import { ServiceError } from '../../base/service-error.ts';
import { type Described, misfitOf } from '../../domain/key-custody.ts';
import type { KeyRef, WrapParameters } from '../../ports/crypto-core.ts';
import type { Repositories } from '../../ports/store.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';
import type { LoadedObject } from '../../ports/working-memory.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { openSealed, recipientChanged } from './open-sealed.ts';
import type { KeyToWrap, TdeCaller, TdeOperations } from './tde-operations.ts';
import { Denied, type TokenKeyUseRow, tokenKeyUse, type UsePorts, wrapMechanism } from './token-key-pipeline.ts';
import { instanceDetails, recordDenial } from './visibility.ts';

interface Wrapping {
  readonly handle: number;
  readonly mechanism: WrapParameters;
  readonly key: KeyToWrap;
}

/**
 * What is to be wrapped: a key of the token as it was admitted, or what the agent says of its own.
 */
const subjectOf = (key: KeyToWrap, [, exported]: readonly LoadedObject[]) =>
  key.from === 'session'
    ? { id: null, class: key.class, sensitive: key.sensitive }
    : {
        id: exported?.object.id ?? null,
        class: exported?.object.class,
        sensitive: exported?.object.sensitive !== false,
      };

/**
 * The half of a pair, or the secret key, that could open what is wrapped. More than one when a
 * private key came in twice.
 */
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

/**
 * Marks what could open the wrapped key, or refuses. Returns when the mark is on the disk and this
 * node goes by it.
 */
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

/** The client's key, opened: `end` releases it. Null for a key of the token. */
const bring = async (ports: UsePorts, caller: TdeCaller, key: KeyToWrap): Promise<KeyRef | null> => {
  if (key.from === 'token') return null;
  const reference = await openSealed(ports, caller, key.key, key.class === 'private-key' ? 'private' : 'generic');
  if (reference === null) throw recipientChanged();
  return reference;
};

const wrapRow = (ports: UsePorts): TokenKeyUseRow<Wrapping, Buffer, Buffer, KeyRef | null> => ({
  wants: ({ handle, mechanism, key }) => {
    const wrapping = { handle, use: 'wrap', by: wrapMechanism(mechanism) } as const;
    return key.from === 'token' ? [wrapping, { handle: key.handle, use: 'export', by: null }] : [wrapping];
  },
  checks: ({ mechanism, key }, keys) => {
    const [{ object: wrapping }] = keys;
    if (wrapping.algorithm === 'rsa' && isShortRsa(wrapping.bits ?? 0))
      throw new ServiceError('key-usage', 'an RSA key below 2048 bits cannot wrap keys');
    const subject = subjectOf(key, keys);
    if (subject.class !== 'secret-key' && subject.class !== 'private-key')
      throw new ServiceError('key-usage', 'only secret and private keys are wrapped');
    const exported = keys[1]?.object;
    if (exported?.rules?.wrapWithTrusted === true)
      throw new Denied(
        1,
        'requires a trusted key',
        'forbidden',
        'the key is wrapped only with a trusted key: there is none',
      );
    const wrapped: Described =
      exported === undefined ? { ...subject, class: subject.class } : { ...exported, onToken: true };
    const misfit = misfitOf(wrapping.rules?.wraps, wrapped);
    if (misfit !== null)
      throw new Denied(0, 'prescription', 'forbidden', `the wrapping key wraps no such key: ${misfit}`);
    if (subject.sensitive && mechanism.way === 'cipher')
      throw new ServiceError('forbidden', 'wrap sensitive keys with AES key wrap or OAEP, which detect changes');
  },
  prepare: async ({ caller, input: { key }, admitted }) => {
    const brought = await bring(ports, caller, key);
    try {
      if (subjectOf(key, admitted).sensitive) await markWrapping(ports, caller, admitted[0]);
      return brought;
    } catch (error) {
      if (brought !== null) ports.core.release(brought);
      throw error;
    }
  },
  end: (brought) => {
    if (brought !== null) ports.core.release(brought);
  },
  work: ({ input: { mechanism, key }, admitted }, [wrapping, exported], brought) => {
    const { object } = wrapping.loaded;
    const { sensitive } = subjectOf(key, admitted);
    if (sensitive && object.class !== 'public-key' && !object.wrappedSensitive)
      throw new ServiceError('conflict', 'the wrapping key changed in the meantime');
    const subject = brought ?? exported?.reference;
    if (subject === undefined) throw new ServiceError('internal', 'a key was not opened');
    return ports.core.wrapKey(wrapping.reference, mechanism, subject);
  },
  record: async ({ caller, input: { mechanism, key }, admitted }, wrapped, commit) => {
    const { tenantId, id, class: wrappingClass } = admitted[0].object;
    const subject = subjectOf(key, admitted);
    const by = { applicationId: caller.application.id, ...instanceDetails(caller), mechanism: mechanism.way };
    await commit(async (tx) => {
      const kind = wrappingClass === 'public-key' ? 'object' : 'key';
      await recordEvent(tx, 'key.wrapped', caller.actor, about(kind, { id, tenantId }), {
        ...by,
        wrappedKeyId: subject.id,
        class: subject.class ?? null,
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
  },
});

export const wrapTokenKey = (ports: UsePorts): TdeOperations['wrap'] => {
  const wrap = tokenKeyUse(ports, wrapRow(ports));
  return (caller, handle, mechanism, key) => wrap(caller, { handle, mechanism, key });
};
