// A key of the token wraps another key (PKCS#11 C_WrapKey). What is sensitive leaves only under a key that cannot open it again in the
// clear: one that the service made and that was never extractable, so that there is no second object with it, and that does
// not decrypt. It is marked before the wrapped bytes leave, and from then on it never decrypts (Clulow 2003; Bortolozzo and
// others 2010).

import { ServiceError } from '../../base/errors.ts';
import { refusalOfUse } from '../../domain/lifecycle.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import type { LoadedObject } from '../../ports/directory.ts';
import type { StoredObject } from '../../ports/store.ts';
import type { KeyToWrap, TdeCaller, TdeOperations, WrapMechanism } from '../index.ts';
import { recordPlace } from '../key-records.ts';
import { admit, type UsePorts, withTokenKey } from './use-token-key.ts';
import { findVisible, instanceDetails, recordDenial, requireOwner } from './visibility.ts';

/** What is wrapped, open in the addon for the length of one call. */
interface OpenKey {
  readonly reference: KeyRef;
  readonly sensitive: boolean;
  /** Null for a key of the agent's. */
  readonly id: string | null;
  readonly class: 'secret-key' | 'private-key';
}

const openTokenKey = async (ports: UsePorts, caller: TdeCaller, handle: number): Promise<OpenKey> => {
  const loaded = await findVisible(ports, caller, handle, 'be wrapped');
  await requireOwner(ports, caller, loaded, 'be wrapped');
  const { object, key } = loaded;
  if (key === undefined || (object.class !== 'secret-key' && object.class !== 'private-key'))
    throw new ServiceError('key-usage', 'only secret and private keys are wrapped');
  const refusal = refusalOfUse(key);
  if (refusal !== null) throw new ServiceError(refusal, 'the key that is to be wrapped cannot be used');
  if (!object.extractable) {
    await recordDenial(ports, caller, object, 'be wrapped', 'not extractable');
    throw new ServiceError('forbidden', 'the key is not extractable');
  }
  const record = await ports.store.read.records.get(key.id, key.currentVersion, 'sealed-copy');
  if (record === undefined) throw new ServiceError('key-destroyed', 'the key is destroyed');
  const reference = ports.ring.open({ ...record, ...recordPlace(key, key.currentVersion, 'sealed-copy') });
  return { reference, sensitive: object.sensitive, id: object.id, class: object.class };
};

const openKey = async (ports: UsePorts, caller: TdeCaller, key: KeyToWrap): Promise<OpenKey> => {
  if (key.from === 'token') return openTokenKey(ports, caller, key.handle);
  const { core } = ports;
  const reference =
    key.class === 'private-key' ? core.importPrivateKey(key.value) : core.importSecret('generic', key.value);
  return { reference, sensitive: key.sensitive, id: null, class: key.class };
};

/** The half of a pair, or the secret key, that could open what is wrapped. More than one when a private key came in twice. */
const openers = async ({ store }: UsePorts, { object }: LoadedObject): Promise<readonly StoredObject[]> => {
  if (object.class !== 'public-key' || object.publicKey === null) return [object];
  const { groupId, publicKey } = object;
  return store.read.objects.find({ groupId, publicKey, class: 'private-key', after: 0 }, 100);
};

const mayWrapSensitive = ({ local, extractable, usages }: StoredObject): boolean =>
  local && !extractable && !usages.includes('decrypt');

/** Marks what could open the wrapped key, or refuses. Returns when the mark is on the disk and this node goes by it. */
const markWrapping = async (ports: UsePorts, caller: TdeCaller, loaded: LoadedObject): Promise<void> => {
  const { store, directory } = ports;
  const found = await openers(ports, loaded);
  const refuse = async (): Promise<never> => {
    await recordDenial(ports, caller, loaded.object, 'wrap', 'the wrapping key may decrypt');
    throw new ServiceError('forbidden', 'this key wraps no sensitive key', {
      hint: 'a sensitive key is wrapped by a key that the service made, that was never extractable and that does not decrypt',
    });
  };
  if (found.length === 0 || !found.every(mayWrapSensitive)) return refuse();
  if (found.every(({ wrappedSensitive }) => wrappedSensitive)) return;
  const marked = await store.write(async (tx) => {
    for (const { handle } of found) {
      const now = await tx.objects.get(handle);
      if (now === undefined || now.destroyedAt !== null || !mayWrapSensitive(now)) return false;
      if (!now.wrappedSensitive) await tx.objects.update({ ...now, wrappedSensitive: true });
    }
    return true;
  });
  await directory.renew({ objects: found.map(({ handle }) => handle) });
  if (!marked) return refuse();
};

const wrapUnder = ({ core }: UsePorts, wrapping: KeyRef, mechanism: WrapMechanism, key: KeyRef): Buffer => {
  switch (mechanism.way) {
    case 'key-wrap':
      return core.wrapKey(wrapping, key, mechanism.padded);
    case 'cipher':
      return core.wrapKeyCipher(wrapping, mechanism.cipher, key);
    case 'oaep':
      return core.wrapKeyOaep(wrapping, mechanism.oaep, key);
  }
};

/** A public key of the token, checked for wrapping. */
const admitPublicKey = async (ports: UsePorts, caller: TdeCaller, handle: number): Promise<LoadedObject> => {
  const loaded = await findVisible(ports, caller, handle, 'wrap');
  const { object } = loaded;
  if (object.class !== 'public-key' || object.algorithm !== 'rsa' || object.publicKey === null)
    throw new ServiceError('key-usage', 'the wrapping key is not an RSA public key');
  if (!object.usages.includes('wrap')) throw new ServiceError('key-usage', 'the key is not for wrap');
  return loaded;
};

export const wrapTokenKey =
  (ports: UsePorts): TdeOperations['wrap'] =>
  async (caller, handle, mechanism, key) => {
    const { core, store } = ports;
    const isPublic = mechanism.way === 'oaep';
    const wrapping = await (isPublic ? admitPublicKey(ports, caller, handle) : admit(ports, caller, handle, 'wrap'));
    const open = await openKey(ports, caller, key);
    try {
      if (open.sensitive) {
        if (mechanism.way === 'cipher')
          throw new ServiceError(
            'forbidden',
            'a sensitive key is wrapped with AES key wrap or OAEP, which notice changes',
          );
        await markWrapping(ports, caller, wrapping);
      }
      let wrapped: Buffer;
      if (isPublic) {
        const reference = core.importPublicKey(Buffer.from(wrapping.object.publicKey ?? '', 'base64'));
        try {
          wrapped = wrapUnder(ports, reference, mechanism, open.reference);
        } finally {
          core.release(reference);
        }
      } else {
        wrapped = await withTokenKey(ports, caller, handle, 'wrap', (reference, { object }) => {
          if (object.algorithm !== 'aes') throw new ServiceError('key-usage', 'the key is not an AES key');
          if (open.sensitive && !object.wrappedSensitive)
            throw new ServiceError('conflict', 'the wrapping key changed meanwhile');
          return wrapUnder(ports, reference, mechanism, open.reference);
        });
      }
      await store.write((tx) =>
        tx.audit.append({
          kind: 'key.wrapped',
          actor: caller.actor,
          tenantId: wrapping.object.tenantId,
          subject: { kind: isPublic ? 'object' : 'key', id: wrapping.object.id },
          details: {
            applicationId: caller.application.id,
            ...instanceDetails(caller),
            mechanism: mechanism.way,
            wrappedKeyId: open.id,
            class: open.class,
            sensitive: open.sensitive,
          },
        }),
      );
      return wrapped;
    } finally {
      core.release(open.reference);
    }
  };
