// Token objects come into being: keys made inside the service, keys imported, and values (data, certificates, public keys).
// A key object gets a key row in the group's vault, a vault copy, and an independent sealed copy of the application. A
// value is encrypted under a content key of its own, whose record is sealed like any key.

import { parseBase64, toBase64 } from '../../base/bytes.ts';
import { ServiceError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import type { Key } from '../../domain/key.ts';
import type { ObjectClass, TdeGroup } from '../../domain/tde.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories, StoredObject } from '../../ports/store.ts';
import { findGroup } from '../find.ts';
import type { NewTokenObject, TdeCaller, TdeOperations } from '../index.ts';
import { recordPlace } from '../key-records.ts';
import { sealContent } from './object-content.ts';
import { instanceDetails, show } from './visibility.ts';

type CreatePorts = Pick<Ports, 'store' | 'core' | 'ring' | 'directory' | 'clock'>;

const mostLabelBytes = 1024;
const mostAttributeBytes = 64 * 1024;
const mostGenericBits = 4096 * 8;

const checkTexts = ({ label, attributes }: NewTokenObject): void => {
  const labelBytes = parseBase64(label);
  if (labelBytes === null || labelBytes.length > mostLabelBytes)
    throw new ServiceError('validation', `label is Base64 of at most ${mostLabelBytes} bytes`);
  const attributeBytes = parseBase64(attributes);
  if (attributeBytes === null || attributeBytes.length > mostAttributeBytes)
    throw new ServiceError('validation', `attributes is Base64 of at most ${mostAttributeBytes} bytes`);
};

/** A label is bytes; people get its text when it is printable UTF-8, else hexadecimal. */
export const nameFromLabel = (label: string): string => {
  const bytes = Buffer.from(label, 'base64');
  const text = bytes.toString('utf8');
  const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u.test(text) && Buffer.from(text, 'utf8').equals(bytes);
  return (printable ? text : bytes.toString('hex')).slice(0, 256);
};

/**
 * The classes whose labels a new label must not repeat. A secret key's is its alone, because databases select by nothing
 * else; the halves of a pair share theirs.
 */
const rivals = {
  'secret-key': ['secret-key', 'public-key', 'private-key'],
  'public-key': ['secret-key', 'public-key'],
  'private-key': ['secret-key', 'private-key'],
  certificate: [],
  data: [],
} as const satisfies Record<ObjectClass, readonly ObjectClass[]>;

/** Whether an object may have this label. No label is no name: any number of keys have none. */
export const isFreeLabel = async (
  tx: Repositories,
  object: Pick<StoredObject, 'groupId' | 'label' | 'class'>,
  handle?: number,
): Promise<boolean> => {
  const classes = rivals[object.class];
  if (classes.length === 0 || object.label === '') return true;
  return !(await tx.objects.keyLabelExists(object.groupId, object.label, classes, handle));
};

const requireFreeLabel = async (
  tx: Repositories,
  object: Pick<StoredObject, 'groupId' | 'label' | 'class'>,
): Promise<void> => {
  if (!(await isFreeLabel(tx, object)))
    throw new ServiceError('label-exists', 'a key of the group has this label', {
      hint: 'a label is unique among the keys of a group; it is free again when its key is destroyed',
    });
};

const requireOpenVault = async (tx: Repositories, group: TdeGroup): Promise<void> => {
  const vault = await tx.vaults.get(group.vaultId);
  if (vault?.state !== 'enabled' || vault.integrity !== 'ok')
    throw new ServiceError('key-disabled', "the group's vault is not enabled");
};

const objectOf = (
  caller: TdeCaller,
  input: NewTokenObject,
  made: Pick<StoredObject, 'handle' | 'id' | 'local' | 'checkValue' | 'createdAt' | 'content' | 'bits'>,
): StoredObject => ({
  handle: made.handle,
  id: made.id,
  tenantId: caller.application.tenantId,
  groupId: caller.application.groupId,
  applicationId: caller.application.id,
  class: input.class,
  label: input.label,
  algorithm: input.algorithm,
  bits: made.bits,
  usages: input.usages,
  sensitive: input.sensitive,
  extractable: input.extractable,
  modifiable: input.modifiable,
  destroyable: input.destroyable,
  local: made.local,
  private: input.private,
  checkValue: made.checkValue,
  attributes: input.attributes,
  createdAt: made.createdAt,
  content: made.content,
  destroyedAt: null,
  state: 'active',
  integrity: 'ok',
});

/** Stores a key that is open in the addon. The caller releases the reference. */
const storeKey = async (
  { store, core, ring, directory, clock }: CreatePorts,
  caller: TdeCaller,
  input: NewTokenObject,
  reference: KeyRef,
  local: boolean,
): Promise<StoredObject> => {
  const { application } = caller;
  const description = core.describe(reference);
  const checkValue = toBase64(core.checkValue(reference));
  const object = await store.write(async (tx) => {
    const group = await findGroup(tx, application.groupId);
    await requireOpenVault(tx, group);
    await requireFreeLabel(tx, { ...input, groupId: group.id });
    const now = clock.now();
    const made = objectOf(caller, input, {
      handle: await tx.objects.nextHandle(),
      id: newId(now),
      local,
      checkValue,
      createdAt: now,
      content: null,
      bits: description.bits,
    });
    const key: Key = {
      id: made.id,
      tenantId: made.tenantId,
      vaultId: group.vaultId,
      name: nameFromLabel(input.label),
      kind: 'master',
      algorithm: input.algorithm ?? 'generic',
      bits: description.bits,
      usages: input.usages,
      state: 'active',
      disabledAt: null,
      currentVersion: 1,
      createdAt: now,
      deletedAt: null,
      reimportedAt: null,
      destroyedAt: null,
      unrecoverableAt: null,
      applicationId: application.id,
      integrity: 'ok',
    };
    await tx.keys.insert(key);
    await tx.keys.insertVersion({ keyId: key.id, version: 1, createdAt: now });
    await tx.records.put(ring.seal(recordPlace(key, 1, 'vault-copy'), reference));
    await tx.records.put(ring.seal(recordPlace(key, 1, 'sealed-copy'), reference));
    await tx.objects.insert(made);
    await tx.audit.append({
      kind: 'key.created',
      actor: caller.actor,
      tenantId: key.tenantId,
      subject: { kind: 'key', id: key.id },
      details: {
        name: key.name,
        kind: key.kind,
        vaultId: key.vaultId,
        algorithm: key.algorithm,
        bits: key.bits,
        usages: key.usages,
        origin: local ? 'generated' : 'imported',
        label: made.label,
        applicationId: application.id,
        ...instanceDetails(caller),
      },
    });
    return made;
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
        if (bits !== 128 && bits !== 192 && bits !== 256)
          throw new ServiceError('validation', 'an AES key has 128, 192 or 256 bits');
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
      return show(caller, await storeKey(ports, caller, input, reference, true));
    } finally {
      core.release(reference);
    }
  };

export const createTokenObject =
  (ports: CreatePorts): TdeOperations['createObject'] =>
  async (caller, input, value) => {
    checkTexts(input);
    const { store, core, ring, directory, clock } = ports;
    if (input.class === 'private-key')
      throw new ServiceError('unsupported', 'private keys are not kept as token objects', {
        hint: 'create it as a session object',
      });
    if (input.class === 'secret-key') {
      const { algorithm } = input;
      if (algorithm !== 'aes' && algorithm !== 'generic')
        throw new ServiceError('unsupported', 'the service imports aes and generic keys');
      const bits = value.length * 8;
      if (value.length === 0 || bits > mostGenericBits || (input.bits !== null && input.bits !== bits))
        throw new ServiceError('validation', 'the length of the value does not fit');
      if (algorithm === 'aes' && bits !== 128 && bits !== 192 && bits !== 256)
        throw new ServiceError('validation', 'an AES key has 128, 192 or 256 bits');
      const reference = core.importSecret(algorithm, value);
      try {
        return show(caller, await storeKey(ports, caller, input, reference, false));
      } finally {
        core.release(reference);
      }
    }
    const contentKey = core.generateAes(256);
    try {
      const object = await store.write(async (tx) => {
        const { application } = caller;
        await requireFreeLabel(tx, { ...input, groupId: application.groupId });
        const now = clock.now();
        const id = newId(now);
        const sealed = sealContent({ core, ring }, { tenantId: application.tenantId, id }, contentKey, value);
        const made = objectOf(caller, input, {
          handle: await tx.objects.nextHandle(),
          id,
          local: false,
          checkValue: null,
          createdAt: now,
          content: sealed.content,
          bits: input.bits,
        });
        await tx.objects.insert(made);
        await tx.records.put(sealed.record);
        await tx.audit.append({
          kind: 'object.created',
          actor: caller.actor,
          tenantId: made.tenantId,
          subject: { kind: 'object', id },
          details: { class: made.class, label: made.label, handle: made.handle, ...instanceDetails(caller) },
        });
        return made;
      });
      await directory.renew({ objects: [object.handle] });
      return show(caller, object);
    } finally {
      core.release(contentKey);
    }
  };
