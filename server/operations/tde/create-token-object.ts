// Token objects come into being: keys made inside the service, keys imported, and values (data,
// certificates, public keys). A key object gets a key row in the group's vault, a vault copy, and
// an independent sealed copy of the application. A value is encrypted under a content key of its
// own, whose record is sealed like any key.

import { parseBase64, toBase64 } from '../../base/bytes.ts';
import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { type KeyAlgorithm, newKey } from '../../domain/key.ts';
import { isVaultOpen } from '../../domain/key-policy.ts';
import type { TdeGroup } from '../../domain/tde.ts';
import { isStopped } from '../../domain/tenant.ts';
import type { Curve, KeyDescription, KeyRef, UnwrappedKind } from '../../ports/crypto-core.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';
import { keyOwner } from '../keys/key-records.ts';
import { findApplication, findGroup, findTenant, findVault } from '../shared/find.ts';
import { requireFreeLabel, requireReadable } from '../shared/labels.ts';
import { nameFromLabel } from '../shared/names.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { findCarriedOut, writeOnce, writeOneOnce } from './carry-out-once.ts';
import { sealContent } from './object-content.ts';
import { openSealed, recipientChanged } from './open-sealed.ts';
import { requireRsaSize } from './require-switch.ts';
import { inTurn } from './slow-work.ts';
import type { NewTokenObject, TdeCaller, TdeOperations } from './tde-operations.ts';
import { instanceDetails, show } from './visibility.ts';

export type CreatePorts = Pick<Ports, 'store' | 'core' | 'ring' | 'directory' | 'clock'>;

const mostLabelBytes = 1024;
const mostAttributeBytes = 64 * 1024;
export const mostGenericBits = 4096 * 8;
export const aesLengths = 'an AES key must have 128, 192 or 256 bits';
export const isAesLength = (bits: number | null): bits is 128 | 192 | 256 =>
  bits === 128 || bits === 192 || bits === 256;

export const checkTexts = ({ label, attributes }: NewTokenObject): void => {
  const labelBytes = parseBase64(label);
  if (labelBytes === null || labelBytes.length > mostLabelBytes)
    throw new ServiceError('validation', `label is Base64 of at most ${mostLabelBytes} bytes`);
  const attributeBytes = parseBase64(attributes);
  if (attributeBytes === null || attributeBytes.length > mostAttributeBytes)
    throw new ServiceError('validation', `attributes is Base64 of at most ${mostAttributeBytes} bytes`);
};

/**
 * The caller's group, as the request began: an object created in one that the application has left
 * in the meantime would have no owner.
 */
const findOwnGroup = async (tx: Repositories, { application }: TdeCaller): Promise<TdeGroup> => {
  // Read here, not in the directory: what is made must not come after the record that stopped its
  // tenant.
  const tenant = await findTenant(tx, application.tenantId);
  if (isStopped(tenant) !== null)
    throw new ServiceError('unauthenticated', 'the tenant of the application is no longer active', {
      reason: 'disabled',
    });
  const { groupId } = await findApplication(tx, application.tenantId, application.id);
  if (groupId !== application.groupId)
    throw new ServiceError('conflict', 'the application was moved to another group in the meantime', {
      hint: 'try again',
    });
  return findGroup(tx, application.tenantId, groupId);
};

const requireOpenVault = async (tx: Repositories, group: TdeGroup): Promise<void> => {
  if (!isVaultOpen(await findVault(tx, group.tenantId, group.vaultId)))
    throw new ServiceError('key-disabled', "the group's vault is not enabled");
};

/** What does not depend on how the object came to be. */
const fixed = {
  wrappedSensitive: false,
  destroyedAt: null,
  contentReplacedAt: null,
  state: 'active',
  integrity: 'ok',
} as const;

const objectOf = (
  { application }: TdeCaller,
  input: NewTokenObject,
  made: Omit<
    StoredObject,
    Exclude<keyof NewTokenObject, 'bits'> | 'rules' | keyof typeof fixed | 'tenantId' | 'groupId' | 'applicationId'
  >,
): StoredObject => ({
  ...input,
  rules: input.rules ?? null,
  ...made,
  ...fixed,
  tenantId: application.tenantId,
  groupId: application.groupId,
  applicationId: application.id,
});

/** How a key came to be. */
export type KeyOrigin = 'generated' | 'imported' | 'unwrapped' | 'derived';

/** What is known of the time before a key was stored. What came from outside was anywhere. */
export type Past = Pick<StoredObject, 'alwaysSensitive' | 'neverExtractable'>;
const madeHere: Past = { alwaysSensitive: true, neverExtractable: true };
const fromOutside: Past = { alwaysSensitive: false, neverExtractable: false };

/**
 * Writes a key that is open in the addon, its copies and its audit record. The vault and the label
 * have been checked.
 */
const insertKey = async (
  { core, ring, clock }: CreatePorts,
  tx: Repositories,
  caller: TdeCaller,
  group: TdeGroup,
  input: NewTokenObject,
  reference: KeyRef,
  origin: KeyOrigin,
  past: Past,
): Promise<StoredObject> => {
  const description = core.describe(reference);
  const { bits } = description;
  const algorithm = pairAlgorithm(description) ?? input.algorithm;
  requireReadable({ ...input, algorithm });
  const isPrivate = input.class === 'private-key';
  const now = clock.now();
  const made = objectOf(
    caller,
    { ...input, algorithm },
    {
      handle: await tx.objects.nextHandle(),
      id: newId(now),
      local: origin === 'generated',
      alwaysSensitive: past.alwaysSensitive && input.sensitive,
      neverExtractable: past.neverExtractable && !input.extractable,
      checkValue: isPrivate ? null : toBase64(core.checkValue(reference)),
      publicKey: isPrivate ? toBase64(core.exportPublicKey(reference)) : null,
      createdAt: now,
      content: null,
      bits,
    },
  );
  const key = newKey({
    id: made.id,
    tenantId: made.tenantId,
    vaultId: group.vaultId,
    name: nameFromLabel(input.label),
    createdAt: now,
    kind: 'master',
    algorithm: algorithm ?? 'generic',
    bits,
    usages: input.usages,
    applicationId: made.applicationId,
  });
  await tx.keys.insert(key);
  await tx.keys.insertVersion({ keyId: key.id, version: 1, createdAt: now });
  await tx.records.put(ring.seal(keyOwner(key), 1, 'vault-copy', reference));
  await tx.records.put(ring.seal(keyOwner(key), 1, 'sealed-copy', reference));
  await tx.objects.insert(made);
  await recordEvent(tx, 'key.created', caller.actor, about('key', key), {
    name: key.name,
    kind: key.kind,
    vaultId: key.vaultId,
    algorithm: key.algorithm,
    bits: key.bits,
    usages: key.usages,
    origin,
    label: made.label,
    applicationId: made.applicationId,
    ...instanceDetails(caller),
  });
  return made;
};

/**
 * Writes an object whose value is not a secret key. `contentKey` is its own; `publicKey` is the
 * value of a public key.
 */
const insertValue = async (
  { core, ring, clock }: CreatePorts,
  tx: Repositories,
  caller: TdeCaller,
  input: NewTokenObject,
  contentKey: KeyRef,
  value: Uint8Array,
  made: Pick<StoredObject, 'local' | 'publicKey' | 'bits'>,
): Promise<StoredObject> => {
  const now = clock.now();
  const id = newId(now);
  const owner = { tenantId: caller.application.tenantId, id, integrity: 'ok' } as const;
  const sealed = sealContent({ core, ring }, owner, contentKey, value);
  const object = objectOf(caller, input, {
    ...made,
    ...fromOutside,
    handle: await tx.objects.nextHandle(),
    id,
    checkValue: null,
    createdAt: now,
    content: sealed.content,
  });
  await tx.objects.insert(object);
  await tx.records.put(sealed.record);
  await recordEvent(tx, 'object.created', caller.actor, about('object', { id, tenantId: object.tenantId }), {
    class: object.class,
    label: object.label,
    handle: object.handle,
    ...instanceDetails(caller),
  });
  return object;
};

/**
 * Stores a key that is open in the addon. `past` is that of the key it is derived from. The caller
 * releases the reference.
 */
export const storeKey = async (
  ports: CreatePorts,
  caller: TdeCaller,
  input: NewTokenObject,
  reference: KeyRef,
  origin: KeyOrigin,
  past: Past = origin === 'generated' ? madeHere : fromOutside,
): Promise<StoredObject> => {
  const { directory } = ports;
  const object = await writeOneOnce(ports, caller, async (tx) => {
    const group = await findOwnGroup(tx, caller);
    await requireOpenVault(tx, group);
    await requireFreeLabel(tx, caller, { ...input, groupId: group.id });
    return insertKey(ports, tx, caller, group, input, reference, origin, past);
  });
  await directory.renew({ objects: [object.handle] });
  return object;
};

export const generateTokenKey =
  (ports: CreatePorts): TdeOperations['generateKey'] =>
  async (caller, input) => {
    checkTexts(input);
    if (input.class !== 'secret-key') throw new ServiceError('validation', 'only secret keys are generated here');
    const { core } = ports;
    const make = (): KeyRef => {
      if (input.algorithm === 'aes') {
        const { bits } = input;
        if (!isAesLength(bits)) throw new ServiceError('validation', aesLengths);
        return core.generateAes(bits);
      }
      if (input.algorithm === 'generic') {
        const bits = input.bits ?? 0;
        if (bits < 8 || bits % 8 !== 0 || bits > mostGenericBits)
          throw new ServiceError('validation', `a generic secret has 8 to ${mostGenericBits} bits in whole bytes`);
        return core.generateGeneric(bits / 8);
      }
      throw new ServiceError('unsupported', 'the service generates aes and generic keys');
    };
    const reference = make();
    try {
      return show(caller, await storeKey(ports, caller, input, reference, 'generated'));
    } finally {
      core.release(reference);
    }
  };

const [fewestModulusBits, mostModulusBits] = [2048, 4096];
/** The algorithms whose keys are on a curve, and the addon's names of the curves by their bits. */
const curves: Readonly<Partial<Record<KeyAlgorithm, Readonly<Record<number, Curve>>>>> = {
  ec: { 224: 'p224', 256: 'p256', 384: 'p384', 521: 'p521' },
  secp256k1: { 256: 'secp256k1' },
  brainpool: { 256: 'brainpool-p256r1', 384: 'brainpool-p384r1', 512: 'brainpool-p512r1' },
  ed25519: { 256: 'ed25519' },
  ed448: { 448: 'ed448' },
  x25519: { 256: 'x25519' },
  x448: { 448: 'x448' },
};
const algorithmByCurve: ReadonlyMap<string, KeyAlgorithm> = new Map(
  Object.entries(curves).flatMap(([algorithm, byBits]) =>
    Object.values(byBits).map((curve) => [curve, algorithm as KeyAlgorithm] as const),
  ),
);

/** A promise where finding the key takes long. */
const generatePair = (
  { core }: CreatePorts,
  caller: TdeCaller,
  { algorithm, bits }: NewTokenObject,
): KeyRef | Promise<KeyRef> => {
  if (algorithm === 'rsa') {
    if (bits === null || bits < fewestModulusBits || bits > mostModulusBits || bits % 8 !== 0)
      throw new ServiceError(
        'unsupported',
        `an RSA key has ${fewestModulusBits} to ${mostModulusBits} bits, a multiple of 8`,
      );
    return inTurn('search', caller, () => core.generateRsaLater(bits));
  }
  const curve = algorithm === null || bits === null ? undefined : curves[algorithm]?.[bits];
  if (curve === undefined)
    throw new ServiceError(
      'unsupported',
      'supported key pairs: RSA, NIST curves from P-224, secp256k1, brainpool r1, and the curves of RFC 7748 and RFC 8032',
    );
  return core.generateEc(curve);
};

export const generateTokenKeyPair = (ports: CreatePorts): TdeOperations['generateKeyPair'] => {
  return async (caller, { privateKey, publicKey }) => {
    checkTexts(privateKey);
    if (privateKey.class !== 'private-key')
      throw new ServiceError('validation', 'privateKey is of the class private-key');
    if (publicKey !== null) {
      checkTexts(publicKey);
      if (publicKey.class !== 'public-key' || publicKey.algorithm !== privateKey.algorithm)
        throw new ServiceError('validation', 'publicKey is of the class public-key and of the same algorithm');
    }
    const { store, core, directory } = ports;
    const requireRoom = async (from: Repositories): Promise<TdeGroup> => {
      const group = await findOwnGroup(from, caller);
      await requireOpenVault(from, group);
      for (const half of [privateKey, publicKey])
        if (half !== null) await requireFreeLabel(from, caller, { ...half, groupId: group.id });
      return group;
    };
    const answer = async (made: readonly StoredObject[]) => {
      await directory.renew({ objects: made.map(({ handle }) => handle) });
      const [first, second] = made.map((object) => show(caller, object));
      if (first === undefined) throw new ServiceError('internal', 'no pair was made');
      return { privateKey: first, publicKey: second ?? null };
    };
    const before = await findCarriedOut(store.read, caller);
    if (before !== undefined) return answer(before);
    // Before the long work, so that what is refused costs nothing; again when the pair is written.
    await requireRoom(store.read);
    const reference = await generatePair(ports, caller, privateKey);
    let contentKey: KeyRef | undefined;
    try {
      const { bits } = core.describe(reference);
      const open = core.exportPublicKey(reference);
      const ownKey = core.generateAes(256);
      contentKey = ownKey;
      const made = await writeOnce(ports, caller, async (tx) => {
        const group = await requireRoom(tx);
        const half = await insertKey(ports, tx, caller, group, privateKey, reference, 'generated', madeHere);
        if (publicKey === null) return [half];
        const properties = { local: true, publicKey: toBase64(open), bits };
        return [half, await insertValue(ports, tx, caller, publicKey, ownKey, open, properties)];
      });
      return await answer(made);
    } finally {
      if (contentKey !== undefined) core.release(contentKey);
      core.release(reference);
    }
  };
};

/** The algorithm of a key of a pair; undefined for a secret key. */
export const pairAlgorithm = ({ kind, curve }: KeyDescription): KeyAlgorithm | undefined => {
  if (kind === 'rsa-private' || kind === 'rsa-public') return 'rsa';
  return curve === undefined ? undefined : algorithmByCurve.get(curve);
};

/**
 * Algorithms that one type of key of the caller's represents: which of them it is, the key itself
 * tells.
 */
const families: readonly (readonly KeyAlgorithm[])[] = [
  ['ec', 'secp256k1', 'brainpool'],
  ['ed25519', 'ed448'],
  ['x25519', 'x448'],
];
/** Whether a key of a pair is of the algorithm that was asked for, or of its family. */
export const isOfFamily = (description: KeyDescription, wanted: KeyAlgorithm | null): boolean => {
  const own = pairAlgorithm(description);
  if (own === undefined || wanted === null) return false;
  return own === wanted || families.some((family) => family.includes(own) && family.includes(wanted));
};

/** What an imported key is to become. Throws 'validation' and 'unsupported'. */
const importedKind = ({ class: objectClass, algorithm, bits }: NewTokenObject): UnwrappedKind => {
  if (objectClass === 'private-key') return 'private';
  if (objectClass !== 'secret-key') throw new ServiceError('validation', 'a secret or a private key is imported');
  if (algorithm !== 'aes' && algorithm !== 'generic')
    throw new ServiceError('unsupported', 'a secret key is an aes or a generic key');
  if (algorithm === 'aes' && bits !== null && !isAesLength(bits)) throw new ServiceError('validation', aesLengths);
  return algorithm;
};

export const importTokenKey =
  (ports: CreatePorts): TdeOperations['importKey'] =>
  async (caller, input, key) => {
    checkTexts(input);
    const { core, store, directory } = ports;
    const reference = await openSealed(ports, caller, key, importedKind(input));
    if (reference === null) {
      // A repeat of a request that was carried out while its recipient existed.
      const [before] = (await findCarriedOut(store.read, caller)) ?? [];
      if (before === undefined) throw recipientChanged();
      await directory.renew({ objects: [before.handle] });
      return show(caller, before);
    }
    try {
      const description = core.describe(reference);
      const { bits } = description;
      if (input.class === 'private-key' && !isOfFamily(description, input.algorithm))
        throw new ServiceError('validation', 'the value is a key of another algorithm');
      requireRsaSize(caller, description, 'unsupported');
      if (input.class === 'secret-key' && (bits > mostGenericBits || (input.bits !== null && input.bits !== bits)))
        throw new ServiceError('validation', 'the length of the value does not fit');
      return show(caller, await storeKey(ports, caller, input, reference, 'imported'));
    } finally {
      core.release(reference);
    }
  };

/** What the value of a public key says. Throws 'validation' and 'unsupported'. */
const readPublicKey = (
  { core }: CreatePorts,
  caller: TdeCaller,
  { algorithm }: NewTokenObject,
  value: Uint8Array,
): Pick<StoredObject, 'publicKey' | 'bits' | 'algorithm'> => {
  const reference = core.importPublicKey(value);
  try {
    const description = core.describe(reference);
    if (!isOfFamily(description, algorithm))
      throw new ServiceError('validation', 'the value is a key of another algorithm');
    requireRsaSize(caller, description, 'unsupported');
    const { bits } = description;
    return {
      publicKey: toBase64(core.exportPublicKey(reference)),
      bits,
      algorithm: pairAlgorithm(description) ?? algorithm,
    };
  } finally {
    core.release(reference);
  }
};

export const createTokenObject =
  (ports: CreatePorts): TdeOperations['createObject'] =>
  async (caller, input, value) => {
    checkTexts(input);
    const { core, directory } = ports;
    if (input.class === 'secret-key' || input.class === 'private-key')
      throw new ServiceError('validation', 'a secret or private key comes sealed');
    const { algorithm, ...open } =
      input.class === 'public-key'
        ? readPublicKey(ports, caller, input, value)
        : { publicKey: null, bits: input.bits, algorithm: input.algorithm };
    const contentKey = core.generateAes(256);
    try {
      const object = await writeOneOnce(ports, caller, async (tx) => {
        const { id: groupId } = await findOwnGroup(tx, caller);
        await requireFreeLabel(tx, caller, { ...input, groupId });
        const described = { ...input, algorithm };
        return insertValue(ports, tx, caller, described, contentKey, value, { ...open, local: false });
      });
      await directory.renew({ objects: [object.handle] });
      return show(caller, object);
    } finally {
      core.release(contentKey);
    }
  };
